# Figures that placement looks at; runtime.sh stands before it. Definitions for another script, which works meanwhile. POSIX sh.
#
#   sbx_headroom ROOT     prints `load=`, `cpus=` and `mem=` lines as probe.sh does, and of the root's file system `room.stat=`: its
#                         blocks, those that are free, and those that the account can have; else `room.df=` with df's line beneath
#   sbx_networks BLOCKS   prints `net.count=`, how many networks docker has on bridges; with as many as BLOCKS or more, their
#                         `net.subnet=`; without BLOCKS docker's `net.pools=` too. `net.failed=yes` where it does not answer.

sbx_headroom() {
  printf 'cpus=%s\n' "$(nproc 2>/dev/null || getconf _NPROCESSORS_ONLN 2>/dev/null)"
  [ ! -r /proc/loadavg ] || { read -r sbx_line </proc/loadavg; printf 'load=%s\n' "$sbx_line"; }
  [ ! -r /proc/meminfo ] || while read -r sbx_line; do
    printf 'mem=%s\n' "$sbx_line"
    case $sbx_line in Cached:*) break ;; esac
  done </proc/meminfo
  # The root may not be there yet. A mount that is dead hangs whoever looks at it, so that a process of its own does.
  # shellcheck disable=SC2016 # that process expands it
  sbx_bounded 3 sh -c '
    sbx_path=$1
    case $sbx_path in "~/"*) sbx_path=${HOME:-}/${sbx_path#??} ;; esac
    while [ -n "$sbx_path" ] && [ ! -d "$sbx_path" ]; do sbx_path=${sbx_path%/*}; done
    stat -f -c "room.stat=%b %f %a" -- "${sbx_path:-/}" 2>/dev/null || {
      echo room.df=
      df -Pk -- "${sbx_path:-/}" 2>/dev/null | tail -n 1 | sed "s/^/ /"
    }' sh "$1" </dev/null 2>/dev/null
}

sbx_networks() {
  if [ -z "$1" ]; then
    sbx_pools=$(sbx_bounded 5 docker info -f '{{json .DefaultAddressPools}}' 2>/dev/null </dev/null) || { echo net.failed=yes; return; }
    printf 'net.pools=%s\n' "$sbx_pools" | head -c 3000
    echo
  fi
  sbx_blocks=$1
  sbx_ids=$(sbx_bounded 5 docker network ls -q --filter driver=bridge 2>/dev/null </dev/null) || { echo net.failed=yes; return; }
  # shellcheck disable=SC2086 # each id is a word
  set -- $sbx_ids
  printf 'net.count=%s\n' "$#"
  [ $# -gt 0 ] && [ $# -ge "${sbx_blocks:-1}" ] || return
  # One that goes away between the two calls is told with an error, the rest all the same.
  sbx_bounded 5 docker network inspect -f '{{range .IPAM.Config}}net.subnet={{.Subnet}}{{"\n"}}{{end}}' "$@" 2>/dev/null </dev/null
}
