//! Reap of what a host has and no record knows: whose it is is proved on the host once more, by id, owner and name.

use std::sync::{Arc, Mutex, PoisonError};

use crate::domain::archive::ArchivePlace;
use crate::domain::error::{Code, Error, Kind};
use crate::domain::event::{EventKind, PendingEvent, derived_event_id};
use crate::domain::extension::{Capability, SandboxExtension, Target};
use crate::domain::facts::{HostFacts, HostIdentity};
use crate::domain::host_view::HostView;
use crate::domain::name::{ExtensionId, OwnerId, ProfileId, SandboxId, SnapshotId};
use crate::domain::profile::Profile;
use crate::domain::reporter::{Report, Reporter};
use crate::domain::root::MarkedRoot;
use crate::domain::stale::{ReapOutcome, StaleItem};
use crate::domain::teardown::{TeardownLine, TeardownOutcome, TeardownReport};
use crate::manager::deps::Deps;
use crate::manager::hosts::check::unchecked_host;
use crate::manager::hosts::places::{check_works_at, extension_at, read_manifest};
use crate::manager::hosts::roots::{known_roots, learn_root};
use crate::manager::journal::publish_pending;
use crate::manager::sandboxes::teardown::leftovers_error;
use crate::manager::snapshots::archives::archive_store;
use crate::manager::stale::adopt_sandbox::adopt_found;
use crate::manager::stale::adopt_snapshot::adopt_archive;
use crate::manager::stale::outcome::Done;
use crate::manager::upkeep::ownership::ensure_own;

/// Reporter of a removal of which nobody follows the steps; it keeps the roots that were met.
#[derive(Default)]
struct RootsMet(Mutex<Vec<MarkedRoot>>);

impl Reporter for RootsMet {
    fn report(&self, _: Report) {}

    fn found_root(&self, root: &MarkedRoot) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(root.clone());
    }
}

impl RootsMet {
    async fn learn(self, deps: &Deps, item: &StaleItem) {
        let roots = self.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        for root in roots {
            learn_root(deps, &item.host, root).await;
        }
    }
}

/// Removes a sandbox of ours that no record knows: what each engine has of it, then its directory.
pub(crate) async fn remove_found(
    deps: &Deps,
    item: &StaleItem,
    facts: &HostFacts,
) -> Result<Done, Error> {
    let id = SandboxId::parse(item.id())?;
    let Some(_lock) = deps.locks.try_lock(&id).await? else {
        return Ok(Done::Skipped("somebody works on a sandbox of its id".to_owned()));
    };
    // A create that chose this id may have been faster than this lock.
    if deps.sandboxes.get(&id).await?.is_some_and(|record| !record.state.is_over()) {
        return Ok(Done::Skipped("there is a record of it by now".to_owned()));
    }
    if let Some(changed) = changed_on_host(deps, item, &id).await? {
        return Ok(Done::Skipped(changed));
    }
    let (profile, extension) = profile_of(deps, item)?;
    let target = Target {
        id: id.clone(),
        owners: owners_with(deps, item.owner.as_deref()).await?,
        host: item.host.clone(),
        profile,
        inputs: std::collections::BTreeMap::new(),
        handle: None,
        workdir: directory_of(item),
        host_identity: None,
        stamp: Some(deps.installation.stamp().await?),
        roots: known_roots(deps, &item.host).await,
        start_output: None,
    };
    let mut report = TeardownReport::default();
    for identity in identities(facts, item) {
        let target = Target { host_identity: Some(identity), ..target.clone() };
        let removed = tear_down(deps, item, extension.as_ref(), target).await?;
        report.lines.extend(removed.lines);
        report.leftovers.extend(removed.leftovers);
    }
    if !report.is_clean() {
        return Err(leftovers_error(&id, &report));
    }
    if report.lines.iter().all(|line| line.outcome != TeardownOutcome::Removed) {
        let left: Vec<String> = report.lines.iter().filter_map(TeardownLine::left_alone).collect();
        return Ok(Done::Skipped(if left.is_empty() {
            "nothing of it was there any more".to_owned()
        } else {
            format!("nothing of it is ours by id, owner and name; {}", left.join("; "))
        }));
    }
    let data = serde_json::json!({"host": item.host, "class": item.class, "name": item.name, "reason": "reaped"});
    tell_removed(deps, item, EventKind::SandboxDestroyed, Some(id), data).await;
    Ok(Done::As(ReapOutcome::Removed, removed_words(&report)))
}

/// Removes what one engine has of it, and its directory.
async fn tear_down(
    deps: &Deps,
    item: &StaleItem,
    extension: &dyn SandboxExtension,
    mut target: Target,
) -> Result<TeardownReport, Error> {
    loop {
        let met = RootsMet::default();
        let removed = extension.teardown(&target, &met).await;
        met.learn(deps, item).await;
        let Err(Error { kind: Kind::Behind(counter), .. }) = &removed else { return removed };
        deps.installation.seen_on(&item.host, *counter).await?;
        ensure_own(deps).await?;
        // Another item of this reap, or another process of ours, counted a change there a moment ago.
        let stamp = deps.installation.stamp().await?;
        if target.stamp.as_ref().is_some_and(|given| given.counter >= stamp.counter) {
            return removed;
        }
        target.stamp = Some(stamp);
    }
}

/// Removes an archive of ours that no record knows.
pub(crate) async fn remove_archive(
    deps: &Deps,
    item: &StaleItem,
    facts: &HostFacts,
) -> Result<Done, Error> {
    let id = SnapshotId::new(item.id());
    if !SnapshotId::is_one(id.as_str()) {
        return Ok(Done::Skipped("its name is no snapshot's id".to_owned()));
    }
    let Some(_lock) = deps.locks.try_lock_snapshot(&id).await? else {
        return Ok(Done::Skipped("somebody works on a snapshot of its id".to_owned()));
    };
    if deps.snapshots.get(&id).await?.is_some() {
        return Ok(Done::Skipped("there is a record of it by now".to_owned()));
    }
    let place = ArchivePlace {
        id: id.clone(),
        owners: owners_with(deps, item.owner.as_deref()).await?,
        host: item.host.clone(),
        profile: None,
        path: directory_of(item),
        is_recorded: true,
        host_identity: Some(HostIdentity::of_machine(facts.machine_id.as_str())),
        roots: known_roots(deps, &item.host).await,
    };
    let archives = archive_store(deps, &item.host)?;
    let met = RootsMet::default();
    let report = archives.remove(&place, &met).await;
    met.learn(deps, item).await;
    let report = report?;
    if !report.is_clean() {
        let why: Vec<String> = report.lines.iter().filter_map(|line| line.reason.clone()).collect();
        let message = format!("the archive of {id} could not be removed");
        return Err(Error::new(Code::OperationFailed, message).because(why.join("; ")));
    }
    let data =
        serde_json::json!({"host": item.host, "snapshot_id": id, "snapshot_name": item.name});
    tell_removed(deps, item, EventKind::SnapshotDeleted, None, data).await;
    Ok(Done::As(ReapOutcome::Removed, format!("its archive is removed from {}", item.host)))
}

/// Makes a record of what no record knows. `facts`: what its host said when it was judged, a moment ago.
pub(crate) async fn adopt_as_planned(
    deps: &Deps,
    item: &StaleItem,
    facts: &HostFacts,
) -> Result<Done, Error> {
    let view = HostView { facts: Some(facts.clone()), ..unchecked_host(deps, &item.host) };
    let Some(inventory) = &facts.inventory else { return Ok(gone()) };
    let message = if item.snapshot_id.is_some() {
        let mut archives = inventory.archives.iter();
        let Some(found) = archives.find(|found| found.snapshot_id == item.id()) else {
            return Ok(gone());
        };
        adopt_archive(deps, &view, found).await?.message
    } else {
        let mut sandboxes = inventory.sandboxes.iter();
        let Some(found) = sandboxes.find(|found| found.sandbox_id == item.id()) else {
            return Ok(gone());
        };
        Box::pin(adopt_found(deps, &view, found)).await?.message
    };
    let words = message.unwrap_or_else(|| "there is a record of it now".to_owned());
    Ok(Done::As(ReapOutcome::Adopted, words))
}

fn gone() -> Done {
    Done::Skipped("it is gone".to_owned())
}

/// Sentence on what the manifest of a directory says now, where that is not what it was judged by.
///
/// Errors: why its host does not tell.
async fn changed_on_host(
    deps: &Deps,
    item: &StaleItem,
    id: &SandboxId,
) -> Result<Option<String>, Error> {
    let (Some(directory), Some(owner)) = (directory_of(item), &item.owner) else { return Ok(None) };
    let owner = OwnerId::new(owner.as_str());
    let told = read_manifest(deps, &item.host, &directory, (id, &owner)).await?;
    let told = told.map(|told| (told.expires_at, told.protected));
    let is_same = told == Some((item.expires_at, item.protected));
    Ok((!is_same).then(|| "its manifest changed since the plan was made".to_owned()))
}

/// The profile that the host names, as far as the catalogue has it, and an extension that removes such sandboxes.
fn profile_of(
    deps: &Deps,
    item: &StaleItem,
) -> Result<(Profile, Arc<dyn SandboxExtension>), Error> {
    let id = item.profile.as_deref().unwrap_or_default();
    let known = deps.catalogue.profile(id).and_then(|entry| entry.definition()).cloned().ok();
    let works_here = |extension: &Arc<dyn SandboxExtension>| {
        check_works_at(deps, extension.as_ref(), &item.host).is_ok()
    };
    if let Some(profile) = known {
        // Of the extensions that it may use, that which makes sandboxes where this one is.
        let uses = profile.uses();
        let mut made = uses.iter().filter_map(|used| deps.extension(used.extension).ok());
        if let Some(extension) = made.find(works_here) {
            return Ok((profile.for_extension(extension.id()), extension));
        }
    }
    if let Some(extension) = extension_at(deps, &item.host) {
        let unknown = Profile::unknown(ProfileId::new(id), "0.0.0", extension.id().clone());
        return Ok((unknown, extension));
    }
    let adopts = |extension: &&Arc<dyn SandboxExtension>| {
        extension.capabilities().contains(&Capability::Adopt) && works_here(extension)
    };
    let extension = deps.extensions.values().find(adopts).cloned().ok_or_else(|| {
        Error::new(
            Code::Unsupported,
            "no extension of this version removes what it has no record of",
        )
    })?;
    let name = ExtensionId::new(extension.id().as_str());
    Ok((Profile::unknown(ProfileId::new(id), "0.0.0", name), extension))
}

async fn owners_with(deps: &Deps, owner: Option<&str>) -> Result<Vec<OwnerId>, Error> {
    let mut owners = deps.installation.owners().await?;
    if let Some(at) = owners.iter().position(|known| Some(known.as_str()) == owner) {
        let last = owners.remove(at);
        owners.push(last);
    }
    Ok(owners)
}

fn directory_of(item: &StaleItem) -> Option<String> {
    let directory = item.resources.iter().find(|resource| resource.kind == "directory");
    directory.map(|resource| resource.id.clone())
}

/// Identity of the host with each engine that has something of it; at least one, and docker not where podman is behind it.
fn identities(facts: &HostFacts, item: &StaleItem) -> Vec<HostIdentity> {
    let inventory = facts.inventory.as_ref();
    let found = inventory.and_then(|inventory| {
        inventory.sandboxes.iter().find(|found| found.sandbox_id == item.id())
    });
    let engines: Vec<&str> = found.map_or(Vec::new(), |found| {
        let made_on = found.made_on.iter().filter(|made| !found.engines.contains(made));
        found.engines.iter().chain(made_on).map(String::as_str).collect()
    });
    let with = |engine: Option<&str>| HostIdentity {
        machine_id: facts.machine_id.clone(),
        engine: engine.map(str::to_owned),
        engine_id: engine.and_then(|engine| {
            let known = facts.engines.iter().find(|known| known.program == engine);
            known.and_then(|known| known.id.clone())
        }),
    };
    let twice = |engine: &str| {
        let behind =
            facts.engines.iter().any(|known| known.program == engine && known.podman_behind);
        behind && engines.contains(&"podman")
    };
    let mut all: Vec<_> = engines
        .iter()
        .filter(|engine| facts.engines.iter().any(|known| known.program == **engine))
        .filter(|engine| !twice(engine))
        .map(|engine| with(Some(*engine)))
        .collect();
    if all.is_empty() {
        all.push(with(None));
    }
    all
}

fn removed_words(report: &TeardownReport) -> String {
    let removed = report.lines.iter().filter(|line| line.outcome == TeardownOutcome::Removed);
    let removed: Vec<String> = removed.map(|line| line.resource.to_string()).collect();
    let mut words = vec![format!("removed {}", removed.join(", "))];
    words.extend(report.lines.iter().filter_map(TeardownLine::left_alone));
    words.join("; ")
}

async fn tell_removed(
    deps: &Deps,
    item: &StaleItem,
    kind: EventKind,
    sandbox_id: Option<SandboxId>,
    data: serde_json::Value,
) {
    let event = PendingEvent {
        id: derived_event_id(&format!("{} {}", item.host, item.identity), 0, &kind),
        time: deps.now(),
        kind,
        sandbox_id,
        actor: deps.actor(),
        data,
    };
    publish_pending(deps, &[event]).await;
}
