
# Words that sandboxer knows: ids, names, hosts. Where it knows nothing of the argument, the function above goes on.
functions[_sandboxer_clap]=$functions[_sandboxer]
_sandboxer() {
    local -a known before
    (( CURRENT > 2 )) && before=("${(@Q)words[2,CURRENT-1]}")
    known=("${(@f)$(command sandboxer __complete "${before[@]}" "$PREFIX" 2>/dev/null)}")
    if [[ -z $known[1] ]]; then
        _sandboxer_clap "$@"
        return
    fi
    local what=$known[1]
    shift known
    compset -P '--*='
    if (( ! $#known )); then
        _message "no $what"
        return 1
    fi
    known=("${(@)known/$'\t'/:}")
    _describe -t known "$what" known
}
