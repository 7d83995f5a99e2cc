# Runs a command in a folder. Parameters: the folder, the command's words. The first line on stdout is the verdict.
cd -P -- "$1" 2>/dev/null || { echo gone; exit; }
shift
echo ok
exec "$@"
