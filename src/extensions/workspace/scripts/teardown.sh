# Removes all of a sandbox and reads back. Parameters: the root, the id, the owners (blanks between), the expected machine,
# the engine's program (empty: none is known), its expected id, the grace in seconds, then the names of built images.
# Prints `done=KIND OUTCOME` with the resource beneath, `why=` with the reason beneath it, and at last `left=KIND`.
umask 077
sbx_root=$1 sbx_id=$2 sbx_owners=$3 sbx_want_machine=$4 sbx_engine=$5 sbx_want_engine=$6 sbx_grace=$7
sbx_project=sbx-$sbx_id
shift 7

sbx_is=$(sbx_machine)
printf 'machine=%s\n' "$sbx_is"
if [ -n "$sbx_want_machine" ] && [ "$sbx_want_machine" != "$sbx_is" ]; then
  sbx_fail identity "this is machine ${sbx_is:-(without an id)}, the sandbox was made on $sbx_want_machine"
fi

sbx_done() {
  printf 'done=%s %s\n' "$1" "$3"
  printf '%s\n' "$2" | sed 's/^/ /'
  [ -z "${4:-}" ] || sbx_say why "$4"
}

sbx_left() {
  printf 'left=%s\n' "$1"
  printf '%s\n' "$2" | sed 's/^/ /'
}

# ---- what still works on it ----------------------------------------------------------------------------------------

# sbx_members GROUP: processes of the group that name this sandbox. A group's number may belong to others by now.
sbx_members() {
  grep -lsa -e "$sbx_project" /proc/[0-9]*/cmdline | while IFS=/ read -r sbx_1 sbx_2 sbx_pid sbx_rest; do
    read -r sbx_stat <"/proc/$sbx_pid/stat" || continue
    # shellcheck disable=SC2086
    set -- "$1" ${sbx_stat##*) }
    [ "$4" != "$1" ] || echo "$sbx_pid"
  done 2>/dev/null
}

# An `up` whose console died, or that was cancelled a moment ago, must not make containers behind our back.
sbx_end_up() {
  [ -f "$1" ] && [ ! -L "$1" ] && read -r sbx_group sbx_used <"$1" || return 0
  # The console that began it may not have lived to write the engine down.
  case $sbx_used in docker | podman) sbx_engine=${sbx_engine:-$sbx_used} ;; esac
  case $sbx_group in '' | *[!0-9]* | 0 | 1) return 0 ;; esac
  for sbx_try in TERM TERM TERM TERM TERM TERM TERM TERM TERM TERM KILL KILL; do
    sbx_alive=$(sbx_members "$sbx_group")
    [ -n "$sbx_alive" ] || return 0
    # shellcheck disable=SC2086
    kill "-$sbx_try" $sbx_alive 2>/dev/null
    sleep 0.5 2>/dev/null || sleep 1
  done
}

case $sbx_root in
  '~') sbx_root=${HOME:-/} ;;
  '~/'*) sbx_root=${HOME:-}/${sbx_root#??} ;;
  /*) ;;
  *) sbx_root=${HOME:-}/$sbx_root ;;
esac
sbx_end_up "$sbx_root/$sbx_project/.up"

# ---- what the engine has -------------------------------------------------------------------------------------------

sbx_by_label() { # KIND-WORDS... : by compose project and by our own label, each once
  {
    "$@" --filter "label=com.docker.compose.project=$sbx_project" || echo "sbx-failed"
    "$@" --filter "label=sandboxer.id=$sbx_id" || echo "sbx-failed"
  } 2>&1 </dev/null | sort -u
}

sbx_containers() { sbx_by_label "$sbx_engine" ps -a --no-trunc --format '{{.Names}}'; }
sbx_networks() { sbx_by_label "$sbx_engine" network ls --format '{{.Name}}'; }
sbx_volumes() { sbx_by_label "$sbx_engine" volume ls --format '{{.Name}}'; }
sbx_images() { # by name: those that were built for this sandbox
  for sbx_name; do
    ! "$sbx_engine" image inspect "$sbx_name" >/dev/null 2>&1 </dev/null || printf '%s\n' "$sbx_name"
  done
}
sbx_pods() {
  [ "$sbx_engine" != podman ] || podman pod ls --format '{{.Name}}' 2>/dev/null </dev/null | grep -Fx "pod_$sbx_project"
}

# sbx_check WORDS: the engine answered; else its words are the failure of the whole step.
sbx_check() {
  case "
$1
" in *"
sbx-failed
"*) sbx_fail engine "$(printf '%s\n' "$1" | grep -v '^sbx-failed$')" ;; esac
}

# sbx_drop KIND BEFORE AFTER WORDS: a line for each that was there.
sbx_drop() {
  printf '%s\n' "$2" | while IFS= read -r sbx_name; do
    [ -n "$sbx_name" ] || continue
    if printf '%s\n' "$3" | grep -Fxq -e "$sbx_name"; then
      sbx_done "$1" "$sbx_name" failed "$4"
    else
      sbx_done "$1" "$sbx_name" removed
    fi
  done
}

sbx_engine_id() {
  case $sbx_want_engine in
    /*)
      sbx_folder=${sbx_want_engine%:*}
      printf '%s:%s' "$sbx_folder" "$(sbx_inode "$sbx_folder")"
      ;;
    *) sbx_bounded 10 "$sbx_engine" info -f '{{.ID}}' 2>/dev/null </dev/null ;;
  esac
}

sbx_image=
if [ -n "$sbx_engine" ]; then
  sbx_has "$sbx_engine" || sbx_fail engine "$sbx_engine is not installed any more"
  if [ -n "$sbx_want_engine" ]; then
    sbx_now=$(sbx_engine_id)
    [ "$sbx_now" = "$sbx_want_engine" ] || {
      [ -n "$sbx_now" ] || sbx_fail engine "$("$sbx_engine" info 2>&1 >/dev/null </dev/null | tail -n 3)"
      sbx_fail identity "this engine is $sbx_now, the sandbox was made on $sbx_want_engine"
    }
  fi
  sbx_c=$(sbx_containers)
  sbx_check "$sbx_c"
  if [ -n "$sbx_c" ]; then
    # Names of containers come from the project and the service: no blanks, no dashes in front.
    # shellcheck disable=SC2086
    sbx_image=$("$sbx_engine" inspect --type container --format '{{.Image}}' $sbx_c 2>/dev/null </dev/null | head -n 1)
    # shellcheck disable=SC2086
    sbx_words=$("$sbx_engine" stop -t "$sbx_grace" $sbx_c 2>&1 </dev/null >/dev/null)
    # shellcheck disable=SC2086
    sbx_words=$("$sbx_engine" rm -f -v $sbx_c 2>&1 </dev/null >/dev/null)
  fi
  sbx_p=$(sbx_pods)
  [ -z "$sbx_p" ] || sbx_pod_words=$(podman pod rm -f "$sbx_p" 2>&1 </dev/null >/dev/null)
  sbx_n=$(sbx_networks)
  sbx_check "$sbx_n"
  # shellcheck disable=SC2086
  [ -z "$sbx_n" ] || sbx_net_words=$("$sbx_engine" network rm $sbx_n 2>&1 </dev/null >/dev/null)
  sbx_v=$(sbx_volumes)
  sbx_check "$sbx_v"
  # shellcheck disable=SC2086
  [ -z "$sbx_v" ] || sbx_vol_words=$("$sbx_engine" volume rm -f $sbx_v 2>&1 </dev/null >/dev/null)
  sbx_c_after=$(sbx_containers)
  sbx_check "$sbx_c_after"
  sbx_n_after=$(sbx_networks)
  sbx_v_after=$(sbx_volumes)
  sbx_p_after=$(sbx_pods)
  sbx_drop container "$sbx_c" "$sbx_c_after" "$sbx_words"
  sbx_drop pod "$sbx_p" "$sbx_p_after" "${sbx_pod_words:-}"
  sbx_drop network "$sbx_n" "$sbx_n_after" "${sbx_net_words:-}"
  sbx_drop volume "$sbx_v" "$sbx_v_after" "${sbx_vol_words:-}"
  [ -n "$sbx_c" ] || sbx_done container "$sbx_project" absent
fi

# ---- the directory -------------------------------------------------------------------------------------------------

sbx_dir=$sbx_project

sbx_rm() { # removes PATHS as far as the account may; one file system only
  if rm --help 2>&1 | grep -q one-file-system; then
    rm -rf --one-file-system -- "$@" 2>&1
  else
    rm -rf -- "$@" 2>&1
  fi
}

sbx_ladder() { # removes what containers wrote as another user: the account, its user namespace, sudo, a container
  # A transfer that was cut off may still write for a moment.
  for sbx_try in 0 0.3 1; do
    sleep "$sbx_try" 2>/dev/null
    sbx_words=$(sbx_rm "$@")
    sbx_gone "$@" && return
  done
  if sbx_has podman; then sbx_words=$(podman unshare rm -rf --one-file-system -- "$@" 2>&1 </dev/null); fi
  sbx_gone "$@" && return
  if sbx_has sudo; then sbx_words="$sbx_words$(sudo -n rm -rf --one-file-system -- "$@" 2>&1 </dev/null)"; fi
  sbx_gone "$@" && return
  [ -n "$sbx_image" ] || return
  sbx_words="$sbx_words$("$sbx_engine" run --rm --pull never --network none --user 0 -v "$PWD/$sbx_dir:/sbx" --entrypoint rm \
    "$sbx_image" -rf /sbx/workspace 2>&1 </dev/null)"
}

sbx_gone() {
  for sbx_path; do
    if [ -e "$sbx_path" ] || [ -L "$sbx_path" ]; then return 1; fi
  done
}

sbx_mounted() { # a mount point beneath the directory
  [ -r /proc/self/mountinfo ] || return 1
  while read -r sbx_1 sbx_2 sbx_3 sbx_4 sbx_point sbx_rest; do
    case $sbx_point in "$PWD/$sbx_dir" | "$PWD/$sbx_dir/"*)
      printf '%s' "$sbx_point"
      return 0
      ;;
    esac
  done </proc/self/mountinfo
  return 1
}

sbx_ours() { # our manifest, with this id and one of our owners
  [ -f "$sbx_dir/manifest.json" ] && [ ! -L "$sbx_dir/manifest.json" ] || return 1
  grep -Fqx "  \"id\": \"$sbx_id\"," "$sbx_dir/manifest.json" || return 1
  for sbx_owner in $sbx_owners; do
    ! grep -Fqx "  \"owner\": \"$sbx_owner\"," "$sbx_dir/manifest.json" || return 0
  done
  return 1
}

if cd -P -- "$sbx_root" 2>/dev/null; then
  sbx_where=$PWD/$sbx_dir
  rm -rf -- ".sbx-$sbx_id.new"
  if [ -L "$sbx_dir" ]; then
    sbx_done directory "$sbx_where" failed "it is a symbolic link; look at it, then remove it by hand"
  elif [ ! -e "$sbx_dir" ]; then
    sbx_done directory "$sbx_where" absent
  elif ! sbx_ours; then
    sbx_done directory "$sbx_where" failed "its manifest.json does not name this sandbox and this installation; it is not touched"
  elif sbx_mount=$(sbx_mounted); then
    sbx_done directory "$sbx_where" failed "$sbx_mount is a mount point; unmount it first"
  else
    # The manifest goes last: a teardown that is cut off must still be known as ours by the next one.
    for sbx_entry in "$sbx_dir"/* "$sbx_dir"/.[!.]* "$sbx_dir"/..?*; do
      case $sbx_entry in "$sbx_dir/manifest.json") continue ;; esac
      if [ -e "$sbx_entry" ] || [ -L "$sbx_entry" ]; then sbx_ladder "$sbx_entry"; fi
    done
    if [ "$(ls -A -- "$sbx_dir" 2>/dev/null)" = manifest.json ]; then
      sbx_words=$( { rm -f -- "$sbx_dir/manifest.json" && rmdir -- "$sbx_dir"; } 2>&1)
    fi
    if [ -e "$sbx_dir" ]; then
      sbx_done directory "$sbx_where" failed "${sbx_words:-it could not be emptied}"
    else
      sbx_done directory "$sbx_where" removed
    fi
  fi
  # shellcheck disable=SC2015
  { [ -e "$sbx_dir" ] || [ -L "$sbx_dir" ]; } && sbx_left directory "$sbx_where"
else
  # Only "not there" counts as absent: a root that may not be entered hides what is in it.
  if [ -e "$sbx_root" ]; then
    sbx_done directory "$sbx_root/$sbx_dir" failed "$(cd -P -- "$sbx_root" 2>&1)"
    sbx_left directory "$sbx_root/$sbx_dir"
  else
    sbx_done directory "$sbx_root/$sbx_dir" absent
  fi
fi

# ---- the read-back -------------------------------------------------------------------------------------------------

if [ -n "$sbx_engine" ]; then
  # Built images bear the project's name; they are removed when no container needs them any more.
  sbx_i=$(sbx_images "$@")
  # shellcheck disable=SC2086
  [ -z "$sbx_i" ] || sbx_img_words=$("$sbx_engine" rmi $sbx_i 2>&1 </dev/null >/dev/null)
  sbx_i_after=$([ -z "$sbx_i" ] || sbx_images "$@")
  sbx_drop image "$sbx_i" "$sbx_i_after" "${sbx_img_words:-}"
  for sbx_kind in c p n v i; do
    case $sbx_kind in
      c) sbx_all=$sbx_c_after sbx_word=container ;;
      p) sbx_all=$sbx_p_after sbx_word=pod ;;
      n) sbx_all=$sbx_n_after sbx_word=network ;;
      v) sbx_all=$sbx_v_after sbx_word=volume ;;
      i) sbx_all=$sbx_i_after sbx_word=image ;;
    esac
    printf '%s\n' "$sbx_all" | while IFS= read -r sbx_name; do
      [ -z "$sbx_name" ] || sbx_left "$sbx_word" "$sbx_name"
    done
  done
fi
echo finished=yes
