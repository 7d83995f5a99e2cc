//! Activity: a row for each operation, and one for each event that belongs to none.

use std::collections::{BTreeSet, HashSet, VecDeque};

use super::{Job, JobId, JobState, Jobs, Load, Role, ToldIn};
use crate::domain::Time;
use crate::domain::error::Error;
use crate::domain::event::Event;
use crate::domain::name::{SandboxId, SnapshotId};
use crate::present::{SinceLastLook, event_glyph, event_sentence};

/// How many lines are kept.
const KEPT: usize = 500;
/// How many numbers of events are remembered, so that none is told twice.
const KNOWN: usize = 4 * KEPT;
/// How long an event waits for the operation that it belongs to, in seconds: the operations are read a moment later.
const WAIT: u64 = 2;

/// Events outside of any operation.
#[derive(Debug, Clone, PartialEq)]
pub struct ActivityLine {
    /// Its number among the lines of this run.
    pub number: u64,
    pub time: Time,
    /// How it is meant.
    pub role: Role,
    /// A glyph for how it is meant.
    pub glyph: char,
    /// Words for the event.
    pub text: String,
    /// The event that says so.
    pub event: Option<Box<Event>>,
    /// The error in full.
    pub problem: Option<Error>,
}

impl ActivityLine {
    /// The sandbox that it is about.
    pub fn sandbox(&self) -> Option<&SandboxId> {
        self.event.as_ref().and_then(|event| event.sandbox_id.as_ref())
    }
}

/// Kind of a row of the pane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActivityRow {
    /// Counts of events while nobody looked.
    SinceLastLook,
    /// An operation.
    Job(JobId),
    /// A line, by its number.
    Line(u64),
}

/// The pane.
#[derive(Debug, Clone, Default)]
pub struct Activity {
    /// The newest first.
    lines: VecDeque<ActivityLine>,
    last_line: u64,
    last_seq: u64,
    known: BTreeSet<u64>,
    /// Events of operations that are not known yet, each with when it was heard.
    waiting: Vec<(Time, Event)>,
    rows: Vec<ActivityRow>,
    looked_at: BTreeSet<JobId>,
    /// Counts of events while nobody looked, until they are read.
    pub since: Option<SinceLastLook>,
    /// The row under the cursor.
    pub index: usize,
    /// The first row on the screen.
    pub offset: usize,
    /// Whether the events of the last day were read.
    pub loaded: bool,
    /// Whether the operations were read, to which events belong.
    pub operations: Load,
    /// The error of the last read of the operations, where it failed.
    pub operations_problem: Option<Error>,
}

impl Activity {
    /// The lines, the newest first.
    pub fn lines(&self) -> impl ExactSizeIterator<Item = &ActivityLine> {
        self.lines.iter()
    }

    pub fn line(&self, number: u64) -> Option<&ActivityLine> {
        self.lines.iter().find(|line| line.number == number)
    }

    /// The rows as they are shown.
    pub fn rows(&self) -> &[ActivityRow] {
        &self.rows
    }

    /// The row under the cursor.
    pub fn selected(&self) -> Option<ActivityRow> {
        self.rows.get(self.index).copied()
    }

    /// The number of the last event that was seen.
    pub fn last_seq(&self) -> u64 {
        self.last_seq
    }

    /// Adds a line at its time's place.
    pub fn add(&mut self, time: Time, (glyph, role): (char, Role), text: String) {
        self.insert(ActivityLine {
            number: 0,
            time,
            role,
            glyph,
            text,
            event: None,
            problem: None,
        });
    }

    /// Adds a line with its error in full.
    pub fn add_problem(&mut self, time: Time, text: String, problem: Error) {
        self.insert(ActivityLine {
            number: 0,
            time,
            role: Role::Bad,
            glyph: '✗',
            text,
            event: None,
            problem: Some(problem),
        });
    }

    fn insert(&mut self, mut line: ActivityLine) {
        self.last_line += 1;
        line.number = self.last_line;
        let at = self.lines.partition_point(|other| other.time > line.time);
        self.lines.insert(at, line);
        self.lines.truncate(KEPT);
    }

    /// Takes note of an event; `false` if it was known.
    pub fn note(&mut self, event: &Event) -> bool {
        self.last_seq = self.last_seq.max(event.seq);
        let new = self.known.insert(event.seq);
        if self.known.len() > KNOWN {
            self.known.pop_first();
        }
        new
    }

    /// Lets an event wait for the operation that it belongs to.
    pub fn wait(&mut self, event: Event, now: Time) {
        self.waiting.push((now, event));
        // Whoever floods the log waits no longer.
        if self.waiting.len() > KNOWN {
            self.waiting.remove(0);
        }
    }

    /// Events that waited: those of an operation that is known by now are dropped, and those that belong to none, as far as
    /// can be known, come back.
    pub fn take_ownerless(&mut self, jobs: &Jobs, now: Time) -> Vec<Event> {
        if self.waiting.is_empty() {
            return Vec::new();
        }
        let loaded = self.operations != Load::Loading;
        let mut ownerless = Vec::new();
        for (heard, event) in std::mem::take(&mut self.waiting) {
            if jobs.of_event(&event).is_some() {
                continue;
            }
            // One that is older than this console has no operation that is still to begin.
            let is_old =
                now.since(heard).as_secs() >= WAIT || now.since(event.time).as_secs() >= 2 * WAIT;
            if loaded && is_old {
                ownerless.push(event);
            } else {
                self.waiting.push((heard, event));
            }
        }
        ownerless
    }

    /// Adds an event as a line of its own, about something of this name, for this operator.
    pub fn add_event(&mut self, event: Event, name: Option<&str>, me: &str) {
        let (glyph, role) = event_glyph(&event.kind);
        let text = event_sentence(&event, name, me);
        self.insert(ActivityLine {
            number: 0,
            time: event.time,
            role,
            glyph,
            text,
            event: Some(Box::new(event)),
            problem: None,
        });
    }

    /// Takes away the lines of events that belong to an operation after all.
    pub fn fold(&mut self, jobs: &Jobs) {
        self.lines.retain(|line| {
            let event = line.event.as_ref().filter(|event| event.kind.is_of_operation());
            event.is_none_or(|event| jobs.of_event(event).is_none())
        });
    }

    /// Says that somebody has looked at a job: where it failed, it does not have to stay in sight.
    pub fn look_at(&mut self, job: JobId) {
        self.looked_at.insert(job);
    }

    /// Puts the rows in order: what runs, failures that nobody looked at, then what ended, the newest first. The cursor
    /// follows its row; on the first one it stays there while the pane is not `focused`.
    pub fn arrange(&mut self, jobs: &Jobs, focused: bool) {
        let before = self.selected();
        let mut rows: Vec<ActivityRow> = Vec::with_capacity(jobs.list().len() + self.lines.len());
        rows.extend(self.since.as_ref().map(|_| ActivityRow::SinceLastLook));
        rows.extend(jobs.running().map(|job| ActivityRow::Job(job.id)));
        let (mut staying, mut ended) = self.ended(jobs);
        staying.sort_by_key(|job| std::cmp::Reverse(job.end()));
        ended.sort_by_key(|job| std::cmp::Reverse(job.end()));
        rows.extend(staying.iter().map(|job| ActivityRow::Job(job.id)));
        let mut ended = ended.into_iter().peekable();
        for line in &self.lines {
            while let Some(job) = ended.next_if(|job| job.end() >= line.time) {
                rows.push(ActivityRow::Job(job.id));
            }
            rows.push(ActivityRow::Line(line.number));
        }
        rows.extend(ended.map(|job| ActivityRow::Job(job.id)));
        let stays_on_top = self.index == 0 && !focused;
        let found = before
            .filter(|_| !stays_on_top)
            .and_then(|before| rows.iter().position(|row| *row == before));
        self.index = found.unwrap_or(self.index).min(rows.len().saturating_sub(1));
        self.rows = rows;
    }

    /// Ended jobs: failures that stay in sight, and the others.
    fn ended<'a>(&self, jobs: &'a Jobs) -> (Vec<&'a Job>, Vec<&'a Job>) {
        let mut mended: HashSet<&SandboxId> = HashSet::new();
        let mut mended_snapshots: HashSet<&SnapshotId> = HashSet::new();
        let (mut staying, mut ended) = (Vec::new(), Vec::new());
        // The newest first: what went well after a failure has mended it.
        for job in jobs.list().filter(|job| job.told_in == ToldIn::Activity && !job.is_running()) {
            match &job.state {
                JobState::Succeeded | JobState::DoneAnyway => {
                    mended.extend(&job.sandbox);
                    mended_snapshots.extend(&job.snapshot);
                    ended.push(job);
                }
                JobState::Failed(_) | JobState::Stopped(_)
                    if !self.looked_at.contains(&job.id)
                        && !is_mended(job, &mended, &mended_snapshots) =>
                {
                    staying.push(job);
                }
                _ => ended.push(job),
            }
        }
        (staying, ended)
    }
}

/// Whether something went well on the same sandbox later, or on the same snapshot where it was about no sandbox.
fn is_mended(job: &Job, sandboxes: &HashSet<&SandboxId>, snapshots: &HashSet<&SnapshotId>) -> bool {
    match (&job.sandbox, &job.snapshot) {
        (Some(id), _) => sandboxes.contains(id),
        (None, Some(id)) => snapshots.contains(id),
        (None, None) => false,
    }
}
