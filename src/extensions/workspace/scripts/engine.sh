# What a container engine has of sandboxes. Definitions; runtime.sh and says.sh stand before it.

# sbx_engine_id ENGINE WANTED: its id, told the way in which the wanted one was.
sbx_engine_id() {
  case $2 in
    /*)
      sbx_folder=${2%:*}
      printf '%s:%s' "$sbx_folder" "$(sbx_inode "$sbx_folder")"
      ;;
    *) sbx_bounded 10 "$1" info -f '{{.ID}}' 2>/dev/null </dev/null ;;
  esac
}

# sbx_describe ENGINE CONTAINER...: an object a line, with what both engines' `inspect` has and we read, and no more: the
# whole is some 8 KB each.
sbx_describe() {
  sbx_program=$1
  shift
  [ $# = 0 ] || "$sbx_program" inspect --type container --format '{"Id":{{json .ID}},"Name":{{json .Name}},"RestartCount":{{json .RestartCount}},"State":{{json .State}},"Config":{"Labels":{{json .Config.Labels}}},"NetworkSettings":{"Ports":{{json .NetworkSettings.Ports}}}}' "$@"
}
