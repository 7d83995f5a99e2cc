# Sets sbx_container to a running container of a service, the first by name; else says how they stand, and ends. Parameters:
# the engine's program, the sandbox's id, the owners (blanks between), the service. belonging.sh stands before it.
sbx_find() {
  sbx_all=$(sbx_belonging "$1" container "$2" "$3" --filter "label=sandboxer.id=$2" --filter "label=com.docker.compose.service=$4") || {
    printf '%s\n' "$sbx_all" >&2
    exit 1
  }
  sbx_all=$(printf '%s\n' "$sbx_all" | sed -n "s/^ours$sbx_cut\([^$sbx_cut]*\)$sbx_cut\([^$sbx_cut]*\)$sbx_cut/\2 \1 /p" | sort)
  sbx_container=$(printf '%s\n' "$sbx_all" | while read -r sbx_name sbx_handle sbx_status; do
    case $sbx_status in Up*Paused*) ;; Up* | [Rr]unning*) echo "$sbx_handle"; break ;; esac
  done)
  [ -n "$sbx_container" ] && return
  printf 'stopped %s\n' "$(printf '%s\n' "$sbx_all" | { read -r sbx_name sbx_handle sbx_status; echo "$sbx_status"; })"
  exit
}
