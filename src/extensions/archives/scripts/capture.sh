# Writes a sandbox's volumes and workspace into one archive, as a part that nobody takes for whole. Parameters: the root,
# the id, the owners (blanks between), the snapshot's id, the expected host, the engine's program (empty: none is
# known), its expected id, what to do to containers (`live`, `pause`, `stop`, `auto`), the grace in seconds, then patterns.
umask 077
sbx_asked=$1 sbx_id=$2 sbx_owners=$3 sbx_owner=${3%% *} sbx_snapshot=$4 sbx_engine=$6 sbx_want_engine=$7 sbx_mode=$8 sbx_grace=$9
sbx_project=sbx-$sbx_id
sbx_prove_host "$5"
shift 9

# ---- nothing is touched before this is known ----------------------------------------------------------------------
sbx_lacks=
for sbx_tool in tar mkdir mkfifo tee find du sync; do sbx_has "$sbx_tool" || sbx_lacks="$sbx_lacks $sbx_tool"; done
sbx_has sha256sum || sbx_has openssl || sbx_lacks="$sbx_lacks sha256sum"
if sbx_has zstd; then sbx_format=tar.zst; elif sbx_has gzip; then sbx_format=tar.gz; else sbx_lacks="$sbx_lacks zstd"; fi
for sbx_tool in $sbx_lacks; do printf 'missing=%s\n' "$sbx_tool"; done
[ -z "$sbx_lacks" ] || exit 0
sbx_prove_root "$sbx_asked" "$sbx_owners" gone || sbx_fail gone "$sbx_root is not there"
cd -P -- "$sbx_project" 2>/dev/null || { sbx_nowhere; sbx_fail gone "$sbx_root/$sbx_project is not there"; }
sbx_here=${sbx_root%/}/$sbx_project
[ "$(env pwd -P)" = "$sbx_here" ] || sbx_fail gone "$sbx_here is a link"
[ "$(sbx_whose . "$sbx_id" "$sbx_owners")" = ours ] || sbx_fail gone "its manifest.json does not name this sandbox and this installation"
[ -d workspace ] && [ ! -L workspace ] || sbx_fail gone "$sbx_here/workspace is not there"
[ $# = 0 ] || tar -X /dev/null -cf /dev/null manifest.json 2>/dev/null || sbx_fail exclude "$(tar -X /dev/null -cf /dev/null manifest.json 2>&1 | head -n 1)"
sbx_volumes='' sbx_running='' sbx_then=''
sbx_nl='
'
# sbx_inspected FORMAT CONTAINER...: what the engine says of each; its words where it fails. One that went away meanwhile is
# not there, and that is no failure.
sbx_inspected() {
  sbx_form=$1 sbx_answers=''
  shift
  [ $# != 0 ] || return 0
  sbx_answer=$("$sbx_engine" inspect --type container -f "$sbx_form" "$@" 2>/dev/null </dev/null) && { printf '%s\n' "$sbx_answer"; return; }
  for sbx_one; do
    if sbx_answer=$("$sbx_engine" inspect --type container -f "$sbx_form" "$sbx_one" 2>/dev/null </dev/null); then
      sbx_answers=$sbx_answers$sbx_answer$sbx_nl
    else
      sbx_answer=$("$sbx_engine" inspect --type container -f '' "$sbx_one" 2>&1 >/dev/null </dev/null)
      case $sbx_answer in *"o such container"*) ;; *) printf '%s\n' "${sbx_answer:-"$sbx_engine does not tell of its containers"}"; return 1 ;; esac
    fi
  done
  printf '%s' "$sbx_answers"
}
# sbx_standing: each of its containers as `CREATED STATE ID STARTED NAME`, the oldest first: that is the order in which compose
# made them. The engine's words where it fails.
sbx_standing() {
  sbx_ids=$(sbx_ours "$sbx_engine" container "$sbx_id" "$sbx_owners" --filter "label=com.docker.compose.project=$sbx_project") || { printf '%s\n' "$sbx_ids"; return 1; }
  # shellcheck disable=SC2086
  sbx_answer=$(sbx_inspected '{{json .Created}} {{.State.Status}} {{.Id}} {{json .State.StartedAt}} {{.Name}}' $sbx_ids) || { printf '%s\n' "$sbx_answer"; return 1; }
  printf '%s\n' "$sbx_answer" | sort
}
# sbx_in_state STATES: the ids of those.
sbx_in_state() { printf '%s\n' "$sbx_then" | sed -nE "s/^[^ ]* ($1) ([^ ]*) .*/\\2/p"; }
if [ -n "$sbx_engine" ]; then
  sbx_has "$sbx_engine" || sbx_fail engine "$sbx_engine is not installed any more"
  if [ -n "$sbx_want_engine" ]; then
    sbx_now=$(sbx_engine_id "$sbx_engine" "$sbx_want_engine")
    [ -n "$sbx_now" ] || sbx_fail engine "$("$sbx_engine" info 2>&1 >/dev/null </dev/null | tail -n 3)"
    [ "$sbx_now" = "$sbx_want_engine" ] || sbx_fail identity "this engine is $sbx_now, the sandbox was made on $sbx_want_engine"
  fi
  sbx_volumes=$(sbx_ours "$sbx_engine" volume "$sbx_id" "$sbx_owners") || sbx_fail engine "$sbx_volumes"
  # What an earlier one left held has to be let go before this one writes down what it holds, and by nobody else's script.
  if [ -f .packing ] && read -r sbx_pid sbx_since <.packing; then
    case $sbx_pid in '' | *[!0-9]*) sbx_since='' ;; esac
    [ -z "$sbx_since" ] || [ "$(sbx_started "$sbx_pid")" != "$sbx_since" ] || sbx_fail busy "the script of an earlier snapshot is still at work, as process $sbx_pid"
  fi
  sbx_said=$(sbx_let_go) || sbx_fail engine "$sbx_said"
  sbx_then=$(sbx_standing) || sbx_fail engine "$sbx_then"
  sbx_running=$(sbx_in_state running)
  # An engine can stop one that it is about to start again, and not pause it.
  [ "$sbx_mode" != stop ] || sbx_running=$(sbx_in_state 'running|restarting')
fi
sbx_archives=${sbx_root%/}/snapshots
trap 'sbx_drop_empty; rmdir -- "$sbx_archives" 2>/dev/null' EXIT # for a refusal
mkdir -p -- "$sbx_archives" 2>/dev/null
[ -d "$sbx_archives" ] && [ ! -L "$sbx_archives" ] || sbx_fail root "$(mkdir -- "$sbx_archives" 2>&1)"
sbx_at=$sbx_archives/$sbx_snapshot
[ ! -e "$sbx_at" ] && [ ! -L "$sbx_at" ] || sbx_fail taken "$sbx_at exists"

# As whom it can be read: what a container wrote belongs to others.
sbx_rung=plain sbx_more='' sbx_image='' sbx_here_is=,readonly sbx_at_is=''
if [ "$(id -u)" != 0 ]; then
  if [ "$sbx_engine" = podman ]; then
    sbx_rung=unshare
  elif [ -n "$(sbx_closed workspace)" ]; then
    # Both: what is left out of the archive has to be found as root, too.
    if sbx_has sudo && { sudo -n tar --version && sudo -n find . -prune; } >/dev/null 2>&1 </dev/null; then
      sbx_rung=sudo
    elif [ -n "$sbx_engine" ] && sbx_gnu_tar; then
      sbx_rung=container
    else
      sbx_fail closed "$(sbx_closed workspace)"
    fi
  fi
fi
if [ "$sbx_rung" = container ] || { [ "$sbx_engine" = docker ] && [ -n "$sbx_volumes" ] && sbx_gnu_tar; }; then
  sbx_make_empty || sbx_fail engine "$sbx_said"
fi
# As far as this account can see; what is in volumes counts too.
sbx_need=$({
  du -sk workspace
  for sbx_volume in $sbx_volumes; do du -sk -- "$("$sbx_engine" volume inspect -f '{{.Mountpoint}}' "$sbx_volume" </dev/null)"; done
} 2>/dev/null | { sbx_sum=0; while read -r sbx_kib sbx_of; do sbx_sum=$((sbx_sum + sbx_kib)); done; echo "$sbx_sum"; })
sbx_free=$(cd "$sbx_archives" && sbx_free_kib)
[ -z "$sbx_free" ] || [ "${sbx_need:-0}" -le "$sbx_free" ] || sbx_fail space "$sbx_free KiB are free in $sbx_archives, $sbx_need KiB may be needed"

# A rootless podman cannot pause where there is no cgroup v2.
sbx_can_pause=yes
if [ "$sbx_engine" = podman ] && [ "$(podman info -f '{{.Host.Security.Rootless}} {{.Host.CgroupsVersion}}' 2>/dev/null </dev/null)" = 'true v1' ]; then sbx_can_pause=; fi
case $sbx_mode/$sbx_can_pause in
  auto/yes) sbx_mode=pause ;;
  auto/) sbx_mode=live ;;
  pause/) [ -z "$sbx_running" ] || sbx_fail pause "rootless podman on cgroup v1 cannot pause containers" ;;
esac

# ---- from here on something is left, unless it is taken away -------------------------------------------------------
# Who takes it back waits for this process: see resume.sh.
echo "$$ $(sbx_started "$$")" >"$sbx_here/.packing" || sbx_fail space "$sbx_here/.packing cannot be written"
if [ "$(cat "$sbx_here/.called_off" 2>/dev/null)" = "$sbx_snapshot" ]; then
  rm -f "$sbx_here/.packing"
  sbx_fail gone "the snapshot was called off"
fi
sbx_words=$(mkdir -- "$sbx_at" 2>&1) || { rm -f "$sbx_here/.packing"; sbx_fail directory "$sbx_words"; }
echo began=yes
sbx_whole='' sbx_ended='' sbx_contained=''
sbx_clear() {
  [ -z "$sbx_ended" ] || return 0
  # Another signal would end this half-way.
  trap '' HUP INT TERM PIPE
  sbx_ended=yes
  cd -P -- "$sbx_here" && { sbx_said=$(sbx_let_go) || sbx_say still "$sbx_said"; }
  [ -z "$sbx_contained" ] || sbx_drop_run "$sbx_project-archive"
  sbx_drop_empty
  [ -z "$sbx_ticks" ] || kill "$sbx_ticks" 2>/dev/null
  [ -n "$sbx_whole" ] || { rm -rf -- "$sbx_at"; rmdir -- "$sbx_archives" 2>/dev/null; }
  rm -f "$sbx_here/.packing"
}
sbx_ticks=
trap sbx_clear EXIT
# PIPE too: a shell says "Terminated" of what was ended, and there may be nobody to say it to.
trap 'sbx_clear; exit 143' HUP INT TERM PIPE
sbx_stop() { # KIND WORDS
  sbx_clear
  sbx_fail "$1" "$2"
}

# Where nothing runs nothing is held.
sbx_still=$sbx_mode
[ -n "$sbx_running" ] || sbx_mode=live
if [ "$sbx_mode" != live ]; then
  echo stage=pause
  sbx_guard "$sbx_snapshot"
  # shellcheck disable=SC2086
  sbx_words=$(sbx_hold "$sbx_mode" "$sbx_snapshot" "$sbx_engine" "$sbx_grace" $sbx_running) || sbx_stop pause "$sbx_words"
fi
printf 'mode=%s\n' "$sbx_mode"
# Of what is to stand still, what does not: those that write, or are about to, and those that were started since. Whoever is
# started by his engine, or by somebody, is in no list of what was to be held.
# sbx_astir STANDING: a line each.
sbx_astir() {
  printf '%s\n' "$1" | while read -r sbx_made sbx_state sbx_one sbx_since sbx_name; do
    case $sbx_state in
      '') continue ;;
      paused | exited | stopped | created | configured | initialized | dead) ;;
      *) printf 'container %s was %s, and not held\n' "${sbx_name#/}" "$sbx_state"; continue ;;
    esac
    # The year 1 is of one that never was.
    case "$sbx_since/$sbx_nl$sbx_then" in *" $sbx_one $sbx_since "* | '"0001-'*) ;; *) printf 'container %s was started meanwhile\n' "${sbx_name#/}" ;; esac
  done
}
sbx_stirring_are=
if [ "$sbx_still" != live ] && [ -n "$sbx_engine" ]; then
  sbx_then=$(sbx_standing) || sbx_stop engine "$sbx_then"
  sbx_stirring_are=$(sbx_astir "$sbx_then")
fi

# ---- the volumes ---------------------------------------------------------------------------------------------------
sbx_missed() { # NAME WHY
  sbx_say missed "$1"
  sbx_say because "$2"
}
sbx_mounts='' sbx_pairs='' sbx_captured=''
for sbx_volume in $sbx_volumes; do
  sbx_form='{{json .Options}}{{"\n"}}{{.Mountpoint}}{{"\n"}}{{index .Labels "com.docker.compose.volume"}}'
  sbx_words=$("$sbx_engine" volume inspect -f "$sbx_form" "$sbx_volume" 2>/dev/null </dev/null) ||
    sbx_stop engine "$("$sbx_engine" volume inspect "$sbx_volume" 2>&1 >/dev/null </dev/null | grep . || echo "$sbx_engine does not tell of the volume $sbx_volume")"
  sbx_options=${sbx_words%%"$sbx_nl"*} sbx_words=${sbx_words#*"$sbx_nl"}
  sbx_folder=${sbx_words%%"$sbx_nl"*} sbx_name=
  # What the compose file calls it.
  case $sbx_words in *"$sbx_nl"*) sbx_name=${sbx_words#*"$sbx_nl"} ;; esac
  case $sbx_name in '' | '<no value>') sbx_name=${sbx_volume#"$sbx_project"_} ;; esac
  case $sbx_name in
    *[!A-Za-z0-9_.-]* | -* | .*) sbx_missed "$sbx_name" "its name cannot be a folder's"; continue ;;
  esac
  case $sbx_options in
    null | '{}') ;;
    *bind*) sbx_missed "$sbx_name" "it is a folder that is mounted; what is in the workspace is captured there"; continue ;;
    *) sbx_missed "$sbx_name" "it is a mount of its own (driver_opts)"; continue ;;
  esac
  sbx_gnu_tar || { sbx_missed "$sbx_name" "this host's tar cannot read it; it takes GNU tar"; continue; }
  if [ "$sbx_engine" = docker ]; then
    sbx_mounts="$sbx_mounts -v $sbx_volume:/volumes/$sbx_name:ro,nocopy"
    sbx_folder=/volumes/$sbx_name
  else
    case $sbx_folder in
      /*[!A-Za-z0-9_./@:+-]* | [!/]* | '') sbx_missed "$sbx_name" "where the engine has it is not known"; continue ;;
    esac
  fi
  sbx_pairs="$sbx_pairs $sbx_name $sbx_folder"
  sbx_captured="$sbx_captured $sbx_name"
done
# What an image asked for, and what is not the sandbox's, is in nobody's list of volumes.
if [ -n "$sbx_engine" ]; then
  sbx_all=$(sbx_in_state '[a-z]*')
  # shellcheck disable=SC2086
  sbx_words=$(sbx_inspected '{{range .Mounts}}{{if eq .Type "volume"}}{{.Name}} {{.Destination}}{{"\n"}}{{end}}{{end}}' $sbx_all) || sbx_stop engine "$sbx_words"
  printf '%s\n' "$sbx_words" | sort -u | while read -r sbx_name sbx_where; do
    case " $(echo $sbx_volumes) " in *" $sbx_name "*) continue ;; esac
    [ -n "$sbx_name" ] || continue
    case $sbx_name in
      *[!0-9a-f]*) sbx_missed "$sbx_name" "it is external: not this sandbox's" ;;
      *) sbx_missed "$sbx_where" "it has no name in the compose file" ;;
    esac
  done
  # shellcheck disable=SC2086
  sbx_words=$(sbx_inspected '{{index .Config.Labels "com.docker.compose.service"}} {{.Image}}' $sbx_all) || sbx_stop engine "$sbx_words"
  printf '%s\n' "$sbx_words" | sort -u | while read -r sbx_name sbx_where; do [ -z "$sbx_where" ] || printf 'image=%s %s\n' "$sbx_name" "$sbx_where"; done
fi
for sbx_name in $sbx_captured; do printf 'captured=%s\n' "$sbx_name"; done
if [ -n "$sbx_mounts" ] || [ "$sbx_rung" = container ]; then
  sbx_contained=yes
  # One that somebody left who was killed stands in the way.
  sbx_drop_run "$sbx_project-archive"
fi

# ---- the stream ----------------------------------------------------------------------------------------------------
[ $# = 0 ] || sbx_leave_out "$sbx_at" "$@" || sbx_stop space "nothing can be written in $sbx_at"
# The account, as whoever reads the tree sees it.
sbx_uid=$(id -u) sbx_gid=$(id -g)
[ "$sbx_rung" != unshare ] || sbx_uid=0 sbx_gid=0
sbx_gnu=
if sbx_gnu_tar; then
  sbx_gnu=yes
  # Devices are left out, by their exact names.
  sbx_as find workspace \( -type b -o -type c \) -exec sh -c "$sbx_telling" sh {} + >"$sbx_at/told" 2>/dev/null
  sed -n 's/^x //p' "$sbx_at/told" >"$sbx_at/devices"
  [ $# = 0 ] || set -- --wildcards --no-wildcards-match-slash --anchored -X "$sbx_at/out.top" --no-anchored -X "$sbx_at/out.any"
  [ ! -s "$sbx_at/told" ] || eval "set -- --anchored --no-wildcards -X \"\$sbx_at/devices\" $(sed -n 's/^q //p' "$sbx_at/told" | tr '\n' ' ') \"\$@\""
  printf '+%s self:0\n' "$sbx_uid" >"$sbx_at/users"
  printf '+%s self:0\n' "$sbx_gid" >"$sbx_at/groups"
  set -- tar --format=pax --pax-option=delete=atime,delete=ctime --xattrs '--xattrs-include=*' --sparse "--owner-map=$sbx_at/users" \
    "--group-map=$sbx_at/groups" --totals -vv "--index-file=$sbx_at/list" --full-time --quoting-style=escape '--quote-chars= ' -b 64 "$@" -cf - workspace
else
  [ $# = 0 ] || set -- -X "$sbx_at/out.top" -X "$sbx_at/out.any"
  # With the names, which it writes to stderr: they are counted.
  set -- tar "$@" -cvf - workspace
fi

# The engine's own archive stream (docker cp) keeps neither xattrs nor holes, has devices in it, and ends in the middle when
# a file shrinks. So the host's tar reads them: by podman's folders, and through a container with Docker's volumes in it.
sbx_read_volumes() {
  [ -n "$sbx_pairs" ] || return 0
  if [ -n "$sbx_mounts" ]; then
    sbx_rung=container sbx_more=$sbx_mounts
  fi
  # shellcheck disable=SC2086
  sbx_as sh -c "$sbx_reading" sh "$sbx_telling" "$sbx_at/words" $sbx_pairs 2>"$sbx_at/words.v" </dev/null || echo "status: $?" >>"$sbx_at/words.v"
}
sbx_members() {
  [ -z "$sbx_pairs" ] || (sbx_read_volumes) | tee "$sbx_at/count.v"
  sbx_as "$@" 2>"$sbx_at/words" </dev/null
  echo $? >"$sbx_at/status"
}
sbx_stream() { if [ -n "$sbx_gnu" ]; then sbx_members "$@"; else sbx_members "$@" | tee "$sbx_at/count"; fi; }
sbx_squeeze() { if [ "$sbx_format" = tar.zst ]; then zstd -q -c -T0; else gzip -c; fi; }

echo stage=archive
sbx_part=$sbx_at/archive.$sbx_format.partial
mkfifo "$sbx_at/sha" "$sbx_at/count.v" || sbx_stop directory "no pipes can be made in $sbx_at"
# GNU tar says how much it wrote; that spares a reader of everything.
[ -n "$sbx_gnu" ] || mkfifo "$sbx_at/count" || sbx_stop directory "no pipes can be made in $sbx_at"
# The list is made here, so that it can be read here whoever writes it.
{ : >"$sbx_part" && : >"$sbx_at/list" && : >"$sbx_at/begun"; } || sbx_stop space "$sbx_part cannot be written"
sbx_sha "$sbx_at/sum" <"$sbx_at/sha" &
sbx_1=$!
sbx_2='' sbx_3='' sbx_failed=''
echo 0 >"$sbx_at/bytes.v"
[ -z "$sbx_pairs" ] || { wc -c <"$sbx_at/count.v" >"$sbx_at/bytes.v" & sbx_2=$!; }
[ -n "$sbx_gnu" ] || { wc -c <"$sbx_at/count" >"$sbx_at/bytes" & sbx_3=$!; }
# How far it is, for who looks on.
while sleep 1; do
  printf 'bytes=%s\n' "$(wc -c <"$sbx_part")"
  # What is on the disk already is not waited for at the end.
  [ -z "$sbx_gnu" ] || sync "$sbx_part"
done 2>/dev/null &
sbx_ticks=$!
# In the background, since a shell hears of no signal before its foreground command has ended.
{ sbx_stream "$@" | { sbx_also "$sbx_at/sha" || echo failed >"$sbx_at/failed.z"; } | { sbx_squeeze >"$sbx_part" 2>"$sbx_at/words.z" || { echo failed >"$sbx_at/failed.z"; exit 1; }; }; } 2>"$sbx_at/words.p" </dev/null &
# Its status needs no room on a disk, and a file does.
wait $! || sbx_failed=yes
wait $sbx_1 $sbx_2 $sbx_3
kill $sbx_ticks 2>/dev/null
sbx_ticks=
sbx_status=$(cat "$sbx_at/status" 2>/dev/null)
[ -z "$sbx_failed" ] && [ ! -e "$sbx_at/failed.z" ] || sbx_stop full "$(cat "$sbx_at/words.z" "$sbx_at/words.p" | grep . || sbx_full "$sbx_at")"
# What is empty was written on a full disk.
sbx_unread() { sbx_words=$(sbx_full "$sbx_at") && sbx_stop full "$sbx_words"; sbx_stop tar "$1 could not be read back"; }
sbx_number "$sbx_status" || sbx_unread "the status of tar"
# The worst that a tar of the volumes ended with, and one for each of them.
sbx_status_v=$(sed -n 's/^status: //p' "$sbx_at/words.v" 2>/dev/null | sort -n | tail -n 1)
# shellcheck disable=SC2086
sbx_wanted=$(set -- $sbx_captured; echo $#)
if [ "$(grep -c '^status: [01]$' "$sbx_at/words.v" 2>/dev/null)" != "$sbx_wanted" ] && [ "$sbx_wanted" != 0 ] || [ "${sbx_status_v:-0}" -gt 1 ]; then
  sbx_words=$(sbx_full "$sbx_at") && sbx_stop full "$sbx_words"
  sbx_stop volumes "$(grep -v '^left: \|^entries: \|^refused: \|^lacks: \|^stirred: ' "$sbx_at/words.v" | tail -n 40)"
fi
sbx_fuzzy=
case $sbx_status/$sbx_gnu in
  0/*) ;;
  # A file changed or went away while it was read.
  1/yes) sbx_fuzzy=yes ;;
  *) sbx_stop tar "$(grep -v ': socket ignored$\|^Total bytes written: \|^workspace\(/\|$\)' "$sbx_at/words" | tail -n 40)" ;;
esac
[ "${sbx_status_v:-0}" = 0 ] || sbx_fuzzy=yes
# Before they go on, and with what is there.
if [ -n "$sbx_gnu" ]; then sbx_count=$(($(wc -l <"$sbx_at/list"))); else sbx_count=$(grep -c '^workspace\(/\|$\)' "$sbx_at/words"); fi
sbx_by=sbx_as
sbx_there() { sbx_names_of workspace 2>/dev/null </dev/null; }
if [ -s "$sbx_at/out.count" ]; then
  sbx_tree=$(sbx_there | tr '\n\0' '\1\n' | grep -Evc -f "$sbx_at/out.count")
else
  sbx_tree=$(($(sbx_there | tr -cd '\0' | wc -c)))
fi
sbx_words=$({
  sbx_lacking "$sbx_count" "$sbx_tree" workspace "$sbx_at/begun" "of the workspace"
  sed -n '/^lacks: /p; /^stirred: /p' "$sbx_at/words.v" 2>/dev/null
})
case $sbx_words in
  *'lacks: '*)
    if [ -z "$sbx_fuzzy" ]; then
      sbx_said=$(sbx_full "$sbx_at") && sbx_stop full "$sbx_said"
      sbx_stop lacks "$(printf '%s\n' "$sbx_words" | sed -n 's/^lacks: //p')"
    fi
    ;;
esac
sbx_stirring=$(printf '%s\n' "$sbx_words" | sed -n 's/^lacks: //p; s/^stirred: //p')
[ -z "$sbx_stirring" ] || sbx_fuzzy=yes
if [ "$sbx_still" != live ] && [ -n "$sbx_engine" ]; then
  if sbx_now=$(sbx_standing); then sbx_now=$(sbx_astir "$sbx_now"); else sbx_now="whether all stood still is not known: $(printf '%s\n' "$sbx_now" | tail -n 1)"; fi
  sbx_stirring_are=$(printf '%s\n' "$sbx_stirring_are" "$sbx_now" | sed '/^$/d' | sort -u | head -n 20)
  if [ -n "$sbx_stirring_are" ]; then
    sbx_fuzzy=yes
    printf '%s\n' "$sbx_stirring_are" | while IFS= read -r sbx_words; do sbx_say remark "$sbx_words: what was written while the snapshot was taken may be torn"; done
  fi
fi
# They go on before anything else is done.
sbx_said=$(sbx_let_go) || sbx_say still "$sbx_said"
if [ -n "$sbx_gnu" ]; then
  # What has come there only now, or cannot be made anywhere else.
  sbx_words=$({ sbx_refused "$sbx_at/list"; sed -n 's/^refused: //p' "$sbx_at/words.v" 2>/dev/null; } | head -n 1)
  case $sbx_words in
    '') ;;
    long*) sbx_stop long "${sbx_words#long }" ;;
    *) sbx_stop tar "${sbx_words#device } is a device that came while it was read" ;;
  esac
  sbx_bytes=$(sed -n 's/^Total bytes written: \([0-9]*\).*/\1/p' "$sbx_at/words")
  sbx_number "$sbx_bytes" || sbx_unread "how much tar wrote: $(tail -n 5 "$sbx_at/words")"
else
  sbx_bytes=$(tr -d ' ' <"$sbx_at/bytes")
  sbx_number "$sbx_bytes" || sbx_unread "how much tar wrote"
fi
sbx_bytes_v=$(tr -d ' ' <"$sbx_at/bytes.v")
sbx_number "$sbx_bytes_v" || sbx_unread "how much of it is volumes"
[ -z "$sbx_gnu" ] || sbx_bytes=$((sbx_bytes_v + sbx_bytes))
sbx_sum=$(cat "$sbx_at/sum")
sbx_hash "$sbx_sum" || sbx_unread "its SHA-256"
sbx_words=$(sync "$sbx_part" 2>&1) || sbx_stop full "$sbx_words"

sbx_seen=$(grep ': socket ignored$' "$sbx_at/words" | sed 's/^tar: //; s/: socket ignored$//')
[ ! -s "$sbx_at/told" ] || sbx_seen="$sbx_seen
$(sed -n 's/^s //p' "$sbx_at/told")"
[ ! -s "$sbx_at/words.v" ] || sbx_seen="$sbx_seen
$(sed -n 's/^left: //p' "$sbx_at/words.v")"
sbx_seen=$(printf '%s\n' "$sbx_seen" | sed '/^$/d')
if [ -n "$sbx_seen" ]; then
  printf 'left_out=%s\n' "$(printf '%s\n' "$sbx_seen" | wc -l)"
  printf '%s\n' "$sbx_seen" | head -n 100 | sed 's/^/ /'
fi
if [ -n "$sbx_gnu" ]; then
  # The second field is the owner; with xattrs the first has a place more.
  for sbx_more in $(sed -n 's/^entries: //p' "$sbx_at/words.v" 2>/dev/null); do sbx_count=$((sbx_count + sbx_more)); done
  printf 'files=%s\n' "$sbx_count"
  sbx_words=$(grep -Evc '^[^ ]* +self/self ' "$sbx_at/list")
  sbx_number "$sbx_words" || sbx_unread "how many entries are not the account's own"
  printf 'foreign=%s\n' "$sbx_words"
  echo gnu=yes
else
  printf 'foreign=%s\n' "$(sbx_as find workspace ! -type s \( ! -user "$sbx_uid" -o ! -group "$sbx_gid" \) -exec sh -c 'for sbx_one; do echo; done' sh {} + 2>/dev/null | wc -l | tr -d ' ')"
  # busybox's tar has no name for the account: whoever restores it knows it by its numbers.
  printf 'account=%s:%s\n' "$sbx_uid" "$sbx_gid"
fi
if [ -f compose.yaml ]; then
  sbx_sha "$sbx_at/compose" <compose.yaml
  sbx_words=$(cat "$sbx_at/compose")
  sbx_hash "$sbx_words" || sbx_unread "the SHA-256 of compose.yaml"
  printf 'compose=%s\n' "$sbx_words"
fi
printf 'sum=%s\ncontent=%s\nvolumes=%s\n' "$sbx_sum" "$sbx_bytes" "$sbx_bytes_v"
# The client of Docker reads what an image is built of as the account: what others own it cannot send, here and where it is
# restored.
if [ "$sbx_engine" = docker ] && [ "$(id -u)" != 0 ] && [ "$sbx_rung" != plain ]; then
  sed -n 's#^ *"context": "[^"\\]*/'"$sbx_project"'/\(workspace[^"\\]*\)",\{0,1\}$#\1#p' compose.yaml 2>/dev/null | sort -u |
    while IFS= read -r sbx_tree; do
      sbx_words=$(sbx_closed "$sbx_tree")
      [ -z "$sbx_words" ] || sbx_say remark "an image is built of $sbx_tree, and $(id -un) cannot read $sbx_words there: where such an account restores this, it cannot be built again if it takes that in; leave it out (snapshot.exclude, .dockerignore), or give it to the account"
    done
fi
printf 'size=%s\n' "$(wc -c <"$sbx_part" | tr -d ' ')"
printf 'format=%s\n' "$sbx_format"
[ -z "$sbx_fuzzy" ] || { echo fuzzy=yes; sbx_say why "$(cat "$sbx_at/words" "$sbx_at/words.v" 2>/dev/null | grep -v 'socket ignored$\|^Total bytes written: \|^left: \|^entries: \|^refused: \|^status: \|^workspace\(/\|$\)' | head -n 20
  printf '%s\n' "$sbx_stirring")"; }
printf 'rung=%s\n' "$sbx_rung"
(cd "$sbx_at" && rm -f sha count count.v sum bytes bytes.v list devices told out.top out.any out.count begun users groups words words.v words.z words.p status compose)
sbx_say path "$sbx_at"
sbx_whole=yes
echo captured_all=yes
