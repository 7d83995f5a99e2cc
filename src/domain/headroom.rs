//! Headroom of a host: the figures that decide whether anything is placed on it, held against its limits.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::domain::compose_host::Subnet;
use crate::domain::host::Limits;

/// Blocks of a subnet that are looked at one by one; one with more counts as so many.
const BLOCKS: u64 = 1 << 16;

/// Figures of a host; none: it could not be read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Headroom {
    /// Load of the last minute for each processor.
    pub load_per_core: Option<f64>,
    /// Memory in use, in percent.
    pub mem_used_pct: Option<f64>,
    /// The workspace root's file system in use, in percent.
    pub disk_used_pct: Option<f64>,
    /// Networks that an engine has addresses for.
    pub networks: NetworkRoom,
}

/// Room for networks, each of which takes a block of addresses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum NetworkRoom {
    /// No network is made.
    #[default]
    NotNeeded,
    /// The engine has no such limit: podman.
    Unlimited,
    /// Networks could not be read.
    Unread,
    /// So many of the engine's blocks are left.
    Left {
        /// Blocks that nothing has.
        left: u64,
        of: u64,
    },
}

/// Pool of addresses that docker divides into networks' blocks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AddressPool {
    /// Subnet.
    pub base: String,
    /// Prefix length of a block.
    pub size: u8,
}

impl Headroom {
    /// Figures that are above a limit or used up, each against its limit.
    pub(crate) fn above(&self, limits: &Limits) -> Vec<String> {
        let percent = |name: &str, used: Option<f64>, limit: f64| {
            let used = used.filter(|used| *used > limit)?;
            // Digits, as many as show that it is above.
            let shown =
                if used.round() > limit { format!("{used:.0}") } else { format!("{used:.2}") };
            Some(format!("{name} {shown} % used, limit {limit} %"))
        };
        let load = self.load_per_core.filter(|load| *load > limits.load_per_core);
        let networks = match self.networks {
            NetworkRoom::Left { left: 0, of } => {
                Some(format!("no network left: all {of} address blocks of docker are in use"))
            }
            NetworkRoom::Left { .. }
            | NetworkRoom::NotNeeded
            | NetworkRoom::Unlimited
            | NetworkRoom::Unread => None,
        };
        [
            percent("disk", self.disk_used_pct, limits.disk_used_pct),
            percent("memory", self.mem_used_pct, limits.mem_used_pct),
            load.map(|load| format!("load {load:.2} per core, limit {}", limits.load_per_core)),
            networks,
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    pub(crate) fn lacks_network(&self) -> bool {
        matches!(self.networks, NetworkRoom::Left { left: 0, .. })
    }

    /// The figures in words, with those that could not be read.
    pub(crate) fn figures(&self) -> String {
        let percent = |name: &str, used: Option<f64>| match used {
            Some(used) => format!("{name} {used:.0} % used"),
            None => format!("{name} not read"),
        };
        let mut words = vec![
            self.load_per_core.map_or_else(
                || "load not read".to_owned(),
                |load| format!("load {load:.2} per core"),
            ),
            percent("memory", self.mem_used_pct),
            percent("disk", self.disk_used_pct),
        ];
        match self.networks {
            NetworkRoom::Left { left, of } => words.push(format!("{left} of {of} networks left")),
            NetworkRoom::Unread => words.push("networks not read".to_owned()),
            NetworkRoom::NotNeeded | NetworkRoom::Unlimited => {}
        }
        words.join(", ")
    }

    /// The order of hosts by load, then by memory, as they are shown. Unread ones come last.
    pub(crate) fn weight(&self) -> (u64, u64) {
        let hundredths = |figure: Option<f64>| {
            figure.map_or(u64::MAX, |figure| (figure.clamp(0.0, 1e9) * 100.0).round() as u64)
        };
        (hundredths(self.load_per_core), hundredths(self.mem_used_pct.map(f64::round)))
    }
}

/// Blocks of docker's own pools, where it is not configured otherwise.
pub(crate) fn default_pools() -> Vec<AddressPool> {
    let pool = |base: &str, size| AddressPool { base: base.to_owned(), size };
    vec![
        pool("172.17.0.0/16", 16),
        pool("172.18.0.0/16", 16),
        pool("172.19.0.0/16", 16),
        pool("172.20.0.0/14", 16),
        pool("172.24.0.0/14", 16),
        pool("172.28.0.0/14", 16),
        pool("192.168.0.0/16", 20),
    ]
}

/// Number of blocks of pools. IPv6 is not counted: no network needs it.
pub(crate) fn blocks(pools: &[AddressPool]) -> u64 {
    pools.iter().filter_map(count).fold(0, u64::saturating_add)
}

/// Number of blocks of pools that no network has.
pub(crate) fn blocks_left(pools: &[AddressPool], networks: &[Subnet]) -> u64 {
    let mut taken: BTreeSet<(usize, u64)> = BTreeSet::new();
    for (index, pool) in pools.iter().enumerate() {
        let (Some(base), Some(count)) = (Subnet::parse(&pool.base), count(pool)) else { continue };
        for network in networks.iter().filter(|network| network.overlaps(&base)) {
            let (from, until) = if network.covers(&base) {
                (0, count)
            } else {
                let block = 1u64 << (32 - u64::from(pool.size));
                let begin = network.first_v4().saturating_sub(base.first_v4());
                let end = begin + (1u64 << (32 - u64::from(network.prefix())));
                (begin / block, end.div_ceil(block))
            };
            taken.extend((from..until.min(from + BLOCKS)).map(|at| (index, at)));
        }
    }
    blocks(pools).saturating_sub(taken.len() as u64)
}

fn count(pool: &AddressPool) -> Option<u64> {
    let base = Subnet::parse(&pool.base).filter(Subnet::is_ipv4)?;
    let bits = pool.size.checked_sub(base.prefix()).filter(|_| pool.size <= 32)?;
    Some(1 << bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full() -> Headroom {
        Headroom {
            load_per_core: Some(0.5),
            mem_used_pct: Some(40.0),
            disk_used_pct: Some(60.0),
            networks: NetworkRoom::Left { left: 2, of: 31 },
        }
    }

    #[test]
    fn a_figure_is_told_against_the_limit_that_it_is_above() {
        let limits = Limits { disk_used_pct: 90.0, mem_used_pct: 90.0, load_per_core: 4.0 };
        let none = NetworkRoom::Left { left: 0, of: 31 };
        for (headroom, above) in [
            (full(), vec![]),
            (Headroom::default(), vec![]),
            (Headroom { disk_used_pct: Some(90.0), ..full() }, vec![]),
            (Headroom { disk_used_pct: Some(93.4), ..full() }, vec!["disk 93 % used, limit 90 %"]),
            (
                Headroom { disk_used_pct: Some(90.02), ..full() },
                vec!["disk 90.02 % used, limit 90 %"],
            ),
            (
                Headroom { mem_used_pct: Some(100.0), load_per_core: Some(4.5), ..full() },
                vec!["memory 100 % used, limit 90 %", "load 4.50 per core, limit 4"],
            ),
            (
                Headroom { networks: none, ..full() },
                vec!["no network left: all 31 address blocks of docker are in use"],
            ),
            (Headroom { networks: NetworkRoom::Unread, ..full() }, vec![]),
        ] {
            assert_eq!(headroom.above(&limits), above, "{headroom:?}");
        }
    }

    #[test]
    fn what_could_not_be_read_is_said() {
        assert_eq!(
            full().figures(),
            "load 0.50 per core, memory 40 % used, disk 60 % used, 2 of 31 networks left"
        );
        assert_eq!(
            Headroom { networks: NetworkRoom::Unread, ..Headroom::default() }.figures(),
            "load not read, memory not read, disk not read, networks not read"
        );
    }

    #[test]
    fn hosts_are_weighed_by_load_then_memory_and_unread_ones_come_last() {
        let busier = Headroom { load_per_core: Some(0.6), mem_used_pct: Some(1.0), ..full() };
        let fuller = Headroom { mem_used_pct: Some(41.0), ..full() };
        let near = Headroom { load_per_core: Some(0.501), ..full() };
        assert!(full().weight() < busier.weight() && full().weight() < fuller.weight());
        assert_eq!(full().weight(), near.weight(), "they are shown alike");
        assert!(busier.weight() < Headroom::default().weight());
    }

    #[test]
    fn blocks_are_left_where_no_network_lies() {
        let subnets = |text: &str| -> Vec<Subnet> {
            text.split_whitespace().filter_map(Subnet::parse).collect()
        };
        let small = [AddressPool { base: "10.5.0.0/24".into(), size: 26 }];
        assert_eq!((blocks(&default_pools()), blocks(&small)), (31, 4));
        for (pools, networks, left) in [
            (&default_pools()[..], "", 31),
            (&default_pools(), "172.17.0.0/16 172.20.0.0/16 172.21.0.0/16 192.168.16.0/20", 27),
            // A network elsewhere takes none, and two in one block take it once.
            (&default_pools(), "10.0.0.0/8 192.168.1.0/24 192.168.2.0/24 fd00::/64", 30),
            (&default_pools(), "0.0.0.0/0", 0),
            (&small, "10.5.0.0/26 10.5.0.64/26 10.5.0.128/26", 1),
            (&small, "10.5.0.0/25 10.5.0.128/25", 0),
            (&small, "10.0.0.0/8", 0),
        ] {
            assert_eq!(blocks_left(pools, &subnets(networks)), left, "{networks}");
        }
        let odd = [
            AddressPool { base: "fd00::/48".into(), size: 64 },
            AddressPool { base: "10.0.0.0/16".into(), size: 8 },
            AddressPool { base: "10.0.0.0/16".into(), size: 200 },
            AddressPool { base: "x".into(), size: 24 },
        ];
        assert_eq!(blocks(&odd), 0);
    }
}
