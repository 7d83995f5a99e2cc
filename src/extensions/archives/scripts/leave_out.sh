# What a snapshot leaves out of a workspace. Definitions.

# sbx_leave_out FOLDER PATTERN...: two lists for `tar -X` in that folder: `out.top`, from the top of the workspace, and
# `out.any`, at any depth. A name alone is meant at any depth and never as the workspace itself; with a slash in it, or in
# front, it begins at the top. And `out.count` for `grep -E -f`: what matches it may be left out. A pattern with brackets or
# backslashes ends there and goes on with anything.
sbx_leave_out() {
  sbx_lists=$1
  shift
  { : >"$sbx_lists/out.top" && : >"$sbx_lists/out.any"; } || return
  for sbx_pattern; do
    while :; do case $sbx_pattern in */) sbx_pattern=${sbx_pattern%/} ;; *) break ;; esac; done
    case $sbx_pattern in
      '') ;;
      /*) printf 'workspace%s\n' "$sbx_pattern" >>"$sbx_lists/out.top" ;;
      */*) printf 'workspace/%s\n' "$sbx_pattern" >>"$sbx_lists/out.top" ;;
      *) printf '*/%s\n' "$sbx_pattern" >>"$sbx_lists/out.any" ;;
    esac
  done
  { sbx_as_ere "$sbx_lists/out.top" | sed 's/^/^/' && sbx_as_ere "$sbx_lists/out.any" | sed 's/^/(^|\/)/'; } >"$sbx_lists/out.count"
}
# Two stars stand for anything; while there is one left to be made of one, it is a byte that is in no pattern.
sbx_as_ere() {
  sbx_byte=$(printf '\001')
  sed -e 's/[\\[].*/**/' -e 's/[].+(){}|^$]/\\&/g' -e "s/\*\*\**/$sbx_byte/g" -e 's/?/[^\/]/g' -e 's/\*/[^\/]*/g' -e "s/$sbx_byte/.*/g" \
    -e 's/$/(\/|$)/' "$1"
}
