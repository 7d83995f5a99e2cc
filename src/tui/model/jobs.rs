//! Operations: what each is at, what it wrote, how it ended. Those of this console, and those of other processes.

use std::collections::{HashSet, VecDeque};

use super::job::{ExternalProcess, Job, JobId, JobResult, JobState, ToldIn};
use crate::domain::error::Error;
use crate::domain::event::Event;
use crate::domain::name::{OperationId, SandboxId, SnapshotId};
use crate::domain::operation::{Operation, Subject};
use crate::domain::sandbox::Running;
use crate::domain::update::Progress;
use crate::domain::{OperationKind, OperationState, Time};

/// How many finished jobs are kept.
const KEPT_JOBS: usize = 200;

/// How far the time of an event may be from that of its operation, in seconds: a console counts in whole ones.
const CLOCKS: u64 = 2;

/// News of another process's operation since it was looked at last.
#[derive(Debug, Clone, PartialEq)]
pub enum Moved {
    /// Running, and not known before.
    Began(JobId),
    /// Ended; how it stood before.
    Ended(JobId, JobState),
}

#[derive(Debug, Clone, Default)]
pub struct Jobs {
    list: VecDeque<Job>,
    last: u64,
}

impl Jobs {
    /// Adds a job that was asked for here.
    pub fn start(
        &mut self,
        kind: OperationKind,
        sandbox: Option<SandboxId>,
        title: String,
        now: Time,
    ) -> JobId {
        self.add(kind, sandbox, title, now, true)
    }

    /// Adds a job on a snapshot that was asked for here.
    pub fn start_on(
        &mut self,
        kind: OperationKind,
        snapshot: SnapshotId,
        title: String,
        now: Time,
    ) -> JobId {
        let id = self.add(kind, None, title, now, true);
        if let Some(job) = self.get_mut(id) {
            job.snapshot = Some(snapshot);
        }
        id
    }

    fn add(
        &mut self,
        kind: OperationKind,
        sandbox: Option<SandboxId>,
        title: String,
        now: Time,
        here: bool,
    ) -> JobId {
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
            external: None,
            state: JobState::Starting,
            result: JobResult::default(),
            told_in: ToldIn::default(),
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

    /// Jobs that run, the oldest first.
    pub fn running(&self) -> impl Iterator<Item = &Job> {
        self.list.iter().rev().filter(|job| job.is_running())
    }

    /// Jobs that run in this process, the oldest first: it cannot leave before they ended.
    pub fn running_here(&self) -> impl Iterator<Item = &Job> {
        self.running().filter(|job| job.external.is_none())
    }

    /// The newest job that ended with this error.
    pub fn of_problem(&self, problem: &Error) -> Option<&Job> {
        self.list.iter().find(|job| job.state.problem() == Some(problem))
    }

    /// The job of this number.
    pub fn get(&self, id: JobId) -> Option<&Job> {
        self.list.iter().find(|job| job.id == id)
    }

    /// The job of this number.
    pub fn get_mut(&mut self, id: JobId) -> Option<&mut Job> {
        self.list.iter_mut().find(|job| job.id == id)
    }

    /// Job that runs on a sandbox: of this process or, if it does nothing there, of another.
    pub fn of_sandbox(&self, id: &SandboxId) -> Option<&Job> {
        let on_it =
            || self.list.iter().filter(|job| job.is_running() && job.sandbox.as_ref() == Some(id));
        on_it().find(|job| job.external.is_none()).or_else(|| on_it().next())
    }

    /// Work on a snapshot, or with it, by whichever process is heard of.
    pub fn of_snapshot(&self, id: &SnapshotId) -> Option<&Job> {
        self.list
            .iter()
            .filter(|job| job.is_running())
            .find(|job| job.snapshot.as_ref() == Some(id))
    }

    /// The operation that an event belongs to: what was done at that time to what the event is about.
    pub fn of_event(&self, event: &Event) -> Option<&Job> {
        if !event.kind.is_of_operation() {
            return None;
        }
        let snapshot = event.snapshot_id().filter(|_| event.kind.is_of_snapshot());
        self.list.iter().find(|job| {
            let same = match snapshot {
                Some(id) => job.snapshot.as_ref().is_some_and(|own| own.as_str() == id),
                None => job.sandbox.is_some() && job.sandbox == event.sandbox_id,
            };
            let before = event.time < job.started.minus_seconds(CLOCKS);
            let after = job.ended.is_some_and(|end| event.time > end.plus_seconds(CLOCKS));
            same && !before && !after
        })
    }

    /// The job of another process's operation on a sandbox, which its record names.
    pub fn of_running(&mut self, id: &SandboxId, title: &str, running: &Running) -> JobId {
        if let Some(job) = self.of_operation(&running.id) {
            return job.id;
        }
        self.add_external(
            &Operation {
                id: running.id.clone(),
                kind: running.kind.clone(),
                subject: Subject::Sandbox(id.clone()),
                name: None,
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
                cancel_outcome: None,
                error: None,
            },
            title.to_owned(),
        )
    }

    /// Takes what other processes do and did: new ones are added, known ones moved on. Those that ran when they were heard of
    /// last, or were not known, and began or ended since `since`, as they were then. One that ran and that nobody tells of any
    /// more is let go: how it ended is not known.
    pub fn take_external(
        &mut self,
        operations: Vec<Operation>,
        since: Time,
        title: impl Fn(&Operation) -> String,
    ) -> Vec<Moved> {
        let told: HashSet<OperationId> =
            operations.iter().map(|operation| operation.id.clone()).collect();
        self.list.retain(|job| {
            let is_told = job.operation.as_ref().is_some_and(|id| told.contains(id));
            job.external.is_none() || !job.is_running() || is_told
        });
        let mut moved = Vec::new();
        for operation in operations {
            let ended_now = operation.finished_at.is_some_and(|end| end >= since);
            match self.of_operation(&operation.id) {
                Some(job) if job.external.is_some() => {
                    let before = job.is_running().then(|| job.state.clone());
                    job.follow(&operation);
                    if let Some(before) = before.filter(|_| !job.is_running()) {
                        moved.push(Moved::Ended(job.id, before));
                    }
                }
                Some(_) => {}
                None => {
                    let title = title(&operation);
                    let id = self.add_external(&operation, title);
                    let runs = self.get(id).is_some_and(Job::is_running);
                    if runs {
                        moved.push(Moved::Began(id));
                    } else if ended_now {
                        moved.push(Moved::Ended(id, JobState::Running));
                    }
                }
            }
        }
        moved
    }

    fn add_external(&mut self, operation: &Operation, title: String) -> JobId {
        let id = self.add(
            operation.kind.clone(),
            operation.subject.sandbox().cloned(),
            title,
            operation.started_at,
            false,
        );
        if let Some(job) = self.get_mut(id) {
            job.operation = Some(operation.id.clone());
            job.snapshot = operation.subject.snapshot().cloned();
            job.external = Some(ExternalProcess {
                pid: operation.pid,
                host: operation.host.clone(),
                actor: operation.actor.clone(),
            });
            job.write(format!(
                "runs in process {} on {}, for {}",
                operation.pid, operation.host, operation.actor
            ));
            job.follow(operation);
        }
        // Where it belongs among the others, the newest first.
        let at =
            self.list.iter().skip(1).take_while(|job| job.started > operation.started_at).count();
        if at > 0
            && let Some(job) = self.list.pop_front()
        {
            self.list.insert(at, job);
        }
        id
    }

    pub fn of_operation(&mut self, id: &OperationId) -> Option<&mut Job> {
        self.list.iter_mut().find(|job| job.operation.as_ref() == Some(id))
    }

    /// Tells which operation a job became. Progress may have come before this answer and made a job of its own:
    /// what that one heard is taken over.
    pub fn set_operation(&mut self, id: JobId, operation: OperationId) {
        let early = self
            .list
            .iter()
            .position(|job| job.id != id && job.operation.as_ref() == Some(&operation));
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
    /// process's own work, which becomes a job too, of this title.
    pub fn advance(&mut self, progress: Progress, title: Option<String>, now: Time) -> JobId {
        let known = self.list.iter_mut().position(|job| {
            job.operation.as_ref() == Some(&progress.operation)
                || (job.state == JobState::Starting
                    && job.operation.is_none()
                    && job.kind == progress.kind
                    && (job.sandbox.is_some() && job.sandbox == progress.sandbox_id
                        || job.sandbox.is_none()
                            && job.snapshot.is_some()
                            && job.snapshot == progress.snapshot_id
                        || job.kind == OperationKind::Reap)
                    && !job.is_rollout())
        });
        let at = known.unwrap_or_else(|| {
            let snapshot = progress.snapshot_id.as_ref().map(ToString::to_string);
            let sandbox = progress.sandbox_id.as_ref().map(ToString::to_string);
            let title = title.or(sandbox).or(snapshot).unwrap_or_default();
            self.add(progress.kind.clone(), progress.sandbox_id.clone(), title, now, false);
            0
        });
        let job = &mut self.list[at];
        job.operation.get_or_insert_with(|| progress.operation.clone());
        job.snapshot = job.snapshot.take().or_else(|| progress.snapshot_id.clone());
        // Only this process's own work is heard of this closely.
        job.external = None;
        if job.state == JobState::Starting {
            job.state = JobState::Running;
        }
        job.advance(progress, now);
        job.id
    }
}
