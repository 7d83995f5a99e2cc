//! Snapshots over which a process died: finished if their archive is whole, else taken away.

use tokio_util::sync::CancellationToken;

use crate::domain::archive::{ArchiveLook, Arrived};
use crate::domain::error::{Code, Error};
use crate::domain::event::EventKind;
use crate::domain::name::SnapshotId;
use crate::domain::operation::{Operation, OperationKind};
use crate::domain::request::Recovered;
use crate::domain::snapshot::{SnapshotRecord, SnapshotState};
use crate::manager::SandboxManager;
use crate::manager::archives::archives_of;
use crate::manager::record::running;
use crate::manager::recover::by;
use crate::manager::reporter::JobReporter;

impl SandboxManager {
    /// Ends what dead processes began with snapshots: an item for each.
    pub(super) async fn recover_snapshots(&self) -> Result<Vec<Recovered>, Error> {
        let mut items = Vec::new();
        for record in self.parts.snapshots.list().await? {
            if is_left(&record) {
                items.extend(self.recover_snapshot(&record.id).await?);
            }
        }
        Ok(items)
    }

    /// `None`: somebody works on it after all, or it is in order by now.
    async fn recover_snapshot(&self, id: &SnapshotId) -> Result<Option<Recovered>, Error> {
        let Some(held) = self.parts.locks.try_lock_snapshot(id).await? else { return Ok(None) };
        let Some(record) = self.parts.snapshots.get(id).await?.filter(is_left) else {
            return Ok(None);
        };
        let was = match &record.operation {
            Some(dead) => by(&dead.kind, dead.pid, &dead.host),
            None if record.copying_to.is_some() => "a copy that died".to_owned(),
            None => format!("a {} snapshot", record.state),
        };
        if let Some(working) = record.operation.as_ref().filter(|dead| self.is_there(dead)) {
            let message = format!(
                "process {} still works on it, and not on this data directory: this is a copy",
                working.pid
            );
            let fault = Error::new(Code::Conflict, message.clone()).hint("recover in the original");
            let error = Some(Error::from(fault));
            return Ok(Some(Recovered {
                id: id.to_string(),
                ok: false,
                was,
                state: None,
                message,
                error,
            }));
        }
        let operation = self.new_snapshot_operation(OperationKind::Recover, id);
        self.parts.operations.put(operation.clone()).await?;
        let (copying, was_ready) =
            (record.copying_to.clone(), record.state == SnapshotState::Ready);
        let name = operation.id.clone();
        self.run_held(operation, held, None, move |manager, operation, cancel| async move {
            if let Some(dead) = &record.operation {
                manager.end_dead(&dead.id).await?;
            }
            manager.finish_or_remove(&operation, &record, &cancel).await
        });
        let error = self
            .jobs
            .ended(&name)
            .await
            .and_then(|ended| ended.operation.error)
            .map(|error| *error);
        let now = self.parts.snapshots.get(id).await?;
        let message = match (&error, &now) {
            (Some(error), _) => error.message.clone(),
            (None, None) => "removed".to_owned(),
            (None, Some(now)) if now.state == SnapshotState::Ready => match copying {
                Some(host)
                    if now.hosts().any(|known| known.same(host.as_str()))
                        && now.damage_on(&host).is_none() =>
                {
                    format!("ready; its copy on {host} is whole")
                }
                Some(host) => format!("ready as before; nothing of the copy is left on {host}"),
                None if was_ready => "ready as before".to_owned(),
                None => "ready: its archive is whole".to_owned(),
            },
            (None, Some(_)) => "failed; nothing of it is left".to_owned(),
        };
        Ok(Some(Recovered {
            id: id.to_string(),
            ok: error.is_none(),
            was,
            state: None,
            message,
            error,
        }))
    }

    async fn finish_or_remove(
        &self,
        operation: &Operation,
        record: &SnapshotRecord,
        cancel: &CancellationToken,
    ) -> Result<(), Error> {
        let mark = running(operation);
        let dead = record.operation.clone();
        let marked = self
            .transition_snapshot(&record.id, Some(record.revision), Vec::new(), move |record| {
                record.operation = Some(mark);
                Ok(())
            })
            .await?;
        let reporter = JobReporter::new(&self.jobs, operation);
        let result = match record.state {
            SnapshotState::Deleting => {
                return self.delete_held(operation, &record.id, record, false, cancel).await;
            }
            SnapshotState::Creating => self.finish_creating(&marked, &reporter).await,
            SnapshotState::Failed => self.remove_archives(&record.id, &reporter).await,
            _ => self.take_back_copy(&marked, &reporter).await,
        };
        let failed = result.is_err();
        self.transition_snapshot(&record.id, None, Vec::new(), move |record| {
            // Nobody could look: it stays as the dead process left it, for the next time.
            record.operation = dead.filter(|_| failed);
            record.unremoved &= failed;
            if !failed {
                record.copying_to = None;
            }
            Ok(())
        })
        .await?;
        result
    }

    /// The archive may have been sealed before its process died: then it is whole.
    async fn finish_creating(
        &self,
        record: &SnapshotRecord,
        reporter: &JobReporter,
    ) -> Result<(), Error> {
        let imported = record.imported_at.is_some();
        let whole = if imported {
            // Its id is not new: what is sealed there, and is not what was to come, is somebody's.
            let arrived = self
                .clear_remains(record, &record.host, reporter)
                .await
                .map_err(|error| error.fault)?;
            arrived.map(|Arrived { path, identity, archive }| SnapshotRecord {
                path: Some(path),
                host_identity: Some(identity),
                archive,
                ..record.clone()
            })
        } else {
            let extension = self.extension(&record.extension)?;
            let archives = archives_of(extension.as_ref())?;
            let place = self.archive_place(record, &record.host).await?;
            sealed(record, archives.look(&place).await.map_err(|error| error.fault)?)
        };
        if let Some(whole) = whole {
            let data =
                serde_json::json!({"bytes": whole.archive.bytes, "reason": "crash_recovered"});
            self.transition_snapshot(
                &record.id,
                None,
                vec![(EventKind::SnapshotReady, data)],
                move |record| {
                    record.state = SnapshotState::Ready;
                    record.path = whole.path;
                    record.host_identity = whole.host_identity;
                    record.archive = whole.archive;
                    record.message =
                        Some("the process that made it died; its archive is whole".to_owned());
                    Ok(())
                },
            )
            .await?;
            return Ok(());
        }
        if !imported {
            self.remove_archives(&record.id, reporter).await?;
        }
        let message = "the process that made it died".to_owned();
        let data = serde_json::json!({"code": Code::OperationFailed, "message": message});
        self.transition_snapshot(
            &record.id,
            None,
            vec![(EventKind::SnapshotFailed, data)],
            move |record| {
                record.state = SnapshotState::Failed;
                record.message = Some(message);
                Ok(())
            },
        )
        .await
        .map(|_| ())
    }

    /// A copy that was on its way and that nobody wrote down is listed if it is whole, else taken away again.
    async fn take_back_copy(
        &self,
        record: &SnapshotRecord,
        reporter: &JobReporter,
    ) -> Result<(), Error> {
        let Some(host) = &record.copying_to else { return Ok(()) };
        match self.clear_remains(record, host, reporter).await {
            Ok(Some(arrived)) => self.write_arrived(&record.id, host, arrived).await.map(|_| ()),
            Ok(None) => Ok(()),
            Err(error) if self.is_vanished(host, &error) => {
                let hint = format!(
                    "{host} is not configured: if it never will be back, a copy to another host leaves behind what is there \
                     of {0}, or `sandboxer snapshots delete {0} --force`",
                    record.id
                );
                Err(error.fault.hint(hint))
            }
            Err(error) => Err(error.fault),
        }
    }
}

/// Whether a dead process may have left something of it.
pub(in crate::manager) fn is_left(record: &SnapshotRecord) -> bool {
    record.operation.is_some()
        || record.unremoved
        || record.copying_to.is_some()
        || matches!(record.state, SnapshotState::Creating | SnapshotState::Deleting)
}

/// What the record is to say of an archive that is there whole.
fn sealed(record: &SnapshotRecord, seen: ArchiveLook) -> Option<SnapshotRecord> {
    let manifest = seen
        .manifest
        .filter(|manifest| manifest.id == record.id && manifest.owner == record.owner)?;
    let archive = manifest.snapshot.archive;
    if seen.path.is_none() || seen.bytes.is_none() || archive.bytes != seen.bytes {
        return None;
    }
    Some(SnapshotRecord {
        path: seen.path,
        host_identity: seen.identity,
        archive,
        ..record.clone()
    })
}
