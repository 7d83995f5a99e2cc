# Says whether a sandbox is there, and what the engine has of it, as the JSON of `inspect`. Parameters: the sandbox's directory,
# then those of inspect.sh, which stands behind it.
[ -d "$1" ] && echo here || echo gone
shift
