//! What is done with a snapshot that is there: the beginning and the end of each operation on one; verify, and export.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::domain::archive::{ArchiveLook, ArchivePlace, ByteStream, SnapshotArchives};
use crate::domain::error::{Code, Error};
use crate::domain::extension::{ExtensionError, SandboxExtension};
use crate::domain::name::{HostName, OperationId, SnapshotId};
use crate::domain::operation::{CancelOutcome, Operation, OperationKind, OperationState};
use crate::domain::request::SnapshotStarted;
use crate::domain::snapshot::{ArchiveFacts, ArchiveManifest, SnapshotRecord, SnapshotState};
use crate::manager::SandboxManager;
use crate::manager::record::running;
use crate::manager::reporter::JobReporter;
use crate::store::Held;

/// How often an operation on a snapshot looks whether another process asked for its end.
const CANCEL_LOOK: Duration = Duration::from_millis(250);

/// How long the clearing up after an operation that was called off may take.
pub(super) const CLEAR_LIMIT: Duration = Duration::from_mins(1);

impl SandboxManager {
    /// Starts to read a snapshot, on every host that has it, and to compare it with what is known of it.
    ///
    /// Errors of the operation: `operation_failed` with `details.kind` = `altered`, `not_found`.
    pub async fn verify_snapshot(&self, id: &str) -> Result<SnapshotStarted, Error> {
        let record = self.ready_snapshot(id).await?;
        archives_of(self.extension(&record.extension)?.as_ref())?;
        let (operation, snapshot, held) =
            self.begin_on(&record, OperationKind::Verify, |_| Ok(())).await?;
        let record = snapshot.clone();
        self.run_held(
            operation.clone(),
            held,
            None,
            move |manager, operation, cancel| async move {
                manager.verify_held(&operation, &record, &cancel).await
            },
        );
        Ok(SnapshotStarted { operation: Some(operation.id), snapshot })
    }

    async fn verify_held(
        &self,
        operation: &Operation,
        record: &SnapshotRecord,
        cancel: &CancellationToken,
    ) -> Result<(), Error> {
        let reporter = JobReporter::new(&self.jobs, operation);
        let work = async {
            let extension = self.extension(&record.extension)?;
            let archives = archives_of(extension.as_ref())?;
            let mut wrong = Vec::new();
            let mut sound = Vec::new();
            for host in record.hosts() {
                let place = self.archive_place(record, host).await?;
                let read = async {
                    archives.verify(&place, &facts_on(record, host), &reporter).await?;
                    ensure_own_recipe(record, host, archives.look(&place).await?.manifest)
                };
                match read.await {
                    Ok(()) => sound.push(host.clone()),
                    Err(error) => wrong.push((host.clone(), error.fault)),
                }
            }
            Ok::<_, ExtensionError>((sound, wrong))
        };
        let (sound, wrong) = match self.or_called_off(operation, cancel, work).await {
            Ok(found) => found,
            Err(error) => {
                self.free_snapshot(&record.id, |_| {}).await?;
                return Err(CancelOutcome::Undone.noted_on(error.fault));
            }
        };
        self.note_reading(&record.id, &sound, &wrong).await?;
        match wrong.into_iter().next() {
            None => Ok(()),
            Some((host, fault)) => Err(advised(record, &host, &sound, fault)),
        }
    }

    /// The bytes of a file that an import takes. They come from the first of its hosts that has it whole.
    ///
    /// Errors, in the stream too: `operation_failed` with `details.kind` = `altered` where they are not what is recorded.
    pub async fn export_snapshot(&self, id: &str) -> Result<ByteStream, Error> {
        let record = self.ready_snapshot(id).await?;
        let extension = self.extension(&record.extension)?;
        let archives = archives_of(extension.as_ref())?;
        let place = self.whole_archive(&record, archives, &[]).await?;
        let manifest = self.manifest_of(&record, &place.host).await?;
        match archives.export(&place, &manifest).await {
            Ok(pieces) => Ok(self.noting(pieces, record, place.host)),
            Err(error) => Err(self.unlike_on_export(&record, &place.host, error.fault).await),
        }
    }

    /// The snapshot with exactly this id, if its archive is whole.
    pub(super) async fn ready_snapshot(&self, id: &str) -> Result<SnapshotRecord, Error> {
        let record = self.exact_snapshot(id, None).await?;
        match ensure_ready(&record) {
            Ok(()) => Ok(record),
            Err(fault) => Err(self.busy_or(&record.id, fault).await),
        }
    }

    /// Takes a ready snapshot's lock and writes down what is begun with it, and what `change` makes of the record.
    pub(super) async fn begin_on(
        &self,
        record: &SnapshotRecord,
        kind: OperationKind,
        change: impl FnOnce(&mut SnapshotRecord) -> Result<(), Error> + Send,
    ) -> Result<(Operation, SnapshotRecord, Box<dyn Held>), Error> {
        let held = self.hold_snapshot(&record.id).await?;
        let operation = self.new_snapshot_operation(kind, &record.id);
        self.parts.operations.put(operation.clone()).await?;
        let mark = running(&operation);
        let begun = self
            .transition_snapshot(&record.id, None, Vec::new(), move |record| {
                ensure_ready(record)?;
                change(record)?;
                record.operation = Some(mark);
                Ok(())
            })
            .await;
        match begun {
            Ok(record) => Ok((operation, record, held)),
            Err(fault) => {
                let told = Error::new(fault.code.clone(), fault.message.clone());
                self.end_operation(operation, Err(told)).await;
                Err(fault)
            }
        }
    }

    /// The snapshot is nobody's again.
    pub(super) async fn free_snapshot(
        &self,
        id: &SnapshotId,
        change: impl FnOnce(&mut SnapshotRecord) + Send,
    ) -> Result<SnapshotRecord, Error> {
        self.transition_snapshot(id, None, Vec::new(), move |record| {
            record.operation = None;
            change(record);
            Ok(())
        })
        .await
    }

    /// Work on a snapshot, unless somebody calls it off: in this process, or through its operation in another. How that leaves
    /// things is the caller's to say.
    pub(super) async fn or_called_off<T>(
        &self,
        operation: &Operation,
        cancel: &CancellationToken,
        work: impl Future<Output = Result<T, ExtensionError>>,
    ) -> Result<T, ExtensionError> {
        let called_off =
            || Error::new(Code::Cancelled, format!("{}: cancelled", operation.kind)).into();
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(called_off()),
            result = work => result,
            () = self.end_requested(&operation.id) => Err(called_off()),
        }
    }

    /// Returns when another process asked for the end of this operation.
    pub(super) async fn end_requested(&self, id: &OperationId) {
        loop {
            tokio::time::sleep(CANCEL_LOOK).await;
            let written = self.parts.operations.get(id).await.ok().flatten();
            if written.is_some_and(|written| {
                written.state == OperationState::Running && written.cancel_requested
            }) {
                return;
            }
        }
    }

    /// The first of a snapshot's archives that is there whole, as far as that can be told without reading it; none on
    /// `but`.
    ///
    /// Errors: what was wrong with the first one.
    pub(super) async fn whole_archive(
        &self,
        record: &SnapshotRecord,
        archives: &dyn SnapshotArchives,
        but: &[HostName],
    ) -> Result<ArchivePlace, Error> {
        let mut first = None;
        let wanted = record.hosts().filter(|host| !but.iter().any(|but| but.same(host.as_str())));
        // Those last of which somebody knows better.
        let (sound, damaged): (Vec<_>, Vec<_>) =
            wanted.partition(|host| record.damage_on(host).is_none());
        for host in sound.into_iter().chain(damaged) {
            let place = self.archive_place(record, host).await?;
            let facts = facts_on(record, host);
            let why = match archives.look(&place).await {
                Ok(seen) if is_sealed(&seen, &facts) => return Ok(place),
                Ok(seen) => not_whole(record, host, seen.bytes),
                Err(error) => error.fault,
            };
            self.note_damage(&record.id, host, &why).await;
            first.get_or_insert(why);
        }
        Err(first.unwrap_or_else(|| Error::internal(format!("snapshot {} is nowhere", record.id))))
    }

    /// What lies beside a snapshot's archive, as it is on one of its hosts.
    pub(super) async fn manifest_of(
        &self,
        record: &SnapshotRecord,
        host: &HostName,
    ) -> Result<ArchiveManifest, Error> {
        let snapshot = SnapshotRecord {
            archive: facts_on(record, host),
            message: None,
            damage: Vec::new(),
            replicas: Vec::new(),
            copying_to: None,
            operation: None,
            pending: Vec::new(),
            unremoved: false,
            ..record.clone()
        };
        let recipe = self.snapshot_recipe(record).await?;
        Ok(ArchiveManifest {
            schema: 1,
            id: record.id.clone(),
            owner: record.owner.clone(),
            snapshot,
            recipe,
        })
    }
}

/// What is known of a snapshot's archive on one of its hosts.
pub(super) fn facts_on(record: &SnapshotRecord, host: &HostName) -> ArchiveFacts {
    match record.replicas.iter().find(|replica| replica.host.same(host.as_str())) {
        Some(replica) => ArchiveFacts {
            format: Some(replica.format.clone()),
            bytes: Some(replica.bytes),
            ..record.archive.clone()
        },
        None => record.archive.clone(),
    }
}

/// Whether an archive is there as it is known, as far as that can be told without reading it.
pub(super) fn is_sealed(seen: &ArchiveLook, facts: &ArchiveFacts) -> bool {
    let said = seen.manifest.as_ref().is_some_and(|manifest| manifest.snapshot.archive == *facts);
    said && seen.bytes.is_some() && seen.bytes == facts.bytes
}

/// An extension's archives.
pub(super) fn archives_of(
    extension: &dyn SandboxExtension,
) -> Result<&dyn SnapshotArchives, Error> {
    extension.archives().ok_or_else(|| extension.unsupported("keep snapshots"))
}

fn ensure_ready(record: &SnapshotRecord) -> Result<(), Error> {
    if record.state == SnapshotState::Ready {
        return Ok(());
    }
    Err(Error::new(Code::Conflict, format!("snapshot {} is {}", record.title(), record.state))
        .hint("it takes a snapshot that is ready")
        .detail("state", record.state.as_str()))
}

/// The recipe beside an archive is what a restore goes by when it is nowhere else any more.
fn ensure_own_recipe(
    record: &SnapshotRecord,
    host: &HostName,
    manifest: Option<ArchiveManifest>,
) -> Result<(), ExtensionError> {
    match manifest {
        Some(manifest) if manifest.recipe.hash() != record.profile.hash => {
            let message = format!(
                "the archive of snapshot {} on {host} was altered: the recipe in its manifest.json is another one",
                record.id
            );
            Err(Error::new(Code::OperationFailed, message)
                .detail("kind", "altered")
                .detail("differs", "recipe")
                .into())
        }
        _ => Ok(()),
    }
}

/// An archive that is not where, or not what, the record says.
pub(super) fn not_whole(record: &SnapshotRecord, host: &HostName, bytes: Option<u64>) -> Error {
    let id = &record.id;
    match bytes {
        None => {
            Error::new(Code::NotFound, format!("the archive of snapshot {id} is not on {host}"))
                .detail("differs", "missing")
        }
        Some(_) => Error::new(
            Code::OperationFailed,
            format!("the archive of snapshot {id} on {host} is not what it was"),
        )
        .detail("kind", "altered"),
    }
    .hint(format!("`sandboxer snapshots verify {id}` says what is wrong"))
}

/// What to do about an archive that is not sound: there may be one that is.
fn advised(record: &SnapshotRecord, host: &HostName, sound: &[HostName], fault: Error) -> Error {
    let lost = fault.details["kind"] == "altered" || fault.code == Code::NotFound;
    let id = &record.id;
    match sound.first() {
        _ if !lost => fault,
        Some(sound) if record.host.same(host.as_str()) => {
            let (there, back) = (format!("restore {id} --host {sound}"), format!("snapshots copy {id} --to {host}"));
            fault.hint(format!("the copy on {sound} is whole: `sandboxer {there}`; `sandboxer {back}` brings it back"))
        }
        Some(_) => fault.hint(format!("the first archive is whole: `sandboxer snapshots copy {id} --to {host}` replaces the copy")),
        None => fault.hint(format!(
            "do not restore it; take a new snapshot if its sandbox is still there, then `sandboxer snapshots delete {id}`"
        )),
    }
}
