# Makes the place beside the workspace, `.patch`, in which a patch's script runs. Parameters: the root, the id, the owners, the
# expected host (sbx_prove_host), the bytes that the script has, the engine's program (empty: none is needed), its expected id. stand.sh
# stands before it.
umask 077
sbx_prove_host "$4"
sbx_stand "$1" "$2" "$3"
[ -z "$6" ] || sbx_prove_engine "$6" "$7"
# The script comes with the call that runs it: it may hold secrets, and whoever dies between the two leaves none of it.
sbx_said=$( { rm -rf -- .patch && mkdir -- .patch && head -c "$5" /dev/zero >.patch/room && rm -f -- .patch/room; } 2>&1) || {
  rm -rf -- .patch
  sbx_fail write "$sbx_said"
}
sbx_say put "$sbx_here"
