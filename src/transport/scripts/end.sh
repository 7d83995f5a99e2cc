sbx_end() {
  for sbx_stat in /proc/[0-9]*/stat; do
    sbx_rest=
    while read -r sbx_line; do sbx_rest=$sbx_line; done <"$sbx_stat"
    set -- "$1" ${sbx_rest##*) }
    [ "$5" = "$$" ] && [ "$4" != "$$" ] || continue
    sbx_pid=${sbx_stat#/proc/}
    kill "-$1" "${sbx_pid%/stat}"
  done
  kill "-$1" 0
}
