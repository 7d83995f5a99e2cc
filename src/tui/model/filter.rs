//! The filter: fuzzy words over id, name, profile and host, and `host:` `state:` `profile:` `label:` exactly.

use std::collections::BTreeMap;

use nucleo_matcher::pattern::{AtomKind, CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};

use super::rows::Entry;

/// A parsed filter. Every word must match.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    text: String,
    words: Vec<(String, Pattern)>,
    exact: Vec<(Field, String)>,
}

/// What of a row is looked at, clean and lowercase but for the labels.
#[derive(Debug, Clone, Copy)]
pub struct Facets<'a> {
    /// Id, name, profile, host.
    pub words: &'a [String; 4],
    /// Its state.
    pub state: &'a str,
    /// Whether a service of it should run and does not.
    pub degraded: bool,
    /// Its labels.
    pub labels: &'a BTreeMap<String, String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Host,
    State,
    Profile,
    Label,
}

impl Filter {
    /// Reads a filter as typed.
    pub fn parse(text: &str) -> Self {
        let mut filter = Self { text: text.to_owned(), ..Self::default() };
        for word in text.split_whitespace() {
            let lower = word.to_lowercase();
            let exact = [
                ("host:", Field::Host),
                ("state:", Field::State),
                ("profile:", Field::Profile),
                ("label:", Field::Label),
            ]
            .into_iter()
            .find_map(|(prefix, field)| {
                lower.strip_prefix(prefix).map(|value| (field, value.to_owned()))
            });
            match exact {
                Some((Field::Profile, value)) => {
                    let value = value.strip_prefix("profile.").unwrap_or(&value).to_owned();
                    filter.exact.push((Field::Profile, value));
                }
                Some(exact) => filter.exact.push(exact),
                None => {
                    let pattern = Pattern::new(
                        &lower,
                        CaseMatching::Ignore,
                        Normalization::Smart,
                        AtomKind::Fuzzy,
                    );
                    filter.words.push((lower, pattern));
                }
            }
        }
        filter
    }

    /// As typed.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether everything passes.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty() && self.exact.is_empty()
    }

    /// Whether it asks for sandboxes that are over, which no list shows else.
    pub fn asks_for_destroyed(&self) -> bool {
        self.exact.iter().any(|(field, value)| *field == Field::State && value == "destroyed")
    }

    /// Whether everything that passes this one passed `earlier` too, so that only those need a look.
    pub fn narrows(&self, earlier: &Self) -> bool {
        self.text.starts_with(&earlier.text) && !self.text.contains(':')
    }

    /// A matcher to be used for many rows.
    pub fn matcher() -> Matcher {
        Matcher::new(Config::DEFAULT)
    }

    /// Whether a row passes. A word passes when any one field holds it: across fields almost everything would.
    pub fn passes(&self, entry: &Entry, matcher: &mut Matcher) -> bool {
        let labels = &entry.record.labels;
        let facets = Facets {
            words: &entry.words,
            state: &entry.state,
            degraded: entry.degraded > 0,
            labels,
        };
        self.passes_facets(&facets, matcher)
    }

    /// As [`Self::passes`], for whatever has such facets.
    pub fn passes_facets(&self, facets: &Facets<'_>, matcher: &mut Matcher) -> bool {
        let exactly = self.exact.iter().all(|(field, value)| match field {
            Field::Host => facets.words[3].contains(value.as_str()),
            Field::Profile => facets.words[2].contains(value.as_str()),
            Field::State => {
                facets.state.contains(value.as_str())
                    || (facets.degraded
                        && !value.is_empty()
                        && "degraded".starts_with(value.as_str()))
            }
            Field::Label => has_label(facets.labels, value),
        });
        let mut chars = Vec::new();
        exactly
            && self.words.iter().all(|(word, pattern)| {
                facets.words.iter().any(|field| {
                    // Scores are not asked for: in ASCII a fuzzy match is a subsequence, ten times faster.
                    if word.is_ascii() && field.is_ascii() {
                        is_subsequence(word, field)
                    } else {
                        pattern.score(Utf32Str::new(field, &mut chars), matcher).is_some()
                    }
                })
            })
    }
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
