//! An operation: what it is at, what it wrote, how it ended.

use std::collections::VecDeque;
use std::time::Duration;

use crate::domain::actor::Actor;
use crate::domain::error::Code;
use crate::domain::error::Error;
use crate::domain::name::{OperationId, SandboxId, SnapshotId};
use crate::domain::operation::{CancelOutcome, Operation};
use crate::domain::telling::error_line;
use crate::domain::update::Progress;
use crate::domain::{OperationKind, OperationState, Time};

/// How many lines of a job's output are kept.
const KEPT_LINES: usize = 2000;
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
    /// Its end was asked for.
    Cancelling,
    /// Done.
    Succeeded,
    /// Cancelled, with everything as before.
    Undone(Error),
    /// Cancelled, and maybe half done: the problem says what to look at.
    Stopped(Error),
    /// Done, although it was to be cancelled.
    DoneAnyway,
    /// Not begun, with the reason: its target was not what the operator had seen.
    Skipped(String),
    /// Ended with an error.
    Failed(Error),
}

impl JobState {
    /// How a job stands that ended with this.
    pub fn of_problem(problem: Error) -> Self {
        match problem.cancel_outcome() {
            None => Self::Failed(problem),
            Some(CancelOutcome::Undone) => Self::Undone(problem),
            Some(CancelOutcome::Stopped | CancelOutcome::Done | CancelOutcome::Other(_)) => {
                Self::Stopped(problem)
            }
        }
    }

    /// The error that it ended with.
    pub fn problem(&self) -> Option<&Error> {
        match self {
            Self::Failed(problem) | Self::Undone(problem) | Self::Stopped(problem) => Some(problem),
            Self::Starting
            | Self::Running
            | Self::Cancelling
            | Self::Succeeded
            | Self::DoneAnyway
            | Self::Skipped(_) => None,
        }
    }

    /// How it stands, in a word or two.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Cancelling => "cancelling",
            Self::Succeeded => "done",
            Self::Undone(_) => "undone",
            Self::Stopped(_) => "stopped, may be half done",
            Self::DoneAnyway => "done anyway",
            Self::Skipped(_) => "skipped",
            Self::Failed(_) => "failed",
        }
    }
}

/// Outcome of a job that is done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum JobResult {
    #[default]
    Done,
    Told(String),
    /// That it is done, and this is not well all the same.
    Warned(String),
}

/// Where the end of a job is told.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ToldIn {
    /// In a row of Activity.
    #[default]
    Activity,
    /// In the form that asked for it, which is still open: nothing was begun.
    Form,
}

/// Another process that works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExternalProcess {
    /// Its number.
    pub pid: u32,
    /// Its machine.
    pub host: String,
    /// Actor who asked for it.
    pub actor: Actor,
}

/// Operation of this process or of another.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    /// Its number.
    pub id: JobId,
    pub kind: OperationKind,
    /// On which sandbox; none until a create was answered.
    pub sandbox: Option<SandboxId>,
    /// On which snapshot.
    pub snapshot: Option<SnapshotId>,
    /// Its subject, for people.
    pub title: String,
    /// The operation, once the client answered.
    pub operation: Option<OperationId>,
    /// Whether it was asked for here (else it is this process's own work, such as the sweep's).
    pub asked_here: bool,
    /// The process that runs it, where that is another one.
    pub external: Option<ExternalProcess>,
    /// How far it has come.
    pub state: JobState,
    /// Its outcome, once it is done.
    pub result: JobResult,
    /// Where its end is told.
    pub told_in: ToldIn,
    /// Its step's name, number, and how many there are.
    pub stage: Option<(String, u32, u32)>,
    /// How much of the step is done, and out of how much.
    pub part: Option<(u64, u64)>,
    /// Bytes per second, smoothed.
    pub rate: Option<f64>,
    /// Bytes that its step moved.
    pub(super) bytes: Option<u64>,
    /// Time and bytes of the last measurement of the rate.
    pub(super) rated: Option<(Time, u64)>,
    /// When it began.
    pub started: Time,
    pub ended: Option<Time>,
    /// How long its operation took, where that is known more exactly.
    pub took: Option<Duration>,
    /// Last lines of its output.
    pub output: VecDeque<String>,
    /// How many earlier lines were dropped.
    pub dropped: u64,
}

impl Job {
    /// Whether it has not ended.
    pub fn is_running(&self) -> bool {
        matches!(self.state, JobState::Starting | JobState::Running | JobState::Cancelling)
    }

    /// From 0 to 1, where that is known.
    pub fn fraction(&self) -> Option<f64> {
        self.part
            .filter(|(_, of)| *of > 0)
            .map(|(done, of)| (done as f64 / of as f64).clamp(0.0, 1.0))
    }

    /// Bytes that its step moved so far.
    pub fn moved(&self) -> Option<u64> {
        self.bytes
    }

    /// Whether it has to be cancelled by ending the wait for it: a rollout is many operations, and none of its own.
    pub fn is_rollout(&self) -> bool {
        self.kind == OperationKind::Patch && self.sandbox.is_none()
    }

    /// When it ended; of one that runs, when it began.
    pub fn end(&self) -> Time {
        self.ended.unwrap_or(self.started)
    }

    /// How long it ran, or has run so far.
    pub fn ran(&self, now: Time) -> Duration {
        self.took.unwrap_or_else(|| self.ended.unwrap_or(now).since(self.started))
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
    pub(super) fn follow(&mut self, operation: &Operation) {
        let error = || {
            let error = operation.error.clone().map(|error| *error);
            error.unwrap_or_else(|| Error::new(Code::OperationFailed, "it failed"))
        };
        self.state = match operation.state {
            OperationState::Succeeded if operation.cancel_outcome == Some(CancelOutcome::Done) => {
                JobState::DoneAnyway
            }
            OperationState::Succeeded => JobState::Succeeded,
            OperationState::Cancelled | OperationState::Failed => JobState::of_problem(error()),
            _ if operation.cancel_requested || self.state == JobState::Cancelling => {
                JobState::Cancelling
            }
            OperationState::Running | OperationState::Other(_) => JobState::Running,
        };
        self.ended = operation.finished_at;
        self.took = operation.finished_at.map(|end| end.since(operation.started_at));
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

    /// The error that the step wrote which failed, if it called one so.
    pub fn error_line(&self) -> Option<String> {
        let mut step: Vec<&str> = Vec::new();
        for line in &self.output {
            match line.strip_prefix('[') {
                // What is taken back afterwards says nothing of why.
                Some(stage) if stage.ends_with(" rollback") => break,
                Some(_) => step.clear(),
                None => step.push(line),
            }
        }
        error_line(&step.join(
            "
",
        ))
        .map(str::to_owned)
    }

    /// The last line it wrote.
    pub fn last_line(&self) -> Option<&str> {
        self.output.back().map(String::as_str)
    }

    /// Remains of a cancel, in words.
    pub fn cancel_leaves(&self) -> &'static str {
        if self.is_rollout() {
            return "no further sandbox is begun; a patch that runs goes on to its end";
        }
        self.kind.cancel_leaves()
    }
}
