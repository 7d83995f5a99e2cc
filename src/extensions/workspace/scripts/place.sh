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

# The KiB that the account may still use here; nothing where it cannot be told.
sbx_free_kib() {
  sbx_line=$(df -Pk . 2>/dev/null | tail -n 1 | sed 's/.* \([0-9][0-9]*\)  *[0-9][0-9]*%.*/\1/')
  case $sbx_line in '' | *[!0-9]*) ;; *) printf '%s' "$sbx_line" ;; esac
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

# sbx_prove_machine WANTED: ends the script on another machine. An empty one is not looked at.
sbx_prove_machine() {
  sbx_is=$(sbx_machine)
  printf 'machine=%s\n' "$sbx_is"
  if [ -n "$1" ] && [ "$1" != "$sbx_is" ]; then
    sbx_fail identity "this is machine ${sbx_is:-(without an id)}, the sandbox was made on $1"
  fi
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
