//! Words above the items of a reap plan: what to know before, what is done, sums.

use super::reap::is_unjudged;
use super::{Area, Job, Load, Model, Role, age_of, bytes, many, wrap};
use crate::domain::text::clean_line;
use crate::present::stale::reap_outcomes;
use crate::present::{Spans, summed};
use crate::tui::keymap::{Action, Mode};

/// Rows of an overlay below which there is room for the least only.
const FEW_ROWS: u16 = 10;

/// Where the parts of the overlay are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReapLayout {
    /// Lines above the items, which stay in sight.
    pub head: Vec<Spans>,
    /// The items.
    pub list: Area,
    /// Lines of each.
    pub each: u16,
    /// Lines about the item under the cursor.
    pub strip: Area,
}

impl Model {
    /// Where the parts of the overlay are.
    pub fn reap_layout(&self) -> ReapLayout {
        let area = self.screen().overlay_text();
        let each = match area.width {
            96.. => 2,
            56..=95 => 3,
            _ => 4,
        };
        let strip = match area.height {
            0..FEW_ROWS => 1,
            FEW_ROWS..=20 => 2,
            _ => 3,
        };
        let mut head = self.reap_head(usize::from(area.width));
        // An item has its room before what stands above all of them; what is wrong comes first there.
        let room = area.height.saturating_sub(each + strip);
        head.truncate(usize::from(room.min((area.height / 2).max(1))));
        let above = u16::try_from(head.len()).unwrap_or(0);
        let list =
            Area { y: area.y + above, height: area.height.saturating_sub(above + strip), ..area };
        let strip = Area { y: list.y + list.height, height: strip.min(area.height), ..area };
        ReapLayout { head, list, each, strip }
    }

    /// `Reap plan-1a2b3c4d  8 to do of 12`.
    pub fn reap_title(&self) -> String {
        let reap = &self.reap;
        match (&reap.load, reap.id()) {
            (Load::Loading, _) => "Reap: what is stale".to_owned(),
            (Load::Failed(_), _) => "Reap: no plan".to_owned(),
            (Load::Ready, None) => format!("Stale  {}", reap.items().len()),
            (Load::Ready, Some(id)) => {
                let made = reap.at.map(|at| format!(", {} old", age_of(at, self.now)));
                let made = made.unwrap_or_default();
                format!("Reap {id}  {} to do of {}{made}", reap.to_do().count(), reap.items().len())
            }
        }
    }

    /// Lines above the items: what to know before, what is done, sums by class and host.
    fn reap_head(&self, width: usize) -> Vec<Spans> {
        let mut lines = self.reap_notes();
        lines.extend(self.reap_sums());
        let wrapped = lines.into_iter().flat_map(|(role, text)| {
            let parts = wrap(&clean_line(&text, 600), width);
            parts.into_iter().map(move |part| vec![(role, part)])
        });
        wrapped.collect()
    }

    /// Sums of what is to do, by class and by host.
    fn reap_sums(&self) -> Vec<(Role, String)> {
        let items = self.reap.items();
        if items.is_empty() {
            return Vec::new();
        }
        let classes = summed(items.iter().map(|item| item.class.to_string()));
        let hosts = summed(items.iter().map(|item| format!("on {}", item.host)));
        let chosen = self.reap.to_do().map(|(at, _)| self.reap.choice(at).to_string());
        let freed: u64 = self.reap.to_do().filter_map(|(_, item)| item.bytes).sum();
        let freed = if freed == 0 { String::new() } else { format!(", {} on hosts", bytes(freed)) };
        let sum = match (self.reap.to_do().count(), self.reap.is_plan()) {
            (0, _) => "nothing to do".to_owned(),
            (count, true) => format!("{count} to do: {}{freed}", summed(chosen)),
            (_, false) => format!("a reap would: {}{freed}", summed(chosen)),
        };
        vec![(Role::Title, sum), (Role::Plain, classes), (Role::Dim, hosts)]
    }

    /// Warnings before anything is pressed, the most important first.
    fn reap_notes(&self) -> Vec<(Role, String)> {
        let reap = &self.reap;
        let key = |action| self.keymap.first(Mode::Reap, action).unwrap_or_default();
        let mut notes = Vec::new();
        if let Some(job) = reap.job.and_then(|id| self.jobs.get(id)) {
            notes.push(self.reap_progress(job));
        }
        if let Some(held) = &reap.held_back {
            notes.push((Role::Bad, format!("⚠ nothing is reaped from here: {}", held.message)));
            notes.extend(held.hint.clone().map(|hint| (Role::Key, hint)));
        }
        if reap.job.is_none() && reap.is_over(self.now) {
            let words = "⚠ this plan is too old to be applied";
            notes.push((Role::Warn, format!("{words}: {} makes a new one", key(Action::Retry))));
        }
        if self.read_only {
            let words = "this console is read-only: this is looked at, and not applied";
            notes.push((Role::Warn, words.to_owned()));
        }
        let changed = self.reap_changes().len();
        if changed > 0 {
            let left = if changed == 1 { "it is left out" } else { "they are left out" };
            let changed = many(changed, "item has", "items have");
            let new = key(Action::Retry);
            let words = format!("⚠ {changed} changed since: {left}; {new} makes a new plan");
            notes.push((Role::Warn, words));
        }
        let unjudged: Vec<&str> = reap
            .hosts
            .iter()
            .filter(|pass| is_unjudged(pass))
            .map(|pass| pass.host.as_str())
            .collect();
        if !unjudged.is_empty() {
            let hosts = many(unjudged.len(), "host", "hosts");
            let names = unjudged.join(", ");
            notes.push((Role::Warn, format!("⚠ nothing is judged on {hosts}: {names}")));
        }
        if let Some(class) = &reap.class {
            let hidden = match reap.hidden() {
                0 => String::new(),
                hidden => format!("; {hidden} to do are not shown, and are done too"),
            };
            notes.push((Role::Accent, format!("only {class}{hidden}")));
        }
        notes
    }

    /// How far it is applied, or what came of it.
    fn reap_progress(&self, job: &Job) -> (Role, String) {
        let (glyph, role) = job.sign();
        let reap = &self.reap;
        if job.is_running() {
            let done =
                format!("{} of {} done", reap.done_count(), job.part.map_or(0, |(_, of)| of));
            let cancel = self.keymap.first(Mode::Reap, Action::CancelJob).unwrap_or_default();
            let word = job.state.word();
            return (role, format!("{glyph} {word}: {done}; {cancel} cancels"));
        }
        let outcomes = reap_outcomes(|outcome| reap.count(outcome));
        let words = if outcomes.is_empty() { self.job_words(job) } else { outcomes };
        let problem = job.state.problem().map(|problem| format!("; {}", problem.message));
        (role, format!("{glyph} {}: {words}{}", job.state.word(), problem.unwrap_or_default()))
    }
}
