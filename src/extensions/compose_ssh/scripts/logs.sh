# The last lines of one container, as evidence: the engine's program, the container.
"$1" logs --tail 200 "$2" 2>&1 | head -c 65536
