# Tries what a compose runtime's exit codes and `ps` are worth, with a project that cannot start. Parameters: the
# sandbox's directory, its id, the owner, the engine's program, then the words of the compose command. belonging.sh stands
# before it.
umask 077
cd -P -- "$1" || exit 72
# shellcheck disable=SC2034 # for the pod
sbx_project=sbx-$2 sbx_id=$2 sbx_owner=$3 sbx_engine=$4 sbx_proved=yes
shift 4
# compose would take what bears the project's label for its own.
sbx_in_the_way "$(sbx_lists "$sbx_engine" "$sbx_id" "$sbx_owner")"
echo "0 $sbx_engine" >.up || exit 73
mkdir -p .certify && cd .certify || exit 73
sbx_file=$(env pwd -P)/compose.yaml
# An image that no registry has; nothing is ever pulled for this.
cat >compose.yaml <<END
services:
  none:
    image: "localhost/sandboxer-has-no-such-image:0"
    pull_policy: never
    network_mode: none
networks:
  default:
    labels: {sandboxer.id: "$sbx_id", sandboxer.owner: "$sbx_owner"}
END
printf 'up=%s\n' "$(sbx_bounded 30 "$@" -p "$sbx_project" -f "$sbx_file" up -d >up.log 2>&1 </dev/null; echo $?)"
printf 'ps=%s\n' "$(sbx_bounded 30 "$@" -p "$sbx_project" -f "$sbx_file" ps --format json >ps.log 2>/dev/null </dev/null; echo $?)"
sbx_say ps_text "$(head -c 200 ps.log)"
sbx_say up_text "$(tail -n 3 up.log)"
sbx_bounded 30 "$@" -p "$sbx_project" -f "$sbx_file" down -v >/dev/null 2>&1 </dev/null
for sbx_pod in $([ "$sbx_engine" != podman ] || sbx_of pod "$(sbx_lists podman "$sbx_id" "$sbx_owner")"); do
  podman pod rm "$sbx_pod" >/dev/null 2>&1 </dev/null
done
sbx_left=$(sbx_ours "$sbx_engine" network "$sbx_id" "$sbx_owner") || sbx_left=
# shellcheck disable=SC2086
[ -z "$sbx_left" ] || { echo network_left=yes; "$sbx_engine" network rm $sbx_left >/dev/null 2>&1 </dev/null; }
cd .. && rm -rf .certify
echo certified=yes
