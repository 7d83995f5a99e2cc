# Before a container is entered or its log is read: host and engine are proved. Definition; place.sh and stand.sh stand before it.

# sbx_prove EXPECTED ENGINE WANTED: what is wrong is the verdict, and ends the script.
sbx_prove() {
  sbx_brief=0
  sbx_prove_host "$1"
  sbx_prove_engine "$2" "$3"
}
