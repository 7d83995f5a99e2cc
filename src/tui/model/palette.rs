//! Palette ranking. An exact name comes first, then the beginning of a name, of a word of a name, then letters of a name;
//! descriptions count for nothing. What takes something away is offered by its name or its beginning alone.

use std::sync::Arc;

use super::{Entry, Model, SortKey};
use crate::domain::name::{SandboxId, SnapshotId};
use crate::domain::snapshot::SnapshotState;
use crate::tui::keymap::{Action, Mode, TABLE};

/// Sandboxes of a name that are offered at most.
const JUMPS: usize = 8;

/// A line of the palette.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Offer {
    /// An action, which has a key too.
    Action(Action),
    /// Filters the sandboxes so, as in `host:bardock`.
    Filter(String),
    /// Sorts the sandboxes so.
    Sort(SortKey),
    /// Opens the form of a restore from this snapshot; the text is what that is called.
    Restore(SnapshotId, String),
    /// Goes to this sandbox; the text is what it is called.
    Jump(SandboxId, String),
}

/// How well a name matches; the best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Match {
    Exact,
    Prefix,
    Word,
    Letters,
}

impl Offer {
    /// Its name in the list.
    pub fn name(&self) -> String {
        match self {
            Self::Action(action) => match action.alias() {
                Some(alias) => format!("{} ({alias})", spoken(*action)),
                None => spoken(*action),
            },
            Self::Filter(filter) => filter.replacen(':', " ", 1),
            Self::Sort(key) => format!("sort {}", key.as_str()),
            Self::Restore(_, title) => format!("restore {title}"),
            Self::Jump(_, title) => title.clone(),
        }
    }

    /// A line about it.
    pub fn help(&self) -> String {
        match self {
            Self::Action(action) => action.help().to_owned(),
            Self::Filter(filter) => format!("show only {filter}"),
            Self::Sort(_) => "sort by this column".to_owned(),
            Self::Restore(id, _) => format!("a new sandbox from {id}"),
            Self::Jump(id, _) => format!("go to sandbox {id}"),
        }
    }

    /// The action that it comes down to, by which it may be refused.
    pub fn action(&self) -> Action {
        match self {
            Self::Action(action) => *action,
            Self::Filter(_) => Action::Filter,
            Self::Sort(_) => Action::Sort,
            Self::Restore(..) => Action::Restore,
            Self::Jump(..) => Action::PaneSandboxes,
        }
    }
}

/// An action's name as one says it.
fn spoken(action: Action) -> String {
    action.name().replace('_', " ")
}

impl Model {
    /// The palette's offers for a text, the best first.
    pub fn palette(&self, typed: &str) -> Vec<Offer> {
        let typed = typed.trim().to_lowercase();
        let mut found: Vec<(Match, Offer)> =
            actions().filter_map(|action| offered(action, &typed)).collect();
        let (verb, argument) = typed.split_once(' ').unwrap_or((&typed, ""));
        found.extend(self.arguments(verb, argument.trim_start()));
        found.extend(self.jumps(&typed));
        // A stable sort: among equals the table's order, and actions before names.
        found.sort_by_key(|(rank, _)| *rank);
        found.into_iter().map(|(_, offer)| offer).collect()
    }

    /// Offers of a verb with an argument. The verb alone shows every argument, behind the action of that name.
    fn arguments(&self, verb: &str, argument: &str) -> Vec<(Match, Offer)> {
        let ranked =
            |name: &str| if argument.is_empty() { Some(Match::Word) } else { rank(name, argument) };
        let filter = |field: &str, value: &str| {
            Some((ranked(value)?, Offer::Filter(format!("{field}:{value}"))))
        };
        match verb {
            "host" => self
                .hosts
                .list
                .iter()
                .filter_map(|host| filter(verb, host.view.name.as_str()))
                .collect(),
            "state" => {
                let mut states: Vec<&str> =
                    self.sandboxes.all().map(|entry| entry.state.as_str()).collect();
                states.sort_unstable();
                states.dedup();
                states.into_iter().filter_map(|state| filter(verb, state)).collect()
            }
            "sort" => {
                let key = |key: &SortKey| Some((ranked(key.as_str())?, Offer::Sort(*key)));
                SortKey::ALL.iter().filter_map(key).collect()
            }
            "restore" => {
                let ready = self
                    .snapshots
                    .all()
                    .iter()
                    .filter(|view| view.record.state == SnapshotState::Ready);
                let offer = |(id, title): (&SnapshotId, &str)| {
                    let rank = ranked(title).into_iter().chain(ranked(id.as_str())).min()?;
                    Some((rank, Offer::Restore(id.clone(), title.to_owned())))
                };
                ready.map(|view| (&view.record.id, view.record.title())).filter_map(offer).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Sandboxes whose name or id begins so.
    fn jumps(&self, typed: &str) -> Vec<(Match, Offer)> {
        if typed.is_empty() {
            return Vec::new();
        }
        // Thousands are looked at with every key: what they are searched by is in small letters already.
        let jump = |entry: &Arc<Entry>| {
            let [id, name, ..] = &entry.words;
            let rank = match [id, name] {
                names if names.iter().any(|name| *name == typed) => Match::Exact,
                names if names.iter().any(|name| name.starts_with(typed)) => Match::Prefix,
                _ => return None,
            };
            Some((rank, Offer::Jump(entry.record.id.clone(), entry.record.title().to_owned())))
        };
        let mut jumps: Vec<_> = self.sandboxes.all().filter_map(jump).collect();
        jumps.sort_by_key(|(rank, _)| *rank);
        jumps.truncate(JUMPS);
        jumps
    }
}

/// The actions of the panes that this version has and that are no movement.
fn actions() -> impl Iterator<Item = Action> {
    let in_panes = TABLE.iter().filter(|row| row.modes.contains(&Mode::Main)).map(|row| row.action);
    in_panes
        .filter(|action| !action.is_later() && !action.is_movement() && *action != Action::Palette)
}

fn offered(action: Action, typed: &str) -> Option<(Match, Offer)> {
    let names = std::iter::once(spoken(action)).chain(action.alias().map(str::to_owned));
    let best = names.filter_map(|name| rank(&name, typed)).min()?;
    (best <= Match::Prefix || !action.is_destructive()).then_some((best, Offer::Action(action)))
}

/// How well a name matches what was typed, in small letters.
fn rank(name: &str, typed: &str) -> Option<Match> {
    let name = name.to_lowercase();
    let mut letters = name.chars();
    if name == typed {
        Some(Match::Exact)
    } else if name.starts_with(typed) {
        Some(Match::Prefix)
    } else if name.split([' ', '-', '_', '.']).any(|word| word.starts_with(typed)) {
        Some(Match::Word)
    } else {
        typed.chars().all(|wanted| letters.any(|letter| letter == wanted)).then_some(Match::Letters)
    }
}
