//! What happened, as lines: the newest first.

use std::collections::VecDeque;

use super::Role;
use crate::domain::Time;
use crate::domain::error::Error;
use crate::domain::event::{Event, EventKind};
use crate::domain::name::SandboxId;
use crate::domain::text::clean_line;

use super::job::JobId;

/// How many lines are kept.
const KEPT: usize = 500;

/// One line.
#[derive(Debug, Clone, PartialEq)]
pub struct ActivityLine {
    /// When.
    pub time: Time,
    /// How it is meant.
    pub role: Role,
    /// A glyph for how it is meant.
    pub glyph: char,
    /// What happened.
    pub text: String,
    /// Which event says so: never shown twice.
    pub seq: Option<u64>,
    /// To which sandbox.
    pub sandbox: Option<SandboxId>,
    /// In which job.
    pub job: Option<JobId>,
    /// The error in full.
    pub problem: Option<Error>,
}

/// The pane.
#[derive(Debug, Clone, Default)]
pub struct Activity {
    lines: VecDeque<ActivityLine>,
    last_seq: u64,
    /// The row under the cursor, running jobs counted first.
    pub index: usize,
    /// The first row on the screen.
    pub offset: usize,
    /// Whether the events of the last day were read.
    pub loaded: bool,
}

impl Activity {
    /// The lines, the newest first.
    pub fn lines(&self) -> impl ExactSizeIterator<Item = &ActivityLine> {
        self.lines.iter()
    }

    /// One line.
    pub fn line(&self, at: usize) -> Option<&ActivityLine> {
        self.lines.get(at)
    }

    /// The number of the last event that was seen.
    pub fn last_seq(&self) -> u64 {
        self.last_seq
    }

    /// Adds a line at its time's place.
    pub fn add(&mut self, line: ActivityLine) {
        let at = self.lines.partition_point(|other| other.time > line.time);
        self.lines.insert(at, line);
        self.lines.truncate(KEPT);
    }

    /// Adds an event; `false` if it was known.
    pub fn add_event(&mut self, event: &Event) -> bool {
        if event.seq <= self.last_seq && self.lines.iter().any(|line| line.seq == Some(event.seq)) {
            return false;
        }
        self.last_seq = self.last_seq.max(event.seq);
        self.add(event_line(event, true));
        true
    }
}

/// An event in a sentence, with or without what it is about.
pub(super) fn event_line(event: &Event, with_id: bool) -> ActivityLine {
    let (glyph, role) = event_glyph(&event.kind);
    let verb = event.kind.as_str();
    let verb = verb.strip_prefix("sandbox.").unwrap_or(verb).replace('.', " ");
    let mut text = verb;
    if with_id || event.kind.is_of_patch() {
        text = subject(event).into_iter().fold(text, |text, word| format!("{text} {word}"));
    }
    for key in ["name", "host", "profile", "reason", "message"] {
        if let Some(value) = event.text(key) {
            text = format!("{text}  {}", value.strip_prefix("profile.").unwrap_or(value));
        }
    }
    ActivityLine {
        time: event.time,
        role,
        glyph,
        text: clean_line(&format!("{text}  {}", event.actor), 400),
        seq: Some(event.seq),
        sandbox: event.sandbox_id.clone(),
        job: None,
        problem: None,
    }
}

/// What an event is about: a snapshot and its sandbox, a patch and where it is or ran, or a sandbox.
fn subject(event: &Event) -> Option<String> {
    let snapshot = event.snapshot_name().or(event.snapshot_id()).map(str::to_owned);
    let sandbox = event.sandbox_id.as_ref().map(ToString::to_string);
    match (&event.kind, event.patch_sequence()) {
        (EventKind::PatchAdded | EventKind::PatchRemoved, Some(number)) => Some(
            snapshot
                .map_or_else(|| number.to_string(), |snapshot| format!("{number} on {snapshot}")),
        ),
        (EventKind::PatchApplied | EventKind::PatchFailed, Some(number)) => Some(
            sandbox.map_or_else(|| number.to_string(), |sandbox| format!("{number} on {sandbox}")),
        ),
        (kind, _) if kind.is_of_snapshot() => match (snapshot, sandbox) {
            (Some(snapshot), Some(sandbox)) => Some(format!("{snapshot} of {sandbox}")),
            (snapshot, sandbox) => snapshot.or(sandbox),
        },
        _ => sandbox,
    }
}

/// An event's glyph and how it is meant.
pub(super) fn event_glyph(kind: &EventKind) -> (char, Role) {
    match kind {
        EventKind::SandboxReady
        | EventKind::SandboxWoken
        | EventKind::SandboxRecreated
        | EventKind::SandboxRestored
        | EventKind::HostUp
        | EventKind::SnapshotReady
        | EventKind::PatchApplied => ('✓', Role::Good),
        EventKind::SandboxFailed
        | EventKind::HostDown
        | EventKind::SnapshotFailed
        | EventKind::PatchFailed
        | EventKind::HostChanged => ('✗', Role::Bad),
        EventKind::SandboxLost | EventKind::SandboxExpiring | EventKind::CreditsShortfall => {
            ('⚠', Role::Warn)
        }
        EventKind::SandboxRequested
        | EventKind::SandboxProvisioning
        | EventKind::SandboxDestroying => ('◐', Role::Busy),
        EventKind::SandboxSleeping
        | EventKind::SandboxAdopted
        | EventKind::SandboxExtended
        | EventKind::SandboxLabelled
        | EventKind::SandboxDestroyed
        | EventKind::SandboxForgotten
        | EventKind::SnapshotCopied
        | EventKind::SnapshotDeleted
        | EventKind::PatchAdded
        | EventKind::PatchRemoved
        | EventKind::CreditsHeld
        | EventKind::CreditsCharged
        | EventKind::CreditsReleased
        | EventKind::CreditsGranted
        | EventKind::ReapPlanned
        | EventKind::ReapApplied
        | EventKind::Other(_) => ('·', Role::Dim),
    }
}
