# Ends the script where this account knows a later state of our data directory than the one that asks. Parameters: our
# counter (empty: it is not looked at), the installation; then those of the script behind this, which begin with the root,
# the id, the owners and the expected machine.
if [ -n "$1" ]; then
  # Another machine's counters say nothing.
  sbx_prove_machine "$6"
  sbx_number=$(sbx_counter_of "$2")
  [ "${sbx_number:-0}" -le "$1" ] || sbx_fail behind "$sbx_number"
fi
shift 2
