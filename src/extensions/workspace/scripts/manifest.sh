# Replaces the manifest, and notes how often the installation has made something. Parameters: the root, the id, the owners, the
# expected host (sbx_prove_host), the text, the installation and its counter (empty: not to be noted), its machine. stand.sh
# stands before it.
umask 077
sbx_prove_host "$4"
[ -z "$6" ] || sbx_note_counter "${6% *}" "${6#* }" "$7"
sbx_stand "$1" "$2" "$3"
sbx_said=$( { printf '%s\n' "$5" >.manifest.json.new && mv -- .manifest.json.new manifest.json; } 2>&1) || {
  rm -f -- .manifest.json.new
  sbx_fail write "$sbx_said"
}
