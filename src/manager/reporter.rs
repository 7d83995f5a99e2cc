//! Reporter that an extension is given: progress of an operation, what was learnt of the host, and the last lines as evidence.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::domain::error::Error;
use crate::domain::event::{Progress, Update};
use crate::domain::extension::{Learnt, Report, Reporter};
use crate::domain::name::{OperationId, SandboxId, SnapshotId};
use crate::domain::operation::{Operation, OperationKind};
use crate::domain::root::MarkedRoot;
use crate::domain::sandbox::Failure;
use crate::manager::course::Course;
use crate::manager::jobs::Jobs;

/// Reporter of one operation: passes an extension's reports on as its progress, and keeps what they told.
pub(super) struct JobReporter {
    jobs: Arc<Jobs>,
    operation: OperationId,
    kind: OperationKind,
    sandbox: Option<SandboxId>,
    snapshot: Option<SnapshotId>,
    course: Mutex<Course>,
    learnt: Mutex<Option<Learnt>>,
    began: Notify,
    /// Roots whose marks nobody has written down yet.
    roots: Mutex<VecDeque<MarkedRoot>>,
    root_found: Notify,
    /// The last lines of the step, as evidence for a step that is cut off.
    lines: Mutex<VecDeque<String>>,
}

/// Lines of a step that are kept as evidence.
pub(super) const EVIDENCE_LINES: usize = 200;

impl JobReporter {
    pub(super) fn new(jobs: &Arc<Jobs>, operation: &Operation) -> Self {
        Self {
            jobs: Arc::clone(jobs),
            operation: operation.id.clone(),
            kind: operation.kind.clone(),
            sandbox: operation.subject.sandbox().cloned(),
            snapshot: operation.subject.snapshot().cloned(),
            course: Mutex::default(),
            learnt: Mutex::default(),
            began: Notify::new(),
            roots: Mutex::default(),
            root_found: Notify::new(),
            lines: Mutex::default(),
        }
    }

    /// What the extension learnt of the host so far.
    pub(super) fn take_learnt(&self) -> Option<Learnt> {
        self.learnt.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Returns when the extension began to remove something.
    pub(super) async fn begun(&self) {
        self.began.notified().await;
    }

    /// A root whose mark was not known, if there is one.
    pub(super) fn take_root(&self) -> Option<MarkedRoot> {
        self.roots.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }

    /// The next root whose mark was not known, when there is one.
    pub(super) async fn next_root(&self) -> MarkedRoot {
        loop {
            match self.take_root() {
                Some(root) => return root,
                None => self.root_found.notified().await,
            }
        }
    }

    /// Says how many steps there will be in all (0: that is not known), and how many of them follow the extension's own.
    pub(super) fn announce(&self, total: u32, after: u32) {
        self.course().announce(total, after);
    }

    fn course(&self) -> MutexGuard<'_, Course> {
        self.course.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The step that was reported last; empty before the first.
    pub(super) fn stage(&self) -> &'static str {
        self.course().stage
    }

    /// The last lines that the step's program wrote.
    pub(super) fn evidence(&self) -> String {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().map(String::as_str).collect::<Vec<_>>().join("\n")
    }

    /// The evidence of a step that failed without a program's own: the step, its last lines, and why.
    pub(super) fn failure_of(&self, fault: &Error) -> Failure {
        Failure {
            step: match fault.details["step"].as_str().unwrap_or(self.stage()) {
                "" => "prepare".to_owned(),
                step => step.to_owned(),
            },
            exit_status: None,
            output: std::iter::once(self.evidence())
                .chain(std::iter::once(fault.message.clone()))
                .chain(fault.causes.clone())
                .filter(|text| !text.is_empty())
                .collect::<Vec<_>>()
                .join("\n"),
        }
    }

    /// Keeps a report's line; a new step begins anew.
    fn keep_line(&self, report: &Report) {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if self.stage() != report.stage {
            lines.clear();
        }
        if let Some(line) = &report.message {
            if lines.len() == EVIDENCE_LINES {
                lines.pop_front();
            }
            lines.push_back(line.clone());
        }
    }
}

impl Reporter for JobReporter {
    fn report(&self, report: Report) {
        self.keep_line(&report);
        let (step, steps) = self.course().place(&report);
        self.jobs.publish(Update::Progress(Progress {
            operation: self.operation.clone(),
            kind: self.kind.clone(),
            sandbox_id: self.sandbox.clone(),
            snapshot_id: self.snapshot.clone(),
            stage: report.stage.to_owned(),
            step,
            steps,
            done: report.done,
            of: report.of,
            bytes: report.bytes,
            message: report.message,
        }));
    }

    fn began(&self) {
        self.began.notify_one();
    }

    fn learnt(&self, learnt: &Learnt) {
        *self.learnt.lock().unwrap_or_else(PoisonError::into_inner) = Some(learnt.clone());
    }

    fn found_root(&self, root: &MarkedRoot) {
        self.roots.lock().unwrap_or_else(PoisonError::into_inner).push_back(root.clone());
        self.root_found.notify_one();
    }
}
