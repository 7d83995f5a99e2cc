//! Rows of a reap plan, several lines each; and what is told of the one under the cursor.

use super::reap::ReapRow;
use super::{Job, Model, Role, age, bytes, wrap};
use crate::client::StaleItem;
use crate::domain::stale::{PassState, ReapAction};
use crate::domain::text::{clean_line, columns};
use crate::present::Spans;
use crate::present::error::hinted;
use crate::present::host::owner;
use crate::present::stale::{is_never, outcome_sign};
use crate::tui::keymap::{Action, Mode};

impl Model {
    /// The lines of a row.
    pub fn reap_row(&self, row: ReapRow, each: u16) -> Vec<Spans> {
        let ReapRow::Item(at) = row else { return self.unjudged_row(row) };
        let Some(item) = self.reap.items().get(at) else { return Vec::new() };
        let result = self.reap.result(at);
        let (tick, action) = (self.tick(at, item), self.action_words(at, item));
        let class = (Role::Plain, pad(item.class.as_str(), 15));
        let id = (Role::Title, item.id().to_owned());
        let name = item.name.as_ref().map(|name| (Role::Plain, format!("  {name}")));
        let changed = self.reap_change(at).map(|_| (Role::Warn, "  ⚠ changed since".to_owned()));
        let said = match result {
            Some(result) => {
                (outcome_sign(result).1, format!("{}: {}", result.outcome, result.message))
            }
            None => (Role::Dim, item.why.clone()),
        };
        let place = vec![(Role::Plain, format!("    {}", place(item)))];
        let size = (Role::Plain, size(item));
        let dim = |spans: Spans| -> Spans {
            let step_back = is_never(item).is_some();
            spans
                .into_iter()
                .map(|(role, text)| (if step_back { Role::Dim } else { role }, text))
                .collect()
        };
        let gap = || (Role::Plain, "  ".to_owned());
        let indent = || (Role::Plain, "    ".to_owned());
        let named =
            |first: Spans| first.into_iter().chain(name.clone()).chain(changed.clone()).collect();
        match each {
            2 => vec![
                dim(named(vec![tick, action, class, id])),
                dim(place.into_iter().chain([gap(), size, gap(), said]).collect()),
            ],
            3 => vec![
                dim(named(vec![tick, action, class, id])),
                dim(place.into_iter().chain([gap(), size]).collect()),
                dim(vec![indent(), said]),
            ],
            _ => vec![
                dim(vec![tick, action, class]),
                dim(named(vec![indent(), id])),
                dim(place),
                dim(vec![indent(), size, gap(), said]),
            ],
        }
    }

    /// Tick of the row, or its result.
    fn tick(&self, at: usize, item: &StaleItem) -> (Role, String) {
        let running = self.reap.job.and_then(|id| self.jobs.get(id)).is_some_and(Job::is_running);
        match (self.reap.result(at), self.reap.choice(at)) {
            (Some(result), _) => {
                let (glyph, role) = outcome_sign(result);
                (role, format!(" {glyph}  "))
            }
            _ if is_never(item).is_some() => (Role::Dim, "    ".to_owned()),
            (None, ReapAction::Keep) => (Role::Plain, "[ ] ".to_owned()),
            (None, _) if running => (Role::Busy, " ◌  ".to_owned()),
            (None, _) => (Role::Accent, "[x] ".to_owned()),
        }
    }

    /// Word for what is to be done; another colour where the operator chose it.
    fn action_words(&self, at: usize, item: &StaleItem) -> (Role, String) {
        let chosen = self.reap.choice(at);
        let role = match chosen {
            action if *action != item.action => Role::Accent,
            ReapAction::Keep => Role::Dim,
            _ => Role::Plain,
        };
        (role, pad(chosen.as_str(), 8))
    }

    fn unjudged_row(&self, row: ReapRow) -> Vec<Spans> {
        let ReapRow::Host(at) = row else { return Vec::new() };
        let Some(pass) = self.reap.hosts.get(at) else { return Vec::new() };
        let why = pass.error.as_ref().map(|error| error.message.clone()).unwrap_or_default();
        let what = match pass.state {
            PassState::Changed => "it is not the host that is recorded: nothing on it is judged",
            PassState::Unread | PassState::Read | PassState::Forbidden | PassState::Other(_) => {
                "it could not be read: nothing on it is judged"
            }
        };
        vec![
            vec![(Role::Warn, "    ✗ host ".to_owned()), (Role::Title, pass.host.to_string())],
            vec![(Role::Warn, format!("    {what}"))],
            vec![(Role::Dim, format!("    {why}"))],
        ]
    }

    /// Lines on the row under the cursor: why it is stale and what is done, or why nothing is; then its keys.
    pub fn reap_strip(&self, width: usize, height: usize) -> Vec<Spans> {
        let Some(row) = self.reap.selected() else { return Vec::new() };
        let (role, text) = match row {
            ReapRow::Item(at) => self.item_words(at),
            ReapRow::Host(at) => {
                let error = self.reap.hosts.get(at).and_then(|pass| pass.error.as_ref());
                let words = error.map(|error| hinted(&error.message, error.hint.as_ref()));
                (Role::Warn, words.unwrap_or_default())
            }
        };
        let text = clean_line(&text, 1000);
        let mut lines: Vec<Spans> =
            wrap(&text, width).into_iter().map(|part| vec![(role, part)]).collect();
        let keys = self.reap_keys(row);
        let room = height.saturating_sub(usize::from(!keys.is_empty() && height > 1));
        lines.truncate(room);
        if height > 1 && !keys.is_empty() {
            lines.push(keys);
        }
        lines
    }

    /// Everything that is known of an item, in a sentence or two.
    fn item_words(&self, at: usize) -> (Role, String) {
        let Some(item) = self.reap.items().get(at) else { return (Role::Plain, String::new()) };
        if let Some(result) = self.reap.result(at) {
            let hint = result.error.as_ref().and_then(|error| error.hint.as_ref());
            let words = hinted(&format!("{}: {}", result.outcome, result.message), hint);
            return (outcome_sign(result).1, words);
        }
        if let Some(change) = self.reap_change(at) {
            return (Role::Warn, format!("changed since the plan: {change}; it was {}", item.why));
        }
        if let Some(never) = is_never(item) {
            return (Role::Dim, format!("{}; {never}", item.why));
        }
        let forced =
            if self.reap.is_forced(at) { "; not by itself: it asks for the count" } else { "" };
        (Role::Plain, format!("{}{forced}", item.why))
    }

    /// Keys that do something with the row under the cursor.
    fn reap_keys(&self, row: ReapRow) -> Spans {
        let ReapRow::Item(at) = row else { return Spans::new() };
        let Some(item) = self.reap.items().get(at) else { return Spans::new() };
        let may = |action| item.possible.contains(&action) && is_never(item).is_none();
        let ticked = *self.reap.choice(at) != ReapAction::Keep;
        let fixed = self.reap.job.is_some() || !self.reap.is_plan() || is_never(item).is_some();
        let keys = [
            (Action::Tick, if ticked { "keep" } else { "take" }, !fixed),
            (Action::AdoptInstead, "adopt instead", !fixed && may(ReapAction::Adopt)),
            (Action::RemoveInstead, "remove instead", !fixed && may(ReapAction::Remove)),
            (Action::Open, "all of it", true),
        ];
        let mut spans = Spans::new();
        for (action, what, _) in keys.into_iter().filter(|(.., is_there)| *is_there) {
            let Some(key) = self.keymap.first(Mode::Reap, action) else { continue };
            let role = if self.unavailable(action).is_some() { Role::Dim } else { Role::Key };
            spans.extend([(role, key), (Role::Dim, format!(" {what}   "))]);
        }
        spans
    }

    /// Text of each row, to be searched.
    pub fn reap_texts(&self) -> Vec<String> {
        let text = |row: &ReapRow| {
            let lines = self.reap_row(*row, 3).into_iter().flatten();
            lines.map(|(_, text)| text).collect::<Vec<_>>().join(" ")
        };
        self.reap.rows().iter().map(text).collect()
    }
}

/// Host and owner.
fn place(item: &StaleItem) -> String {
    format!("on {}, of {}", item.host, owner(item.owner.as_deref()))
}

/// Age and size.
fn size(item: &StaleItem) -> String {
    let old = item.age_s.map(|seconds| format!("{} old", age(seconds)));
    let old = old.unwrap_or_else(|| "of unknown age".to_owned());
    let size = item.bytes.map_or_else(|| "not measured".to_owned(), bytes);
    format!("{old}, {size}")
}

fn pad(text: &str, width: usize) -> String {
    let text = clean_line(text, width);
    let fill = " ".repeat(width.saturating_sub(columns(&text)) + 1);
    format!("{text}{fill}")
}
