//! Inspection of all archives of a snapshot before a deletion removes the first: while a host cannot be looked at, nothing
//! is removed, and the snapshot is what it was. What is on a host that nothing configures any more, or that is another one
//! by now, can be given up.

use serde::Serialize;

use crate::domain::error::{Code, Error};
use crate::domain::name::{HostName, SnapshotId};
use crate::domain::snapshot::{SnapshotRecord, SnapshotState};
use crate::manager::deps::Deps;
use crate::manager::journal::{self, Guard, free_snapshot};
use crate::manager::snapshots::archive_facts::{facts_on, is_sealed, not_whole};
use crate::manager::snapshots::integrity::note_damage;
use crate::manager::snapshots::pinned_profile::{archive_place, is_profile_lost};

/// An archive that nobody removes: its host is not configured and does not answer, or is another one by now.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct AbandonedArchive {
    pub(crate) host: HostName,
    /// Folder, where that is known.
    pub(crate) path: Option<String>,
}

/// Reason why a deletion does not begin, and what was seen of the archives.
pub(crate) struct DeletionBlocked {
    pub(crate) error: Error,
    /// Whether an archive that was looked at is there as it is recorded.
    whole: bool,
    /// Hosts whose archives are not, with why.
    damaged: Vec<(HostName, Error)>,
}

impl From<Error> for DeletionBlocked {
    fn from(error: Error) -> Self {
        Self { error, whole: false, damaged: Vec::new() }
    }
}

/// Looks at every host that has or may have something of a snapshot: what is given up, if `by_force` says so.
pub(crate) async fn inspect_archives(
    deps: &Deps,
    record: &SnapshotRecord,
    by_force: bool,
) -> Result<Vec<AbandonedArchive>, DeletionBlocked> {
    let extension = deps.extension(&record.extension)?;
    let Some(archives) = extension.archives() else { return Ok(Vec::new()) };
    let (mut abandoned, mut damaged, mut blocked, mut whole) =
        (Vec::new(), Vec::new(), None, false);
    for host in record.hosts().chain(&record.copying_to) {
        let place = match archive_place(deps, record, host).await {
            // As for the removal.
            Err(error) if is_profile_lost(&error) && !record.unremoved => continue,
            place => place?,
        };
        match archives.look(&place).await {
            Ok(seen) if is_sealed(&seen, &facts_on(record, host)) => whole = true,
            Ok(seen) => damaged.push((host.clone(), not_whole(record, host, seen.bytes))),
            Err(error)
                if by_force
                    && (is_vanished(deps, host, &error) || error.code == Code::HostChanged) =>
            {
                abandoned.push(AbandonedArchive { host: host.clone(), path: place.path });
            }
            Err(error) => {
                blocked.get_or_insert_with(|| hint_at_way_out(deps, record, host, error));
            }
        }
    }
    match blocked {
        Some(error) => Err(DeletionBlocked { error, whole, damaged }),
        None => Ok(abandoned),
    }
}

/// Whether a host does not answer and is in no configuration: then nobody says that it will be back.
pub(crate) fn is_vanished(deps: &Deps, host: &HostName, error: &Error) -> bool {
    matches!(error.code, Code::HostUnreachable | Code::Timeout)
        && deps.transports.spec(host).is_none()
}

fn hint_at_way_out(deps: &Deps, record: &SnapshotRecord, host: &HostName, error: Error) -> Error {
    let id = &record.id;
    let forced = format!("`sandboxer snapshots delete {id} --force` gives up what is there");
    let hint = match (&error.code, deps.transports.spec(host)) {
        (Code::HostUnreachable | Code::Timeout, Some(_)) => format!(
            "nothing was removed; try again when {host} is back, or, if it never will be, take it out of the \
             configuration: then {forced}"
        ),
        (Code::HostUnreachable | Code::Timeout, None) => {
            format!(
                "nothing was removed; {host} is not configured: if it never will be back, {forced}"
            )
        }
        _ => "nothing was removed".to_owned(),
    };
    let hint = match error.hint.clone() {
        Some(first) => format!("{first}; {hint}"),
        None => hint,
    };
    error.hint(hint)
}

/// A deletion that removed nothing: the snapshot is what it was `before`. Where a dead one may have removed something, it is
/// ready only if an archive was seen to be whole.
pub(crate) async fn undo_deletion(
    deps: &Deps,
    record: &SnapshotRecord,
    before: &SnapshotRecord,
    blocked: DeletionBlocked,
) -> Result<Error, Error> {
    if before.state != SnapshotState::Deleting {
        put_back_snapshot(deps, before).await?;
        return Ok(blocked.error);
    }
    // Only what was ready once has a folder.
    if !blocked.whole || record.path.is_none() {
        return stay_in_deleting(deps, &record.id, blocked.error).await;
    }
    for (host, error) in &blocked.damaged {
        note_damage(deps, &record.id, host, error).await;
    }
    let message = format!("not deleted: {}", blocked.error.message);
    free_snapshot(deps, &record.id, move |record| {
        record.state = SnapshotState::Ready;
        record.message = Some(message);
    })
    .await?;
    Ok(blocked.error)
}

/// After a deletion that was refused: the snapshot is what it was before.
pub(crate) async fn put_back_snapshot(deps: &Deps, before: &SnapshotRecord) -> Result<(), Error> {
    let SnapshotRecord { id, state, name, message, operation, .. } = before.clone();
    free_snapshot(deps, &id, move |record| {
        (record.state, record.name, record.message, record.operation) =
            (state, name, message, operation);
    })
    .await
    .map(|_| ())
}

/// Message on archives that were given up.
pub(crate) fn abandoned_words(abandoned: &[AbandonedArchive]) -> Option<String> {
    let words = abandoned.iter().map(|gone| match &gone.path {
        Some(path) => format!("{path} on {}", gone.host),
        None => format!("whatever is there of it on {}", gone.host),
    });
    let words: Vec<String> = words.collect();
    (!words.is_empty())
        .then(|| format!("given up, and not looked at: {} stays there", words.join(", ")))
}

/// A deletion that could not be brought to its end; why.
pub(crate) async fn stay_in_deleting(
    deps: &Deps,
    id: &SnapshotId,
    error: Error,
) -> Result<Error, Error> {
    let message = error.message.clone();
    journal::update(deps, id, Guard::Any, Vec::new(), move |record: &mut SnapshotRecord| {
        record.message = Some(message);
        record.operation = None;
        Ok(())
    })
    .await?;
    Ok(match error.hint {
        Some(_) => error,
        None => error
            .hint(format!("it stays `deleting`; `sandboxer snapshots delete {id}` tries again")),
    })
}
