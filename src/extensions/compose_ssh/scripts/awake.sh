# Nothing of a sandbox is asleep any more. Parameter: its directory.
cd -P -- "$1" && rm -f -- .asleep
