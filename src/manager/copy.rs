//! Copies of a snapshot on further hosts.

mod carry;

use tokio_util::sync::CancellationToken;

use crate::domain::archive::Arrived;
use crate::domain::error::{Code, Error};
use crate::domain::event::EventKind;
use crate::domain::extension::ExtensionError;
use crate::domain::name::{HostName, SnapshotId};
use crate::domain::operation::{CancelOutcome, Operation, OperationKind};
use crate::domain::request::{SnapshotCopyRequest, SnapshotStarted};
use crate::domain::snapshot::{ArchiveFormat, Replica, SnapshotRecord};
use crate::manager::SandboxManager;
use crate::manager::archives::{CLEAR_LIMIT, archives_of, facts_on, is_sealed, not_whole};
use crate::manager::damage::{clear_damage, note_gone};
use crate::manager::record::running;
use crate::manager::reporter::JobReporter;

/// The steps of bringing an archive to a host: prepare, and copy.
pub(super) const CARRY_STEPS: u32 = 2;

impl SandboxManager {
    /// Starts to copy a snapshot to another host. A copy that is there already is nothing to do.
    ///
    /// Errors: `invalid_input` for the host that it is on, and whatever placement says of a host.
    pub async fn copy_snapshot(
        &self,
        request: &SnapshotCopyRequest,
    ) -> Result<SnapshotStarted, Error> {
        let record = self.ready_snapshot(&request.id).await?;
        let extension = self.extension(&record.extension)?;
        let archives = archives_of(extension.as_ref())?;
        let host = self.open_host(&request.host).await?;
        let place = self.archive_place(&record, &host).await?;
        let seen = archives.look(&place).await.map_err(|error| error.fault)?;
        if record.host.same(host.as_str()) {
            self.refuse_whole(&record, seen.bytes, is_sealed(&seen, &facts_on(&record, &host)))
                .await?;
        }
        let known = record.replicas.iter().any(|replica| replica.host.same(host.as_str()));
        if known && is_sealed(&seen, &facts_on(&record, &host)) {
            return Ok(SnapshotStarted { operation: None, snapshot: record });
        }
        if self.refuse_left(&record, &host).is_err() {
            // Whoever works on it is said by `busy`; only what nobody works on is left.
            let _held = self.hold_snapshot(&record.id).await?;
            self.refuse_left(&self.ready_snapshot(&request.id).await?, &host)?;
        }
        let (operation, snapshot, held) =
            self.begin_on(&record, OperationKind::Copy, |_| Ok(())).await?;
        let record = snapshot.clone();
        self.run_held(
            operation.clone(),
            held,
            Some(host.clone()),
            move |manager, operation, cancel| async move {
                manager.copy_held(&operation, &record, &host, &cancel).await
            },
        );
        Ok(SnapshotStarted { operation: Some(operation.id), snapshot })
    }

    /// Refuses a copy to where the snapshot was made, unless its archive there is known, or seen now, not to be whole: then
    /// it is brought back from another host.
    async fn refuse_whole(
        &self,
        record: &SnapshotRecord,
        bytes: Option<u64>,
        sealed: bool,
    ) -> Result<(), Error> {
        let host = &record.host;
        if !sealed {
            self.note_damage(&record.id, host, &not_whole(record, host, bytes)).await;
        } else if record.damage_on(host).is_none() {
            let message =
                format!("snapshot {} is on {host}: that is where it was made", record.title());
            return Err(Error::invalid_input("host", message).hint(format!(
                "`sandboxer snapshots verify {}` says whether it is whole there",
                record.id
            )));
        }
        if record.replicas.is_empty() {
            let message = format!(
                "snapshot {} has no other archive than the one on {host}, which is not whole",
                record.title()
            );
            return Err(Error::new(Code::NotFound, message).hint("an export of it can be imported"));
        }
        Ok(())
    }

    /// One copy at a time is on its way: where the last one may have left something is not forgotten for the next, as long as
    /// its host is configured.
    fn refuse_left(&self, record: &SnapshotRecord, to: &HostName) -> Result<(), Error> {
        match left_elsewhere(record, to).filter(|left| self.parts.transports.spec(left).is_some()) {
            Some(left) => {
                let hint = format!(
                    "`sandboxer recover` removes it, when that host is back; if it never will be, take {left} out of the \
                     configuration"
                );
                Err(Error::new(
                    Code::Conflict,
                    format!("what was to be copied to {left} may still be there in part"),
                )
                .hint(hint))
            }
            None => Ok(()),
        }
    }

    /// What a copy left on a host that nothing configures any more is removed if that host answers; else it stays there, and
    /// the record says so.
    async fn leave_behind(
        &self,
        record: SnapshotRecord,
        to: &HostName,
        reporter: &JobReporter,
    ) -> Result<SnapshotRecord, Error> {
        let Some(left) = left_elsewhere(&record, to).cloned() else { return Ok(record) };
        let clearing = tokio::time::timeout(
            CLEAR_LIMIT,
            Box::pin(self.clear_remains(&record, &left, reporter)),
        )
        .await;
        let arrived = match clearing {
            Ok(Ok(arrived)) => Ok(arrived.map(|arrived| replica(&left, arrived, self.now()))),
            Ok(Err(_)) | Err(_) => Err(format!(
                "{left} is not configured any more: what was to be copied there may still be there in part"
            )),
        };
        self.transition_snapshot(&record.id, None, Vec::new(), move |record| {
            record.copying_to = None;
            record.unremoved = false;
            match arrived {
                Ok(Some(arrived)) => list(record, arrived),
                Ok(None) => {}
                Err(message) => record.message = Some(message),
            }
            Ok(())
        })
        .await
    }

    async fn copy_held(
        &self,
        operation: &Operation,
        record: &SnapshotRecord,
        host: &HostName,
        cancel: &CancellationToken,
    ) -> Result<(), Error> {
        let reporter = JobReporter::new(&self.jobs, operation);
        reporter.announce(CARRY_STEPS, 0);
        self.replicate(operation, record, host, cancel, &reporter).await.map(|_| ())
    }

    /// Copies a ready snapshot's archive to a host that it is not on, and writes that down: the record with the copy on it.
    /// The snapshot's lock is the caller's; a restore onto another host is one.
    ///
    /// Errors: `invalid_input` for another name of a host that has it; nothing of the copy is left, or the record says that
    /// something may be (`unremoved`).
    pub(super) async fn replicate(
        &self,
        operation: &Operation,
        record: &SnapshotRecord,
        to: &HostName,
        cancel: &CancellationToken,
        reporter: &JobReporter,
    ) -> Result<SnapshotRecord, Error> {
        self.refuse_left(record, to)?;
        let mark = running(operation);
        let record = self
            .transition_snapshot(&record.id, None, Vec::new(), move |record| {
                record.operation = Some(mark);
                Ok(())
            })
            .await?;
        let record = self.leave_behind(record, to, reporter).await?;
        // Boxed: it is large, and waits for long.
        let work = Box::pin(self.learning_roots(to, reporter, self.carry(&record, to, reporter)));
        match self.or_called_off(operation, cancel, work).await {
            Ok(arrived) => self.write_arrived(&record.id, to, arrived).await,
            Err(error) => self.clear_copy(&record.id, to, reporter, error).await,
        }
    }

    /// Lists an archive that is whole on a host. Nothing is on its way there any more.
    pub(super) async fn write_arrived(
        &self,
        id: &SnapshotId,
        host: &HostName,
        arrived: Arrived,
    ) -> Result<SnapshotRecord, Error> {
        let replica = replica(host, arrived, self.now());
        let data =
            serde_json::json!({"host": host, "bytes": replica.bytes, "format": replica.format});
        let news = vec![(EventKind::SnapshotCopied, data)];
        self.transition_snapshot(id, None, news, move |record| {
            list(record, replica);
            record.copying_to = None;
            record.operation = None;
            record.unremoved = false;
            Ok(())
        })
        .await
    }

    /// After a copy that came to nothing, nothing of it stays on the host; or the record says that it may. One that was whole
    /// before it was called off is listed: the record as it is then.
    async fn clear_copy(
        &self,
        id: &SnapshotId,
        host: &HostName,
        reporter: &JobReporter,
        error: ExtensionError,
    ) -> Result<SnapshotRecord, Error> {
        let record = self.exact_snapshot(id.as_str(), None).await?;
        if !record.copying_to.as_ref().is_some_and(|to| to.same(host.as_str())) {
            self.free_snapshot(id, |_| {}).await?;
            return Err(CancelOutcome::Undone.noted_on(error.fault));
        }
        let clearing =
            tokio::time::timeout(CLEAR_LIMIT, self.clear_remains(&record, host, reporter)).await;
        let clean = match clearing {
            Ok(Ok(Some(arrived))) => return self.write_arrived(id, host, arrived).await,
            Ok(Ok(None)) => true,
            Ok(Err(_)) | Err(_) => false,
        };
        let (at, now) = (host.clone(), self.now());
        self.free_snapshot(id, move |record| {
            record.unremoved = !clean;
            if clean {
                record.copying_to = None;
                note_gone(record, &at, now);
            }
        })
        .await?;
        let fault = error.fault;
        if clean {
            let fault = CancelOutcome::Undone.noted_on(fault);
            let told = fault.hint.is_some();
            return Err(if told {
                fault
            } else {
                fault.hint(format!("nothing of the copy is left on {host}"))
            });
        }
        let hint = format!(
            "something of it may still be on {host}; `sandboxer recover` removes it when that host is back"
        );
        Err(fault.hint(hint).detail("unremoved", true))
    }
}

/// Another host that a copy was on its way to.
fn left_elsewhere<'a>(record: &'a SnapshotRecord, to: &HostName) -> Option<&'a HostName> {
    record.copying_to.as_ref().filter(|left| !left.same(to.as_str()))
}

/// Lists an archive that arrived: as a copy, or in place of the one that the snapshot was made with.
fn list(record: &mut SnapshotRecord, arrived: Replica) {
    clear_damage(record, &arrived.host);
    if !record.host.same(arrived.host.as_str()) {
        record.replicas.retain(|replica| !replica.host.same(arrived.host.as_str()));
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
