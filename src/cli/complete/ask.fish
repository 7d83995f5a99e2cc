
# Words that sandboxer knows: ids, names, hosts. Where it knows nothing of the argument, the lines above go on.
function __sandboxer_ask
    set -l before (commandline -opc)
    set -e before[1]
    set -l word (commandline -ct)
    command sandboxer __complete $before "$word" 2>/dev/null
end

function __sandboxer_knows
    test (count (__sandboxer_ask)) -gt 0
end

function __sandboxer_words
    __sandboxer_ask | tail -n +2
end

complete -c sandboxer -n __sandboxer_knows -f -a '(__sandboxer_words)'
