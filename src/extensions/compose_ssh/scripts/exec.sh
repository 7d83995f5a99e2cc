# Runs a command in a service's container; leave.sh stands before it. Parameters: those of sbx_find (find.sh), what is
# expected of the host and the engine's id (prove.sh), what the engine's client reads (`lifeline`: our side's end of the session,
# `input`: our stdin), the script that runs it there (empty: without one), a word that marks its processes, then its words. The
# first line on stdout is the verdict.
sbx_engine=$1 sbx_stdin=$7 sbx_inside=$8 sbx_mark=$9
if [ "$sbx_stdin" = input ]; then exec 4<&0 </dev/null; else exec 4<&3 3<&-; fi
sbx_prove "$5" "$1" "$6"
sbx_find "$1" "$2" "$3" "$4"
shift 9
if [ -n "$sbx_inside" ]; then
  set -- sh -c "$sbx_inside" sbx "$@"
elif [ "$sbx_stdin" = input ]; then
  echo ok
else
  exec 4<&-
  echo ok
  exec "$sbx_engine" exec "$sbx_container" "$@"
fi
# The engine's client hands on the end of its input, and not a signal: that end is our side's. But podman's client
# does not while nobody reads what the command writes, and what we give the command to read ends for other reasons, so it
# is ended from here as well. PIPE: what a shell says of a process that was ended may be the first that nobody reads.
trap 'sbx_gone=1' HUP TERM PIPE
"$sbx_engine" exec -i -e "SBX_MARK=$sbx_mark" "$sbx_container" "$@" <&4 4<&- &
sbx_client=$!
exec 4<&-
wait $sbx_client
sbx_status=$?
# The client may learn that our side is gone before we do: by SIGPIPE, or by the signal that is on its way here.
case $sbx_status in
  141) sbx_gone=1 ;;
  125 | 126 | 129 | 137 | 143 | 255) [ -n "$sbx_gone" ] || sleep 1 ;;
esac
[ -n "$sbx_gone" ] || exit $sbx_status
kill -KILL $sbx_client 2>/dev/null
sbx_leave "$sbx_engine" "$sbx_container" "$sbx_mark" TERM
exit $sbx_status
