# Starts containers one after the other. Parameters: the engine's program, the names.
sbx_engine=$1
shift
# Our side being gone is no reason to start half of them; whoever ends this for good does so 5 s later.
trap '' HUP TERM PIPE
for sbx_name; do
  "$sbx_engine" start "$sbx_name" >/dev/null </dev/null || exit
done
