# Says how often this installation has made something here, by its own account. Parameters: the owner's id; and, where the host
# is to count at least so much, a counter and the installation's machine.
umask 077
sbx_folder=${XDG_STATE_HOME:-${HOME:-}/.local/state}/sandboxer/owners
sbx_read() {
  [ -f "$sbx_folder/$1" ] && [ -r "$sbx_folder/$1" ] && read -r sbx_counter sbx_rest <"$sbx_folder/$1" || return 0
  case $sbx_counter in '' | *[!0-9]*) ;; *) printf '%s\n' "$sbx_counter" ;; esac
}
sbx_has=$(sbx_read "$1")
if [ -n "${2:-}" ] && [ "$2" -gt "${sbx_has:-0}" ]; then
  mkdir -p -- "$sbx_folder" || exit
  printf '%s %s\n' "$2" "$3" >"$sbx_folder/.$1.$$" && mv -- "$sbx_folder/.$1.$$" "$sbx_folder/$1" || exit
  sbx_has=$2
fi
[ -z "$sbx_has" ] || printf '%s\n' "$sbx_has"
