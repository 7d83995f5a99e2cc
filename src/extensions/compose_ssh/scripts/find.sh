# Sets sbx_id to a running container of a service, the first by name; else says how they stand, and ends. Parameters:
# the engine's program, the project, the service.
sbx_find() {
  sbx_all=$("$1" ps -a --no-trunc --filter "label=com.docker.compose.project=$2" \
    --filter "label=com.docker.compose.service=$3" --format '{{.Names}} {{.ID}} {{.Status}}' | sort) || exit 1
  sbx_id=$(printf '%s\n' "$sbx_all" | while read -r sbx_name sbx_id sbx_status; do
    case $sbx_status in Up*Paused*) ;; Up* | [Rr]unning*) echo "$sbx_id"; break ;; esac
  done)
  [ -n "$sbx_id" ] && return
  printf 'stopped %s\n' "$(printf '%s\n' "$sbx_all" | { read -r sbx_name sbx_id sbx_status; echo "$sbx_status"; })"
  exit
}
