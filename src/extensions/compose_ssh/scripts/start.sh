# Starts containers one after the other. Parameters: the sandbox's directory, the engine's program, `last` where nothing
# remains to be started, the names. Then nothing is asleep any more.
cd -P -- "$1" || exit 72
sbx_engine=$2 sbx_last=$3
shift 3
# Our side being gone is no reason to start half of them; whoever ends this for good does so 5 s later.
trap '' HUP TERM
for sbx_name; do
  "$sbx_engine" start "$sbx_name" >/dev/null </dev/null || exit
done
[ "$sbx_last" != last ] || rm -f -- .asleep
