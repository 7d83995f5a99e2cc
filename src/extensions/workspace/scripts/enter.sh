# Runs a command in a folder. Parameters: the folder, the command's words. The first line on stdout is the verdict.
# A link in its place leads elsewhere.
[ ! -L "$1" ] && cd -P -- "$1" 2>/dev/null || { echo gone; exit; }
shift
echo ok
exec "$@"
