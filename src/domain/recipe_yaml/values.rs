//! Plain values: texts, numbers, lists, maps, free JSON.

use std::collections::BTreeMap;

use super::join;
use super::node::{Kind, Node};
use super::problem::shown;
use super::reader::{FromYaml, Reader};
use crate::domain::usd::Usd;

/// Reads a closed list of words from YAML. Readers of stored JSON accept unknown words; an operator's file does not.
macro_rules! words_from_yaml {
    ($name:ty) => {
        impl $crate::domain::recipe_yaml::FromYaml for $name {
            fn from_yaml(
                node: &$crate::domain::recipe_yaml::Node,
                path: &str,
                reader: &mut $crate::domain::recipe_yaml::Reader<'_>,
            ) -> Option<Self> {
                let word = <String as $crate::domain::recipe_yaml::FromYaml>::from_yaml(
                    node, path, reader,
                )?;
                if let Some(value) = Self::ALL.iter().find(|value| value.as_str() == word) {
                    return Some(value.clone());
                }
                let valid: Vec<&str> = Self::ALL.iter().map(Self::as_str).collect();
                reader.refuse_word(node, path, &word, &valid)
            }
        }
    };
}
pub(crate) use words_from_yaml;

/// The last part of a path, for a sentence.
fn key(path: &str) -> String {
    if path.is_empty() { "the file".to_owned() } else { shown(path) }
}

impl FromYaml for String {
    fn from_yaml(node: &Node, path: &str, reader: &mut Reader<'_>) -> Option<Self> {
        let quotes = match &node.kind {
            Kind::Text(text) => return Some(text.clone()),
            // What was written is not what was read (1.10 is 1.1), so it cannot be quoted back.
            Kind::Int(_) | Kind::Float(_) | Kind::Bool(_) => "; put it in quotes",
            _ => "",
        };
        reader.refuse(
            node,
            path,
            format!("{} must be a text, not {}{quotes}", key(path), node.noun()),
        )
    }
}

impl FromYaml for bool {
    fn from_yaml(node: &Node, path: &str, reader: &mut Reader<'_>) -> Option<Self> {
        let text = match &node.kind {
            Kind::Bool(value) => return Some(*value),
            Kind::Text(text) => text,
            _ => {
                return reader.refuse(
                    node,
                    path,
                    format!("{} must be true or false, not {}", key(path), node.noun()),
                );
            }
        };
        let near = match text.to_lowercase().as_str() {
            "true" | "false" => {
                let message = format!(
                    "{} must be true or false, not a text; write it without quotes",
                    key(path)
                );
                return reader.refuse(node, path, message);
            }
            "yes" | "on" => Some("true".to_owned()),
            "no" | "off" => Some("false".to_owned()),
            _ => None,
        };
        let refused = reader.refuse(
            node,
            path,
            format!("{} must be true or false, not {}", key(path), shown(text)),
        );
        if let Some(problem) = reader.problems.last_mut() {
            problem.suggestion = near;
        }
        refused
    }
}

impl FromYaml for u64 {
    fn from_yaml(node: &Node, path: &str, reader: &mut Reader<'_>) -> Option<Self> {
        let wrong = match &node.kind {
            Kind::Int(number) => match Self::try_from(*number) {
                Ok(number) => return Some(number),
                Err(_) => " from 0",
            },
            Kind::Float(_) => "",
            Kind::Text(text) if text.parse::<Self>().is_ok() => {
                ", not a text; write it without quotes"
            }
            _ => {
                return reader.refuse(
                    node,
                    path,
                    format!("{} must be a whole number, not {}", key(path), node.noun()),
                );
            }
        };
        reader.refuse(node, path, format!("{} must be a whole number{wrong}", key(path)))
    }
}

impl FromYaml for u32 {
    fn from_yaml(node: &Node, path: &str, reader: &mut Reader<'_>) -> Option<Self> {
        let number = u64::from_yaml(node, path, reader)?;
        match Self::try_from(number) {
            Ok(number) => Some(number),
            Err(_) => reader.refuse(node, path, format!("{} is too large", key(path))),
        }
    }
}

impl FromYaml for f64 {
    fn from_yaml(node: &Node, path: &str, reader: &mut Reader<'_>) -> Option<Self> {
        match node.kind {
            Kind::Int(number) => Some(number as Self),
            Kind::Float(number) => Some(number),
            _ => reader.refuse(
                node,
                path,
                format!("{} must be a number, not {}", key(path), node.noun()),
            ),
        }
    }
}

impl FromYaml for Usd {
    fn from_yaml(node: &Node, path: &str, reader: &mut Reader<'_>) -> Option<Self> {
        let dollars = f64::from_yaml(node, path, reader)?;
        let micros = (dollars * 1_000_000.0).round();
        if !(0.0..=9.0e15).contains(&micros) {
            return reader.refuse(
                node,
                path,
                format!("{} is out of range for an amount in USD", key(path)),
            );
        }
        if (micros / 1_000_000.0 - dollars).abs() > 1e-12 * dollars.abs().max(1.0) {
            return reader.refuse(node, path, format!("{} has more than six decimals", key(path)));
        }
        Some(Self::from_micros(micros as i64))
    }
}

impl FromYaml for semver::Version {
    fn from_yaml(node: &Node, path: &str, reader: &mut Reader<'_>) -> Option<Self> {
        let form = "a version of three numbers, as in 1.0.0";
        match &node.kind {
            Kind::Text(text) => match text.parse() {
                Ok(version) => Some(version),
                Err(_) => reader.refuse(node, path, format!("{} is not {form}", shown(text))),
            },
            _ => reader.refuse(
                node,
                path,
                format!("{} must be {form}, not {}", key(path), node.noun()),
            ),
        }
    }
}

impl<T: FromYaml> FromYaml for Vec<T> {
    fn from_yaml(node: &Node, path: &str, reader: &mut Reader<'_>) -> Option<Self> {
        match &node.kind {
            Kind::List(items) => {
                let read = items.iter().enumerate();
                Some(
                    read.filter_map(|(at, item)| {
                        T::from_yaml(item, &format!("{path}[{at}]"), reader)
                    })
                    .collect(),
                )
            }
            _ => reader.refuse(
                node,
                path,
                format!("{} must be a list, not {}", key(path), node.noun()),
            ),
        }
    }
}

impl<T: FromYaml> FromYaml for BTreeMap<String, T> {
    fn from_yaml(node: &Node, path: &str, reader: &mut Reader<'_>) -> Option<Self> {
        match &node.kind {
            Kind::Map(entries) => {
                let mut map = Self::new();
                for entry in entries {
                    if let Some(value) = T::from_yaml(&entry.value, &join(path, &entry.key), reader)
                    {
                        map.entry(entry.key.clone()).or_insert(value);
                    }
                }
                Some(map)
            }
            _ => reader.refuse(
                node,
                path,
                format!("{} must be a mapping, not {}", key(path), node.noun()),
            ),
        }
    }
}

impl FromYaml for serde_json::Value {
    fn from_yaml(node: &Node, _: &str, _: &mut Reader<'_>) -> Option<Self> {
        Some(json(node))
    }
}

/// A tree as JSON, places dropped. Numbers beyond 64 bits do not occur: the parser hands them over as floats.
fn json(node: &Node) -> serde_json::Value {
    use serde_json::Value;
    match &node.kind {
        Kind::Null => Value::Null,
        Kind::Bool(value) => Value::Bool(*value),
        Kind::Int(number) => match (u64::try_from(*number), i64::try_from(*number)) {
            (Ok(number), _) => Value::from(number),
            (_, Ok(number)) => Value::from(number),
            _ => Value::Null,
        },
        Kind::Float(number) => Value::from(*number),
        Kind::Text(text) => Value::String(text.clone()),
        Kind::List(items) => Value::Array(items.iter().map(json).collect()),
        Kind::Map(entries) => Value::Object(
            entries.iter().map(|entry| (entry.key.clone(), json(&entry.value))).collect(),
        ),
    }
}
