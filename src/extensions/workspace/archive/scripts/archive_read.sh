# Writes an archive to stdout. Parameters: the root, the snapshot's id, the owners (blanks between), the expected machine, the
# archive's file. The first line is the verdict.
sbx_is=$(sbx_machine)
[ -z "$4" ] || [ "$4" = "$sbx_is" ] || { echo identity; exit; }
sbx_fail() { echo gone; exit; }
sbx_shelf "$1" "$2" && sbx_enter "$2" && [ -f "$5" ] && [ ! -L "$5" ] || sbx_fail
echo ok
exec cat "$5"
