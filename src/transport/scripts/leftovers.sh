# What on this host names certain sandboxes and snapshots; runtime.sh stands before it. Nothing is made or changed.
# Parameters: the workspace root, an operation's id, how many engines, those, how many ids, those (a snapshot's id with its
# `snap-`), then names of volumes.
#
# Prints `KIND=` with a name beneath: container, pod, network, volume, image, directory, mount, process. Volumes are also
# those that such a container uses, whatever they are called. `failed=` has an engine's words beneath.

export LC_ALL=C
sbx_bounded 1 true
sbx_root=$1 sbx_operation=$2 sbx_left=$3
shift 3

sbx_tell() { echo "$1="; printf '%s\n' "$2" | sed 's/^/ /'; }

sbx_engines=
while [ "$sbx_left" -gt 0 ]; do
  sbx_engines="$sbx_engines $1" sbx_left=$((sbx_left - 1))
  shift
done
# An id is [a-z0-9-]: each is one word.
sbx_ids= sbx_patterns="-e $sbx_operation" sbx_left=$1
shift
while [ "$sbx_left" -gt 0 ]; do
  case $1 in snap-*) sbx_word=$1 ;; *) sbx_word=sbx-$1 ;; esac
  sbx_ids="$sbx_ids $sbx_word" sbx_patterns="$sbx_patterns -e $sbx_word" sbx_left=$((sbx_left - 1))
  shift
done

# sbx_lines KIND COMMAND...: the first word of each line that has one of the patterns in it. Labels are asked for as JSON: there
# may be line breaks in one.
sbx_lines() {
  sbx_kind=$1
  shift
  sbx_out=$(sbx_again 20 "$@" 2>&1 </dev/null) || { sbx_tell failed "$* $(printf '%s\n' "$sbx_out" | tail -n 2)"; return; }
  # shellcheck disable=SC2086 # each is a word
  printf '%s\n' "$sbx_out" | grep -F $sbx_patterns | while read -r sbx_name sbx_rest; do sbx_tell "$sbx_kind" "$sbx_name"; done
}

for sbx_engine in $sbx_engines; do
  sbx_list=$(sbx_lines container "$sbx_engine" ps -a --format '{{.Names}} {{json .Labels}}')
  printf '%s\n' "$sbx_list"
  for sbx_name in $(printf '%s\n' "$sbx_list" | sed -n 's/^ //p'); do
    sbx_bounded 10 "$sbx_engine" inspect -f '{{range .Mounts}}{{if .Name}}{{.Name}} {{end}}{{end}}' "$sbx_name" 2>/dev/null </dev/null
  done | tr ' ' '\n' | sort -u | while read -r sbx_name; do
    [ -z "$sbx_name" ] || sbx_tell volume "$sbx_name"
  done
  [ "$sbx_engine" != podman ] || sbx_lines pod podman pod ls --format '{{.Name}} {{json .Labels}}'
  sbx_lines network "$sbx_engine" network ls --format '{{.Name}} {{json .Labels}}'
  sbx_lines volume "$sbx_engine" volume ls --format '{{.Name}} {{json .Labels}}'
  sbx_lines image "$sbx_engine" images --format '{{.Repository}}:{{.Tag}}'
  for sbx_name; do
    ! sbx_bounded 10 "$sbx_engine" volume inspect "$sbx_name" >/dev/null 2>&1 </dev/null || sbx_tell volume "$sbx_name"
  done
done

for sbx_word in $sbx_ids; do
  for sbx_path in "$sbx_root"/*"$sbx_word"* "$sbx_root"/.*"$sbx_word"* "$sbx_root"/snapshots/*"$sbx_word"* \
    "$sbx_root"/snapshots/.*"$sbx_word"*; do
    if [ -e "$sbx_path" ] || [ -L "$sbx_path" ]; then sbx_tell directory "$sbx_path"; fi
  done
  while read -r sbx_what sbx_where sbx_rest; do
    case $sbx_where in *"$sbx_word"*) sbx_tell mount "$sbx_where" ;; esac
  done </proc/mounts
done 2>/dev/null

# sbx_is_contained PROCESS: it sees other mounts than we do. Of another user's only its numbers can be read: one for each
# namespace that it is in.
sbx_is_contained() {
  # shellcheck disable=SC3013 # dash, bash and busybox have it
  if [ -e "$1/ns/mnt" ]; then
    ! [ "$1/ns/mnt" -ef /proc/self/ns/mnt ]
  else
    grep -q '^NSpid:.*[0-9][[:blank:]][[:blank:]]*[0-9]' "$1/status" 2>/dev/null
  fi
}
# A process names one by its words, or works in its directory. One of a container has words and paths of its own. The grep that
# looks has the patterns among its own words, and is gone when its hits are read again.
# shellcheck disable=SC2086 # each is a word
sbx_hits=$(grep -l -s -F $sbx_patterns /proc/[0-9]*/cmdline 2>/dev/null)
for sbx_at in /proc/[0-9]*; do
  sbx_where=$(readlink "$sbx_at/cwd")
  for sbx_word in $sbx_operation $sbx_ids; do
    case $sbx_where in *"$sbx_word"*) sbx_hits="$sbx_hits $sbx_at/cmdline" ;; esac
  done
done 2>/dev/null
for sbx_path in $sbx_hits; do
  ! sbx_is_contained "${sbx_path%/cmdline}" || continue
  sbx_words=$(tr '\0' ' ' <"$sbx_path" 2>/dev/null | head -c 200)
  sbx_pid=${sbx_path#/proc/}
  [ -z "$sbx_words" ] || sbx_tell process "${sbx_pid%/cmdline} $sbx_words"
done
exit 0
