//! Operations: what each is at, what it wrote, how it ended. Those of this console, and those of other processes.

use std::collections::VecDeque;
use std::time::Duration;

use crate::client::Problem;
use crate::domain::event::Progress;
use crate::domain::fault::Code;
use crate::domain::name::{OperationId, SandboxId, SnapshotId};
use crate::domain::operation::Operation;
use crate::domain::sandbox::Running;
use crate::domain::{OperationKind, OperationState, Time};

/// How many lines of a job's output are kept.
const KEPT_LINES: usize = 2000;
/// How many finished jobs are kept.
const KEPT_JOBS: usize = 200;

/// A job's number in this console.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId(pub u64);

/// How far a job has come.
#[derive(Debug, Clone, PartialEq)]
pub enum JobState {
    /// The client was asked and has not answered.
    Starting,
    /// Its operation runs.
    Running,
    /// A roll-back was asked for.
    Cancelling,
    /// Done.
    Succeeded,
    /// Rolled back.
    Cancelled,
    /// Not begun, with the reason: its target was not what the operator had seen.
    Skipped(String),
    /// Ended with an error.
    Failed(Problem),
}

/// Another process that works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Elsewhere {
    /// Its number.
    pub pid: u32,
    /// Its machine.
    pub host: String,
    /// Who asked for it.
    pub actor: String,
}

/// One job.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    /// Its number.
    pub id: JobId,
    /// What it does.
    pub kind: OperationKind,
    /// On which sandbox; none until a create was answered.
    pub sandbox: Option<SandboxId>,
    /// On which snapshot.
    pub snapshot: Option<SnapshotId>,
    /// What it is about, for people.
    pub title: String,
    /// The operation, once the client answered.
    pub operation: Option<OperationId>,
    /// Whether it was asked for here (else it is this process's own work, such as the sweep's).
    pub asked_here: bool,
    /// The process that runs it, where that is another one.
    pub elsewhere: Option<Elsewhere>,
    /// How far it has come.
    pub state: JobState,
    /// Its step's name, number, and how many there are.
    pub stage: Option<(String, u32, u32)>,
    /// How much of the step is done, and out of how much.
    pub part: Option<(u64, u64)>,
    /// Bytes per second, smoothed.
    pub rate: Option<f64>,
    /// Bytes that its step moved.
    bytes: Option<u64>,
    /// As of the last measurement of the rate.
    rated: Option<(Time, u64)>,
    /// When it began.
    pub started: Time,
    /// When it ended.
    pub ended: Option<Time>,
    /// How long its operation took, where that is known more exactly.
    pub took: Option<Duration>,
    /// What it wrote, the last lines.
    pub output: VecDeque<String>,
    /// How many earlier lines were dropped.
    pub dropped: u64,
}

/// All jobs.
#[derive(Debug, Clone, Default)]
pub struct Jobs {
    list: VecDeque<Job>,
    last: u64,
}

impl Job {
    /// Whether it has not ended.
    pub fn is_running(&self) -> bool {
        matches!(self.state, JobState::Starting | JobState::Running | JobState::Cancelling)
    }

    /// From 0 to 1, where that is known.
    pub fn fraction(&self) -> Option<f64> {
        self.part.filter(|(_, of)| *of > 0).map(|(done, of)| (done as f64 / of as f64).clamp(0.0, 1.0))
    }

    /// Bytes that its step moved so far.
    pub fn moved(&self) -> Option<u64> {
        self.bytes
    }

    /// Whether it has to be rolled back by ending the wait for it: a rollout is many operations, and none of its own.
    pub fn is_rollout(&self) -> bool {
        self.kind == OperationKind::Patch && self.sandbox.is_none()
    }

    /// How long it ran, in seconds.
    pub fn seconds(&self, now: Time) -> u64 {
        self.ended.unwrap_or(now).since(self.started).as_secs()
    }

    /// Takes a report of progress.
    pub fn advance(&mut self, progress: Progress, now: Time) {
        let stage = (progress.stage, progress.step, progress.steps);
        if self.stage.as_ref() != Some(&stage) {
            self.write(format!("[{}/{}] {}", stage.1, stage.2, stage.0));
            self.stage = Some(stage);
            self.part = None;
            self.rate = None;
            (self.bytes, self.rated) = (None, None);
        }
        if let (Some(done), Some(of)) = (progress.done, progress.of) {
            self.part = Some((done, of));
        }
        if let Some(bytes) = progress.bytes {
            self.measure(bytes, now);
        }
        if let Some(message) = progress.message {
            self.write(message);
        }
    }

    /// Takes another process's word of it.
    fn follow(&mut self, operation: &Operation) {
        let error = || {
            let error = operation.error.clone().map(|error| Problem::from(*error));
            error.unwrap_or_else(|| Problem::new(Code::OperationFailed, "it failed"))
        };
        self.state = match operation.state {
            OperationState::Succeeded => JobState::Succeeded,
            OperationState::Cancelled => JobState::Cancelled,
            OperationState::Failed => JobState::Failed(error()),
            _ if operation.cancel_requested || self.state == JobState::Cancelling => JobState::Cancelling,
            _ => JobState::Running,
        };
        self.ended = operation.finished_at;
    }

    fn measure(&mut self, bytes: u64, now: Time) {
        self.bytes = Some(bytes);
        let Some((since, before)) = self.rated else {
            self.rated = Some((now, bytes));
            return;
        };
        let seconds = now.since(since).as_secs_f64();
        if seconds >= 0.5 {
            let rate = bytes.saturating_sub(before) as f64 / seconds;
            self.rate = Some(self.rate.map_or(rate, |old| old * 0.6 + rate * 0.4));
            self.rated = Some((now, bytes));
        }
    }

    /// Adds to its output.
    pub fn write(&mut self, text: impl Into<String>) {
        if self.output.len() == KEPT_LINES {
            self.output.pop_front();
            self.dropped += 1;
        }
        self.output.push_back(text.into());
    }

    /// The last line it wrote.
    pub fn last_line(&self) -> Option<&str> {
        self.output.back().map(String::as_str)
    }

    /// What a cancel leaves behind.
    pub fn rollback(&self) -> &'static str {
        match self.kind {
            OperationKind::Create | OperationKind::Restore => {
                "what was made on the host is removed; the record stays as failed"
            }
            OperationKind::Recreate => "what was made anew is removed; the old one is gone already",
            OperationKind::Destroy => "what is removed stays removed; the rest is finished later",
            OperationKind::Snapshot | OperationKind::Copy | OperationKind::Import => {
                "what was written of the archive is removed; containers that stand still go on"
            }
            OperationKind::Sleep => "what is stopped already stays stopped, or is started again",
            OperationKind::Wake => {
                "what is started already is stopped again; a patch that runs is ended and may be half done"
            }
            OperationKind::Patch if self.is_rollout() => {
                "no further sandbox is begun; a patch that runs goes on to its end"
            }
            OperationKind::Patch => "a patch that runs is ended, and may be half done",
            OperationKind::Verify => "it only reads: nothing is left of it",
            OperationKind::Delete => "what is removed stays removed; the rest is finished later",
            _ => "what was begun is taken back",
        }
    }
}

impl Jobs {
    /// Adds a job that was asked for here.
    pub fn start(&mut self, kind: OperationKind, sandbox: Option<SandboxId>, title: String, now: Time) -> JobId {
        self.add(kind, sandbox, title, now, true)
    }

    /// Adds a job on a snapshot that was asked for here.
    pub fn start_on(&mut self, kind: OperationKind, snapshot: SnapshotId, title: String, now: Time) -> JobId {
        let id = self.add(kind, None, title, now, true);
        if let Some(job) = self.get_mut(id) {
            job.snapshot = Some(snapshot);
        }
        id
    }

    fn add(&mut self, kind: OperationKind, sandbox: Option<SandboxId>, title: String, now: Time, here: bool) -> JobId {
        self.last += 1;
        let id = JobId(self.last);
        self.list.push_front(Job {
            id,
            kind,
            sandbox,
            snapshot: None,
            title,
            operation: None,
            asked_here: here,
            elsewhere: None,
            state: JobState::Starting,
            stage: None,
            part: None,
            rate: None,
            bytes: None,
            rated: None,
            started: now,
            ended: None,
            took: None,
            output: VecDeque::new(),
            dropped: 0,
        });
        while self.list.len() > KEPT_JOBS {
            let Some(at) = self.list.iter().rposition(|job| !job.is_running()) else { break };
            self.list.remove(at);
        }
        id
    }

    /// The newest first.
    pub fn list(&self) -> impl DoubleEndedIterator<Item = &Job> + ExactSizeIterator {
        self.list.iter()
    }

    /// Those that run, the oldest first.
    pub fn running(&self) -> impl Iterator<Item = &Job> {
        self.list.iter().rev().filter(|job| job.is_running())
    }

    /// Those that run in this process, the oldest first: it cannot leave before they ended.
    pub fn running_here(&self) -> impl Iterator<Item = &Job> {
        self.running().filter(|job| job.elsewhere.is_none())
    }

    /// The job of this number.
    pub fn get(&self, id: JobId) -> Option<&Job> {
        self.list.iter().find(|job| job.id == id)
    }

    /// The job of this number.
    pub fn get_mut(&mut self, id: JobId) -> Option<&mut Job> {
        self.list.iter_mut().find(|job| job.id == id)
    }

    /// The running job of this process on a sandbox.
    pub fn of_sandbox(&self, id: &SandboxId) -> Option<&Job> {
        let here = |job: &&Job| job.is_running() && job.elsewhere.is_none();
        self.list.iter().filter(here).find(|job| job.sandbox.as_ref() == Some(id))
    }

    /// What is being done to a snapshot, or with it, by whichever process is heard of.
    pub fn of_snapshot(&self, id: &SnapshotId) -> Option<&Job> {
        self.list.iter().filter(|job| job.is_running()).find(|job| job.snapshot.as_ref() == Some(id))
    }

    /// The job of another process's operation on a sandbox, which its record names.
    pub fn of_running(&mut self, id: &SandboxId, title: &str, running: &Running) -> JobId {
        if let Some(job) = self.of_operation(&running.id) {
            return job.id;
        }
        self.add_elsewhere(
            &Operation {
                id: running.id.clone(),
                kind: running.kind.clone(),
                sandbox_id: Some(id.clone()),
                snapshot_id: None,
                state: OperationState::Running,
                stage: None,
                done: None,
                of: None,
                bytes: None,
                started_at: running.started_at,
                finished_at: None,
                pid: running.pid,
                host: running.host.clone(),
                actor: running.actor.clone(),
                cancel_requested: running.cancel_requested,
                error: None,
            },
            title.to_owned(),
        )
    }

    /// Takes what other processes do and did: new ones are added, known ones moved on, and those that are not told any
    /// more have ended.
    pub fn take_elsewhere(&mut self, operations: Vec<Operation>, title: impl Fn(&Operation) -> String) {
        for job in self.list.iter_mut().filter(|job| job.elsewhere.is_some() && job.is_running()) {
            if !operations.iter().any(|operation| job.operation.as_ref() == Some(&operation.id)) {
                job.state = JobState::Succeeded;
                job.ended = Some(job.started);
            }
        }
        for operation in operations {
            match self.of_operation(&operation.id) {
                Some(job) if job.elsewhere.is_some() => job.follow(&operation),
                Some(_) => {}
                None => {
                    let title = title(&operation);
                    self.add_elsewhere(&operation, title);
                }
            }
        }
    }

    fn add_elsewhere(&mut self, operation: &Operation, title: String) -> JobId {
        let id = self.add(operation.kind.clone(), operation.sandbox_id.clone(), title, operation.started_at, false);
        if let Some(job) = self.get_mut(id) {
            job.operation = Some(operation.id.clone());
            job.snapshot.clone_from(&operation.snapshot_id);
            job.elsewhere = Some(Elsewhere {
                pid: operation.pid,
                host: operation.host.clone(),
                actor: operation.actor.to_string(),
            });
            job.write(format!("runs in process {} on {}, for {}", operation.pid, operation.host, operation.actor));
            job.follow(operation);
        }
        // Where it belongs among the others, the newest first.
        let at = self.list.iter().skip(1).take_while(|job| job.started > operation.started_at).count();
        if at > 0
            && let Some(job) = self.list.pop_front()
        {
            self.list.insert(at, job);
        }
        id
    }

    /// The job of an operation.
    pub fn of_operation(&mut self, id: &OperationId) -> Option<&mut Job> {
        self.list.iter_mut().find(|job| job.operation.as_ref() == Some(id))
    }

    /// Tells which operation a job became. Progress may have come before this answer and made a job of its own:
    /// what that one heard is taken over.
    pub fn set_operation(&mut self, id: JobId, operation: OperationId) {
        let early = self.list.iter().position(|job| job.id != id && job.operation.as_ref() == Some(&operation));
        let early = early.and_then(|at| self.list.remove(at));
        let Some(job) = self.get_mut(id) else { return };
        job.operation = Some(operation);
        if job.state == JobState::Starting {
            job.state = JobState::Running;
        }
        if let Some(early) = early {
            job.stage = early.stage;
            job.part = early.part;
            job.snapshot = job.snapshot.take().or(early.snapshot);
            (job.bytes, job.rated, job.rate) = (early.bytes, early.rated, early.rate);
            job.output = early.output;
        }
    }

    /// Takes a report of progress: of a known operation, of one whose start was not answered yet, or of this
    /// process's own work, which becomes a job too.
    pub fn advance(&mut self, progress: Progress, now: Time) -> JobId {
        let known = self.list.iter_mut().position(|job| {
            job.operation.as_ref() == Some(&progress.operation)
                || (job.state == JobState::Starting
                    && job.operation.is_none()
                    && job.kind == progress.kind
                    && (job.sandbox.is_some() && job.sandbox == progress.sandbox_id
                        || job.sandbox.is_none() && job.snapshot.is_some() && job.snapshot == progress.snapshot_id)
                    && !job.is_rollout())
        });
        let at = known.unwrap_or_else(|| {
            let snapshot = progress.snapshot_id.as_ref().map(ToString::to_string);
            let title = progress.sandbox_id.as_ref().map(ToString::to_string).or(snapshot).unwrap_or_default();
            self.add(progress.kind.clone(), progress.sandbox_id.clone(), title, now, false);
            0
        });
        let job = &mut self.list[at];
        job.operation.get_or_insert_with(|| progress.operation.clone());
        job.snapshot = job.snapshot.take().or_else(|| progress.snapshot_id.clone());
        // Only this process's own work is heard of this closely.
        job.elsewhere = None;
        if job.state == JobState::Starting {
            job.state = JobState::Running;
        }
        job.advance(progress, now);
        job.id
    }
}
