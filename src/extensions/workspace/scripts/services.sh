# Says what of several sandboxes is there: their directories, and all containers of sandboxes that these engines have.
# Parameters: the owners (blanks between), the number of directories, the directories, then pairs of an engine's program and its
# expected id. belonging.sh stands before it.
printf 'machine=%s\n' "$(sbx_machine)"
sbx_owners=$1 sbx_count=$2
shift 2
while [ "$sbx_count" -gt 0 ]; do
  if [ -d "$1" ] && [ ! -L "$1" ] && [ -f "$1/manifest.json" ]; then sbx_say there "$1"; fi
  sbx_count=$((sbx_count - 1))
  shift
done
while [ $# -ge 2 ]; do
  sbx_engine=$1 sbx_want=$2
  shift 2
  sbx_has "$sbx_engine" || continue
  [ -z "$sbx_want" ] || [ "$(sbx_engine_id "$sbx_engine" "$sbx_want")" = "$sbx_want" ] || continue
  sbx_ids=$(sbx_ours_of_all "$sbx_engine" "$sbx_owners") || continue
  # shellcheck disable=SC2086
  sbx_words=$(sbx_described "$sbx_engine" $sbx_ids) || continue
  sbx_say engine "$sbx_engine $sbx_want"
  echo inspected=
  printf '%s\n' "$sbx_words" | sed 's/^/ /'
done
echo
echo looked=yes
