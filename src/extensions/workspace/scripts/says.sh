# Definitions for the scripts of this folder; runtime.sh stands before it. POSIX sh; the host's own tools.
# Each script prints `key=value` lines; a line that begins with a blank belongs to the line before it.

export LC_ALL=C

# sbx_say KEY TEXT: the text on lines of its own beneath the key, so that no byte of it passes for a key.
sbx_say() {
  printf '%s=\n' "$1"
  printf '%s\n' "$2" | head -c 4000 | sed 's/^/ /'
  echo
}

# Where `sbx_brief` is set, the kind alone is said, as a verdict, and this is the status.
sbx_fail() {
  [ -z "${sbx_brief:-}" ] || { printf '%s\n' "$1"; exit "$sbx_brief"; }
  printf 'error=%s\n' "$1"
  sbx_say words "$2"
  exit 0
}

sbx_machine() {
  for sbx_file in /etc/machine-id /var/lib/dbus/machine-id; do
    [ ! -r "$sbx_file" ] || { read -r sbx_line <"$sbx_file"; printf '%s' "$sbx_line"; return; }
  done
}
