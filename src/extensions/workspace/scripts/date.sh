# Replaces the manifest, and notes how often the installation has made something. Parameters: the sandbox's directory, the
# text, the installation and its counter (empty: not to be noted), its machine. place.sh stands before it.
umask 077
[ -z "$3" ] || sbx_note_counter "${3% *}" "${3#* }" "$4"
cd -P -- "$1" || exit 72
[ -f manifest.json ] && [ ! -L manifest.json ] || exit 74
printf '%s\n' "$2" >.manifest.json.new && mv -- .manifest.json.new manifest.json
