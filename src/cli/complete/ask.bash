
# Words that sandboxer knows: ids, names, hosts. Where it knows nothing of the argument, the function above goes on.
_sandboxer_or_words() {
    local line words=() cur="$2"
    while IFS= read -r line; do
        words+=("${line%%$'\t'*}")
    done < <(command sandboxer __complete "${COMP_WORDS[@]:1:COMP_CWORD-1}" "$cur" 2>/dev/null)
    if [[ ${#words[@]} -eq 0 ]]; then
        _sandboxer "$@"
        return
    fi
    COMPREPLY=()
    for line in "${words[@]:1}"; do
        [[ $line == "$cur"* ]] && COMPREPLY+=("$line")
    done
    # No files instead, where nothing fits.
    compopt +o default +o bashdefault 2>/dev/null
    return 0
}

if [[ "${BASH_VERSINFO[0]}" -eq 4 && "${BASH_VERSINFO[1]}" -ge 4 || "${BASH_VERSINFO[0]}" -gt 4 ]]; then
    complete -F _sandboxer_or_words -o nosort -o bashdefault -o default sandboxer
else
    complete -F _sandboxer_or_words -o bashdefault -o default sandboxer
fi
