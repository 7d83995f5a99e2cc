//! Sleep and wake (semantics 1 and 7). A state is written when the host confirmed it. One that fails leaves what the host
//! says, and a message; a wake that fails or is called off is put back to sleep first, so that it can be tried again.

use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::domain::error::{Code, Error};
use crate::domain::event::EventKind;
use crate::domain::extension::{
    Capability, ExtensionError, Inspection, Readiness, SandboxExtension, Target,
};
use crate::domain::operation::{CancelOutcome, Operation, OperationKind};
use crate::domain::request::{SleepRequest, Started};
use crate::domain::sandbox::{Reason, Running, SandboxRecord, State};
use crate::domain::time::took_ms;
use crate::failpoint;
use crate::manager::SandboxManager;
use crate::manager::record::{Guard, running};
use crate::manager::reporter::JobReporter;
use crate::manager::services::{lose, lost_news};
use crate::manager::settling::Settling;

/// How long the way back of a wake that failed may take, with the look at what came of it.
const BACK_LIMIT: Duration = Duration::from_mins(2);

impl SandboxManager {
    /// Starts to stop one that is ready, and returns at once. One that sleeps is nothing to do.
    pub async fn sleep(&self, request: &SleepRequest) -> Result<Started, Error> {
        self.turn(OperationKind::Sleep, request).await
    }

    /// Starts to wake one that sleeps, patches and all, and returns at once. One that is ready is nothing to do.
    pub async fn wake(&self, request: &SleepRequest) -> Result<Started, Error> {
        self.turn(OperationKind::Wake, request).await
    }

    async fn turn(&self, kind: OperationKind, request: &SleepRequest) -> Result<Started, Error> {
        let record = self.exactly(&request.id, request.revision).await?;
        let extension = self.extension(&record.extension)?;
        extension.ensure(&Capability::Sleep, kind.as_str())?;
        let Some(held) = self.parts.locks.try_lock(&record.id).await? else {
            return Err(self.busy(&record.id).await);
        };
        let record = self.exactly(&request.id, request.revision).await?;
        if !may_turn(&kind, &record)? {
            return Ok(Started { operation: None, sandbox: record });
        }
        self.ensure_patches_as_shown(&record, request.patches.as_deref()).await?;
        let target = self.target(&record).await?;
        let half = |dead: &Running| matches!(dead.kind, OperationKind::Sleep | OperationKind::Wake);
        let dead = record.operation.clone().filter(half);
        let (operation, record) = self.begin(kind.clone(), &record).await?;
        let (host, sandbox) = (record.host.clone(), record.clone());
        self.run_held(
            operation.clone(),
            held,
            Some(host),
            move |manager, operation, cancel| async move {
                let reporter = JobReporter::new(&manager.jobs, &operation);
                let (operation, before, extension) = (&operation, &sandbox, extension.as_ref());
                let work = Turn { operation, dead, before, extension, target: &target };
                match kind {
                    OperationKind::Sleep => manager.sleep_held(&work, &cancel, &reporter).await,
                    _ => manager.wake_held(&work, &cancel, &reporter).await,
                }
            },
        );
        Ok(Started { operation: Some(operation.id), sandbox: record })
    }

    async fn sleep_held(
        &self,
        work: &Turn<'_>,
        cancel: &CancellationToken,
        reporter: &JobReporter,
    ) -> Result<(), Error> {
        let id = &work.before.id;
        if let Err(error) =
            self.or_cancelled(id, cancel, work.extension.sleep(work.target, reporter)).await
        {
            return if error.is_refusal() {
                Err(self.turn_refused(work, error.fault).await)
            } else {
                self.leave_as_seen(work, error.fault).await
            };
        }
        failpoint::reached("sleep.confirmed");
        let now = self.now();
        // For what is shown; that it sleeps is known.
        let seen = self.inspect(work.extension, work.target).await.unwrap_or_default();
        self.transition(
            id,
            work.mine(),
            vec![self.turned(work, EventKind::SandboxSleeping)],
            move |record| {
                record.state = State::Sleeping;
                record.reason = Some(Reason::User);
                record.message = None;
                record.observed_at = Some(now);
                record.services = seen.services;
                record.reachability = None;
                record.operation = None;
            },
        )
        .await?;
        failpoint::reached("sleep.sleeping");
        Ok(())
    }

    async fn wake_held(
        &self,
        work: &Turn<'_>,
        cancel: &CancellationToken,
        reporter: &JobReporter,
    ) -> Result<(), Error> {
        let id = &work.before.id;
        let (ready, message) = match self.wake_and_patch(work, cancel, reporter).await {
            Ok(woken) => woken,
            Err(error) if error.is_refusal() => {
                return Err(self.turn_refused(work, error.fault).await);
            }
            Err(error) => {
                let back = work.extension.sleep(work.target, reporter);
                match tokio::time::timeout(BACK_LIMIT, back).await {
                    Ok(Ok(())) => {}
                    Ok(Err(why)) => {
                        tracing::warn!(sandbox = %id, fault = %why.fault, "it was not put back to sleep")
                    }
                    Err(_) => tracing::warn!(sandbox = %id, "it was not put back to sleep in time"),
                }
                return self.leave_as_seen(work, error.fault).await;
            }
        };
        let now = self.now();
        self.transition(
            id,
            work.mine(),
            vec![self.turned(work, EventKind::SandboxWoken)],
            move |record| {
                record.state = State::Ready;
                record.reason = Some(Reason::User);
                record.message = message;
                record.observed_at = Some(now);
                record.services = ready.services;
                record.reachability = Some(ready.reachability);
                record.operation = None;
            },
        )
        .await?;
        failpoint::reached("wake.ready");
        Ok(())
    }

    /// What runs again, and what is to be said of it. A patch that fails is no error: the sandbox is usable.
    async fn wake_and_patch(
        &self,
        work: &Turn<'_>,
        cancel: &CancellationToken,
        reporter: &JobReporter,
    ) -> Result<(Readiness, Option<String>), ExtensionError> {
        let id = &work.before.id;
        let limit = work.target.profile.ready_timeout.duration();
        reporter.announce(0, u32::from(self.owes(work.before).await));
        let until = Instant::now() + limit;
        let ready = self
            .or_cancelled(id, cancel, work.extension.wake(work.target, limit, reporter))
            .await?;
        failpoint::reached("wake.awake");
        let patch = async {
            let passed =
                self.patch_pass(work.operation, work.before, false, cancel, reporter).await?;
            failpoint::reached("wake.patched");
            Ok(passed.record.applied_patches != work.before.applied_patches)
        };
        let settling = Settling { extension: work.extension, target: work.target, until };
        let woken = Box::pin(self.patch_and_settle(settling, ready, cancel, patch)).await?;
        failpoint::reached("wake.settled");
        Ok(woken)
    }

    /// After a sleep or a wake that was refused: the record is what it was; the fault to tell.
    async fn turn_refused(&self, work: &Turn<'_>, fault: Error) -> Error {
        let dead = work.dead.clone();
        let write = self
            .transition(&work.before.id, work.mine(), Vec::new(), |record| record.operation = dead);
        write.await.err().unwrap_or(fault)
    }

    /// After a sleep or a wake that came to nothing: what the host says is written down, with the reason.
    ///
    /// Errors: why it came to nothing; none if it was cancelled and the host says that it was done by then.
    async fn leave_as_seen(&self, work: &Turn<'_>, fault: Error) -> Result<(), Error> {
        let before = work.before;
        let look = tokio::time::timeout(BACK_LIMIT, self.inspect(work.extension, work.target));
        let seen = look.await.ok().and_then(Result::ok);
        let now = self.now();
        let verb = work.operation.kind.as_str();
        let end = as_seen(work, fault, seen.as_ref());
        let message = end.as_ref().err().map(|fault| match fault.code {
            Code::Cancelled => fault.message.clone(),
            _ => format!("{verb} failed: {}", fault.message),
        });
        let state =
            seen.as_ref().map_or_else(|| before.state.clone(), |seen| observed(before, seen));
        let mut news = Vec::new();
        match &state {
            State::Lost => news.extend(lost_news(before)),
            state if *state == before.state => {}
            State::Ready => news.push(self.turned(work, EventKind::SandboxWoken)),
            _ => news.push(self.turned(work, EventKind::SandboxSleeping)),
        }
        // `recover` looks again at what neither this nor the look has settled: over a dead one, where nobody could look, and after
        // a wake that left it in between.
        let known = seen
            .as_ref()
            .is_some_and(|seen| seen.ready || seen.asleep || seen.resources.is_empty());
        let woken = work.operation.kind == OperationKind::Wake;
        let between = seen.as_ref().is_none_or(|seen| woken && seen.halfway);
        let dead = work
            .dead
            .clone()
            .or_else(|| between.then(|| running(work.operation)))
            .filter(|_| !known);
        let write = self.transition(&before.id, work.mine(), news, move |record| {
            record.operation = dead;
            record.message = message;
            let Some(seen) = seen else { return };
            record.observed_at = Some(now);
            if state == State::Lost {
                return lose(record);
            }
            if state != record.state {
                record.reason = Some(Reason::User);
            }
            record.reachability = match state {
                State::Sleeping => None,
                _ => seen.reachability.or(record.reachability.take()),
            };
            record.services = seen.services;
            record.state = state;
        });
        write.await?;
        if let Err(fault) = &end {
            self.saw_fault_of(&before.host, fault).await;
        }
        end
    }

    /// The event of a sandbox that went to sleep or woke.
    fn turned(&self, work: &Turn<'_>, kind: EventKind) -> (EventKind, serde_json::Value) {
        let took_ms = took_ms(self.now().since(work.operation.started_at));
        (kind, serde_json::json!({"host": work.before.host, "took_ms": took_ms}))
    }
}

/// One sleep or wake.
struct Turn<'a> {
    operation: &'a Operation,
    /// The dead sleep or wake over which it began.
    dead: Option<Running>,
    before: &'a SandboxRecord,
    extension: &'a dyn SandboxExtension,
    target: &'a Target,
}

impl Turn<'_> {
    fn mine(&self) -> Guard {
        Guard::Operation(self.operation.id.clone())
    }
}

/// The state that a look says. Something between awake and asleep leaves it as it was.
fn observed(before: &SandboxRecord, seen: &Inspection) -> State {
    if seen.resources.is_empty() {
        State::Lost
    } else if seen.ready {
        State::Ready
    } else if seen.asleep {
        State::Sleeping
    } else {
        before.state.clone()
    }
}

/// How a sleep or a wake ended that did not come to its end by itself, by what its host says then.
///
/// Errors: the fault, which says of a cancelled one how that left the sandbox.
fn as_seen(work: &Turn<'_>, fault: Error, seen: Option<&Inspection>) -> Result<(), Error> {
    // A patch that was cut off says so itself.
    if fault.code != Code::Cancelled
        || CancelOutcome::told(&fault.details) == Some(CancelOutcome::Stopped)
    {
        return Err(fault);
    }
    let (id, verb) = (&work.before.id, &work.operation.kind);
    let sleeps = *verb == OperationKind::Sleep;
    match seen {
        Some(seen) if sleeps && seen.asleep => Ok(()),
        Some(seen) if seen.ready && sleeps || seen.asleep => {
            let state = if sleeps { "runs" } else { "sleeps" };
            Err(CancelOutcome::Undone
                .fault(format!("sandbox {id}: {verb} was cancelled; it {state} as before")))
        }
        _ => {
            let message = format!(
                "sandbox {id}: {verb} was cut off; some of its services may run and others not"
            );
            let hint = format!(
                "`sandboxer get {id}` shows them; `sandboxer {verb} {id}` again does all of it"
            );
            Err(CancelOutcome::Stopped.fault(message).hint(hint))
        }
    }
}

/// Whether there is something to do; `conflict` from any other state. An operation on the record may be a dead one, over
/// which the sandbox stopped half-way.
fn may_turn(kind: &OperationKind, record: &SandboxRecord) -> Result<bool, Error> {
    let (from, to) = match kind {
        OperationKind::Sleep => (State::Ready, State::Sleeping),
        _ => (State::Sleeping, State::Ready),
    };
    if record.state == from || record.state == to {
        return Ok(record.state == from || record.operation.is_some());
    }
    let (id, state) = (&record.id, &record.state);
    let what = match kind {
        OperationKind::Sleep => "only one that is ready goes to sleep",
        _ => "only one that sleeps can be woken",
    };
    Err(Error::new(Code::Conflict, format!("sandbox {id} is {state}; {what}"))
        .hint(format!("`sandboxer get {id}` shows what became of it"))
        .detail("state", state.as_str()))
}
