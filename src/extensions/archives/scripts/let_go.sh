# Without an apostrophe in it: it is handed on as a text, too.
# sbx_let_go [SNAPSHOT]: takes back what `.held` says, in the sandbox folder; with a snapshot, only what was held for that
# one. Whatever is not paused or stopped any more is fine; of what nobody could ask about, nothing is forgotten.
sbx_let_go() {
  # What somebody has begun to take back and has not done goes first: the next one would be written over it.
  sbx_let_go_back || return 1
  [ -f .held ] && [ ! -L .held ] || return 0
  [ -z "$1" ] || [ "$(sed -n 2p .held)" = "$1" ] || return 0
  # From here on no client begins any more (see sbx_client); one that has begun is in it. Others who take it back go by the
  # same file, until the first of them is done.
  sbx_said=$(mv -f .held .held.back 2>&1) || [ ! -e .held ] || { printf "%s\n" "$sbx_said"; return 1; }
  sbx_let_go_back
}
sbx_let_go_back() {
  [ -f .held.back ] && [ ! -L .held.back ] || return 0
  [ -r .held.back ] || { echo "what an earlier snapshot holds cannot be read (.held.back)"; return 1; }
  sbx_client="" sbx_left="" sbx_since=""
  # shellcheck disable=SC2034
  # A line without its end was written on a full disk: nothing was begun after it.
  { read -r sbx_how sbx_with sbx_ids && { read -r sbx_for; read -r sbx_client sbx_left sbx_since; :; }; } <.held.back || sbx_ids=
  case $sbx_with in docker | podman) ;; *) sbx_ids= ;; esac
  case $sbx_ids in "" | *[!0-9a-f\ ]*) rm -f .held.back; return 0 ;; esac
  # The engine goes on with what its client asked for: only when that one has ended is there nothing more to come.
  case $sbx_client in "" | *[!0-9]*) sbx_since="" ;; esac
  case $sbx_left in "" | *[!0-9]*) sbx_left=30 ;; esac
  while [ -n "$sbx_since" ] && [ "$(sbx_started "$sbx_client")" = "$sbx_since" ]; do
    [ "$sbx_left" -gt 0 ] || { printf "%s\n" "$sbx_with still waits for $sbx_how"; return 1; }
    sbx_left=$((sbx_left - 1))
    sleep 1
  done
  sbx_wrong=
  for sbx_one in $sbx_ids; do
    # Again, where it failed: somebody else may be at it, too.
    sbx_said=$(sbx_let_go_one "$sbx_one") || sbx_said=$(sbx_let_go_one "$sbx_one") || sbx_wrong=${sbx_said:-"$sbx_with was ended"}
  done
  [ -z "$sbx_wrong" ] || { printf "%s\n" "$sbx_wrong"; return 1; }
  rm -f .held.back
}
sbx_let_go_one() {
  sbx_is=$(sbx_stands "$1" 2>/dev/null) || {
    sbx_is=$(sbx_stands "$1" 2>&1 >/dev/null)
    # Of a container: of a socket that is not there an engine says that there is no such file.
    case $sbx_is in *"o such container"*) return 0 ;; esac
    printf "%s\n" "$sbx_is"
    return 1
  }
  case $sbx_how/$sbx_is in
    pause/paused) sbx_alone "$sbx_with" unpause "$1" ;;
    stop/running | stop/paused | stop/restarting | stop/removing) ;;
    # Whatever else it is, it is to run: "initialized" by a start that was cut off, for one.
    stop/*) sbx_alone "$sbx_with" start "$1" ;;
  esac 2>&1 >/dev/null </dev/null
}
# sbx_alone WORDS...: in a session of its own, so that whoever ends this one does not end it: a start by podman that is killed
# half-way leaves a container that nobody can start any more.
# shellcheck disable=SC2016
sbx_alone() {
  if command -v setsid >/dev/null 2>&1; then
    setsid "$@"
  elif perl -e "use POSIX" 2>/dev/null; then
    perl -e "use POSIX; POSIX::setsid(); exec @ARGV or exit 127" "$@"
  elif python3 -c "import os" 2>/dev/null; then
    python3 -c "import os, sys; os.setsid(); os.execvp(sys.argv[1], sys.argv[1:])" "$@"
  else
    "$@"
  fi
}
# sbx_started PID: when it was started, in ticks since the machine was. A dead one has said nothing.
sbx_started() { read -r sbx_stat 2>/dev/null <"/proc/$1/stat" && case ${sbx_stat##*) } in Z*) ;; *) set -- ${sbx_stat##*) }; echo "${20}" ;; esac; }
sbx_stands() { "$sbx_with" inspect --type container -f "{{.State.Status}}" "$1" </dev/null; }
