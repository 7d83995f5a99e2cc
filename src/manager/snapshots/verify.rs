//! Verify: every archive of a snapshot is read and compared with what is known of it. Nobody else says that one is damaged.

use crate::domain::error::{Code, Error, Kind};
use crate::domain::name::HostName;
use crate::domain::operation::{CancelOutcome, OperationKind};
use crate::domain::reporter::Reporter;
use crate::domain::request::SnapshotStarted;
use crate::domain::snapshot::{ArchiveManifest, ReplicaState, SnapshotRecord};
use crate::manager::deps::Deps;
use crate::manager::journal::free_snapshot;
use crate::manager::operation::Op;
use crate::manager::operation::start::start_on_ready;
use crate::manager::snapshots::archives::{
    ArchiveOnHost, READABLE, archive_on, archives_of, proves_damage, ready_snapshot,
};

/// Starts to read a snapshot, on every host that has it, and to compare it with what is known of it.
///
/// Errors of the operation: `operation_failed` with `details.kind` = `altered`, `not_found`.
pub(crate) async fn verify_snapshot(deps: &Deps, id: &str) -> Result<SnapshotStarted, Error> {
    let record = ready_snapshot(deps, id, None, READABLE).await?;
    archives_of(deps, &record.extension)?;
    let op = start_on_ready(deps, OperationKind::Verify, record).await?;
    let snapshot = op.subject.clone();
    let operation = op.run(None, move |op| async move { verify(&op).await });
    Ok(SnapshotStarted { operation: Some(operation), snapshot })
}

async fn verify(op: &Op<SnapshotRecord>) -> Result<(), Error> {
    let (deps, record) = (&op.deps, &op.subject);
    let work = async {
        let mut found = Vec::new();
        for host in record.hosts() {
            found.push((host.clone(), verify_archive(deps, record, host, &op.progress).await));
        }
        Ok::<_, Error>(found)
    };
    let found = match op.or_cancelled(work).await {
        Ok(found) => found,
        Err(error) => {
            free_snapshot(deps, &record.id, |_| {}).await?;
            return Err(CancelOutcome::Undone.noted_on(error));
        }
    };
    let sound = found.iter().find(|(_, read)| read.is_ok()).map(|(host, _)| host.clone());
    let wrong = found.iter().find_map(|(host, read)| Some((host, read.as_ref().err()?)));
    let result = match wrong {
        None if found.is_empty() => Err(nowhere(record)),
        None => Ok(()),
        Some((host, error)) => Err(hint_at_sound_copy(record, host, sound.as_ref(), error.clone())),
    };
    write_verified(deps, record, found).await?;
    result
}

async fn verify_archive(
    deps: &Deps,
    record: &SnapshotRecord,
    host: &HostName,
    progress: &dyn Reporter,
) -> Result<(), Error> {
    let ArchiveOnHost { archives, place, facts } = archive_on(deps, record, host).await?;
    archives.verify(&place, &facts, progress).await?;
    ensure_pinned_profile(record, host, archives.look(&place).await?.manifest)
}

/// Writes down which archives are sound and which are damaged. Of a host that is away nothing is known: that is in words only.
async fn write_verified(
    deps: &Deps,
    record: &SnapshotRecord,
    found: Vec<(HostName, Result<(), Error>)>,
) -> Result<(), Error> {
    let now = deps.now();
    free_snapshot(deps, &record.id, move |record| {
        let mut unknown = Vec::new();
        let is_sound = !found.is_empty() && found.iter().all(|(_, read)| read.is_ok());
        for (host, read) in found {
            match read {
                Ok(()) => record.mark_replica(&host, ReplicaState::Ready, None),
                Err(error) if proves_damage(&error) => {
                    record.mark_replica(&host, ReplicaState::Damaged, Some(error.message));
                }
                Err(error) => unknown.push(error.message),
            }
        }
        if is_sound {
            record.verified_at = Some(now);
        }
        // Words of anybody else's stay.
        if record.unread == record.message {
            record.unread = (!unknown.is_empty()).then(|| unknown.join("; "));
            record.message.clone_from(&record.unread);
        }
    })
    .await
    .map(|_| ())
}

/// Compares the profile beside an archive: a restore goes by that when it is nowhere else any more.
fn ensure_pinned_profile(
    record: &SnapshotRecord,
    host: &HostName,
    manifest: Option<ArchiveManifest>,
) -> Result<(), Error> {
    match manifest {
        Some(manifest) if manifest.profile.hash() != record.profile.hash => {
            let message = format!(
                "the archive of snapshot {} on {host} was altered: the profile in its manifest.json is another one",
                record.id
            );
            Err(Error::new(Code::OperationFailed, message)
                .of_kind(Kind::ArchiveAltered)
                .detail("kind", "altered")
                .detail("differs", "profile"))
        }
        _ => Ok(()),
    }
}

fn nowhere(record: &SnapshotRecord) -> Error {
    Error::new(Code::NotFound, format!("no host has an archive of snapshot {}", record.id))
}

/// Hint at an archive that is sound, for one that is not.
fn hint_at_sound_copy(
    record: &SnapshotRecord,
    host: &HostName,
    sound: Option<&HostName>,
    error: Error,
) -> Error {
    let id = &record.id;
    match sound {
        _ if !proves_damage(&error) => error,
        Some(sound) => error.hint(format!(
            "the one on {sound} is whole: `sandboxer restore {id} --host {sound}` uses it, `sandboxer snapshots copy {id} --to {host}` replaces this one"
        )),
        None => error.hint(format!(
            "do not restore it; take a new snapshot if its sandbox is still there, then `sandboxer snapshots delete {id}`"
        )),
    }
}
