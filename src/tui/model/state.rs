//! Model of the whole screen, and what lies over its panes.

mod credits;
mod filter;
mod form;
mod hub;
mod reading;
mod search;
mod stale;
mod undo;
mod unread;

use super::{
    Activity, Appearance, Arrangement, Confirm, CreditsPane, Details, EventLog, Fetch, Form,
    HostDetails, Hosts, Hub, JobId, Jobs, LastLook, Logs, Pane, Patches, Picker, Reap, Role,
    Sandboxes, Screen, Searches, ShellChoice, SnapshotDetails, Snapshots, Stale, Sweep, Sweeps,
    TextOverlay,
};
use crate::client::{Error, ExtensionView};
use crate::domain::Time;
use crate::domain::name::{ProfileId, SandboxId};
use crate::tui::keymap::{Keymap, Mode};
use crossterm::event::KeyEvent;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;
use tui_input::Input;

/// A line that goes away by itself.
#[derive(Debug, Clone, PartialEq)]
pub struct Toast {
    pub text: String,
    /// How it is meant.
    pub role: Role,
    /// When it goes away.
    pub until: Time,
}

/// Overlay over the panes.
#[derive(Debug, Clone)]
pub enum Overlay {
    /// A sandbox's whole record.
    Details(Details),
    /// The choice of a profile.
    Picker(Box<Picker>),
    Form(Box<Form>),
    /// A question.
    Confirm(Confirm),
    /// All jobs; the number is the row under the cursor.
    Jobs(usize),
    /// A job's output; how far it is scrolled, none: following its end.
    Output(JobId, Option<usize>),
    /// The keys, and how far they are scrolled.
    Help(usize),
    /// An error in full, and how far it is scrolled.
    Error(Error, usize),
    /// The command palette: what was typed, and the row under the cursor.
    Palette(Input, usize),
    Logs(Box<Logs>),
    /// Where a shell is opened.
    Shell(Box<ShellChoice>),
    /// A snapshot's whole record.
    Snapshot(Box<SnapshotDetails>),
    /// The patches of a snapshot.
    Patches(Box<Patches>),
    /// A script, or what it wrote.
    Text(TextOverlay),
    /// A host: what it says of itself, what is on it, why it is down.
    Host(HostDetails),
    /// The reap plan.
    Reap,
    Events(Box<EventLog>),
}

/// Why the console stays although the operator wants to leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leaving {
    /// The running jobs are waited for.
    Waiting,
    /// The cancelled jobs are waited for.
    Cancelling,
}

/// Everything.
#[derive(Debug, Clone)]
#[allow(clippy::struct_excessive_bools, reason = "each is an independent fact of the screen")]
pub struct Model {
    /// The present.
    pub now: Time,
    /// When the console started.
    pub started: Time,
    /// Columns and rows of the terminal.
    pub size: (u16, u16),
    /// Colours and glyphs.
    pub appearance: Appearance,
    /// Whether mutating keys are refused.
    pub read_only: bool,
    /// Actor of this console.
    pub actor: String,
    /// The home directory, which `~` means in a path.
    pub home: Option<PathBuf>,
    /// Keys and their actions.
    pub keymap: Keymap,
    /// The pane that keys act on.
    pub focus: Pane,
    /// The pane of the band, where there is room for one: that which had the focus last.
    pub below: Pane,
    /// Whether the focused pane takes the room of all.
    pub zoomed: bool,
    /// The list.
    pub sandboxes: Sandboxes,
    pub snapshots: Snapshots,
    /// The extensions, by which it is known what each can do; none before they were read.
    pub extensions: Vec<ExtensionView>,
    /// Profiles of which an undo snapshot is taken before a sandbox is removed; none before they were read.
    pub undo_profiles: BTreeSet<ProfileId>,
    pub hosts: Hosts,
    pub credits: CreditsPane,
    /// The State Hub's backlog.
    pub hub: Hub,
    /// Whether this console ends what has expired.
    pub sweep: Sweep,
    pub sweeps: Sweeps,
    /// Events so far.
    pub activity: Activity,
    /// Operations that were started here.
    pub jobs: Jobs,
    /// Where the run before ended; none on the first one.
    pub looked_before: Option<LastLook>,
    /// Overlays over the panes, the last on top.
    pub overlays: Vec<Overlay>,
    pub searches: Searches<Overlay>,
    /// The filter's text field while it is open.
    pub filter_field: Option<Input>,
    /// A line that goes away by itself.
    pub toast: Option<Toast>,
    /// Whether the display is frozen, and how many changes were held back.
    pub frozen: Option<u64>,
    /// Whether the mouse is ours.
    pub mouse: bool,
    /// Why the console stays although the operator wants to leave.
    pub leaving: Option<Leaving>,
    /// Ids that an event named and that were not read again yet.
    pub outdated: BTreeSet<SandboxId>,
    /// Stale things, as they were judged last.
    pub stale: Stale,
    /// The reap plan, open or not.
    pub reap: Reap,
    /// Keys that wait for a path to be completed: where they go is known then. None: no path is.
    pub held: Option<Vec<KeyEvent>>,
    /// The sandbox, not in the list, whose details are wanted as soon as it was read.
    pub wanted: Option<SandboxId>,
    /// Whether events arrive.
    pub listening: bool,
    /// How long a read of everything is good for.
    pub refresh: Duration,
    /// When everything was read last.
    pub read_at: Option<Time>,
    /// The read of everything.
    pub reading: Fetch,
    /// Whether the filter asks for sandboxes that are over, and they were asked for.
    pub wants_destroyed: bool,
    /// The read of sandboxes that are over.
    pub reading_destroyed: Fetch,
    pub reading_operations: Fetch,
    /// The read of the snapshots, which begins with a pause.
    pub reading_snapshots: Fetch,
    /// This process: its number and its machine, by which its own operations are known.
    pub process: (u32, String),
    /// The number of the last log that was opened.
    pub last_log: u64,
    /// The number of the last form.
    pub last_form: u64,
    /// The number of the last plan of a create that was asked for.
    pub last_plan: u64,
    /// The log that is followed.
    pub followed: Option<u64>,
    /// The time zone of every screen; the header names it.
    pub zone: jiff::tz::TimeZone,
}

impl Model {
    /// A console that has read nothing yet.
    pub fn new(now: Time, keymap: Keymap) -> Self {
        Self {
            now,
            started: now,
            size: (0, 0),
            appearance: Appearance::default(),
            read_only: false,
            actor: String::new(),
            home: None,
            keymap,
            focus: Pane::Sandboxes,
            below: Pane::Activity,
            zoomed: false,
            sandboxes: Sandboxes::default(),
            snapshots: Snapshots::default(),
            extensions: Vec::new(),
            undo_profiles: BTreeSet::new(),
            hosts: Hosts::default(),
            credits: CreditsPane::default(),
            hub: Hub::default(),
            sweep: Sweep::default(),
            sweeps: Sweeps::default(),
            activity: Activity::default(),
            jobs: Jobs::default(),
            looked_before: None,
            overlays: Vec::new(),
            searches: Searches::default(),
            filter_field: None,
            toast: None,
            frozen: None,
            mouse: true,
            leaving: None,
            outdated: BTreeSet::new(),
            stale: Stale::default(),
            reap: Reap::default(),
            held: None,
            wanted: None,
            listening: false,
            refresh: Duration::from_secs(2),
            read_at: None,
            reading: Fetch::Idle,
            wants_destroyed: false,
            reading_destroyed: Fetch::Idle,
            reading_operations: Fetch::Idle,
            reading_snapshots: Fetch::Idle,
            process: (0, String::new()),
            last_log: 0,
            last_form: 0,
            last_plan: 0,
            followed: None,
            zone: jiff::tz::TimeZone::UTC,
        }
    }

    /// Where keys go now.
    pub fn mode(&self) -> Mode {
        match self.overlays.last() {
            Some(_) if self.search().is_some_and(|search| search.field.is_some()) => {
                Mode::SearchField
            }
            Some(overlay) => overlay.mode(),
            None if self.filter_field.is_some() => Mode::Filter,
            None => Mode::Main,
        }
    }

    /// Where everything is on the screen.
    pub fn screen(&self) -> Screen {
        Screen::of(Arrangement {
            size: self.size,
            focus: self.focus,
            below: self.below,
            zoomed: self.zoomed,
        })
    }

    /// Gives a pane the focus.
    pub fn focus_on(&mut self, pane: Pane) {
        self.focus = pane;
        if pane != Pane::Sandboxes {
            self.below = pane;
        }
    }

    /// Shows a line for a few seconds.
    pub fn say(&mut self, role: Role, text: impl Into<String>) {
        let seconds = if role == Role::Bad { 10 } else { 5 };
        self.toast = Some(Toast { text: text.into(), role, until: self.now.plus_seconds(seconds) });
    }
}
