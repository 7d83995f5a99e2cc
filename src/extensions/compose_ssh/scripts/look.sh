# Says whether a sandbox is there, and what the engine has of its project, as the JSON of `inspect`. Parameters: the
# engine's program, the project, the sandbox's directory.
[ -d "$3" ] && echo here || echo gone
sbx_ids=$("$1" ps -aq --no-trunc --filter "label=com.docker.compose.project=$2") || exit
[ -n "$sbx_ids" ] || { echo '[]'; exit 0; }
# shellcheck disable=SC2086
exec "$1" inspect --type container $sbx_ids
