//! Money: integer micro-dollars inside, a JSON number with at most six decimals outside.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// An amount in millionths of a US dollar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Usd(i64);

impl Usd {
    /// No money.
    pub const ZERO: Self = Self(0);

    /// The highest amount: above it a JSON number is not exact to the micro-dollar.
    pub const MAX: Self = Self(9_000_000_000_000_000);

    /// From integer micro-dollars.
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Integer micro-dollars.
    pub const fn micros(self) -> i64 {
        self.0
    }

    /// The sum of two; `None` above [`Self::MAX`].
    pub(crate) fn plus(self, other: Self) -> Option<Self> {
        self.0.checked_add(other.0).map(Self).filter(|sum| *sum <= Self::MAX)
    }

    /// Part of the amount, rounded up to the next micro-dollar; at most [`Self::MAX`].
    #[must_use]
    pub fn part(self, of: u64, whole: u64) -> Self {
        let micros = u128::from(self.0.unsigned_abs()).saturating_mul(of.into());
        let micros = micros.div_ceil(u128::from(whole.max(1)));
        Self(i64::try_from(micros).unwrap_or(i64::MAX)).min(Self::MAX)
    }

    /// Amount as it is typed: without a currency.
    pub fn plain(self) -> String {
        self.to_string().replace('$', "")
    }
}

impl FromStr for Usd {
    type Err = String;

    /// Digits, and a point with at most six more. A sign, an exponent, a separator or a currency is refused: each means something
    /// else somewhere.
    fn from_str(text: &str) -> Result<Self, String> {
        let is_digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        if text.starts_with('-') {
            return Err("an amount is above zero".to_owned());
        }
        if text.contains(',') {
            return Err(
                "write a point before the cents and nothing between thousands, such as 1250.50"
                    .to_owned(),
            );
        }
        let (dollars, decimals) = text.split_once('.').unwrap_or((text, "0"));
        if !is_digits(dollars) || !is_digits(decimals) {
            return Err("write US dollars as digits, such as 25 or 12.50".to_owned());
        }
        if decimals.len() > 6 {
            return Err("at most 6 decimals: a micro-dollar is the smallest amount".to_owned());
        }
        let micros = format!("{dollars}{decimals:0<6}").parse().ok().map(Self);
        micros
            .filter(|usd| *usd <= Self::MAX)
            .ok_or_else(|| format!("at most {}", Self::MAX.plain()))
    }
}

impl Add for Usd {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Usd {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Usd {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl fmt::Display for Usd {
    /// `$41.20`: at least two decimals, at most six.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let micros = self.0.unsigned_abs();
        let decimals = format!("{:06}", micros % 1_000_000);
        let short = decimals.trim_end_matches('0');
        write!(f, "{sign}${}.{short:0<2}", micros / 1_000_000)
    }
}

impl Serialize for Usd {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Shortest representation of the nearest double: exact to six decimals up to 9 billion dollars.
        serializer.serialize_f64(self.0 as f64 / 1_000_000.0)
    }
}

impl<'de> Deserialize<'de> for Usd {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let dollars = f64::deserialize(deserializer)?;
        let micros = (dollars * 1_000_000.0).round();
        if !micros.is_finite() || micros.abs() > 9.0e15 {
            return Err(serde::de::Error::custom("an amount in USD is out of range"));
        }
        Ok(Self(micros as i64))
    }
}

impl schemars::JsonSchema for Usd {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Usd".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "number", "description": "US dollars, at most six decimals"})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_is_typed_in_digits_and_nothing_is_guessed() {
        for (text, micros) in [
            ("25", 25_000_000),
            ("12.5", 12_500_000),
            ("0.000001", 1),
            ("007", 7_000_000),
            ("0", 0),
            ("9000000000", 9_000_000_000_000_000),
        ] {
            assert_eq!(text.parse::<Usd>(), Ok(Usd::from_micros(micros)), "{text}");
        }
        for text in [
            "",
            "-1",
            "-0",
            "+1",
            "1,50",
            "1,000",
            "1.000,50",
            "1.",
            ".5",
            "1.2.3",
            "1e3",
            "NaN",
            "inf",
            "$5",
            "5 ",
            " 5",
            "0.0000001",
            "1.0000000",
            "9000000000.000001",
            "99999999999999999999999",
            "٣",
            "1_000",
            "0x10",
        ] {
            assert!(text.parse::<Usd>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_part_is_rounded_up_and_never_wraps() {
        for (usd, of, whole, part) in
            [(1, 1, 3600, 1), (3600, 1, 3600, 1), (3601, 1, 3600, 2), (0, 9, 1, 0), (7, 5, 0, 35)]
        {
            assert_eq!(Usd::from_micros(usd).part(of, whole).micros(), part, "{usd} {of} {whole}");
        }
        assert_eq!(Usd::MAX.part(u64::MAX, 1), Usd::MAX);
        assert_eq!(Usd::MAX.plus(Usd::from_micros(1)), None);
    }

    #[test]
    fn prints_and_reads_back_to_the_micro_dollar() {
        for (micros, text, json) in [
            (41_200_000, "$41.20", "41.2"),
            (1, "$0.000001", "0.000001"),
            (-800_000, "-$0.80", "-0.8"),
            (0, "$0.00", "0.0"),
            (123_456_789, "$123.456789", "123.456789"),
        ] {
            let usd = Usd::from_micros(micros);
            assert_eq!(usd.to_string(), text);
            let written = serde_json::to_string(&usd).unwrap();
            assert_eq!(
                written.parse::<serde_json::Number>().unwrap(),
                json.parse::<serde_json::Number>().unwrap()
            );
            assert_eq!(serde_json::from_str::<Usd>(&written).unwrap(), usd);
        }
    }
}
