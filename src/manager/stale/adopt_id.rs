//! Ids of what is to be adopted: recorded already, used already, or free.

use crate::domain::adoption::Adopted;
use crate::domain::error::{Code, Error};
use crate::domain::facts::InventoryItem;
use crate::domain::sandbox::{SandboxRecord, State};
use crate::manager::stale::adopt_item::sandbox_item;
use crate::manager::stale::scan::HostScan;

pub(crate) enum JudgedId {
    /// Record is of what is there.
    Known,
    /// Not to be adopted, and why, for each place.
    Refused(Vec<Adopted>),
    /// Free to be adopted.
    Wanted,
}

/// Judges an id by where it was found and what is recorded of it. An id is used once: what hosts have of one that was destroyed, or
/// is recorded elsewhere, is left of it or a copy.
pub(crate) fn judge_id(
    id: &str,
    places: &[Vec<(&HostScan, &InventoryItem)>],
    record: Option<&SandboxRecord>,
) -> JudgedId {
    let refused = |why: &dyn Fn(&HostScan) -> Error| {
        let first = places.iter().filter_map(|seen| seen.first().copied());
        first.map(|(scan, item)| sandbox_item(scan, item).failed(why(scan))).collect()
    };
    let Some(record) = record else {
        if places.len() == 1 {
            return JudgedId::Wanted;
        }
        let hosts: Vec<&str> =
            places.iter().flatten().map(|(scan, _)| scan.host.as_str()).collect();
        let why = |_: &HostScan| {
            let message =
                format!("{} each have a sandbox {id}: one is a copy", hosts.join(" and "));
            Error::new(Code::Conflict, message)
                .hint("look at both; --host adopts the one that is there")
        };
        return JudgedId::Refused(refused(&why));
    };
    if record.state == State::Destroyed {
        let why = |scan: &HostScan| {
            let message = format!(
                "sandbox {id} was destroyed on {}, and {} has something of it",
                record.since, scan.host
            );
            Error::new(Code::Conflict, message)
                .hint("an id is used once; `sandboxer reap-stale` removes what is left of it")
        };
        return JudgedId::Refused(refused(&why));
    }
    let is_its = |seen: &Vec<(&HostScan, &InventoryItem)>| {
        seen.iter().any(|(scan, item)| {
            let same_machine = record
                .host_identity
                .as_ref()
                .filter(|known| !known.machine_id.is_empty())
                .is_some_and(|known| known.machine_id == scan.facts.machine_id);
            let same_folder = record.workdir.is_none() || record.workdir == item.directory;
            (record.host.same(scan.host.as_str()) || same_machine) && same_folder
        })
    };
    let others: Vec<_> = places.iter().filter(|seen| !is_its(seen)).collect();
    if others.is_empty() {
        return JudgedId::Known;
    }
    let item = |(scan, item): (&HostScan, &InventoryItem)| {
        let message = format!(
            "sandbox {id} is recorded on {}, and what {} has under this id is not that one",
            record.host, scan.host
        );
        sandbox_item(scan, item).failed(
            Error::new(Code::Conflict, message)
                .hint("nothing was touched; look at it there, and move it away"),
        )
    };
    JudgedId::Refused(others.iter().filter_map(|seen| seen.first().copied()).map(item).collect())
}
