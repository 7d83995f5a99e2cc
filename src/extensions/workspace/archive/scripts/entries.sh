# Lists a workspace as an archive of it would be listed; no content is read. Parameters: the sandbox's directory, the
# engine's program, then patterns to leave out. runtime.sh, says.sh and as.sh stand before it.
cd -P -- "$1" || exit 72
sbx_rung=plain
if [ "$2" = podman ] && [ "$(id -u)" != 0 ]; then sbx_rung=unshare; fi
shift 2
sbx_gnu_tar || { echo "this host's tar cannot list it; it takes GNU tar" >&2; exit 69; }
sbx_count=$#
while [ "$sbx_count" -gt 0 ]; do
  sbx_pattern=${1%/}
  shift
  case $sbx_pattern in
    /*) set -- "$@" --anchored "--exclude=workspace$sbx_pattern" ;;
    */*) set -- "$@" --anchored "--exclude=workspace/$sbx_pattern" ;;
    *) set -- "$@" --no-anchored "--exclude=$sbx_pattern" ;;
  esac
  sbx_count=$((sbx_count - 1))
done
[ $# = 0 ] || set -- --wildcards --no-wildcards-match-slash "$@"
sbx_uid=$(id -u) sbx_gid=$(id -g)
[ "$sbx_rung" != unshare ] || sbx_uid=0 sbx_gid=0
sbx_maps=$(mktemp -d) || exit 73
trap 'rm -rf "$sbx_maps"' EXIT HUP INT TERM
printf '+%s self:0\n' "$sbx_uid" >"$sbx_maps/users"
printf '+%s self:0\n' "$sbx_gid" >"$sbx_maps/groups"
# A listing of an archive that goes nowhere: tar knows /dev/null and reads no file for it.
sbx_as tar --format=pax --owner-map="$sbx_maps/users" --group-map="$sbx_maps/groups" -cvv --index-file=/dev/fd/1 --full-time --quoting-style=escape '--quote-chars= ' \
  "$@" -f /dev/null workspace
