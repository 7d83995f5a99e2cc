# Writes the rendered file and those that containers read, starts it, and looks at what runs. Parameters: the sandbox's directory,
# the project, the file's text, the engine's program, `apart` where containers are made and started by two calls, our owner, for how
# many seconds services show that they stay before they are looked at, `clear` where the prepare call looked a moment ago at what is in
# the way, how many files containers read, the name and the text of each, how many paths of the workspace the file names as sources, these,
# the text of the file that has builds go by links, how many links, the name of each and the folder that it leads to, then the words of the
# compose command. belonging.sh stands before it. What others write goes to stderr: stdout has what
# inspect.sh says, where it was started.
umask 077
cd -P -- "$1" || exit 72
sbx_project=$2 sbx_engine=$4 sbx_calls=$5 sbx_owner=$6
sbx_put() {
  printf %s "$2" >".$1.new" && chmod "$3" ".$1.new" && mv -f -- ".$1.new" "$1"
}
sbx_put compose.yaml "$3" 600 || exit 73
sbx_settle=$7 sbx_way=$8 sbx_count=$9
shift 9
# Whoever a container runs as reads it; on the host nobody else gets into the folder.
while [ "$sbx_count" -gt 0 ]; do
  sbx_put "$1" "$2" 444 || exit 73
  sbx_count=$((sbx_count - 1))
  shift 2
done
sbx_count=$1
shift
# The file was judged by the tree that was sent, and by paths without links: whoever put a link there while it was copied must not
# have the engine follow it.
while [ "$sbx_count" -gt 0 ]; do
  sbx_so_far=workspace sbx_rest=$1
  while :; do
    if [ -L "$sbx_so_far" ]; then
      printf '%s is a link on this host, and was none when the compose file was judged: nothing is started\n' "$sbx_so_far" >&2
      exit 72
    fi
    [ -n "$sbx_rest" ] || break
    sbx_so_far=$sbx_so_far/${sbx_rest%%/*}
    case $sbx_rest in */*) sbx_rest=${sbx_rest#*/} ;; *) sbx_rest='' ;; esac
  done
  sbx_count=$((sbx_count - 1))
  shift
done
# See build_links.rs.
rm -rf .builds
sbx_builds=$1 sbx_count=$2
shift 2
[ -z "$sbx_builds" ] || mkdir .builds || exit 73
while [ "$sbx_count" -gt 0 ]; do
  ln -s -- "$2" ".builds/$1" || exit 73
  sbx_count=$((sbx_count - 1))
  shift 2
done
# A tool or an engine would make an empty folder in the place of such a file, on the host.
for sbx_clock in /etc/localtime /etc/timezone; do
  if [ ! -e "$sbx_clock" ] && grep -qF "\"source\": \"$sbx_clock\"" compose.yaml; then
    printf '%s is not on this host: it cannot be mounted\n' "$sbx_clock" >&2
    exit 72
  fi
done
# Somebody may have taken this id while the workspace came: compose would take what bears it for its own.
# shellcheck disable=SC2034 # for the pod
sbx_proved=yes sbx_id=${sbx_project#sbx-}
# shellcheck disable=SC2034 # for networks
sbx_about=$sbx_id
sbx_no_foreign() { # WORDS: those that list
  sbx_there=$("$@" "$sbx_engine" | sbx_judged "$sbx_id" "$sbx_owner")
  sbx_met=$(printf '%s\n' "$sbx_there" |
    sed -n -e 's/^failed //p' -e "s/^\([a-z]*\) foreign$sbx_cut[^$sbx_cut]*$sbx_cut\([^$sbx_cut]*\)$sbx_cut/\1 \2: /p" | head -n 10)
  [ -z "$sbx_met" ] || { printf 'nothing is started beside %s\n' "$sbx_met" >&2; exit 75; }
}
sbx_bounded 1 true
[ "$sbx_way" = clear ] || sbx_no_foreign sbx_every
# An old Python reads files as the locale says.
LC_ALL=${sbx_locale-}
# Whoever tears this sandbox down must know which engine to ask, though nobody lived to write it down elsewhere, and must
# first end what still works on it: what of this process's group has this mark.
export SBX_UP="$sbx_project"
sh -c 'read -r sbx_stat </proc/$PPID/stat; set -- "$1" ${sbx_stat##*) }; echo "$4 $1"' sh "$sbx_engine" >.up || exit 73
umask 022
# podman-compose since 1.1 makes a container with `--requires` of those it depends on, and podman starts all of them again
# with it, one-shots that have ended too. Made without that it is started behind them all the same.
# By its whole path: a tool that is told of another folder would find another file.
sbx_file=$(env pwd -P)/compose.yaml
if [ -n "$sbx_builds" ]; then
  printf %s "$sbx_builds" >.builds/compose.yaml || exit 73
  set -- "$@" -f "$sbx_file" -f "${sbx_file%/*}/.builds/compose.yaml"
else
  set -- "$@" -f "$sbx_file"
fi
[ "$sbx_calls" != apart ] || "$@" -p "$sbx_project" up --no-start --no-deps >&2 || exit
"$@" -p "$sbx_project" up -d >&2
sbx_status=$? LC_ALL=C
rm -rf .builds
# And while it was started: what is of both is of neither.
sbx_no_foreign sbx_rows_behind container
[ "$sbx_status" = 0 ] || exit "$sbx_status"
# shellcheck disable=SC2046 # ids
set -- $(sbx_of container "$sbx_there")
[ $# != 0 ] || { sbx_now; echo '[]'; exit 0; }
# Until all have run for so long or say that they are healthy; or one of them ended badly, was started again, or does not run yet.
sbx_looks=$sbx_settle sbx_format='{{.State.Status}} {{.State.ExitCode}} {{.RestartCount}}'
[ "$sbx_engine" = podman ] || sbx_format="$sbx_format{{with .State.Health}} {{.Status}}{{end}}"
while [ "$sbx_looks" -gt 0 ]; do
  sbx_states=$("$sbx_engine" inspect --type container --format "$sbx_format" "$@" 2>/dev/null </dev/null) || break
  ! printf '%s\n' "$sbx_states" | grep -qv -e '^running 0 0' -e '^exited 0 0' || break
  printf '%s\n' "$sbx_states" | grep -v ' healthy$' | grep -q '^running' || break
  sleep 1
  sbx_looks=$((sbx_looks - 1))
done
sbx_now
"$sbx_engine" inspect --type container "$@" 2>/dev/null </dev/null || :
