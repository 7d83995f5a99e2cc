//! Workspace roots, as this installation knows them (contract 1): what is known goes along to the host with each call, and
//! what it says is written down before anything is made there.

use std::future::Future;

use crate::domain::error::Error;
use crate::domain::facts::HostIdentity;
use crate::domain::name::HostName;
use crate::domain::root::{HostRecord, KnownRoots, MarkedRoot, RootMark, UnmarkedRoot};
use crate::domain::sandbox::SandboxRecord;
use crate::domain::snapshot::{Replica, SnapshotRecord};
use crate::manager::deps::Deps;
use crate::manager::hosts::capacity::occupies;
use crate::manager::operation::progress::ProgressReporter;

/// Roots of a host, as far as they are known, with a mark for the next one. Where it cannot be read or written less is
/// known, and less counts as proved.
pub(crate) async fn known_roots(deps: &Deps, host: &HostName) -> KnownRoots {
    let Ok(known) = read(deps, host).await else { return KnownRoots::default() };
    let known = match known {
        Some(known) if known.spare_mark.is_some() => known,
        known => match with_spare(deps, host).await {
            Ok(known) => known,
            Err(error) => {
                tracing::warn!(%host, %error, "no mark for a workspace root could be written down");
                known.unwrap_or_else(|| HostRecord::unknown(host))
            }
        },
    };
    KnownRoots { marked: known.roots, unmarked: Vec::new(), spare: known.spare_mark }
}

/// Roots for something new: of roots in which nothing is recorded another one may be there by now, and
/// those in which something is must be there, though their marks are not known.
pub(crate) async fn roots_for_new(deps: &Deps, host: &HostName) -> Result<KnownRoots, Error> {
    with_recorded(deps, host, known_roots(deps, host).await).await
}

/// [`roots_for_new`] for who makes nothing: a root that bears no mark gets none.
pub(crate) async fn roots_for_plan(deps: &Deps, host: &HostName) -> Result<KnownRoots, Error> {
    let known = read(deps, host).await.ok().flatten();
    let marked = known.map(|known| known.roots).unwrap_or_default();
    with_recorded(deps, host, KnownRoots { marked, ..KnownRoots::default() }).await
}

async fn read(deps: &Deps, host: &HostName) -> Result<Option<HostRecord>, Error> {
    deps.hosts.get(host).await.inspect_err(|error| {
        tracing::warn!(%host, %error, "what is known of its workspace roots cannot be read");
    })
}

async fn with_recorded(
    deps: &Deps,
    host: &HostName,
    mut known: KnownRoots,
) -> Result<KnownRoots, Error> {
    let used = recorded_roots(deps, |at, _| at.same(host.as_str())).await?;
    let is_at = |root: &MarkedRoot, used: &UnmarkedRoot| {
        (&root.machine_id, &root.path) == (&used.machine_id, &used.path)
    };
    known.marked.retain(|root| used.iter().any(|used| is_at(root, used)));
    known.unmarked = used
        .into_iter()
        .filter(|used| !known.marked.iter().any(|root| is_at(root, used)))
        .collect();
    Ok(known)
}

/// Roots in which records have something, on hosts that are meant.
pub(crate) async fn recorded_roots(
    deps: &Deps,
    is_meant: impl Fn(&HostName, Option<&HostIdentity>) -> bool,
) -> Result<Vec<UnmarkedRoot>, Error> {
    let (sandboxes, snapshots) = tokio::try_join!(deps.sandboxes.list(), deps.snapshots.list())?;
    let places = sandboxes.iter().filter_map(|record| place_of_sandbox(record));
    let places = places.chain(snapshots.iter().flat_map(places_of_snapshot));
    let mut found: Vec<UnmarkedRoot> = Vec::new();
    for RootPlace { identity, root, .. } in
        places.filter(|place| is_meant(place.host, place.identity))
    {
        let machine_id = identity.map(|identity| identity.machine_id.clone()).unwrap_or_default();
        let root =
            UnmarkedRoot { machine_id, path: if root.is_empty() { "/" } else { root }.to_owned() };
        if !found.contains(&root) {
            found.push(root);
        }
    }
    Ok(found)
}

async fn with_spare(deps: &Deps, host: &HostName) -> Result<HostRecord, Error> {
    let dice = &deps.random_u32;
    let mark = RootMark::from_random([dice(), dice(), dice(), dice()]);
    let change = move |record: &mut HostRecord| {
        record.spare_mark.get_or_insert(mark);
        Ok(())
    };
    deps.hosts.update(host, Box::new(change)).await
}

/// Writes the mark of a root down. It is known again from the host where that fails.
pub(crate) async fn learn_root(deps: &Deps, host: &HostName, root: MarkedRoot) {
    let change = move |record: &mut HostRecord| {
        record.learn(root);
        Ok(())
    };
    if let Err(error) = deps.hosts.update(host, Box::new(change)).await {
        tracing::warn!(%host, %error, "the mark of a workspace root could not be written down");
    }
}

/// Work on a host that may come to a root whose mark is not known: that is written down before the work goes on.
pub(crate) async fn learn_roots_during<T>(
    deps: &Deps,
    host: &HostName,
    progress: &ProgressReporter,
    work: impl Future<Output = T>,
) -> T {
    let mut work = std::pin::pin!(work);
    let result = loop {
        tokio::select! {
            biased;
            root = progress.next_root() => learn_root(deps, host, root).await,
            result = &mut work => break result,
        }
    };
    // A root may have come at its very end.
    while let Some(root) = progress.take_root() {
        learn_root(deps, host, root).await;
    }
    result
}

/// Folder that a record names on a host, and the root that it is in; empty for `/`.
struct RootPlace<'a> {
    host: &'a HostName,
    identity: Option<&'a HostIdentity>,
    root: &'a str,
}

fn place_of_sandbox(record: &SandboxRecord) -> Option<RootPlace<'_>> {
    let (root, _) = record.workdir.as_deref().filter(|_| occupies(record))?.rsplit_once('/')?;
    Some(RootPlace { host: &record.host, identity: record.host_identity.as_ref(), root })
}

fn places_of_snapshot(record: &SnapshotRecord) -> impl Iterator<Item = RootPlace<'_>> {
    record.replicas.iter().filter_map(|Replica { host, path, host_identity, .. }| {
        let path = path.as_deref()?.strip_suffix(record.id.as_str())?;
        let root = path.strip_suffix("/snapshots/")?;
        Some(RootPlace { host, identity: host_identity.as_ref(), root })
    })
}
