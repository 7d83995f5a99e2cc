# Runs a command in a service's container. Parameters: the engine's program, the project, the service, the script that
# runs it there (empty: without one), then its words. The first line on stdout is the verdict.
sbx_engine=$1 sbx_inside=$4
sbx_find "$1" "$2" "$3"
shift 4
if [ -n "$sbx_inside" ]; then
  # The engine's client hands on the end of its input, and not a signal: that end is our side's.
  exec "$sbx_engine" exec -i "$sbx_id" sh -c "$sbx_inside" sbx "$@" <&3
fi
exec 3<&-
echo ok
exec "$sbx_engine" exec "$sbx_id" "$@"
