echo ok
sbx_watch & sbx_watcher=$!
(exec 3<&-; exec "$@") </dev/null
sbx_status=$?
{ kill -KILL $sbx_watcher; wait $sbx_watcher; } 2>/dev/null
exit $sbx_status
