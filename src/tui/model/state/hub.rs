//! State Hub in words: how far it has heard of what happened.

use super::Model;
use crate::present::error::hinted;
use crate::present::{Role, age_of, many};
use crate::tui::model::area::Area;
use crate::tui::model::fetch::Load;

/// Longest wait that is on its way, in seconds: nobody has to look at less.
const ON_ITS_WAY_S: u64 = 60;

impl Model {
    /// The rows of events in their overlay: below what is said of the State Hub.
    pub fn event_rows(&self) -> Area {
        let area = self.screen().overlay_text();
        let above = u16::try_from(self.hub_lines().len()).unwrap_or(0);
        let above = above.min(area.height.saturating_sub(4));
        Area { y: area.y + above, height: area.height - above, ..area }
    }

    /// Trouble with the State Hub in a few words, if there is any.
    pub fn hub_trouble(&self) -> Option<String> {
        if let Load::Failed(_) = &self.hub.load {
            return Some("hub: unreadable".to_owned());
        }
        let backlog = self.hub.backlog.as_ref()?;
        let mut words = Vec::new();
        if backlog.dead > 0 {
            words.push(format!("{} refused", backlog.dead));
        }
        let age = backlog.oldest_at.map(|oldest| self.now.since(oldest).as_secs());
        let late = age.is_some_and(|age| age >= ON_ITS_WAY_S) || backlog.last_error.is_some();
        if backlog.waiting > 0 && late {
            let age = backlog.oldest_at.map(|oldest| format!(" {}", age_of(oldest, self.now)));
            words.push(format!("{} waiting{}", backlog.waiting, age.unwrap_or_default()));
        }
        (!words.is_empty()).then(|| format!("hub {}", words.join(", ")))
    }

    /// The backlog in sentences, with what to do; nothing where none is configured or all was told.
    pub fn hub_lines(&self) -> Vec<(Role, String)> {
        let mut lines = Vec::new();
        if let Load::Failed(problem) = &self.hub.load {
            let words = hinted(&problem.message, problem.hint.as_ref());
            lines.push((Role::Bad, format!("what the State Hub has heard is not known: {words}")));
        }
        let Some(backlog) = &self.hub.backlog else { return lines };
        if backlog.dead > 0 {
            let events = many(count(backlog.dead), "event", "events");
            let words = "for good: `sandboxer doctor` shows where each is kept with its reason";
            lines.push((Role::Warn, format!("State Hub: refused {events} {words}")));
        }
        if backlog.waiting > 0 {
            let events = many(count(backlog.waiting), "event waits", "events wait");
            let oldest = backlog.oldest_at.map(|oldest| age_of(oldest, self.now));
            let oldest = oldest.map(|age| format!(", the oldest for {age}")).unwrap_or_default();
            let next = backlog.next_try_at.filter(|next| *next > self.now);
            let next = next.map(|next| format!("; next try in {}", age_of(self.now, next)));
            let error = backlog.last_error.as_ref().map(|error| format!("; {error}"));
            let role = if error.is_some() { Role::Warn } else { Role::Dim };
            let (next, error) = (next.unwrap_or_default(), error.unwrap_or_default());
            let now = " (`sandboxer events flush` tries now)";
            lines.push((role, format!("State Hub: {events}{oldest}{next}{now}{error}")));
        }
        lines
    }
}

fn count(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
