# Runs a patch's script in a service's container. Parameters: the sandbox's directory, its time in seconds, how much of its
# output is kept, a word that marks its processes, the sandbox's id, the snapshot's, the patch's sequence, the engine's program,
# the owners, the service, the script that runs it there, the patch's script. find.sh, leave.sh and kept.sh stand before it.
sbx_folder=$1/.patch sbx_mark=$4 sbx_engine=$8 sbx_inside=${11} sbx_script=${12}
sbx_find "$sbx_engine" "$5" "$9" "${10}"
sbx_keep "$sbx_folder" "$3" || { rm -rf -- "$sbx_folder"; exit 73; }
sbx_limit "$2"

# Ending the engine's client ends nothing in the container.
sbx_goes_on() { kill -0 "$sbx_child" 2>/dev/null; }
sbx_end_it() {
  case $1 in
    TERM) sbx_leave "$sbx_engine" "$sbx_container" "$sbx_mark" TERM ;;
    KILL) kill -KILL "$sbx_child" 2>/dev/null ;;
  esac
}

# Where the service sees the workspace, if it does.
sbx_tab=$(printf '\t')
sbx_sees=$("$sbx_engine" inspect --type container -f '{{range .Mounts}}{{.Source}}{{"\t"}}{{.Destination}}{{"\n"}}{{end}}' "$sbx_container" 2>/dev/null </dev/null |
  while IFS=$sbx_tab read -r sbx_source sbx_there; do [ "$sbx_source" != "$1/workspace" ] || printf '%s\n' "$sbx_there"; done | head -n 1)

echo began=yes
printf %s "$sbx_script" 2>/dev/null | "$sbx_engine" exec -i -e "SBX_MARK=$sbx_mark" -e "SANDBOXER_ID=$5" -e "SANDBOXER_SNAPSHOT=$6" -e "SANDBOXER_PATCH_SEQUENCE=$7" \
  ${sbx_sees:+-e "SANDBOXER_WORKSPACE=$sbx_sees"} "$sbx_container" sh -c "$sbx_inside" sh >"$sbx_folder/in" 2>&1 &
sbx_child=$!
sbx_await "$sbx_child"
sbx_tell "$sbx_folder"
