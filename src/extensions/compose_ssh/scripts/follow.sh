# What a container wrote. Parameters: the engine's program, the container, how many lines (empty: all), `yes` to follow
# it (each line with its time then), since when (empty: ever).
sbx_engine=$1 sbx_container=$2 sbx_tail=$3 sbx_follow=$4 sbx_since=$5
set --
[ -z "$sbx_tail" ] || set -- "$@" --tail "$sbx_tail"
[ "$sbx_follow" != yes ] || set -- "$@" --follow --timestamps
[ -z "$sbx_since" ] || set -- "$@" --since "$sbx_since"
exec "$sbx_engine" logs "$@" "$sbx_container"
