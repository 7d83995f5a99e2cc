# Removes an archive, or what there is of one, and reads back. Parameters: the root, the snapshot's id, the owners (blanks
# between), the expected host. Nothing is removed while there is anything among it that is not ours; `begun=yes` is said before
# the first thing goes.
sbx_id=$2
sbx_prove_host "$4"

sbx_done() { # OUTCOME [WHY]
  printf 'done=archive %s\n' "$1"
  printf ' %s\n' "$sbx_at"
  [ -z "$2" ] || sbx_say why "$2"
  if [ "$1" = failed ]; then printf 'left=archive\n %s\n' "$sbx_at"; fi
  echo finished=yes
  exit 0
}
# A folder without archives is not kept; somebody may be making the next one in it meanwhile.
sbx_last() { rmdir -- "${sbx_at%/*}" 2>/dev/null; }

sbx_archives "$1" "$sbx_id" "$3" || sbx_done absent
if [ -L "$sbx_id" ]; then sbx_done failed "it is a link"; fi
if [ -e "$sbx_id" ] && [ ! -d "$sbx_id" ]; then sbx_done failed "it is no folder"; fi
sbx_enter "$sbx_id" || { sbx_last; sbx_done absent; }

if [ -e manifest.json ] || [ -L manifest.json ]; then
  [ "$(sbx_whose . "$sbx_id" "$3")" = ours ] || sbx_done failed "its manifest.json does not name this snapshot and this installation"
fi
# What an archive is made of, and what is beside it while it is made.
sbx_ours() {
  case $1 in
    manifest.json | .manifest* | .mark.*) ;;
    archive.tar.zst | archive.tar.gz | archive.tar.*.partial) ;;
    sha | sum | sum.* | bytes | bytes.* | count | count.* | list | devices | users | groups | status | compose) ;;
    words | words.* | failed.* | told | out.* | begun | .room.*) ;;
    *) return 1 ;;
  esac
  # rm takes a link's name away, not what it points to; a folder is none of these.
  [ ! -d "$1" ] || [ -L "$1" ]
}
sbx_here() { for sbx_name in * .[!.]* ..?*; do if [ -e "$sbx_name" ] || [ -L "$sbx_name" ]; then printf '%s\n' "$sbx_name"; fi; done; }
sbx_foreign=$(sbx_here | while IFS= read -r sbx_name; do sbx_ours "$sbx_name" || printf ' %s' "$sbx_name"; done)
[ -z "$sbx_foreign" ] || sbx_done failed "there is something in it that is no part of an archive:$sbx_foreign"

# Whoever made it may be at it for some seconds more, though nobody waits for him: what he makes meanwhile goes too. The
# manifest goes last: it is what says whose the rest is.
echo begun=yes
for sbx_try in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do
  sbx_words=$(sbx_here | while IFS= read -r sbx_name; do
    { sbx_ours "$sbx_name" && [ "$sbx_name" != manifest.json ]; } || continue
    rm -f -- "./$sbx_name" 2>&1
  done)
  [ -z "$sbx_words" ] || sbx_done failed "$sbx_words"
  if [ "$(sbx_here)" = manifest.json ]; then
    sbx_words=$(rm -f -- manifest.json 2>&1) || sbx_done failed "$sbx_words"
  fi
  # From above, and only there: a name that was given to something else meanwhile is not ours.
  sbx_words=$( (cd -P -- .. && [ "$(env pwd -P)" = "${sbx_at%/*}" ] && rmdir -- "$sbx_id") 2>&1) && break
  [ -e "$sbx_at" ] || [ -L "$sbx_at" ] || break
  sleep 0.5 2>/dev/null || sleep 1
done
if [ -e "$sbx_at" ] || [ -L "$sbx_at" ]; then sbx_done failed "${sbx_words:-it is there again}"; fi
sbx_last
sbx_done removed
