//! Filter of events: words that stand anywhere, and fields: `kind:` `sandbox:` `by:` `host:` `reason:` `since:` `before:`; `!` or
//! `-` before one negates it, as in the list's filter.

use super::filter::{terms, unknown_field};
use crate::domain::Time;
use crate::domain::event::EventKind;
use crate::domain::profile::Seconds;
use crate::domain::text::nearest;

/// Part of an event that a term looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventField {
    /// Kind of the event.
    Kind,
    /// Id and name of the sandbox.
    Sandbox,
    /// Actor who caused it.
    By,
    Host,
    /// Why.
    Reason,
    /// Rest of it, in words.
    Text,
}

impl EventField {
    const NAMED: [(&'static str, Self); 5] = [
        ("kind", Self::Kind),
        ("sandbox", Self::Sandbox),
        ("by", Self::By),
        ("host", Self::Host),
        ("reason", Self::Reason),
    ];
    const ALL: [Self; 6] =
        [Self::Kind, Self::Sandbox, Self::By, Self::Host, Self::Reason, Self::Text];
}

/// Event as the filter sees it: clean and in small letters.
pub trait EventFacets {
    /// Text of a field; empty where it has none.
    fn facet(&self, field: EventField) -> &str;
    /// When it happened.
    fn time(&self) -> Time;
}

/// Names of the fields of time: it happened in so long a time that ends now, or before that.
const SINCE: &str = "since";
const BEFORE: &str = "before";

/// Text that must stand in a field, or must not; without a field, in any.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Term {
    negated: bool,
    field: Option<EventField>,
    value: String,
}

/// A parsed filter. Every term must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventFilter {
    text: String,
    terms: Vec<Term>,
    since: Option<Seconds>,
    before: Option<Seconds>,
    problem: Option<String>,
}

impl EventFilter {
    /// Reads a filter as typed.
    pub fn parse(text: &str) -> Self {
        let mut filter = Self { text: text.to_owned(), ..Self::default() };
        for (negated, word) in terms(text) {
            let term = match word.split_once(':') {
                None => Term { negated, field: None, value: word },
                // An actor is written with a colon too: `agt:nightly`.
                Some(("adm" | "agt" | "atm", _)) => {
                    Term { negated, field: Some(EventField::By), value: word }
                }
                Some((name @ (SINCE | BEFORE), value)) => {
                    filter.take_time(name, value);
                    continue;
                }
                Some((name, value)) => {
                    let known = EventField::NAMED.iter().find(|(field, _)| *field == name);
                    let Some((_, field)) = known else {
                        let times = [(SINCE, EventField::Text), (BEFORE, EventField::Text)];
                        let all: Vec<_> = EventField::NAMED.into_iter().chain(times).collect();
                        filter.problem = Some(unknown_field(name, &all));
                        continue;
                    };
                    if *field == EventField::Kind {
                        filter.problem = filter.problem.or_else(|| unknown_kind(value));
                    }
                    Term { negated, field: Some(*field), value: value.to_owned() }
                }
            };
            // One that is being typed keeps everything, negated or not.
            if !term.value.is_empty() {
                filter.terms.push(term);
            }
        }
        filter
    }

    fn take_time(&mut self, name: &str, value: &str) {
        match value.parse::<Seconds>() {
            Ok(ago) if name == SINCE => self.since = Some(ago),
            Ok(ago) => self.before = Some(ago),
            // It is being typed.
            Err(_) if value.is_empty() => {}
            Err(_) => self.problem = Some(format!("{name}: takes how long ago, such as 2h or 3d")),
        }
    }

    /// How far back it looks, where it says so.
    pub fn since(&self) -> Option<Seconds> {
        self.since
    }

    /// Text as typed.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Word of it that is not understood, and what may be meant.
    pub fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }

    /// Whether everything passes.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty() && self.since.is_none() && self.before.is_none()
    }

    /// Whether something passes.
    pub fn passes(&self, of: &impl EventFacets, now: Time) -> bool {
        let begin = self.since.map(|ago| now.minus_seconds(ago.get()));
        let end = self.before.map(|ago| now.minus_seconds(ago.get()));
        if begin.is_some_and(|begin| of.time() < begin) || end.is_some_and(|end| of.time() >= end) {
            return false;
        }
        self.terms.iter().all(|term| {
            let holds = |field| of.facet(field).contains(&term.value);
            let found = match term.field {
                Some(field) => holds(field),
                None => EventField::ALL.into_iter().any(holds),
            };
            found != term.negated
        })
    }
}

/// Why nothing can be of such a kind, if nothing can.
fn unknown_kind(value: &str) -> Option<String> {
    let known = || EventKind::ALL.iter().map(EventKind::as_str);
    if known().any(|kind| kind.contains(value)) {
        return None;
    }
    let words = known().map(|kind| kind.rsplit('.').next().unwrap_or(kind));
    let near = nearest(value, words).map(|near| format!(": did you mean {near}?"));
    Some(format!("there is no kind {value}{}", near.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Destroyed;

    impl EventFacets for Destroyed {
        fn facet(&self, field: EventField) -> &str {
            match field {
                EventField::Kind => "sandbox.destroyed",
                EventField::Sandbox => "a1b2c3d4 shop-7",
                EventField::By => "agt:nightly",
                EventField::Host => "coulombcore",
                EventField::Reason => "ttl_expired",
                EventField::Text => "its time was over",
            }
        }

        fn time(&self) -> Time {
            Time::from_unix(10_000)
        }
    }

    #[test]
    fn terms_hold_or_are_negated() {
        for (text, expected) in [
            ("", true),
            ("kind:destroyed", true),
            ("kind:ready", false),
            ("!kind:ready", true),
            ("by:nightly", true),
            ("agt:nightly", true),
            ("!agt:nightly", false),
            ("-by:nightly", false),
            ("by:kim", false),
            ("host:coul reason:ttl", true),
            ("sandbox:shop", true),
            ("sandbox:a1b2", true),
            ("shop time", true),
            ("Shop !over", false),
            ("!host:", true),
            ("nobody", false),
            ("since:2h", true),
            ("since:1h", false),
            ("before:1h", true),
            ("before:2h", false),
            ("since:", true),
        ] {
            let now = Time::from_unix(10_000 + 5400);
            assert_eq!(EventFilter::parse(text).passes(&Destroyed, now), expected, "{text}");
        }
    }

    #[test]
    fn what_is_not_known_is_told_with_the_nearest_name() {
        let problem = |text| EventFilter::parse(text).problem().map(str::to_owned);
        assert_eq!(
            problem("knd:ready").as_deref(),
            Some("there is no field knd: did you mean kind:?")
        );
        assert_eq!(
            problem("state:ready").as_deref(),
            Some(
                "there is no field state: there are kind: sandbox: by: host: reason: since: before:"
            )
        );
        assert_eq!(
            problem("kind:destoyed").as_deref(),
            Some("there is no kind destoyed: did you mean destroyed?")
        );
        assert_eq!(
            problem("since:monday").as_deref(),
            Some("since: takes how long ago, such as 2h or 3d")
        );
        assert_eq!(problem("kind:dest by: charge"), None);
    }
}
