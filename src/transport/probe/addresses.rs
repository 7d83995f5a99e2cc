//! Addresses that lead somewhere on a host: its routes in all tables, what its engine's networks have, its resolvers, and
//! where we come from. A network of a sandbox that takes one of them would have the host's own traffic to it.

use std::time::Duration;

use serde_json::Value;

use super::lines::{ScriptEntry, entries};
use crate::domain::compose_host::{Subnet, TakenSubnet};
use crate::domain::error::Error;
use crate::domain::name::{OwnerId, SandboxId};
use crate::domain::text::clean_line;
use crate::transport::{Command, Transport};

const ADDRESSES_SH: &str =
    concat!(include_str!("../scripts/runtime.sh"), include_str!("../scripts/addresses.sh"));

/// Each call in it has a limit of its own, or is quick.
const DEADLINE: Duration = Duration::from_mins(1);

/// Types with which a route may begin and still lead somewhere.
const ROUTE_TYPES: [&str; 8] =
    ["unicast", "local", "nat", "throw", "unreachable", "prohibit", "blackhole", "xresolve"];

/// Addresses that lead somewhere on a host, but for what this sandbox's own networks have: those go before it is made again.
/// Routes that could not be read count as everywhere.
///
/// Errors: the transport's.
pub(crate) async fn taken_subnets(
    transport: &dyn Transport,
    engine: &str,
    id: &SandboxId,
    owner: &OwnerId,
) -> Result<Vec<TakenSubnet>, Error> {
    let output = transport.run(&Command::script(ADDRESSES_SH).arg(engine), DEADLINE).await?;
    if !output.ok() || output.truncated {
        return Ok(everywhere("the host's routes cannot be read"));
    }
    Ok(read(&output.text(), id, owner))
}

fn read(text: &str, id: &SandboxId, owner: &OwnerId) -> Vec<TakenSubnet> {
    let entries = entries(text);
    let has = |key: &str| entries.iter().any(|entry| entry.key == key);
    let networks = entries.iter().find(|entry| entry.key == "networks").map(ScriptEntry::text);
    let networks: Option<Vec<Value>> = networks.and_then(|json| serde_json::from_str(&json).ok());
    let Some(networks) = networks.filter(|_| has("addresses") && !has("failed")) else {
        return everywhere("the host's routes and networks cannot be read");
    };
    let networks: Vec<Network> = networks.iter().map(Network::read).collect();
    let own: Vec<&str> = networks
        .iter()
        .filter(|network| network.is_of(id, owner))
        .map(|network| network.interface.as_str())
        .collect();
    let foreign = networks.iter().filter(|network| !network.is_of(id, owner));
    // First: who has an address is better said than that somebody has it.
    let mut taken: Vec<TakenSubnet> = foreign.flat_map(Network::taken).collect();
    for entry in &entries {
        let found = match entry.key {
            "route" => route(entry.value),
            "route4" => route4(entry.value),
            "route6" => route6(entry.value),
            "resolver" => Subnet::parse(entry.value.trim()).map(|subnet| {
                (subnet, String::new(), format!("{subnet} is a resolver of the host"))
            }),
            "peer" => Subnet::parse(entry.value.trim()).map(|subnet| {
                (
                    subnet,
                    String::new(),
                    format!("{subnet} is where sandboxer reaches the host from"),
                )
            }),
            _ => None,
        };
        let Some((subnet, device, why)) = found else { continue };
        let is_own = !device.is_empty() && own.contains(&device.as_str());
        // A VPN that takes everything has its default route in two halves.
        if subnet.prefix() > 1 && !is_own && !taken.iter().any(|known| known.subnet == subnet) {
            taken.push(TakenSubnet { subnet, why });
        }
    }
    taken
}

fn everywhere(why: &str) -> Vec<TakenSubnet> {
    let all = ["0.0.0.0/0", "::/0"].into_iter().filter_map(Subnet::parse);
    all.map(|subnet| TakenSubnet { subnet, why: why.to_owned() }).collect()
}

/// A line of `ip route`: its subnet, its device, and what is said of it. No default route, which has no subnet.
fn route(line: &str) -> Option<(Subnet, String, String)> {
    let mut words = line.split_whitespace();
    let first = words.next()?;
    let destination = if ROUTE_TYPES.contains(&first) { words.next()? } else { first };
    let subnet = Subnet::parse(destination)?;
    let device = words.skip_while(|word| *word != "dev").nth(1).unwrap_or_default();
    Some((subnet, device.to_owned(), leads(&subnet, device)))
}

/// A line of `/proc/net/route`, whose numbers are hexadecimal in the processor's order: little-endian wherever anybody runs
/// containers.
pub(super) fn route4(line: &str) -> Option<(Subnet, String, String)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let (device, destination, mask) = (*words.first()?, *words.get(1)?, *words.get(7)?);
    let number = |word: &str| u32::from_str_radix(word, 16).ok().map(u32::swap_bytes);
    let prefix = u8::try_from(number(mask)?.leading_ones()).ok()?;
    let subnet = Subnet::new(std::net::Ipv4Addr::from_bits(number(destination)?).into(), prefix)?;
    Some((subnet, device.to_owned(), leads(&subnet, device)))
}

/// A line of `/proc/net/ipv6_route`: addresses as 32 hexadecimal digits, prefix lengths as two.
fn route6(line: &str) -> Option<(Subnet, String, String)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let (destination, prefix, device) = (*words.first()?, *words.get(1)?, *words.get(9)?);
    let address = std::net::Ipv6Addr::from_bits(u128::from_str_radix(destination, 16).ok()?);
    let subnet = Subnet::new(address.into(), u8::from_str_radix(prefix, 16).ok()?)?;
    Some((subnet, device.to_owned(), leads(&subnet, device)))
}

fn leads(subnet: &Subnet, device: &str) -> String {
    let device = clean_line(device, 40);
    format!(
        "the host has a route to {subnet}{}",
        if device.is_empty() { String::new() } else { format!(" ({device})") }
    )
}

/// A network as either engine's `inspect` tells it.
struct Network {
    name: String,
    interface: String,
    sandbox: String,
    owner: String,
    subnets: Vec<Subnet>,
}

impl Network {
    fn read(json: &Value) -> Self {
        let either =
            |a: &str, b: &str| json[a].as_str().or_else(|| json[b].as_str()).unwrap_or_default();
        let labels = if json["Labels"].is_object() { &json["Labels"] } else { &json["labels"] };
        let label = |name: &str| labels[name].as_str().unwrap_or_default().to_owned();
        let named = json["Options"]["com.docker.network.bridge.name"]
            .as_str()
            .or(json["network_interface"].as_str());
        let id: String = either("Id", "id").chars().take(12).collect();
        let configured = [&json["IPAM"]["Config"], &json["subnets"]];
        let configured = configured.into_iter().filter_map(Value::as_array).flatten();
        let subnets =
            configured.filter_map(|one| one["Subnet"].as_str().or_else(|| one["subnet"].as_str()));
        Self {
            name: either("Name", "name").to_owned(),
            interface: named.map_or_else(|| format!("br-{id}"), str::to_owned),
            sandbox: label("sandboxer.id"),
            owner: label("sandboxer.owner"),
            subnets: subnets.filter_map(Subnet::parse).collect(),
        }
    }

    fn is_of(&self, id: &SandboxId, owner: &OwnerId) -> bool {
        self.name.starts_with(&format!("{}_", id.project()))
            && self.sandbox == id.as_str()
            && self.owner == owner.as_str()
    }

    fn taken(&self) -> impl Iterator<Item = TakenSubnet> + '_ {
        let of = if self.sandbox.is_empty() { "" } else { " of another sandbox" };
        self.subnets.iter().map(move |subnet| TakenSubnet {
            subnet: *subnet,
            why: format!("the network {}{of} has {subnet}", clean_line(&self.name, 80)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: &str = "Welcome\nroute=default via 192.0.2.1 dev eth0\nroute=192.168.7.0/24 dev eth0 proto kernel scope link src 192.168.7.2\nroute=local 192.168.7.2 dev eth0 table local\nroute=broadcast 10.255.255.255 dev eth0 table local\nroute=unreachable default dev lo\nroute=10.9.0.0/16 dev tun0 table 52\nroute=10.77.0.0/16 dev br-0123456789ab\nroute=10.78.0.1 dev podman9\nroute=fd00:1::/64 dev eth0\nroute4=eth1\t0000A8C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\nroute4=eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\nroute4=tun1\t00000000\t00000000\t0001\t0\t0\t0\t00000080\t0\t0\t0\nroute6=fd000002000000000000000000000000 40 00000000000000000000000000000000 00 00000000000000000000000000000000 00000100 00000001 00000000 00000001     eth2\nresolver=10.1.2.3\npeer=10.4.4.4\n";

    const NETWORKS: &str = r#"networks=
 [{"Name":"sbx-mine_n","Id":"0123456789abcdef","Labels":{"sandboxer.id":"mine","sandboxer.owner":"own-1"},
 "IPAM":{"Config":[{"Subnet":"10.77.0.0/16"}]},"Options":{}},
 {"name":"sbx-other_n","id":"ff","network_interface":"podman3","labels":{"sandboxer.id":"other"},"subnets":[{"subnet":"10.88.0.0/16"}]},
 {"name":"plain","subnets":null}]
addresses=yes
"#;

    fn taken(text: &str, owner: &str) -> Vec<String> {
        let owner: OwnerId = owner.into();
        read(text, &"mine".into(), &owner)
            .into_iter()
            .map(|taken| format!("{}: {}", taken.subnet, taken.why))
            .collect()
    }

    #[test]
    fn routes_of_all_tables_networks_resolvers_and_our_own_way_are_taken() {
        let text = format!("{HOST}{NETWORKS}");
        let want = [
            "10.88.0.0/16: the network sbx-other_n of another sandbox has 10.88.0.0/16",
            "192.168.7.0/24: the host has a route to 192.168.7.0/24 (eth0)",
            "192.168.7.2/32: the host has a route to 192.168.7.2/32 (eth0)",
            "10.9.0.0/16: the host has a route to 10.9.0.0/16 (tun0)",
            "10.78.0.1/32: the host has a route to 10.78.0.1/32 (podman9)",
            "fd00:1::/64: the host has a route to fd00:1::/64 (eth0)",
            "192.168.0.0/24: the host has a route to 192.168.0.0/24 (eth1)",
            "fd00:2::/64: the host has a route to fd00:2::/64 (eth2)",
            "10.1.2.3/32: 10.1.2.3/32 is a resolver of the host",
            "10.4.4.4/32: 10.4.4.4/32 is where sandboxer reaches the host from",
        ];
        assert_eq!(taken(&text, "own-1"), want);
        // Another installation's of the same id is somebody else's.
        assert!(
            taken(&text, "own-2")[0]
                .starts_with("10.77.0.0/16: the network sbx-mine_n of another sandbox")
        );
    }

    #[test]
    fn what_cannot_be_read_is_everywhere() {
        for text in [
            HOST.to_owned(),
            format!("{HOST}networks=\n [{{]\naddresses=yes\n"),
            format!("failed=routes\n{NETWORKS}"),
            format!("{HOST}failed=tables\n{NETWORKS}"),
        ] {
            let all = taken(&text, "own-1");
            assert!(
                all.len() == 2 && all[0].starts_with("0.0.0.0/0: ") && all[1].starts_with("::/0: "),
                "{all:?}"
            );
        }
    }
}
