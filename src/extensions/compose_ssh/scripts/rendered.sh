# The file that a sandbox was started from; nothing where there is none. Parameters: the sandbox's directory.
[ -f "$1/compose.yaml" ] || exit 0
exec cat "$1/compose.yaml"
