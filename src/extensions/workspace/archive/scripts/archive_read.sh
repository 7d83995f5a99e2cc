# Writes an archive to stdout. Parameters: the root, the snapshot's id, the owners (blanks between), the expected machine, the
# archive's file. The first line is the verdict.
sbx_is=$(sbx_machine)
[ -z "$4" ] || [ "$4" = "$sbx_is" ] || { echo identity; exit; }
sbx_fail() { case $1 in '' | absent) echo gone ;; *) printf '%s\n' "$2" | head -n 1 ;; esac; exit; }
sbx_shelf "$1" "$2" && sbx_enter "$2" || sbx_fail absent
sbx_archive "$5"
echo ok
exec cat "$5"
