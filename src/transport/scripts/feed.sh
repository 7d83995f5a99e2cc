sbx_nonce=$1 sbx_idle=$2 sbx_form=$3 sbx_text=$4
shift 4
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
