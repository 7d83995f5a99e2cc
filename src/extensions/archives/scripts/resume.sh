# Takes back what a snapshot that was cut off did to containers. Parameters: the root, the id, the owners, a snapshot that
# is called off, or nothing. says.sh, place.sh and let_go.sh stand before it.
sbx_root=$(sbx_absolute "$1") sbx_id=$2
sbx_nothing() { echo resumed=yes; exit 0; }
# sbx_go FOLDER: into it. Only in one that is not there is nothing to be taken back.
sbx_go() {
  cd -P -- "$1" 2>/dev/null && return
  if [ ! -e "$1" ] && [ ! -L "$1" ]; then sbx_said=$(sbx_hidden "$1") || sbx_nothing; fi
  sbx_fail unread "${sbx_said:-$(cd -P -- "$1" 2>&1)}"
}
sbx_go "$sbx_root"
sbx_go "./sbx-$sbx_id"
case $(sbx_whose . "$sbx_id" "$3") in
  ours) ;;
  theirs) sbx_nothing ;;
  *)
    sbx_said=$(sbx_hidden ./manifest.json) || {
      sbx_said="its manifest.json does not say whose it is"
      # One that is being removed, or was never whole.
      [ -e manifest.json ] || [ -L manifest.json ] || [ -e .held ] || [ -e .held.back ] || [ -e .packing ] || sbx_nothing
    }
    sbx_fail unread "$sbx_said"
    ;;
esac
# A patch's script may hold secrets, and nobody works on it any more.
rm -rf -- .patch
# Its script may not have begun yet: it writes down that it does, and then looks here. This is the other way round.
[ -z "$4" ] || { rm -f .called_off && echo "$4" >.called_off; } 2>/dev/null
# The script of the snapshot may be at it still: it knows that its console is gone, and clears up in its own time. One that
# has not heard of it is told.
[ ! -f .packing ] || [ -r .packing ] || sbx_fail unread "$(cat .packing 2>&1 >/dev/null)"
if [ -f .packing ] && [ ! -L .packing ] && read -r sbx_pid sbx_since <.packing; then
  case $sbx_pid in '' | *[!0-9]*) sbx_since='' ;; esac
  sbx_left=40
  while [ -n "$sbx_since" ] && [ "$(sbx_started "$sbx_pid")" = "$sbx_since" ]; do
    [ "$sbx_left" != 20 ] || kill -TERM "$sbx_pid" 2>/dev/null
    [ "$sbx_left" -gt 0 ] || sbx_fail engine "the snapshot's own script is still at work, as process $sbx_pid"
    sbx_left=$((sbx_left - 1))
    sleep 0.5 2>/dev/null || sleep 1
  done
  rm -f .packing
fi
if sbx_said=$(sbx_let_go); then echo resumed=yes; else sbx_fail engine "$sbx_said"; fi
