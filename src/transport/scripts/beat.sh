sbx_moved() {
  sbx_sum=
  for sbx_stat in /proc/[0-9]*/stat; do
    read -r sbx_pid sbx_rest <"$sbx_stat" || continue
    set -- ${sbx_rest##*) }
    [ "$4" = "$$" ] && [ "$sbx_pid" != "$sbx_me" ] || continue
    while read -r sbx_rest; do sbx_sum=$sbx_sum$sbx_rest; done <"${sbx_stat%stat}io"
  done
}
sbx_tell() {
  (trap - PIPE; printf '\036H%s\n' "$sbx_nonce")
  case $? in
    0) sbx_untold=0 ;;
    141) return 1 ;;
    *) sbx_untold=$((sbx_untold + 1)); [ "$sbx_untold" -lt 15 ] ;;
  esac
}
sbx_beat() {
  exec </dev/null 2>/dev/null
  sbx_prelude
  trap '' PIPE TERM HUP INT
  trap 'kill -KILL $sbx_nap; exit' USR1
  read -r sbx_me sbx_rest </proc/self/stat
  sbx_last= sbx_still=0 sbx_untold=0
  while :; do
    sleep 2 >/dev/null & sbx_nap=$!
    wait $sbx_nap
    sbx_tell || break
    [ -n "$sbx_idle" ] || continue
    sbx_moved
    if [ -n "$sbx_sum" ] && [ "$sbx_sum" = "$sbx_last" ]; then sbx_still=$((sbx_still + 2)); else sbx_still=0; fi
    [ "$sbx_still" -lt "$sbx_idle" ] || break
    sbx_last=$sbx_sum
  done
  sbx_end TERM
  sleep 5
  sbx_end KILL
}
