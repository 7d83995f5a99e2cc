//! The YAML tree with places.

use std::fmt;

use super::problem::plain_start;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{DuplicateKeyPolicy, Options, RenderOptions, SnippetMode, Spanned};

/// A value and where it stands. Line and column count from 1, in characters.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// What it is.
    pub kind: Kind,
    /// Its line.
    pub line: u32,
    /// Its column.
    pub column: u32,
}

/// What a node is. A quoted number is a text.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// `null`, `~` or nothing.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Int(i128),
    /// A number with a fraction or exponent.
    Float(f64),
    /// A text.
    Text(String),
    /// A list.
    List(Vec<Node>),
    /// A mapping, in the order of the file; a key may occur twice.
    Map(Vec<MapEntry>),
}

/// One key of a mapping, with the key's place.
#[derive(Debug, Clone, PartialEq)]
pub struct MapEntry {
    /// The key.
    pub key: String,
    /// The key's line.
    pub line: u32,
    /// The key's column.
    pub column: u32,
    /// Its value.
    pub value: Node,
}

impl Node {
    /// The value of a mapping's key.
    pub fn get(&self, key: &str) -> Option<&Node> {
        match &self.kind {
            Kind::Map(entries) => {
                entries.iter().find(|entry| entry.key == key).map(|entry| &entry.value)
            }
            _ => None,
        }
    }

    /// What it is, for a sentence: `a number`, `a list`.
    pub fn noun(&self) -> &'static str {
        match self.kind {
            Kind::Null => "nothing",
            Kind::Bool(_) => "true or false",
            Kind::Int(_) | Kind::Float(_) => "a number",
            Kind::Text(_) => "a text",
            Kind::List(_) => "a list",
            Kind::Map(_) => "a mapping",
        }
    }

    /// The deepest node on a path such as `hosts.a.b.ssh` or `ports[1]`. Keys may hold dots: the longest that fits
    /// is taken.
    pub(super) fn nearest(&self, path: &str) -> &Node {
        let path = path.strip_prefix('.').unwrap_or(path);
        if path.is_empty() {
            return self;
        }
        match &self.kind {
            Kind::Map(entries) => entries
                .iter()
                .filter_map(|entry| path.strip_prefix(entry.key.as_str()).map(|rest| (entry, rest)))
                .filter(|(_, rest)| rest.is_empty() || rest.starts_with(['.', '[']))
                .max_by_key(|(entry, _)| entry.key.len())
                .map_or(self, |(entry, rest)| entry.value.nearest(rest)),
            Kind::List(items) => {
                let inside = path.strip_prefix('[').and_then(|rest| rest.split_once(']'));
                let item = inside.and_then(|(index, rest)| {
                    Some((items.get(index.parse::<usize>().ok()?)?, rest))
                });
                item.map_or(self, |(item, rest)| item.nearest(rest))
            }
            _ => self,
        }
    }
}

/// Why a text is not a tree.
pub(super) struct SyntaxFault {
    pub(super) message: String,
    pub(super) line: u32,
    pub(super) column: u32,
}

/// Parses one document. Limits are far above any recipe and far below what hurts.
pub(super) fn parse(source: &str) -> Result<Node, SyntaxFault> {
    let mut budget = serde_saphyr::Budget::default();
    budget.max_events = 60_000;
    budget.max_nodes = 20_000;
    budget.max_depth = 32;
    budget.flow_nesting_limit = 32;
    budget.max_aliases = 1_000;
    budget.max_anchors = 1_000;
    budget.max_recorded_anchor_events = 60_000;
    budget.max_total_scalar_bytes = 4 * 1024 * 1024;
    // One more than is allowed, so that the error says so and not that a budget is spent.
    budget.max_documents = 2;
    let mut options = Options::default();
    options.budget = Some(budget);
    options.alias_limits.max_total_replayed_events = 20_000;
    options.alias_limits.max_replay_stack_depth = 16;
    // Passed on, so that both places can be named.
    options.duplicate_keys = DuplicateKeyPolicy::PassThrough;
    options.strict_booleans = true;
    options.leading_zero_numbers_as_strings = true;
    options.underscored_numbers_as_strings = true;
    options.reject_unsupported_tags = true;
    options.with_snippet = false;
    serde_saphyr::from_str_with_options::<Node>(source, options).map_err(|error| {
        let place = error.location();
        let line = place.map_or(0, |place| place.line() as u32);
        let column = place.map_or(0, |place| place.column() as u32);
        SyntaxFault { message: sentence(&error), line, column }
    })
}

/// The library's error as one sentence of ours, where ours is clearer.
fn sentence(error: &serde_saphyr::Error) -> String {
    match error {
        serde_saphyr::Error::MultipleDocuments { .. } => {
            return "the file holds several documents ('---'), one is expected".to_owned();
        }
        serde_saphyr::Error::RecursiveReferencesRequireWeakTypes { .. } => {
            return "an alias ('*name') refers to itself".to_owned();
        }
        serde_saphyr::Error::NonFiniteFloat { .. } => return "a number must be finite".to_owned(),
        _ => {}
    }
    let mut options = RenderOptions::default();
    options.snippets = SnippetMode::Off;
    let text = error.render_with_options(options);
    let text = text.lines().next().unwrap_or_default();
    let lower = text.to_lowercase();
    if lower.contains("budget") || lower.contains("limit") || lower.contains("alias replay") {
        return "the file is too large or too deep once its aliases ('*name') are expanded"
            .to_owned();
    }
    // The place is told apart; the library repeats it at either end.
    let text = text.split_once(" at line ").map_or(text, |(text, _)| text);
    let text = text.strip_prefix("error: ").unwrap_or(text);
    let text = match text.strip_prefix("line ").and_then(|rest| rest.split_once(": ")) {
        Some((_, rest)) => rest,
        None => text,
    };
    format!("not valid YAML: {}", plain_start(text, 160))
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<Kind>::deserialize(deserializer)?;
        let place = spanned.referenced;
        Ok(Self { kind: spanned.value, line: place.line() as u32, column: place.column() as u32 })
    }
}

impl<'de> Deserialize<'de> for Kind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(KindVisitor)
    }
}

struct KindVisitor;

impl<'de> Visitor<'de> for KindVisitor {
    type Value = Kind;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any YAML value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Kind, E> {
        Ok(Kind::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Kind, E> {
        Ok(Kind::Int(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Kind, E> {
        Ok(Kind::Int(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Kind, E> {
        Ok(Kind::Float(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Kind, E> {
        Ok(Kind::Text(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Kind, E> {
        Ok(Kind::Text(value))
    }

    fn visit_unit<E>(self) -> Result<Kind, E> {
        Ok(Kind::Null)
    }

    fn visit_none<E>(self) -> Result<Kind, E> {
        Ok(Kind::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Kind, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element::<Node>()? {
            items.push(item);
        }
        Ok(Kind::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Kind, A::Error> {
        let mut entries = Vec::new();
        while let Some(key) = map.next_key::<Spanned<String>>()? {
            let (line, column) = (key.referenced.line() as u32, key.referenced.column() as u32);
            let value = map.next_value::<Node>()?;
            entries.push(MapEntry { key: key.value, line, column, value });
        }
        Ok(Kind::Map(entries))
    }
}
