# Where an archive is, and whether it is ours. Definitions; says.sh and place.sh stand before it.

# sbx_archives ROOT ID OWNERS: goes to the root's folder of archives and says where that is (`sbx_at`: the archive's own folder).
# Nothing on the way below the root may be a link. Not there is 1; only that counts as absent, and only in a root that is proved
# where an archive is recorded; anything else ends the script.
sbx_archives() {
  if ! sbx_prove_root "$1" "$3" closed; then
    sbx_at=$sbx_root/snapshots/$2
    return 1
  fi
  sbx_at=${sbx_root%/}/snapshots/$2
  if [ -L snapshots ]; then sbx_fail link "${sbx_root%/}/snapshots is a link"; fi
  [ -e snapshots ] || { sbx_words=$(sbx_hidden snapshots) && sbx_fail closed "$sbx_words"; sbx_nowhere; return 1; }
  cd -P -- ./snapshots 2>/dev/null || sbx_fail closed "$(cd -P -- ./snapshots 2>&1)"
  [ "$(env pwd -P)" = "${sbx_root%/}/snapshots" ] || sbx_fail link "${sbx_root%/}/snapshots is a link"
}

# sbx_enter ID: goes from there into the archive's own folder; 1 where there is none.
sbx_enter() {
  if [ -L "$1" ]; then sbx_fail link "$sbx_at is a link"; fi
  [ -e "$1" ] || { sbx_words=$(sbx_hidden "./$1") && sbx_fail closed "$sbx_words"; sbx_nowhere; return 1; }
  cd -P -- "./$1" 2>/dev/null || sbx_fail closed "$(cd -P -- "./$1" 2>&1)"
  [ "$(env pwd -P)" = "$sbx_at" ] || sbx_fail link "$sbx_at is a link"
}

# sbx_file: the archive's file in this folder; nothing where there is none.
sbx_file() {
  for sbx_name in archive.tar.zst archive.tar.gz; do
    if [ -f "$sbx_name" ] && [ ! -L "$sbx_name" ]; then printf '%s' "$sbx_name"; return; fi
  done
}

# sbx_archive FILE: it is there; else the script ends.
sbx_archive() {
  [ ! -f "$1" ] || [ -L "$1" ] || return 0
  sbx_words=$(sbx_hidden "./$1") && sbx_fail closed "$sbx_words"
  sbx_fail absent "$sbx_at/$1 is not there"
}

sbx_size() { wc -c <"$1" | tr -d ' '; }

# sbx_open FILE: what is in it, without its compression.
sbx_open() {
  case $1 in
    *.zst) zstd -qdc -- "$1" ;;
    *) gzip -dc -- "$1" ;;
  esac
}

# Says which tools lack for a format and for reading what is inside; 1 where any does.
sbx_tools() { # FILE
  sbx_lacks=
  case $1 in *.zst) sbx_has zstd || sbx_lacks="$sbx_lacks zstd" ;; *) sbx_has gzip || sbx_lacks="$sbx_lacks gzip" ;; esac
  sbx_has sha256sum || sbx_has openssl || sbx_lacks="$sbx_lacks sha256sum"
  for sbx_tool in $sbx_lacks; do printf 'missing=%s\n' "$sbx_tool"; done
  [ -z "$sbx_lacks" ]
}

# sbx_told TEXT: what such a pipe wrote: its hash, how its programs ended, and their words.
sbx_told() {
  printf '%s\n' "$1" | sed -n 's/^[0-9a-f]\{64\}$/sum=&/p; /^[a-z]*=[0-9]*$/p'
  sbx_say words "$(printf '%s\n' "$1" | grep -Ev '^([0-9a-f]{64}|[a-z]+=[0-9]+)$')"
}
