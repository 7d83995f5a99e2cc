# Reads an archive whole. Parameters: the root, the snapshot's id, the owners (blanks between), the expected host, the
# archive's file. Says how far it is, what the hash of the tar inside is, and how the programs ended.
sbx_prove_host "$4"
sbx_archives "$1" "$2" "$3" && sbx_enter "$2" || sbx_fail absent "$sbx_at/$5 is not there"
sbx_archive "$5"
sbx_tools "$5" || exit 0
exec 7<"$5"
printf 'size=%s\n' "$(sbx_size "$5")"

# Descriptor 7 is the one that is unpacked, and has one position for all who hold it.
sbx_tell() {
  while sleep 1 >/dev/null; do
    sed -n 's/^pos:[^0-9]*/at=/p' /proc/self/fdinfo/7 || return
  done
}
sbx_tell 2>/dev/null &
sbx_teller=$!

# What is unpacked goes to tar through descriptor 5 and to the hash through the pipe. tar stops at the end that the archive
# says; what is behind it is still read.
sbx_said=$({
  {
    {
      case $5 in *.zst) zstd -qdc ;; *) gzip -dc ;; esac <&7 || echo "unpack=$?" >&4
    } | { sbx_also /dev/fd/5 || echo "tee=$?" >&4; } | sbx_sha /dev/fd/4
  } 5>&1 | {
    tar -tf - >/dev/null || echo "tar=$?" >&4
    cat >/dev/null
  }
} 4>&1 2>&1 | tail -n 50)
kill "$sbx_teller" 2>/dev/null
wait "$sbx_teller" 2>/dev/null
sbx_told "$sbx_said"
echo read=yes
