# Says what the engine runs of a project, as the JSON of `inspect`. Parameters: the engine's program, the project.
sbx_ids=$("$1" ps -aq --no-trunc --filter "label=com.docker.compose.project=$2") || exit
[ -n "$sbx_ids" ] || { echo '[]'; exit 0; }
# shellcheck disable=SC2086
exec "$1" inspect --type container $sbx_ids
