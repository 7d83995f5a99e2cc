//! The end of snapshots: delete, prune, and a profile's `keep`. Never of one that something depends on, unless somebody
//! insists (semantics 6).

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::domain::error::{Code, Error, Kind};
use crate::domain::event::{EventKind, Update};
use crate::domain::extension::{ExtensionError, Report, Reporter, TeardownReport};
use crate::domain::lineage::SnapshotView;
use crate::domain::name::{SandboxId, SnapshotId};
use crate::domain::operation::{CancelOutcome, Operation, OperationKind};
use crate::domain::request::{
    PruneItem, PruneRequest, SnapshotDeleteRequest, SnapshotQuery, SnapshotStarted,
};
use crate::domain::retention::OldRule;
use crate::domain::sandbox::{Running, SandboxRecord, State};
use crate::domain::snapshot::{SnapshotRecord, SnapshotState};
use crate::domain::time::Time;
use crate::failpoint;
use crate::manager::SandboxManager;
use crate::manager::busy::held_by;
use crate::manager::claim::in_memory_of;
use crate::manager::recipe::is_lost;
use crate::manager::record::running;
use crate::manager::reporter::JobReporter;
use crate::manager::survey::{GivenUp, Kept, in_words};
use crate::store::{Held, ending};

impl SandboxManager {
    /// Starts to delete a snapshot: its archive on every host, its patches, its name. By force an archive is given up whose host
    /// is not configured any more and does not answer.
    ///
    /// Errors of the operation: why a host could not be looked at; then nothing is removed, and it is what it was.
    pub async fn delete_snapshot(
        &self,
        request: &SnapshotDeleteRequest,
    ) -> Result<SnapshotStarted, Error> {
        self.delete_giving_up(request, request.force).await
    }

    /// The same, and whether archives may be given up.
    pub(super) async fn delete_giving_up(
        &self,
        request: &SnapshotDeleteRequest,
        by_force: bool,
    ) -> Result<SnapshotStarted, Error> {
        if request.rule.is_none() {
            return ending(self.start_deletion(request, by_force)).await;
        }
        // A directory that may not delete is no reason to pass over one snapshot.
        self.ensure_own().await?;
        ending(self.start_deletion(request, by_force)).await.map_err(passed_over)
    }

    async fn start_deletion(
        &self,
        request: &SnapshotDeleteRequest,
        by_force: bool,
    ) -> Result<SnapshotStarted, Error> {
        let record = self.exact_snapshot(&request.id, request.revision).await?;
        self.ensure_own().await?;
        if let Some(rule) = &request.rule {
            let all = self.parts.snapshots.by_arrival().await?;
            still_old(rule, &record, &all.iter().collect::<Vec<_>>(), self.now())?;
        }
        refuse_protected(&record, request.force_protected)?;
        self.refuse_in_use(&record.id, request).await?;
        let held = self.hold_snapshot(&record.id).await?;
        let record = self.exact_snapshot(&request.id, request.revision).await?;
        if record.state == SnapshotState::Creating {
            return Err(Error::new(
                Code::Conflict,
                format!("snapshot {} is still being made", record.id),
            )
            .hint(
                "cancel its operation; or, if nobody works on it any more, `sandboxer recover`",
            ));
        }
        let before = record.clone();
        let (operation, record) = self.begin_delete(&record, request).await?;
        failpoint::reached("delete.deleting");
        let id = record.id.clone();
        self.run_held(
            operation.clone(),
            held,
            None,
            move |manager, operation, cancel| async move {
                manager.delete_held(&operation, &id, &before, by_force, &cancel).await
            },
        );
        Ok(SnapshotStarted { operation: Some(operation.id), snapshot: record })
    }

    /// The snapshot's lock, or `busy` with who has it.
    pub(super) async fn hold_snapshot(&self, id: &SnapshotId) -> Result<Box<dyn Held>, Error> {
        match self.parts.locks.try_lock_snapshot(id).await? {
            Some(held) => Ok(held),
            None => Err(self.snapshot_busy(id).await),
        }
    }

    /// Writes `deleting`, and looks once more whether somebody began to use it meanwhile: a restore writes its record first
    /// and then looks whether the snapshot is still ready, so that one of the two sees the other.
    async fn begin_delete(
        &self,
        record: &SnapshotRecord,
        request: &SnapshotDeleteRequest,
    ) -> Result<(Operation, SnapshotRecord), Error> {
        let operation = self.new_snapshot_operation(OperationKind::Delete, &record.id);
        self.parts.operations.put(operation.clone()).await?;
        let mark = running(&operation);
        failpoint::reached("delete.judged");
        let begun = async {
            let deleting = self.write_deleting(record, request.rule, mark).await?;
            if let Err(fault) = self.refuse_in_use(&record.id, request).await {
                self.put_back_snapshot(record).await?;
                return Err(fault);
            }
            Ok(deleting)
        };
        match begun.await {
            Ok(deleting) => Ok((operation, deleting)),
            Err(fault) => {
                let told = Error::new(fault.code.clone(), fault.message.clone());
                self.end_operation(operation, Err(told)).await;
                Err(fault)
            }
        }
    }

    /// Writes `deleting`. A rule is judged in that very write: of two that one rule would delete, who comes second may be the
    /// last one that is left. Why it goes is its message then.
    async fn write_deleting(
        &self,
        record: &SnapshotRecord,
        rule: Option<OldRule>,
        mark: Running,
    ) -> Result<SnapshotRecord, Error> {
        let (id, expected) = (&record.id, Some(record.revision));
        let begin = move |record: &mut SnapshotRecord| {
            // The name of one that has failed may be another's by now.
            if record.state == SnapshotState::Failed {
                record.name = None;
            }
            record.state = SnapshotState::Deleting;
            record.operation = Some(mark);
            Ok(())
        };
        let Some(rule) = rule else {
            return self.transition_snapshot(id, expected, Vec::new(), begin).await;
        };
        let now = self.now();
        self.transition_among(id, expected, move |record, all| {
            record.message = Some(still_old(&rule, record, all, now)?);
            begin(record)
        })
        .await
    }

    /// Removes one that is `deleting`, and was as in `before`, and whose lock is held.
    pub(super) async fn delete_held(
        &self,
        operation: &Operation,
        id: &SnapshotId,
        before: &SnapshotRecord,
        by_force: bool,
        cancel: &CancellationToken,
    ) -> Result<(), Error> {
        let reporter = JobReporter::new(&self.jobs, operation);
        let cut_off =
            || Error::new(Code::Cancelled, format!("the removal of snapshot {id} was cut off"));
        let record = self.exact_snapshot(id.as_str(), None).await?;
        let surveyed = tokio::select! {
            biased;
            () = cancel.cancelled() => Err(Kept::from(cut_off())),
            surveyed = self.survey(&record, by_force) => surveyed,
            () = self.end_requested(&operation.id) => Err(Kept::from(cut_off())),
        };
        let given_up = match surveyed {
            Ok(given_up) => given_up,
            Err(kept) => {
                return Err(
                    CancelOutcome::Undone.noted_on(self.keep_all(&record, before, kept).await?)
                );
            }
        };
        let removed = tokio::select! {
            biased;
            () = cancel.cancelled() => Err(cut_off().into()),
            removed = self.remove_archives_but(id, &given_up, &reporter) => removed,
            () = self.end_requested(&operation.id) => Err(cut_off().into()),
        };
        failpoint::reached("delete.removed");
        match removed {
            Ok(()) => {}
            Err(error) if error.is_refusal() && before.state != SnapshotState::Deleting => {
                self.put_back_snapshot(before).await?;
                return Err(error.fault);
            }
            Err(error) => return Err(self.stay_deleting(id, error.fault).await?),
        }
        self.remove_patches_of(id).await?;
        let record = self.exact_snapshot(id.as_str(), None).await?;
        let mut data = in_memory_of(&record);
        if !given_up.is_empty() {
            data["given_up"] = serde_json::to_value(&given_up).unwrap_or_default();
        }
        let news = vec![(EventKind::SnapshotDeleted, data)];
        let record = self.transition_snapshot(id, None, news, |_| Ok(())).await?;
        self.note_owed(id).await;
        // Only the record knows what the log has not been told.
        if let Err(fault) = self.tell(&record.pending).await {
            return Err(self.stay_deleting(id, fault).await?);
        }
        failpoint::reached("delete.told");
        self.parts.snapshots.remove(id, None).await?;
        self.jobs.publish(Update::Snapshots);
        let mut gone = self.deleted.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let message = in_words(&given_up).or_else(|| record.message.clone());
        gone.insert(
            id.clone(),
            SnapshotRecord { operation: None, pending: Vec::new(), message, ..record },
        );
        Ok(())
    }

    /// A deletion that could not be brought to its end; why.
    pub(super) async fn stay_deleting(
        &self,
        id: &SnapshotId,
        fault: Error,
    ) -> Result<Error, Error> {
        let message = fault.message.clone();
        self.transition_snapshot(id, None, Vec::new(), move |record| {
            record.message = Some(message);
            record.operation = None;
            Ok(())
        })
        .await?;
        Ok(match fault.hint {
            Some(_) => fault,
            None => fault.hint(format!(
                "it stays `deleting`; `sandboxer snapshots delete {id}` tries again"
            )),
        })
    }

    /// Removes a snapshot's archive from every host that has or may have one: copies first.
    ///
    /// Errors: `operation_failed` naming what is left, or why a host could not be asked.
    pub(super) async fn remove_archives(
        &self,
        id: &SnapshotId,
        reporter: &JobReporter,
    ) -> Result<(), Error> {
        self.remove_archives_but(id, &[], reporter).await.map_err(|error| error.fault)
    }

    async fn remove_archives_but(
        &self,
        id: &SnapshotId,
        given_up: &[GivenUp],
        reporter: &JobReporter,
    ) -> Result<(), ExtensionError> {
        let record = self.exact_snapshot(id.as_str(), None).await?;
        let extension = self.extension(&record.extension)?;
        let Some(archives) = extension.archives() else { return Ok(()) };
        let mut untouched = true;
        // A copy that died may have left a part where the record does not list one yet.
        let hosts: Vec<_> = record.hosts().chain(&record.copying_to).cloned().collect();
        for host in hosts
            .iter()
            .rev()
            .filter(|host| !given_up.iter().any(|gone| gone.host.same(host.as_str())))
        {
            let place = match self.archive_place(&record, host).await {
                // Of one that came to nothing, nothing is there; and where it would be only the recipe knew.
                Err(fault)
                    if is_lost(&fault)
                        && record.state == SnapshotState::Deleting
                        && !record.unremoved =>
                {
                    continue;
                }
                place => place?,
            };
            let report = archives.remove(&place, reporter).await?;
            untouched &= report.untouched;
            if !report.is_clean() {
                return Err(ExtensionError { untouched, ..left_over(id, &report).into() });
            }
        }
        Ok(())
    }

    /// Deletes old snapshots on which nothing depends, or says which it would.
    ///
    /// Errors: `invalid_input` when neither a number nor an age says which are old.
    pub async fn prune_snapshots(&self, request: &PruneRequest) -> Result<Vec<PruneItem>, Error> {
        if request.keep.is_none() && request.older_than_s.is_none() {
            return Err(Error::invalid_input(
                "keep",
                "which snapshots are old is said by --keep, --older-than, or both",
            ));
        }
        if !request.dry_run {
            self.ensure_own().await?;
        }
        let rule =
            OldRule { keep: request.keep, older_than_s: request.older_than_s, taken_here: false };
        let mut items = Vec::new();
        for (view, why) in self.old_snapshots(&rule).await? {
            let record = &view.record;
            let depends = view.dependants();
            let stays = if record.is_protected() {
                Some("kept, labelled protect=true".to_owned())
            } else {
                (!depends.is_empty()).then(|| format!("kept, in use by {}", depends.join(", ")))
            };
            let mut item = PruneItem {
                id: record.id.clone(),
                name: record.name.clone(),
                ok: stays.is_none(),
                bytes: record.archive.bytes,
                reason: stays.unwrap_or(why),
                error: None,
            };
            if item.ok && !request.dry_run {
                item.ended(self.delete_while_old(&record.id, rule).await.map_err(Error::from));
            }
            items.push(item);
        }
        Ok(items)
    }

    /// Deletes one, unless it is not old any more, or something depends on it by now; its last record.
    async fn delete_while_old(
        &self,
        id: &SnapshotId,
        rule: OldRule,
    ) -> Result<SnapshotRecord, Error> {
        let request = SnapshotDeleteRequest {
            id: id.to_string(),
            rule: Some(rule),
            ..SnapshotDeleteRequest::default()
        };
        let started = self.delete_snapshot(&request).await?;
        match started.operation {
            Some(operation) => self.finish_snapshot(&operation).await,
            None => Ok(started.snapshot),
        }
    }

    /// A profile's `keep`, after a snapshot that went well: what it deleted is in the message of that one. What cannot be
    /// deleted stays, and is no failure.
    pub(super) async fn keep_newest(
        &self,
        newest: &SnapshotRecord,
        keep: u32,
        reporter: &JobReporter,
    ) {
        let sandbox = &newest.sandbox_id;
        let rule = OldRule { keep: Some(keep), taken_here: true, ..OldRule::default() };
        let old = match self.beyond_newest(sandbox, keep).await {
            Ok(old) => old,
            Err(fault) => {
                return tracing::warn!(%sandbox, %fault, "old snapshots could not be looked for");
            }
        };
        let mut gone = Vec::new();
        for (at, view) in old.iter().enumerate() {
            let (done, of) = (Some(at as u64), Some(old.len() as u64));
            reporter.report(Report { stage: "keep", done, of, ..Report::default() });
            let record = &view.record;
            // Boxed: it starts operations of this very kind.
            match Box::pin(self.delete_while_old(&record.id, rule)).await {
                Ok(_) => gone.push(record.title()),
                Err(fault) => {
                    tracing::warn!(snapshot = %record.id, %fault, "an old snapshot could not be deleted")
                }
            }
        }
        if gone.is_empty() {
            return;
        }
        let message = format!("the profile keeps {keep} of a sandbox: deleted {}", gone.join(", "));
        let told = self.transition_snapshot(&newest.id, None, Vec::new(), move |record| {
            record.message = Some(message);
            Ok(())
        });
        if let Err(fault) = told.await {
            tracing::warn!(snapshot = %newest.id, %fault, "what was deleted for it is not on its record");
        }
    }

    /// The snapshots of a sandbox that a profile's `keep` would delete.
    pub(super) async fn beyond_newest(
        &self,
        sandbox: &SandboxId,
        keep: u32,
    ) -> Result<Vec<Arc<SnapshotView>>, Error> {
        let rule = OldRule { keep: Some(keep), taken_here: true, ..OldRule::default() };
        let old = self.old_snapshots(&rule).await?.into_iter().map(|(view, _)| view);
        let goes =
            |view: &Arc<SnapshotView>| !view.record.is_protected() && view.dependants().is_empty();
        Ok(old.filter(|view| view.record.sandbox_id == *sandbox && goes(view)).collect())
    }

    /// Snapshots that a rule calls old, and why.
    async fn old_snapshots(
        &self,
        rule: &OldRule,
    ) -> Result<Vec<(Arc<SnapshotView>, String)>, Error> {
        let records = self.parts.snapshots.by_arrival().await?;
        let views = self.snapshots(&SnapshotQuery::default()).await?;
        let view_of = |id: &SnapshotId| views.iter().find(|view| view.record.id == *id).cloned();
        let old = rule.old(&records.iter().collect::<Vec<_>>(), self.now());
        Ok(old.into_iter().filter_map(|(record, why)| Some((view_of(&record.id)?, why))).collect())
    }

    /// A snapshot that something depends on is not deleted, unless somebody insists; one that a sandbox is being made from
    /// never is.
    async fn refuse_in_use(
        &self,
        id: &SnapshotId,
        request: &SnapshotDeleteRequest,
    ) -> Result<(), Error> {
        if let Some(sandbox) = self.based_on(id).await?.into_iter().find(is_being_made) {
            let what = format!("sandbox {} is being made from snapshot {id}", sandbox.id);
            return Err(
                held_by(&what, sandbox.operation.as_ref()).hint("wait for it, or cancel it")
            );
        }
        refuse_dependants(&self.snapshot_view(id.as_str()).await?, request)
    }
}

/// Whether a sandbox is being made. One that is made again keeps its state until what it is made from was read whole.
fn is_being_made(sandbox: &SandboxRecord) -> bool {
    let again =
        sandbox.operation.as_ref().is_some_and(|running| running.kind == OperationKind::Recreate);
    again || matches!(sandbox.state, State::Requested | State::Provisioning)
}

/// A protected one is deleted only by who says that he means it.
fn refuse_protected(record: &SnapshotRecord, forced: bool) -> Result<(), Error> {
    if record.is_protected() && !forced {
        return Err(Error::new(
            Code::Conflict,
            format!("snapshot {} is labelled protect=true", record.title()),
        )
        .hint("--force-protected does it all the same"));
    }
    Ok(())
}

/// Why a rule calls one old still.
///
/// Errors: `conflict` with why not, in `details.skipped` too.
fn still_old(
    rule: &OldRule,
    record: &SnapshotRecord,
    all: &[&SnapshotRecord],
    now: Time,
) -> Result<String, Error> {
    rule.judge(record, all, now).map_err(|stays| {
        let fault =
            Error::new(Code::Conflict, format!("snapshot {} stays: {stays}", record.title()));
        fault.detail("skipped", format!("kept, {stays}"))
    })
}

/// What refuses the deletion of one that was to go for its age alone passes it over.
fn passed_over(fault: Error) -> Error {
    let reason = match (&fault.code, fault.details["dependants"].as_array()) {
        _ if !fault.details["skipped"].is_null() => return fault,
        (Code::NotFound, _) => PruneItem::GONE.to_owned(),
        (Code::InUse, Some(dependants)) => {
            let dependants: Vec<_> =
                dependants.iter().filter_map(serde_json::Value::as_str).collect();
            format!("kept, in use by {}", dependants.join(", "))
        }
        (Code::Conflict, _) => format!("kept, {}", fault.message),
        _ => return fault,
    };
    fault.detail("skipped", reason)
}

fn refuse_dependants(view: &SnapshotView, request: &SnapshotDeleteRequest) -> Result<(), Error> {
    let depends = view.dependants();
    if depends.is_empty() {
        return Ok(());
    }
    if request.force {
        return refuse_unseen(view, &depends, request.dependants.as_deref());
    }
    let message = format!("snapshot {} is in use: {}", view.record.title(), depends.join(", "));
    Err(Error::new(Code::InUse, message)
        .hint("destroy or remove those first; --force deletes it all the same, and what is based on it cannot be recreated then")
        .detail("dependants", depends))
}

/// Somebody who insists has agreed to what he was shown.
fn refuse_unseen(
    view: &SnapshotView,
    depends: &[String],
    seen: Option<&[String]>,
) -> Result<(), Error> {
    let Some(seen) = seen else { return Ok(()) };
    let unseen: Vec<_> = depends.iter().filter(|one| !seen.contains(one)).cloned().collect();
    if unseen.is_empty() {
        return Ok(());
    }
    let message = format!(
        "more depends on snapshot {} than was looked at: {}",
        view.record.title(),
        unseen.join(", ")
    );
    Err(Error::new(Code::Conflict, message)
        .of_kind(Kind::Stale)
        .hint("look again, then decide")
        .detail("dependants", depends))
}

fn left_over(id: &SnapshotId, report: &TeardownReport) -> Error {
    let left: Vec<String> =
        report.leftovers.iter().map(|r| format!("{} {}", r.kind, r.id)).collect();
    let why: Vec<String> = report.lines.iter().filter_map(|line| line.reason.clone()).collect();
    let how_much =
        if report.untouched { "nothing was removed" } else { "not everything could be removed" };
    let message = format!("snapshot {id}: {how_much}: {}", left.join(", "));
    let then = if report.untouched { "deletes it" } else { "goes on" };
    let fault = Error::new(Code::OperationFailed, message).detail("leftovers", left).hint(format!(
        "look at it there: what is not known to be this snapshot's is never removed. Once it is out of the way, \
         `sandboxer snapshots delete {id}` {then}"
    ));
    if why.is_empty() { fault } else { fault.because(why.join("; ")) }
}
