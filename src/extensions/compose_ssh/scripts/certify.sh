# Tries what a compose runtime's exit codes and `ps` are worth, with a project that cannot start. Parameters: the
# sandbox's directory, the project, the engine's program, then the words of the compose command.
umask 077
cd -P -- "$1" || exit 72
sbx_project=$2 sbx_engine=$3
shift 3
echo "0 $sbx_engine" >.up || exit 73
mkdir -p .certify && cd .certify || exit 73
# An image that no registry has; nothing is ever pulled for this.
cat >compose.yaml <<'END'
services:
  none:
    image: "localhost/sandboxer-has-no-such-image:0"
    pull_policy: never
    network_mode: none
END
printf 'up=%s\n' "$(sbx_bounded 30 "$@" -p "$sbx_project" -f compose.yaml up -d >up.log 2>&1 </dev/null; echo $?)"
printf 'ps=%s\n' "$(sbx_bounded 30 "$@" -p "$sbx_project" -f compose.yaml ps --format json >ps.log 2>/dev/null </dev/null; echo $?)"
sbx_say ps_text "$(head -c 200 ps.log)"
sbx_say up_text "$(tail -n 3 up.log)"
sbx_bounded 30 "$@" -p "$sbx_project" -f compose.yaml down -v >/dev/null 2>&1 </dev/null
if [ "$sbx_engine" = podman ]; then podman pod rm -f "pod_$sbx_project" >/dev/null 2>&1; fi
sbx_left=$("$sbx_engine" network ls -q --filter "label=com.docker.compose.project=$sbx_project" 2>/dev/null)
[ -z "$sbx_left" ] || { echo network_left=yes; "$sbx_engine" network rm $sbx_left >/dev/null 2>&1; }
cd .. && rm -rf .certify
echo certified=yes
