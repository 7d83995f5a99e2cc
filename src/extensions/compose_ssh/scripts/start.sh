# Brings containers to run one after the other, whatever became of them; the first that cannot is told, with why. Parameters: the
# sandbox's directory, the engine's program, the grace in seconds, the containers. turn.sh stands before it.
cd -P -- "$1" || exit 72
sbx_with=$2 sbx_grace=$3
shift 3
# Our side being gone is no reason to start half of them; whoever ends this for good does so 5 s later.
trap '' HUP TERM PIPE
sbx_said=$(sbx_take_turn 60) || { printf '%s\n' "$sbx_said" >&2; exit 1; }
exec 9>>.turning

# sbx_forget CONTAINER: what podman does not know of: a start that was killed had the runtime make it, and nobody wrote that down.
# It holds the ports, and its name is taken there.
sbx_forget() {
  podman container cleanup "$1" >/dev/null 2>&1 </dev/null
  sbx_runs=$(podman inspect --type container -f '{{.OCIRuntime}}' "$1" 2>/dev/null </dev/null)
  [ -n "$sbx_runs" ] || return 0
  set -- "$sbx_runs" delete -f "$1"
  [ "$(id -u)" = 0 ] || set -- podman unshare "$@"
  "$@" >/dev/null 2>&1 </dev/null
}

# sbx_bring CONTAINER: the words where it cannot.
sbx_bring() {
  for sbx_try in 1 2 3 4; do
    sbx_mine || { echo 'something else was begun meanwhile'; return 1; }
    sbx_is=$(sbx_stands "$1" 2>&1) || { printf '%s\n' "$sbx_is"; return 1; }
    case $sbx_is in
      running | restarting) return 0 ;;
      paused) sbx_said=$(sbx_turn "$sbx_with" unpause "$1") && return ;;
      # A stop that was killed; what is in it may go on.
      stopping) sbx_said=$(sbx_turn "$sbx_with" stop -t "$sbx_grace" "$1") && continue ;;
      *)
        sbx_said=$(sbx_turn "$sbx_with" start "$1") && return
        # The first failure is podman's own look at what is there: the second try often goes well.
        [ "$sbx_with" != podman ] || [ "$sbx_try" = 1 ] || ! sbx_mine || sbx_forget "$1"
        ;;
    esac
    [ "$sbx_with" = podman ] || break
    sleep 0.5 2>/dev/null || sleep 1
  done
  sbx_name=$("$sbx_with" inspect --type container -f '{{.Name}}' "$1" 2>/dev/null </dev/null)
  # Docker says why in a line, and names the container in a second one.
  printf '%s cannot be started from the state %s: %s\n' "${sbx_name#/}" "$(sbx_stands "$1" 2>/dev/null)" "$(printf '%s\n' "$sbx_said" | grep -v 'ailed to start containers: ' | tail -n 1)"
  return 1
}

for sbx_one; do
  sbx_words=$(sbx_bring "$sbx_one") || { printf '%s\n' "$sbx_words" >&2; sbx_end_turn; exit 1; }
done
sbx_end_turn
