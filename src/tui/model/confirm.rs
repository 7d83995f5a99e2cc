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

/// Verb on sandboxes, asked about before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
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
}

/// Subject of a question, frozen: those of several that are left out are among them.
#[derive(Debug, Clone)]
pub enum Purpose {
    /// Do this to sandboxes.
    Sandboxes(Verb, Vec<Target>),
    /// Remove snapshots.
    DeleteSnapshots(Vec<SnapshotTarget>),
    /// Take a patch away from its snapshot.
    RemovePatch(PatchTarget),
    /// Apply a reap plan.
    Reap(Box<PlanTarget>),
    /// Bring back what was removed.
    Undo(Vec<UndoTarget>),
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
    /// Act that is asked about.
    pub purpose: Purpose,
    /// Warnings of hosts that do not answer, beside those of the targets.
    pub silent: Vec<String>,
    /// The buttons; the first is the harmless one and has the focus.
    pub buttons: Vec<&'static str>,
    /// The focused button.
    pub focus: usize,
    /// Text that has to be typed, if any, and what it is.
    pub demand: Option<(String, &'static str)>,
    /// Text that was typed.
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
    pub fn about(verb: Verb, mut targets: Vec<Target>) -> Self {
        let bulk = targets.len() > 1;
        for target in targets.iter_mut().filter(|target| target.left_out.is_none()) {
            let (may, why) = match verb {
                _ if bulk && target.protected => (false, "protected: not in a bulk"),
                Verb::Destroy => (target.state.may_be_destroyed(), "destroyed already"),
                Verb::Recreate => (target.state.may_be_recreated(), "not from this state"),
                Verb::Sleep | Verb::Apply { .. } => {
                    (target.state == State::Ready, "it is not ready")
                }
                Verb::Wake => (target.state == State::Sleeping, "it does not sleep"),
            };
            target.left_out = (!may).then(|| why.to_owned());
        }
        let taken: Vec<&Target> =
            targets.iter().filter(|target| target.left_out.is_none()).collect();
        let demand = match taken.as_slice() {
            // Waking one up takes nothing away from anybody.
            [only] if only.protected && verb != Verb::Wake => Some((only.id.to_string(), "its id")),
            many if many.len() > MANY => Some((many.len().to_string(), "their number")),
            _ => None,
        };
        let act = match verb {
            Verb::Destroy => "Destroy",
            Verb::Recreate => "Rebuild",
            Verb::Sleep => "Sleep",
            Verb::Wake => "Wake",
            Verb::Apply { retry: false } => "Apply",
            Verb::Apply { retry: true } => "Run again",
        };
        let buttons = match (taken.is_empty(), taken.iter().any(|target| target.undo)) {
            (true, _) => vec!["Close"],
            (false, false) => vec!["Cancel", act],
            (false, true) => vec!["Cancel", act, WITHOUT_UNDO],
        };
        Self { demand, ..Self::plain(Purpose::Sandboxes(verb, targets), buttons) }
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
        Self { demand, ..Self::plain(Purpose::DeleteSnapshots(snapshots), buttons) }
    }

    /// Asks whether to take a patch away.
    pub fn remove_patch(patch: PatchTarget) -> Self {
        Self::plain(Purpose::RemovePatch(patch), vec!["Cancel", "Remove"])
    }

    /// Asks whether to apply a reap plan.
    pub fn reap(target: PlanTarget, silent: Vec<String>) -> Self {
        let count = target.plan.to_do().count();
        let asks_count = count > MANY || target.forced > 0;
        let demand = asks_count.then(|| (count.to_string(), "their number"));
        let purpose = Purpose::Reap(Box::new(target));
        Self { silent, demand, ..Self::plain(purpose, vec!["Cancel", "Reap"]) }
    }

    /// Asks whether to bring back what was removed.
    pub fn undo(targets: Vec<UndoTarget>, silent: Vec<String>) -> Self {
        Self { silent, ..Self::plain(Purpose::Undo(targets), vec!["Cancel", "Bring back"]) }
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
        let left_out = self.targets().len() - taken.len();
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

    /// The sandboxes that are asked about.
    pub fn targets(&self) -> &[Target] {
        if let Purpose::Sandboxes(_, targets) = &self.purpose { targets } else { &[] }
    }

    /// The snapshots that are asked about.
    pub fn snapshots(&self) -> &[SnapshotTarget] {
        if let Purpose::DeleteSnapshots(snapshots) = &self.purpose { snapshots } else { &[] }
    }

    /// The sandboxes that are acted on.
    pub fn taken(&self) -> impl Iterator<Item = &Target> {
        self.targets().iter().filter(|target| target.left_out.is_none())
    }

    /// The snapshots that are acted on.
    pub fn taken_snapshots(&self) -> impl Iterator<Item = &SnapshotTarget> {
        self.snapshots().iter().filter(|target| target.left_out.is_none())
    }

    /// Whether what had to be typed is typed.
    pub fn is_unlocked(&self) -> bool {
        self.demand.as_ref().is_none_or(|(wanted, _)| self.typed.value().trim() == wanted)
    }

    /// The last line that its list can begin with.
    pub fn last_offset(&self) -> usize {
        let lines = match &self.purpose {
            Purpose::Sandboxes(_, targets) => targets.len(),
            Purpose::DeleteSnapshots(snapshots) => snapshots.len(),
            Purpose::Reap(target) => 2 * target.plan.items.len(),
            Purpose::Undo(targets) => 3 * targets.len(),
            Purpose::RemovePatch(_) | Purpose::CancelJob(_) | Purpose::Quit => 0,
        };
        lines.saturating_sub(1)
    }

    /// Whether a host is silent and that was not asked about yet.
    pub fn asks_again(&self) -> bool {
        let silent = self.taken().any(|target| target.silent.is_some())
            || self.taken_snapshots().any(|target| target.silent.is_some())
            || !self.silent.is_empty();
        !self.again && silent
    }
}
