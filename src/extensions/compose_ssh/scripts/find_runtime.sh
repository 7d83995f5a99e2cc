# Which compose runtime a stack gets here, and whether there is room for it; runtime.sh and headroom.sh stand before it. Parameters:
# the workspace root, how many blocks docker has for networks (empty: that is asked too), then the words of sbx_runtime.
sbx_bounded 1 true
sbx_headroom "$1"
sbx_asks=
if sbx_has docker; then
  sbx_networks "$2" &
  sbx_asks=$!
fi
shift 2
# Both write lines, and lines of two must not mix.
sbx_found=$(sbx_runtime "$@")
[ -z "$sbx_asks" ] || wait "$sbx_asks"
printf '%s\n' "$sbx_found"
