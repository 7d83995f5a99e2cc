//! Time since the operator looked last: what the events of it come to.

use std::collections::{BTreeMap, BTreeSet};

use super::count::many;
use crate::domain::Time;
use crate::domain::event::{Event, EventKind};
use crate::domain::name::SandboxId;

/// Last event that was there when somebody looked, and when that was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastLook {
    /// Number of the event.
    pub seq: u64,
    /// End of that look.
    pub at: Time,
}

/// How far back the time is told of, in seconds: events are kept longer than anybody remembers.
const FURTHEST: u64 = 7 * 86_400;

impl LastLook {
    /// The moment since when is told: of a look that is long past, a week.
    pub fn since(self, now: Time) -> Time {
        self.at.max(now.minus_seconds(FURTHEST))
    }

    fn is_long_past(self, now: Time) -> bool {
        now.since(self.at).as_secs() > FURTHEST
    }
}

/// Counts of events since somebody looked last.
#[derive(Debug, Clone, PartialEq)]
pub struct SinceLastLook {
    /// In a sentence.
    pub text: String,
    /// Events that it tells of, oldest first.
    pub events: Vec<Event>,
}

/// Count that an event belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Counted {
    Created,
    Failed,
    Lost,
    Rebuilt,
    Destroyed,
    Snapshots,
    Hosts,
}

impl Counted {
    fn of(kind: &EventKind) -> Option<Self> {
        match kind {
            EventKind::SandboxReady | EventKind::SandboxRestored => Some(Self::Created),
            EventKind::SandboxFailed => Some(Self::Failed),
            EventKind::SandboxLost => Some(Self::Lost),
            EventKind::SandboxRecreated => Some(Self::Rebuilt),
            EventKind::SandboxDestroyed | EventKind::SandboxForgotten => Some(Self::Destroyed),
            EventKind::SnapshotReady => Some(Self::Snapshots),
            EventKind::HostDown => Some(Self::Hosts),
            _ => None,
        }
    }

    fn words(self, count: usize) -> String {
        match self {
            Self::Created => format!("{count} created"),
            Self::Failed => format!("{count} failed"),
            Self::Lost => format!("{count} lost"),
            Self::Rebuilt => format!("{count} rebuilt"),
            Self::Destroyed => format!("{count} destroyed"),
            Self::Snapshots => many(count, "snapshot", "snapshots"),
            Self::Hosts => format!("{} down", many(count, "host", "hosts")),
        }
    }

    /// Whether nobody does it: it is told without who.
    fn is_nobodys(self) -> bool {
        match self {
            Self::Lost | Self::Hosts => true,
            Self::Created | Self::Failed | Self::Rebuilt | Self::Destroyed | Self::Snapshots => {
                false
            }
        }
    }
}

impl SinceLastLook {
    /// Sum of these events in words; none where nothing happened that one would ask for. `me` is who looks.
    pub fn of(events: Vec<Event>, look: LastLook, now: Time, me: &str) -> Option<Self> {
        // Ready once more after a wake, a rebuild or a moment's absence is no creation.
        let made: BTreeSet<SandboxId> = events
            .iter()
            .filter(|event| {
                matches!(event.kind, EventKind::SandboxRequested | EventKind::SandboxProvisioning)
            })
            .filter_map(|event| event.sandbox_id.clone())
            .collect();
        let rebuilt: BTreeSet<SandboxId> = events
            .iter()
            .filter(|event| event.kind == EventKind::SandboxRecreated)
            .filter_map(|event| event.sandbox_id.clone())
            .collect();
        let mut counted: BTreeMap<Counted, BTreeMap<String, String>> = BTreeMap::new();
        for event in &events {
            let Some(what) = Counted::of(&event.kind) else { continue };
            let is_made = |id: &SandboxId| made.contains(id) && !rebuilt.contains(id);
            if what == Counted::Created && !event.sandbox_id.as_ref().is_some_and(is_made) {
                continue;
            }
            let of_snapshot = event.kind.is_of_snapshot().then(|| event.snapshot_id()).flatten();
            let sandbox = event.sandbox_id.as_ref().map(SandboxId::as_str);
            let subject = of_snapshot.or(sandbox).or(event.host()).unwrap_or(event.id.as_str());
            counted.entry(what).or_default().insert(subject.to_owned(), event.actor.to_string());
        }
        if counted.is_empty() {
            return None;
        }
        let words: Vec<String> = counted
            .iter()
            .map(|(what, by)| {
                let who = if what.is_nobodys() { String::new() } else { by_whom(by, me) };
                format!("{}{who}", what.words(by.len()))
            })
            .collect();
        let since = if look.is_long_past(now) {
            "in the last 7d".to_owned()
        } else {
            "since you last looked".to_owned()
        };
        Some(Self { text: format!("{since}: {}", words.join(", ")), events })
    }
}

/// By whom, where that is not the operator alone.
fn by_whom(by: &BTreeMap<String, String>, me: &str) -> String {
    let others: BTreeSet<&str> =
        by.values().map(String::as_str).filter(|actor| *actor != me).collect();
    let own = by.values().any(|actor| actor == me);
    match (others.len(), own) {
        (0, _) => String::new(),
        (1, false) => format!(" by {}", others.first().copied().unwrap_or_default()),
        (count, false) => format!(" by {count} others"),
        (count, true) => format!(" by you and {}", many(count, "other", "others")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_795_788_202;

    fn event(seq: u64, kind: &str, sandbox: Option<&str>, actor: &str) -> Event {
        let (actor_type, name) = actor.split_once(':').unwrap();
        serde_json::from_value(serde_json::json!({
            "seq": seq, "sandbox_seq": null, "id": format!("e{seq}"), "time": Time::from_unix(NOW),
            "kind": kind, "sandbox_id": sandbox, "actor": {"type": actor_type, "name": name},
            "data": {"host": "coulombcore"}
        }))
        .unwrap()
    }

    fn told(events: &[(&str, Option<&str>, &str)]) -> Option<String> {
        let events = events
            .iter()
            .zip(1..)
            .map(|((kind, sandbox, actor), seq)| event(seq, kind, *sandbox, actor))
            .collect();
        let look = LastLook { seq: 0, at: Time::from_unix(NOW - 3600) };
        SinceLastLook::of(events, look, Time::from_unix(NOW), "adm:kim").map(|since| since.text)
    }

    #[test]
    fn sandboxes_are_counted_once_and_by_whom() {
        let (me, nightly) = ("adm:kim", "agt:nightly");
        let one = told(&[
            ("sandbox.requested", Some("a"), me),
            ("sandbox.ready", Some("a"), me),
            ("sandbox.requested", Some("b"), me),
            ("sandbox.failed", Some("b"), me),
            ("sandbox.failed", Some("b"), me),
            ("sandbox.destroying", Some("c"), nightly),
            ("sandbox.destroyed", Some("c"), nightly),
            ("sandbox.destroyed", Some("d"), nightly),
            ("host.down", None, "atm:sandboxer"),
        ]);
        assert_eq!(
            one.as_deref(),
            Some(
                "since you last looked: 1 created, 1 failed, 2 destroyed by agt:nightly, 1 host down"
            )
        );
        let mixed = told(&[
            ("sandbox.destroyed", Some("a"), me),
            ("sandbox.destroyed", Some("b"), nightly),
        ]);
        assert_eq!(mixed.as_deref(), Some("since you last looked: 2 destroyed by you and 1 other"));
    }

    #[test]
    fn nothing_that_one_would_ask_for_is_no_line() {
        for kind in ["sandbox.labelled", "sandbox.ready", "host.up", "sandbox.something"] {
            assert_eq!(told(&[(kind, Some("a"), "adm:kim")]), None, "{kind}");
        }
        let rebuilt = told(&[
            ("sandbox.provisioning", Some("a"), "adm:kim"),
            ("sandbox.recreated", Some("a"), "adm:kim"),
            ("sandbox.ready", Some("a"), "adm:kim"),
        ]);
        assert_eq!(rebuilt.as_deref(), Some("since you last looked: 1 rebuilt"));
    }

    #[test]
    fn of_a_look_that_is_long_past_a_week_is_told() {
        let look = LastLook { seq: 1, at: Time::from_unix(NOW - 30 * 86_400) };
        let now = Time::from_unix(NOW);
        assert_eq!(look.since(now), Time::from_unix(NOW - 7 * 86_400));
        let events = vec![event(2, "sandbox.lost", Some("a"), "atm:sandboxer")];
        let since = SinceLastLook::of(events, look, now, "adm:kim").unwrap();
        assert_eq!(since.text, "in the last 7d: 1 lost");
    }
}
