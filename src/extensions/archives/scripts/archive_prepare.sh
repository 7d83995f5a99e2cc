# Makes a folder for an archive that comes from elsewhere. Parameters: the root, the snapshot's id, the owners (blanks between),
# the expected host, `made` where the root may be made or `given` where it must be there, the bytes that will come, and how many they
# are where this host has no zstd.
umask 077
sbx_lacks=
for sbx_tool in tar tee gzip df sed; do sbx_has "$sbx_tool" || sbx_lacks="$sbx_lacks $sbx_tool"; done
sbx_has openssl || sbx_has sha256sum || sbx_lacks="$sbx_lacks sha256sum"
for sbx_tool in $sbx_lacks; do printf 'missing=%s\n' "$sbx_tool"; done
[ -z "$sbx_lacks" ] || exit 0
sbx_most=$7
! sbx_has zstd || { echo zstd=yes; sbx_most=$6; }
sbx_prove_host "$4"
sbx_make_root "$1" "$3" "$5"
sbx_check_room "$sbx_most" 64
if ! sbx_archives "$sbx_root" "$2" "$3"; then
  sbx_words=$(mkdir -- "$sbx_root/snapshots" 2>&1) || [ -d "$sbx_root/snapshots" ] || sbx_fail root "$sbx_words"
  sbx_archives "$sbx_root" "$2" "$3" || sbx_fail root "$sbx_root/snapshots is not there"
fi
if [ -e "$2" ] || [ -L "$2" ]; then sbx_fail taken "$sbx_at exists"; fi
sbx_words=$(mkdir -- "$2" 2>&1) || sbx_fail root "$sbx_words"
sbx_say path "$sbx_at"
echo prepared=yes
