# The way into a workspace, proved as for every other verb. Parameters: the root, the id, the owners (blanks between), what is
# expected of the host (sbx_prove_host). stand.sh stands before it. Says where the sandbox is, or what is wrong and ends with
# another status than 0.
sbx_brief=1
sbx_prove_host "$4"
sbx_stand "$1" "$2" "$3"
printf '%s\n' "$sbx_here"
