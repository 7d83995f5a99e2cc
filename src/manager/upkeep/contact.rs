//! Contact: what waits for a host, and is done when that was just reached.

use futures_util::future::join_all;

use crate::domain::name::HostName;
use crate::manager::deps::Deps;
use crate::manager::sandboxes::manifest::{is_manifest_pending, write_manifest};
use crate::manager::snapshots::prune::prune_undo;
use crate::manager::upkeep::forget::collect_tombstones;
use crate::manager::upkeep::ownership::ensure_own;
use crate::manager::upkeep::sweep_memory::Paused;

/// Removes what waits for this host and undo snapshots that are not kept any longer, and writes the deadlines that its
/// manifests lack. What fails is tried again at the next
/// contact, and is no failure of whatever reached the host.
pub(crate) async fn host_reached(deps: &Deps, host: &HostName) {
    deps.sweep.went_well(&Paused::host(host));
    collect_tombstones(deps, host).await;
    write_manifests(deps, host).await;
    prune_undo(deps, host, None).await;
}

/// Writes the deadlines that were moved while the host did not answer.
async fn write_manifests(deps: &Deps, host: &HostName) {
    let records = match deps.sandboxes.list().await {
        Ok(records) => records,
        Err(error) => return tracing::warn!(%error, "pending manifests could not be looked for"),
    };
    let pending: Vec<_> = records
        .into_iter()
        .filter(|record| is_manifest_pending(record) && record.host.same(host.as_str()))
        .collect();
    if pending.is_empty() {
        return;
    }
    if let Err(error) = ensure_own(deps).await {
        return tracing::warn!(%error, "pending manifests are not written from here");
    }
    let written = pending.iter().map(async |record| (record, write_manifest(deps, record).await));
    for (record, written) in join_all(written).await {
        if let Err(error) = written {
            tracing::warn!(sandbox = %record.id, %error, "its deadline could not be written to its host yet");
        }
    }
}
