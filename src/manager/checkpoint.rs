//! Snapshot: write ahead, capture, write `ready`; or leave nothing and keep the reason (semantics 6).

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::domain::error::{Code, Error};
use crate::domain::event::EventKind;
use crate::domain::extension::{
    Capability, CaptureRequest, Captured, ExtensionError, Inspection, SandboxExtension, Target,
};
use crate::domain::name::{SandboxId, SnapshotId, check_name};
use crate::domain::operation::{CancelOutcome, Operation, OperationKind, Subject};
use crate::domain::profile::SnapshotMode;
use crate::domain::request::{SnapshotRequest, SnapshotStarted};
use crate::domain::sandbox::{SandboxRecord, State};
use crate::domain::snapshot::{ArchiveFacts, SnapshotKind, SnapshotRecord, SnapshotState};
use crate::domain::time::took_ms;
use crate::failpoint;
use crate::manager::SandboxManager;
use crate::manager::begin::may_follow;
use crate::manager::record::{Guard, running};
use crate::manager::reporter::JobReporter;
use crate::store::Held;

/// Tries to find a random id that nothing has.
const ID_TRIES: u32 = 16;

/// How long the clearing up after a failed snapshot may take, beside the time that containers have to stop in.
const CLEAR_LIMIT: Duration = Duration::from_mins(2);

impl SandboxManager {
    /// Starts a snapshot and returns at once.
    pub async fn snapshot(&self, request: &SnapshotRequest) -> Result<SnapshotStarted, Error> {
        let record = self.exactly(&request.id, request.revision).await?;
        let extension = self.extension(&record.extension)?;
        extension.ensure(&Capability::Snapshots, "take snapshots")?;
        if let Some(name) = &request.name {
            check_name(name)?;
        }
        let mode = request.mode.as_deref().map(parse_mode).transpose()?;
        let Some(held) = self.parts.locks.try_lock(&record.id).await? else {
            return Err(self.busy(&record.id).await);
        };
        let record = self.exactly(&request.id, request.revision).await?;
        check_state(&record)?;
        may_follow(&OperationKind::Snapshot, &record)?;
        let target = self.target(&record).await?;
        if let Some(mode) = mode.as_ref().filter(|_| !extension.may_have_services(&target.profile))
        {
            ensure_without_containers(&record, mode)?;
        }
        let draft = self.draft_snapshot(&record, request.name.clone(), SnapshotKind::User);
        let (snapshot, operation, held) = self.write_snapshot_ahead(draft, held).await?;
        if let Err(fault) = self.mark(&operation, &record).await {
            let told = Error::new(fault.code.clone(), fault.message.clone());
            self.parts.snapshots.remove(&snapshot.id, None).await?;
            self.end_operation(operation, Err(told)).await;
            return Err(fault);
        }
        failpoint::reached("snapshot.written");
        let capture = CaptureRequest {
            snapshot: snapshot.clone(),
            owner: snapshot.owner.clone(),
            mode,
            excludes: target.profile.snapshot.exclude.clone(),
        };
        let host = record.host.clone();
        self.run_held(
            operation.clone(),
            held,
            Some(host),
            move |manager, operation, cancel| async move {
                manager.capture(&operation, extension.as_ref(), &target, capture, &cancel).await
            },
        );
        Ok(SnapshotStarted { operation: Some(operation.id), snapshot })
    }

    /// The record of a snapshot of this sandbox, as far as nobody has been asked.
    fn draft_snapshot(
        &self,
        sandbox: &SandboxRecord,
        name: Option<String>,
        kind: SnapshotKind,
    ) -> SnapshotRecord {
        SnapshotRecord {
            id: SnapshotId::from_random((self.parts.dice)()),
            name,
            kind,
            sandbox_id: sandbox.id.clone(),
            sandbox_name: sandbox.name.clone(),
            profile: sandbox.profile.clone(),
            extension: sandbox.extension.clone(),
            extension_version: self.extension_version(&sandbox.extension),
            host: sandbox.host.clone(),
            host_identity: sandbox.host_identity.clone(),
            path: None,
            state: SnapshotState::Creating,
            message: None,
            failure: None,
            unremoved: false,
            created_at: self.now(),
            imported_at: None,
            expires_at: None,
            archive: ArchiveFacts::default(),
            parent_snapshot: sandbox.based_on_snapshot.clone(),
            patch_level: sandbox.last_patch_sequence,
            next_patch_sequence: 1,
            labels: sandbox.labels.clone(),
            inputs: sandbox.inputs.clone(),
            replicas: Vec::new(),
            copying_to: None,
            verified_at: None,
            damage: Vec::new(),
            operation: None,
            actor: self.actor(),
            owner: sandbox.owner.clone(),
            revision: 0,
            pending: Vec::new(),
        }
    }

    /// Writes the record before anything is done on the host. What is held then is the sandbox's lock and its own.
    async fn write_snapshot_ahead(
        &self,
        mut draft: SnapshotRecord,
        held: Box<dyn Held>,
    ) -> Result<(SnapshotRecord, Operation, Box<dyn Held>), Error> {
        for _ in 0..ID_TRIES {
            let Some(own) = self.parts.locks.try_lock_snapshot(&draft.id).await? else {
                draft.id = SnapshotId::from_random((self.parts.dice)());
                continue;
            };
            let mut operation = self.new_operation(OperationKind::Snapshot, &draft.sandbox_id);
            operation.subject =
                Subject::SandboxAndSnapshot(draft.sandbox_id.clone(), draft.id.clone());
            draft.operation = Some(running(&operation));
            self.parts.operations.put(operation.clone()).await?;
            match self.parts.snapshots.insert(draft.clone()).await {
                Ok(record) => {
                    self.jobs.publish(crate::domain::event::Update::Snapshots);
                    return Ok((record, operation, Box::new((held, own))));
                }
                Err(fault) => {
                    let told = Error::new(fault.code.clone(), fault.message.clone());
                    self.end_operation(operation, Err(told)).await;
                    if fault.code != Code::Conflict || fault.details["field"] != "id" {
                        return Err(fault);
                    }
                    draft.id = SnapshotId::from_random((self.parts.dice)());
                }
            }
        }
        Err(Error::internal("no free snapshot id was found"))
    }

    async fn capture(
        &self,
        operation: &Operation,
        extension: &dyn SandboxExtension,
        target: &Target,
        request: CaptureRequest,
        cancel: &CancellationToken,
    ) -> Result<(), Error> {
        let id = request.snapshot.id.clone();
        let reporter = JobReporter::new(&self.jobs, operation);
        if let Some(keep) = target.profile.snapshot.keep {
            // With one more, one more is old.
            let old = self.beyond_newest(&target.id, keep.saturating_sub(1)).await;
            reporter.announce(0, u32::from(old.is_ok_and(|old| !old.is_empty())));
        }
        let work = extension.snapshot(target, &request, &reporter);
        let outcome = match self.or_cancelled(&target.id, cancel, work).await {
            Ok(captured) => {
                failpoint::reached("snapshot.made");
                self.write_captured(operation, &id, captured).await.map_err(ExtensionError::from)
            }
            Err(error) => Err(error),
        };
        let result = match outcome {
            Ok(record) => {
                failpoint::reached("snapshot.ready");
                let seen = self.after_stop(extension, target, &request).await;
                self.free(operation, &target.id, None, seen).await?;
                if let Some(keep) = target.profile.snapshot.keep {
                    self.keep_newest(&record, keep, &reporter).await;
                }
                Ok(())
            }
            Err(error) if is_refusal(&error) => {
                Err(self.take_back_refused(operation, &request, error.fault).await?)
            }
            Err(error) => {
                Err(self.clear_up(operation, extension, target, &request, &reporter, error).await?)
            }
        };
        failpoint::reached("snapshot.freed");
        result
    }

    async fn write_captured(
        &self,
        operation: &Operation,
        id: &SnapshotId,
        captured: Captured,
    ) -> Result<SnapshotRecord, Error> {
        let data = serde_json::json!({
            "bytes": captured.archive.bytes,
            "files": captured.archive.files,
            "took_ms": took_ms(self.now().since(operation.started_at)),
        });
        self.transition_snapshot(id, None, vec![(EventKind::SnapshotReady, data)], move |record| {
            record.state = SnapshotState::Ready;
            record.path = Some(captured.path);
            record.host_identity = Some(captured.identity);
            record.archive = captured.archive;
            record.operation = None;
            Ok(())
        })
        .await
    }

    /// What runs after containers were stopped and started: the engine may have given them other ports. `None`: none were
    /// stopped, or nobody could look.
    async fn after_stop(
        &self,
        extension: &dyn SandboxExtension,
        target: &Target,
        request: &CaptureRequest,
    ) -> Option<Inspection> {
        let mode = request.mode.as_ref().or(target.profile.snapshot.mode.as_ref());
        if mode != Some(&SnapshotMode::Stop) {
            return None;
        }
        self.seen_now(extension, target).await.filter(|seen| seen.ready)
    }

    /// The sandbox is nobody's again; what came of it is a message at most.
    async fn free(
        &self,
        operation: &Operation,
        id: &SandboxId,
        message: Option<String>,
        seen: Option<Inspection>,
    ) -> Result<(), Error> {
        self.transition(id, Guard::Operation(operation.id.clone()), Vec::new(), move |record| {
            record.operation = None;
            if let Some(seen) = seen {
                record.services = seen.services;
                record.reachability = seen.reachability.or(record.reachability.take());
            }
            if message.is_some() {
                record.message = message;
            }
        })
        .await
        .map(|_| ())
    }

    /// After a snapshot that was refused: nobody keeps a record of it, and its source is as it was.
    async fn take_back_refused(
        &self,
        operation: &Operation,
        request: &CaptureRequest,
        fault: Error,
    ) -> Result<Error, Error> {
        self.parts.snapshots.remove(&request.snapshot.id, None).await?;
        self.jobs.publish(crate::domain::event::Update::Snapshots);
        self.free(operation, &request.snapshot.sandbox_id, None, None).await?;
        Ok(fault)
    }

    /// After a snapshot that came to nothing: the source runs again, nothing of the archive stays, and the reason does.
    async fn clear_up(
        &self,
        operation: &Operation,
        extension: &dyn SandboxExtension,
        target: &Target,
        request: &CaptureRequest,
        reporter: &JobReporter,
        error: ExtensionError,
    ) -> Result<Error, Error> {
        let id = &request.snapshot.id;
        let ExtensionError { mut fault, failure, untouched } = error;
        // Before clearing up is a step itself.
        let failure = failure.unwrap_or_else(|| reporter.failure_of(&fault));
        let (resumed, removed) = if untouched {
            (Ok(()), Ok(()))
        } else {
            let clear = async {
                let resumed = extension.resume(target, Some(id)).await.map_err(|error| error.fault);
                (resumed, self.remove_archives(id, reporter).await)
            };
            let late = || Error::new(Code::Timeout, "the clearing up took too long");
            let limit = CLEAR_LIMIT + target.profile.stop_grace.duration();
            tokio::time::timeout(limit, clear).await.unwrap_or_else(|_| (Err(late()), Err(late())))
        };
        failpoint::reached("snapshot.cleared");
        if fault.code == Code::Cancelled {
            fault = called_off(id, resumed.is_ok() && removed.is_ok());
        }
        let message = fault.message.clone();
        let unremoved = removed.is_err();
        if let Err(why) = removed {
            let hint = format!(
                "something of it may still be on {}: {}; `sandboxer recover` looks again",
                target.host, why.message
            );
            fault = fault.hint(hint).detail("unremoved", true);
        }
        let mut told = format!("snapshot {id} failed: {message}");
        // A host that cannot be reached resumes them by itself, as soon as the script that held them is gone.
        let held = resumed.as_ref().is_err_and(|why| why.code != Code::HostUnreachable);
        if let Err(why) = resumed {
            told = format!("{told}; its containers may still be paused: {}", why.message);
            fault = fault.detail("paused", true);
            if held {
                fault = fault.hint("`sandboxer recover` resumes what is still paused");
            } else if !unremoved {
                fault =
                    fault.hint("its host resumes them by itself; `sandboxer get` shows them once it can be reached");
            }
        }
        let data =
            serde_json::json!({"code": fault.code, "step": failure.step, "message": message});
        self.transition_snapshot(
            id,
            None,
            vec![(EventKind::SnapshotFailed, data)],
            move |record| {
                record.state = SnapshotState::Failed;
                record.message = Some(message);
                record.failure = Some(failure);
                record.unremoved = unremoved;
                record.operation = None;
                Ok(())
            },
        )
        .await?;
        let seen = self.after_stop(extension, target, request).await;
        if held {
            // It stays on the record, so that `recover` resumes them, and nothing else begins before that.
            self.transition(
                &target.id,
                Guard::Operation(operation.id.clone()),
                Vec::new(),
                move |record| {
                    record.message = Some(told);
                },
            )
            .await?;
        } else {
            self.free(operation, &target.id, Some(told), seen).await?;
        }
        self.drop_bygone().await;
        Ok(fault)
    }
}

/// Whether a snapshot was refused, rather than tried in vain: of that the record keeps what went wrong.
fn is_refusal(error: &ExtensionError) -> bool {
    error.is_refusal() && error.fault.code != Code::OperationFailed
}

/// The error of a snapshot that was cancelled, by what the clearing up came to.
fn called_off(id: &SnapshotId, cleared: bool) -> Error {
    if cleared {
        return CancelOutcome::Undone
            .fault(format!("snapshot {id}: cancelled; nothing of it is left"));
    }
    CancelOutcome::Stopped
        .fault(format!("snapshot {id}: cancelled, and not everything could be put back"))
}

fn parse_mode(word: &str) -> Result<SnapshotMode, Error> {
    match SnapshotMode::from_word(word) {
        SnapshotMode::Other(_) => {
            Err(Error::invalid_input("mode", format!("there is no snapshot mode {word:?}"))
                .hint("modes are live, pause and stop"))
        }
        mode => Ok(mode),
    }
}

/// Refuses to hold still what has no containers: only they can be.
fn ensure_without_containers(record: &SandboxRecord, mode: &SnapshotMode) -> Result<(), Error> {
    if *mode == SnapshotMode::Live {
        return Ok(());
    }
    let message = format!(
        "sandbox {} has no containers: nothing in it can be held still by --mode {mode}",
        record.id
    );
    Err(Error::new(Code::Unsupported, message)
        .hint("--mode live takes its files as they are, and so does a snapshot without --mode")
        .detail("field", "mode"))
}

fn check_state(record: &SandboxRecord) -> Result<(), Error> {
    if matches!(record.state, State::Ready | State::Sleeping) {
        return Ok(());
    }
    Err(Error::new(Code::Conflict, format!("a {} sandbox cannot be snapshotted", record.state))
        .hint("a snapshot is taken of a sandbox that is ready or sleeping")
        .detail("state", record.state.as_str()))
}
