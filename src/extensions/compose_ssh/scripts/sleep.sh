# Stops what runs of a sandbox, and writes down what that was: the names of the containers in `.asleep`, a line each, the oldest
# first. Parameters: the root, the id, the owners, the expected host (sbx_prove_host), the engine's program (empty: it has no
# containers), its expected id, the grace in seconds. stand.sh, belonging.sh and turn.sh stand before it.
umask 077
sbx_id=$2 sbx_owners=$3 sbx_engine=$5 sbx_grace=$7
sbx_prove_host "$4"
sbx_stand "$1" "$2" "$3"

# Each of its containers as `STATE|ID|NAME|` and whether it is one of `compose run`, which nobody starts again.
sbx_all_stand() {
  # One that goes away meanwhile is an error of `inspect`, and is not listed the next time. One that is listed and of which
  # nothing is said may run.
  sbx_tries=3
  while :; do
    sbx_ids=$(sbx_ours "$sbx_engine" container "$sbx_id" "$sbx_owners" --filter "label=com.docker.compose.project=sbx-$sbx_id") || { printf '%s\n' "$sbx_ids"; return 1; }
    [ -n "$sbx_ids" ] || return 0
    # shellcheck disable=SC2086
    sbx_said=$("$sbx_engine" inspect --type container -f '{{.Created}}|{{.State.Status}}|{{.Id}}|{{.Name}}|{{json (index .Config.Labels "com.docker.compose.oneoff")}}' $sbx_ids 2>/dev/null </dev/null)
    # shellcheck disable=SC2086
    [ "$(printf '%s\n' "$sbx_said" | grep -c '|')" != "$(set -- $sbx_ids; echo $#)" ] || break
    sbx_tries=$((sbx_tries - 1))
    # shellcheck disable=SC2086
    [ "$sbx_tries" -gt 0 ] || { "$sbx_engine" inspect --type container -f '' $sbx_ids 2>&1 >/dev/null </dev/null | tail -n 3 | grep . || echo "$sbx_engine does not say how its containers stand"; return 1; }
  done
  printf '%s\n' "$sbx_said" | sort | while IFS='|' read -r sbx_made sbx_state sbx_one sbx_name sbx_once; do printf '%s|%s|%s|%s\n' "$sbx_state" "$sbx_one" "${sbx_name#/}" "$sbx_once"; done
}
# sbx_those STATES: ids and names.
sbx_those() { printf '%s\n' "$sbx_all" | while IFS='|' read -r sbx_state sbx_one sbx_name sbx_once; do
  case " $1 " in *" $sbx_state "*) printf '%s %s\n' "$sbx_one" "$sbx_name" ;; esac
done; }
sbx_ids_of() { printf '%s\n' "$1" | sed 's/ .*//'; }
sbx_names_of() { printf '%s\n' "$1" | sed 's/.* //'; }
# The last two are of a stop and of a start that were killed half-way (podman): what is in it goes on, or holds its ports.
sbx_awake='running paused restarting stopping initialized'

sbx_running=
if [ -n "$sbx_engine" ]; then
  sbx_prove_engine "$sbx_engine" "$6"
  sbx_said=$(sbx_let_go) || sbx_fail engine "$sbx_said"
  sbx_said=$(sbx_take_turn 60) || sbx_fail engine "$sbx_said"
  exec 9>>.turning
  sbx_all=$(sbx_all_stand) || sbx_fail engine "$sbx_all"
  sbx_running=$(sbx_those "$sbx_awake")
fi

# A sleep that was cut off has stopped some already, and a wake that failed has not started all; they are on the list. If all of
# that list run, it is an old one. What is not there any more stays on it: the next wake has to say so again.
sbx_listed='' sbx_cut_off=''
if [ -n "$sbx_engine" ] && [ -f .asleep ] && [ ! -L .asleep ]; then sbx_listed=$(cat .asleep); fi
for sbx_name in $sbx_listed; do
  sbx_names_of "$sbx_running" | grep -Fxq -e "$sbx_name" || sbx_cut_off=yes
done
[ -n "$sbx_cut_off" ] || sbx_listed=
sbx_list=$({
  [ -z "$sbx_listed" ] || printf '%s\n' "$sbx_listed"
  [ -z "$sbx_engine" ] || printf '%s\n' "$sbx_all" | while IFS='|' read -r sbx_state sbx_one sbx_name sbx_once; do
    case " $sbx_awake " in *" $sbx_state "*) ;; *) continue ;; esac
    case $sbx_once in \"[Tt]rue\") continue ;; esac
    printf '%s\n' "$sbx_listed" | grep -Fxq -e "$sbx_name" || printf '%s\n' "$sbx_name"
  done
})
# Only a list that is whole and on the disk gets its name: it is all that a wake knows of what ran.
sbx_said=$({
  { [ -z "$sbx_list" ] || printf '%s\n' "$sbx_list"; } >.asleep.new && sync .asleep.new && mv -- .asleep.new .asleep
} 2>&1) || { rm -f .asleep.new; sbx_fail write "$sbx_said"; }
# There are file systems that sync no folder.
sync . 2>/dev/null || sync

if [ -n "$sbx_running" ]; then
  # Our side being gone is no reason to leave half of it running; whoever ends this for good does so 5 s later.
  trap '' HUP TERM PIPE
  sbx_paused=$(sbx_ids_of "$(sbx_those paused)")
  # podman stops none that is paused.
  # shellcheck disable=SC2086
  [ -z "$sbx_paused" ] || sbx_turn "$sbx_engine" unpause $sbx_paused >/dev/null
  # shellcheck disable=SC2046
  sbx_said=$(sbx_turn "$sbx_engine" stop -t "$sbx_grace" $(sbx_ids_of "$sbx_running"))
  sbx_all=$(sbx_all_stand) || sbx_fail engine "$sbx_all"
  sbx_running=$(sbx_those "$sbx_awake")
  # shellcheck disable=SC2046
  [ -z "$sbx_running" ] || sbx_fail engine "still there: $(echo $(sbx_names_of "$sbx_running")); $sbx_said"
fi
[ -z "$sbx_engine" ] || sbx_end_turn
echo slept=yes
