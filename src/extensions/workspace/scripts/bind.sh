# A container of our own, with this host's programs and folders in it and nothing of anybody's image: an image's environment
# (TAR_OPTIONS) is an order to what runs in it. Definitions; sbx_engine, sbx_project, sbx_id and sbx_owner are the caller's.

# sbx_bind SOURCE TARGET OPTIONS: what `--mount` takes for it, whatever is in the paths (`-v` would end one at a colon). The
# options are `,readonly`, or nothing.
sbx_bind() {
  printf 'type=bind,"source=%s","target=%s"%s' "$(sbx_doubled "$1")" "$(sbx_doubled "$2")" "$3"
}
# The words are those of a line of CSV: a quote within quotes is two.
sbx_doubled() { printf '%s' "$1" | sed 's/"/""/g'; }

# This host's programs, to be read only, as words for the engine. NixOS has them where links in /bin lead to.
sbx_programs() {
  for sbx_path in /usr /bin /sbin /lib /lib32 /lib64 /nix/store; do [ ! -d "$sbx_path" ] || printf ' -v %s:%s:ro' "$sbx_path" "$sbx_path"; done
}

# The layer of a tar of nothing.
sbx_nothing=5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef

# sbx_is_empty IMAGE: it has nothing in it, and asks for nothing: no environment, no entrypoint, no labels.
sbx_is_empty() {
  sbx_said=$("$sbx_engine" image inspect -f '{{json .RootFS.Layers}}{{with .Config}}{{json .Env}}{{json .Entrypoint}}{{json .Cmd}}{{json .Volumes}}{{json .Labels}}{{end}}' "$1" 2>&1 </dev/null) || return 1
  [ "$(printf '%s' "$sbx_said" | sed 's/null//g; s/\[\]//g; s/{}//g')" = "[\"sha256:$sbx_nothing\"]" ]
}

# sbx_make_empty: makes an image of nothing; its id is in sbx_image. That and not its name is what runs: somebody may give the
# name to another one. The words of the engine are in sbx_said where it cannot.
sbx_empty=''
sbx_make_empty() {
  # An account's choice for what it builds.
  unset -v DOCKER_DEFAULT_PLATFORM DOCKER_CONTENT_TRUST
  sbx_image=''
  sbx_empty=sandboxer-empty:$sbx_project.$(tr -dc 'a-f0-9' </proc/sys/kernel/random/uuid)
  sbx_said=$(head -c 1024 /dev/zero | "$sbx_engine" import - "$sbx_empty" 2>&1) || return 1
  sbx_image=$(printf '%s\n' "$sbx_said" | sed -n 's/^\(sha256:\)\{0,1\}[0-9a-f]\{64\}$/&/p' | tail -n 1)
  [ -n "$sbx_image" ] && sbx_is_empty "$sbx_image" && return
  sbx_said="$sbx_engine does not make an image of nothing of nothing: $sbx_said"
  sbx_drop_empty
  return 1
}
# One that a container is made of stays.
sbx_drop_empty() {
  [ -z "$sbx_empty" ] || "$sbx_engine" rmi "$sbx_empty" >/dev/null 2>&1 </dev/null
  sbx_empty='' sbx_image=''
}
# sbx_tags_of ENGINE: the names of all its images.
sbx_tags_of() { "$1" images --format '{{.Repository}}:{{.Tag}}' 2>/dev/null </dev/null; }
# sbx_drop_left TAGS: those of these that somebody left who was killed.
sbx_drop_left() {
  case $1 in *sandboxer-empty:*) ;; *) return 0 ;; esac
  printf '%s\n' "$1" | sed -n 's#^\(localhost/\)\{0,1\}\(sandboxer-empty:'"$sbx_project"'\.[0-9a-f]*\)$#\1\2#p' |
    while IFS= read -r sbx_name; do
      ! sbx_is_empty "$sbx_name" || "$sbx_engine" rmi "$sbx_name" >/dev/null 2>&1 </dev/null
    done
}

# sbx_drop_run NAME: the container of this name that somebody left who was killed, if its labels say that it was one of ours.
sbx_drop_run() {
  sbx_found=$("$sbx_engine" ps -aq --no-trunc --filter "name=^/?$1\$" --filter "label=sandboxer.id=$sbx_id" --filter "label=sandboxer.owner=$sbx_owner" 2>/dev/null </dev/null)
  # shellcheck disable=SC2086 # ids
  [ -z "$sbx_found" ] || "$sbx_engine" rm -f $sbx_found >/dev/null 2>&1 </dev/null
}

# sbx_in_empty NAME WORDS...: a container of this name; the words are options for the engine, then "$sbx_image" $sbx_bare and a
# program of this host with its words. Whatever the engine's client puts into each container's environment (the proxies of
# Docker's config.json, `env` of containers.conf) is taken out again before the program begins.
sbx_bare='-i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C TZ=UTC0'
sbx_in_empty() {
  sbx_run=$1
  shift
  # Without a log: the engine would keep one of all that is read.
  # shellcheck disable=SC2046,SC2086
  "$sbx_engine" run --rm -i --pull never --network none --user 0 --security-opt label=disable --no-healthcheck --log-driver none --name "$sbx_run" \
    --label "sandboxer.id=$sbx_id" ${sbx_owner:+--label "sandboxer.owner=$sbx_owner"} --env PATH=/usr/sbin:/usr/bin:/sbin:/bin --env LD_PRELOAD= --env LD_AUDIT= --env LD_LIBRARY_PATH= \
    $(sbx_programs) $sbx_more --entrypoint env "$@"
}
