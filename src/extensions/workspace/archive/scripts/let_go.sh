# Without an apostrophe in it: it is handed on as a text, too.
# sbx_let_go: takes back what `.held` says, in the sandbox folder. Whatever is not paused or stopped any more is fine.
sbx_let_go() {
  [ -f .held ] && [ ! -L .held ] && read -r sbx_how sbx_with sbx_ids <.held || return 0
  case $sbx_with in docker | podman) ;; *) return 0 ;; esac
  case $sbx_ids in "" | *[!0-9a-f\ ]*) rm -f .held; return 0 ;; esac
  sbx_wrong=
  for sbx_one in $sbx_ids; do
    sbx_is=$("$sbx_with" inspect --type container -f "{{.State.Status}}" "$sbx_one" 2>/dev/null </dev/null)
    case $sbx_how/$sbx_is in
      pause/paused) sbx_said=$("$sbx_with" unpause "$sbx_one" 2>&1 >/dev/null </dev/null) || sbx_wrong=$sbx_said ;;
      stop/exited | stop/stopped) sbx_said=$("$sbx_with" start "$sbx_one" 2>&1 >/dev/null </dev/null) || sbx_wrong=$sbx_said ;;
    esac
  done
  [ -z "$sbx_wrong" ] || { printf "%s\n" "$sbx_wrong"; return 1; }
  rm -f .held
}
