# What is done to containers so that they leave their files alone. Definitions; let_go.sh stands before it, as the text
# `sbx_letting_go` too. It is written down in the sandbox's folder before it is done: `.held` has one line, `pause` or
# `stop`, the engine's program, the ids.

# sbx_hold pause|stop ENGINE GRACE ID...: in the sandbox's folder. The engine's words where it cannot.
sbx_hold() {
  sbx_how=$1 sbx_with=$2 sbx_secs=$3
  shift 3
  printf '%s\n' "$sbx_how $sbx_with $*" >.held || return 1
  case $sbx_how in
    pause) "$sbx_with" pause "$@" 2>&1 >/dev/null </dev/null ;;
    stop) "$sbx_with" stop -t "$sbx_secs" "$@" 2>&1 >/dev/null </dev/null ;;
  esac
}

# A process of its own that takes it back when this one is gone without a word: killed, or out of memory. It is no child of
# this session, so that whoever ends the session does not end it too.
sbx_guard() {
  sbx_apart=$(command -v setsid)
  $sbx_apart sh -c 'while kill -0 "$1" 2>/dev/null; do sleep 1; done
eval "$2"
sbx_let_go' sbx "$$" "$sbx_letting_go" </dev/null >/dev/null 2>&1 &
}
