//! Capacity of hosts: what occupies one, and how full it is.

use std::collections::BTreeMap;

use crate::domain::error::{Code, Error, Kind};
use crate::domain::host::HostSpec;
use crate::domain::sandbox::{SandboxRecord, State};
use crate::manager::deps::Deps;

/// Whether a record stands for something on its host.
pub(crate) fn occupies(record: &SandboxRecord) -> bool {
    match record.state {
        State::Destroyed | State::Forgotten => false,
        State::Failed => record.kept_failed || !record.leftovers.is_empty(),
        State::Requested
        | State::Provisioning
        | State::Ready
        | State::Sleeping
        | State::Lost
        | State::Destroying
        | State::Other(_) => true,
    }
}

/// Reason why a host has no room for one more sandbox, such as `full: 3 of 3 sandboxes`; `None` when it has. `live`: the live
/// records, of any host.
pub(crate) fn fullness<'a>(
    spec: &HostSpec,
    live: impl Iterator<Item = &'a SandboxRecord>,
) -> Option<String> {
    let max = spec.max_sandboxes?;
    let there =
        live.filter(|record| record.host.same(spec.name.as_str()) && occupies(record)).count();
    (there >= max as usize).then(|| format!("full: {there} of {max} sandboxes"))
}

pub(crate) fn host_full(spec: &HostSpec, fullness: &str) -> Error {
    Error::new(Code::Conflict, format!("host {} is {fullness}", spec.name))
        .hint("destroy one, or raise the host's max_sandboxes")
        .of_kind(Kind::Saturated)
}

/// Error of a host that is above its limits; `above`: each figure against its limit.
pub(crate) fn host_loaded(spec: &HostSpec, above: &str) -> Error {
    Error::new(Code::Conflict, format!("host {} is above its limits: {above}", spec.name))
        .hint(
            "free what is used up there, name another host, or raise the host's `limits` in the configuration",
        )
        .of_kind(Kind::Saturated)
}

/// Sandboxes on each host by our records, by the host's name in lower case.
pub(crate) async fn count_by_host(deps: &Deps) -> Result<BTreeMap<String, u32>, Error> {
    let mut counts = BTreeMap::new();
    for record in deps.sandboxes.list().await? {
        if occupies(&record) {
            *counts.entry(record.host.as_str().to_ascii_lowercase()).or_insert(0) += 1;
        }
    }
    Ok(counts)
}
