# Puts an archive's workspace, and its volumes, into a sandbox whose directory was just made. Parameters: the sandbox's
# directory, its id, the owners (blanks between), the snapshot's id, the archive's folder, its file, the SHA-256 of the tar
# inside, its bytes, how many of them are volumes, `yes` where it takes GNU tar, how many entries are not the account's own, the
# account's numbers (`UID:GID`) where its name is not in it, the engine's program (empty: none), the owner and the profile for labels, what
# is expected of the archive's host (sbx_prove_host), then the volumes' names. The archive is taken for
# hostile: what it writes is nobody's before its hash is known, and what tar finds wrong with a name ends it.
umask 077
sbx_here=$1 sbx_id=$2 sbx_owners=$3 sbx_snapshot=$4 sbx_at=$5 sbx_file=$6 sbx_want=$7 sbx_most=$8 sbx_cut=$9
shift 9
sbx_gnu=$1 sbx_foreign=$2 sbx_was=$3 sbx_engine=$4 sbx_owner=$5 sbx_profile=$6
sbx_prove_host "$7"
shift 7
sbx_project=sbx-$sbx_id
# The archive's root, which need not be the sandbox's.
sbx_at_root=${sbx_at%/snapshots/*}
if sbx_prove_root "${sbx_at_root:-/}" "$sbx_owners" unread && [ ! -e "$sbx_at" ]; then sbx_nowhere; fi
cd -P -- "$sbx_here" 2>/dev/null || sbx_fail gone "$(cd -P -- "$sbx_here" 2>&1)"
[ "$(env pwd -P)" = "$sbx_here" ] && [ "$(sbx_whose . "$sbx_id" "$sbx_owners")" = ours ] || sbx_fail gone "$sbx_here is not this sandbox's"
# What cannot be looked at is not what was altered or is gone.
sbx_seen() { sbx_words=$(sbx_hidden "$1") && sbx_fail unread "$sbx_words"; }
[ -d "$sbx_at" ] && [ ! -L "$sbx_at" ] || { sbx_seen "$sbx_at"; sbx_fail absent "$sbx_at is not there"; }
if [ "$(sbx_whose "$sbx_at" "$sbx_snapshot" "$sbx_owners")" != ours ]; then
  sbx_seen "$sbx_at/manifest.json"
  sbx_fail manifest "the manifest.json in $sbx_at does not name this snapshot and this installation"
fi
sbx_from=$sbx_at/$sbx_file
[ -f "$sbx_from" ] && [ ! -L "$sbx_from" ] || { sbx_seen "$sbx_from"; sbx_fail absent "$sbx_from is not there"; }
sbx_lacks=
case $sbx_file in
  *.zst) sbx_has zstd || sbx_lacks=zstd; sbx_open() { zstd -qdc -- "$sbx_from"; } ;;
  *.gz) sbx_has gzip || sbx_lacks=gzip; sbx_open() { gzip -dc -- "$sbx_from"; } ;;
  *) sbx_fail altered "it has an unknown format" ;;
esac
for sbx_tool in tar tee mkfifo head; do sbx_has "$sbx_tool" || sbx_lacks="$sbx_lacks $sbx_tool"; done
sbx_has sha256sum || sbx_has openssl || sbx_lacks="$sbx_lacks sha256sum"
for sbx_tool in $sbx_lacks; do printf 'missing=%s\n' "$sbx_tool"; done
sbx_real=
if sbx_gnu_tar; then sbx_real=yes; fi
[ "$sbx_gnu" != yes ] || [ -n "$sbx_real" ] || { sbx_lacks=tar; echo 'missing=GNU tar'; }
[ -z "$sbx_lacks" ] || exit 0

# As whom: so that what belonged to others belongs to them again, where that can be.
sbx_rung=plain sbx_here_is='' sbx_at_is=,readonly sbx_more='' sbx_image=''
sbx_uid=$(id -u) sbx_gid=$(id -g)
if [ "$sbx_uid" = 0 ]; then
  sbx_keep=all
elif [ "$sbx_engine" = podman ]; then
  sbx_rung=unshare sbx_keep=all
elif [ "$sbx_engine" = docker ] && [ "$sbx_foreign" -gt 0 ] && [ -n "$sbx_real" ]; then
  trap sbx_drop_empty EXIT
  # A host whose programs do not run in there gives everything to the account.
  if sbx_make_empty && sbx_in_empty "$sbx_project-archive" "$sbx_image" $sbx_bare tar --version >/dev/null 2>&1 </dev/null; then
    # In there nobody but `self` has a name: that becomes the account, everyone else keeps the number.
    sbx_rung=container sbx_keep=named
    printf 'self:x:%s:%s::/:/bin/sh\n' "$sbx_uid" "$sbx_gid" >.passwd
    printf 'self:x:%s:\n' "$sbx_gid" >.group
    [ -s .passwd ] && [ -s .group ] || sbx_fail full "$(sbx_full . || echo "nothing can be written in $sbx_here")"
    sbx_names=$sbx_here
  else
    sbx_keep=self
  fi
else
  sbx_keep=self
fi
printf 'rung=%s\nkeep=%s\n' "$sbx_rung" "$sbx_keep"

sbx_ended='' sbx_contained='' sbx_ticks=''
[ "$sbx_rung" != container ] || sbx_contained=yes
sbx_clear() {
  [ -z "$sbx_ended" ] || return 0
  # Another signal would end this half-way.
  trap '' HUP INT TERM PIPE
  sbx_ended=yes
  [ -z "$sbx_ticks" ] || kill "$sbx_ticks" 2>/dev/null
  [ -z "$sbx_contained" ] || sbx_drop_run "$sbx_project-archive"
  sbx_drop_empty
  rm -f sha sum words words.v words.z words.a .passwd .group
  # Whatever is mounted below it is so for others alone: only empty folders go.
  for sbx_folder in roof.partial/volumes/* roof.partial/volumes roof.partial; do [ ! -d "$sbx_folder" ] || rmdir "$sbx_folder"; done
}
trap sbx_clear EXIT
# PIPE too: a shell says "Terminated" of what was ended, and there may be nobody to say it to.
trap 'sbx_clear; exit 143' HUP INT TERM PIPE
sbx_stop() { sbx_clear; sbx_fail "$1" "$2"; }

# Whoever removes this sandbox must know which engine to ask, though nobody lived to write it down elsewhere.
[ -z "$sbx_engine" ] || echo "0 $sbx_engine" >.up

# ---- the volumes: made as compose will look for them ---------------------------------------------------------------
sbx_mounts='' sbx_pairs='' sbx_filled=$#
[ $# = 0 ] || [ "$sbx_engine" != docker ] || sbx_contained=yes
[ $# = 0 ] || [ -n "$sbx_real" ] || sbx_stop tar "the volumes of the archive take GNU tar"
for sbx_name; do
  case $sbx_name in '' | -* | .* | *[!A-Za-z0-9_.-]*) sbx_stop altered "a volume is called $sbx_name" ;; esac
  sbx_words=$("$sbx_engine" volume create --label "com.docker.compose.project=$sbx_project" --label "com.docker.compose.volume=$sbx_name" \
    --label "sandboxer.id=$sbx_id" --label "sandboxer.owner=$sbx_owner" --label "sandboxer.profile=$sbx_profile" "${sbx_project}_$sbx_name" 2>&1 </dev/null >/dev/null) ||
    sbx_stop engine "$sbx_words"
  if [ "$sbx_engine" = docker ]; then
    sbx_mounts="$sbx_mounts -v ${sbx_project}_$sbx_name:/sbx/volumes/$sbx_name:nocopy"
    sbx_pairs="$sbx_pairs $sbx_name -"
  else
    sbx_folder=$("$sbx_engine" volume inspect -f '{{.Mountpoint}}' "${sbx_project}_$sbx_name" 2>&1 </dev/null) || sbx_stop engine "$sbx_folder"
    case $sbx_folder in "" | [!/]* | /*[!A-Za-z0-9_./@:+-]*) sbx_stop engine "a volume is in $sbx_folder" ;; esac
    sbx_pairs="$sbx_pairs $sbx_name $sbx_folder"
  fi
done
if [ -n "$sbx_mounts" ] && [ -z "$sbx_image" ]; then
  sbx_make_empty || sbx_stop engine "$sbx_said"
fi

sbx_tar() { # WORDS: as GNU tar or as busybox's
  if [ -n "$sbx_real" ]; then
    set -- tar --xattrs '--xattrs-include=*' -p --delay-directory-restore "$@"
  else
    set -- tar -p "$@"
  fi
  case $sbx_keep in
    all) sbx_as "$@" --numeric-owner ;;
    named) sbx_as "$@" --same-owner ;;
    self) if [ -n "$sbx_real" ]; then sbx_as "$@" --no-same-owner; else sbx_as "$@" -o; fi ;;
  esac
}

# The volumes' part. In a container Docker has mounted them; podman's folders are mounted by us, in a namespace of our own.
sbx_fill() {
  if [ -n "$sbx_mounts" ]; then
    sbx_rung=container sbx_more=$sbx_mounts sbx_names='' sbx_here_is=,readonly sbx_at_is=,readonly
    # shellcheck disable=SC2086
    sbx_as sh -c "$sbx_filling" sh /sbx "$sbx_filled" $sbx_pairs tar --xattrs '--xattrs-include=*' -p --delay-directory-restore --numeric-owner
  elif [ -n "$sbx_pairs" ]; then
    # shellcheck disable=SC2086
    sbx_as unshare -m sh -c "$sbx_filling" sh "$sbx_here/roof.partial" "$sbx_filled" $sbx_pairs tar --xattrs '--xattrs-include=*' -p --delay-directory-restore --numeric-owner
  fi || echo "status: $?" >&2
  cat >/dev/null
}
# Gives what is of one user, and of one group, to others. Parameters: the tree, the two, who is to have it. A change of owner
# takes the bits of set-uid away: these files come first, each with its mode.
# shellcheck disable=SC2016
sbx_owning='
sbx_special() { find "$1" ! -type l "$2" "$3" \( -perm -4000 -o -perm -2000 \) -exec sh -c "
for sbx_one; do sbx_mode=\$(stat -c %a \"\$sbx_one\") && $4 $5 \"\$sbx_one\" && chmod \"\$sbx_mode\" \"\$sbx_one\" || exit; done" sh {} +; }
sbx_special "$1" -user "$2" chown "$4" && sbx_special "$1" -group "$3" chgrp "$5" || exit
find "$1" -user "$2" -exec chown -h "$4" {} + && find "$1" -group "$3" -exec chgrp -h "$5" {} +
'
echo stage=extract
mkdir workspace.partial || sbx_stop directory "$(mkdir workspace.partial 2>&1)"
mkfifo sha || sbx_stop directory "no pipes can be made in $sbx_here"
sbx_sha sum <sha &
sbx_1=$!
while sleep 1; do printf 'kib=%s\n' "$(du -sk workspace.partial 2>/dev/null | cut -f 1)"; done 2>/dev/null &
sbx_ticks=$!
# More than is known of it is no such archive, and could fill the disk. In the background, since a shell hears of no signal
# before its foreground command has ended.
{ sbx_open 2>words.z; echo "status: $?" >>words.z; } | { sbx_also sha "$sbx_most"; echo "status: $?" >words.a; } | {
  sbx_lost=0
  # Two blocks of zeros end a tar.
  if [ "$sbx_cut" -gt 0 ]; then { { sbx_first "$sbx_cut"; head -c 1024 /dev/zero; } | sbx_fill; } 2>&1 >/dev/null | cat >words.v || sbx_lost=1; fi
  { sbx_tar -C workspace.partial -xf - workspace; echo "status: $?" >&2; } 2>&1 >/dev/null | cat >words || sbx_lost=1
  cat >/dev/null
  exit "$sbx_lost"
} &
# Words that a full disk did not take are not to pass for none.
sbx_lost=
wait $! || sbx_lost=yes
wait $sbx_1
kill $sbx_ticks 2>/dev/null
sbx_ticks=
: >>words.v
# Of what could not be read nothing is known.
sbx_unread() { sbx_words=$(sbx_full .) && sbx_stop full "$sbx_words"; sbx_stop unread "$1"; }
# What could not be set and is no reason to give up; the rest is. All of it is looked through: one line may be behind many.
sbx_count() { cat words words.v | grep -c -e "$1"; }
sbx_shown() { cat words words.v | grep -e "$@" | head -n 3; }
# As tar words it, at its place in the line: a file may be called like one of these, and could not be made.
sbx_no_xattr="^tar: [a-z]*setxattr[a-z]*: Cannot set '[^']*' extended attribute for file '"
sbx_no_owner=': Cannot change ownership to uid [0-9]*, gid [0-9]*: [^/:]*$' sbx_no_mode=': Cannot change mode to [-rwxsStT]*: [^/:]*$' sbx_no_device=': Cannot mknod: [^/:]*$'
sbx_wrong() {
  grep -v -e "$sbx_no_owner" -e "$sbx_no_mode" -e "$sbx_no_xattr" -e "$sbx_no_device" \
    -e '^tar: Exiting with failure status due to previous errors$' -e '^tar: Ignoring unknown extended header' \
    -e ': time stamp [^/]* s in the future$' -e ': implausibly old time stamp [^/]*$' -e '^status: ' "$1" | tail -n 40
}
printf 'owners=%s\nmodes=%s\nxattrs=%s\ndevices=%s\n' "$(sbx_count "$sbx_no_owner")" "$(sbx_count "$sbx_no_mode")" \
  "$(sbx_count "$sbx_no_xattr")" "$(sbx_count "$sbx_no_device")"
sbx_status=$(sed -n 's/^status: //p' words | tail -n 1) sbx_status_v=$(sed -n 's/^status: //p' words.v | sort -n | tail -n 1)
sbx_words=$(sbx_shown '^tar: Removing leading ' -e ": Member name contains [\`']\\.\\.'$")
[ -z "$sbx_words" ] || sbx_stop hostile "$sbx_words"
sbx_words=$(sbx_shown ': No space left on device$' -e ': Disk quota exceeded$')
[ -z "$sbx_words" ] || sbx_stop full "$sbx_words"
[ -z "$sbx_lost" ] && sbx_number "$sbx_status" && { [ "$sbx_cut" = 0 ] || [ -z "$sbx_pairs" ] || sbx_number "$sbx_status_v"; } || sbx_unread "what tar said could not be kept"
sbx_words=$(sed -n 's/^status: //p' words.z | tail -n 1)
case $sbx_words in
  0 | 141) ;;
  # It was ended, or was none: that is not the archive's fault.
  '' | 12[67] | 1[3-9]? | 2[0-9][0-9]) sbx_unread "what decompresses it ended with status ${sbx_words:-unknown}: $(grep -v '^status: ' words.z | head -n 5)" ;;
  *)
    sbx_said=$(grep -v '^status: ' words.z | head -n 5)
    case $sbx_said in *'nput/output error'* | *'ermission denied'* | *'ead error'* | *'annot allocate memory'* | *'tale file handle'* | *'o such file'*) sbx_unread "$sbx_said" ;; esac
    sbx_stop altered "${sbx_said:-it cannot be decompressed}"
    ;;
esac
sbx_sum=$(cat sum 2>/dev/null)
[ "$(cat words.a 2>/dev/null)" = 'status: 0' ] && sbx_hash "$sbx_sum" || sbx_unread "the SHA-256 of its content could not be computed"
[ "$sbx_sum" = "$sbx_want" ] || sbx_stop altered "its content has the SHA-256 $sbx_sum, and not $sbx_want"
# Nobody took it to its end, and so much of it is what it was: it goes on.
[ "$sbx_words" = 0 ] || sbx_stop altered "there is more in it than the $sbx_most bytes that it had"
sbx_words=$(sed -n 's/^device: //p' words.v | head -n 3)
[ -z "$sbx_words" ] || sbx_stop hostile "it has device nodes: $sbx_words"
case ${sbx_status_v:-0}/$(sbx_wrong words.v) in 0/* | 2/) ;; *) sbx_stop volumes "$(sbx_wrong words.v | grep . || echo "a tar ended with status $sbx_status_v")" ;; esac
case $sbx_status/$(sbx_wrong words) in 0/* | 2/ | 1/) ;; *) sbx_stop tar "$(sbx_wrong words | grep . || echo "tar ended with status $sbx_status")" ;; esac
# Asked as who made it, whoever that was: everybody can make some.
sbx_words=$(sbx_as find "$sbx_here/workspace.partial" \( -type b -o -type c \) -print 2>words </dev/null) || sbx_unread "whether it has device nodes: $(head -n 3 words)"
[ -z "$sbx_words" ] || sbx_stop hostile "it has device nodes: $(printf '%s\n' "$sbx_words" | head -n 3)"
[ -d workspace.partial/workspace ] && [ ! -L workspace.partial/workspace ] || sbx_stop altered "there is no workspace in it"
# What belonged to the account there belongs to the account here.
sbx_now=$sbx_uid:$sbx_gid
[ "$sbx_rung" != unshare ] || sbx_now=0:0
if [ -n "$sbx_was" ] && [ "$sbx_keep" != self ] && [ "$sbx_was" != "$sbx_now" ]; then
  sbx_words=$(sbx_as sh -c "$sbx_owning" sh "$sbx_here/workspace.partial/workspace" "${sbx_was%:*}" "${sbx_was#*:}" "${sbx_now%:*}" "${sbx_now#*:}" 2>&1 </dev/null) ||
    sbx_stop tar "$sbx_words"
fi
rmdir workspace || sbx_stop directory "$(rmdir workspace 2>&1)"
sbx_words=$(sbx_as mv -- "$sbx_here/workspace.partial/workspace" "$sbx_here/workspace" 2>&1 </dev/null) || sbx_stop directory "$sbx_words"
rmdir workspace.partial
sbx_clear
echo unpacked=yes
