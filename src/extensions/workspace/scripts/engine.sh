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

# sbx_rows_on ENGINE WANTED: sbx_there is what sbx_every says of it; that it is another one than the wanted (empty: any) is the
# verdict, and ends the script. Both are asked side by side, as sbx_every asks. belonging.sh stands before it.
sbx_rows_on() {
  sbx_bounded 1 true
  sbx_there=$({ [ -z "$2" ] || sbx_engine_id "$1" "$2"; } | {
    sbx_rest=$(sbx_every "$1")
    sed 's/^/identity /'
    printf '\n%s\n' "$sbx_rest"
  })
  [ -n "$2" ] || return 0
  sbx_now=$(printf '%s\n' "$sbx_there" | sed -n 's/^identity //p')
  [ "$sbx_now" != "$2" ] || return 0
  [ -n "$sbx_now" ] || sbx_fail engine "$("$1" info 2>&1 >/dev/null </dev/null | tail -n 3)"
  sbx_fail identity "this engine is $sbx_now, the sandbox was made on $2"
}

# sbx_lists_on ENGINE WANTED ID OWNERS: likewise what sbx_lists says of it.
sbx_lists_on() {
  sbx_about=$3
  sbx_rows_on "$1" "$2"
  sbx_there=$(printf '%s\n' "$sbx_there" | sbx_judged "$3" "$4")
}

# sbx_describe ENGINE CONTAINER...: an object a line, with what both engines' `inspect` has and we read, and no more: the
# whole is some 8 KB each.
sbx_describe() {
  sbx_program=$1
  shift
  [ $# = 0 ] || "$sbx_program" inspect --type container --format '{"Id":{{json .ID}},"Name":{{json .Name}},"RestartCount":{{json .RestartCount}},"State":{{json .State}},"Config":{"Labels":{{json .Config.Labels}}},"NetworkSettings":{"Ports":{{json .NetworkSettings.Ports}}}}' "$@"
}

# sbx_described ENGINE CONTAINER...: the same. One that goes away meanwhile is passed over; where the engine does not tell of
# another one, its words instead.
sbx_described() {
  sbx_told=$(sbx_describe "$@" 2>/dev/null </dev/null) && { printf '%s\n' "$sbx_told"; return; }
  sbx_with=$1
  shift
  for sbx_one; do
    sbx_told=$(sbx_describe "$sbx_with" "$sbx_one" 2>/dev/null </dev/null) && { printf '%s\n' "$sbx_told"; continue; }
    # What it says on stdout is somebody's labels.
    ! sbx_told=$(sbx_describe "$sbx_with" "$sbx_one" 2>&1 >/dev/null </dev/null) || sbx_told="$sbx_with does not tell how its containers stand"
    case $sbx_told in *"o such container"*) ;; *) printf '%s\n' "$sbx_told"; return 1 ;; esac
  done
}
