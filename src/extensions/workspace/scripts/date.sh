# Replaces the manifest: the sandbox's directory, the text.
umask 077
cd -P -- "$1" || exit 72
[ -f manifest.json ] && [ ! -L manifest.json ] || exit 74
printf '%s\n' "$2" >.manifest.json.new && mv -- .manifest.json.new manifest.json
