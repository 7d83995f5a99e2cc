echo ok
# A shell would take it for an option of its own.
case $1 in -*) echo "$1: not found" >&2; exit 127 ;; esac
sbx_watch & sbx_watcher=$!
{ (exec 2>&4 3<&- 4>&-; exec "$@") </dev/null; sbx_status=$?; } 4>&2 2>/dev/null
{ kill -KILL $sbx_watcher; wait $sbx_watcher; } 2>/dev/null
exit $sbx_status
