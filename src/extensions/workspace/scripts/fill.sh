# Makes a sandbox's directory (sbx_prepare: prepare.sh) and fills its workspace with what comes on stdin (extract.sh stands behind
# this). Parameter: how many bytes of that are the parameters of sbx_prepare, quoted for a shell: in the list of processes everybody
# would read them. `dd` takes no byte more than these.
eval "set -- $(dd bs=1 count="$1" 2>/dev/null)"
exec 5>&1
sbx_said=$(sbx_prepare "$@" </dev/null)
printf '%s\n' "$sbx_said"
case $sbx_said in *prepared=yes) ;; *) exit 0 ;; esac
set -- "$(printf '%s\n' "$sbx_said" | sed -n '/^root=$/{n;s/^ //p;q;}')/sbx-$3/workspace"
