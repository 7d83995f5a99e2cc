# Only for a workspace in which nothing runs yet: between a look at a path and the reading of it, whoever writes there could
# put a link to any file of the account in its place.
#
# Says what stands at paths of a workspace, the last part not followed. Parameters: the workspace, then paths in it; the
# answers come in their order: `m` nothing, `d` a folder, `o` something else, `l` a link, `f` a file, with the link's text
# or at most 1 MiB + 1 of the file behind it in base64.
cd -P -- "$1" || exit 72
shift
for sbx_path; do
  sbx_path=./$sbx_path
  if [ -L "$sbx_path" ]; then
    printf 'l %s\n' "$(readlink "$sbx_path" | base64 | tr -d '\n')"
  elif [ -d "$sbx_path" ]; then
    echo d
  elif [ -f "$sbx_path" ]; then
    [ -r "$sbx_path" ] || { echo u; continue; }
    printf 'f %s\n' "$(head -c 1048577 "$sbx_path" | base64 | tr -d '\n')"
  elif [ -e "$sbx_path" ]; then
    echo o
  else
    echo m
  fi
done
