# sbx_leave ENGINE CONTAINER MARK SIGNAL: ends what somebody started in a container and has left: first with the signal,
# 2 s later for good. It is known by the mark in its environment, SBX_MARK. Whoever calls this has been told to end and is
# killed 5 s later with all of its session: on a busy host that is too soon, so this leaves the session where it can.
sbx_leave() {
  sbx_away=$(command -v setsid)
  # It may be told to end before it is away, and then has done nothing. Nobody is told twice.
  sbx_ask_to_leave "$@" || [ $? -le 128 ] || sbx_ask_to_leave "$@"
}
sbx_ask_to_leave() {
  $sbx_away "$1" exec "$2" sh -c '
    sbx_end() {
      for sbx_environ in /proc/[0-9]*/environ; do
        grep -q "SBX_MARK=$2" "$sbx_environ" || continue
        sbx_pid=${sbx_environ#/proc/}
        kill "-$1" "${sbx_pid%/environ}"
      done
    }
    sbx_end "$2" "$1"; sleep 2; sbx_end KILL "$1"
    rm -f "${TMPDIR:-/tmp}/.patch-$1" "/dev/shm/.patch-$1" "./.patch-$1"' sbx "$3" "$4" >/dev/null 2>&1 </dev/null
}
