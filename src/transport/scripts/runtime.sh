# Which compose runtimes and container engines answer. Function definitions only: another script is put behind it and
# gets the answer in the same round trip. POSIX sh; the host's own tools.
#
#   sbx_runtime all|first [WORD...]
#     WORD...   the compose command that the operator named; without it the known ones are tried
#     all       every runtime;  first: stops at `docker compose` if that works
#   sbx_runtime known all|first FINGERPRINT ENGINE [WORD...]
#     the same, but where the fingerprint is this one no compose tool is asked: `first`: only whether ENGINE answers, `all`: which
#     engines do. Where it does not, everything is.
#   sbx_runtime fingerprint [WORD...]   nothing but that
#   sbx_runtime engine ENGINE           only whether it answers, and where it does not, which one does
#     ENGINE    `docker`, `podman`, or `behind`: podman's socket behind docker's client
#     prints `rt.TAG=TEXT` lines for the parser in probe/runtime.rs and sets
#     SBX_ENGINES to the engines that answered (`docker`, `podman`, both or none), for the script behind it.
#   sbx_bounded SECONDS COMMAND...   runs it, for at most so long.
#   sbx_again SECONDS COMMAND...     the same, more than once where it fails.

# A dockerd that hangs answers nothing for ever; so would we. `timeout -k` is in coreutils and in busybox since 1.30.
sbx_bounded() {
  sbx_limit=$1
  shift
  if [ -z "${SBX_TIMEOUT:-}" ]; then
    if timeout -k 1 5 true >/dev/null 2>&1; then SBX_TIMEOUT=yes; else SBX_TIMEOUT=no; fi
  fi
  if [ "$SBX_TIMEOUT" = yes ]; then
    timeout -k 1 "$sbx_limit" "$@"
    return
  fi
  "$@" &
  sbx_pid=$!
  # The watch holds none of our pipes: whoever reads them would wait for its sleep.
  (
    sleep "$sbx_limit"
    kill -KILL "$sbx_pid"
  ) </dev/null >/dev/null 2>&1 3>&- &
  sbx_watch=$!
  wait "$sbx_pid"
  sbx_status=$?
  kill -KILL "$sbx_watch" 2>/dev/null
  return "$sbx_status"
}

# sbx_again SECONDS WORDS...: as sbx_bounded, up to three times where it ends by itself and badly; what it wrote the last time.
# Podman 4 lists its volumes and then looks at each one: what somebody removed between the two fails the whole list.
sbx_again() {
  # shellcheck disable=SC2034 # it counts
  for sbx_try in 1 2 3; do
    sbx_answer=$(sbx_bounded "$@")
    sbx_ended=$?
    # It was late, is not there, or was ended. 125 is how podman fails.
    case $sbx_ended in 0 | 124 | 12[6-9] | 1[3-9]? | 2??) break ;; esac
  done
  printf '%s\n' "$sbx_answer"
  return "$sbx_ended"
}

# sbx_tag TAG COMMAND...: its first 3,000 bytes and its status as tagged lines. Short enough to be one write to a pipe, so
# that several at once do not mix.
sbx_tag() {
  sbx_name=$1
  shift
  {
    {
      "$@" 2>&1 </dev/null
      printf 'rt.%s.status=%s\n' "$sbx_name" "$?" >&3
    } | {
      head -c 3000
      echo
    } | LC_ALL=C sed "s/^/rt.$sbx_name=/"
  } 3>&1
}

# Podman has no id; its storage's folder and inode stand for it. `podman info` says them too, but takes 0.3 s (it asks the
# package manager about its helpers); the debug log of a `ps` has the folder in 0.05 s.
sbx_podman() {
  sbx_log=$(sbx_bounded 5 podman --log-level=debug ps -q 2>&1) || {
    printf '%s\n' "$sbx_log" | grep -v level=debug | tail -n 5
    return 1
  }
  sbx_root=${sbx_log#*msg=\"Using graph root }
  if [ "$sbx_root" = "$sbx_log" ]; then
    sbx_root=$(sbx_bounded 5 podman info -f '{{.Store.GraphRoot}}' 2>/dev/null) || return
  else
    sbx_root=${sbx_root%%\"*}
  fi
  printf 'sbx|%s|%s\n' "$(sbx_inode "$sbx_root")" "$sbx_root"
}

sbx_inode() {
  # shellcheck disable=SC2012
  ls -di -- "$1" 2>/dev/null | { read -r sbx_number _ && printf '%s' "$sbx_number"; }
}

sbx_docker() {
  sbx_info=$(sbx_bounded 5 docker info -f 'sbx|{{.ID}}|{{.ServerVersion}}|{{json .SecurityOptions}}|{{.DockerRootDir}}' 2>&1)
  sbx_status=$?
  printf '%s\n' "$sbx_info"
  # Some clients end with 0 although nobody answered: what the engine would have said is empty then.
  case $sbx_info in *'sbx|'*'||'*) sbx_status=1 ;; esac
  # Behind a docker client may be podman's socket; then the folder's inode identifies it.
  case $sbx_info in *'sbx|'*'|/'*) printf 'inode|%s\n' "$(sbx_inode "/${sbx_info##*|/}")" ;; esac
  return "$sbx_status"
}

sbx_has() { command -v "$1" >/dev/null 2>&1; }

sbx_ask_docker() {
  sbx_has docker || return
  sbx_tag docker sbx_docker &
  sbx_tag docker-server sbx_bounded 5 docker version -f 'sbx|{{.Server.Version}}{{range .Server.Components}}|{{.Name}}{{end}}' &
}

sbx_ask_podman() {
  sbx_has podman || return
  sbx_tag podman sbx_podman &
  sbx_tag podman-version sbx_bounded 5 podman --version &
}

# The calls of one stage run side by side: each is slow for a reason of its own.
sbx_stage() {
  case $1 in
    docker)
      sbx_ask_docker
      ! sbx_has docker || sbx_tag docker-compose-v2 sbx_bounded 5 docker compose version &
      ;;
    podman)
      sbx_ask_podman
      ! sbx_has docker-compose || sbx_tag docker-compose sbx_bounded 5 docker-compose version &
      ! sbx_has podman-compose || sbx_tag podman-compose sbx_bounded 5 podman-compose version &
      ;;
    override)
      shift
      sbx_ask_docker
      sbx_ask_podman
      sbx_tag override sbx_bounded 5 "$@" version &
      ;;
    # Its identity, and no more: a client's start costs 50 ms of a processor. Behind docker's client podman makes up a new id each time.
    docker-engine) ! sbx_has docker || sbx_tag docker sbx_docker & ;;
    podman-engine) ! sbx_has podman || sbx_tag podman sbx_podman & ;;
    behind-engine) sbx_ask_docker ;;
    engines)
      sbx_ask_docker
      sbx_ask_podman
      ;;
  esac
  wait
}

# Whole lines only: a tool's own text must not pass for a status.
sbx_succeeded() {
  case "
$sbx_said
" in *"
rt.$1.status=0
"*) return 0 ;; esac
  return 1
}

# sbx_fingerprint WORD...: what a detection rests on, as one hash: the machine and its boot, the account, what selects an engine and
# its storage, the engine's socket, and each file that may be a tool, with what links lead to. Nothing where it cannot be made.
# The environment goes into the hash only: it may hold a password. Two programs are started, whatever there is.
sbx_fingerprint() (
  sbx_count=$#
  sbx_config=${DOCKER_CONFIG:-${HOME:-}/.docker} sbx_containers=${XDG_CONFIG_HOME:-${HOME:-}/.config}/containers
  sbx_socket=${DOCKER_HOST:-} sbx_run=${XDG_RUNTIME_DIR:-/run}
  sbx_text="$#
$*
$PATH
${HOME:-}
$sbx_socket ${DOCKER_CONTEXT:-} $sbx_config $sbx_run
${CONTAINER_HOST:-} ${CONTAINER_CONNECTION:-} ${CONTAINERS_CONF:-} ${CONTAINERS_STORAGE_CONF:-} ${STORAGE_DRIVER:-}"
  for sbx_file in /etc/machine-id /var/lib/dbus/machine-id /proc/sys/kernel/random/boot_id; do
    [ ! -r "$sbx_file" ] || { read -r sbx_line <"$sbx_file"; sbx_text="$sbx_text
$sbx_line"; }
  done
  IFS=:
  for sbx_word in "$@" docker docker-compose podman podman-compose; do
    case $sbx_word in
      */*) set -- "$@" "$sbx_word" ;;
      *) for sbx_dir in $PATH; do
        [ ! -f "${sbx_dir:-.}/$sbx_word" ] || set -- "$@" "${sbx_dir:-.}/$sbx_word"
      done ;;
    esac
  done
  shift "$sbx_count"
  for sbx_dir in "$sbx_config" /usr/local/lib/docker /usr/local/libexec/docker /usr/lib/docker /usr/libexec/docker; do
    set -- "$@" "$sbx_dir/cli-plugins/docker-compose"
  done
  for sbx_dir in /usr/share/containers /etc/containers "$sbx_containers"; do
    set -- "$@" "$sbx_dir/containers.conf" "$sbx_dir/storage.conf"
  done
  sbx_files=$(stat -L -c '%n %d:%i:%s %y %z' -- "$@" "$sbx_config/config.json" "$sbx_config"/contexts/meta/*/meta.json \
    /etc/machine-id /var/run/docker.sock "$sbx_run/docker.sock" "${sbx_socket#unix://}" "${CONTAINERS_CONF:-}" "${CONTAINERS_STORAGE_CONF:-}" \
    2>/dev/null </dev/null)
  [ -n "$sbx_files" ] || return
  sbx_sum=$(printf '%s\n' "$sbx_text" "$sbx_files" | sha256sum 2>/dev/null) && printf '%s' "${sbx_sum%% *}"
)

# sbx_program_of ENGINE: the program that it is asked by.
sbx_program_of() { if [ "$1" = behind ]; then echo docker; else echo "$1"; fi; }

# sbx_known SCOPE FINGERPRINT ENGINE: whether what was found before still holds; sbx_said is what the engines say then.
sbx_known() {
  if [ -z "$sbx_print" ] || [ "$sbx_print" != "$2" ]; then return 1; fi
  if [ "$1" = all ]; then sbx_said=$(sbx_stage engines); else sbx_said=$(sbx_stage "$3-engine"); fi
  sbx_succeeded "$(sbx_program_of "$3")" && echo rt.known=yes
}

# sbx_detect SCOPE WORD...: sbx_said is what tools and engines say.
sbx_detect() {
  sbx_scope=$1
  shift
  if [ $# -gt 0 ]; then
    sbx_said=$(sbx_stage override "$@")
  elif [ "$sbx_scope" = first ]; then
    sbx_said=$(sbx_stage docker)
    if ! sbx_succeeded docker || ! sbx_succeeded docker-compose-v2; then
      sbx_said="$sbx_said
$(sbx_stage podman)"
    fi
  else
    sbx_said=$(
      sbx_stage docker &
      sbx_stage podman &
      wait
    )
  fi
}

sbx_runtime() {
  sbx_mode=$1
  shift
  sbx_bounded 1 true
  SBX_ENGINES='' sbx_said='' sbx_print=''
  case $sbx_mode in
    known)
      sbx_mode=$1 sbx_before=$2 sbx_program=$3
      shift 3
      # Before anything is asked: what changes from here on shows the next time.
      sbx_print=$(sbx_fingerprint "$@")
      sbx_known "$sbx_mode" "$sbx_before" "$sbx_program" || sbx_detect "$sbx_mode" "$@"
      ;;
    fingerprint) sbx_print=$(sbx_fingerprint "$@") ;;
    engine)
      sbx_said=$(sbx_stage "$1-engine")
      sbx_succeeded "$(sbx_program_of "$1")" || sbx_said=$(sbx_stage engines)
      shift
      ;;
    *)
      sbx_print=$(sbx_fingerprint "$@")
      sbx_detect "$sbx_mode" "$@"
      ;;
  esac
  [ -z "$sbx_print" ] || printf 'rt.fingerprint=%s\n' "$sbx_print"
  ! sbx_succeeded docker || SBX_ENGINES=docker
  ! sbx_succeeded podman || SBX_ENGINES="${SBX_ENGINES:+$SBX_ENGINES }podman"
  printf '%s\n' "$sbx_said"
  [ $# = 0 ] || printf 'rt.word=%s\n' "$@"
  sbx_socket=${DOCKER_HOST:-unix:///var/run/docker.sock}
  [ ! -S "${sbx_socket#unix://}" ] || printf 'rt.socket=%s\n' "$sbx_socket"
  printf 'rt.uid=%s\n' "$(id -u)"
}
