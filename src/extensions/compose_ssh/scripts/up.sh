# Writes the rendered file and starts it. Parameters: the sandbox's directory, the project, the file's text (empty: it is
# there already), the engine's program, `apart` where containers are made and started by two calls, then the words of the
# compose command.
umask 077
cd -P -- "$1" || exit 72
sbx_project=$2 sbx_engine=$4 sbx_calls=$5
if [ -n "$3" ]; then
  { printf '%s' "$3" >.compose.yaml.new && mv .compose.yaml.new compose.yaml; } || exit 73
fi
shift 5
# An old Python reads files as the locale says.
LC_ALL=${sbx_locale-}
# Whoever tears this sandbox down must know which engine to ask, though nobody lived to write it down elsewhere, and must
# first end what still works on it: what of this process's group has this mark.
export SBX_UP="$sbx_project"
sh -c 'read -r sbx_stat </proc/$PPID/stat; set -- "$1" ${sbx_stat##*) }; echo "$4 $1"' sh "$sbx_engine" >.up || exit 73
umask 022
# podman-compose since 1.1 makes a container with `--requires` of those it depends on, and podman starts all of them again
# with it, one-shots that have ended too. Made without that it is started behind them all the same.
[ "$sbx_calls" != apart ] || "$@" -p "$sbx_project" -f compose.yaml up --no-start --no-deps || exit
exec "$@" -p "$sbx_project" -f compose.yaml up -d
