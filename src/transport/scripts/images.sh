# Finds a small image of this host that can run a shell, and pulls nothing; runtime.sh stands before it. Parameters: the
# engine, a name for the container that tries, a label for it, how many images to try.
#
# Prints `image=NAME` for the first that can, `had=N` for how many have a name, `failed=` with the engine's words beneath.

export LC_ALL=C
sbx_bounded 1 true

sbx_fail() {
  echo failed=
  printf '%s\n' "$1" | tail -n 5 | sed 's/^/ /'
  exit 0
}

sbx_ids=$(sbx_bounded 20 "$1" images -q --no-trunc 2>&1 </dev/null) || sbx_fail "$sbx_ids"
sbx_ids=$(printf '%s\n' "$sbx_ids" | sort -u)
[ -n "$sbx_ids" ] || { echo had=0; exit 0; }

# One that was removed since it was listed is told with an error, the rest all the same.
# shellcheck disable=SC2086 # each id is a word
sbx_named=$(sbx_bounded 30 "$1" image inspect -f '{{.Size}}{{range .RepoTags}} {{.}}{{end}}' $sbx_ids 2>/dev/null </dev/null |
  grep ' ' | grep -v '<none>' | sort -n)
if [ -z "$sbx_named" ]; then echo had=0; exit 0; fi
printf 'had=%s\n' "$(printf '%s\n' "$sbx_named" | wc -l | tr -d ' ')"

printf '%s\n' "$sbx_named" | head -n "$4" | while read -r sbx_size sbx_image sbx_rest; do
  # As the stack will run it: whatever its entrypoint and its user are. `--rm` is the engine's, so that nothing stays when
  # our side is gone; the `rm` is for a client that was cut off.
  sbx_bounded 20 "$1" run --rm --pull=never --network=none --name "$2" --label "$3" --user 0:0 --entrypoint sh \
    "$sbx_image" -c 'sleep 0 && cat' >/dev/null 2>&1 </dev/null
  sbx_ended=$?
  [ "$sbx_ended" = 0 ] || sbx_bounded 10 "$1" rm -f "$2" >/dev/null 2>&1 </dev/null
  [ "$sbx_ended" != 0 ] || { printf 'image=%s\n' "$sbx_image"; break; }
done
exit 0
