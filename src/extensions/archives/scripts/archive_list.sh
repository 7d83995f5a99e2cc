# Lists what is in an archive. Parameters: the root, the snapshot's id, the owners (blanks between), the expected host, the
# archive's file, then the options that make GNU tar's listing one that can be read back. The first line is the verdict, `ok`
# or why nothing follows; the second says whose tar writes the rest.
sbx_brief=0
sbx_fail() { case $1 in '' | absent) echo gone ;; identity | root_*) echo "$1" ;; *) printf '%s\n' "$2" | head -n 1 ;; esac; exit; }
sbx_prove_host "$4"
sbx_archives "$1" "$2" "$3" && sbx_enter "$2" || sbx_fail absent
sbx_archive "$5"
sbx_tools "$5" >/dev/null || { echo missing; exit; }
sbx_name=$5
shift 5
echo ok
if sbx_gnu_tar; then
  echo gnu
  set -- tar -tvv "$@" -f -
else
  echo busybox
  set -- tar -tvf -
fi
# One that cannot be unpacked ends too early for tar.
sbx_open "$sbx_name" | "$@"
