# Writes the archive that comes on stdin to a partial file, and unpacks it on the way to see what it is. Parameters: the
# folder that was made for it, the file's last name. Where the folder is gone the transfer was called off. What cannot be
# unpacked is still taken to its end: the writer must not die of it, or a damaged archive would pass for a full disk.
umask 077
cd -P -- "$1" || exit 72
sbx_tools "$2" || exit 0
sbx_name=$2.partial
sbx_said=$({
  { sbx_also "$sbx_name" || echo "tee=$?" >&4; } | {
    case $2 in *.zst) zstd -qdc ;; *) gzip -dc ;; esac || echo "unpack=$?" >&4
    cat >/dev/null
  } | sbx_sha /dev/fd/4
} 4>&1 2>&1 | tail -n 50)
# What a write was put off for may fail only now.
sbx_words=$(sync "$sbx_name" 2>&1) || sbx_said=$(printf '%s\n%s\ntee=1' "$sbx_said" "$sbx_words")
sbx_told "$sbx_said"
printf 'size=%s\n' "$(sbx_size "$sbx_name")"
echo received=yes
