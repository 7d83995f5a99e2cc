//! Palette ranking. An exact name comes first, then the beginning of a name, of a word of a name, then letters of a name;
//! descriptions count for nothing. What takes something away is offered by its name or its beginning alone.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{Entry, Model, SortKey};
use crate::domain::State;
use crate::domain::lineage::SnapshotView;
use crate::domain::name::{HostName, SandboxId, SnapshotId};
use crate::domain::snapshot::SnapshotState;
use crate::domain::text::nearest;
use crate::tui::keymap::{Action, Mode, TABLE};

/// Sandboxes of a name that are offered at most.
const JUMPS: usize = 8;

/// A line of the palette.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Offer {
    /// An action, which has a key too.
    Action(Action),
    /// Opens this host.
    Host(HostName),
    /// Filters the sandboxes so, as in `state:failed`.
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
            Self::Host(name) => format!("host {name}"),
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
            Self::Host(_) => "what is on it, why it is down".to_owned(),
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
            Self::Host(_) => Action::Host,
            Self::Filter(_) => Action::Filter,
            Self::Sort(_) => Action::Sort,
            Self::Restore(..) => Action::Restore,
            Self::Jump(..) => Action::PaneSandboxes,
        }
    }
}

fn argument_noun(verb: &str) -> &str {
    match verb {
        "sort" => "column",
        "restore" => "snapshot",
        "by" => "actor",
        noun => noun,
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

    /// Why nothing is offered for a verb with an argument: what is not known, and the nearest name.
    pub fn palette_problem(&self, typed: &str) -> Option<String> {
        let typed = typed.trim().to_lowercase();
        let (verb, argument) = typed.split_once(' ')?;
        let argument = argument.trim_start();
        let known = self.known(verb)?;
        if known.iter().any(|(name, _)| rank(name, argument).is_some()) {
            return None;
        }
        let near = nearest(argument, known.iter().map(|(name, _)| name.as_str()));
        let near = near.map(|near| format!(": did you mean {near}?")).unwrap_or_default();
        Some(format!("there is no {} {argument}{near}", argument_noun(verb)))
    }

    /// Offers of a verb with an argument. The verb alone shows every argument, behind the action of that name.
    fn arguments(&self, verb: &str, argument: &str) -> Vec<(Match, Offer)> {
        let ranked = |(name, offer): (String, Offer)| {
            let rank = if argument.is_empty() { Some(Match::Word) } else { rank(&name, argument) };
            Some((rank?, offer))
        };
        let mut found: Vec<(Match, Offer)> =
            self.known(verb).into_iter().flatten().filter_map(ranked).collect();
        // One that has two names, such as a snapshot's name and id, is offered once, by the better one.
        found.sort_by_key(|(rank, _)| *rank);
        let mut seen: Vec<Offer> = Vec::new();
        found.retain(|(_, offer)| {
            let new = !seen.contains(offer);
            seen.push(offer.clone());
            new
        });
        found
    }

    /// Things that a verb can be said of, each by its name; none where it takes no argument.
    fn known(&self, verb: &str) -> Option<Vec<(String, Offer)>> {
        let filter = |value: &str| (value.to_owned(), Offer::Filter(format!("{verb}:{value}")));
        let known = match verb {
            "host" => {
                let names = self.hosts.list.iter().map(|host| &host.view.name);
                names.map(|name| (name.to_string(), Offer::Host(name.clone()))).collect()
            }
            "state" => {
                let states = State::ALL.iter().map(State::as_str).chain(["degraded"]);
                states.map(filter).collect()
            }
            "profile" => {
                self.distinct(|entry| vec![entry.words[2].clone()]).map(|p| filter(&p)).collect()
            }
            "label" => {
                let pairs = |entry: &Entry| {
                    let labels = entry.record.labels.iter();
                    labels.map(|(key, value)| format!("{key}={value}")).collect()
                };
                self.distinct(pairs).map(|pair| filter(&pair)).collect()
            }
            "by" => self
                .distinct(|entry| vec![entry.record.actor.to_string()])
                .map(|actor| filter(&actor))
                .collect(),
            "sort" => SortKey::ALL
                .iter()
                .map(|key| (key.as_str().to_owned(), Offer::Sort(*key)))
                .collect(),
            "restore" => {
                let ready = self.snapshots.all().iter();
                let ready = ready.filter(|view| view.record.state == SnapshotState::Ready);
                let names = |view: &Arc<SnapshotView>| {
                    let (id, title) = (&view.record.id, view.record.title());
                    let offer = Offer::Restore(id.clone(), title.to_owned());
                    [(title.to_owned(), offer.clone()), (id.to_string(), offer)]
                };
                ready.flat_map(names).collect()
            }
            _ => return None,
        };
        Some(known)
    }

    /// Words of the sandboxes, each once, in order.
    fn distinct(&self, words: impl Fn(&Entry) -> Vec<String>) -> impl Iterator<Item = String> {
        let all: BTreeSet<String> = self.sandboxes.all().flat_map(|entry| words(entry)).collect();
        all.into_iter()
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

/// The actions of the panes that are no movement.
fn actions() -> impl Iterator<Item = Action> {
    let in_panes = TABLE.iter().filter(|row| row.modes.contains(&Mode::Main)).map(|row| row.action);
    in_panes.filter(|action| !action.is_movement() && *action != Action::Palette)
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
