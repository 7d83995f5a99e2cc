# What is done to containers so that they leave their files alone. Definitions; let_go.sh stands before it, as the text
# `sbx_letting_go` too. It is written down in the sandbox's folder before it is done: `.held` has one line, `pause` or
# `stop`, the engine's program, the ids; then one for whom, and one with its client's process.

# sbx_hold pause|stop SNAPSHOT ENGINE GRACE ID...: in the sandbox's folder. The engine's words where it cannot.
sbx_hold() {
  # Not to be ended half-way: the engine would go on with what was asked for after it was taken back.
  trap '' HUP INT TERM PIPE
  sbx_how=$1 sbx_for=$2 sbx_with=$3 sbx_secs=$4
  shift 4
  for sbx_held in .held .held.back; do
    { [ ! -e $sbx_held ] && [ ! -L $sbx_held ]; } || { echo "what an earlier snapshot holds is not let go yet ($sbx_held)"; return 1; }
  done
  exec 9>.held && printf '%s\n' "$sbx_how $sbx_with $*" "$sbx_for" >&9 || return 1
  case $sbx_how in
    pause) sbx_client 30 "$sbx_with" pause "$@" ;;
    stop) sbx_client "$((sbx_secs * $# + 30))" "$sbx_with" stop -t "$sbx_secs" "$@" ;;
  esac 2>&1 >/dev/null </dev/null
}

# sbx_client SECONDS WORDS...: a client of the engine that ends in its own time, and whose process `.held` tells, with the
# time that it may take. It is none of this session's, so that whoever ends the session does not end it. Where `.held` was
# taken back before it has begun it does nothing: it writes itself down, and only then looks; who takes it back does it the
# other way round.
sbx_client() {
  # shellcheck disable=SC2016
  sbx_alone sh -c 'eval "$1"; echo "$$ $2 $(sbx_started "$$")" >&9 || exit; [ -f .held ] || exit; shift 2
exec "$@" 9>&-' sbx "$sbx_letting_go" "$@"
}

# A process of its own that takes it back when this one is gone without a word: killed, or out of memory. Only what was
# held for this snapshot: the next one may have begun.
sbx_guard() { # SNAPSHOT
  # shellcheck disable=SC2016
  sbx_alone sh -c 'while kill -0 "$1" 2>/dev/null; do sleep 1; done
eval "$2"
sbx_let_go "$3"' sbx "$$" "$sbx_letting_go" "$1" </dev/null >/dev/null 2>&1 &
}
