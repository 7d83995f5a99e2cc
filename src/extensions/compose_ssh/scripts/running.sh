# Says which container of a service runs. Parameters: as those of sbx_find (find.sh).
sbx_find "$1" "$2" "$3" "$4"
echo ok
echo "$sbx_container"
