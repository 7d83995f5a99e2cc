# Before anything is done to a sandbox: the place and the engine are proved. Definitions; place.sh and engine.sh stand before
# it, and sbx_prove_host was called.

# sbx_stand ROOT ID OWNERS: goes into the sandbox's directory, which is ours and no link, and sets sbx_here to its path.
sbx_stand() {
  sbx_prove_root "$1" "$3" gone || sbx_fail gone "$sbx_root is not there"
  sbx_here=${sbx_root%/}/sbx-$2
  cd -P -- "sbx-$2" 2>/dev/null || { sbx_nowhere; sbx_fail gone "$sbx_here is not there"; }
  [ "$(env pwd -P)" = "$sbx_here" ] || sbx_fail gone "$sbx_here is a link"
  [ "$(sbx_whose . "$2" "$3")" = ours ] || sbx_fail gone "its manifest.json does not name this sandbox and this installation"
  [ -d workspace ] && [ ! -L workspace ] || sbx_fail gone "$sbx_here/workspace is not there"
}

# sbx_prove_engine ENGINE WANTED: ends the script where the engine is another one, or does not answer.
sbx_prove_engine() {
  sbx_has "$1" || sbx_fail engine "$1 is not installed any more"
  [ -n "$2" ] || return 0
  sbx_now=$(sbx_engine_id "$1" "$2")
  [ -n "$sbx_now" ] || sbx_fail engine "$("$1" info 2>&1 >/dev/null </dev/null | tail -n 3)"
  [ "$sbx_now" = "$2" ] || sbx_fail identity "this engine is $sbx_now, the sandbox was made on $2"
}
