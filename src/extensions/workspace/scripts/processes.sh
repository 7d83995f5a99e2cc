# Which processes are a sandbox's, told by the kernel and by no name. Definitions.

# A process is told as NUMBER:BEGINNING. A number goes to another process as soon as it is free.

# sbx_stat NUMBER: sets sbx_of_group and sbx_began. A process may be called anything, with line breaks and brackets; what stands
# behind the last bracket is the kernel's.
sbx_stat() {
  sbx_line='' sbx_of_group='' sbx_began=''
  while read -r sbx_rest; do sbx_line=$sbx_rest; done <"/proc/$1/stat"
  # shellcheck disable=SC2086
  set -- ${sbx_line##*) }
  sbx_of_group=${3:-} sbx_began=${20:-}
}

# sbx_signal SIGNAL PROCESS...: sends it to those that are still the same.
sbx_signal() {
  sbx_name=$1
  shift
  for sbx_one; do
    sbx_stat "${sbx_one%:*}"
    [ "$sbx_began" != "${sbx_one#*:}" ] || kill "-$sbx_name" "${sbx_one%:*}"
  done 2>/dev/null
}

# sbx_has_word NUMBER FILE WORD: the word is one of its arguments, or of its environment.
sbx_has_word() { tr '\0' '\n' <"/proc/$1/$2" | grep -Fxq -e "$3"; }

# sbx_members GROUP: processes of the group that work on this sandbox. A group's number may belong to others by now, and ours
# may be the beginning of another sandbox's name.
sbx_members() {
  for sbx_at in /proc/[0-9]*; do
    sbx_pid=${sbx_at#/proc/}
    sbx_stat "$sbx_pid"
    [ "$sbx_of_group" = "$1" ] || continue
    if sbx_has_word "$sbx_pid" environ "SBX_UP=$sbx_project" || sbx_has_word "$sbx_pid" cmdline "$sbx_project"; then
      echo "$sbx_pid:$sbx_began"
    fi
  done 2>/dev/null
}

# Processes whose folder is the workspace, or one in it: what an exec left behind, or a shell. This script itself stands
# above it. Places are compared as the kernel knows them: a folder's name may look like anything. A process that sees other
# mounts is a container's, and its engine's to end.
sbx_inside() {
  for sbx_at in /proc/[0-9]*; do
    # shellcheck disable=SC3013 # dash, bash and busybox have it
    [ "$sbx_at/ns/mnt" -ef /proc/self/ns/mnt ] && sbx_within "$sbx_at/cwd" || continue
    sbx_stat "${sbx_at#/proc/}"
    [ -z "$sbx_began" ] || echo "${sbx_at#/proc/}:$sbx_began"
  done 2>/dev/null
}

# sbx_within PATH: it leads into the workspace that is in this folder. A link in its place is in another one.
# shellcheck disable=SC3013
sbx_within() {
  sbx_path=$1
  while [ -d "$sbx_path" ]; do
    if [ "$sbx_path" -ef workspace ] && [ "$sbx_path/.." -ef . ]; then return 0; fi
    [ ! "$sbx_path" -ef "$sbx_path/.." ] || return 1
    sbx_path=$sbx_path/..
  done
  return 1
}
