# Containers whose names begin like those of a project, with the project that each is of. Parameters: the engine's program, the
# project.
exec "$1" ps -a --filter "name=$2-" --format '{{.Names}} {{.Label "com.docker.compose.project"}}' </dev/null
