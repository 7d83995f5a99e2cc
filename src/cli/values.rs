//! Values on the command line: read here, once, so that a wrong one is a `usage` error with the flag's name.

use std::collections::BTreeMap;

use clap::builder::{PossibleValuesParser, TypedValueParser};

use super::output::CliError;
use crate::domain::error::Error;
use crate::domain::profile::{Seconds, SnapshotMode};
use crate::domain::stale::StaleClass;
use crate::domain::{Code, EventKind, State, Time, Usd};

/// `KEY=VALUE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair {
    /// Before the first `=`.
    pub key: String,
    /// After it; may be empty and may hold further ones.
    pub value: String,
}

/// `K=V` or `K-`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LabelChange {
    Set(Pair),
    /// Take it away.
    Remove(String),
}

/// Where `events` begins.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Since {
    /// After this number.
    Seq(u64),
    /// At or after this time.
    Time(Time),
    /// This long ago or later.
    Ago(Seconds),
}

/// An amount above zero.
pub(super) fn amount(text: &str) -> Result<Usd, String> {
    match text.parse::<Usd>() {
        Ok(Usd::ZERO) => Err("an amount is above zero".to_owned()),
        parsed => parsed,
    }
}

pub(super) fn pair(text: &str) -> Result<Pair, String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => {
            Ok(Pair { key: key.to_owned(), value: value.to_owned() })
        }
        _ => Err("write KEY=VALUE".to_owned()),
    }
}

pub(super) fn label_change(text: &str) -> Result<LabelChange, String> {
    if let Ok(pair) = pair(text) {
        return Ok(LabelChange::Set(pair));
    }
    match text.strip_suffix('-') {
        Some(key) if !key.is_empty() && !key.contains('=') => {
            Ok(LabelChange::Remove(key.to_owned()))
        }
        _ => Err("write KEY=VALUE to set it, KEY- to take it away".to_owned()),
    }
}

/// Pairs as a map. A key that is given twice is refused: whichever won, one of the two would be a silent mistake.
pub(super) fn map_of(flag: &str, pairs: Vec<Pair>) -> Result<BTreeMap<String, String>, CliError> {
    let mut map = BTreeMap::new();
    for Pair { key, value } in pairs {
        if map.contains_key(&key) {
            return Err(Error::new(Code::Usage, format!("{flag} {key}=... is given twice")).into());
        }
        map.insert(key, value);
    }
    Ok(map)
}

pub(super) fn seconds(text: &str) -> Result<Seconds, String> {
    text.parse().map_err(|error: crate::domain::profile::QuantityError| error.to_string())
}

/// States, for clap: it lists and completes them.
pub(super) fn states() -> impl TypedValueParser<Value = State> {
    words(State::ALL.iter().map(State::as_str)).map(|word| State::from_word(&word))
}

/// Classes of what is stale and may be reaped, for clap.
pub(super) fn stale_classes() -> impl TypedValueParser<Value = StaleClass> {
    let classes = StaleClass::ALL.iter().filter(|class| !class.is_never_reaped());
    words(classes.map(StaleClass::as_str)).map(|word| StaleClass::from_word(&word))
}

/// Modes of a snapshot, for clap.
pub(super) fn modes() -> impl TypedValueParser<Value = SnapshotMode> {
    words(SnapshotMode::ALL.iter().map(SnapshotMode::as_str))
        .map(|word| SnapshotMode::from_word(&word))
}

/// Kinds of events, for clap.
pub(super) fn event_kinds() -> impl TypedValueParser<Value = EventKind> {
    words(EventKind::ALL.iter().map(EventKind::as_str)).map(|word| EventKind::from_word(&word))
}

fn words(known: impl Iterator<Item = &'static str>) -> PossibleValuesParser {
    PossibleValuesParser::new(known)
}

/// Duration by which a deadline is moved: clap hands over what begins with `-` too, so that the refusal is ours.
pub(super) fn later_by(text: &str) -> Result<Seconds, String> {
    if text.starts_with('-') && text[1..].starts_with(|c: char| c.is_ascii_digit()) {
        return Err(
            "a deadline is moved to a later one; --to TIME --allow-shorten makes it an earlier one"
                .to_owned(),
        );
    }
    match seconds(text)? {
        Seconds(0) => Err("0 seconds are no extension".to_owned()),
        by => Ok(by),
    }
}

pub(super) fn time(text: &str) -> Result<Time, String> {
    text.parse().map_err(|_| {
        // What has the form of a time and is none that can be written.
        let year = text.split('-').next().filter(|year| year.len() >= 4);
        match year.and_then(|year| year.parse::<u64>().ok()) {
            Some(year) if year >= 9999 => {
                format!("the year {year} is too late: a deadline is at most ten years ahead")
            }
            _ => "write a time such as 2026-01-31T14:00:00Z".to_owned(),
        }
    })
}

pub(super) fn since(text: &str) -> Result<Since, String> {
    if let Ok(seq) = text.parse() {
        return Ok(Since::Seq(seq));
    }
    if let Ok(time) = text.parse() {
        return Ok(Since::Time(time));
    }
    text.parse().map(Since::Ago).map_err(|_| {
        "write an event's number, a time such as 2026-01-31T14:00:00Z, or how long ago, such as 10m".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_is_split_at_the_first_equals_sign() {
        let read = |text: &str| pair(text).map(|pair| (pair.key, pair.value));
        assert_eq!(read("a=b=c"), Ok(("a".to_owned(), "b=c".to_owned())));
        assert_eq!(read("a="), Ok(("a".to_owned(), String::new())));
        assert!(read("=b").is_err() && read("a").is_err() && read("").is_err());
    }

    #[test]
    fn a_label_is_set_or_taken_away() {
        let set = |key: &str, value: &str| {
            Ok(LabelChange::Set(Pair { key: key.to_owned(), value: value.to_owned() }))
        };
        assert_eq!(label_change("a=b"), set("a", "b"));
        assert_eq!(label_change("a=b-"), set("a", "b-"));
        assert_eq!(label_change("a-="), set("a-", ""));
        assert_eq!(label_change("a-"), Ok(LabelChange::Remove("a".to_owned())));
        for wrong in ["", "a", "-", "=", "=-"] {
            assert!(label_change(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn since_reads_numbers_times_and_durations() {
        assert_eq!(since("17"), Ok(Since::Seq(17)));
        assert_eq!(since("10m"), Ok(Since::Ago(Seconds(600))));
        assert!(matches!(since("2026-01-31T14:00:00Z"), Ok(Since::Time(_))));
        for wrong in ["", "-1", "yesterday", "99999999999999999999999"] {
            assert!(since(wrong).is_err(), "{wrong}");
        }
    }
}
