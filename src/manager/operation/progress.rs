//! Progress of an operation: where it is among its steps, what its extension learnt of the host, and the last lines as
//! evidence.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::domain::error::Error;
use crate::domain::name::{OperationId, SandboxId, SnapshotId};
use crate::domain::operation::{Operation, OperationKind};
use crate::domain::reporter::{Learnt, Report, Reporter};
use crate::domain::root::MarkedRoot;
use crate::domain::sandbox::Failure;
use crate::domain::update::{Progress, Update};
use crate::manager::operation::jobs::Jobs;

/// Progress of one operation: publishes an extension's reports, and keeps their facts and last lines.
pub(crate) struct ProgressReporter {
    jobs: Arc<Jobs>,
    operation: OperationId,
    kind: OperationKind,
    sandbox: Option<SandboxId>,
    snapshot: Option<SnapshotId>,
    steps: Mutex<Steps>,
    learnt: Mutex<Option<Learnt>>,
    began: Notify,
    has_begun: AtomicBool,
    /// Roots whose marks nobody has written down yet.
    roots: Mutex<VecDeque<MarkedRoot>>,
    root_found: Notify,
    /// The last lines of the step, as evidence for a step that is cut off.
    lines: Mutex<VecDeque<String>>,
}

/// Lines of a step that are kept as evidence.
pub(crate) const EVIDENCE_LINES: usize = 200;

impl ProgressReporter {
    pub(crate) fn new(jobs: &Arc<Jobs>, operation: &Operation) -> Self {
        Self {
            jobs: Arc::clone(jobs),
            operation: operation.id.clone(),
            kind: operation.kind.clone(),
            sandbox: operation.subject.sandbox().cloned(),
            snapshot: operation.subject.snapshot().cloned(),
            steps: Mutex::default(),
            learnt: Mutex::default(),
            began: Notify::new(),
            has_begun: AtomicBool::new(false),
            roots: Mutex::default(),
            root_found: Notify::new(),
            lines: Mutex::default(),
        }
    }

    /// Facts that the extension learnt of the host so far.
    pub(crate) fn take_learnt(&self) -> Option<Learnt> {
        self.learnt.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Returns when the extension has begun to remove something.
    pub(crate) async fn removal_began(&self) {
        self.began.notified().await;
    }

    /// Whether the extension has begun to remove something, as far as it is known.
    pub(crate) fn has_removal_begun(&self) -> bool {
        self.has_begun.load(Ordering::Acquire)
    }

    /// A root whose mark was not known, if there is one.
    pub(crate) fn take_root(&self) -> Option<MarkedRoot> {
        self.roots.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }

    /// The next root whose mark was not known, when there is one.
    pub(crate) async fn next_root(&self) -> MarkedRoot {
        loop {
            match self.take_root() {
                Some(root) => return root,
                None => self.root_found.notified().await,
            }
        }
    }

    /// Announces the number of steps in all (0: unknown), and how many of them follow the extension's own.
    pub(crate) fn announce(&self, total: u32, after: u32) {
        self.steps().announce(total, after);
    }

    fn steps(&self) -> MutexGuard<'_, Steps> {
        self.steps.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The step that was reported last; empty before the first.
    pub(crate) fn stage(&self) -> &'static str {
        self.steps().stage
    }

    /// The last lines that the step's program wrote.
    pub(crate) fn evidence(&self) -> String {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().map(String::as_str).collect::<Vec<_>>().join("\n")
    }

    /// The evidence of a step that failed without a program's own: the step, its last lines, and why.
    pub(crate) fn failure_of(&self, error: &Error) -> Failure {
        Failure {
            step: match error.step.as_deref().unwrap_or(self.stage()) {
                "" => "prepare".to_owned(),
                step => step.to_owned(),
            },
            exit_status: None,
            output: std::iter::once(self.evidence())
                .chain(std::iter::once(error.message.clone()))
                .chain(error.causes.clone())
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

impl Reporter for ProgressReporter {
    fn report(&self, report: Report) {
        self.keep_line(&report);
        let (step, steps) = self.steps().place(&report);
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
        self.has_begun.store(true, Ordering::Release);
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

/// The step that an operation is at, and how many there are.
#[derive(Debug, Default)]
struct Steps {
    /// The step that was reported last; empty before the first.
    stage: &'static str,
    at: u32,
    count: u32,
    /// The steps before the part that counts its own.
    before: u32,
    /// The steps that come after such a part.
    after: u32,
}

impl Steps {
    /// Number of steps in all (0: unknown); `after` of them follow the extension's own. A number that was published only
    /// grows, by unexpected steps.
    fn announce(&mut self, total: u32, after: u32) {
        self.count = self.count.max(total);
        self.after = after;
    }

    /// Numbers a step. One that does not know its place (`steps` is 0) follows the one before it; the numbers of a part that
    /// counts its own begin behind what came before that.
    fn place(&mut self, report: &Report) -> (u32, u32) {
        let new = report.stage != self.stage;
        match report.steps {
            0 => self.at += u32::from(new),
            count => {
                if new && report.step == 1 {
                    self.before = self.at;
                }
                self.at = self.before + report.step;
                self.count = self.count.max(self.before + count + self.after);
            }
        }
        self.stage = report.stage;
        self.count = self.count.max(self.at);
        (self.at, self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place_all(steps: &mut Steps, reports: &[(&'static str, u32, u32)]) -> Vec<String> {
        let place = |&(stage, step, count): &(&'static str, u32, u32)| {
            let (step, count) =
                steps.place(&Report { stage, step, steps: count, ..Report::default() });
            format!("{step}/{count}")
        };
        reports.iter().map(place).collect()
    }

    #[test]
    fn the_first_number_holds_to_the_last_step() {
        let mut steps = Steps::default();
        steps.announce(2 + 5 + 1, 1);
        let copy = [("prepare", 0, 0), ("copy", 0, 0), ("copy", 0, 0)];
        assert_eq!(place_all(&mut steps, &copy), ["1/8", "2/8", "2/8"]);
        let restore =
            [("prepare", 1, 5), ("extract", 2, 5), ("render", 3, 5), ("up", 4, 5), ("up", 4, 5)];
        assert_eq!(place_all(&mut steps, &restore), ["3/8", "4/8", "5/8", "6/8", "6/8"]);
        assert_eq!(place_all(&mut steps, &[("ready", 0, 0), ("patch", 0, 0)]), ["7/8", "8/8"]);
        // A step that nobody expected.
        assert_eq!(place_all(&mut steps, &[("rollback", 0, 0)]), ["9/9"]);
    }

    #[test]
    fn a_part_that_alone_knows_its_number_is_told_with_what_follows_it() {
        let mut steps = Steps::default();
        steps.announce(0, 1);
        let capture =
            [("prepare", 1, 4), ("pause", 2, 4), ("archive", 3, 4), ("seal", 4, 4), ("keep", 0, 0)];
        assert_eq!(place_all(&mut steps, &capture), ["1/5", "2/5", "3/5", "4/5", "5/5"]);
    }
}
