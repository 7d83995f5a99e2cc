# Writes a file of ours into the sandbox's directory: the directory, the name, the text in one or more pieces.
umask 077
cd -P -- "$1" || exit 72
sbx_name=$2
shift 2
printf %s "$@" >".$sbx_name.new" && mv -- ".$sbx_name.new" "$sbx_name"
