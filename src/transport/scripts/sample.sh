# The light probe: load, memory, disk and clock of the host, and what containers use; resolve.sh stands before it. Parameters:
# the workspace root (empty: its disk is not asked), then for each kind of control groups its version, where the paths of
# the processor's and of the memory's figures begin, how they end, how many, and the containers' ids.
#
# Prints `key=value` lines, each in one write. Builtins read /proc; each program costs a millisecond: stat, awk, date.

sbx_uptime() { read -r sbx_seconds sbx_rest </proc/uptime && printf '%s=%s\n' "$1" "$sbx_seconds"; }

# The root may not be there yet: its folders are asked too, and the first line is that of the deepest one. On a dead mount
# this hangs, perhaps where no signal reaches it: so nobody waits for its end.
sbx_ask_disk() {
  sbx_resolve "$1"
  set -- "$sbx_path"
  while :; do
    case $sbx_path in ?*/*) sbx_path=${sbx_path%/*} ;; *) break ;; esac
    set -- "$@" "$sbx_path"
  done
  stat -f -c 'disk=%S %b %f %a %c %d %n' -- "$@" / 2>/dev/null </dev/null &
  sbx_asked=$!
}

# A process that ended and was not waited for is a zombie.
sbx_runs() {
  sbx_line=
  { read -r sbx_line <"/proc/$1/stat"; } 2>/dev/null
  case ${sbx_line##*) } in '' | [ZX]*) return 1 ;; esac
}

sbx_await_disk() {
  sbx_begun=${sbx_seconds%.*}
  while sbx_runs "$sbx_asked"; do
    sbx_uptime waited >/dev/null
    if [ "${sbx_seconds%.*}" -gt "$((sbx_begun + 2))" ]; then
      kill -KILL "$sbx_asked" 2>/dev/null
      echo disk.late=yes
      return
    fi
    sleep 0.01 2>/dev/null || sleep 1
  done
}

# In a subshell, which it becomes.
sbx_containers() {
  exec awk '
    function first(file,  text) {
      if ((getline text < file) <= 0) text = ""
      close(file)
      return text
    }
    function figure(file, name,  text, found) {
      while ((getline text < file) > 0) if (substr(text, 1, length(name)) == name) { found = substr(text, length(name) + 1); break }
      close(file)
      return found
    }
    BEGIN {
      for (at = 1; at + 4 < ARGC; at = from + many) {
        version = ARGV[at]; many = ARGV[at + 4] + 0; from = at + 5
        for (one = from; one < from + many; one++) {
          processor = ARGV[at + 1] ARGV[one] ARGV[at + 3]
          memory = ARGV[at + 2] ARGV[one] ARGV[at + 3]
          if (version == "2") print "use=" count++, figure(processor "/cpu.stat", "usage_usec "), first(memory "/memory.current"), figure(memory "/memory.stat", "inactive_file ")
          else print "use=" count++, first(processor "/cpuacct.usage"), first(memory "/memory.usage_in_bytes"), figure(memory "/memory.stat", "total_inactive_file ")
        }
      }
      exit
    }' "$@" 2>/dev/null </dev/null
}

sbx_asked=
[ -z "$1" ] || sbx_ask_disk "$1"
shift
[ ! -r /proc/loadavg ] || { read -r sbx_line </proc/loadavg; printf 'load=%s\n' "$sbx_line"; }
sbx_file=/sys/devices/system/cpu/online
[ ! -r "$sbx_file" ] || { read -r sbx_line <"$sbx_file"; printf 'cpus=%s\n' "$sbx_line"; }
[ ! -r /proc/meminfo ] || while read -r sbx_line; do
  case $sbx_line in
    MemTotal:* | MemFree:* | MemAvailable:* | Buffers:* | Cached:* | SwapTotal:*) printf 'mem=%s\n' "$sbx_line" ;;
    SwapFree:*)
      printf 'mem=%s\n' "$sbx_line"
      break
      ;;
  esac
done </proc/meminfo
# The moment of the containers' figures. Kept until the disk has answered: two programs would mix their lines.
sbx_uptime uptime
sbx_used=uses=none
[ $# = 0 ] || sbx_used=$(sbx_containers "$@")
date +now=%s.%N
sbx_uptime looked
[ -z "$sbx_asked" ] || sbx_await_disk
printf '%s\n' "${sbx_used:-use.failed=yes}"
# How long after the look at its clock the host was still at work.
sbx_uptime ended
