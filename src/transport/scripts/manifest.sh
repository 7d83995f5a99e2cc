# The manifest of a sandbox. Parameters: the sandbox's directory, and how much of it is read. Only a regular file, and only its
# beginning; nothing of what is not there.
[ ! -L "$1" ] && [ ! -L "$1/manifest.json" ] && [ -f "$1/manifest.json" ] && [ -r "$1/manifest.json" ] || exit 0
head -c "$2" -- "$1/manifest.json"
