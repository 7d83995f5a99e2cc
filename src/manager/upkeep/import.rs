//! Import of what the earlier Python tool kept in this data directory. Its file is set aside first, so that whatever ends an
//! import in the middle, the next one goes on with it.

use std::collections::BTreeSet;

use crate::domain::adoption::{Adopted, AdoptedKind, ImportRequest};
use crate::domain::earlier::{ImportInto, Imported, sandbox_of, snapshot_of};
use crate::domain::error::{Code, Error, Kind, Unique};
use crate::domain::event::EventKind;
use crate::domain::name::{ExtensionId, HostName, ProfileId};
use crate::domain::sandbox::{SandboxRecord, State};
use crate::domain::snapshot::SnapshotRecord;
use crate::failpoint;
use crate::manager::deps::Deps;
use crate::manager::journal::{JournalRecord as _, publish_pending};
use crate::manager::stale::adopt_item::{AdoptItem, no_name};
use crate::store::{EarlierFile, EarlierKind};

/// Takes the earlier tool's records over: an item for each entry. What is here already is no item.
pub(crate) async fn import_earlier(
    deps: &Deps,
    request: &ImportRequest,
) -> Result<Vec<Adopted>, Error> {
    let (mut items, mut files) = (Vec::new(), Vec::new());
    for kind in [EarlierKind::Sandboxes, EarlierKind::Snapshots] {
        let read = async {
            let file = deps.earlier.file(kind).await?;
            if file.is_some() && !request.dry_run {
                deps.earlier.set_aside(kind).await?;
            }
            Ok::<_, Error>(file)
        };
        match read.await {
            Ok(file) => files.extend(file.map(|file| (kind, file))),
            Err(error) => items.push(file_item(kind, error)),
        }
    }
    failpoint::reached("import.aside");
    // Both are aside by then: an id is looked for in the other's records too.
    for (kind, file) in files {
        items.extend(import_file(deps, kind, &file, request.dry_run).await);
    }
    Ok(items)
}

async fn import_file(
    deps: &Deps,
    kind: EarlierKind,
    file: &EarlierFile,
    is_dry: bool,
) -> Vec<Adopted> {
    let imported = async {
        let items = import_entries(deps, kind, file, is_dry).await?;
        // A failed write is tried again by the next import.
        let failed = |item: &Adopted| {
            item.error
                .as_ref()
                .is_some_and(|error| !matches!(error.code, Code::Conflict | Code::InvalidInput))
        };
        if !is_dry && !items.iter().any(failed) {
            deps.earlier.done(kind).await?;
        }
        Ok::<_, Error>(items)
    };
    imported.await.unwrap_or_else(|error| vec![file_item(kind, error)])
}

async fn import_entries(
    deps: &Deps,
    kind: EarlierKind,
    file: &EarlierFile,
    is_dry: bool,
) -> Result<Vec<Adopted>, Error> {
    let owners = deps.installation.owners().await?;
    let owner = owners.into_iter().next();
    let owner = owner.ok_or_else(|| Error::internal("this installation has no owner id"))?;
    let profile = |name: &str| -> Option<(ProfileId, ExtensionId)> {
        let profile = deps.catalogue.usable_profile(name).ok()?;
        Some((profile.id.clone(), profile.extension.clone()))
    };
    let into = ImportInto { now: deps.now(), actor: deps.actor(), owner, profile: &profile };
    let mut seen = BTreeSet::new();
    let mut items = Vec::new();
    for (number, entry) in file.entries.iter().enumerate() {
        let title = entry.0.clone().unwrap_or_else(|| format!("entry {}", number + 1));
        let made = match kind {
            EarlierKind::Sandboxes => {
                sandbox_of(entry, &into).map(|made| Made::Sandbox(Box::new(made)))
            }
            EarlierKind::Snapshots => {
                snapshot_of(entry, &into).map(|made| Made::Snapshot(Box::new(made)))
            }
        };
        items.extend(match made {
            Err(why) => Some(bad_entry(kind, &title, &why)),
            Ok(made) if !seen.insert(made.item().id) => Some(twice(made.item())),
            Ok(Made::Sandbox(made)) => sandbox(deps, *made, is_dry).await,
            Ok(Made::Snapshot(made)) => snapshot(deps, *made, is_dry).await,
        });
    }
    Ok(items)
}

/// Record that was made of an entry.
enum Made {
    Sandbox(Box<Imported<SandboxRecord>>),
    Snapshot(Box<Imported<SnapshotRecord>>),
}

impl Made {
    fn item(&self) -> AdoptItem {
        match self {
            Self::Sandbox(made) => sandbox_item(&made.record),
            Self::Snapshot(made) => snapshot_item(&made.record),
        }
    }
}

fn sandbox_item(record: &SandboxRecord) -> AdoptItem {
    AdoptItem::new(AdoptedKind::Sandbox, record.id.as_str(), &record.host).of(record.owner.as_str())
}

fn snapshot_item(record: &SnapshotRecord) -> AdoptItem {
    AdoptItem::new(AdoptedKind::Snapshot, record.id.as_str(), &record.host)
        .of(record.owner.as_str())
}

/// Writes a sandbox's record; nothing where it is here already.
async fn sandbox(deps: &Deps, made: Imported<SandboxRecord>, is_dry: bool) -> Option<Adopted> {
    let Imported { mut record, mut remarks } = made;
    let done = sandbox_item(&record);
    let is_here = async {
        let live = deps.sandboxes.get(&record.id).await?;
        let past = deps.sandboxes.history().await?;
        let is_it = |one: &SandboxRecord| one.id == record.id && one.imported.is_some();
        Ok::<_, Error>(live.as_ref().is_some_and(is_it) || past.iter().any(|one| is_it(one)))
    };
    match is_here.await {
        Ok(true) => return None,
        Ok(false) => {}
        // In a dry run the file is where ours will be.
        Err(error) if is_dry && error.code == Code::StoreForeign => {}
        Err(error) => return Some(failed(done, error)),
    }
    loop {
        if is_dry {
            break;
        }
        let mut draft = record.clone();
        if draft.state != State::Destroyed {
            let data = serde_json::json!({"host": draft.host, "reason": "imported"});
            let event = draft.event((EventKind::SandboxAdopted, data), &deps.actor(), deps.now());
            draft.pending.push(event);
        }
        match deps.sandboxes.insert(draft).await {
            Ok(written) => {
                publish_pending(deps, &written.pending).await;
                break;
            }
            Err(error) if error.kind == Kind::Taken(Unique::Name) && record.name.is_some() => {
                remarks.push(no_name(record.name.take(), &error));
            }
            Err(error) => return Some(failed(done, error)),
        }
    }
    Some(AdoptItem { name: record.name, ..done }.done(words(record.message, remarks)))
}

/// Writes a snapshot's record; nothing where it is here already.
async fn snapshot(deps: &Deps, made: Imported<SnapshotRecord>, is_dry: bool) -> Option<Adopted> {
    let Imported { mut record, mut remarks } = made;
    let done = snapshot_item(&record);
    match deps.snapshots.get(&record.id).await {
        Ok(Some(known)) if known.imported.is_some() => return None,
        Ok(_) => {}
        Err(error) if is_dry && error.code == Code::StoreForeign => {}
        Err(error) => return Some(failed(done, error)),
    }
    loop {
        if is_dry {
            break;
        }
        match deps.snapshots.insert(record.clone()).await {
            Ok(_) => break,
            Err(error) if error.kind == Kind::Taken(Unique::Name) && record.name.is_some() => {
                remarks.push(no_name(record.name.take(), &error));
            }
            Err(error) => return Some(failed(done, error)),
        }
    }
    SnapshotRecord::announce(deps);
    Some(AdoptItem { name: record.name, ..done }.done(words(record.message, remarks)))
}

fn words(message: Option<String>, remarks: Vec<String>) -> String {
    message.into_iter().chain(remarks).collect::<Vec<_>>().join("; ")
}

fn failed(item: AdoptItem, error: Error) -> Adopted {
    item.not_done("it is not imported", error)
}

fn of_kind(kind: EarlierKind) -> AdoptedKind {
    match kind {
        EarlierKind::Sandboxes => AdoptedKind::Sandbox,
        EarlierKind::Snapshots => AdoptedKind::Snapshot,
    }
}

fn bad_entry(kind: EarlierKind, title: &str, why: &str) -> Adopted {
    let here = HostName::new(HostName::LOCAL);
    let error = Error::invalid_input("entry", format!("{title} of the earlier tool: {why}"))
        .hint("it stays in the file that was set aside");
    failed(AdoptItem::new(of_kind(kind), title, &here), error)
}

fn twice(item: AdoptItem) -> Adopted {
    let message = format!("{} is in the earlier tool's file twice", item.id);
    let error = Error::new(Code::Conflict, message)
        .hint("the first one counts; the other stays in the file that was set aside");
    failed(AdoptItem { owner: None, ..item }, error)
}

fn file_item(kind: EarlierKind, error: Error) -> Adopted {
    let name = match kind {
        EarlierKind::Sandboxes => "sandboxes.json",
        EarlierKind::Snapshots => "snapshots.json",
    };
    failed(AdoptItem::new(AdoptedKind::File, name, &HostName::new(HostName::LOCAL)), error)
}
