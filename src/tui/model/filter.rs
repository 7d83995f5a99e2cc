//! Filter: fuzzy words over id, name, profile and host, and fields exactly: `host:` `state:` `profile:` `label:` `by:`. A word
//! that `!` or `-` stands before must not match. A field that is not known is told, and filters nothing.

use std::collections::BTreeMap;

use nucleo_matcher::pattern::{AtomKind, CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};

use super::rows::Entry;
use crate::domain::State;
use crate::domain::actor::Actor;
use crate::domain::snapshot::SnapshotState;
use crate::domain::text::nearest;

/// A parsed filter. Every word must match, or must not where it is negated.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    text: String,
    words: Vec<Test<Word>>,
    fields: Vec<Test<(Field, String)>>,
    problem: Option<String>,
}

/// A word, and its pattern where it is not plain ASCII.
#[derive(Debug, Clone)]
struct Word {
    text: String,
    pattern: Pattern,
}

/// Text that a row must match, or must not.
#[derive(Debug, Clone)]
struct Test<T> {
    negated: bool,
    of: T,
}

/// Parts of a row that the filter looks at, clean and lowercase but for labels and actor.
#[derive(Debug, Clone, Copy)]
pub struct Facets<'a> {
    /// Id, name, profile, host.
    pub words: &'a [String; 4],
    pub state: &'a str,
    /// Whether a service of it should run and does not.
    pub degraded: bool,
    pub labels: &'a BTreeMap<String, String>,
    /// Actor who made it, where that is known of the row.
    pub actor: Option<&'a Actor>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Host,
    State,
    Profile,
    Label,
    By,
}

impl Field {
    const ALL: [(&'static str, Self); 5] = [
        ("host", Self::Host),
        ("state", Self::State),
        ("profile", Self::Profile),
        ("label", Self::Label),
        ("by", Self::By),
    ];
}

/// The list's word for a sandbox that is being made, and the states that it stands for.
const CREATING: &str = "creating";
const MADE: [&str; 2] = ["requested", "provisioning"];

/// A word that is no state, and that `state:` takes all the same.
const DEGRADED: &str = "degraded";

impl Filter {
    /// Reads a filter as typed.
    pub fn parse(text: &str) -> Self {
        let mut filter = Self { text: text.to_owned(), ..Self::default() };
        for (negated, word) in terms(text) {
            filter.add(&word, negated);
        }
        filter
    }

    /// Takes a word, in small letters.
    fn add(&mut self, word: &str, negated: bool) {
        if word.is_empty() {
            return;
        }
        let Some((name, value)) = word.split_once(':') else {
            let pattern =
                Pattern::new(word, CaseMatching::Ignore, Normalization::Smart, AtomKind::Fuzzy);
            let of = Word { text: word.to_owned(), pattern };
            return self.words.push(Test { negated, of });
        };
        let known = Field::ALL.iter().find(|(field, _)| *field == name);
        let Some((_, field)) = known else {
            self.problem = Some(unknown_field(name, &Field::ALL));
            return;
        };
        let value = match field {
            Field::Profile => value.strip_prefix("profile.").unwrap_or(value),
            Field::State => {
                self.problem = self.problem.take().or_else(|| unknown_state(value));
                value
            }
            Field::Host | Field::Label | Field::By => value,
        };
        // One that is being typed keeps everything, negated or not.
        if !value.is_empty() {
            self.fields.push(Test { negated, of: (*field, value.to_owned()) });
        }
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
        self.words.is_empty() && self.fields.is_empty()
    }

    /// Whether it asks for destroyed ones, which the list does not hold.
    pub fn wants_destroyed(&self) -> bool {
        self.fields.iter().any(|test| {
            let (field, value) = &test.of;
            !test.negated && *field == Field::State && *value == State::Destroyed.as_str()
        })
    }

    /// Whether everything that passes this one passed `earlier` too, so that only those need a look.
    pub fn narrows(&self, earlier: &Self) -> bool {
        self.text.starts_with(&earlier.text)
            && !self.text.contains(':')
            && !self.words.iter().any(|test| test.negated)
    }

    /// A matcher to be used for many rows.
    pub fn matcher() -> Matcher {
        Matcher::new(Config::DEFAULT)
    }

    /// Whether a row passes. A word passes when any one field holds it: across fields almost everything would.
    pub fn passes(&self, entry: &Entry, matcher: &mut Matcher) -> bool {
        let facets = Facets {
            words: &entry.words,
            state: &entry.state,
            degraded: entry.degraded > 0,
            labels: &entry.record.labels,
            actor: Some(&entry.record.actor),
        };
        self.passes_facets(&facets, matcher)
    }

    /// Whether something with such facets passes: see [`Self::passes`].
    pub fn passes_facets(&self, facets: &Facets<'_>, matcher: &mut Matcher) -> bool {
        let mut chars = Vec::new();
        self.fields.iter().all(|test| facets.has(test.of.0, &test.of.1) != test.negated)
            && self.words.iter().all(|test| {
                let word = &test.of;
                let holds = facets.words.iter().any(|field| {
                    if test.negated {
                        // The word as it is: were its letters enough, far too much would go.
                        field.contains(&word.text)
                    } else if word.text.is_ascii() && field.is_ascii() {
                        // Scores are not asked for: in ASCII a fuzzy match is a subsequence, ten times faster.
                        is_subsequence(&word.text, field)
                    } else {
                        word.pattern.score(Utf32Str::new(field, &mut chars), matcher).is_some()
                    }
                });
                holds != test.negated
            })
    }
}

impl Facets<'_> {
    fn has(&self, field: Field, value: &str) -> bool {
        match field {
            Field::Host => self.words[3].contains(value),
            Field::Profile => self.words[2].contains(value),
            Field::State => {
                let is_made = || MADE.contains(&self.state);
                self.state.contains(value)
                    || (self.degraded && DEGRADED.starts_with(value))
                    || (CREATING.starts_with(value) && is_made())
            }
            Field::Label => has_label(self.labels, value),
            Field::By => {
                self.actor.is_some_and(|actor| actor.to_string().to_lowercase().contains(value))
            }
        }
    }
}

/// Words of a filter as typed, in small letters, each with whether it is negated.
pub(super) fn terms(text: &str) -> impl Iterator<Item = (bool, String)> {
    text.split_whitespace().map(|word| {
        let bare = word.strip_prefix(['!', '-']);
        (bare.is_some(), bare.unwrap_or(word).to_lowercase())
    })
}

/// Says that there is no such field, with the nearest one, or with all.
pub(super) fn unknown_field<T>(name: &str, known: &[(&'static str, T)]) -> String {
    if let Some(near) = nearest(name, known.iter().map(|(field, _)| *field)) {
        format!("there is no field {name}: did you mean {near}:?")
    } else {
        let all: Vec<String> = known.iter().map(|(field, _)| format!("{field}:")).collect();
        format!("there is no field {name}: there are {}", all.join(" "))
    }
}

/// Why no row can have such a state, if none can.
fn unknown_state(value: &str) -> Option<String> {
    let of_snapshots = || SnapshotState::ALL.iter().map(SnapshotState::as_str);
    let known = || State::ALL.iter().map(State::as_str).chain(of_snapshots()).chain([DEGRADED]);
    if known().any(|state| state.contains(value)) {
        return None;
    }
    let near = nearest(value, known()).map(|near| format!(": did you mean {near}?"));
    Some(format!("there is no state {value}{}", near.unwrap_or_default()))
}

fn is_subsequence(word: &str, field: &str) -> bool {
    let mut left = field.bytes();
    word.bytes().all(|wanted| left.any(|byte| byte == wanted))
}

fn has_label(labels: &BTreeMap<String, String>, value: &str) -> bool {
    labels.iter().any(|(key, own)| match value.split_once('=') {
        Some((wanted, part)) => key.to_lowercase() == wanted && own.to_lowercase().contains(part),
        None => key.to_lowercase().contains(value),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::actor::ActorType;

    /// Which of the words of a filter pass a sandbox `web-1` of `ci`, on `bardock`, by `agt:nightly`, labelled `team=core`.
    fn passes(text: &str) -> bool {
        let words = ["a1b2c3d4", "web-1", "ci", "bardock"].map(str::to_owned);
        let labels = BTreeMap::from([("team".to_owned(), "Core".to_owned())]);
        let actor = Actor { kind: ActorType::Agt, name: "nightly".to_owned() };
        let facets = Facets {
            words: &words,
            state: "ready",
            degraded: true,
            labels: &labels,
            actor: Some(&actor),
        };
        Filter::parse(text).passes_facets(&facets, &mut Filter::matcher())
    }

    #[test]
    fn words_and_fields_pass_or_are_negated() {
        for (text, expected) in [
            ("", true),
            ("wb", true),
            ("zz", false),
            ("!zz", true),
            ("-web", false),
            ("-wb", true),
            ("host:bard -host:vm", true),
            ("!host:bard", false),
            ("-host:", true),
            ("state:degr", true),
            ("-state:failed", true),
            ("by:nightly", true),
            ("by:agt:nightly", true),
            ("-by:nightly", false),
            ("by:kim", false),
            ("label:team=core", true),
            ("-label:team", false),
            ("web-1", true),
            ("hots:bardock", true),
        ] {
            assert_eq!(passes(text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_not_known_is_told_with_the_nearest_name() {
        let problem = |text| Filter::parse(text).problem().map(str::to_owned);
        assert_eq!(
            problem("web hots:b").as_deref(),
            Some("there is no field hots: did you mean host:?")
        );
        assert_eq!(
            problem("!x:1").as_deref(),
            Some("there is no field x: there are host: state: profile: label: by:")
        );
        assert_eq!(
            problem("state:faild").as_deref(),
            Some("there is no state faild: did you mean failed?")
        );
        assert_eq!(problem("state:fai host:nowhere by:"), None);
        assert!(Filter::parse("state:destroyed").wants_destroyed());
        assert!(!Filter::parse("-state:destroyed state:dest").wants_destroyed());
    }

    #[test]
    fn a_negated_word_may_bring_rows_back_as_it_is_typed() {
        let filter = |text: &str| Filter::parse(text);
        assert!(filter("web").narrows(&filter("we")));
        assert!(!filter("a -wx").narrows(&filter("a -w")));
        assert!(!filter("host:b").narrows(&filter("host")));
    }
}
