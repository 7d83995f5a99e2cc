sbx_nonce=$1 sbx_idle=$2 sbx_form=$3 sbx_text=$4
shift 4
sbx_moved() {
  sbx_sum=
  for sbx_stat in /proc/[0-9]*/stat; do
    read -r sbx_pid sbx_rest <"$sbx_stat" || continue
    set -- ${sbx_rest##*) }
    [ "$4" = "$$" ] && [ "$sbx_pid" != "$sbx_me" ] || continue
    while read -r sbx_rest; do sbx_sum=$sbx_sum$sbx_rest; done <"${sbx_stat%stat}io"
  done
}
sbx_beat() {
  exec </dev/null 2>/dev/null
  sbx_prelude
  trap '' PIPE TERM HUP INT
  trap 'kill -KILL $sbx_nap; exit' USR1
  read -r sbx_me sbx_rest </proc/self/stat
  sbx_last= sbx_still=0
  while :; do
    sleep 2 >/dev/null & sbx_nap=$!
    wait $sbx_nap
    printf '\036H%s\n' "$sbx_nonce" || break
    sbx_moved
    if [ -n "$sbx_sum" ] && [ "$sbx_sum" = "$sbx_last" ]; then sbx_still=$((sbx_still + 2)); else sbx_still=0; fi
    [ "$sbx_still" -lt "$sbx_idle" ] || break
    sbx_last=$sbx_sum
  done
  sbx_end TERM
  sleep 5
  sbx_end KILL
}
printf '\036B%s %d\n' "$sbx_nonce" "$$"
printf '\036B%s %d\n' "$sbx_nonce" "$$" >&2
sbx_beat & sbx_beater=$!
case $sbx_form in
  script) (sbx_prelude; eval "$sbx_text") ;;
  *) (exec "$@") ;;
esac
sbx_status=$?
{ kill -USR1 $sbx_beater; wait $sbx_beater; } 2>/dev/null
printf '\036E%s %d\n' "$sbx_nonce" "$sbx_status" >&2
printf '\036E%s %d\n' "$sbx_nonce" "$sbx_status"
