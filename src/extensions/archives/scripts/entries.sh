# Lists a workspace as an archive of it would be listed; no content is read. Parameters: the sandbox's directory, the
# engine's program, an owner of ours, what is expected of the host (sbx_prove_host), then patterns to leave out. runtime.sh,
# says.sh, place.sh, as.sh and leave_out.sh stand before it. The first line is the verdict, `ok` or why nothing follows; the second
# says whose tar writes the rest.
sbx_brief=78
sbx_prove_host "$4"
if [ ! -d "$1" ]; then
  sbx_root=${1%/*}
  ! sbx_prove_root "${sbx_root:-/}" "$3" unread || sbx_nowhere
fi
cd -P -- "$1" || exit 72
sbx_here=$(env pwd -P)
sbx_project=${sbx_here##*/} sbx_engine=$2 sbx_owner=$3
sbx_id=${sbx_project#sbx-}
shift 4
sbx_gnu_tar || { echo "this host's tar cannot list it; it takes GNU tar" >&2; exit 69; }
# As whom: as for a snapshot.
sbx_rung=plain sbx_more='' sbx_image='' sbx_here_is=,readonly sbx_at_is=,readonly
if [ "$(id -u)" != 0 ]; then
  if [ "$sbx_engine" = podman ]; then
    sbx_rung=unshare
  else
    sbx_shut=$(sbx_closed workspace)
    if [ -z "$sbx_shut" ]; then
      :
    elif sbx_has sudo && sudo -n tar --version >/dev/null 2>&1 </dev/null; then
      sbx_rung=sudo
    else
      [ -n "$sbx_engine" ] || { echo "$sbx_shut cannot be read by this account" >&2; exit 77; }
      sbx_make_empty || { echo "$sbx_shut cannot be read by this account, and $sbx_engine makes no container for it: $sbx_said" >&2; exit 77; }
      sbx_rung=container
      # A name of its own: a snapshot may be taken meanwhile.
      sbx_project=$sbx_project-list-$$
    fi
  fi
fi
sbx_uid=$(id -u) sbx_gid=$(id -g)
[ "$sbx_rung" != unshare ] || sbx_uid=0 sbx_gid=0
sbx_maps=$(mktemp -d) || exit 73
sbx_at=$sbx_maps
trap 'rm -rf "$sbx_maps"; sbx_drop_empty' EXIT
trap 'exit 143' HUP INT TERM PIPE
[ $# = 0 ] || sbx_leave_out "$sbx_maps" "$@" || exit 73
[ $# = 0 ] || set -- --wildcards --no-wildcards-match-slash --anchored -X "$sbx_maps/out.top" --no-anchored -X "$sbx_maps/out.any"
printf '+%s self:0\n' "$sbx_uid" >"$sbx_maps/users"
printf '+%s self:0\n' "$sbx_gid" >"$sbx_maps/groups"
printf 'ok\ngnu\n'
# A listing of an archive that goes nowhere: tar knows /dev/null and reads no file for it.
sbx_as tar --format=pax --owner-map="$sbx_maps/users" --group-map="$sbx_maps/groups" -cvv --index-file=/dev/fd/1 --full-time --quoting-style=escape '--quote-chars= ' \
  "$@" -f /dev/null workspace </dev/null
