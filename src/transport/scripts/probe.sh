# What the host says of itself; runtime.sh stands before it. Parameters: the workspace root, `yes` for the inventory,
# the mode for sbx_runtime, how many further roots, the further roots, then the words of a compose command.
#
# Prints `key=value` lines. A line that begins with a blank belongs to the line before it: that is how text of which a
# host's user decides every byte (names, manifests, labels) travels without being mistaken for a key.

export LC_ALL=C
sbx_workspace=$1 sbx_inventory=$2 sbx_how=$3 sbx_more=$4
shift 4

# `~` and relative names are meant in the account's home, whatever folder the shell is in.
# shellcheck disable=SC2088 # the tilde is a text here
sbx_resolve() {
  sbx_path=$1
  case $sbx_path in
    '~') sbx_path=${HOME:-/} ;;
    '~/'*) sbx_path=${HOME:-}/${sbx_path#??} ;;
    /*) ;;
    *) sbx_path=${HOME:-}/$sbx_path ;;
  esac
  while :; do
    case $sbx_path in
      /) return ;;
      */) sbx_path=${sbx_path%/} ;;
      *) return ;;
    esac
  done
}

sbx_indent() { sed 's/^/ /' && echo; }

# The builtins read /proc without a new process; each process costs a millisecond.
sbx_system() {
  for sbx_file in /etc/machine-id /var/lib/dbus/machine-id; do
    [ ! -r "$sbx_file" ] || { read -r sbx_line <"$sbx_file"; printf 'machine_id=%s\n' "$sbx_line"; break; }
  done
  sbx_file=/proc/sys/kernel/random/boot_id
  [ ! -r "$sbx_file" ] || { read -r sbx_line <"$sbx_file"; printf 'boot_id=%s\n' "$sbx_line"; }
  printf 'hostname=%s\n' "$(uname -n)"
  printf 'kernel=%s\n' "$(uname -sr)"
  printf 'id=%s\n' "$(id)"
  printf 'cpus=%s\n' "$(nproc 2>/dev/null || getconf _NPROCESSORS_ONLN 2>/dev/null)"
  [ ! -r /proc/loadavg ] || { read -r sbx_line </proc/loadavg; printf 'load=%s\n' "$sbx_line"; }
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

# The root may not be there yet, and a probe does not make it.
sbx_disk() {
  sbx_resolve "$sbx_workspace"
  printf 'root=%s\n' "$sbx_path"
  while [ -n "$sbx_path" ] && [ ! -d "$sbx_path" ]; do
    case $sbx_path in
      */*) sbx_path=${sbx_path%/*} ;;
      *) sbx_path= ;;
    esac
  done
  printf 'disk.path=%s\n' "${sbx_path:-/}"
  # -f prints numbers only; df's columns hold names with blanks and whatever a mount is called.
  if ! { printf 'disk.stat=' && sbx_bounded 5 stat -f -c '%S %b %a' -- "${sbx_path:-/}" 2>/dev/null; }; then
    echo
    echo disk.df=
    sbx_bounded 5 df -Pk -- "${sbx_path:-/}" 2>/dev/null | tail -n 1 | sbx_indent
  fi
}

# Only a regular file, and only its beginning: it may be a fifo, a link to something else, or 100 MB.
sbx_manifest() {
  if [ -L "$1" ] || [ ! -f "$1" ] || [ ! -r "$1" ]; then return; fi
  echo manifest=
  head -c 16384 <"$1" | sbx_indent
}

sbx_directories() {
  [ -d "$1" ] || { [ ! -e "$1" ] || printf 'failed=%s is not a directory\n' "$1"; return; }
  # Without this a root that we may not list looks like an empty one.
  if [ ! -r "$1" ] || [ ! -x "$1" ]; then
    printf 'failed=%s cannot be read\n' "$1"
    return
  fi
  for sbx_dir in "${1%/}"/sbx-*; do
    if [ ! -d "$sbx_dir" ] && [ ! -L "$sbx_dir" ]; then continue; fi
    case ${sbx_dir##*/} in
      *[!a-z0-9-]*)
        echo dir=
        printf '%s\n' "${sbx_dir##*/}" | sbx_indent
        ;;
      *) printf 'dir=%s\n' "${sbx_dir##*/}" ;;
    esac
    [ -L "$sbx_dir" ] || sbx_manifest "$sbx_dir/manifest.json"
  done
}

# sbx_list KIND COMMAND...: its output beneath a `list=` line, its status after that. Half a list must not pass for a whole one.
sbx_list() {
  printf 'list=%s %s\n' "$1" "$2"
  shift
  sbx_out=$(sbx_again 10 "$@" 2>/dev/null </dev/null)
  sbx_ended=$?
  printf '%s\n' "$sbx_out" | sbx_indent
  [ "$sbx_ended" = 0 ] || {
    echo "failed=$1 $2: status $sbx_ended"
    sbx_bounded 10 "$@" 2>&1 >/dev/null </dev/null | tail -n 3 | sbx_indent
  }
}

# One after the other: two lists longer than a pipe's buffer would mix.
sbx_engines() {
  sbx_labels='{{json (.Label "sandboxer.id")}},{{json (.Label "sandboxer.owner")}},{{json (.Label "com.docker.compose.project")}}'
  # shellcheck disable=SC2154 # set by sbx_runtime
  for sbx_engine in $SBX_ENGINES; do
    case $sbx_engine in
      docker)
        sbx_list container docker ps -a --format "[{{json .Names}},$sbx_labels]"
        sbx_list network docker network ls --format "[{{json .Name}},$sbx_labels]"
        sbx_list volume docker volume ls --format "[{{json .Name}},$sbx_labels]"
        ;;
      podman)
        sbx_list container podman ps -a --format '[{{json .Names}},{{json .Labels}}]'
        sbx_list pod podman pod ls --format '[{{json .Name}},{{json .Labels}}]'
        # Its template for networks has the labels as one text, from which they cannot be told apart.
        sbx_list network podman network ls --format json
        sbx_list volume podman volume ls --format '[{{json .Name}},{{json .Labels}}]'
        ;;
    esac
  done
}

sbx_system
sbx_tools
sbx_disk
sbx_left=$sbx_more
if [ "$sbx_inventory" = yes ]; then
  sbx_resolve "$sbx_workspace"
  printf 'inventory=%s\n' "$sbx_path"
  sbx_directories "$sbx_path"
fi
while [ "$sbx_left" -gt 0 ]; do
  if [ "$sbx_inventory" = yes ]; then
    sbx_resolve "$1"
    printf 'inventory=%s\n' "$sbx_path"
    sbx_directories "$sbx_path"
  fi
  sbx_left=$((sbx_left - 1))
  shift
done
sbx_runtime "$sbx_how" "$@"
[ "$sbx_inventory" != yes ] || sbx_engines
# Last, so that what comes after it on the way to us is half a round trip and nothing else.
printf 'now=%s\n' "$(date +%s.%N)"
