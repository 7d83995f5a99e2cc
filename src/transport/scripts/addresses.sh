# Which addresses lead somewhere on this host; runtime.sh stands before it. Parameters: the engine's program.
#
# Prints `route=` a line of ip(8), `route4=` a line of /proc/net/route, `resolver=` and `peer=` an address, and
# `networks=` with the engine's networks beneath as JSON. `failed=` names what could not be read.

export LC_ALL=C
sbx_bounded 1 true

# All tables: a VPN has its routes in one of its own. An `ip` that knows no tables leaves those of /proc.
for sbx_family in -4 -6; do
  sbx_has ip || continue
  # A kernel without IPv6 has no such routes, and `ip` an error.
  [ "$sbx_family" = -4 ] || [ -e /proc/net/ipv6_route ] || continue
  if sbx_routes=$(sbx_bounded 5 ip "$sbx_family" route show table all 2>/dev/null </dev/null); then
    printf '%s\n' "$sbx_routes" | sed -n 's/^./route=&/p'
  else
    echo 'failed=tables'
  fi
done
if [ -r /proc/net/route ]; then sed -n '2,$s/^/route4=/p' /proc/net/route; else echo 'failed=routes'; fi
if [ -r /proc/net/ipv6_route ]; then
  sed 's/^/route6=/' /proc/net/ipv6_route
elif [ -e /proc/net/ipv6_route ]; then
  echo 'failed=routes'
fi
for sbx_file in /etc/resolv.conf /run/systemd/resolve/resolv.conf; do
  [ ! -r "$sbx_file" ] || sed -n 's/^nameserver[[:blank:]]*/resolver=/p' "$sbx_file"
done
[ -z "${SSH_CONNECTION:-}" ] || printf 'peer=%s\n' "${SSH_CONNECTION%% *}"

# One that goes away between the two calls fails the second.
sbx_networks() {
  sbx_ids=$("$1" network ls -q) || return
  # shellcheck disable=SC2086 # each id is a word
  if [ -n "$sbx_ids" ]; then "$1" network inspect $sbx_ids; else echo '[]'; fi
}
for sbx_try in 1 2 3; do
  if sbx_json=$(sbx_networks "$1" 2>/dev/null </dev/null); then sbx_try=; break; fi
done
if [ -z "$sbx_try" ]; then
  echo networks=
  printf '%s\n' "$sbx_json" | sed 's/^/ /'
else
  echo 'failed=networks'
fi
echo addresses=yes
