//! Networks of an engine, and how many more its pools of addresses have room for.

use serde_json::Value;

use super::addresses;
use super::lines::ScriptEntry;
use crate::domain::compose_host::Subnet;
use crate::domain::facts::NetworkUse;

/// Docker's pools where its configuration names none: a base, and the prefix of what each network gets. 31 networks.
const DOCKER_POOLS: [(&str, u8); 7] = [
    ("172.17.0.0/16", 16),
    ("172.18.0.0/16", 16),
    ("172.19.0.0/16", 16),
    ("172.20.0.0/14", 16),
    ("172.24.0.0/14", 16),
    ("172.28.0.0/14", 16),
    ("192.168.0.0/16", 20),
];
/// More networks than these are counted and not looked at one by one.
const MANY: u64 = 4096;

/// Networks of each engine whose list is there. Docker gives a network the first block of its pools that overlaps neither
/// another network nor a route of the host.
pub(super) fn parse(entries: &[ScriptEntry<'_>]) -> Vec<NetworkUse> {
    let routes: Vec<Subnet> = entries
        .iter()
        .filter(|entry| entry.key == "route4")
        .filter_map(|entry| addresses::route4(entry.value))
        .map(|(subnet, ..)| subnet)
        .filter(|subnet| subnet.prefix() > 0)
        .collect();
    let lists = entries.iter().filter(|entry| entry.key == "list");
    lists
        .filter_map(|entry| {
            let engine = entry.value.strip_prefix("network ")?;
            let taken: Vec<Vec<Subnet>> = super::inventory::objects(entry)
                .iter()
                .map(subnets)
                .filter(|subnets| !subnets.is_empty())
                .collect();
            let used = u32::try_from(taken.len()).unwrap_or(u32::MAX);
            let pools = entries.iter().find(|pools| pools.key == "pools" && pools.value == engine);
            let left = pools.map(|pools| left(&pools_of(&pools.text()), &taken.concat(), &routes));
            Some(NetworkUse { engine: engine.to_owned(), used, left })
        })
        .collect()
}

/// IPv4 subnets of a network, as docker's and podman's JSON have them.
fn subnets(network: &Value) -> Vec<Subnet> {
    let Some(list) = network.get("subnets").and_then(Value::as_array) else { return Vec::new() };
    list.iter()
        .filter_map(|entry| entry.get("Subnet").or_else(|| entry.get("subnet"))?.as_str())
        .filter_map(Subnet::parse)
        .filter(Subnet::is_ipv4)
        .collect()
}

/// Docker's pools from its own words; its defaults where it names none.
fn pools_of(json: &str) -> Vec<(Subnet, u8)> {
    let named: Option<Vec<Value>> = serde_json::from_str(json).ok();
    let named = named.filter(|pools| !pools.is_empty());
    let pool = |base: &str, size: u64| {
        let (base, size) = (Subnet::parse(base)?, u8::try_from(size).ok()?);
        (base.is_ipv4() && (base.prefix()..=32).contains(&size)).then_some((base, size))
    };
    match named {
        Some(pools) => pools
            .iter()
            .filter_map(|entry| pool(entry.get("Base")?.as_str()?, entry.get("Size")?.as_u64()?))
            .collect(),
        None => {
            DOCKER_POOLS.iter().filter_map(|(base, size)| pool(base, u64::from(*size))).collect()
        }
    }
}

/// Blocks of the pools that overlap nothing.
fn left(pools: &[(Subnet, u8)], networks: &[Subnet], routes: &[Subnet]) -> u32 {
    let blocks = |(base, size): &(Subnet, u8)| 1_u64 << (size - base.prefix());
    let all: u64 = pools.iter().map(blocks).sum();
    if all > MANY {
        return u32::try_from(all.saturating_sub(networks.len() as u64)).unwrap_or(u32::MAX);
    }
    let free = |block: &Subnet| !networks.iter().chain(routes).any(|taken| taken.overlaps(block));
    let count: usize = pools
        .iter()
        .map(|pool| (0..blocks(pool)).filter_map(|at| block(pool, at)).filter(free).count())
        .sum();
    u32::try_from(count).unwrap_or(u32::MAX)
}

fn block((base, size): &(Subnet, u8), at: u64) -> Option<Subnet> {
    let std::net::IpAddr::V4(first) = base.address() else { return None };
    let step = u32::try_from(at.checked_shl(32 - u32::from(*size))?).ok()?;
    let address = std::net::Ipv4Addr::from_bits(first.to_bits().checked_add(step)?);
    Subnet::new(address.into(), *size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_used_and_left() {
        const OURS: &str = r#" {"name":"bridge","driver":"bridge","subnets":[{"Subnet":"172.17.0.0/16","Gateway":"172.17.0.1"}]}
 {"name":"host","driver":"host","subnets":null}
 {"name":"sbx-a_default","driver":"bridge","subnets":[{"Subnet":"172.18.0.0/16"},{"Subnet":"fd00::/64"}]}
 {"name":"fixed","driver":"bridge","subnets":[{"Subnet":"10.5.0.0/24"}]}
"#;
        for (said, expected) in [
            // 31 by default; `fixed` takes none of them.
            (format!("list=network docker\n{OURS}\npools=docker\n null\n"), "docker 3 Some(29)"),
            // Half of 192.168 is the host's own.
            (
                format!("route4=eth0\t0000A8C0\t00000000\t0001\t0\t0\t0\t0080FFFF\t0\t0\t0\nlist=network docker\n{OURS}\npools=docker\n null\n"),
                "docker 3 Some(21)",
            ),
            // The default route takes nothing.
            (
                format!("route4=eth0\t00000000\t0100000A\t0003\t0\t0\t0\t00000000\t0\t0\t0\nlist=network docker\n{OURS}\npools=docker\n\n"),
                "docker 3 Some(29)",
            ),
            (
                format!("list=network docker\n{OURS}\npools=docker\n [{{\"Base\":\"10.5.0.0/16\",\"Size\":24}}]\n"),
                "docker 3 Some(255)",
            ),
            (
                format!("list=network docker\n{OURS}\npools=docker\n [{{\"Base\":\"10.0.0.0/8\",\"Size\":30}},{{\"Base\":\"x\",\"Size\":99}},{{\"Base\":\"10.0.0.0/8\",\"Size\":2}}]\n"),
                "docker 3 Some(4194301)",
            ),
            (
                "list=network podman\n [\n {\"name\":\"podman\",\"subnets\":[{\"subnet\":\"10.88.0.0/16\"}]}\n ]\n".to_owned(),
                "podman 1 None",
            ),
            ("list=network docker\n garbage\n {}\n []\n".to_owned(), "docker 0 None"),
            ("list=container docker\n".to_owned(), ""),
        ] {
            let found = parse(&super::super::lines::entries(&said));
            let found: Vec<String> = found
                .iter()
                .map(|networks| format!("{} {} {:?}", networks.engine, networks.used, networks.left))
                .collect();
            assert_eq!(found.join("; "), expected, "{said}");
        }
    }
}
