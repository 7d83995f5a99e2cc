# A shell in a container. Parameters: the engine's program, the container, a word that marks the shell's processes.
# The engine does not end them when the terminal goes away, and podman's client goes on without one, so that is done
# here. Waited for in the background, since a shell hears of no signal before its foreground command has ended.
trap 'sbx_gone=1' HUP TERM
exec 4<&0
"$1" exec -it -e "TERM=${TERM:-dumb}" -e "SBX_SHELL=$3" "$2" sh -c 'command -v bash >/dev/null 2>&1 && exec bash; exec sh' <&4 &
sbx_client=$!
wait $sbx_client
sbx_status=$?
[ -n "$sbx_gone" ] || exit $sbx_status
kill -KILL $sbx_client
"$1" exec "$2" sh -c '
  sbx_end() {
    for sbx_environ in /proc/[0-9]*/environ; do
      grep -q "SBX_SHELL=$2" "$sbx_environ" || continue
      sbx_pid=${sbx_environ#/proc/}
      kill "-$1" "${sbx_pid%/environ}"
    done
  }
  sbx_end HUP "$1"; sleep 2; sbx_end KILL "$1"' sbx "$3" >/dev/null 2>&1 </dev/null
