# Which compose runtime a stack gets here; runtime.sh stands before it. Parameters: the words of a compose command.
sbx_runtime first "$@"
