# What an engine has of a sandbox, and whose it is. Definitions; runtime.sh stands before it, and for some of it says.sh.
#
# Ours has the sandbox's id and one of our owners in its labels, and a name that compose gives it: `sbx-<id>`, `sbx-<id>_...` or
# `sbx-<id>-...`. Labels alone prove nothing: an image that was committed from a sandbox hands all of them on, and two
# installations may choose one id. A name alone proves nothing either: `sbx-a-b-1` is of `a` or of `a-b`. What matches in part
# is foreign: it is told, and nobody touches it.

# Between the fields of a row: JSON has no raw control character, so whatever somebody wrote into a label stays in its field.
sbx_cut=$(printf '\037')
# The id that networks are wanted of; nothing: of all.
sbx_about=''

# sbx_rows ENGINE KIND WORDS...: each container, network, volume or pod as a line of its handle (an id, which no other one gets;
# a volume has nothing but its name), then as JSON the labels sandboxer.id, sandboxer.owner and com.docker.compose.project and
# the name, then what else is needed of the kind. WORDS are filters.
sbx_rows() {
  sbx_program=$1 sbx_kind=$2
  shift 2
  if [ "$sbx_program" = podman ]; then sbx_by='index .Labels'; else sbx_by=.Label; fi
  sbx_row=
  for sbx_label in sandboxer.id sandboxer.owner com.docker.compose.project; do
    sbx_row="$sbx_row$sbx_cut{{json ($sbx_by \"$sbx_label\")}}"
  done
  case $sbx_program/$sbx_kind in
    */container) sbx_again 30 "$sbx_program" ps -a --no-trunc --format "{{.ID}}$sbx_row$sbx_cut{{json .Names}}$sbx_cut{{.Status}}" "$@" ;;
    */volume) sbx_again 30 "$sbx_program" volume ls --format "{{.Name}}$sbx_row$sbx_cut{{json .Name}}" "$@" ;;
    podman/network)
      # Its `ls` has the labels as one text, from which they cannot be told apart; what has nothing of an id (sbx_about) in them or
      # in its name is none of that sandbox. One that goes away between the two is an error of `inspect`.
      for sbx_left in 2 1 0; do
        sbx_names=$(sbx_again 30 podman network ls --format '{{.Name}} {{json .Labels}}' "$@") || { printf '%s\n' "$sbx_names"; return 1; }
        sbx_names=$(printf '%s\n' "$sbx_names" | grep -F -e "${sbx_about:-}" | sed 's/ .*//')
        [ -n "$sbx_names" ] || return 0
        # shellcheck disable=SC2086 # podman's networks are named without blanks
        sbx_answer=$(sbx_bounded 30 podman network inspect --format "{{.ID}}$sbx_row$sbx_cut{{json .Name}}" $sbx_names) && break
        [ "$sbx_left" -gt 0 ] || { printf '%s\n' "$sbx_answer"; return 1; }
      done
      printf '%s\n' "$sbx_answer"
      ;;
    */network) sbx_again 30 "$sbx_program" network ls --no-trunc --format "{{.ID}}$sbx_row$sbx_cut{{json .Name}}" "$@" ;;
    podman/pod) sbx_again 30 podman pod ls --no-trunc --format "{{.Id}}$sbx_row$sbx_cut{{json .Name}}$sbx_cut{{.ContainerIds}},{{.InfraId}}" "$@" ;;
  esac </dev/null
}

# sbx_rows_of ENGINE KIND WORDS...: the same; the engine's words where it fails. What cannot be read is no answer.
sbx_rows_of() {
  sbx_rows_are=$(sbx_rows "$@" 2>/dev/null) || {
    sbx_rows "$@" 2>&1 >/dev/null | tail -n 3 | grep . || echo "$1 does not tell of its ${2}s"
    return 1
  }
  if printf '%s\n' "$sbx_rows_are" | grep -v -e "$sbx_cut" -e '^$'; then return 1; fi
  printf '%s\n' "$sbx_rows_are"
}

# sbx_fields KIND: a row's name, as JSON, becomes the name. Docker tells the names that links gave a container beside its own
# (`web/db,db`).
sbx_fields() {
  sbx_name=${sbx_name#\"} sbx_name=${sbx_name%\"}
  [ "$1" = container ] || return 0
  while case $sbx_name in *,*) ;; *) false ;; esac && case ${sbx_name%%,*} in */*) ;; *) false ;; esac; do sbx_name=${sbx_name#*,}; done
  sbx_name=${sbx_name%%,*}
}

# sbx_judge ID OWNERS: the row in sbx_own, sbx_owned, sbx_project_is and sbx_name. Sets sbx_is to `ours`, `foreign` or nothing, and sbx_why.
sbx_judge() {
  sbx_is='' sbx_why='' sbx_named=''
  case $sbx_name in
    *[!A-Za-z0-9_.-]*) ;;
    "sbx-$1" | "sbx-$1"[_-]* | "pod_sbx-$1") sbx_named=yes ;;
  esac
  if [ "$sbx_own" = "\"$1\"" ]; then
    sbx_is=foreign
    for sbx_one in $2; do
      [ "$sbx_owned" != "\"$sbx_one\"" ] || sbx_is=ours
    done
    if [ "$sbx_is" = foreign ]; then
      case $sbx_owned in
        '""') sbx_why='it has the id of this sandbox, and no owner' ;;
        *[!A-Za-z0-9\"-]*) sbx_why='it has the id of this sandbox, and is of another installation' ;;
        *) sbx_why="it has the id of this sandbox, and is of the installation $sbx_owned" ;;
      esac
    elif [ -z "$sbx_named" ]; then
      sbx_is=foreign sbx_why='it has the labels of this sandbox, and not its name: an image that was made of the sandbox hands them on'
    fi
  elif [ "$sbx_project_is" = "\"sbx-$1\"" ]; then
    sbx_is=foreign sbx_why='it has the label of this compose project, and not the id of this sandbox'
  elif [ -n "$sbx_named" ]; then
    sbx_other=${sbx_own#\"} sbx_other=${sbx_other%\"}
    case $sbx_name in
      # Of another sandbox, whose id begins with this one.
      "sbx-$sbx_other" | "sbx-$sbx_other"[_-]*) ;;
      *) sbx_is=foreign sbx_why='it has a name of this sandbox, and not its labels' ;;
    esac
  fi
}

# sbx_judged ID OWNERS: reads rows, each behind its kind and a cut, containers first. `KIND ours`, the handle, the name and more of
# each that is; `KIND foreign`, the handle, the name and why of each that matches in part; and what did not answer (`failed`).
sbx_judged() {
  sbx_of_id=$1 sbx_of_owners=$2 sbx_in_it=' '
  # All that the judgement goes by has the id in its label, or in a name.
  grep -F -e "sbx-$1" -e "\"$1\"" -e 'failed ' | while IFS=$sbx_cut read -r sbx_what sbx_handle sbx_own sbx_owned sbx_project_is sbx_name sbx_more; do
    case $sbx_what in 'failed '*) printf '%s\n' "$sbx_what"; continue ;; esac
    [ -n "$sbx_handle" ] || continue
    sbx_fields "$sbx_what"
    sbx_judge "$sbx_of_id" "$sbx_of_owners"
    case $sbx_what/$sbx_is in
      container/ours) sbx_in_it="$sbx_in_it$sbx_handle " ;;
      pod/*) sbx_judge_pod ;;
    esac
    case $sbx_is in
      ours) printf '%s\n' "$sbx_what ours$sbx_cut$sbx_handle$sbx_cut$sbx_name$sbx_cut$sbx_more" ;;
      foreign) printf '%s\n' "$sbx_what foreign$sbx_cut$sbx_handle$sbx_cut$sbx_name$sbx_cut$sbx_why" ;;
    esac
  done
}

# A pod has no labels of ours: it is by what is in it. An empty one is where our manifest stands (sbx_proved), which made it.
sbx_judge_pod() {
  [ "$sbx_name" = "pod_sbx-$sbx_of_id" ] && [ "$sbx_own" = '""' ] || return 0
  sbx_infra=${sbx_more##*,} sbx_some='' sbx_why=''
  for sbx_one in $(printf '%s' "${sbx_more%,*}" | tr ',' ' '); do
    [ "$sbx_one" != "$sbx_infra" ] || continue
    sbx_some=yes
    case $sbx_in_it in *" $sbx_one "*) ;; *) sbx_why='there are containers in it that are not of this sandbox' ;; esac
  done
  [ -n "$sbx_some${sbx_proved:-}" ] || sbx_why='it is called as that of this sandbox, and nothing in it says so'
  [ -n "$sbx_why" ] || sbx_is=ours
}

# sbx_rows_behind KIND ENGINE WORDS...: sbx_rows_of it, each behind the kind and a cut. The engine's words behind `failed` where it
# fails.
sbx_rows_behind() {
  sbx_behind=$1 sbx_with=$2
  shift 2
  sbx_found=$(sbx_rows_of "$sbx_with" "$sbx_behind" "$@") || { printf '%s\n' "$sbx_found" | sed 's/^/failed /'; return; }
  [ -z "$sbx_found" ] || printf '%s\n' "$sbx_found" | sed "s/^/$sbx_behind$sbx_cut/"
}

# sbx_belonging ENGINE KIND ID OWNERS WORDS...: of one kind, without its word. The engine's words where it fails.
sbx_belonging() {
  sbx_with=$1 sbx_kind_of=$2 sbx_of_id=$3 sbx_of_owners=$4
  shift 4
  sbx_found=$(sbx_rows_of "$sbx_with" "$sbx_kind_of" "$@") || { printf '%s\n' "$sbx_found"; return 1; }
  printf '%s\n' "$sbx_found" | sed "s/^/$sbx_kind_of$sbx_cut/" | sbx_judged "$sbx_of_id" "$sbx_of_owners" | sed "s/^$sbx_kind_of //"
}

# sbx_ours ENGINE KIND ID OWNERS WORDS...: the handles of what is ours. The engine's words where it fails.
sbx_ours() {
  sbx_filter=label=sandboxer.id=$3
  sbx_told=$(sbx_belonging "$@" --filter "$sbx_filter") || { printf '%s\n' "$sbx_told"; return 1; }
  printf '%s\n' "$sbx_told" | sed -n "s/^ours$sbx_cut\([^$sbx_cut]*\)$sbx_cut.*/\1/p"
}

# sbx_ours_of_all ENGINE OWNERS: the containers of all sandboxes of these owners, by handle. The engine's words where it fails.
sbx_ours_of_all() {
  sbx_rows_are=$(sbx_rows_of "$1" container --filter label=sandboxer.id) || { printf '%s\n' "$sbx_rows_are"; return 1; }
  printf '%s\n' "$sbx_rows_are" | while IFS=$sbx_cut read -r sbx_handle sbx_own sbx_owned sbx_project_is sbx_name sbx_more; do
    sbx_own=${sbx_own#\"} sbx_own=${sbx_own%\"}
    case $sbx_own in '' | *[!a-z0-9-]*) continue ;; esac
    sbx_fields container
    set -- "$1" "$2" "$sbx_own"
    sbx_own=\"$sbx_own\"
    sbx_judge "$3" "$2"
    [ "$sbx_is" != ours ] || printf '%s\n' "$sbx_handle"
  done
}

# sbx_every ENGINE: the rows of each kind (sbx_rows_behind). An engine's client costs some 30 ms of a processor each time, so they are
# asked for side by side: both sides of a pipe run at once, and the right one writes its own only after it has handed on what
# came from the left, so that no two lists mix.
sbx_every() {
  sbx_rows_behind container "$1" | {
    sbx_rest=$(sbx_rows_behind network "$1" | {
      sbx_rest=$(sbx_rows_behind volume "$1")
      cat
      printf '%s\n' "$sbx_rest"
    })
    cat
    printf '%s\n' "$sbx_rest"
  }
  [ "$1" != podman ] || sbx_rows_behind pod podman
}

# sbx_lists ENGINE ID OWNERS: what is a sandbox's of each kind, as sbx_judged says it.
sbx_lists() {
  sbx_about=$2
  sbx_every "$1" | sbx_judged "$2" "$3"
}

# sbx_of KIND LISTS: the handles of ours of a kind; a volume's is its name.
sbx_of() { printf '%s\n' "$2" | sed -n "s/^$1 ours$sbx_cut\([^$sbx_cut]*\)$sbx_cut.*/\1/p"; }

# sbx_in_the_way LISTS: ends the script where something is there that a new sandbox of this id would meet, whosever it is.
sbx_in_the_way() {
  sbx_met=$(printf '%s\n' "$1" | sed -e "s/^\([a-z]*\) ours$sbx_cut[^$sbx_cut]*$sbx_cut\([^$sbx_cut]*\)$sbx_cut.*/\1 \2: it is left of an earlier sandbox/" \
    -e "s/^\([a-z]*\) foreign$sbx_cut[^$sbx_cut]*$sbx_cut\([^$sbx_cut]*\)$sbx_cut/\1 \2: /" -e '/^$/d')
  case $sbx_met in
    '') ;;
    'failed '* | *'
failed '*) sbx_fail engine "$(printf '%s\n' "$sbx_met" | sed -n 's/^failed //p')" ;;
    *) sbx_fail taken "$(printf '%s\n' "$sbx_met" | head -n 10)" ;;
  esac
}
