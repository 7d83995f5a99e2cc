# Prints what a sandbox's containers were given: the rendered file and, behind a line `# .env`, the workspace's variables.
# Parameter: the sandbox's directory.
cd -P -- "$1" && [ -f compose.yaml ] && [ ! -L compose.yaml ] && cat compose.yaml || exit 1
echo '# .env'
# A container may have put something else in its place.
[ ! -f workspace/.env ] || [ -L workspace/.env ] || head -c 1048576 workspace/.env
