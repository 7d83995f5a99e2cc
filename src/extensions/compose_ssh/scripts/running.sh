# Says which container of a service runs. Parameters: those of sbx_find (find.sh), what is expected of the host, and the
# engine's id. prove.sh stands before it.
sbx_prove "$5" "$1" "$6"
sbx_find "$1" "$2" "$3" "$4"
echo ok
echo "$sbx_container"
