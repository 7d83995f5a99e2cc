# Makes an archive whole: the archive gets its last name, then the manifest is written. Parameters: its folder, the file's
# last name, the manifest's text in pieces.
umask 077
cd -P -- "$1" || exit 72
sbx_name=$2
shift 2
printf %s "$@" >.manifest.json.new && echo >>.manifest.json.new || exit 73
sync .manifest.json.new || exit 73
mv -- "$sbx_name.partial" "$sbx_name" || exit 74
mv -- .manifest.json.new manifest.json || exit 75
# There are file systems that sync no folder.
sync . 2>/dev/null || sync
