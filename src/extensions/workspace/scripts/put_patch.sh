# Puts a patch's script beside the workspace, into `.patch`. Parameters: the root, the id, the owners, the expected machine,
# the script, the engine's program (empty: none is needed), its expected id. stand.sh stands before it.
umask 077
sbx_prove_machine "$4"
sbx_stand "$(sbx_absolute "$1")" "$2" "$3"
[ -z "$6" ] || sbx_prove_engine "$6" "$7"
sbx_said=$( { rm -rf -- .patch && mkdir -- .patch && printf %s "$5" >.patch/script; } 2>&1) || sbx_fail write "$sbx_said"
sbx_say put "$sbx_here"
