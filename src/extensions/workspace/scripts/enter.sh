# Runs a command in a sandbox's workspace. Parameters: those of entry.sh, which is the function sbx_entry here, then the
# command's words. The first line on stdout is the verdict. What the function needs and sets stays in it: the command gets the
# account's environment, and reads none of its input.
sbx_here=$(sbx_entry "$1" "$2" "$3" "$4" </dev/null) || { printf '%s\n' "$sbx_here"; exit; }
# A link in its place leads elsewhere.
[ ! -L "$sbx_here/workspace" ] && cd -P -- "$sbx_here/workspace" 2>/dev/null || { echo gone; exit; }
shift 4
unset sbx_here
echo ok
exec "$@"
