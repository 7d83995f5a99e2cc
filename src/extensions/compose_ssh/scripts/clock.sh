# The host's clock, in a line of its own before whatever is asked for behind it.
sbx_now() { date -u '+%Y-%m-%dT%H:%M:%S.%N'; }
