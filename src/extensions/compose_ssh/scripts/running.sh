# Says which container of a service runs. Parameters: the engine's program, the project, the service.
sbx_find "$1" "$2" "$3"
echo ok
echo "$sbx_id"
