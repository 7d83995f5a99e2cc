//! Canary's record: its host's facts, summed up.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::domain::Time;
use crate::domain::facts::{Disk, HostFacts, Inventory, InventoryItem};

/// Things of sandboxes on a host, counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(from = "StoredCounts")]
pub struct InventoryCounts {
    /// Sandboxes of which anything is there.
    pub sandboxes: u32,
    /// Their directories.
    pub directories: u32,
    /// Their containers, whatever their state.
    pub containers: u32,
    /// Their networks.
    pub networks: u32,
    /// Their volumes.
    pub volumes: u32,
}

impl From<&Inventory> for InventoryCounts {
    fn from(inventory: &Inventory) -> Self {
        let sum = |of: fn(&InventoryItem) -> usize| {
            u32::try_from(inventory.sandboxes.iter().map(of).sum::<usize>()).unwrap_or(u32::MAX)
        };
        Self {
            sandboxes: sum(|_| 1),
            directories: sum(|item| usize::from(item.directory.is_some())),
            containers: sum(|item| item.containers.len()),
            networks: sum(|item| item.networks.len()),
            volumes: sum(|item| item.volumes.len()),
        }
    }
}

/// Inventory as records have it: counted, or item by item where an earlier version wrote it.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
enum StoredCounts {
    Counted {
        sandboxes: u32,
        #[serde(default)]
        directories: u32,
        #[serde(default)]
        containers: u32,
        #[serde(default)]
        networks: u32,
        #[serde(default)]
        volumes: u32,
    },
    Listed(Inventory),
}

impl From<StoredCounts> for InventoryCounts {
    fn from(stored: StoredCounts) -> Self {
        match stored {
            StoredCounts::Counted { sandboxes, directories, containers, networks, volumes } => {
                Self { sandboxes, directories, containers, networks, volumes }
            }
            StoredCounts::Listed(inventory) => Self::from(&inventory),
        }
    }
}

/// Host's facts in the record of a canary: what an operator looks for there. All of them are in `hosts.json`. The facts that
/// earlier versions wrote in full are read too.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CanaryTelemetry {
    /// When the host said so.
    pub at: Time,
    /// `uname -n`.
    pub hostname: String,
    /// `uname -sr`.
    pub kernel: String,
    /// `PRETTY_NAME` of `/etc/os-release`.
    pub os: Option<String>,
    /// The account.
    pub user: String,
    /// Processors.
    pub cpus: u32,
    /// Load of the last minute.
    pub load1: f64,
    /// Memory.
    pub mem_total_bytes: u64,
    /// Memory that programs can still have.
    pub mem_available_bytes: u64,
    /// The workspace root's file system.
    pub disk: Option<Disk>,
    /// Seconds that the host's clock is ahead of ours (negative: behind).
    pub clock_offset_s: Option<f64>,
    /// Counts of our (or another installation's) things on the host.
    pub inventory: Option<InventoryCounts>,
}

impl From<&HostFacts> for CanaryTelemetry {
    fn from(facts: &HostFacts) -> Self {
        Self {
            at: facts.at,
            hostname: facts.hostname.clone(),
            kernel: facts.kernel.clone(),
            os: facts.os.clone(),
            user: facts.user.clone(),
            cpus: facts.cpus,
            load1: facts.load1,
            mem_total_bytes: facts.mem_total_bytes,
            mem_available_bytes: facts.mem_available_bytes,
            disk: facts.disk.clone(),
            clock_offset_s: facts.clock_offset_s,
            inventory: facts.inventory.as_ref().map(InventoryCounts::from),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn facts_that_were_written_in_full_are_read_as_a_summary() {
        let full = json!({
            "at": "2026-11-29T12:00:00Z", "machine_id": "m", "hostname": "box", "kernel": "Linux 6.1",
            "os": null, "user": "ops", "uid": 1000, "cpus": 4, "load1": 0.5, "mem_total_bytes": 2,
            "mem_available_bytes": 1, "disk": null, "workspace_root": "/s", "clock_offset_s": 0.25,
            "tools": {"tar": "/bin/tar"}, "runtimes": [],
            "inventory": {"sandboxes": [
                {"sandbox_id": "a", "owner": null, "directory": "/s/sbx-a", "containers": ["a1", "a2"],
                 "networks": ["n"], "volumes": []},
                {"sandbox_id": "b", "owner": null, "directory": null, "containers": ["b1"]},
            ]},
        });
        let summary: CanaryTelemetry = serde_json::from_value(full).unwrap();
        let counts = InventoryCounts {
            sandboxes: 2,
            directories: 1,
            containers: 3,
            networks: 1,
            volumes: 0,
        };
        assert_eq!((summary.cpus, summary.inventory), (4, Some(counts)));
        let text = serde_json::to_string(&summary).unwrap();
        assert_eq!(serde_json::from_str::<CanaryTelemetry>(&text).unwrap(), summary);
        assert!(text.len() < 450, "{text}");
    }
}
