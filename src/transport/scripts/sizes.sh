# How much room sandboxes' directories take, at idle priority. Parameters: the workspace root, further roots; resolve.sh stands
# before it. Prints `root=` and, beneath it, lines of du: kibibytes, a tab, the directory's name.

sbx_idle=
! command -v nice >/dev/null 2>&1 || sbx_idle='nice -n 19'
! ionice -c 3 true >/dev/null 2>&1 || sbx_idle="$sbx_idle ionice -c 3"
for sbx_root in "$@"; do
  sbx_resolve "$sbx_root"
  (
    cd -P -- "$sbx_path" 2>/dev/null || exit 0
    set --
    for sbx_dir in sbx-*; do
      case $sbx_dir in *[!a-z0-9-]*) continue ;; esac
      if [ ! -L "$sbx_dir" ] && [ -d "$sbx_dir" ]; then set -- "$@" "$sbx_dir"; fi
    done
    [ $# -gt 0 ] || exit 0
    printf 'root=%s\n' "$sbx_path"
    # What the account may not read, and what goes away meanwhile, is not counted.
    # shellcheck disable=SC2086 # its words are wanted
    $sbx_idle du -skx -- "$@" 2>/dev/null | sed 's/^/ /'
    echo
  )
done
echo measured=yes
