//! Figures that placement looks at, read from what `scripts/headroom.sh` printed.

use std::time::Duration;

use super::lines::{ScriptEntry, entries};
use super::sample::memory;
use crate::domain::compose_host::Subnet;
use crate::domain::error::Error;
use crate::domain::headroom::{
    AddressPool, Headroom, NetworkRoom, blocks, blocks_left, default_pools,
};
use crate::transport::{Command, Transport};

const FIGURES_SH: &str = concat!(
    include_str!("../scripts/runtime.sh"),
    include_str!("../scripts/headroom.sh"),
    include_str!("../scripts/figures.sh")
);

/// The script's own limits are well below.
const LIMIT: Duration = Duration::from_secs(20);

/// Asks a host for the figures that placement looks at, but for networks, in one round trip. `root`: whose file system.
///
/// Errors: the transport's. What could not be read is no error.
pub(crate) async fn headroom(transport: &dyn Transport, root: &str) -> Result<Headroom, Error> {
    let output = transport.run(&Command::script(FIGURES_SH).arg(root), LIMIT).await?;
    Ok(parse_headroom(&output.text()))
}

/// The figures in what `sbx_headroom` printed; networks are not needed.
pub(crate) fn parse_headroom(lines: &str) -> Headroom {
    let entries = entries(lines);
    let value = |key: &str| entries.iter().find(|entry| entry.key == key).map(|e| e.value.trim());
    let cpus = value("cpus").and_then(|text| text.parse::<u32>().ok()).filter(|cpus| *cpus > 0);
    let load = value("load").and_then(|text| text.split(' ').next()?.parse::<f64>().ok());
    let load = load.filter(|load| load.is_finite() && *load >= 0.0);
    let memory = (memory(&entries, "MemTotal"), memory(&entries, "MemAvailable"));
    Headroom {
        load_per_core: load.zip(cpus).map(|(load, cpus)| load / f64::from(cpus)),
        mem_used_pct: memory.0.zip(memory.1).and_then(|(total, free)| used_pct(total, free)),
        disk_used_pct: disk_used_pct(&entries),
        networks: NetworkRoom::NotNeeded,
    }
}

/// Disk in use as df has it: of what the account can have, so that what is kept for root is neither used nor free.
fn disk_used_pct(entries: &[ScriptEntry<'_>]) -> Option<f64> {
    if let Some(stat) = entries.iter().find(|entry| entry.key == "room.stat") {
        let figures: Vec<u64> =
            stat.value.split_whitespace().map_while(|word| word.parse().ok()).collect();
        let [blocks, free, available] = figures[..] else { return None };
        let used = blocks.checked_sub(free)?;
        return used_pct(used.checked_add(available)?, available);
    }
    // NAME BLOCKS USED AVAILABLE PERCENT MOUNT; the name may hold blanks.
    let line = entries.iter().find(|entry| entry.key == "room.df")?.text();
    let percent = |word: &str| word.strip_suffix('%').and_then(|text| text.parse::<u8>().ok());
    line.split_whitespace().find_map(percent).map(f64::from)
}

/// Docker's address pools in what `sbx_networks` printed; empty: its own default. None where it was not asked, or cannot be
/// understood.
pub(crate) fn parse_pools(lines: &str) -> Option<Vec<AddressPool>> {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Pool {
        base: String,
        size: u8,
    }
    let entries = entries(lines);
    let text = entries.iter().find(|entry| entry.key == "net.pools")?.value;
    let pools: Option<Vec<Pool>> = serde_json::from_str(text).ok()?;
    let pools = pools.unwrap_or_default().into_iter();
    Some(pools.map(|pool| AddressPool { base: pool.base, size: pool.size }).collect())
}

/// Room for networks of docker, by what `sbx_networks` printed and its pools.
pub(crate) fn network_room(lines: &str, pools: Option<&[AddressPool]>) -> NetworkRoom {
    let entries = entries(lines);
    let has = |key: &str| entries.iter().any(|entry| entry.key == key);
    let count = entries.iter().find(|entry| entry.key == "net.count");
    let count: Option<u64> = count.and_then(|entry| entry.value.parse().ok());
    let (Some(count), Some(pools), false) = (count, pools, has("net.failed")) else {
        return NetworkRoom::Unread;
    };
    let defaults = default_pools();
    let pools = if pools.is_empty() { &defaults } else { pools };
    let of = blocks(pools);
    if of == 0 {
        return NetworkRoom::Unread;
    }
    if count < of && !has("net.subnet") {
        // Each has one block at most.
        return NetworkRoom::Left { left: of - count, of };
    }
    let subnets: Vec<Subnet> = subnets(&entries);
    if subnets.is_empty() {
        return NetworkRoom::Unread;
    }
    NetworkRoom::Left { left: blocks_left(pools, &subnets), of }
}

fn subnets(entries: &[ScriptEntry<'_>]) -> Vec<Subnet> {
    let lines = entries.iter().filter(|entry| entry.key == "net.subnet");
    lines.filter_map(|entry| Subnet::parse(entry.value.trim())).collect()
}

fn used_pct(total: u64, free: u64) -> Option<f64> {
    (total > 0).then(|| total.saturating_sub(free) as f64 * 100.0 / total as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_that_did_not_come_is_none() {
        let whole = "cpus=4\nload=2.0 1.0 1.0 1/2 3\nmem=MemTotal:  100 kB\nmem=MemAvailable: 25 kB\n\
            room.stat=1000 400 100\n";
        let read = parse_headroom(whole);
        assert_eq!(
            (read.load_per_core, read.mem_used_pct, read.disk_used_pct),
            (Some(0.5), Some(75.0), Some(600.0 * 100.0 / 700.0))
        );
        let df = "room.df=\n map auto 1000 400 600 40% /srv\n";
        assert_eq!(parse_headroom(df).disk_used_pct, Some(40.0));
        for lines in [
            "",
            "cpus=0\nload=1.0\n",
            "cpus=\nload=1.0\nmem=MemTotal: 0 kB\nmem=MemAvailable: 0 kB\n",
            "cpus=2\nload=NaN\nroom.stat=0 0 0\n",
            "room.stat=5 9 1\n",
            "room.stat=5 x\nroom.df=\n",
            "cpus=2\nload=-1\nmem=MemTotal: x kB\n",
            " cpus=2\n load=1.0\n",
        ] {
            assert_eq!(parse_headroom(lines), Headroom::default(), "{lines:?}");
        }
    }

    #[test]
    fn networks_are_held_against_the_pools_that_docker_names() {
        let small = [AddressPool { base: "10.5.0.0/24".into(), size: 25 }];
        let left = |left, of| NetworkRoom::Left { left, of };
        for (lines, pools, room) in [
            ("net.count=5\n", Some(&[][..]), left(26, 31)),
            ("net.count=1\n", Some(&small[..]), left(1, 2)),
            // More networks than blocks: some lie elsewhere.
            (
                "net.count=3\nnet.subnet=10.5.0.0/25\nnet.subnet=10.9.0.0/24\n",
                Some(&small),
                left(1, 2),
            ),
            (
                "net.count=2\nnet.subnet=10.5.0.0/25\nnet.subnet=10.5.0.128/25\n",
                Some(&small),
                left(0, 2),
            ),
            // Counted, and not to be looked at.
            ("net.count=2\n", Some(&small), NetworkRoom::Unread),
            ("net.failed=yes\n", Some(&small), NetworkRoom::Unread),
            ("net.count=2\n", None, NetworkRoom::Unread),
            ("", Some(&small), NetworkRoom::Unread),
            (" net.count=2\n", Some(&small), NetworkRoom::Unread),
        ] {
            assert_eq!(network_room(lines, pools), room, "{lines:?}");
        }
        assert_eq!(parse_pools("net.pools=null\n"), Some(Vec::new()));
        assert_eq!(
            parse_pools("net.pools=[{\"Base\":\"10.5.0.0/24\",\"Size\":25}]\n"),
            Some(small.to_vec())
        );
        for lines in ["", "net.pools=\n", "net.pools={}\n", "net.pools=[{\"Base\":1}]\n"] {
            assert_eq!(parse_pools(lines), None, "{lines:?}");
        }
    }
}
