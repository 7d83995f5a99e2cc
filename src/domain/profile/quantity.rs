//! Durations and sizes as operators write them (`4h`, `1GiB`) and as JSON carries them (integers).

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::{Deserialize, Deserializer, Visitor};

use crate::domain::problem::shown;

/// A duration in whole seconds: a text such as `1h30m` in YAML and on the command line, an integer in JSON.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, JsonSchema,
)]
#[serde(transparent)]
pub struct Seconds(pub u64);

/// A size in bytes: a text such as `1GiB` in YAML and on the command line, an integer in JSON.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, JsonSchema,
)]
#[serde(transparent)]
pub struct Bytes(pub u64);

/// Why a text is no duration or size: one sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct QuantityError(String);

impl Seconds {
    /// The longest: ten years.
    pub const MAX: Self = Self(10 * 366 * 86_400);

    /// The whole seconds.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The standard library's duration.
    pub const fn duration(self) -> std::time::Duration {
        std::time::Duration::from_secs(self.0)
    }

    pub const fn hours(hours: u64) -> Self {
        Self(hours * 3600)
    }
}

impl Bytes {
    pub const fn get(self) -> u64 {
        self.0
    }

    /// From binary gigabytes.
    pub const fn gib(gib: u64) -> Self {
        Self(gib << 30)
    }
}

impl FromStr for Seconds {
    type Err = QuantityError;

    /// Reads `90s`, `1h30m`, `2d`, `1w`: whole seconds, at most ten years.
    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let form = "write for example 90s, 30m, 1h30m or 2d";
        let text = text.trim();
        // The one number that means the same in every unit.
        if text == "0" {
            return Ok(Self(0));
        }
        if !text.is_empty() && text.len() <= 20 && text.chars().all(|c| c.is_ascii_digit()) {
            return Err(QuantityError(format!(
                "'{text}' has no unit: write for example {text}s, {text}m or {text}h"
            )));
        }
        let refused = || QuantityError(format!("{} is not a duration: {form}", shown(text)));
        // A long text cannot be one; the parser need not see it.
        if text.len() > 64 || !text.starts_with(|c: char| c.is_ascii_digit()) {
            return Err(refused());
        }
        let too_long = || QuantityError(format!("{} is longer than ten years", shown(text)));
        let parsed = jiff::fmt::friendly::SpanParser::new().parse_span(text);
        let span = match parsed {
            Ok(span) => span,
            Err(_) if is_overlong(text) => return Err(too_long()),
            Err(_) => return Err(refused()),
        };
        if span.get_years() != 0 || span.get_months() != 0 {
            return Err(QuantityError(format!(
                "{}: months and years have no fixed length: {form}",
                shown(text)
            )));
        }
        let parts = [
            i64::from(span.get_weeks()).checked_mul(7 * 86_400),
            i64::from(span.get_days()).checked_mul(86_400),
            i64::from(span.get_hours()).checked_mul(3600),
            span.get_minutes().checked_mul(60),
            Some(span.get_seconds()),
        ];
        let total = parts.into_iter().try_fold(0_i64, |sum, part| sum.checked_add(part?));
        if span.get_milliseconds() != 0
            || span.get_microseconds() != 0
            || span.get_nanoseconds() != 0
        {
            return Err(QuantityError(format!("{}: a duration is whole seconds", shown(text))));
        }
        match total.and_then(|total| u64::try_from(total).ok()) {
            Some(total) if total <= Self::MAX.get() => Ok(Self(total)),
            Some(_) | None => Err(too_long()),
        }
    }
}

/// Whether a text that is no duration would be one with smaller numbers: the parser takes none that are beyond its calendar.
fn is_overlong(text: &str) -> bool {
    let shorter = text.split_inclusive(|c: char| !c.is_ascii_digit()).map(|part| {
        let digits = part.len() - part.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        if digits > 6 { format!("1{}", &part[digits..]) } else { part.to_owned() }
    });
    let shorter: String = shorter.collect();
    shorter != text && jiff::fmt::friendly::SpanParser::new().parse_span(&shorter).is_ok()
}

impl FromStr for Bytes {
    type Err = QuantityError;

    /// Reads `1GiB`, `500 MB`, `1.5GiB`, `1024`: a number and B, kB, KiB, MB, MiB, GB, GiB, TB or TiB.
    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let refused = || {
            QuantityError(format!(
                "{} is not a size: write for example 512MiB or 2GiB",
                shown(text)
            ))
        };
        let text = text.trim();
        let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = text.split_at(split);
        let factor: u64 = match unit.trim().to_ascii_lowercase().as_str() {
            "" | "b" => 1,
            "kb" => 1_000,
            "kib" => 1 << 10,
            "mb" => 1_000_000,
            "mib" => 1 << 20,
            "gb" => 1_000_000_000,
            "gib" => 1 << 30,
            "tb" => 1_000_000_000_000,
            "tib" => 1 << 40,
            _ => return Err(refused()),
        };
        let bytes = if number.contains('.') {
            let number = number.parse::<f64>().map_err(|_| refused())? * factor as f64;
            // Past 2^53 a double no longer holds every byte.
            (number <= 9.0e15).then_some(number as u64)
        } else {
            number.parse::<u64>().map_err(|_| refused())?.checked_mul(factor)
        };
        bytes.map(Self).ok_or_else(refused)
    }
}

impl fmt::Display for Seconds {
    /// `1h30m`, `2d`, `0s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            (self.0 / 86_400, "d"),
            (self.0 / 3600 % 24, "h"),
            (self.0 / 60 % 60, "m"),
            (self.0 % 60, "s"),
        ];
        let shown = parts.iter().filter(|(n, _)| *n > 0);
        let mut text: Vec<String> = shown.map(|(n, unit)| format!("{n}{unit}")).collect();
        if text.is_empty() {
            text.push("0s".to_owned());
        }
        f.pad(&text.concat())
    }
}

impl fmt::Display for Bytes {
    /// The largest unit that divides it (`2GiB`), else with one decimal (`1.4GiB`).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
        // What rounds to 1024.0 of a unit is 1.0 of the next.
        let reaches = |shift: u32| {
            self.0 as f64 / (1_u64 << shift) as f64
                >= if self.0 >> shift > 0 { 1.0 } else { 1023.95 / 1024.0 }
        };
        let text = match units.iter().find(|(shift, _)| reaches(*shift)) {
            Some((shift, unit)) if self.0.trailing_zeros() >= *shift => {
                format!("{}{unit}", self.0 >> shift)
            }
            Some((shift, unit)) => format!("{:.1}{unit}", self.0 as f64 / (1_u64 << shift) as f64),
            None => format!("{}B", self.0),
        };
        f.pad(&text)
    }
}

/// Reads the integer of JSON, and the text that an operator writes.
struct Written<T>(std::marker::PhantomData<T>);

impl<T: From<u64> + FromStr<Err = QuantityError>> Visitor<'_> for Written<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number, or a text with its unit")
    }

    fn visit_u64<E>(self, number: u64) -> Result<T, E> {
        Ok(number.into())
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }
}

macro_rules! read_quantity {
    ($($name:ident),+) => {$(
        impl From<u64> for $name {
            fn from(number: u64) -> Self {
                Self(number)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any(Written(std::marker::PhantomData))
            }
        }
    )+};
}
read_quantity!(Seconds, Bytes);
