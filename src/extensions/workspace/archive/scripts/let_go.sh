# Without an apostrophe in it: it is handed on as a text, too.
# sbx_let_go: takes back what `.held` says, in the sandbox folder. Whatever is not paused or stopped any more is fine; of
# what nobody could ask about, nothing is forgotten.
sbx_let_go() {
  [ -f .held ] && [ ! -L .held ] && read -r sbx_how sbx_with sbx_ids <.held || return 0
  case $sbx_with in docker | podman) ;; *) return 0 ;; esac
  case $sbx_ids in "" | *[!0-9a-f\ ]*) rm -f .held; return 0 ;; esac
  sbx_wrong=
  for sbx_one in $sbx_ids; do
    # Again, where it failed: somebody else may be at it, too.
    sbx_said=$(sbx_let_go_one "$sbx_one") || sbx_said=$(sbx_let_go_one "$sbx_one") || sbx_wrong=${sbx_said:-"$sbx_with was ended"}
  done
  [ -z "$sbx_wrong" ] || { printf "%s\n" "$sbx_wrong"; return 1; }
  rm -f .held
}
sbx_let_go_one() {
  sbx_is=$(sbx_stands "$1" 2>/dev/null) || {
    sbx_is=$(sbx_stands "$1" 2>&1 >/dev/null)
    case $sbx_is in *"o such "*) return 0 ;; esac
    printf "%s\n" "$sbx_is"
    return 1
  }
  case $sbx_how/$sbx_is in
    pause/paused) "$sbx_with" unpause "$1" ;;
    stop/exited | stop/stopped) "$sbx_with" start "$1" ;;
  esac 2>&1 >/dev/null </dev/null
}
sbx_stands() { "$sbx_with" inspect --type container -f "{{.State.Status}}" "$1" </dev/null; }
