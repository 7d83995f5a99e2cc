//! Violations of a JSON Schema, told in sentences of ours, whatever the schema is of.

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{JsonType, ValidationError};
use serde_json::Value;

use super::{plain_start, shown};
use crate::domain::text::{nearest, plural};

/// Why a value is refused, and the nearest word to it; `what` is the value in a sentence.
pub(crate) fn sentence(error: &ValidationError<'_>, what: &str) -> (String, Option<String>) {
    let value: &Value = error.instance();
    let must = |wanted: String| (format!("{what} must {wanted}"), None);
    match error.kind() {
        ValidationErrorKind::Enum { options } => match value {
            Value::String(word) => {
                let valid = options.as_array().into_iter().flatten().filter_map(Value::as_str);
                let valid: Vec<&str> = valid.collect();
                let message = format!("{} is not one of {}", shown(word), valid.join(", "));
                (message, nearest(word, valid).map(str::to_owned))
            }
            _ => (no_text(what, value), None),
        },
        ValidationErrorKind::Type { kind: TypeKind::Single(JsonType::String) } => {
            (no_text(what, value), None)
        }
        ValidationErrorKind::Type { kind: TypeKind::Single(JsonType::Boolean) } => {
            truth(what, value)
        }
        ValidationErrorKind::Type { kind } => {
            let kinds: Vec<&str> = match kind {
                TypeKind::Single(kind) => vec![type_noun(*kind)],
                TypeKind::Multiple(kinds) => kinds.iter().map(type_noun).collect(),
            };
            must(format!("be {}, not {}", kinds.join(" or "), noun(value)))
        }
        ValidationErrorKind::Minimum { limit } => must(format!("be {limit} or more")),
        ValidationErrorKind::ExclusiveMinimum { limit } => must(format!("be more than {limit}")),
        ValidationErrorKind::Maximum { limit } => must(format!("be {limit} or less")),
        ValidationErrorKind::ExclusiveMaximum { limit } => must(format!("be less than {limit}")),
        ValidationErrorKind::MultipleOf { multiple_of } => {
            must(format!("be a multiple of {multiple_of}"))
        }
        ValidationErrorKind::MinLength { limit } => {
            must(format!("have {} or more", plural(*limit, "character", "characters")))
        }
        ValidationErrorKind::MaxLength { limit } => {
            must(format!("have {} or less", plural(*limit, "character", "characters")))
        }
        ValidationErrorKind::MinItems { limit } => {
            must(format!("have {} or more", plural(*limit, "item", "items")))
        }
        ValidationErrorKind::MaxItems { limit } => {
            must(format!("have {} or less", plural(*limit, "item", "items")))
        }
        ValidationErrorKind::UniqueItems => must("have no item twice".to_owned()),
        ValidationErrorKind::Constant { expected_value } => must(format!("be {expected_value}")),
        ValidationErrorKind::Pattern { pattern } => must(format!("match {}", shown(pattern))),
        ValidationErrorKind::Format { format } => must(format!("have the format {format}")),
        // Its own sentence quotes the value, which may be long or hold control characters.
        _ => (plain_start(&error.to_string(), 160).trim_end_matches('.').to_owned(), None),
    }
}

/// Path of the schema that an error's keyword stands in, such as `/properties/compose/$ref/properties/ports`.
pub(crate) fn around(error: &ValidationError<'_>) -> String {
    let path = error.evaluation_path().as_str();
    path.rsplit_once('/').map_or("", |(around, _)| around).to_owned()
}

/// Schema at such a path.
pub(crate) fn schema_at<'s>(schema: &'s Value, path: &str) -> &'s Value {
    path.split('/').skip(1).fold(schema, |at, part| {
        let next = &at[unescaped(part).as_str()];
        match next.as_str().and_then(|target| target.strip_prefix('#')) {
            Some(target) if part == "$ref" => schema.pointer(target).unwrap_or(&Value::Null),
            _ => next,
        }
    })
}

/// Keys that a schema names.
pub(crate) fn keys(schema: &Value) -> impl Iterator<Item = &str> {
    schema["properties"].as_object().into_iter().flat_map(|map| map.keys()).map(String::as_str)
}

/// Part of a JSON pointer as a key.
pub(crate) fn unescaped(part: &str) -> String {
    part.replace("~1", "/").replace("~0", "~")
}

/// Why a value is no text.
pub(crate) fn no_text(what: &str, value: &Value) -> String {
    // What was written is not what was read (1.10 is 1.1), so it cannot be quoted back.
    let quotes =
        if matches!(value, Value::Number(_) | Value::Bool(_)) { "; put it in quotes" } else { "" };
    format!("{what} must be a text, not {}{quotes}", noun(value))
}

/// Why a value is neither true nor false.
fn truth(what: &str, value: &Value) -> (String, Option<String>) {
    let Value::String(text) = value else {
        return (format!("{what} must be true or false, not {}", noun(value)), None);
    };
    let near = match text.to_lowercase().as_str() {
        "true" | "false" => {
            let message =
                format!("{what} must be true or false, not a text; write it without quotes");
            return (message, None);
        }
        "yes" | "on" => Some("true".to_owned()),
        "no" | "off" => Some("false".to_owned()),
        _ => None,
    };
    (format!("{what} must be true or false, not {}", shown(text)), near)
}

/// Noun for a value, in a sentence.
pub(crate) fn noun(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a mapping",
    }
}

/// Noun for the values of a type.
fn type_noun(kind: JsonType) -> &'static str {
    match kind {
        JsonType::Null => "nothing",
        JsonType::Boolean => "true or false",
        JsonType::Integer => "a whole number",
        JsonType::Number => "a number",
        JsonType::String => "a text",
        JsonType::Array => "a list",
        JsonType::Object => "a mapping",
    }
}
