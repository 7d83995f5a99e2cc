# Says whether a sandbox is still there, and what the engine has of it, as the JSON of `inspect`. Parameters: the sandbox's
# directory, what is expected of the host and the engine's id (prove.sh), then those of inspect.sh, which stands behind it. The
# first line is the verdict.
sbx_prove "$2" "$4" "$3"
if [ ! -d "$1" ]; then
  sbx_root=${1%/*}
  ! sbx_prove_root "${sbx_root:-/}" "$6" closed || sbx_nowhere
fi
[ -d "$1" ] && echo here || echo gone
shift 3
