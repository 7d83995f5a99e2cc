sbx_nonce=$1 sbx_form=$2 sbx_text=$3
shift 3
printf '\036B%s %d\n' "$sbx_nonce" "$$"
printf '\036B%s %d\n' "$sbx_nonce" "$$" >&2
case $sbx_form in
  script) (eval "$sbx_text") ;;
  *) (exec "$@") ;;
esac
sbx_status=$?
printf '\036E%s %d\n' "$sbx_nonce" "$sbx_status" >&2
printf '\036E%s %d\n' "$sbx_nonce" "$sbx_status"
