//! A question before something destructive. Its targets are frozen when it opens: it names them, and exactly they
//! are acted on, each with the revision that the operator saw.

use tui_input::Input;

use super::jobs::JobId;
use super::rows::Entry;
use super::words::short_profile;
use crate::domain::name::SandboxId;
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
    /// Roll a job back.
    CancelJob(JobId),
    /// Leave while jobs run.
    Quit,
}

/// One frozen target.
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
    /// Why it is left out, if it is.
    pub left_out: Option<&'static str>,
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
            left_out: None,
        }
    }
}

/// The dialog.
#[derive(Debug, Clone)]
pub struct Confirm {
    /// What is asked about.
    pub purpose: Purpose,
    /// The frozen targets, those left out among them.
    pub targets: Vec<Target>,
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
}

impl Confirm {
    /// Asks about targets. In a bulk, protected ones are left out: only a question about one alone can take it.
    pub fn about(purpose: Purpose, mut targets: Vec<Target>) -> Self {
        let bulk = targets.len() > 1;
        for target in &mut targets {
            target.left_out = match purpose {
                _ if bulk && target.protected => Some("protected: not in a bulk"),
                Purpose::Destroy if !target.state.may_be_destroyed() => Some("destroyed already"),
                Purpose::Recreate if !target.state.may_be_recreated() => Some("not from this state"),
                _ => None,
            };
        }
        let taken: Vec<&Target> = targets.iter().filter(|target| target.left_out.is_none()).collect();
        let demand = match taken.as_slice() {
            [only] if only.protected => Some((only.id.to_string(), "its id")),
            many if many.len() > MANY => Some((many.len().to_string(), "their number")),
            _ => None,
        };
        let act = if purpose == Purpose::Recreate { "Rebuild" } else { "Destroy" };
        let buttons = if taken.is_empty() { vec!["Close"] } else { vec!["Cancel", act] };
        Self { purpose, targets, buttons, focus: 0, demand, typed: Input::default(), again: false, offset: 0 }
    }

    /// Asks whether to roll a job back.
    pub fn cancel_job(job: JobId) -> Self {
        Self::plain(Purpose::CancelJob(job), vec!["Keep running", "Roll back"])
    }

    /// Asks what to do with running jobs before leaving.
    pub fn quit() -> Self {
        Self::plain(Purpose::Quit, vec!["Stay", "Wait for them", "Roll them back"])
    }

    fn plain(purpose: Purpose, buttons: Vec<&'static str>) -> Self {
        Self {
            purpose,
            targets: Vec::new(),
            buttons,
            focus: 0,
            demand: None,
            typed: Input::default(),
            again: false,
            offset: 0,
        }
    }

    /// Those that are acted on.
    pub fn taken(&self) -> impl Iterator<Item = &Target> {
        self.targets.iter().filter(|target| target.left_out.is_none())
    }

    /// Whether what had to be typed is typed.
    pub fn is_unlocked(&self) -> bool {
        self.demand.as_ref().is_none_or(|(wanted, _)| self.typed.value().trim() == wanted)
    }

    /// Whether a host is silent and that was not asked about yet.
    pub fn asks_again(&self) -> bool {
        !self.again && self.taken().any(|target| target.silent.is_some())
    }
}
