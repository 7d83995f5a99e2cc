# Clients of an engine that start and stop the containers of a sandbox. Definitions; let_go.sh stands before it, as the text
# sbx_letting_go too. All of it is done in the sandbox's folder.
#
# A client of podman that is killed half-way leaves a container that is neither started nor stopped. So it runs in a session of
# its own, which whoever ends this one does not end, and `.turning` has its process: who comes next waits for it.

# Whose turn it is stands in its first line.
sbx_token=$(cat /proc/sys/kernel/random/uuid 2>/dev/null || echo "turn-$$")
sbx_mine() { read -r sbx_first <.turning && [ "$sbx_first" = "$sbx_token" ]; } 2>/dev/null

# sbx_turn WORDS...: such a client; its words where it fails. It writes itself down, and only then looks whether somebody else
# has taken the turn, who does it the other way round.
sbx_turn() {
  # shellcheck disable=SC2016
  sbx_alone sh -c 'eval "$1"; echo "$$ $(sbx_started "$$")" >&9
read -r sbx_first <.turning && [ "$sbx_first" = "$2" ] || { echo "something else was begun meanwhile" >&2; exit 75; }
shift 2; exec "$@" 9>&-' sbx "$sbx_letting_go" "$sbx_token" "$@" 2>&1 >/dev/null </dev/null
}

# sbx_take_turn SECONDS: from here on none of an earlier turn begins; those that have begun are waited for. Its words where they
# do not come to their end.
sbx_take_turn() {
  sbx_left=$1
  # What somebody left who took it and was killed goes first.
  for sbx_try in 1 2; do
    [ -f .turning.back ] || mv -f .turning .turning.back 2>/dev/null
    [ -f .turning.back ] && [ ! -L .turning.back ] || continue
    while read -r sbx_pid sbx_since; do
      case $sbx_pid in '' | *[!0-9]*) continue ;; esac
      while [ -n "$sbx_since" ] && [ "$(sbx_started "$sbx_pid")" = "$sbx_since" ]; do
        [ "$sbx_left" -gt 0 ] || { echo "process $sbx_pid still starts or stops its containers"; return 1; }
        sbx_left=$((sbx_left - 1))
        sleep 1
      done
    done <.turning.back
    rm -f .turning.back
  done
  { echo "$sbx_token" >.turning; } 2>&1
}
sbx_end_turn() { ! sbx_mine || rm -f .turning; }
