# As whom a sandbox's tree is read or written: the account; in its user namespace, where rootless containers wrote; by
# sudo; or in a container that has nothing but this host's programs and the folders. Definitions; says.sh and runtime.sh
# stand before it. sbx_rung is `plain`, `unshare`, `sudo` or `container`.

# sbx_as WORDS...: runs a program so. In a container the folders `sbx_here` and `sbx_at` are where they are
# here (`sbx_here_is` and `sbx_at_is`: `,readonly`, or nothing); `sbx_image` is one that is there, `sbx_more` further options.
sbx_as() {
  case $sbx_rung in
    unshare) podman unshare "$@" ;;
    sudo) sudo -n "$@" ;;
    container)
      sbx_program=$1
      shift
      # shellcheck disable=SC2086
      "$sbx_engine" run --rm -i --pull never --network none --user 0 --security-opt label=disable --name "$sbx_project-archive" \
        --label "sandboxer.id=$sbx_id" --env PATH=/usr/sbin:/usr/bin:/sbin:/bin --env LC_ALL=C $(sbx_programs) $sbx_more \
        --mount "type=bind,source=$sbx_here,target=$sbx_here$sbx_here_is" \
        --mount "type=bind,source=$sbx_at,target=$sbx_at$sbx_at_is" --workdir "$sbx_here" --entrypoint "$sbx_program" "$sbx_image" "$@"
      ;;
    *) "$@" ;;
  esac
}

# This host's programs, to be read only, as words for the engine.
sbx_programs() {
  for sbx_path in /usr /bin /sbin /lib /lib64; do [ ! -d "$sbx_path" ] || printf ' -v %s:%s:ro' "$sbx_path" "$sbx_path"; done
}

# Whether GNU tar is what `tar` is.
sbx_gnu_tar() { case $(tar --version 2>/dev/null) in *"GNU tar"*) ;; *) return 1 ;; esac; }

# sbx_sha FILE: reads stdin, writes its SHA-256 into the file. openssl is several times faster than coreutils.
sbx_sha() {
  if sbx_has openssl && openssl dgst -sha256 </dev/null >/dev/null 2>&1; then
    openssl dgst -sha256 -r
  else
    sha256sum
  fi | cut -d ' ' -f 1 >"$1"
}

# sbx_images_of: images of this sandbox's containers that are here, by id.
sbx_images_of() {
  sbx_all=$("$sbx_engine" ps -aq --no-trunc --filter "label=com.docker.compose.project=$sbx_project" 2>/dev/null </dev/null)
  # shellcheck disable=SC2086
  [ -z "$sbx_all" ] || "$sbx_engine" inspect --type container -f '{{.Image}}' $sbx_all 2>/dev/null </dev/null | sort -u
}

# sbx_any_image: an image that is here, whichever: it lends its name, nothing of it is run.
sbx_any_image() { "$sbx_engine" images -q --no-trunc 2>/dev/null </dev/null | head -n 1; }
