# Takes back what a snapshot that was cut off did to containers. Parameters: the root, the id, the owners. says.sh, place.sh
# and let_go.sh stand before it. Whatever still packs is ended first: it would be held no more.
sbx_root=$(sbx_absolute "$1") sbx_id=$2
cd -P -- "$sbx_root" 2>/dev/null && cd -P -- "sbx-$sbx_id" 2>/dev/null || { echo resumed=yes; exit 0; }
[ "$(sbx_whose . "$sbx_id" "$3")" = ours ] || { echo resumed=yes; exit 0; }
if sbx_said=$(sbx_let_go); then echo resumed=yes; else sbx_fail engine "$sbx_said"; fi
