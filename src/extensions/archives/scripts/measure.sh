# Tells how large a sandbox is, and how much room there is for an archive of it. Parameters: the root, the id, the owners
# (blanks between), what is expected of the host (sbx_prove_host), the engine's program (empty: none is known). runtime.sh,
# says.sh, place.sh and belonging.sh stand before it.
sbx_id=$2 sbx_owners=$3 sbx_engine=$5
sbx_project=sbx-$sbx_id
sbx_prove_host "$4"
sbx_prove_root "$1" "$sbx_owners" gone || sbx_fail gone "$sbx_root is not there"
# NAME BLOCKS USED AVAILABLE PERCENT MOUNT; the name may hold blanks.
sbx_line=$(df -Pk . 2>/dev/null | tail -n 1 | sed 's/.* \([0-9][0-9]*\)  *\([0-9][0-9]*\)  *[0-9][0-9]*%.*/\1 \2/')
printf 'used_kib=%s\nfree_kib=%s\n' "${sbx_line% *}" "${sbx_line#* }"
cd -P -- "$sbx_project" 2>/dev/null || { sbx_nowhere; sbx_fail gone "$sbx_root/$sbx_project is not there"; }
[ "$(env pwd -P)" = "${sbx_root%/}/$sbx_project" ] || sbx_fail gone "${sbx_root%/}/$sbx_project is a link"
[ "$(sbx_whose . "$sbx_id" "$sbx_owners")" = ours ] || sbx_fail gone "its manifest.json does not name this sandbox and this installation"
[ -d workspace ] && [ ! -L workspace ] || sbx_fail gone "${sbx_root%/}/$sbx_project/workspace is not there"
sbx_folders=
if [ -n "$sbx_engine" ]; then
  sbx_has "$sbx_engine" || sbx_fail engine "$sbx_engine is not installed any more"
  sbx_volumes=$(sbx_ours "$sbx_engine" volume "$sbx_id" "$sbx_owners") || sbx_fail engine "$sbx_volumes"
  # shellcheck disable=SC2086
  [ -z "$sbx_volumes" ] || sbx_folders=$("$sbx_engine" volume inspect -f '{{.Mountpoint}}' $sbx_volumes 2>/dev/null </dev/null) ||
    sbx_fail engine "$("$sbx_engine" volume inspect $sbx_volumes 2>&1 >/dev/null </dev/null | tail -n 3)"
fi
# What a container wrote belongs to others; what this account cannot see by any way is not counted.
sbx_du() {
  if [ "$(id -u)" != 0 ] && [ "$sbx_engine" = podman ]; then
    podman unshare du -skx -- "$1"
  elif [ "$(id -u)" != 0 ] && sbx_has sudo && sudo -n du -skx -- /dev/null >/dev/null 2>&1 </dev/null; then
    sudo -n du -skx -- "$1"
  else
    du -skx -- "$1"
  fi </dev/null 2>/dev/null | sed -n 's/^\([0-9][0-9]*\)[[:blank:]].*/\1/p' | tail -n 1
}
sbx_sum=$(sbx_du workspace)
case $sbx_sum in '' | *[!0-9]*) sbx_fail closed "$(du -skx workspace 2>&1 | tail -n 1)" ;; esac
sbx_sum=$(printf '%s\n' "$sbx_folders" | {
  while IFS= read -r sbx_folder; do
    case $sbx_folder in /*) ;; *) continue ;; esac
    sbx_one=$(sbx_du "$sbx_folder")
    case $sbx_one in '' | *[!0-9]*) ;; *) sbx_sum=$((sbx_sum + sbx_one)) ;; esac
  done
  echo "$sbx_sum"
})
printf 'size_kib=%s\nmeasured=yes\n' "$sbx_sum"
