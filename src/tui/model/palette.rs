//! What the command palette offers for what was typed.

use nucleo_matcher::Utf32Str;
use nucleo_matcher::pattern::{AtomKind, CaseMatching, Normalization, Pattern};

use super::filter::Filter;
use crate::tui::keymap::{Action, Mode, TABLE};

/// Every action of the panes that matches, the best first.
pub fn palette_matches(typed: &str) -> Vec<Action> {
    let pattern = Pattern::new(typed, CaseMatching::Ignore, Normalization::Smart, AtomKind::Fuzzy);
    let mut matcher = Filter::matcher();
    let mut chars = Vec::new();
    let offered = |action: Action| !action.is_later() && action != Action::Palette;
    let mut found: Vec<(u32, Action)> = TABLE
        .iter()
        .filter(|row| row.modes.contains(&Mode::Main) && offered(row.action))
        .filter_map(|row| {
            let text = format!("{} {}", row.action.name().replace('_', " "), row.help);
            pattern.score(Utf32Str::new(&text, &mut chars), &mut matcher).map(|score| (score, row.action))
        })
        .collect();
    found.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    found.into_iter().map(|(_, action)| action).collect()
}
