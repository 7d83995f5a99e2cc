# Where a sandbox is on a host, and whether it is ours. Definitions; says.sh stands before it.

# sbx_absolute ROOT: as a directory of this account's.
sbx_absolute() {
  case $1 in
    '~') printf '%s' "${HOME:-/}" ;;
    '~/'*) printf '%s' "${HOME:-}/${1#??}" ;;
    /*) printf '%s' "$1" ;;
    *) printf '%s' "${HOME:-}/$1" ;;
  esac
}

# sbx_tell_missing: says which programs are not here that a sandbox's directory takes; the script ends without tar.
sbx_tell_missing() {
  for sbx_tool in tar mkdir mv rm df sed head; do
    sbx_has "$sbx_tool" || printf 'missing=%s\n' "$sbx_tool"
  done
  sbx_has tar || exit 0
}

# The KiB that the account may still use here; nothing where it cannot be told.
sbx_free_kib() {
  sbx_line=$(df -Pk . 2>/dev/null | tail -n 1 | sed 's/.* \([0-9][0-9]*\)  *[0-9][0-9]*%.*/\1/')
  case $sbx_line in '' | *[!0-9]*) ;; *) printf '%s' "$sbx_line" ;; esac
}

# sbx_check_room BYTES KEEP: the script ends where there is no room here for so many bytes and, besides, so many KiB.
sbx_check_room() {
  sbx_free=$(sbx_free_kib)
  [ -n "$sbx_free" ] || return 0
  # A tenth more: a file system counts blocks, not bytes.
  sbx_need=$(($1 / 1024 * 11 / 10 + $2))
  [ "$sbx_need" -le "$sbx_free" ] || sbx_fail space "$sbx_free KiB are free in $sbx_root, $sbx_need KiB are needed"
}

# Where this account keeps the counters of installations.
sbx_counters() { printf '%s' "${XDG_STATE_HOME:-${HOME:-}/.local/state}/sandboxer/owners"; }

# sbx_counter_of OWNER: the counter of an installation; nothing where there is none.
sbx_counter_of() {
  sbx_file=$(sbx_counters)/$1
  [ -f "$sbx_file" ] && [ -r "$sbx_file" ] || return 0
  read -r sbx_number sbx_rest <"$sbx_file" || return 0
  case $sbx_number in '' | *[!0-9]*) ;; *) printf '%s' "$sbx_number" ;; esac
}

# sbx_note_counter OWNER COUNTER MACHINE: writes it down unless a higher one is there; then it is in sbx_old.
sbx_note_counter() {
  sbx_owners=$(sbx_counters)
  mkdir -p -- "$sbx_owners" || return 1
  sbx_old=$(sbx_counter_of "$1")
  sbx_old=${sbx_old:-0}
  [ "$2" -gt "$sbx_old" ] || return 0
  sbx_old=
  printf '%s %s\n' "$2" "$3" >"$sbx_owners/.$1.$$" && mv -- "$sbx_owners/.$1.$$" "$sbx_owners/$1"
}

# sbx_prove_host EXPECTED: ends the script on another machine than the expected one, and keeps what is known of roots for
# sbx_prove_root. EXPECTED has lines: the machine (empty: any); `recorded` where something is recorded to be in the root that
# the script is about, else nothing, then a blank and the mark that a root gets which bears none (empty: none gets one); and
# for each root that is known `MARK MACHINE PATH`, the mark `-` where only records know of it, the machine `-` where it has
# no id.
sbx_lf='
'
sbx_prove_host() {
  sbx_expected=$1$sbx_lf sbx_is=$(sbx_machine)
  [ -n "${sbx_brief:-}" ] || printf 'machine=%s\n' "$sbx_is"
  sbx_want_machine=${sbx_expected%%"$sbx_lf"*} sbx_expected=${sbx_expected#*"$sbx_lf"}
  if [ -n "$sbx_want_machine" ] && [ "$sbx_want_machine" != "$sbx_is" ]; then
    sbx_fail identity "this is machine ${sbx_is:-(without an id)}, and it was $sbx_want_machine"
  fi
  sbx_spare=${sbx_expected%%"$sbx_lf"*} sbx_roots=${sbx_expected#*"$sbx_lf"}
  sbx_recorded=${sbx_spare%% *} sbx_spare=${sbx_spare#* }
}

# sbx_known_mark PATH: the mark that is known of the root at this path of this machine; nothing where none is.
sbx_known_mark() {
  while read -r sbx_one sbx_on sbx_at_path; do
    if [ "$sbx_on" = "${sbx_is:--}" ] && [ "$sbx_at_path" = "$1" ]; then printf '%s' "$sbx_one"; return; fi
  done <<SBX_ROOTS
$sbx_roots
SBX_ROOTS
}

# sbx_mark_here: the mark of the root that this shell stands in; nothing where it bears none. Whoever may write here may have
# put anything in its place: only a small file of the account's own, of root's or of the root's owner counts.
sbx_mark_here() {
  [ -f .sandboxer-root ] && [ ! -L .sandboxer-root ] || return 0
  # shellcheck disable=SC3067
  if ! [ -O .sandboxer-root ]; then
    case " 0 $(stat -c %u . 2>/dev/null) " in *" $(stat -c %u .sandboxer-root 2>/dev/null || echo unknown) "*) ;; *) return 0 ;; esac
  fi
  # A pipe that took its place a moment ago is not waited for.
  sbx_line=$(sbx_bounded 5 head -c 64 .sandboxer-root 2>/dev/null </dev/null)
  case $sbx_line in *[!0-9a-f]*) ;; ????????????????????????????????) printf '%s' "$sbx_line" ;; esac
}

# sbx_put_mark MARK: the root that this shell stands in bears it from here on, unless somebody was faster. The words where it
# cannot.
sbx_put_mark() {
  sbx_new_mark=.sandboxer-root.$$
  (
    trap 'rm -f -- "$sbx_new_mark"' EXIT
    trap 'exit 1' HUP INT PIPE TERM
    (umask 022 && set -C && printf '%s\n' "$1" >"$sbx_new_mark") && { sync "$sbx_new_mark" 2>/dev/null || :; } && {
      # A link is made whole or not at all, and never over what is there; some file systems have none.
      ln -- "$sbx_new_mark" .sandboxer-root 2>/dev/null || [ -e .sandboxer-root ] || [ -L .sandboxer-root ] || mv -- "$sbx_new_mark" .sandboxer-root
    }
  ) 2>&1
}

# sbx_any_of_ours OWNERS: whether a sandbox or an archive of ours is in the root that this shell stands in.
sbx_any_of_ours() {
  for sbx_one in sbx-*/manifest.json snapshots/*/manifest.json; do
    [ -f "$sbx_one" ] && [ ! -L "$sbx_one" ] && [ ! -L "${sbx_one%/*}" ] && [ -r "$sbx_one" ] || continue
    for sbx_whom in $1; do ! grep -Fqx "  \"owner\": \"$sbx_whom\"," "$sbx_one" || return 0; done
  done
  return 1
}

# sbx_prove_root ROOT OWNERS KIND [HIDDEN]: goes into the root. Sets sbx_root to where that is, and sbx_proved_root where it is known to
# be the one: only then what is not in it is nowhere (see sbx_nowhere). A root that bears no mark and of which none is known
# gets one where something of ours is in it. 1 where no root is there and none is known to have been; the script ends where it
# cannot be looked into (an error of this kind; HIDDEN for one that was there and can no more be found), and where another one
# is there than was, or none.
sbx_prove_root() {
  sbx_root=$(sbx_absolute "$1") sbx_proved_root='' sbx_bears=''
  sbx_want_mark=$(sbx_known_mark "$sbx_root")
  if ! cd -P -- "$sbx_root" 2>/dev/null; then
    if [ -e "$sbx_root" ] || [ -L "$sbx_root" ]; then sbx_fail "$3" "$(cd -P -- "$sbx_root" 2>&1)"; fi
    # A folder above that may not be entered hides what is in it.
    if sbx_words=$(sbx_hidden "$sbx_root"); then
      if [ -z "$sbx_want_mark" ] && [ -z "$sbx_recorded" ]; then sbx_fail "$3" "$sbx_words"; else sbx_fail "${4:-$3}" "$sbx_words"; fi
    fi
    [ -z "$sbx_want_mark" ] && [ -z "$sbx_recorded" ] || sbx_fail root_away "$sbx_root is not there"
    return 1
  fi
  sbx_root=$(env pwd -P)
  [ -n "$sbx_want_mark" ] || sbx_want_mark=$(sbx_known_mark "$sbx_root")
  sbx_bears=$(sbx_mark_here)
  case $sbx_want_mark in
    '' | -) ;;
    "$sbx_bears") sbx_proved_root=yes; return 0 ;;
    *)
      [ -z "$sbx_bears" ] || sbx_fail root_other "$sbx_root/.sandboxer-root says $sbx_bears, and it said $sbx_want_mark"
      sbx_fail root_bare "$sbx_root has no .sandboxer-root that says $sbx_want_mark"
      ;;
  esac
  # One that was moved, or got its mark from a call whose answer nobody read.
  case "$sbx_spare$sbx_lf$sbx_roots" in
    "${sbx_bears:-none}$sbx_lf"* | *"$sbx_lf${sbx_bears:-none} "*) sbx_proved_root=yes ;;
    *)
      if sbx_any_of_ours "$2"; then
        sbx_proved_root=yes
        [ -n "$sbx_bears" ] || [ -z "$sbx_spare" ] || { sbx_put_mark "$sbx_spare" >/dev/null; sbx_bears=$(sbx_mark_here); }
      fi
      ;;
  esac
  sbx_tell_mark
}

# sbx_tell_mark: says which mark the root bears, where it is known to be the one.
sbx_tell_mark() {
  [ -z "$sbx_proved_root" ] || [ -z "$sbx_bears" ] || [ -n "${sbx_brief:-}" ] || sbx_say mark "$sbx_bears $sbx_root"
}

# sbx_nowhere: what is not in the root is nowhere; the script ends where that is not known.
sbx_nowhere() {
  [ -n "$sbx_proved_root" ] || [ -z "$sbx_recorded" ] || sbx_fail root_unknown "nothing in $sbx_root says that it is the one"
}

# sbx_make_root ROOT OWNERS made|given: goes into the root, which is made where it may be, and bears a mark from then on. The
# script ends where another one was there, or where it cannot be told to be the one that records know.
sbx_make_root() {
  if ! sbx_prove_root "$1" "$2" root; then
    [ "$3" = made ] || sbx_fail root "$sbx_root is not there"
    sbx_words=$(mkdir -p -- "$sbx_root" 2>&1) || sbx_fail root "$sbx_words"
    sbx_prove_root "$sbx_root" "$2" root || sbx_fail root "$sbx_root is not there"
  fi
  [ -w . ] || sbx_fail root "$(id -un) may not write $sbx_root"
  [ -z "$sbx_proved_root" ] || return 0
  [ "$sbx_want_mark" != - ] || sbx_fail root_unknown "nothing in $sbx_root says that it is the one"
  if [ -z "$sbx_bears" ] && { [ -e .sandboxer-root ] || [ -L .sandboxer-root ]; }; then
    # Another console may have put its mark here since it was looked for.
    sbx_bears=$(sbx_mark_here)
    [ -n "$sbx_bears" ] || sbx_fail root "$sbx_root/.sandboxer-root is there and is no mark of a workspace root; look at it, then move it away"
  fi
  if [ -z "$sbx_bears" ] && [ -n "$sbx_spare" ]; then
    sbx_words=$(sbx_put_mark "$sbx_spare")
    sbx_bears=$(sbx_mark_here)
    [ -n "$sbx_bears" ] || sbx_fail root "${sbx_words:-no mark can be written into $sbx_root}"
  fi
  sbx_proved_root=yes
  sbx_tell_mark
}

# sbx_whose DIRECTORY ID OWNERS: `ours`, `theirs`, or `unknown` where the manifest cannot say it.
sbx_whose() {
  if [ ! -f "$1/manifest.json" ] || [ -L "$1/manifest.json" ] || [ ! -r "$1/manifest.json" ]; then
    echo unknown
  elif ! grep -q '^  "owner": "' "$1/manifest.json"; then
    echo unknown
  elif grep -Fqx "  \"id\": \"$2\"," "$1/manifest.json"; then
    for sbx_one in $3; do
      ! grep -Fqx "  \"owner\": \"$sbx_one\"," "$1/manifest.json" || { echo ours; return; }
    done
    echo theirs
  else
    echo theirs
  fi
}

# sbx_hidden PATH: why it cannot be looked at, though nothing says that it is not there. 1 where it is there and can be read,
# or is not there.
sbx_hidden() {
  sbx_tried=$(LC_ALL=C ls -d -- "$1" 2>&1) || case $sbx_tried in
    *'No such file'* | *'Not a directory'*) return 1 ;;
    *) printf '%s\n' "$sbx_tried"; return ;;
  esac
  [ -f "$1" ] || return 1
  sbx_tried=$(head -c 1 "$1" 2>&1 >/dev/null) && return 1
  printf '%s\n' "$sbx_tried"
}
