//! Copies of a snapshot on further hosts.

use tokio_util::sync::CancellationToken;

use crate::domain::archive::{ARRIVED_OTHERWISE, ArchivePlace, Arrived, SnapshotArchives};
use crate::domain::event::EventKind;
use crate::domain::extension::{ExtensionError, Reporter};
use crate::domain::fault::{Code, Fault};
use crate::domain::name::HostName;
use crate::domain::operation::{Operation, OperationKind};
use crate::domain::request::{SnapshotCopyRequest, SnapshotStarted};
use crate::domain::snapshot::{ArchiveFacts, ArchiveFormat, Replica, SnapshotRecord};
use crate::manager::SandboxManager;
use crate::manager::archives::{CLEAR_LIMIT, archives_of, facts_on, is_sealed, not_whole};
use crate::manager::damage::{clear_damage, note_gone};
use crate::manager::record::{JobReporter, running};

/// The steps of bringing an archive to a host: prepare, and copy.
pub(super) const CARRY_STEPS: u32 = 2;

impl SandboxManager {
    /// Starts to copy a snapshot to another host. A copy that is there already is nothing to do.
    ///
    /// Errors: `invalid_input` for the host that it is on, and whatever placement says of a host.
    pub async fn copy_snapshot(&self, request: &SnapshotCopyRequest) -> Result<SnapshotStarted, Fault> {
        let record = self.ready_snapshot(&request.id).await?;
        let extension = self.extension(&record.extension)?;
        let archives = archives_of(extension.as_ref())?;
        let host = self.open_host(&request.host).await?;
        let place = self.archive_place(&record, &host).await?;
        let seen = archives.look(&place).await.map_err(|error| error.fault)?;
        if record.host.same(host.as_str()) {
            self.refuse_whole(&record, seen.bytes, is_sealed(&seen, &facts_on(&record, &host))).await?;
        }
        let same_machine = seen.identity.as_ref().map(|identity| &identity.machine_id)
            == record.host_identity.as_ref().map(|identity| &identity.machine_id);
        if same_machine && !record.host.same(host.as_str()) && seen.path.is_some() && seen.path == record.path {
            let message = format!("{host} is another name of {}, where snapshot {} is", record.host, record.title());
            return Err(Fault::invalid_input("host", message));
        }
        let known = record.replicas.iter().any(|replica| replica.host.same(host.as_str()));
        if known && is_sealed(&seen, &facts_on(&record, &host)) {
            return Ok(SnapshotStarted { operation: None, snapshot: record });
        }
        if refuse_left(&record, &host).is_err() {
            // Whoever works on it is said by `busy`; only what nobody works on is left.
            let _held = self.hold_snapshot(&record.id).await?;
            refuse_left(&self.ready_snapshot(&request.id).await?, &host)?;
        }
        let to = host.clone();
        let (operation, snapshot, held) = self
            .begin_on(&record, OperationKind::Copy, move |record| {
                // What is there is not what was copied: it is replaced, and until then not listed.
                record.replicas.retain(|replica| !replica.host.same(to.as_str()));
                if !record.host.same(to.as_str()) {
                    clear_damage(record, &to);
                }
                record.copying_to = Some(to);
                Ok(())
            })
            .await?;
        let record = snapshot.clone();
        self.run_held(operation.clone(), held, Some(host.clone()), move |manager, operation, cancel| async move {
            manager.copy_held(&operation, &record, &host, &cancel).await
        });
        Ok(SnapshotStarted { operation: Some(operation.id), snapshot })
    }

    /// Refuses a copy to where the snapshot was made, unless its archive there is known, or seen now, not to be whole: then
    /// it is brought back from another host.
    async fn refuse_whole(&self, record: &SnapshotRecord, bytes: Option<u64>, sealed: bool) -> Result<(), Fault> {
        let host = &record.host;
        if !sealed {
            self.note_damage(&record.id, host, &not_whole(record, host, bytes)).await;
        } else if record.damage_on(host).is_none() {
            let message = format!("snapshot {} is on {host}: that is where it was made", record.title());
            return Err(Fault::invalid_input("host", message)
                .hint(format!("`sandboxer snapshots verify {}` says whether it is whole there", record.id)));
        }
        if record.replicas.is_empty() {
            let message =
                format!("snapshot {} has no other archive than the one on {host}, which is not whole", record.title());
            return Err(Fault::new(Code::NotFound, message).hint("an export of it can be imported"));
        }
        Ok(())
    }

    async fn copy_held(
        &self,
        operation: &Operation,
        record: &SnapshotRecord,
        host: &HostName,
        cancel: &CancellationToken,
    ) -> Result<(), Fault> {
        let reporter = JobReporter::new(&self.jobs, operation);
        reporter.announce(CARRY_STEPS, 0);
        self.replicate(operation, record, host, cancel, &reporter).await.map(|_| ())
    }

    /// Copies a ready snapshot's archive to a host that it is not on, and writes that down: the record with the copy on it.
    /// The snapshot's lock is the caller's; a restore onto another host is one.
    ///
    /// Errors: nothing of the copy is left, or the record says that something may be (`unremoved`).
    pub(super) async fn replicate(
        &self,
        operation: &Operation,
        record: &SnapshotRecord,
        to: &HostName,
        cancel: &CancellationToken,
        reporter: &JobReporter,
    ) -> Result<SnapshotRecord, Fault> {
        let (mark, going) = (running(operation), to.clone());
        let record = self
            .transition_snapshot(&record.id, None, Vec::new(), move |record| {
                refuse_left(record, &going)?;
                record.operation = Some(mark);
                record.copying_to = Some(going);
                Ok(())
            })
            .await?;
        // Boxed: it is large, and waits for long.
        let work = Box::pin(self.carry(&record, to, reporter));
        match self.or_called_off(operation, cancel, work).await {
            Ok(arrived) => {
                let replica = replica(to, arrived, self.now());
                let data = serde_json::json!({"host": to, "bytes": replica.bytes, "format": replica.format});
                let news = vec![(EventKind::SnapshotCopied, data)];
                self.transition_snapshot(&record.id, None, news, move |record| {
                    list(record, replica);
                    record.copying_to = None;
                    record.operation = None;
                    record.unremoved = false;
                    Ok(())
                })
                .await
            }
            Err(error) => Err(self.clear_copy(&record, to, reporter, error).await?),
        }
    }

    /// Streams a snapshot's archive to a host from wherever it is whole. One that is there already, sealed and sound, is
    /// taken as it is.
    pub(super) async fn carry(
        &self,
        record: &SnapshotRecord,
        host: &HostName,
        reporter: &dyn Reporter,
    ) -> Result<Arrived, ExtensionError> {
        let extension = self.extension(&record.extension)?;
        let archives = archives_of(extension.as_ref())?;
        let to = self.archive_place(record, host).await?;
        let seen = archives.look(&to).await?;
        if let Some(path) = seen.path {
            let is_ours = seen.manifest.is_some();
            if let (Some(manifest), Some(identity)) = (seen.manifest, seen.identity) {
                let archive = manifest.snapshot.archive;
                let (format, bytes) = (archive.format.clone(), archive.bytes);
                let sound = archive == ArchiveFacts { bytes, format, ..record.archive.clone() }
                    && archives.verify(&to, &archive, reporter).await.is_ok();
                if sound {
                    return Ok(Arrived { path, identity, archive });
                }
            }
            if record.host.same(host.as_str()) {
                // Something may still be made of it, as long as there is nothing better.
                self.whole_archive(record, archives, std::slice::from_ref(host)).await?;
            }
            let report = archives.remove(&to, reporter).await?;
            // What is not known to be ours stays, and the copy is refused for it.
            if is_ours && !report.is_clean() {
                let message = format!("what {host} has of snapshot {} is not sound and cannot be removed", record.id);
                return Err(Fault::new(Code::OperationFailed, message).into());
            }
        }
        self.carry_from_a_sound_one(record, archives, &to, reporter).await
    }

    /// Streams it from the first host that has it whole. Where what came is not what is recorded, the archive that was sent is
    /// read where it is; if that is altered, the next host's is taken.
    async fn carry_from_a_sound_one(
        &self,
        record: &SnapshotRecord,
        archives: &dyn SnapshotArchives,
        to: &ArchivePlace,
        reporter: &dyn Reporter,
    ) -> Result<Arrived, ExtensionError> {
        let mut passed = vec![to.host.clone()];
        let mut altered: Option<ExtensionError> = None;
        loop {
            let from = match self.whole_archive(record, archives, &passed).await {
                Ok(from) => from,
                Err(fault) => return Err(altered.unwrap_or_else(|| fault.into())),
            };
            let manifest = self.manifest_of(record, &from.host).await?;
            match archives.copy(&from, to, &manifest, reporter).await {
                Err(error) if error.fault.details["kind"] == ARRIVED_OTHERWISE => {
                    altered = Some(self.judge_sent(record, archives, &from, error, reporter).await?);
                    passed.push(from.host);
                }
                outcome => return outcome,
            }
        }
    }

    /// Whether this is the archive that the snapshot was made with, from beginning to end: no part of a copy, whatever was found
    /// wrong with it.
    pub(super) async fn is_own_and_sealed(
        &self,
        record: &SnapshotRecord,
        archives: &dyn SnapshotArchives,
        place: &ArchivePlace,
    ) -> Result<bool, ExtensionError> {
        if !record.host.same(place.host.as_str()) {
            return Ok(false);
        }
        Ok(is_sealed(&archives.look(place).await?, &facts_on(record, &place.host)))
    }

    /// After a copy that came to nothing, nothing of it stays on the host; or the record says that it may.
    async fn clear_copy(
        &self,
        record: &SnapshotRecord,
        host: &HostName,
        reporter: &JobReporter,
        error: ExtensionError,
    ) -> Result<Fault, Fault> {
        let clearing = async {
            let extension = self.extension(&record.extension)?;
            let place = self.archive_place(record, host).await?;
            let archives = archives_of(extension.as_ref())?;
            if self.is_own_and_sealed(record, archives, &place).await? {
                return Ok::<_, ExtensionError>((true, false));
            }
            Ok((archives.remove(&place, reporter).await?.is_clean(), true))
        };
        let cleared = tokio::time::timeout(CLEAR_LIMIT, clearing).await;
        let (clean, gone) = cleared.ok().and_then(Result::ok).unwrap_or((false, false));
        let (at, now) = (host.clone(), self.now());
        self.free_snapshot(&record.id, move |record| {
            record.unremoved = !clean;
            if clean {
                record.copying_to = None;
                if gone {
                    note_gone(record, &at, now);
                }
            }
        })
        .await?;
        let fault = error.fault;
        if clean {
            // A cancelled one says so itself.
            let told = fault.hint.is_some() || fault.code == Code::Cancelled;
            return Ok(if told { fault } else { fault.hint(format!("nothing of the copy is left on {host}")) });
        }
        let hint =
            format!("something of it may still be on {host}; `sandboxer recover` removes it when that host is back");
        Ok(fault.hint(hint).detail("unremoved", true))
    }
}

/// One copy at a time is on its way: where the last one may have left something is not forgotten for the next.
fn refuse_left(record: &SnapshotRecord, to: &HostName) -> Result<(), Fault> {
    match record.copying_to.as_ref().filter(|left| !left.same(to.as_str())) {
        Some(left) => {
            Err(Fault::new(Code::Conflict, format!("what was to be copied to {left} may still be there in part"))
                .hint("`sandboxer recover` removes it, when that host is back"))
        }
        None => Ok(()),
    }
}

/// Lists an archive that arrived: as a copy, or in place of the one that the snapshot was made with.
fn list(record: &mut SnapshotRecord, arrived: Replica) {
    clear_damage(record, &arrived.host);
    if !record.host.same(arrived.host.as_str()) {
        record.replicas.push(arrived);
        return;
    }
    record.path = Some(arrived.path);
    record.host_identity = arrived.host_identity;
    record.archive.format = Some(arrived.format);
    record.archive.bytes = Some(arrived.bytes);
}

fn replica(host: &HostName, arrived: Arrived, now: crate::domain::Time) -> Replica {
    Replica {
        host: host.clone(),
        host_identity: Some(arrived.identity),
        path: arrived.path,
        format: arrived.archive.format.unwrap_or(ArchiveFormat::TarZst),
        bytes: arrived.archive.bytes.unwrap_or_default(),
        created_at: now,
    }
}
