//! What the overlays that are read say, as a text block: the view paints it, the update scrolls it.

use super::text_block::{Role, TextBlock};
use super::{Job, JobState, Model, Overlay, Present};
use crate::domain::State;
use crate::domain::error::Error;
use crate::domain::sandbox::SandboxRecord;
use crate::domain::telling::{folded, telling_lines};
use crate::tui::keymap::{Mode, TABLE};

/// A script, or what it wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextOverlay {
    /// What it is.
    pub title: String,
    /// What it says.
    pub text: String,
    /// The first line on the screen.
    pub offset: usize,
}

impl TextOverlay {
    /// Failure of a sandbox that nothing is left of, to be read where a log would be: why, then all that its step wrote.
    pub fn of_failed(record: &SandboxRecord) -> Option<Self> {
        let failure = record
            .failure
            .as_ref()
            .filter(|_| record.state == State::Failed && !record.kept_failed)?;
        let telling = telling_lines(&failure.output);
        let all = folded(&failure.output);
        let text = if telling.len() < all.lines().count() {
            format!("{}\n\n{all}", telling.join("\n"))
        } else {
            all
        };
        let exit = failure.exit_status.map(|status| format!(", exit {status}")).unwrap_or_default();
        Some(Self {
            title: format!("{}: output of step {}{exit}", record.title(), failure.step),
            text,
            offset: 0,
        })
    }
}

impl Model {
    /// The text of the overlay on top, if it is one that is read.
    pub fn block(&self) -> Option<TextBlock> {
        self.overlays.last().and_then(|overlay| self.paper_of(overlay))
    }

    /// The text of an overlay that is read.
    pub fn paper_of(&self, overlay: &Overlay) -> Option<TextBlock> {
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
            Overlay::Output(id, _) => self.jobs.get(*id).map(|job| output(job, width)),
            Overlay::Help(_) => Some(self.help(width)),
            Overlay::Error(problem, _) => Some(error(problem, width)),
            Overlay::Create(_)
            | Overlay::Confirm(_)
            | Overlay::Jobs(_)
            | Overlay::Palette(..)
            | Overlay::Logs(_)
            | Overlay::Shell(_)
            | Overlay::Labels(_)
            | Overlay::ActionForm(_)
            | Overlay::Patches(_) => None,
        }
    }

    fn present(&self) -> Present<'_> {
        Present { now: self.now, zone: &self.zone }
    }

    fn help(&self, width: usize) -> TextBlock {
        let mut block = TextBlock::new(width);
        for mode in Mode::ALL {
            block.heading(mode.title());
            for (keys, help) in self.keymap.help(*mode) {
                block.pair(&keys, Role::Plain, help);
            }
        }
        block.heading("This console");
        block.pair("acts as", Role::Plain, &self.actor);
        if self.read_only {
            block.pair("read-only", Role::Warn, "keys that change something are refused");
        }
        let later = TABLE.iter().filter(|row| row.action.is_later()).count();
        block.text(
            Role::Dim,
            2,
            &format!("{later} more actions have their keys kept free and come with later versions"),
        );
        block.text(
            Role::Dim,
            2,
            "every action can be put on another key: dashboard.keys in the configuration",
        );
        block
    }
}

fn output(job: &Job, width: usize) -> TextBlock {
    let mut block = TextBlock::new(width);
    if job.dropped > 0 {
        block.text(Role::Dim, 0, &format!("{} earlier lines were dropped", job.dropped));
    }
    if job.output.is_empty() {
        block.text(Role::Dim, 0, "it has written nothing yet");
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
    let mut block = TextBlock::new(width);
    block.text(Role::Bad, 0, &problem.message);
    if !problem.causes.is_empty() {
        block.heading("Because");
        for cause in &problem.causes {
            block.text(Role::Plain, 2, cause);
        }
    }
    if let Some(hint) = &problem.hint {
        block.heading("What to do");
        block.text(Role::Key, 2, hint);
    }
    block.gap();
    block.pair("code", Role::Dim, problem.code.as_str());
    if problem.retryable {
        block.pair("", Role::Dim, "the same request may succeed later");
    }
    block
}
