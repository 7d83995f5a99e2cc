# Says what the host has of one sandbox, after it proved to be the recorded one. Parameters: the root, the id, the owners
# (blanks between), the owner whose counter is asked for, what is expected of the host (sbx_prove_host), the engine's program
# (empty: none is known), its expected id.
umask 077
sbx_id=$2 sbx_owners=$3 sbx_owner=$4 sbx_engine=$6 sbx_want_engine=$7
sbx_project=sbx-$sbx_id sbx_proved=
sbx_prove_host "$5"
sbx_number=$([ -z "$sbx_owner" ] || sbx_counter_of "$sbx_owner")
[ -z "$sbx_number" ] || printf 'counter=%s\n' "$sbx_number"

if sbx_prove_root "$1" "$sbx_owners" root root_away; then
  if [ -L "$sbx_project" ]; then
    sbx_say directory "$PWD/$sbx_project"
  elif [ -e "$sbx_project" ]; then
    sbx_whose=$(sbx_whose "$sbx_project" "$sbx_id" "$sbx_owners")
    printf 'whose=%s\n' "$sbx_whose"
    # shellcheck disable=SC2034 # for the pod
    [ "$sbx_whose" != ours ] || sbx_proved=yes
    [ "$sbx_whose" = theirs ] || sbx_say directory "$PWD/$sbx_project"
    # The console that began an `up` may not have lived to write the engine down.
    if [ -z "$sbx_engine" ] && [ "$sbx_whose" = ours ] && [ -f "$sbx_project/.up" ] && [ ! -L "$sbx_project/.up" ]; then
      read -r sbx_group sbx_used <"$sbx_project/.up"
      case $sbx_used in docker | podman) sbx_engine=$sbx_used ;; esac
    fi
    # What ran when it was put to sleep.
    if [ "$sbx_whose" = ours ] && [ -f "$sbx_project/.asleep" ] && [ ! -L "$sbx_project/.asleep" ]; then
      echo asleep=
      sed 's/^/ /' "$sbx_project/.asleep"
    fi
    if [ -d "$sbx_project/workspace" ] && [ ! -L "$sbx_project/workspace" ]; then
      echo workspace=yes
      [ ! -w "$sbx_project/workspace" ] || echo writable=yes
    fi
    sbx_free=$(cd "$sbx_project" 2>/dev/null && sbx_free_kib)
    [ -z "$sbx_free" ] || printf 'free_kib=%s\n' "$sbx_free"
  else
    sbx_nowhere
  fi
fi

if [ -n "$sbx_engine" ]; then
  sbx_has "$sbx_engine" || sbx_fail engine "$sbx_engine is not installed any more"
  sbx_lists_on "$sbx_engine" "$sbx_want_engine" "$sbx_id" "$sbx_owners"
  sbx_lists_are=$sbx_there
  sbx_words=$(printf '%s\n' "$sbx_lists_are" | sed -n 's/^failed //p')
  [ -z "$sbx_words" ] || sbx_fail engine "$sbx_words"
  printf '%s\n' "$sbx_lists_are" | while IFS=$sbx_cut read -r sbx_kind sbx_handle sbx_name sbx_more; do
    case $sbx_kind in
      *' ours') printf '%s=\n %s\n' "${sbx_kind% ours}" "$sbx_name" ;;
      *' foreign')
        printf 'foreign=%s\n %s\n' "${sbx_kind% foreign}" "$sbx_name"
        sbx_say why "$sbx_more"
        ;;
    esac
  done
  sbx_found=$(sbx_of container "$sbx_lists_are")
  # shellcheck disable=SC2086
  sbx_words=$(sbx_described "$sbx_engine" $sbx_found) || sbx_fail engine "$sbx_words"
  echo inspected=
  printf '%s\n' "$sbx_words" | sed 's/^/ /'
fi
echo
echo looked=yes
