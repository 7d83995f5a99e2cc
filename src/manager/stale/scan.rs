//! Scan of hosts for an adoption: what each has, as far as it may be judged by; and which of it is the same thing seen twice.

use std::collections::BTreeMap;

use crate::domain::error::Error;
use crate::domain::facts::{HostFacts, Inventory};
use crate::domain::name::HostName;
use crate::domain::stale::{PassState, StaleQuery};
use crate::manager::deps::Deps;
use crate::manager::hosts::places::extension_at;
use crate::manager::stale::read_hosts::{HostReading, marked_roots, read_hosts};

/// Host of which all was read.
pub(crate) struct HostScan {
    pub(crate) host: HostName,
    pub(crate) facts: HostFacts,
    pub(crate) inventory: Inventory,
}

/// A folder, whatever its hosts are called: the machine, or the host where that has no id, and the path.
pub(crate) type FolderPlace = (String, String);

impl HostScan {
    pub(crate) fn place(&self, directory: &str) -> FolderPlace {
        let machine = Some(self.facts.machine_id.clone()).filter(|id| !id.is_empty());
        (machine.unwrap_or_else(|| format!("host {}", self.host)), directory.to_owned())
    }

    fn of(reading: HostReading) -> Result<Self, Option<Error>> {
        let HostReading { pass, facts, .. } = reading;
        let mut facts = facts.filter(|_| pass.state == PassState::Read);
        let inventory = facts.as_mut().and_then(|facts| facts.inventory.take());
        match (facts, inventory) {
            (Some(facts), Some(inventory)) => Ok(Self { host: pass.host, facts, inventory }),
            _ => Err(pass.error),
        }
    }
}

/// Scans these hosts, or all that may be asked; and those that could not be read, or are others than are recorded, with why.
///
/// Errors: `not_found` for a host that is named and unknown.
pub(crate) async fn scan_hosts(
    deps: &Deps,
    named: &[String],
) -> Result<(Vec<HostScan>, Vec<(HostName, Option<Error>)>), Error> {
    let query = StaleQuery { hosts: named.to_vec(), as_last_seen: false };
    let readings = read_hosts(deps, &query).await?;
    let records = deps.sandboxes.list().await?;
    let (mut scans, mut unread) = (Vec::new(), Vec::new());
    for mut reading in readings {
        let host = reading.pass.host.clone();
        let spec = deps.transports.spec(&host);
        let is_place = extension_at(deps, &host).is_some();
        if named.is_empty() && !is_place && spec.is_none_or(|spec| spec.forbid.is_some()) {
            continue;
        }
        let there = records.iter().filter(|record| record.host.same(host.as_str()));
        let roots = marked_roots(deps, &host).await;
        let live = there.filter(|record| !record.state.is_over());
        reading.prove(live.map(|record| &**record), &roots);
        match HostScan::of(reading) {
            Ok(scan) => scans.push(scan),
            Err(error) => unread.push((host, error)),
        }
    }
    Ok((scans, unread))
}

/// Things of hosts by where they are: those that are one thing under several names of a host are one, with the scans that saw
/// it.
pub(crate) fn by_place<'a, T>(
    found: impl IntoIterator<Item = (&'a HostScan, &'a T)>,
    directory: impl Fn(&T) -> &str,
) -> BTreeMap<FolderPlace, Vec<(&'a HostScan, &'a T)>> {
    let mut places: BTreeMap<FolderPlace, Vec<(&HostScan, &T)>> = BTreeMap::new();
    for (scan, thing) in found {
        places.entry(scan.place(directory(thing))).or_default().push((scan, thing));
    }
    places
}
