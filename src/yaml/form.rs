//! Forms of single values that JSON Schema has no words for: why a value has not its form, as a sentence.

use jsonschema::{Keyword, ValidationError};
use serde_json::Value;

use crate::domain::host::check_host_name;
use crate::domain::problem::shown;
use crate::domain::problem::violation::{no_text, noun};
use crate::domain::profile::{Bytes, QuantityError, Seconds};
use crate::domain::usd::Usd;

/// Form of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// `4h`, or 0.
    Duration,
    /// A duration, or `none`.
    Lifetime,
    /// `1GiB`, or a number of bytes.
    Size,
    /// An amount of money.
    Usd,
    /// Three numbers.
    Version,
    /// Name of a host.
    Host,
    /// A whole number that a `u32` holds.
    Whole32,
    /// A whole number that a `u64` holds.
    Whole64,
}

impl Form {
    const ALL: [Self; 8] = [
        Self::Duration,
        Self::Lifetime,
        Self::Size,
        Self::Usd,
        Self::Version,
        Self::Host,
        Self::Whole32,
        Self::Whole64,
    ];

    /// Word for it in a schema.
    pub(super) fn word(self) -> String {
        format!("{self:?}")
    }

    /// The form of such a word.
    pub(super) fn from_word(word: &Value) -> Option<Self> {
        Self::ALL.into_iter().find(|form| word.as_str() == Some(form.word().as_str()))
    }

    /// Why a value has not this form; `what` is it in a sentence.
    pub(super) fn problem(self, what: &str, value: &Value) -> Option<String> {
        let form = match (self, value) {
            (Self::Lifetime, Value::String(text)) if text == "none" => return None,
            (Self::Duration | Self::Lifetime, _) => match quantity::<Seconds>(value) {
                Some(read) => return read.err().map(|error| error.to_string()),
                None => "a duration such as 90s or 4h",
            },
            (Self::Size, _) => match quantity::<Bytes>(value) {
                Some(read) => return read.err().map(|error| error.to_string()),
                None => "a size such as 512MiB",
            },
            (Self::Usd, Value::Number(dollars)) => return usd(what, dollars.as_f64()),
            (Self::Usd, _) => "a number",
            (Self::Version, Value::String(text)) => {
                let read = text.parse::<semver::Version>();
                return read.err().map(|_| format!("{} is not {VERSION}", shown(text)));
            }
            (Self::Version, _) => VERSION,
            (Self::Host, Value::String(text)) => return check_host_name(text).err(),
            (Self::Host, _) => return Some(no_text(what, value)),
            (Self::Whole32 | Self::Whole64, _) => return self.whole(what, value),
        };
        Some(format!("{what} must be {form}, not {}", noun(value)))
    }

    fn whole(self, what: &str, value: &Value) -> Option<String> {
        let wrong = match value {
            Value::Number(number) => match number.as_u64() {
                Some(number) if self == Self::Whole32 && u32::try_from(number).is_err() => {
                    return Some(format!("{what} is too large"));
                }
                Some(_) => return None,
                None if number.is_i64() => " from 0".to_owned(),
                None => String::new(),
            },
            Value::String(text) if text.parse::<u64>().is_ok() => {
                ", not a text; write it without quotes".to_owned()
            }
            _ => format!(", not {}", noun(value)),
        };
        Some(format!("{what} must be a whole number{wrong}"))
    }
}

const VERSION: &str = "a version of three numbers, as in 1.0.0";

/// A quantity as it is written; `None` where it is neither text nor number.
fn quantity<T: std::str::FromStr<Err = QuantityError>>(
    value: &Value,
) -> Option<Result<T, QuantityError>> {
    match value {
        Value::String(text) => Some(text.parse()),
        Value::Number(number) => Some(number.as_u64()?.to_string().parse()),
        _ => None,
    }
}

fn usd(what: &str, dollars: Option<f64>) -> Option<String> {
    let dollars = dollars.unwrap_or(f64::MAX);
    let micros = (dollars * 1_000_000.0).round();
    if !(0.0..=Usd::MAX.micros() as f64).contains(&micros) {
        return Some(format!("{what} is out of range for an amount in USD"));
    }
    let finer = (micros / 1_000_000.0 - dollars).abs() > 1e-12 * dollars.abs().max(1.0);
    finer.then(|| format!("{what} has more than six decimals"))
}

impl Keyword for Form {
    fn validate<'i>(&self, instance: &'i Value) -> Result<(), ValidationError<'i>> {
        self.problem("it", instance).map_or(Ok(()), |problem| Err(ValidationError::custom(problem)))
    }

    fn is_valid(&self, instance: &Value) -> bool {
        self.problem("it", instance).is_none()
    }
}
