# Says what the engine runs of a sandbox, as the JSON of `inspect`. Parameters: the engine's program, the id, the owners
# (blanks between). belonging.sh stands before it.
sbx_now
# Without those that we start ourselves for a moment.
sbx_ids=$(sbx_ours "$1" container "$2" "$3" --filter "label=com.docker.compose.project=sbx-$2") || { printf '%s\n' "$sbx_ids" >&2; exit 1; }
[ -n "$sbx_ids" ] || { echo '[]'; exit 0; }
# shellcheck disable=SC2086
exec "$1" inspect --type container $sbx_ids
