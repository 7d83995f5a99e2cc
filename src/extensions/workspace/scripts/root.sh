# Says why no sandbox's directory can be made in a root; makes nothing. Parameters: the root, the owners (blanks between), `made` where
# it may be made or `given` where it must be there, what is expected of the host (sbx_prove_host), without a mark for a root that
# bears none, the bytes that would come, and the KiB that must stay free. place.sh stands before it.
sbx_tell_missing
sbx_prove_host "$4"
if [ "$3" = given ] || sbx_prove_root "$1" "$2" root; then
  sbx_make_root "$1" "$2" "$3"
else
  sbx_above=$sbx_root
  while [ ! -e "$sbx_above" ] && [ ! -L "$sbx_above" ]; do
    sbx_above=${sbx_above%/*}
    sbx_above=${sbx_above:-/}
  done
  [ -d "$sbx_above" ] || sbx_fail root "$sbx_above is no directory"
  { [ -w "$sbx_above" ] && [ -x "$sbx_above" ]; } || sbx_fail root "$(id -un) may not write $sbx_above"
  cd -P -- "$sbx_above" || sbx_fail root "$sbx_above cannot be entered"
fi
sbx_check_room "$5" "$6"
echo fit=yes
