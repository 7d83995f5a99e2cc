//! Adoption of snapshots: what lies beside archives is read and judged, and those of one snapshot become one record.

use crate::domain::archive::ArchivePlace;
use crate::domain::error::{Code, Error, Kind, Unique};
use crate::domain::event::EventKind;
use crate::domain::facts::{HostFacts, HostIdentity, InventoryArchive};
use crate::domain::host_view::HostView;
use crate::domain::name::{HostName, OwnerId, SandboxId, SnapshotId, check_label, check_name};
use crate::domain::patch::MAX_SEQUENCE;
use crate::domain::profile::Profile;
use crate::domain::sandbox::ProfileRef;
use crate::domain::snapshot::{
    ArchiveManifest, Replica, ReplicaState, SnapshotRecord, SnapshotState,
};
use crate::domain::text::plural;
use crate::manager::deps::Deps;
use crate::manager::hosts::places::check_works_at;
use crate::manager::hosts::roots::learn_root;
use crate::manager::journal::{self, Guard, JournalRecord as _, publish_pending};
use crate::manager::operation::locks::lock_snapshot;
use crate::manager::patches::find::{based_on, patches_of};
use crate::manager::snapshots::archives::{archive_store, archives_of, is_sealed};
use crate::manager::stale::adopt_item::no_name;
use crate::manager::stale::adopt_trust::{roots_to_look, trusted_profile};
use crate::manager::upkeep::ownership::count_change;
use crate::store::Held;

/// Archive on a host that no record knows, and whose owner counts as ours.
#[derive(Clone, Copy)]
pub(crate) struct FoundArchive<'a> {
    pub(crate) host: &'a HostName,
    pub(crate) facts: &'a HostFacts,
    pub(crate) item: &'a InventoryArchive,
    pub(crate) owners: &'a [OwnerId],
    pub(crate) is_dry: bool,
}

/// Record that was made of a snapshot's archives, not written yet.
#[derive(Clone)]
pub(crate) struct SnapshotDraft {
    pub(crate) record: SnapshotRecord,
    /// Host on which it was made, by the manifest beside the first of its archives.
    pub(crate) made_on: HostName,
    pub(crate) profile: Profile,
    /// Remarks on what was left out or changed, a sentence each.
    pub(crate) remarks: Vec<String>,
}

/// Makes a record of an archive that a host has and no record knows, and writes it.
///
/// Errors: `conflict` where it is another installation's, or its id is another one's here; `busy` where somebody works on a
/// snapshot of this id; whatever keeps it from being believed, or its host from being asked.
pub(crate) async fn adopt_archive(
    deps: &Deps,
    host: &HostView,
    item: &InventoryArchive,
) -> Result<SnapshotRecord, Error> {
    let facts = host.facts.as_ref();
    let facts = facts.ok_or_else(|| Error::internal(format!("{} said nothing", host.name)))?;
    let owners = deps.installation.owners().await?;
    let found = FoundArchive { host: &host.name, facts, item, owners: &owners, is_dry: false };
    let _lock = lock_found(deps, found).await?;
    let id = SnapshotId::new(item.snapshot_id.as_str());
    if deps.snapshots.get(&id).await?.is_some() {
        let message = format!("there is a record of snapshot {id} by now");
        return Err(Error::new(Code::Conflict, message).of_kind(Kind::Stale));
    }
    let draft = read_archive(deps, found).await?;
    insert_adopted_snapshot(deps, draft).await.map(|(record, _)| record)
}

/// Lock of a snapshot, to be held from the look at its archive until a record lists that; none in a dry run.
///
/// Errors: `busy` where somebody works on a snapshot of this id; `operation_failed` for a folder that is no snapshot's.
pub(crate) async fn lock_found(
    deps: &Deps,
    found: FoundArchive<'_>,
) -> Result<Option<Box<dyn Held>>, Error> {
    let id = snapshot_id(found.item)?;
    Ok(if found.is_dry { None } else { Some(lock_snapshot(deps, &id).await?) })
}

fn snapshot_id(item: &InventoryArchive) -> Result<SnapshotId, Error> {
    let id = SnapshotId::new(item.snapshot_id.as_str());
    if SnapshotId::is_one(id.as_str()) {
        return Ok(id);
    }
    Err(Error::new(Code::OperationFailed, format!("{} is no snapshot's folder", item.directory)))
}

/// Reads what lies beside an archive, whose lock the caller holds, and makes a record of it.
pub(crate) async fn read_archive(
    deps: &Deps,
    found: FoundArchive<'_>,
) -> Result<SnapshotDraft, Error> {
    let (host, item) = (found.host, found.item);
    let id = snapshot_id(item)?;
    let ours = found.owners.iter().any(|owner| item.owner.as_deref() == Some(owner.as_str()));
    if !ours {
        let message =
            format!("snapshot {id} on {host} is another installation's, or nobody can tell whose");
        return Err(Error::new(Code::Conflict, message));
    }
    let archives = archive_store(deps, host)?;
    let place = ArchivePlace {
        id: id.clone(),
        owners: found.owners.to_vec(),
        host: host.clone(),
        profile: None,
        path: Some(item.directory.clone()),
        is_recorded: true,
        host_identity: Some(HostIdentity::of_machine(found.facts.machine_id.as_str())),
        roots: roots_to_look(deps, host, found.is_dry).await,
    };
    let seen = archives.look(&place).await?;
    if let Some(root) = seen.root.clone().filter(|_| !found.is_dry) {
        learn_root(deps, host, root).await;
    }
    let unfit = |why: &str| {
        let message = format!("the archive of snapshot {id} on {host} {why}");
        Error::new(Code::OperationFailed, message).hint("nothing was touched; look at it there")
    };
    let Some(manifest) = seen.manifest.clone() else {
        return Err(unfit("has no manifest beside it that says what it is"));
    };
    let named = manifest.id == id && manifest.snapshot.id == id;
    if !named || item.owner.as_deref() != Some(manifest.owner.as_str()) {
        return Err(unfit("has the manifest of another one beside it"));
    }
    archives.check_manifest(&manifest).map_err(|error| {
        unfit("has a manifest beside it that is none of sandboxer's").because(error)
    })?;
    if !is_sealed(&seen, &manifest.snapshot.archive) {
        return Err(unfit("is not of the size that its manifest says"));
    }
    let extension = deps.extension(&manifest.snapshot.extension)?;
    check_works_at(deps, extension.as_ref(), host)?;
    archives_of(deps, extension.id())?;
    let id = manifest.profile.id.as_str();
    let (profile, replaced) = trusted_profile(deps, Some(&manifest.profile), id)?;
    let mut remarks: Vec<String> = replaced.into_iter().collect();
    let mut record = believed(deps, &manifest, &profile, &mut remarks);
    record.host = host.clone();
    record.replicas = vec![Replica {
        path: Some(item.directory.clone()),
        state: ReplicaState::Ready,
        format: record.archive.format.clone(),
        bytes: record.archive.bytes,
        ..Replica::arriving(host.clone(), seen.identity, deps.now())
    }];
    Ok(SnapshotDraft { record, made_on: manifest.snapshot.host, profile, remarks })
}

/// Record that a manifest makes, wherever its archive is.
fn believed(
    deps: &Deps,
    manifest: &ArchiveManifest,
    profile: &Profile,
    remarks: &mut Vec<String>,
) -> SnapshotRecord {
    let claimed = &manifest.snapshot;
    let mut labels = claimed.labels.clone();
    labels.retain(|key, value| check_label(key, value).is_ok());
    let refused = claimed.labels.len() - labels.len();
    if refused > 0 {
        let what = plural(refused as u64, "label", "labels");
        remarks.push(format!("{what} beside it cannot be given to a snapshot: left out"));
    }
    let is_name = |name: &String| check_name(name).is_ok();
    SnapshotRecord {
        id: manifest.id.clone(),
        owner: manifest.owner.clone(),
        name: claimed.name.clone().filter(is_name),
        sandbox_name: claimed.sandbox_name.clone().filter(is_name),
        sandbox_id: match SandboxId::parse(claimed.sandbox_id.as_str()) {
            Ok(id) => id,
            Err(_) => SandboxId::from_random(0),
        },
        profile: ProfileRef {
            id: profile.id.clone(),
            version: profile.version.to_string(),
            hash: profile.hash(),
        },
        state: SnapshotState::Ready,
        message: None,
        failure: None,
        created_at: claimed.created_at.min(deps.now()),
        imported_at: None,
        adopted_at: Some(deps.now()),
        labels,
        replicas: Vec::new(),
        verified_at: None,
        operation: None,
        revision: 0,
        imported: None,
        pending: Vec::new(),
        ..claimed.clone()
    }
}

/// Record of a snapshot's archives on several hosts: the first is where it was made, as far as that is among them.
///
/// Errors: `conflict` where they are not the same.
pub(crate) fn merged(mut drafts: Vec<SnapshotDraft>) -> Result<SnapshotDraft, Error> {
    let is_origin = |draft: &SnapshotDraft| draft.made_on.same(draft.record.host.as_str());
    drafts.sort_by_key(|draft| !is_origin(draft));
    let mut drafts = drafts.into_iter();
    let mut first =
        drafts.next().ok_or_else(|| Error::internal("there is no archive to make a record of"))?;
    for draft in drafts {
        let (one, other) = (&first.record, &draft.record);
        if (&one.archive.sha256, &one.owner, &one.profile.hash)
            != (&other.archive.sha256, &other.owner, &other.profile.hash)
        {
            let message = format!(
                "{} and {} have different archives of snapshot {}",
                one.host, other.host, one.id
            );
            return Err(Error::new(Code::Conflict, message).hint(format!(
                "adopt the right one alone, with --host; {} is the other's folder",
                other.replicas.iter().find_map(|it| it.path.as_deref()).unwrap_or_default()
            )));
        }
        first.record.replicas.extend(draft.record.replicas);
    }
    Ok(first)
}

/// Refuses an archive that bears the id which something here refers to: nobody knows that it is what that was, and sandboxes
/// would be made again from what is in it.
async fn refuse_referenced(deps: &Deps, id: &SnapshotId) -> Result<(), Error> {
    let (sandboxes, patches) = (based_on(deps, id).await?, patches_of(deps, id).await?);
    let snapshots = deps.snapshots.list().await?;
    let children = snapshots.iter().filter(|other| other.parent_snapshot.as_ref() == Some(id));
    let sandboxes = sandboxes.iter().map(|sandbox| format!("sandbox {}", sandbox.id));
    let children = children.map(|child| format!("snapshot {}", child.id));
    let patches = patches.iter().map(|patch| format!("patch {}", patch.id));
    let referring: Vec<String> = sandboxes.chain(children).chain(patches).collect();
    if referring.is_empty() {
        return Ok(());
    }
    let message = format!(
        "snapshot {id} cannot have its id here: it is not known to be what it was for {}",
        referring.join(", ")
    );
    Err(Error::new(Code::Conflict, message).hint(
        "nothing was touched; `sandboxer snapshots import` of its export gives it another id",
    ))
}

/// Lists an archive again of a snapshot that has a record, which does not know of it.
///
/// Errors: `conflict` where it is another one.
pub(crate) async fn add_replica(
    deps: &Deps,
    draft: &SnapshotDraft,
) -> Result<SnapshotRecord, Error> {
    let replicas = draft.record.replicas.clone();
    let (sha256, host) = (draft.record.archive.sha256.clone(), draft.record.host.clone());
    let data = serde_json::json!({"host": host, "reason": "adopted"});
    let events = vec![(EventKind::SnapshotCopied, data)];
    journal::update(
        deps,
        &draft.record.id,
        Guard::Any,
        events,
        move |record: &mut SnapshotRecord| {
            ensure_same_archive(record, sha256.as_ref(), &host)?;
            for replica in replicas {
                record.list_replica(replica);
            }
            Ok(())
        },
    )
    .await
}

/// Refuses an archive that is not what a recorded snapshot has.
pub(crate) fn ensure_same_archive(
    record: &SnapshotRecord,
    sha256: Option<&String>,
    host: &HostName,
) -> Result<(), Error> {
    if record.state == SnapshotState::Ready && record.archive.sha256.as_ref() == sha256 {
        return Ok(());
    }
    let message = format!(
        "{host} has an archive of snapshot {} that is not the one that is recorded",
        record.id
    );
    Err(Error::new(Code::Conflict, message)
        .hint("nothing was touched; `sandboxer inspect stale` shows it"))
}

/// Writes the record; without its name where that is another's. What is said of that, with the record as it is then.
///
/// Errors: `conflict` where its id is another one's here.
pub(crate) async fn insert_adopted_snapshot(
    deps: &Deps,
    draft: SnapshotDraft,
) -> Result<(SnapshotRecord, Vec<String>), Error> {
    let SnapshotDraft { mut record, profile, mut remarks, .. } = draft;
    refuse_referenced(deps, &record.id).await?;
    deps.pinned_profiles.put(&profile).await?;
    record.next_patch_sequence = record.next_patch_sequence.clamp(1, MAX_SEQUENCE + 1);
    let hosts: Vec<String> = record.hosts().map(ToString::to_string).collect();
    let data =
        serde_json::json!({"bytes": record.archive.bytes, "host": hosts, "reason": "adopted"});
    loop {
        let mut draft = record.clone();
        let ready =
            draft.event((EventKind::SnapshotReady, data.clone()), &deps.actor(), deps.now());
        draft.pending = vec![ready];
        match deps.snapshots.insert(draft).await {
            Ok(written) => {
                publish_pending(deps, &written.pending).await;
                count_change(deps, &written.host).await;
                SnapshotRecord::announce(deps);
                return Ok((written, remarks));
            }
            Err(error) if error.kind == Kind::Taken(Unique::Name) && record.name.is_some() => {
                remarks.push(no_name(record.name.take(), &error));
            }
            Err(error) => return Err(error),
        }
    }
}
