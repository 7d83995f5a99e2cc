# Finds images, or pulls them. Parameters: the engine's program, then for each image `missing`, `always` or `never` (when it
# is pulled), its name, and its platform or nothing. Says which ones are `lacking`.
sbx_engine=$1
shift
while [ $# -ge 3 ]; do
  sbx_policy=$1 sbx_image=$2 sbx_platform=$3
  shift 3
  if [ "$sbx_policy" != always ] && "$sbx_engine" image inspect "$sbx_image" >/dev/null 2>&1 </dev/null; then continue; fi
  if [ "$sbx_policy" != never ]; then
    "$sbx_engine" pull ${sbx_platform:+"--platform=$sbx_platform"} "$sbx_image" </dev/null && continue
  fi
  printf 'lacking=%s\n' "$sbx_image"
done
echo images=there
