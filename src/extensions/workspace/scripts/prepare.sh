# Makes a sandbox's directory with its manifest, and says what the host is. Parameters: the root, the id, the owner, the
# counter, the installation's machine, the manifest, the bytes that will come, `first`, `all` or `no` for the runtime,
# then the words of a compose command.
umask 077
sbx_root=$1 sbx_id=$2 sbx_owner=$3 sbx_counter=$4 sbx_from=$5 sbx_manifest=$6 sbx_bytes=$7 sbx_how=$8
shift 8

for sbx_tool in tar mkdir mv rm df sed head; do
  sbx_has "$sbx_tool" || printf 'missing=%s\n' "$sbx_tool"
done
sbx_has tar || exit 0

case $sbx_root in
  '~') sbx_root=${HOME:-/} ;;
  '~/'*) sbx_root=${HOME:-}/${sbx_root#??} ;;
  /*) ;;
  *) sbx_root=${HOME:-}/$sbx_root ;;
esac
sbx_words=$(mkdir -p -- "$sbx_root" 2>&1) || sbx_fail root "$sbx_words"
sbx_words=$(cd -P -- "$sbx_root" 2>&1) || sbx_fail root "$sbx_words"
cd -P -- "$sbx_root" || exit 1
sbx_root=$(pwd -P)
sbx_say root "$sbx_root"
printf 'machine=%s\n' "$(sbx_machine)"
! sbx_has rsync || echo rsync=yes

sbx_free=$(df -Pk . 2>/dev/null | tail -n 1 | sed 's/.* \([0-9][0-9]*\)  *[0-9][0-9]*%.*/\1/')
case $sbx_free in
  '' | *[!0-9]*) ;;
  *)
    printf 'free_kib=%s\n' "$sbx_free"
    # A tenth more: a file system counts blocks, not bytes.
    [ "$((sbx_bytes / 1024 * 11 / 10))" -le "$sbx_free" ] || sbx_fail space "$sbx_free KiB are free in $sbx_root"
    ;;
esac

if [ "$sbx_how" != no ]; then
  sbx_runtime "$sbx_how" "$@"
  for sbx_engine in $SBX_ENGINES; do
    sbx_taken=$(sbx_bounded 10 "$sbx_engine" ps -aq --filter "label=com.docker.compose.project=sbx-$sbx_id" 2>/dev/null)
    [ -z "$sbx_taken" ] || sbx_fail taken "$sbx_engine already has containers of the project sbx-$sbx_id"
  done
fi

if [ -e "sbx-$sbx_id" ] || [ -L "sbx-$sbx_id" ]; then
  sbx_fail taken "$sbx_root/sbx-$sbx_id exists"
fi

# The counter tells a copied data directory from the one that went on (see the contract, section 1).
sbx_owners=${XDG_STATE_HOME:-${HOME:-}/.local/state}/sandboxer/owners
if sbx_words=$(mkdir -p -- "$sbx_owners" 2>&1); then
  sbx_old=0
  [ ! -r "$sbx_owners/$sbx_owner" ] || read -r sbx_old sbx_rest <"$sbx_owners/$sbx_owner"
  case $sbx_old in '' | *[!0-9]*) sbx_old=0 ;; esac
  if [ "$sbx_counter" -gt "$sbx_old" ]; then
    printf '%s %s\n' "$sbx_counter" "$sbx_from" >"$sbx_owners/.$sbx_owner.$$" &&
      mv -- "$sbx_owners/.$sbx_owner.$$" "$sbx_owners/$sbx_owner"
  else
    printf 'counter=%s\n' "$sbx_old"
  fi
else
  sbx_say owners "$sbx_words"
fi

sbx_new=.sbx-$sbx_id.new
sbx_words=$( {
  rm -rf -- "$sbx_new" && mkdir -- "$sbx_new" && mkdir -m 755 -- "$sbx_new/workspace" &&
    printf '%s\n' "$sbx_manifest" >"$sbx_new/manifest.json" && mv -- "$sbx_new" "sbx-$sbx_id"
} 2>&1) || {
  rm -rf -- "$sbx_new" 2>/dev/null
  sbx_fail directory "$sbx_words"
}
echo prepared=yes
