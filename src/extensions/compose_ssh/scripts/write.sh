# Writes a file of ours into the sandbox's directory: the directory, the name, the mode, the text in one or more pieces.
umask 077
cd -P -- "$1" || exit 72
sbx_name=$2 sbx_mode=$3
shift 3
printf %s "$@" >".$sbx_name.new" && chmod "$sbx_mode" ".$sbx_name.new" && mv -f -- ".$sbx_name.new" "$sbx_name"
