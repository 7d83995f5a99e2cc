# Clients of an engine that start and stop the containers of a sandbox. Definitions; let_go.sh stands before it, as the text
# sbx_letting_go too. All of it is done in the sandbox's folder.
#
# A client of podman that is killed half-way leaves a container that is neither started nor stopped. So it runs in a session of
# its own, which whoever ends this one does not end, and `.turning` has its process: who comes next waits for it.

# sbx_turn WORDS...: such a client; its words where it fails. It writes itself down, and only then looks whether somebody else
# has taken the turn, who does it the other way round. A full disk is no reason not to start.
sbx_turn() {
  # shellcheck disable=SC2016
  sbx_alone sh -c 'eval "$1"; echo "$$ $(sbx_started "$$")" >&9
[ -f .turning ] || { echo "something else was begun meanwhile" >&2; exit 75; }
shift; exec "$@" 9>&-' sbx "$sbx_letting_go" "$@" 2>&1 >/dev/null </dev/null
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
  sbx_said=$( (: >.turning) 2>&1) || { printf '%s\n' "$sbx_said"; return 1; }
  exec 9>>.turning
}
sbx_end_turn() { rm -f .turning; }
