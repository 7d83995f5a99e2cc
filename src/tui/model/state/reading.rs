//! Overlays that are read: the text block of each.

use super::{Model, Overlay};
use crate::domain::State;
use crate::domain::error::Error;
use crate::present::{self, Document, Present, Role, state_glyph, state_role};
use crate::tui::keymap::Mode;
use crate::tui::model::job::{Job, JobState};
use crate::tui::model::reading::TextOverlay;
use crate::tui::model::text_block::{TextBlock, line_text};

/// Signs beside those of the states.
const SIGNS: &[(&str, &str)] = &[
    ("▌", "the row under the cursor"),
    ("✓", "a marked row; something that went well; a patch that was applied"),
    ("✗", "something that failed; a host that does not answer"),
    ("⚠", "look at this"),
    ("◐", "being done"),
    (
        "◷",
        "stale: its time is over, it failed long ago, or nobody finishes it; `reap` opens the plan",
    ),
    ("◌", "not known yet: a host that is being asked"),
    ("◆", "a snapshot"),
    ("?", "behind a state: its host is silent, this is how it was last"),
    ("…", "a patch that waits for the next wake; at an end: cut, there is more"),
    ("—", "none"),
    ("▓▓░░", "how far it has come"),
    ("!", "in a log: written to the error stream"),
    ("›", "in a log: the line goes on to the right"),
];

impl Model {
    /// The text of the overlay on top, if it is one that is read.
    pub fn block(&self) -> Option<TextBlock> {
        self.overlays.last().and_then(|overlay| self.block_of(overlay))
    }

    /// The raw record of what the overlay on top is about, to be read: as YAML.
    pub fn raw(&self) -> Option<Result<TextOverlay, String>> {
        let (title, value) = match self.overlays.last()? {
            Overlay::Details(details) => {
                let record = &details.record;
                let title = format!("{}: record, revision {}", record.title(), record.revision);
                (title, serde_json::to_value(record))
            }
            Overlay::Snapshot(details) => {
                let record = &details.view.record;
                let title = format!("{}: record, revision {}", record.title(), record.revision);
                (title, serde_json::to_value(&*details.view))
            }
            Overlay::Host(details) => {
                let host = self.hosts.get(details.name.as_str())?;
                (format!("{}: as it was seen last", details.name), serde_json::to_value(&host.view))
            }
            _ => return None,
        };
        Some(TextOverlay::of_record(title, value))
    }

    /// The text of an overlay that is read.
    pub fn block_of(&self, overlay: &Overlay) -> Option<TextBlock> {
        let width = usize::from(self.screen().overlay_text().width);
        match overlay {
            Overlay::Details(details) => {
                let host = self.hosts.get(details.record.host.as_str());
                Some(details.block(width, self.present(), host, &self.snapshots))
            }
            Overlay::Snapshot(details) => Some(details.block(
                width,
                self.present(),
                &self.jobs,
                &self.snapshots,
                &self.sandboxes,
            )),
            Overlay::Text(page) => {
                let mut block = TextBlock::new(width);
                block.text(
                    Role::Code,
                    0,
                    if page.text.is_empty() { "it wrote nothing" } else { &page.text },
                );
                Some(block)
            }
            Overlay::Host(details) => {
                Some(details.block(width, self.now, (&self.hosts, &self.sandboxes, &self.stale)))
            }
            Overlay::Output(id, _) => self.jobs.get(*id).map(|job| output(job, width)),
            Overlay::Help(_) => Some(self.help(width)),
            Overlay::Error(problem, _) => Some(error(problem, width)),
            // It is no text.
            _ => None,
        }
    }

    pub(super) fn present(&self) -> Present<'_> {
        Present { now: self.now, zone: Some(&self.zone) }
    }

    /// The line of the help at which a mode's keys begin.
    pub fn help_place(&self, mode: Mode) -> usize {
        let block = self.help(usize::from(self.screen().overlay_text().width));
        block.lines.iter().position(|line| line_text(line) == mode.title()).unwrap_or_default()
    }

    fn help(&self, width: usize) -> TextBlock {
        let mut block = TextBlock::new(width);
        for mode in Mode::ALL {
            block.heading(mode.title());
            for (keys, help) in self.keymap.help(*mode) {
                block.pair(&keys, Role::Plain, help);
            }
        }
        glyphs(&mut block);
        block.heading("This console");
        block.pair("acts as", Role::Plain, &self.actor);
        if self.read_only {
            block.pair("read-only", Role::Warn, "keys that change something are refused");
        }
        block.text(
            Role::Dim,
            2,
            "every action can be put on another key: dashboard.keys in the configuration",
        );
        block
    }
}

/// Every sign of the screen, and what it stands for.
fn glyphs(block: &mut TextBlock) {
    block.heading("Signs");
    for state in State::ALL {
        block.pair(&state_glyph(state).to_string(), state_role(state), state.as_str());
    }
    for (sign, meaning) in SIGNS {
        block.pair(sign, Role::Plain, meaning);
    }
}

fn output(job: &Job, width: usize) -> TextBlock {
    let mut block = TextBlock::new(width);
    if job.dropped > 0 {
        block.text(Role::Dim, 0, &format!("{} earlier lines were dropped", job.dropped));
    }
    if job.output.is_empty() {
        let text = if job.is_running() { "it has written nothing yet" } else { "it wrote nothing" };
        block.text(Role::Dim, 0, text);
    }
    for line in &job.output {
        let stage = line.starts_with('[');
        block.text(if stage { Role::Title } else { Role::Plain }, 0, line);
    }
    if let JobState::Failed(problem) = &job.state {
        block.gap();
        block.text(Role::Bad, 0, &format!("{}: {}", problem.code, problem.message));
        if let Some(hint) = &problem.hint {
            block.text(Role::Key, 0, hint);
        }
    }
    block
}

fn error(problem: &Error, width: usize) -> TextBlock {
    let mut document = Document::default();
    present::error::section(&mut document, problem);
    TextBlock::of(&document, width)
}

impl Overlay {
    /// The first line on the screen of one that is read; `last` is the place of its end.
    pub fn offset(&self, last: usize) -> usize {
        match self {
            Self::Details(details) => details.offset,
            Self::Snapshot(details) => details.offset,
            Self::Text(page) => page.offset,
            Self::Host(host) => host.offset,
            Self::Help(offset) | Self::Error(_, offset) => *offset,
            Self::Output(_, offset) => offset.unwrap_or(last),
            _ => 0,
        }
    }

    /// Scrolls one that is read, and has it stay there.
    pub fn hold_at(&mut self, to: usize) {
        match self {
            Self::Output(_, offset) => *offset = Some(to),
            other => other.scroll_to(to, to),
        }
    }

    /// Scrolls one that is read. At its end a job's output follows what is written.
    pub fn scroll_to(&mut self, to: usize, last: usize) {
        let offset = match self {
            Self::Details(details) => &mut details.offset,
            Self::Snapshot(details) => &mut details.offset,
            Self::Text(page) => &mut page.offset,
            Self::Host(host) => &mut host.offset,
            Self::Help(offset) | Self::Error(_, offset) => offset,
            Self::Output(_, offset) => {
                *offset = (to < last).then_some(to);
                return;
            }
            _ => return,
        };
        *offset = to;
    }
}
