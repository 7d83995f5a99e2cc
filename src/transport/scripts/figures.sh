# Placement's figures alone; runtime.sh and headroom.sh stand before it. Parameters: the workspace root.
sbx_headroom "$1"
