# The manifest of a sandbox, as its deadline is asked for before it is ended. Parameter: the sandbox's directory. Only a regular
# file, and only its beginning; nothing of what is not there.
[ ! -L "$1" ] && [ ! -L "$1/manifest.json" ] && [ -f "$1/manifest.json" ] && [ -r "$1/manifest.json" ] || exit 0
head -c 16384 -- "$1/manifest.json"
