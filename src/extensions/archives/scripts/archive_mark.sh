# A mark in an archive's folder, which is seen in it under every name and from every machine that has it. Parameters: the root,
# the snapshot's id, the owners (blanks between), the expected host, `put`, `seek` or `drop`, the mark.
umask 077
sbx_prove_host "$4"
if sbx_shelf "$1" "$2" "$3" && sbx_enter "$2"; then
  case $5 in
    put)
      [ "$(sbx_whose . "$2" "$3")" != theirs ] || sbx_fail theirs
      # One that is left is of somebody who died over it.
      sbx_words=$({ rm -f -- .mark.* && : >"$6"; } 2>&1) || sbx_fail mark "$sbx_words"
      ;;
    drop) rm -f -- "$6" ;;
  esac
  if [ -e "$6" ]; then echo marked=yes; else echo marked=no; fi
else
  echo marked=no
fi
