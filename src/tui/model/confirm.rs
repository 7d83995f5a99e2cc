//! A question before something destructive. Its targets are frozen when it opens: it names them, and exactly they
//! are acted on, each with the revision that the operator saw.

use tui_input::Input;

use super::job::JobId;
use super::targets::{PatchTarget, PlanTarget, SnapshotTarget, Target};
use super::undo::UndoTarget;
use crate::domain::State;
use crate::domain::snapshot::SnapshotState;
use crate::present::summed;

/// More targets than this ask for their count to be typed.
const MANY: usize = 5;

/// What is asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Remove sandboxes.
    Destroy,
    /// Remove and make again.
    Recreate,
    /// Stop sandboxes.
    Sleep,
    /// Start sleeping ones, and apply their patches.
    Wake,
    /// Apply what one sandbox owes of its patches; whether what failed is run once more.
    Apply {
        /// Run what failed, or of which nobody knows whether it ran, once more.
        retry: bool,
    },
    /// Remove snapshots.
    DeleteSnapshots,
    /// Take a patch away from its snapshot.
    RemovePatch,
    /// Apply a reap plan.
    Reap,
    /// Bring back what was removed.
    Undo,
    /// End a job.
    CancelJob(JobId),
    /// Leave while jobs run.
    Quit,
}

/// The button of a removal that takes no undo snapshot first.
const WITHOUT_UNDO: &str = "Without undo";

/// Most targets that are only named, not summed.
const READ_ONE_BY_ONE: usize = 10;

/// The dialog.
#[derive(Debug, Clone)]
pub struct Confirm {
    /// What is asked about.
    pub purpose: Purpose,
    /// The frozen sandboxes, those left out among them.
    pub targets: Vec<Target>,
    /// The frozen snapshots, those left out among them.
    pub snapshots: Vec<SnapshotTarget>,
    /// The patch that is asked about.
    pub patch: Option<PatchTarget>,
    /// The reap plan that is asked about.
    pub plan: Option<Box<PlanTarget>>,
    /// The removed sandboxes that are asked about.
    pub undo: Vec<UndoTarget>,
    /// What to know of hosts that do not answer, beside that of the targets.
    pub silent: Vec<String>,
    /// The buttons; the first is the harmless one and has the focus.
    pub buttons: Vec<&'static str>,
    /// The focused button.
    pub focus: usize,
    /// What has to be typed, if anything, and what it is.
    pub demand: Option<(String, &'static str)>,
    /// What was typed.
    pub typed: Input,
    /// Whether it is asked a second time, because a host is silent.
    pub again: bool,
    /// The first row of the targets on the screen.
    pub offset: usize,
    /// Whether it was on the screen, as it is.
    pub drawn: bool,
}

impl Confirm {
    /// Asks about sandboxes. In a bulk, protected ones are left out: only a question about one alone can take it.
    pub fn about(purpose: Purpose, mut targets: Vec<Target>) -> Self {
        let bulk = targets.len() > 1;
        for target in targets.iter_mut().filter(|target| target.left_out.is_none()) {
            target.left_out = match purpose {
                _ if bulk && target.protected => Some("protected: not in a bulk"),
                Purpose::Destroy if !target.state.may_be_destroyed() => Some("destroyed already"),
                Purpose::Recreate if !target.state.may_be_recreated() => {
                    Some("not from this state")
                }
                Purpose::Sleep | Purpose::Apply { .. } if target.state != State::Ready => {
                    Some("it is not ready")
                }
                Purpose::Wake if target.state != State::Sleeping => Some("it does not sleep"),
                Purpose::Destroy
                | Purpose::Recreate
                | Purpose::Sleep
                | Purpose::Wake
                | Purpose::Apply { .. }
                | Purpose::DeleteSnapshots
                | Purpose::RemovePatch
                | Purpose::Reap
                | Purpose::Undo
                | Purpose::CancelJob(_)
                | Purpose::Quit => None,
            }
            .map(str::to_owned);
        }
        let taken: Vec<&Target> =
            targets.iter().filter(|target| target.left_out.is_none()).collect();
        let demand = match taken.as_slice() {
            // Waking one up takes nothing away from anybody.
            [only] if only.protected && purpose != Purpose::Wake => {
                Some((only.id.to_string(), "its id"))
            }
            many if many.len() > MANY => Some((many.len().to_string(), "their number")),
            _ => None,
        };
        let act = match purpose {
            Purpose::Recreate => "Rebuild",
            Purpose::Sleep => "Sleep",
            Purpose::Wake => "Wake",
            Purpose::Apply { retry: false } => "Apply",
            Purpose::Apply { retry: true } => "Run again",
            Purpose::Destroy
            | Purpose::DeleteSnapshots
            | Purpose::RemovePatch
            | Purpose::Reap
            | Purpose::Undo
            | Purpose::CancelJob(_)
            | Purpose::Quit => "Destroy",
        };
        let buttons = match (taken.is_empty(), taken.iter().any(|target| target.undo)) {
            (true, _) => vec!["Close"],
            (false, false) => vec!["Cancel", act],
            (false, true) => vec!["Cancel", act, WITHOUT_UNDO],
        };
        Self { targets, demand, ..Self::plain(purpose, buttons) }
    }

    /// Asks about snapshots. One on which something depends goes only alone, and only when its id is typed.
    pub fn delete(mut snapshots: Vec<SnapshotTarget>) -> Self {
        let bulk = snapshots.len() > 1;
        for target in &mut snapshots {
            target.left_out = if target.view.record.state == SnapshotState::Deleting {
                Some("it is being deleted".to_owned())
            } else if bulk && target.is_protected() {
                Some("protected: not in a bulk".to_owned())
            } else if bulk && !target.dependants.is_empty() {
                Some(format!("it is in use: {}", target.dependants.join(", ")))
            } else {
                None
            };
        }
        let taken: Vec<&SnapshotTarget> =
            snapshots.iter().filter(|target| target.left_out.is_none()).collect();
        let mut act = "Delete";
        let demand = match taken.as_slice() {
            [only] if !only.dependants.is_empty() => {
                act = "Delete by force";
                Some((only.id().to_string(), "its id"))
            }
            [only] if only.is_protected() => Some((only.id().to_string(), "its id")),
            many if many.len() > MANY => Some((many.len().to_string(), "their number")),
            _ => None,
        };
        let buttons = if taken.is_empty() { vec!["Close"] } else { vec!["Cancel", act] };
        Self { snapshots, demand, ..Self::plain(Purpose::DeleteSnapshots, buttons) }
    }

    /// Asks whether to take a patch away.
    pub fn remove_patch(patch: PatchTarget) -> Self {
        Self { patch: Some(patch), ..Self::plain(Purpose::RemovePatch, vec!["Cancel", "Remove"]) }
    }

    /// Asks whether to apply a reap plan.
    pub fn reap(target: PlanTarget, silent: Vec<String>) -> Self {
        let count = target.plan.to_do().count();
        let asks_count = count > MANY || target.forced > 0;
        let demand = asks_count.then(|| (count.to_string(), "their number"));
        let plain = Self::plain(Purpose::Reap, vec!["Cancel", "Reap"]);
        Self { plan: Some(Box::new(target)), silent, demand, ..plain }
    }

    /// Asks whether to bring back what was removed.
    pub fn undo(targets: Vec<UndoTarget>, silent: Vec<String>) -> Self {
        let plain = Self::plain(Purpose::Undo, vec!["Cancel", "Bring back"]);
        Self { undo: targets, silent, ..plain }
    }

    /// Asks whether to cancel a job.
    pub fn cancel_job(job: JobId) -> Self {
        Self::plain(Purpose::CancelJob(job), vec!["Keep running", "Cancel it"])
    }

    /// Asks what to do with running jobs before leaving.
    pub fn quit() -> Self {
        Self::plain(Purpose::Quit, vec!["Stay", "Wait for them", "Cancel them"])
    }

    fn plain(purpose: Purpose, buttons: Vec<&'static str>) -> Self {
        Self {
            purpose,
            targets: Vec::new(),
            snapshots: Vec::new(),
            patch: None,
            plan: None,
            undo: Vec::new(),
            silent: Vec::new(),
            buttons,
            focus: 0,
            demand: None,
            typed: Input::default(),
            again: false,
            offset: 0,
            drawn: false,
        }
    }

    /// Targets summed by host, state and profile, and those that are left out; none where they are few enough to be read.
    pub fn sums(&self) -> Vec<String> {
        let taken: Vec<&Target> = self.taken().collect();
        if taken.len() <= READ_ONE_BY_ONE {
            return Vec::new();
        }
        let left_out = self.targets.len() - taken.len();
        let mut sums = vec![
            summed(taken.iter().map(|target| format!("on {}", target.host))),
            summed(taken.iter().map(|target| target.state.to_string())),
            summed(taken.iter().map(|target| target.profile.clone())),
        ];
        if left_out > 0 {
            sums.push(format!("{left_out} left out, each with its reason below"));
        }
        sums
    }

    /// The sandboxes that are acted on.
    pub fn taken(&self) -> impl Iterator<Item = &Target> {
        self.targets.iter().filter(|target| target.left_out.is_none())
    }

    /// The snapshots that are acted on.
    pub fn taken_snapshots(&self) -> impl Iterator<Item = &SnapshotTarget> {
        self.snapshots.iter().filter(|target| target.left_out.is_none())
    }

    /// Whether what had to be typed is typed.
    pub fn is_unlocked(&self) -> bool {
        self.demand.as_ref().is_none_or(|(wanted, _)| self.typed.value().trim() == wanted)
    }

    /// The last line that its list can begin with.
    pub fn last_offset(&self) -> usize {
        let items = self.plan.as_ref().map_or(0, |target| 2 * target.plan.items.len());
        let lines = self.targets.len() + self.snapshots.len() + 3 * self.undo.len();
        (lines + items).saturating_sub(1)
    }

    /// Whether a host is silent and that was not asked about yet.
    pub fn asks_again(&self) -> bool {
        let silent = self.taken().any(|target| target.silent.is_some())
            || self.taken_snapshots().any(|target| target.silent.is_some())
            || !self.silent.is_empty();
        !self.again && silent
    }
}
