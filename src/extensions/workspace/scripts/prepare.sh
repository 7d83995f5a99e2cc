# Makes a sandbox's directory with its manifest, and says what the host is. Parameters: the root, `made` where it may be
# made or `given` where it must be there, the id, the owner, the counter, the installation's machine, the manifest, the
# bytes that will come, the KiB that must stay free, what is expected of the host (sbx_prove_host), `first`, `fingerprint` or
# `no` for the runtime, then the words of a compose command; or `engine` and the one that will be used, as sbx_runtime takes it.
umask 077
sbx_root=$1 sbx_kind=$2 sbx_id=$3 sbx_owner=$4 sbx_counter=$5 sbx_from=$6 sbx_manifest=$7 sbx_bytes=$8 sbx_keep=$9
shift 9
sbx_expected=$1 sbx_how=$2
shift 2

sbx_tell_missing

sbx_prove_host "$sbx_expected"
sbx_make_root "$sbx_root" "$sbx_owner" "$sbx_kind"
sbx_say root "$sbx_root"
! sbx_has rsync || echo rsync=yes
sbx_check_room "$sbx_bytes" "$sbx_keep"

# Where the engine that will be used is gone another one will be.
SBX_ENGINES='' sbx_listed=''
case $sbx_how in
  no) ;;
  engine)
    # What is in the way is listed beside the question whether it is still the same one, as sbx_every asks.
    sbx_listed=$(sbx_program_of "$1")
    sbx_bounded 1 true
    sbx_both=$({ sbx_runtime engine "$1"; printf 'engines=%s\n' "$SBX_ENGINES"; } | {
      sbx_rest=$(sbx_lists "$sbx_listed" "$sbx_id" "$sbx_owner")
      cat
      printf '%s\n' "$sbx_rest"
    })
    # Each line of the first begins with `rt.`.
    printf '%s\n' "${sbx_both%%"$sbx_lf"engines=*}"
    sbx_both=${sbx_both#*"$sbx_lf"engines=}$sbx_lf
    SBX_ENGINES=${sbx_both%%"$sbx_lf"*} sbx_rest=${sbx_both#*"$sbx_lf"}
    ;;
  *) sbx_runtime "$sbx_how" "$@" ;;
esac
for sbx_engine in $SBX_ENGINES; do
  # compose would take what bears the project's label for its own, and names are given once.
  [ "$sbx_engine" = "$sbx_listed" ] || sbx_rest=$(sbx_lists "$sbx_engine" "$sbx_id" "$sbx_owner")
  sbx_in_the_way "$sbx_rest"
done

if [ -e "sbx-$sbx_id" ] || [ -L "sbx-$sbx_id" ]; then
  sbx_fail taken "$sbx_root/sbx-$sbx_id exists"
fi

# The counter tells a copied data directory from the one that went on (see the contract, section 1).
sbx_old=
if sbx_note_counter "$sbx_owner" "$sbx_counter" "$sbx_from" 2>/dev/null; then
  [ -z "$sbx_old" ] || printf 'counter=%s\n' "$sbx_old"
else
  sbx_say owners "$(mkdir -p -- "$(sbx_counters)" 2>&1)"
fi

# A console that went away has been told that nothing is left: descriptor 5 leads to it, and whoever cannot write there stops here.
sbx_new=.sbx-$sbx_id.new
sbx_words=$( {
  rm -rf -- "$sbx_new" && mkdir -- "$sbx_new" && mkdir -m 755 -- "$sbx_new/workspace" &&
    printf '%s\n' "$sbx_manifest" >"$sbx_new/manifest.json" &&
    (trap - PIPE; echo making=yes >&5) && mv -- "$sbx_new" "sbx-$sbx_id"
} 2>&1) || {
  rm -rf -- "$sbx_new" 2>/dev/null
  sbx_fail directory "$sbx_words"
}
# `mv` goes into a folder that appeared meanwhile.
if [ -d "sbx-$sbx_id/$sbx_new" ]; then
  rm -rf -- "sbx-$sbx_id/$sbx_new"
  sbx_fail taken "$sbx_root/sbx-$sbx_id exists"
fi
echo prepared=yes
