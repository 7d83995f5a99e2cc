# A shell in a container; leave.sh stands before it. Parameters: the engine's program, the container, a word that marks
# the shell's processes.
# The engine does not end them when the terminal goes away, and podman's client goes on without one, so that is done
# here. Waited for in the background, since a shell hears of no signal before its foreground command has ended.
trap 'sbx_gone=1' HUP TERM PIPE
exec 4<&0
"$1" exec -it -e "TERM=${TERM:-dumb}" -e "SBX_MARK=$3" "$2" sh -c 'command -v bash >/dev/null 2>&1 && exec bash; exec sh' <&4 &
sbx_client=$!
wait $sbx_client
sbx_status=$?
# The client may hear of it before we do.
case $sbx_status in 129 | 137 | 143) [ -n "$sbx_gone" ] || sleep 1 ;; esac
[ -n "$sbx_gone" ] || exit $sbx_status
kill -KILL $sbx_client 2>/dev/null
sbx_leave "$1" "$2" "$3" HUP
