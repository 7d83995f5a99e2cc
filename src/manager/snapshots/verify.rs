//! Verify: every archive of a snapshot is read and compared with what is known of it.

use crate::domain::error::{Code, Error, Kind};
use crate::domain::name::HostName;
use crate::domain::operation::{CancelOutcome, OperationKind};
use crate::domain::request::SnapshotStarted;
use crate::domain::snapshot::{ArchiveManifest, SnapshotRecord};
use crate::manager::deps::Deps;
use crate::manager::journal::free_snapshot;
use crate::manager::operation::Op;
use crate::manager::operation::start::start_on_snapshot;
use crate::manager::snapshots::archive_facts::{archives_of, facts_on};
use crate::manager::snapshots::archives::{ensure_ready, ready_snapshot};
use crate::manager::snapshots::integrity::record_verification;
use crate::manager::snapshots::pinned_profile::archive_place;

/// Starts to read a snapshot, on every host that has it, and to compare it with what is known of it.
///
/// Errors of the operation: `operation_failed` with `details.kind` = `altered`, `not_found`.
pub(crate) async fn verify_snapshot(deps: &Deps, id: &str) -> Result<SnapshotStarted, Error> {
    let record = ready_snapshot(deps, id).await?;
    archives_of(deps.extension(&record.extension)?.as_ref())?;
    let op = start_on_snapshot(deps, OperationKind::Verify, record, |record| ensure_ready(record));
    let op = op.await?;
    let snapshot = op.subject.clone();
    let operation = op.run(None, move |op| async move { verify(&op).await });
    Ok(SnapshotStarted { operation: Some(operation), snapshot })
}

async fn verify(op: &Op<SnapshotRecord>) -> Result<(), Error> {
    let (deps, record) = (&op.deps, &op.subject);
    let work = async {
        let extension = deps.extension(&record.extension)?;
        let archives = archives_of(extension.as_ref())?;
        let mut wrong = Vec::new();
        let mut sound = Vec::new();
        for host in record.hosts() {
            let place = archive_place(deps, record, host).await?;
            let read = async {
                archives.verify(&place, &facts_on(record, host), &op.progress).await?;
                ensure_pinned_profile(record, host, archives.look(&place).await?.manifest)
            };
            match read.await {
                Ok(()) => sound.push(host.clone()),
                Err(error) => wrong.push((host.clone(), error)),
            }
        }
        Ok::<_, Error>((sound, wrong))
    };
    let (sound, wrong) = match op.or_cancelled(work).await {
        Ok(found) => found,
        Err(error) => {
            free_snapshot(deps, &record.id, |_| {}).await?;
            return Err(CancelOutcome::Undone.noted_on(error));
        }
    };
    record_verification(deps, &record.id, &sound, &wrong).await?;
    match wrong.into_iter().next() {
        None => Ok(()),
        Some((host, error)) => Err(hint_at_sound_copy(record, &host, &sound, error)),
    }
}

/// Compares the profile beside an archive: a restore goes by that when it is nowhere else any more.
fn ensure_pinned_profile(
    record: &SnapshotRecord,
    host: &HostName,
    manifest: Option<ArchiveManifest>,
) -> Result<(), Error> {
    match manifest {
        Some(manifest) if manifest.recipe.hash() != record.profile.hash => {
            let message = format!(
                "the archive of snapshot {} on {host} was altered: the recipe in its manifest.json is another one",
                record.id
            );
            Err(Error::new(Code::OperationFailed, message)
                .of_kind(Kind::ArchiveAltered)
                .detail("kind", "altered")
                .detail("differs", "recipe"))
        }
        _ => Ok(()),
    }
}

/// Hint at an archive that is sound, for one that is not.
fn hint_at_sound_copy(
    record: &SnapshotRecord,
    host: &HostName,
    sound: &[HostName],
    error: Error,
) -> Error {
    let lost = error.kind == Kind::ArchiveAltered || error.code == Code::NotFound;
    let id = &record.id;
    match sound.first() {
        _ if !lost => error,
        Some(sound) if record.host.same(host.as_str()) => {
            let (there, back) = (format!("restore {id} --host {sound}"), format!("snapshots copy {id} --to {host}"));
            error.hint(format!("the copy on {sound} is whole: `sandboxer {there}`; `sandboxer {back}` brings it back"))
        }
        Some(_) => error.hint(format!("the first archive is whole: `sandboxer snapshots copy {id} --to {host}` replaces the copy")),
        None => error.hint(format!(
            "do not restore it; take a new snapshot if its sandbox is still there, then `sandboxer snapshots delete {id}`"
        )),
    }
}
