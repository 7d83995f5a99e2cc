# Writes an archive to stdout. Parameters: the root, the snapshot's id, the owners (blanks between), the expected host, the
# archive's file. The first line is the verdict.
sbx_brief=0
sbx_fail() { case $1 in '' | absent) echo gone ;; identity | root_*) echo "$1" ;; *) printf '%s\n' "$2" | head -n 1 ;; esac; exit; }
sbx_prove_host "$4"
sbx_archives "$1" "$2" "$3" && sbx_enter "$2" || sbx_fail absent
sbx_archive "$5"
echo ok
exec cat "$5"
