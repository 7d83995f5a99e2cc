# Runs a patch's script in the workspace. Parameters: the sandbox's directory, its time in seconds, how much of its output is
# kept, a word that marks its processes, the sandbox's id, the snapshot's, the patch's sequence, the script. kept.sh stands
# before it.
sbx_folder=$1/.patch sbx_mark=$4
(umask 077; printf %s "$8" >"$sbx_folder/script") && sbx_keep "$sbx_folder" "$3" || { rm -rf -- "$sbx_folder"; exit 73; }
IFS= read -r sbx_first <"$sbx_folder/script"
case $sbx_first in
  '#!'*)
    # As the kernel reads it, which would not do so on a file system without programs.
    sbx_first=$(printf '%s' "${sbx_first#??}" | sed 's/^[ 	]*//; s/[ 	]*$//')
    sbx_program=${sbx_first%%[ 	]*}
    sbx_first=$(printf '%s' "${sbx_first#"$sbx_program"}" | sed 's/^[ 	]*//')
    set -- "$@" "$sbx_program" ${sbx_first:+"$sbx_first"}
    ;;
  *) set -- "$@" "$(command -v bash >/dev/null 2>&1 && echo bash || echo sh)" ;;
esac
sbx_workspace=$1/workspace sbx_id=$5 sbx_snapshot=$6 sbx_sequence=$7
sbx_limit "$2"
shift 8

sbx_marked() { grep -ls "SBX_MARK=$sbx_mark" /proc/[0-9]*/environ 2>/dev/null; }
sbx_goes_on() { [ -n "$(sbx_marked)" ]; }
sbx_end_it() {
  [ -z "$sbx_apart" ] || kill "-$1" "-$sbx_child" 2>/dev/null
  for sbx_environ in $(sbx_marked); do
    sbx_pid=${sbx_environ#/proc/}
    kill "-$1" "${sbx_pid%/environ}" 2>/dev/null
  done
}

# Whoever is told to end before it has begun leaves nothing.
[ -z "$sbx_gone" ] || { rm -rf -- "$sbx_folder"; exit 0; }
# In a session of its own, below a shell that it may end: neither reaches us.
sbx_apart=$(command -v setsid)
echo began=yes
SBX_MARK=$sbx_mark SANDBOXER_ID=$sbx_id SANDBOXER_SNAPSHOT=$sbx_snapshot SANDBOXER_PATCH_SEQUENCE=$sbx_sequence SANDBOXER_WORKSPACE=$sbx_workspace \
  $sbx_apart sh -c 'cd -P -- "$SANDBOXER_WORKSPACE" || exit; (exec "$@"); exit "$?"' sh "$@" "$sbx_folder/script" >"$sbx_folder/in" 2>&1 </dev/null &
sbx_child=$!
sbx_await "$sbx_child"
sbx_tell "$sbx_folder"
