//! A question before something destructive. Its targets are frozen when it opens: it names them, and exactly they
//! are acted on, each with the revision that the operator saw.

use std::collections::BTreeMap;
use std::sync::Arc;

use tui_input::Input;

use super::job::JobId;
use super::rows::Entry;
use super::words::short_profile;
use crate::domain::lineage::SnapshotView;
use crate::domain::name::{PatchId, SandboxId, SnapshotId};
use crate::domain::snapshot::SnapshotState;
use crate::domain::{State, Time};

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
    /// End a job.
    CancelJob(JobId),
    /// Leave while jobs run.
    Quit,
}

/// Most targets that are only named, not summed.
const READ_ONE_BY_ONE: usize = 10;

/// One frozen sandbox.
#[derive(Debug, Clone, PartialEq)]
pub struct Target {
    /// Its id.
    pub id: SandboxId,
    /// The revision that the operator saw.
    pub revision: u64,
    /// Its name.
    pub name: Option<String>,
    /// Its host.
    pub host: String,
    /// Its profile, short.
    pub profile: String,
    /// Its state.
    pub state: State,
    /// When it was created.
    pub created_at: Time,
    /// Labelled `protect=true`.
    pub protected: bool,
    /// What else to know before: its host has not answered since then.
    pub silent: Option<String>,
    /// What will be done to it beyond the verb, a sentence each.
    pub notes: Vec<String>,
    /// The patches on the snapshot that it is based on, where the verb applies them.
    pub patches: Option<Vec<PatchId>>,
    /// Why it is left out, if it is.
    pub left_out: Option<String>,
}

impl Target {
    /// Freezes a row.
    pub fn of(entry: &Entry, silent: Option<String>) -> Self {
        let record = &entry.record;
        Self {
            id: record.id.clone(),
            revision: record.revision,
            name: record.name.clone(),
            host: record.host.to_string(),
            profile: short_profile(&record.profile.id).to_owned(),
            state: record.state.clone(),
            created_at: record.created_at,
            protected: record.is_protected(),
            silent,
            notes: Vec::new(),
            patches: None,
            left_out: None,
        }
    }

    /// Its name, or its id where it has none.
    pub fn called(&self) -> String {
        self.name.clone().unwrap_or_else(|| self.id.to_string())
    }

    /// `a1b2c3d4 e2e-core`, or the id alone.
    pub fn title(&self) -> String {
        named(self.id.as_str(), self.name.as_deref())
    }
}

/// One frozen snapshot.
#[derive(Debug, Clone, PartialEq)]
pub struct SnapshotTarget {
    /// As the operator saw it.
    pub view: Arc<SnapshotView>,
    /// What depends on it, a line each.
    pub dependants: Vec<String>,
    /// What else to know before: its host has not answered since then.
    pub silent: Option<String>,
    /// Why it is left out, if it is.
    pub left_out: Option<String>,
}

impl SnapshotTarget {
    /// Freezes a snapshot.
    pub fn of(view: &Arc<SnapshotView>, silent: Option<String>) -> Self {
        Self { dependants: view.dependants(), view: Arc::clone(view), silent, left_out: None }
    }

    /// Its id.
    pub fn id(&self) -> &SnapshotId {
        &self.view.record.id
    }

    /// `snap-1a2b3c4d my-env`, or the id alone.
    pub fn title(&self) -> String {
        named(self.id().as_str(), self.view.record.name.as_deref())
    }

    fn is_protected(&self) -> bool {
        self.view.record.is_protected()
    }
}

/// A patch that is to be taken away.
#[derive(Debug, Clone, PartialEq)]
pub struct PatchTarget {
    /// Its snapshot.
    pub snapshot: SnapshotId,
    /// What that is called.
    pub title: String,
    /// The patch.
    pub id: PatchId,
    /// Its place in the order.
    pub sequence: u64,
    /// What it is for.
    pub description: Option<String>,
    /// How many sandboxes have it, and how many would have got it.
    pub counts: (usize, usize),
}

fn named(id: &str, name: Option<&str>) -> String {
    name.map_or_else(|| id.to_owned(), |name| format!("{id} {name}"))
}

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
            | Purpose::CancelJob(_)
            | Purpose::Quit => "Destroy",
        };
        let buttons = if taken.is_empty() { vec!["Close"] } else { vec!["Cancel", act] };
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

    /// Whether a host is silent and that was not asked about yet.
    pub fn asks_again(&self) -> bool {
        let silent = self.taken().any(|target| target.silent.is_some())
            || self.taken_snapshots().any(|target| target.silent.is_some());
        !self.again && silent
    }
}

/// `12 on coulombcore, 3 on local`: each word with how often it comes, the most frequent first.
fn summed(words: impl Iterator<Item = String>) -> String {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for word in words {
        *counts.entry(word).or_default() += 1;
    }
    let mut counts: Vec<(String, usize)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let words: Vec<String> =
        counts.into_iter().map(|(word, count)| format!("{count} {word}")).collect();
    words.join(", ")
}
