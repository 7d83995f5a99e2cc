# Removes all of some sandboxes of one root and reads back. Parameters: the root, the owners (blanks between), what is expected of the
# host (sbx_prove_host), the engine's program (empty: none is known), its expected id, the grace in seconds, the installation and its
# counter (empty: not to be held against the host's); then for each sandbox its id, for how many seconds a directory that is not
# there may still come, and the names of its built images, a line each. Where no engine is known there is one sandbox.
# `of=ID` stands before lines about one sandbox, `of=` before those about all.
# Prints `begun=yes` before it removes the first thing: until then it may refuse, and nothing was touched; where nobody hears that,
# nothing is. Then `done=KIND OUTCOME` (removed, absent, failed; foreign: somebody else's, and left) with the resource beneath,
# `why=` with the reason beneath it, at last `left=KIND`, and `finished=yes`. `had=yes` stands beside `begun=yes` where the engine has
# something of it.
umask 077
sbx_asked=$1 sbx_owners=$2 sbx_expected=$3 sbx_engine=$4 sbx_want_engine=$5 sbx_grace=$6 sbx_ours=$7
shift 7

sbx_prove_host "$sbx_expected"

# A host that has heard of more than the console knows: the console's records are an old copy.
if [ -n "$sbx_ours" ]; then
  sbx_number=$(sbx_counter_of "${sbx_ours% *}")
  if [ "${sbx_number:-0}" -gt "${sbx_ours#* }" ]; then
    printf 'counter=%s\n' "$sbx_number"
    sbx_fail behind "the host counts $sbx_number, the console ${sbx_ours#* }"
  fi
fi

# sbx_each WORK ID SECONDS IMAGES...: does it for each sandbox that was not refused.
sbx_refused='' sbx_proved_ids=''
sbx_each() {
  sbx_work=$1
  shift
  while [ $# -ge 3 ]; do
    sbx_id=$1 sbx_project=sbx-$1 sbx_may_come=$2 sbx_built=$3 sbx_proved=''
    shift 3
    case " $sbx_refused " in *" $sbx_id "*) continue ;; esac
    case " $sbx_proved_ids " in *" $sbx_id "*) sbx_proved=yes ;; esac
    "$sbx_work"
  done
}

# sbx_done KIND RESOURCE OUTCOME [WHY]
sbx_done() {
  printf 'done=%s %s\n' "$1" "$3"
  sbx_beneath "$2"
  [ -z "${4:-}" ] || sbx_say why "$4"
}

# sbx_left KIND RESOURCE
sbx_left() {
  printf 'left=%s\n' "$1"
  sbx_beneath "$2"
}

# sbx_beneath TEXT: the text behind blanks. A program's start is dearer than all else here.
sbx_beneath() {
  case $1 in *"$sbx_lf"*) printf '%s\n' "$1" | sed 's/^/ /' ;; *) printf ' %s\n' "$1" ;; esac
}

# ---- what still works on it ----------------------------------------------------------------------------------------

# An `up` whose console died, or that was cancelled a moment ago, must not make containers behind our back.
sbx_end_up() {
  [ -f "$1" ] && [ ! -L "$1" ] && read -r sbx_group sbx_used <"$1" || return 0
  # The console that began it may not have lived to write the engine down.
  case $sbx_used in docker | podman) sbx_engine=${sbx_engine:-$sbx_used} ;; esac
  case $sbx_group in '' | *[!0-9]* | 0 | 1) return 0 ;; esac
  # Nobody is in it, or nobody whom this account may end: to look at all processes takes longer than all the rest.
  kill -0 "-$sbx_group" 2>/dev/null || return 0
  for sbx_try in TERM TERM TERM TERM TERM TERM TERM TERM TERM TERM KILL KILL; do
    sbx_alive=$(sbx_members "$sbx_group")
    [ -n "$sbx_alive" ] || return 0
    # shellcheck disable=SC2086
    sbx_signal "$sbx_try" $sbx_alive
    sleep 0.5 2>/dev/null || sleep 1
  done
}

# ---- whose the directory is ----------------------------------------------------------------------------------------

# Nothing is touched before it is known: where somebody else's directory has this name, what the engine has may be theirs, too.
# One that is not there proves nothing and hinders nothing: what the engine has proves itself. An empty one is a removal that
# was cut off before its last step. It is proved once more before it is emptied.
#
# sbx_ended FOLDER: a removal whose console just died did its last steps meanwhile; it is empty or not there.
sbx_ended() {
  [ ! -L "$1" ] || return 1
  [ ! -e "$1" ] || [ -z "$(ls -A -- "$1" 2>&1)" ]
}
# sbx_place: `proved` where its directory is ours, nothing where none is there; else the verdict.
sbx_place() {
  [ -n "$sbx_has_root" ] || return 0
  sbx_where=$sbx_root/$sbx_project
  if [ -L "$sbx_where" ]; then
    sbx_fail theirs "$sbx_where is a symbolic link"
  elif [ ! -e "$sbx_where" ]; then
    sbx_nowhere
  elif [ -z "$(ls -A -- "$sbx_where" 2>&1)" ]; then
    : # a removal that was cut off
  elif [ "$(sbx_whose "$sbx_where" "$sbx_id" "$sbx_owners")" = ours ]; then
    echo proved
  elif ! sbx_ended "$sbx_where"; then
    sbx_fail theirs "the manifest.json in $sbx_where does not name this sandbox and this installation"
  fi
}
sbx_prove_one() {
  sbx_told=$(sbx_place)
  case $sbx_told in
    '') ;;
    proved)
      sbx_proved_ids="$sbx_proved_ids $sbx_id"
      sbx_end_up "$sbx_root/$sbx_project/.up"
      ;;
    *)
      printf 'of=%s\n%s\n\nof=\n' "$sbx_id" "$sbx_told"
      sbx_refused="$sbx_refused $sbx_id"
      return
      ;;
  esac
  sbx_ids="$sbx_ids$sbx_id$sbx_lf" sbx_begins="${sbx_begins}of=$sbx_id${sbx_lf}begun=yes$sbx_lf"
}
sbx_has_root=yes sbx_ids='' sbx_begins=''
# Where nobody knows of a root, nothing was made in one.
sbx_prove_root "$sbx_asked" "$sbx_owners" theirs root_away || sbx_has_root=''
sbx_each sbx_prove_one "$@"
[ -n "$sbx_ids" ] || exit 0

# ---- what the engine has -------------------------------------------------------------------------------------------

# sbx_unanswered LISTS: the engine did not answer; its words are in sbx_said then.
sbx_unanswered() {
  case $sbx_lf$1 in *"${sbx_lf}failed "*) sbx_said=$(printf '%s\n' "$1" | sed -n 's/^failed //p') ;; *) return 1 ;; esac
}

# sbx_check LISTS: the engine answered; else its words are the failure of the whole step.
sbx_check() { ! sbx_unanswered "$1" || sbx_fail engine "$sbx_said"; }

# sbx_begin: says that it begins. A console that went away ends it here: that one told that nothing was touched.
sbx_begin() { (trap - PIPE; printf '%sof=\n' "$sbx_begins") || exit 0; }

# sbx_drop_networks NETWORK...: podman looks whether anybody uses a network only where it is told its name.
sbx_drop_networks() {
  [ "$sbx_engine" = podman ] || { "$sbx_engine" network rm "$@" </dev/null; return; }
  sbx_pairs=$(printf '%s\n' "$sbx_before" | sed -n "s/^network ours$sbx_cut\([^$sbx_cut]*$sbx_cut[^$sbx_cut]*\).*/\1/p")
  sbx_names=$(printf '%s\n' "$sbx_pairs" | sed "s/.*$sbx_cut//")
  # One that went away meanwhile may cost the answer about all.
  # shellcheck disable=SC2086 # podman's networks are named without blanks
  sbx_now=$(podman network inspect --format "{{.ID}}$sbx_cut{{.Name}}" $sbx_names </dev/null 2>/dev/null) ||
    sbx_now=$(for sbx_name in $sbx_names; do podman network inspect --format "{{.ID}}$sbx_cut{{.Name}}" "$sbx_name" </dev/null; done)
  sbx_names=$(printf '%s\n' "$sbx_now" | grep -Fx -e "$sbx_pairs" | sed "s/.*$sbx_cut//")
  # shellcheck disable=SC2086
  [ -z "$sbx_names" ] || podman network rm $sbx_names </dev/null
}

# sbx_has_ours KIND LISTS: one of ours is among them.
sbx_has_ours() { case $sbx_lf$2 in *"$sbx_lf$1 ours$sbx_cut"*) ;; *) return 1 ;; esac; }

# sbx_drop: a line for each that was there and was ours, and for each that is there and is somebody else's.
sbx_drop() {
  sbx_has_ours container "$sbx_before" || sbx_done container "$sbx_project" absent
  printf '%s\n' "$sbx_before" | while IFS=$sbx_cut read -r sbx_kind sbx_handle sbx_name sbx_more; do
    case $sbx_kind in *' ours') ;; *) continue ;; esac
    case $sbx_lf$sbx_after in
      *"$sbx_lf$sbx_kind$sbx_cut$sbx_handle$sbx_cut"*) sbx_done "${sbx_kind% *}" "$sbx_name" failed "$(sbx_words_of "${sbx_kind% *}")" ;;
      *) sbx_done "${sbx_kind% *}" "$sbx_name" removed ;;
    esac
  done
  sbx_each_after foreign sbx_done_foreign
}
sbx_words_of() {
  case $1 in
    container) printf '%s' "$sbx_words" ;;
    pod) printf '%s' "$sbx_pod_words" ;;
    network) printf '%s' "$sbx_net_words" ;;
    volume) printf '%s' "$sbx_vol_words" ;;
  esac
}
sbx_done_foreign() { sbx_done "$1" "$2" foreign "$3"; }

# sbx_each_after WHOSE WORK: does it for each that is there, with its kind, its name and what else is told.
sbx_each_after() {
  printf '%s\n' "$sbx_after" | while IFS=$sbx_cut read -r sbx_kind sbx_handle sbx_name sbx_more; do
    case $sbx_kind in *" $1") "$2" "${sbx_kind% *}" "$sbx_name" "$sbx_more" ;; esac
  done
}

# sbx_built_by FILE: the images of those services that the rendered file builds; another one's image may have any name.
sbx_built_by() {
  sed -n -e '/^    "[^"]*": {$/{' -e 'x' -e 's/.*//' -e 'x' -e '}' -e '/^      "build": /H' -e '/^      "image": /H' \
    -e '/^    },\{0,1\}$/{' -e x -e '/\n *"build": /s/.*\n *"image": "\([A-Za-z0-9._:@/-]*\)",\{0,1\}.*/\1/p' -e 's/.*//' -e x -e '}' "$1" 2>/dev/null
}

# sbx_is_image NAME: whether there is one; the engine's words in sbx_said where it does not tell, and then there may be one.
sbx_is_image() {
  ! sbx_said=$("$sbx_engine" image inspect "$1" 2>&1 >/dev/null </dev/null) || { sbx_said=''; return 0; }
  case $sbx_said in *"o such image"* | *"image not known"*) sbx_said=''; return 1 ;; esac
}

# sbx_mine ROWS: what of these is this sandbox's.
sbx_mine() {
  case $1 in *"sbx-$sbx_id"* | *"\"$sbx_id\""*) printf '%s\n' "$1" | sbx_judged "$sbx_id" "$sbx_owners" ;; esac
}

# sbx_gather: adds what is there of it to what is removed.
sbx_gather() {
  sbx_own_rows=$(sbx_mine "$sbx_there")
  # Nothing but its own containers is in a pod of ours. That it is ours is proved, whatever is left of it.
  ! sbx_has_ours pod "$sbx_own_rows" || sbx_proved_ids="$sbx_proved_ids $sbx_id"
  case $sbx_own_rows in *" ours$sbx_cut"*) sbx_begins="${sbx_begins}of=$sbx_id${sbx_lf}had=yes$sbx_lf" ;; esac
  sbx_before=$sbx_before$sbx_own_rows$sbx_lf
}

# sbx_remove: removes what sbx_before says; what went wrong is in sbx_words, sbx_pod_words, sbx_net_words and sbx_vol_words. By
# handles, which nobody else's gets meanwhile. Never with more force than is needed: podman's `volume rm -f` and `pod rm -f` take the
# containers that use them along, whosever they are.
sbx_remove() {
  sbx_c=$(sbx_of container "$sbx_before") sbx_p=$(sbx_of pod "$sbx_before")
  sbx_n=$(sbx_of network "$sbx_before") sbx_v=$(sbx_of volume "$sbx_before")
  # Without `--ignore` podman does nothing at all where one of several is gone by then.
  sbx_ignore='' sbx_stay='' sbx_words='' sbx_pod_words=''
  [ "$sbx_engine" != podman ] || sbx_ignore=--ignore
  if [ -n "$sbx_c" ]; then
    # shellcheck disable=SC2086
    sbx_words=$("$sbx_engine" stop $sbx_ignore -t "$sbx_grace" $sbx_c 2>&1 </dev/null >/dev/null)
    # What has no name goes along, unless somebody else uses it.
    # shellcheck disable=SC2086
    sbx_words=$("$sbx_engine" rm $sbx_ignore -f -v $sbx_c 2>&1 </dev/null >/dev/null) ||
      sbx_stay=$(sbx_still "$sbx_c")
  fi
  # Nothing but its own container is in it by now, which may run.
  # shellcheck disable=SC2086
  [ -z "$sbx_p" ] || sbx_pod_words=$({ podman pod stop -t "$sbx_grace" $sbx_p; podman pod rm $sbx_p; } 2>&1 </dev/null >/dev/null)
  # Side by side, as sbx_every asks. A container that is still there keeps its networks.
  # shellcheck disable=SC2086
  sbx_said=$({
    if [ -n "$sbx_stay" ]; then echo 'its containers are still there'; elif [ -n "$sbx_n" ]; then sbx_drop_networks $sbx_n 2>&1 >/dev/null; fi
  } | sed 's/^/network /' | {
    sbx_rest=$([ -z "$sbx_v" ] || "$sbx_engine" volume rm $sbx_v 2>&1 </dev/null >/dev/null)
    cat
    printf '%s\n' "$sbx_rest" | sed 's/^/volume /'
  })
  sbx_net_words=$(printf '%s\n' "$sbx_said" | sed -n 's/^network //p') sbx_vol_words=$(printf '%s\n' "$sbx_said" | sed -n 's/^volume //p')
}

# sbx_still HANDLES: those containers that are still there; the engine's words where it does not tell.
sbx_still() {
  sbx_rows_are=$(sbx_rows_of "$sbx_engine" container) || { printf '%s\n' "$sbx_rows_are"; return; }
  printf '%s\n' "$sbx_rows_are" | sed "s/$sbx_cut.*//" | grep -Fx -e "$1"
}

# sbx_told_engine: what became of what the engine had of it. What is still there after several were removed in one go is tried once
# more by itself, so that the engine's words are about it. 1 where the engine does not say any more how that went.
sbx_told_engine() {
  sbx_before=$(sbx_mine "$sbx_at_first") sbx_after=$(sbx_mine "$sbx_there")
  case $sbx_several$sbx_after in yes*" ours$sbx_cut"*)
    sbx_kept=$sbx_before sbx_before=$sbx_after
    sbx_remove
    sbx_now=$(sbx_every "$sbx_engine")
    if sbx_unanswered "$sbx_now"; then
      (sbx_fail engine "$sbx_said")
      return 1
    fi
    sbx_there=$sbx_now sbx_before=$sbx_kept sbx_after=$(sbx_mine "$sbx_there")
    ;;
  esac
  sbx_drop
}

if [ -n "$sbx_engine" ]; then
  sbx_has "$sbx_engine" || sbx_fail engine "$sbx_engine is not installed any more"
  sbx_about=${sbx_ids%"$sbx_lf"} sbx_several='' sbx_before=''
  case $sbx_about in *"$sbx_lf"*) sbx_several=yes ;; esac
  sbx_rows_on "$sbx_engine" "$sbx_want_engine"
  sbx_check "$sbx_there"
  sbx_each sbx_gather "$@"
  sbx_begin
  sbx_remove
  sbx_at_first=$sbx_there
  sbx_there=$(sbx_every "$sbx_engine")
  sbx_check "$sbx_there"
else
  sbx_begin
fi

# ---- the directory -------------------------------------------------------------------------------------------------
#
# Nothing is removed by a path that leads here: this shell stands in the directory, has looked where that is and whose it
# is, and each removal starts from there. Whoever puts a link into a path's place meanwhile, here or in the folders above,
# sends nobody elsewhere; GNU rm keeps to that below (it opens each folder without following links).

# sbx_escape PATH: as the kernel writes it among its mount points, in sbx_escaped: blank, tab and backslash in octal.
sbx_escape() {
  case $1 in
    *[!A-Za-z0-9._/-]*) sbx_escaped=$(printf '%s' "$1" | sed 's/\\/\\134/g; s/ /\\040/g; s/	/\\011/g') ;;
    *) sbx_escaped=$1 ;;
  esac
}

# sbx_mounts FOLDER: the first mount point there or below.
sbx_mounts() {
  [ -r /proc/self/mountinfo ] || return 1
  sbx_escape "$1"
  while read -r sbx_1 sbx_2 sbx_3 sbx_4 sbx_point sbx_rest; do
    case $sbx_point in "$sbx_escaped" | "$sbx_escaped"/*)
      printf '%s' "$sbx_point"
      return 0
      ;;
    esac
  done </proc/self/mountinfo
  return 1
}

sbx_proves_it() { # the manifest in this folder is ours, with this id and one of our owners
  [ -f manifest.json ] && [ ! -L manifest.json ] || return 1
  grep -Fqx "  \"id\": \"$sbx_id\"," manifest.json || return 1
  for sbx_owner in $sbx_owners; do
    ! grep -Fqx "  \"owner\": \"$sbx_owner\"," manifest.json || return 0
  done
  return 1
}

# sh -c "$sbx_sweep" sh MARK FOLDER ENTRY...: removes entries of the folder it is started in, if the file MARK is in it and
# nothing is mounted below FOLDER, its path there. Builtins and rm, because it also runs in containers.
# shellcheck disable=SC2016
sbx_sweep='
sbx_folder=$2
[ -f "./$1" ] || { echo "this is another folder"; exit 72; }
shift 2
while read -r sbx_1 sbx_2 sbx_3 sbx_4 sbx_point sbx_rest; do
  case $sbx_point in "$sbx_folder"/*) echo "$sbx_point is a mount point"; exit 72 ;; esac
done </proc/self/mountinfo
sbx_can=
for sbx_try in "--one-file-system --preserve-root=all" --one-file-system; do
  ! rm -f $sbx_try 2>/dev/null || { sbx_can=$sbx_try; break; }
done
exec rm -rf $sbx_can -- "$@"
'

# What is mounted after the look must not be entered either: in a mount namespace of our own nothing new appears.
sbx_alone=
! unshare -m true >/dev/null 2>&1 </dev/null || sbx_alone='unshare -m'

sbx_gone() {
  for sbx_path; do
    if [ -e "$sbx_path" ] || [ -L "$sbx_path" ]; then return 1; fi
  done
}

# sbx_rung NAME WORDS...: one way to remove; notes that it was the one that did.
sbx_rung() {
  sbx_way=$1
  shift
  sbx_said=$("$@" 2>&1 </dev/null)
  sbx_status=$?
  sbx_last=$sbx_said
  [ -z "$sbx_said" ] || sbx_last=$(printf '%s\n' "$sbx_said" | tail -n 3)
  # A program says its own name first.
  case $sbx_last in '' | "$sbx_way: "*) ;; *) sbx_last="$sbx_way: $sbx_last" ;; esac
  [ -z "$sbx_last" ] || sbx_words="$sbx_words${sbx_words:+
}$sbx_last"
  # shellcheck disable=SC2086
  sbx_gone $sbx_entries
}

sbx_plain() {
  # shellcheck disable=SC2086
  $sbx_alone sh -c "$sbx_sweep" sh manifest.json "$sbx_escaped" "$@"
}

# What the account forbade itself stops nobody but the account: Go's module cache is read-only folders. Each one is opened
# before find goes into it.
sbx_open() { find "$@" -xdev -type d ! -perm -700 -exec chmod u+rwx {} \; >/dev/null 2>&1 </dev/null; }

# The account's user namespace: what rootless containers wrote belongs to others there. Private mounts work in it.
sbx_unshare() { podman unshare sh -c 'sbx_do=$1; shift; ! unshare -m true 2>/dev/null || exec unshare -m sh -c "$sbx_do" sh "$@"
  exec sh -c "$sbx_do" sh "$@"' sh "$sbx_sweep" manifest.json "$sbx_escaped" "$@"; }

# rm alone, since no more may be permitted. sudo keeps the folder this shell stands in.
sbx_sudo() {
  if rm -f --one-file-system 2>/dev/null; then set -- --one-file-system -- "$@"; else set -- -- "$@"; fi
  sudo -n rm -rf "$@"
}

# sbx_contain ENTRY...: the folder is all of the host that it can write. The engine looks the path up anew, so a file that was
# made here a moment ago proves inside that it is the same folder. Of a host whose programs are not all below /usr, /bin,
# /sbin and /lib, the engine says that there is no `env`, and what is left stays.
sbx_contain() {
  # shellcheck disable=SC2086
  sbx_in_empty "$sbx_project-remove" --mount "$(sbx_bind "$sbx_where" /sbx "")" --workdir /sbx "$sbx_image" $sbx_bare \
    sh -c "$sbx_sweep" sh "$sbx_mark" /sbx "$@"
}

# Removes what containers wrote as another user too: the account, its user namespace, sudo, a container.
sbx_ladder() {
  sbx_entries=$*
  # A transfer that was cut off may still write for a moment.
  for sbx_try in 0 0.3 1; do
    [ "$sbx_try" = 0 ] || sleep "$sbx_try" 2>/dev/null
    sbx_words=
    sbx_rung rm sbx_plain "$@" && return
    case $sbx_said in *ermission\ denied* | *not\ permitted* | *"mount point"*) break ;; esac
  done
  case $sbx_said in *"mount point"*) return ;; esac
  if [ "$(id -u)" != 0 ]; then
    sbx_open "$@"
    sbx_rung rm sbx_plain "$@" && return
  fi
  if [ "$(id -u)" != 0 ] && sbx_has podman; then sbx_rung 'podman unshare' sbx_unshare "$@" && return; fi
  if [ "$(id -u)" != 0 ] && sbx_has sudo; then sbx_rung 'sudo -n' sbx_sudo "$@" && return; fi
  [ -n "$sbx_engine" ] || return
  sbx_mark=.gone-$(tr -dc 'a-f0-9' </proc/sys/kernel/random/uuid)
  : >"$sbx_mark" || sbx_mark=manifest.json # no room for an empty file even
  sbx_owner=${sbx_owners%% *} sbx_more=''
  if sbx_make_empty; then
    sbx_rung 'a container' sbx_contain "$@"
    sbx_drop_empty
  else
    sbx_words="$sbx_words${sbx_words:+
}a container: $sbx_said"
  fi
}

# Stands in the directory, proved to be the one.
sbx_clear() {
  # Names that the shell need not quote: ours are plain, and what else is here goes by itself.
  set --
  for sbx_entry in ./* ./.[!.]* ./..?*; do
    case $sbx_entry in
      ./manifest.json | ./compose.yaml) ;;
      *[!A-Za-z0-9._/-]*) [ ! -e "$sbx_entry" ] && [ ! -L "$sbx_entry" ] || sbx_plain "$sbx_entry" >/dev/null 2>&1 </dev/null ;;
      *) if [ -e "$sbx_entry" ] || [ -L "$sbx_entry" ]; then set -- "$@" "$sbx_entry"; fi ;;
    esac
  done
  [ $# = 0 ] || sbx_ladder "$@"
  # These go last: a teardown that is cut off must still be known as ours by the next one, and find its images.
  for sbx_entry in ./* ./.[!.]* ./..?*; do
    case $sbx_entry in ./manifest.json | ./compose.yaml | "./$sbx_mark") continue ;; esac
    if [ -e "$sbx_entry" ] || [ -L "$sbx_entry" ]; then return; fi
  done
  sbx_words=$(rm -f ./compose.yaml "./$sbx_mark" ./manifest.json 2>&1 && rmdir -- "../$sbx_dir" 2>&1) && sbx_cleared=yes
}

# sbx_uncleared WHY: this removal could not end it; where another one did meanwhile, it is removed.
sbx_uncleared() {
  if sbx_ended "$sbx_where" && { [ ! -e "$sbx_where" ] || rmdir -- "$sbx_where" 2>/dev/null || [ ! -e "$sbx_where" ]; }; then
    sbx_done directory "$sbx_where" removed
  else
    sbx_done directory "$sbx_where" failed "$1"
  fi
}

# They would go on in what is not there any more. One that is another user's is left alone.
sbx_end_inside() {
  sbx_pids=$(sbx_inside)
  [ -n "$sbx_pids" ] || return 0
  # shellcheck disable=SC2086
  sbx_signal TERM $sbx_pids
  sbx_try=0
  while [ "$sbx_try" -le "$((sbx_grace * 5))" ] && [ -n "$(sbx_inside)" ]; do
    sleep 0.2 2>/dev/null || sleep 1
    sbx_try=$((sbx_try + 1))
  done
  sbx_deaf=$(sbx_inside)
  # shellcheck disable=SC2086
  [ -z "$sbx_deaf" ] || { sbx_signal KILL $sbx_deaf; sleep 0.2 2>/dev/null; }
  sbx_deaf=$(sbx_inside)
  for sbx_pid in $sbx_pids; do
    case "
$sbx_deaf
" in *"
$sbx_pid
"*) ;; *) sbx_done process "${sbx_pid%:*}" removed ;; esac
  done
}

# A create that was just cut off may be at its last step: its shell hears of that a moment after us. What is not there is given
# the time to come, or not to come any more.
sbx_await() {
  [ ! -e "$sbx_root/$sbx_project" ] && [ ! -L "$sbx_root/$sbx_project" ] && [ "$sbx_may_come" -gt "$sbx_pause" ] || return 0
  sbx_pause=$sbx_may_come
}

sbx_directory() {
  sbx_dir=$sbx_project sbx_words='' sbx_way='' sbx_cleared='' sbx_rendered='' sbx_mark=manifest.json
  if cd -P -- "$sbx_root" 2>/dev/null; then
    # The program and not the shell's own: the shell remembers what it was told.
    sbx_root=$(env pwd -P)
    sbx_where=${sbx_root%/}/$sbx_dir
    # One whose manifest was not written yet is a create of ours that was cut off: nobody else's has been anywhere for long.
    sbx_mounts "${sbx_root%/}/.sbx-$sbx_id.new" >/dev/null || [ "$(sbx_whose ".sbx-$sbx_id.new" "$sbx_id" "$sbx_owners")" = theirs ] || rm -rf -- ".sbx-$sbx_id.new"
    if [ -L "$sbx_dir" ]; then
      sbx_done directory "$sbx_where" failed "it is a symbolic link; look at it, then remove it by hand"
    elif [ ! -e "$sbx_dir" ]; then
      sbx_done directory "$sbx_where" absent
    elif ! cd -P -- "$sbx_dir" 2>/dev/null; then
      sbx_uncleared "$(cd -P -- "$sbx_dir" 2>&1)"
    elif [ "$(env pwd -P)" != "$sbx_where" ]; then
      sbx_done directory "$sbx_where" failed "it became a symbolic link; look at it, then remove it by hand"
    elif [ -z "$(ls -A . 2>&1)" ] && rmdir -- "../$sbx_dir" 2>/dev/null; then
      # A removal that was cut off before its last step; nobody loses an empty folder.
      sbx_done directory "$sbx_where" removed
    elif ! sbx_proves_it; then
      sbx_uncleared "its manifest.json does not name this sandbox and this installation; it is not touched"
    elif sbx_mount=$(sbx_mounts "$sbx_where"); then
      sbx_done directory "$sbx_where" failed "$sbx_mount is a mount point; unmount it first"
    else
      sbx_escape "$sbx_where"
      # Rendered by us: an image of a service stands at this depth, and nothing else does. Those that were built go with it.
      for sbx_name in $(sbx_built_by compose.yaml); do
        case $sbx_name in "$sbx_project"-*) sbx_rendered=$sbx_rendered$sbx_name$sbx_lf ;; esac
      done
      sbx_end_inside
      sbx_clear
      if [ -n "$sbx_cleared" ]; then
        case $sbx_way in '' | rm) sbx_way='' ;; *) sbx_way="files of other users were removed by $sbx_way" ;; esac
        sbx_done directory "$sbx_where" removed "$sbx_way"
      else
        sbx_uncleared "${sbx_words:-it could not be emptied}"
      fi
    fi
    # shellcheck disable=SC2015
    { [ -e "$sbx_where" ] || [ -L "$sbx_where" ]; } && sbx_left directory "$sbx_where"
  else
    # Only "not there" counts as absent: a root that may not be entered hides what is in it.
    if [ -e "$sbx_root" ]; then
      sbx_done directory "$sbx_root/$sbx_dir" failed "$(cd -P -- "$sbx_root" 2>&1)"
      sbx_left directory "$sbx_root/$sbx_dir"
    else
      sbx_done directory "$sbx_root/$sbx_dir" absent
    fi
  fi
}

# ---- the images ----------------------------------------------------------------------------------------------------

# sbx_built_images: by name those that were built for this sandbox. They bear the project's name, and are removed when no container
# needs them any more. A create that was cut off has not told which there are; its rendered file does.
sbx_built_images() {
  [ -n "$sbx_built$sbx_rendered" ] || return 0
  printf '%s\n%s\n' "$sbx_built" "$sbx_rendered" | sed '/^$/d' | sort -u | while IFS= read -r sbx_name; do
    ! sbx_is_image "$sbx_name" || printf '%s\n' "$sbx_name"
  done
}

sbx_drop_images() {
  sbx_drop_left "$sbx_tags"
  sbx_built_images | while IFS= read -r sbx_name; do
    sbx_img_words=$("$sbx_engine" rmi "$sbx_name" 2>&1 </dev/null >/dev/null)
    if ! sbx_is_image "$sbx_name"; then
      sbx_done image "$sbx_name" removed
    elif [ -n "$("$sbx_engine" ps -aq --filter "ancestor=$sbx_name" 2>/dev/null </dev/null)" ] && ! sbx_has_ours container "$sbx_after"; then
      sbx_done image "$sbx_name" foreign "containers that are not of this sandbox use it"
    else
      sbx_done image "$sbx_name" failed "${sbx_said:-$sbx_img_words}"
      sbx_left image "$sbx_name"
    fi
  done
}

# ---- one after another ---------------------------------------------------------------------------------------------

# sbx_clear_one: its directory, then its images: only its rendered file may say which those are, so that nothing of another sandbox
# comes between. The second `cd`: rootless podman answers nobody who stands in a folder that is not there any more.
sbx_clear_one() {
  printf 'of=%s\n' "$sbx_id"
  [ -z "$sbx_engine" ] || sbx_told_engine || return 0
  sbx_directory
  cd -P -- "$sbx_root" 2>/dev/null || cd /
  if [ -n "$sbx_engine" ]; then
    sbx_drop_images
    sbx_each_after ours sbx_left
  fi
  echo finished=yes
}

sbx_pause=0
sbx_each sbx_await "$@"
[ "$sbx_pause" = 0 ] || sleep "$sbx_pause"
[ -z "$sbx_engine" ] || sbx_tags=$(sbx_tags_of "$sbx_engine")
sbx_each sbx_clear_one "$@"
