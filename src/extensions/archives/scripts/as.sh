# As whom a sandbox's tree is read or written: the account; in its user namespace, where rootless containers wrote; by
# sudo; or in a container that has nothing but this host's programs and the folders. Definitions; says.sh, runtime.sh and
# bind.sh stand before it. sbx_rung is `plain`, `unshare`, `sudo` or `container`.

# sbx_as WORDS...: runs a program so. In a container the folders `sbx_here` and `sbx_at` are where they are
# here (`sbx_here_is` and `sbx_at_is`: `,readonly`, or nothing); `sbx_image` is one of nothing, `sbx_more` further options,
# `sbx_names` the folder of a `.passwd` and a `.group` that the container has for its own.
sbx_names=''
sbx_as() {
  case $sbx_rung in
    unshare) podman unshare "$@" ;;
    sudo) sudo -n "$@" ;;
    container)
      # shellcheck disable=SC2086
      set -- --workdir "$sbx_here" "$sbx_image" $sbx_bare "$@"
      [ -z "$sbx_names" ] || set -- --mount "$(sbx_bind "$sbx_names/.passwd" /etc/passwd ,readonly)" --mount "$(sbx_bind "$sbx_names/.group" /etc/group ,readonly)" "$@"
      sbx_in_empty "$sbx_project-archive" --mount "$(sbx_bind "$sbx_here" "$sbx_here" "$sbx_here_is")" --mount "$(sbx_bind "$sbx_at" "$sbx_at" "$sbx_at_is")" "$@"
      ;;
    *) "$@" ;;
  esac
}

# Whether GNU tar is what `tar` is.
sbx_gnu_tar() { case $(tar --version 2>/dev/null) in *"GNU tar"*) ;; *) return 1 ;; esac; }

# sbx_sha FILE: reads stdin, writes its SHA-256 into the file. openssl is several times faster than coreutils.
sbx_sha() {
  if sbx_has openssl && openssl dgst -sha256 </dev/null >/dev/null 2>&1; then
    openssl dgst -sha256 -r
  else
    sha256sum
  fi | cut -d ' ' -f 1 >"$1"
}

# sbx_also FILE [MOST]: stdin to stdout, and into FILE, and no more of it than so many bytes; fails where either cannot take it
# all. Between pipes coreutils' tee moves 8 KiB at a time, which costs as much as packing does. perl, where it is, has the kernel
# move a MiB and copy nothing: tee and splice, by their numbers, where both know them; else it copies a MiB (1031 is F_SETPIPE_SZ).
# shellcheck disable=SC2016
sbx_also() {
  if sbx_has perl && perl -e 1 2>/dev/null; then
    sbx_calls='0 0'
    case $(uname -sm) in 'Linux x86_64') sbx_calls='276 275' ;; 'Linux aarch64') sbx_calls='77 76' ;; esac
    # shellcheck disable=SC2086
    perl -e 'my ($file, $left, $tee, $splice) = @ARGV;
      $left += 0;
      $tee = 0 unless length(pack("L!", 0)) == 8;
      open(F, ">", $file) or die "$file: $!\n";
      fcntl($_, 1031, 1048576) for (*STDIN, *STDOUT, *F);
      sub put { my $h = shift; for (my $o = 0; $o < $_[1];) { $o += syswrite($h, $_[0], $_[1] - $o, $o) || die "$file: $!\n" } }
      while ($left > 0) {
        my $n = my $most = $left < 1048576 ? $left : 1048576;
        if ($tee) {
          $n = syscall($tee, 0, 1, $most, 0);
          # Whether that was the end, a read says.
          if ($n < 1) { $tee = 0; next }
        } else {
          defined($n = sysread(STDIN, $b, $most)) or die "read: $!\n";
          put(*STDOUT, $b, $n);
          put(*F, $b, $n);
        }
        $n or last;
        $left -= $n;
        while ($tee && $n > 0) {
          my $m = $splice ? syscall($splice, 0, 0, fileno(F), 0, $n, 0) : -1;
          if ($m < 1) {
            $splice = 0;
            ($m = sysread(STDIN, $b, $n)) or die "read: $!\n";
            put(*F, $b, $m);
          }
          $n -= $m;
        }
        $tee = 0 unless $splice;
      }
      close(F) or die "$file: $!\n"' "$1" "${2:-9007199254740992}" $sbx_calls
    return
  fi
  # On a full disk GNU's would go on reading.
  if tee --output-error=exit /dev/null </dev/null 2>/dev/null; then set -- "$1" "${2:-}" --output-error=exit; fi
  if [ -n "${2:-}" ]; then sbx_first "$2" | tee ${3:+"$3"} "$1"; else tee ${3:+"$3"} "$1"; fi
}
# sbx_first COUNT: so many bytes of stdin and not one more.
sbx_first() {
  if head --version 2>/dev/null | grep -q GNU; then head -c "$1"; else dd bs=512 count=$(($1 / 512)) 2>/dev/null; fi
}

# sbx_closed TREE: the first in it that this account cannot read.
sbx_closed() {
  if find . -prune -readable >/dev/null 2>&1; then
    find "$1" \( ! -readable -o -type d ! -executable \) ! -type l -print -quit 2>&1
  else
    # busybox's cannot tell; where it cannot go in, it says so.
    find "$1" ! -type l -exec sh -c 'for sbx_one; do [ -r "$sbx_one" ] || echo "$sbx_one"; done' sh {} + 2>&1
  fi | head -n 1
}

# What tells how files are called that are left out, for `find -exec sh -c`. Lines: `s PATH` as a person reads it, and, so that
# tar leaves out just these, `x PATH` for `tar -X`, or `q WORD` for a command line where such a list cannot have it: it has a
# name a line, and cuts blanks off its end. `$sbx_nl` stands for a line break there.
# shellcheck disable=SC2016
sbx_telling='
sbx_nl="
"
for sbx_one; do
  sbx_line=$(printf "%s\n" "$sbx_one" | sed -e ":a" -e "\$!{N" -e ba -e "}" -e "s/\n/\\\\n/g")
  printf "s %s\n" "$sbx_line"
  case $sbx_one in
    *"$sbx_nl"* | *[[:space:]])
      printf "%s\n" "$sbx_one" |
        sed -e ":a" -e "\$!{N" -e ba -e "}" -e "s/'"'"'/&\\\\&&/g" -e "s/\n/'"'"'\"\$sbx_nl\"'"'"'/g" -e "s/^/q '"'"'--exclude=/" -e "s/\$/'"'"'/"
      ;;
    *) printf "x %s\n" "$sbx_one" ;;
  esac
done
'

# Reads tar's list (-vv, quoted with escapes) and tells the first line of it that no archive may have: `device LINE`, or
# `long LINE` for a path of 4096 bytes and more, which can be archived from where it is and made nowhere (PATH_MAX of Linux).
# With sed, since awk is a link through /etc, which is not in every container.
# shellcheck disable=SC2016
sbx_refusing='
sbx_refused() {
  LC_ALL=C sed -n -e "/^[bc]/{" -e "s/^/device /p" -e q -e "}" -e "/^.\{4096\}/!d" -e h \
    -e "s/^\([^ ]* *\)\{5\}//" -e "s/ -> .*//" -e "s/ link to .*//" -e "s/\\\\[0-7][0-7][0-7]/x/g" -e "s/\\\\./x/g" \
    -e "/^.\{4096\}/!d" -e g -e "s/^\(.\{300\}\).*/long \1/p" -e q "$1"
}
'
eval "$sbx_refusing"

# How many entries a tree has, told by another program than the one that archives it: whatever makes tar leave something out
# without a word, it is found out. Definitions, as a text, too.
# shellcheck disable=SC2016
sbx_counting='
# sbx_names_of TREE: what is to be in its archive, each name with a zero byte behind it. sbx_by stands before `find`, where
# somebody else has to look.
sbx_names_of() { ${sbx_by:-} find "$1" ! -type s ! -type b ! -type c -print0; }
# sbx_stirred TREE MARK: a folder of it that has changed since the mark was made. Only GNU compares parts of a second.
sbx_stirred() {
  case $(find --version 2>/dev/null) in
    *GNU*) ${sbx_by:-} find "$1" -type d -newer "$2" ;;
    *) ${sbx_by:-} find "$1" -type d \( -newer "$2" -o -mmin -1 \) ;;
  esac | head -n 1
}
# sbx_lacking IN_ARCHIVE IN_TREE TREE MARK WHERE: `stirred: WHY` or `lacks: WHY` where the archive has fewer.
sbx_lacking() {
  case $1/$2 in
    *[!0-9]*/* | */*[!0-9]* | /* | */ | */0) echo "lacks: how many entries there are $5 could not be counted" ;;
    *)
      [ "$1" -ge "$2" ] ||
        if [ -n "$(sbx_stirred "$3" "$4")" ]; then echo "stirred: $1 of $2 entries $5 are in it"; else echo "lacks: $1 of $2 entries $5 are in it"; fi
      ;;
  esac
}
'
eval "$sbx_counting"

# sbx_cut BEGINNING: a tar from stdin without its end, so that another one joins on. The end is zeros: two blocks of them,
# and more up to a whole record. The last member has to be one without content, for a file may end in zeros, too. This is a
# text, because it also runs elsewhere; its files begin with BEGINNING.
# shellcheck disable=SC2016
sbx_cutting='
sbx_cut() {
  mkfifo "$1.end" || return
  tail -c 11264 <"$1.end" >"$1.rest" &
  { tee "$1.end" || echo "status: 3" >&2; } | head -c -11264 && wait $! || return
  sbx_blocks=$(od -An -v -tx1 -w512 "$1.rest" | grep -n "[1-9a-f]" | tail -n 1 | cut -d : -f 1)
  [ -n "$sbx_blocks" ] && head -c "$((sbx_blocks * 512))" "$1.rest" || return
  rm -f "$1.end" "$1.rest"
}
'

# Writes volumes as `volumes/NAME/...`, one tar after the other. Parameters: what tells names, how the paths of its notes begin,
# then each one's name and folder. What it says on stderr: `left: PATH` for what is left out, `entries: COUNT`, `status: STATUS`
# of each tar, `refused: WHY` for what no archive may have, `lacks: WHY` or `stirred: WHY` for entries that are not in it.
# shellcheck disable=SC2016
sbx_reading=$sbx_cutting$sbx_refusing$sbx_counting'
sbx_telling=$1 sbx_notes=$2
shift 2
umask 077
sbx_nl="
"
while [ $# -gt 0 ]; do
  cd "$2" || { echo "status: 2" >&2; exit; }
  sbx_name=$1
  : >"$sbx_notes.begun"
  find . \( -type s -o -type b -o -type c \) -exec sh -c "$sbx_telling" sh {} + >"$sbx_notes.told"
  sed -n "s,^s \.,left: volumes/$sbx_name,p" "$sbx_notes.told" >&2
  sed -n "s/^x //p" "$sbx_notes.told" >"$sbx_notes.special"
  { eval "set -- $(sed -n "s/^q //p" "$sbx_notes.told" | tr "\n" " ")"
    tar --format=pax --pax-option="exthdr.name=%d/PaxHeaders/%f,delete=atime,delete=ctime" --numeric-owner --xattrs "--xattrs-include=*" --sparse \
    --quoting-style=escape "--quote-chars= " -vv --full-time --index-file="$sbx_notes.index" --anchored --no-wildcards \
    -X "$sbx_notes.special" "$@" "--transform=flags=rh;s,^\.,volumes/$sbx_name," -cf - . --no-recursion .; echo "status: $?" >&2; } | sbx_cut "$sbx_notes" || echo "status: 3" >&2
  echo "entries: $(wc -l <"$sbx_notes.index")" >&2
  # The folder itself is in it twice.
  sbx_lacking "$(($(wc -l <"$sbx_notes.index") - 1))" "$(($(sbx_names_of . | tr -cd "\0" | wc -c)))" . "$sbx_notes.begun" "of the volume $sbx_name" >&2
  sbx_refused "$sbx_notes.index" | sed "s/^/refused: /" >&2
  rm -f "$sbx_notes.told" "$sbx_notes.special" "$sbx_notes.index" "$sbx_notes.begun"
  shift 2
done
'

# Fills volumes from a tar of `volumes/NAME/...` on stdin. Parameters: a folder for them to be mounted below, how many they
# are, then each one's name and folder (`-`: mounted there already), then the words of tar. What it says on stderr:
# `device: PATH` for what no archive of ours has, `status: STATUS`.
# shellcheck disable=SC2016
sbx_filling='
sbx_top=$1 sbx_left=$2
shift 2
umask 022
sbx_no() { echo "status: 2" >&2; exit; }
mkdir -p "$sbx_top/volumes" || sbx_no
# What is mounted here must be nowhere else, lest somebody who removes this folder removes what is in a volume.
[ "$2" = - ] || mount --make-rprivate / || sbx_no
while [ "$sbx_left" -gt 0 ]; do
  [ "$2" = - ] || { mkdir "$sbx_top/volumes/$1" && mount --bind "$2" "$sbx_top/volumes/$1"; } || sbx_no
  sbx_left=$((sbx_left - 1))
  shift 2
done
# Not by -C: GNU tar takes a backslash in its word for an escape.
(cd "$sbx_top" && exec "$@" -xf - volumes)
echo "status: $?" >&2
{ (cd "$sbx_top" && find volumes \( -type b -o -type c \) -print) || echo "status: 3" >&2; } | sed "s/^/device: /" >&2
cat >/dev/null
'

# sbx_number TEXT, sbx_hash TEXT: whether it is one. A file that was written on a full disk is there, and empty.
sbx_number() { case $1 in '' | *[!0-9]*) return 1 ;; esac; }
sbx_hash() { case $1 in *[!0-9a-f]*) return 1 ;; esac; [ ${#1} = 64 ]; }
# sbx_full FOLDER: the words of the system, where nothing can be written into it any more.
sbx_full() {
  sbx_probe=$1/.room.$$
  sbx_tried=$(dd if=/dev/zero of="$sbx_probe" bs=65536 count=4 2>&1) && sbx_tried=''
  rm -f -- "$sbx_probe"
  [ -n "$sbx_tried" ] && printf '%s\n' "$sbx_tried" | grep -v 'records \(in\|out\)'
}
