# What the host says of itself; resolve.sh and runtime.sh stand before it. Parameters: the workspace root, `yes` for the
# inventory, the mode for sbx_runtime, how many further roots, the further roots, then the words of a compose command.
#
# Prints `key=value` lines. A line that begins with a blank belongs to the line before it: that is how text of which a
# host's user decides every byte (names, manifests, labels) travels without being mistaken for a key.

export LC_ALL=C
sbx_workspace=$1 sbx_inventory=$2 sbx_how=$3 sbx_more=$4
shift 4

sbx_indent() { sed 's/^/ /' && echo; }

# sbx_say KEY FILE: its first line. The builtins read /proc without a new process; each process costs a millisecond.
sbx_say() { [ ! -r "$2" ] || { read -r sbx_line <"$2"; printf '%s=%s\n' "$1" "$sbx_line"; }; }

sbx_system() {
  for sbx_file in /etc/machine-id /var/lib/dbus/machine-id; do
    [ ! -r "$sbx_file" ] || { sbx_say machine_id "$sbx_file"; break; }
  done
  sbx_say boot_id /proc/sys/kernel/random/boot_id
  printf 'hostname=%s\n' "$(uname -n)"
  printf 'kernel=%s\n' "$(uname -sr)"
  printf 'id=%s\n' "$(id)"
  printf 'cpus=%s\n' "$(nproc 2>/dev/null || getconf _NPROCESSORS_ONLN 2>/dev/null)"
  sbx_say load /proc/loadavg
  [ ! -r /proc/meminfo ] || while read -r sbx_line; do
    printf 'mem=%s\n' "$sbx_line"
    case $sbx_line in Cached:*) break ;; esac
  done </proc/meminfo
  # Read, not sourced: it is somebody's file, not our script.
  for sbx_file in /etc/os-release /usr/lib/os-release; do
    [ -r "$sbx_file" ] || continue
    while read -r sbx_line; do
      case $sbx_line in PRETTY_NAME=*) printf 'os=%s\n' "${sbx_line#*=}" ;; esac
    done <"$sbx_file"
    break
  done
}

sbx_tools() {
  for sbx_tool in tar rsync zstd gzip timeout setsid nice ionice base64 sha256sum stat df flock unshare ssh curl \
    bash sudo docker docker-compose podman podman-compose; do
    ! sbx_has "$sbx_tool" || { printf 'tool.%s=' "$sbx_tool"; command -v "$sbx_tool"; }
  done
  ! sbx_has tar || printf 'tar=%s\n' "$(sbx_bounded 2 tar --version 2>/dev/null </dev/null | head -n 1)"
}

# sbx_disk ROOT: its file system, by the deepest of its folders that is there: the root may not be, and a probe does not make
# it. Nothing of this shell touches them before a program did that can be ended: on a dead mount that hangs. sbx_dead: yes.
sbx_disk() {
  sbx_dead=
  sbx_resolve "$1"
  printf 'root=%s\n' "$sbx_path"
  set -- "$sbx_path"
  while :; do
    case $sbx_path in ?*/*) sbx_path=${sbx_path%/*} ;; *) break ;; esac
    set -- "$@" "$sbx_path"
  done
  # -f prints numbers only; df's columns hold names with blanks and whatever a mount is called.
  sbx_bounded 5 stat -f -c 'disk=%S %b %f %a %c %d %n' -- "$@" / 2>/dev/null </dev/null
  case $? in
    124 | 137 | 143) sbx_dead=yes ;;
    0) ;;
    # A folder that is not there, or a stat that knows no formats.
    *) stat -f -c %S / >/dev/null 2>&1 || sbx_df "$@" / ;;
  esac
  [ -z "$sbx_dead" ] || echo disk.late=yes
}

sbx_df() {
  echo disk.df=
  sbx_bounded 5 df -Pk -- "$@" 2>/dev/null </dev/null | sed -n 's/^/ /; 2p'
}

# sbx_answers ROOT: whether its file system does.
sbx_answers() {
  sbx_bounded 5 stat -f -- "$1" >/dev/null 2>&1 </dev/null
  case $? in 124 | 137 | 143) return 1 ;; esac
}

# sbx_directories ROOT: its sandboxes and archives, and their manifests.
sbx_directories() {
  if [ ! -d "$1" ]; then
    if [ -e "$1" ] || [ -L "$1" ]; then printf 'failed=%s is not a directory\n' "$1"; else echo absent=yes; fi
    return
  fi
  # Without this a root that we may not list looks like an empty one.
  if [ ! -r "$1" ] || [ ! -x "$1" ] || ! cd -P -- "$1" 2>/dev/null; then
    printf 'failed=%s cannot be read\n' "$1"
    return
  fi
  if [ -f .sandboxer-root ] && [ ! -L .sandboxer-root ]; then
    printf 'mark=%s\n' "$(sbx_bounded 5 head -c 64 .sandboxer-root 2>/dev/null </dev/null | tr -dc '0-9a-f')"
  fi
  set --
  for sbx_dir in sbx-*; do
    if [ ! -d "$sbx_dir" ] && [ ! -L "$sbx_dir" ]; then continue; fi
    case $sbx_dir in
      *[!a-z0-9-]*)
        echo dir=
        printf '%s\n' "$sbx_dir" | sbx_indent
        ;;
      *)
        printf 'dir=%s\n' "$sbx_dir"
        if sbx_has_manifest "$sbx_dir"; then
          printf 'manifest=%s\n' "$sbx_dir"
          set -- "$@" "./$sbx_dir/manifest.json"
        fi
        ;;
    esac
  done
  [ $# = 0 ] || sbx_manifests 257 '' "$@"
  set --
  [ -L snapshots ] || for sbx_dir in snapshots/snap-*; do
    case $sbx_dir in *[!a-z0-9/-]*) continue ;; esac
    if [ -L "$sbx_dir" ] || [ ! -d "$sbx_dir" ]; then continue; fi
    printf 'archive=%s\n' "$sbx_dir"
    ! sbx_has_manifest "$sbx_dir" || set -- "$@" "./$sbx_dir/manifest.json"
  done
  [ $# = 0 ] || sbx_manifests 2049 '^  "(id|owner)": |^    "(sandbox_id|created_at|expires_at|bytes|name)": |^      "protect": ' "$@"
}

sbx_has_manifest() {
  [ ! -L "$1" ] && [ -f "$1/manifest.json" ] && [ ! -L "$1/manifest.json" ] && [ -r "$1/manifest.json" ]
}

# sbx_manifests BLOCKS PATTERN FILE...: lines of files, each behind its file's name. Only regular ones of a reasonable size:
# one may be 100 MB, or have become a fifo.
sbx_manifests() {
  sbx_blocks=$1 sbx_pattern=$2
  shift 2
  echo manifests=
  sbx_bounded 10 find "$@" -maxdepth 0 -type f -size "-$sbx_blocks" -exec grep -sHE -e "$sbx_pattern" /dev/null '{}' + 2>/dev/null </dev/null | sbx_indent
}

# sbx_list KIND ENGINE COMMAND...: its output beneath a `list=` line, its status after that. Half a list must not pass for a
# whole one.
sbx_list() {
  sbx_what="$1 $2"
  shift 2
  printf 'list=%s\n' "$sbx_what"
  sbx_out=$(sbx_again 10 "$@" 2>/dev/null </dev/null)
  sbx_ended=$?
  printf '%s\n' "$sbx_out" | sbx_indent
  [ "$sbx_ended" = 0 ] || {
    echo "failed=the ${sbx_what% *}s of ${sbx_what#* }: status $sbx_ended"
    sbx_bounded 10 "$@" 2>&1 >/dev/null </dev/null | tail -n 3 | sbx_indent
  }
}

# One after the other: two lists longer than a pipe's buffer would mix.
sbx_engines() {
  sbx_labels='"sandbox":{{json (.Label "sandboxer.id")}},"owner":{{json (.Label "sandboxer.owner")}},"profile":{{json (.Label "sandboxer.profile")}},"project":{{json (.Label "com.docker.compose.project")}}'
  # shellcheck disable=SC2154 # set by sbx_runtime
  for sbx_engine in $SBX_ENGINES; do
    case $sbx_engine in
      docker)
        sbx_list container docker docker ps -a --no-trunc --format "{\"id\":\"{{.ID}}\",\"up\":{{json .Status}},$sbx_labels,\"name\":{{json .Names}},\"created\":{{json .CreatedAt}}}"
        sbx_running=$(printf '%s\n' "$sbx_out" | sed -n 's/^{"id":"\([0-9a-f]\{64\}\)","up":"Up .*,"sandbox":"[^"]\{1,\}".*/\1/p')
        # A hint of whom to ask; what is asked says what is.
        # shellcheck disable=SC2086 # each id is a word
        [ -z "$sbx_running" ] || sbx_running=$(sbx_bounded 5 docker inspect --type container -f '{{.Id}} {{.State.Pid}}' $sbx_running 2>/dev/null </dev/null)
        # shellcheck disable=SC2086 # each id and number is a word
        [ -z "$sbx_running" ] || sbx_groups docker $sbx_running
        # shellcheck disable=SC2016 # text for another shell
        sbx_list network docker sh -c 'ids=$(docker network ls -q) || exit; [ -z "$ids" ] || exec docker network inspect -f "$1" $ids' sh '{"name":{{json .Name}},"created":{{json .Created}},"labels":{{json .Labels}},"subnets":{{json .IPAM.Config}}}'
        sbx_list volume docker docker volume ls --format "{$sbx_labels,\"name\":{{json .Name}}}"
        echo pools=docker
        sbx_bounded 5 docker info -f '{{json .DefaultAddressPools}}' 2>/dev/null </dev/null | sbx_indent
        ;;
      podman)
        sbx_list container podman podman ps -a --no-trunc --format '{"id":"{{.ID}}","pid":{{.Pid}},"name":{{json .Names}},"labels":{{json .Labels}},"created":{{json .CreatedAt}}}'
        sbx_running=$(printf '%s\n' "$sbx_out" | sed -n '/"sandboxer\.id":"/s/^{"id":"\([0-9a-f]\{64\}\)","pid":\([1-9][0-9]*\),.*/\1 \2/p')
        # shellcheck disable=SC2086 # each id and number is a word
        [ -z "$sbx_running" ] || sbx_groups podman $sbx_running
        sbx_list pod podman podman pod ls --format '{"name":{{json .Name}},"labels":{{json .Labels}}}'
        # Its template for networks has the labels as one text, from which they cannot be told apart.
        sbx_list network podman podman network ls --format json
        sbx_list volume podman podman volume ls --format '{"name":{{json .Name}},"labels":{{json .Labels}}}'
        ;;
    esac
  done
}

# sbx_groups ENGINE [ID PID]...: the control groups that running containers are in. Of those that the host does not show, what
# the engine says that they use.
sbx_groups() {
  sbx_asked=$1 sbx_files='' sbx_ids=''
  shift
  while [ $# -gt 1 ]; do
    # No number, or 0: it has ended since.
    case $1:$2 in
      *[!0-9a-f]*:* | *:*[!0-9]* | *:0) ;;
      *)
        sbx_ids="$sbx_ids $1"
        [ ! -r "/proc/$2/cgroup" ] || sbx_files="$sbx_files /proc/$2/cgroup"
        ;;
    esac
    shift 2
  done
  # shellcheck disable=SC2086 # each file is a word
  sbx_found=$([ -z "$sbx_files" ] || grep -sHE '^(0::|[0-9]+:([^:]*,)?(cpuacct|memory)(,[^:]*)?:)' $sbx_files </dev/null)
  echo cgroups=
  printf '%s\n' "$sbx_found" | sbx_indent
  set --
  for sbx_id in $sbx_ids; do
    case $sbx_found in
      *"$sbx_id"*) ;;
      *)
        set -- "$@" "$sbx_id"
        echo "unseen=$sbx_asked $sbx_id"
        ;;
    esac
  done
  if [ $# -gt 0 ]; then
    echo "stats=$sbx_asked"
    sbx_bounded 5 "$sbx_asked" stats --no-stream --format '{{.ID}} {{.CPUPerc}} {{.MemUsage}}' "$@" 2>/dev/null </dev/null | sbx_indent
  fi
}

# sbx_root ROOT DEAD: what is in it.
sbx_root() {
  if [ -n "$2" ]; then
    printf 'failed=%s: its file system did not answer in 5 s\n' "$1"
  else
    printf 'inventory=%s\n' "$1"
    (sbx_directories "$1")
  fi
}

sbx_system
sbx_tools
sbx_bounded 1 true
sbx_disk "$sbx_workspace"
if [ "$sbx_inventory" = yes ]; then
  sbx_resolve "$sbx_workspace"
  sbx_first=$sbx_path
  sbx_root "$sbx_path" "$sbx_dead"
  [ ! -r /proc/net/route ] || sed '1d; s/^/route4=/' /proc/net/route
fi
while [ "$sbx_more" -gt 0 ]; do
  if [ "$sbx_inventory" = yes ]; then
    sbx_resolve "$1"
    if sbx_answers "$sbx_path"; then sbx_dead=''; else sbx_dead=yes; fi
    [ "$sbx_path" = "$sbx_first" ] || sbx_root "$sbx_path" "$sbx_dead"
  fi
  sbx_more=$((sbx_more - 1))
  shift
done
sbx_runtime "$sbx_how" "$@"
[ "$sbx_inventory" != yes ] || sbx_engines
# Last, so that what comes after it on the way to us is half a round trip and nothing else.
printf 'now=%s\n' "$(date +%s.%N)"
