//! Tree of a YAML text: its value as JSON, and the place of every part of it.

use std::cell::Cell;
use std::collections::HashMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_saphyr::{Location, Options, Spanned, Tagged};

use crate::domain::problem::join;

/// Limits of a text, beside what the parser counts itself.
pub(crate) struct Limits {
    /// Settings of the parser, with its budget.
    pub options: Options,
    /// Bytes of text, aliases counted as often as they are used.
    pub text: usize,
    /// Keys and entries, aliases counted as often as they are used.
    pub entries: usize,
    /// Rule of a key: why it is refused, as a sentence.
    pub key: fn(&str) -> Option<String>,
}

/// Line and column, from 1, in characters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Place {
    pub line: u32,
    pub column: u32,
}

/// Places of a mapping's key and its value; of an entry of a list both are its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    /// Where its key stands.
    pub key: Place,
    /// Where its value stands.
    pub value: Place,
}

/// Tag of a value that is none of YAML's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TagUse {
    /// The tag, such as `!reset`.
    pub tag: String,
    /// Keys that lead to the value; `None` where it is no key's value, or below a list.
    pub keys: Option<Vec<String>>,
    /// Where the value stands.
    pub place: Place,
}

/// Key that a mapping has once more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Twice {
    /// Path of the key.
    pub path: String,
    pub key: String,
    /// Line on which it was set first.
    pub first: u32,
    /// Where it stands again.
    pub place: Place,
}

/// A text as a value with places.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tree {
    /// The value, anchors and merge keys resolved; of a key that stands twice, the first.
    pub value: Value,
    /// Where it begins.
    pub start: Place,
    /// `services.web.ports[0]` → its places.
    pub places: HashMap<String, Span>,
    /// Tags, in the text's order.
    pub tags: Vec<TagUse>,
    /// Keys that stand twice.
    pub twice: Vec<Twice>,
    /// Keys and entries, aliases counted as often as they are used.
    pub entries: usize,
    /// Bytes of text, likewise.
    pub text: usize,
}

/// Why a text is no tree.
pub(crate) enum Malformed {
    /// The parser refuses it.
    Parser(Box<serde_saphyr::Error>),
    /// More than [`Limits`] allow.
    TooMany,
    /// A key or a number that is refused.
    Refused(String, Place),
}

thread_local! {
    /// Bytes that the text at hand may still have. The parser bounds how many values aliases become and not how long
    /// these are, and a visitor of values has no state of its own.
    static TEXT_LEFT: Cell<usize> = const { Cell::new(0) };
}

/// Parses one document.
pub(crate) fn parse(text: &str, limits: &Limits) -> Result<Tree, Malformed> {
    TEXT_LEFT.set(limits.text);
    let root = serde_saphyr::from_str_with_options::<Node>(text, limits.options.clone());
    let root = root.map_err(|error| Malformed::Parser(Box::new(error)))?;
    let text = limits.text - TEXT_LEFT.get();
    let start = place(root.referenced);
    let mut building = Building { tree: Tree { start, text, ..Tree::default() }, limits };
    building.tree.value = building.node(root, "", Some(&[]))?;
    Ok(building.tree)
}

impl Tree {
    /// Place of a path; of one that does not exist, that of the nearest part of it that does.
    pub(crate) fn nearest(&self, path: &str) -> Option<Span> {
        let mut path = path.strip_prefix('.').unwrap_or(path);
        loop {
            match self.places.get(path) {
                Some(span) => return Some(*span),
                None => path = &path[..path.rfind(['.', '['])?],
            }
        }
    }
}

struct Building<'l> {
    tree: Tree,
    limits: &'l Limits,
}

impl Building<'_> {
    /// Value of a node; `keys` lead to it, and nothing leads into a list.
    fn node(&mut self, node: Node, path: &str, keys: Option<&[&str]>) -> Result<Value, Malformed> {
        let Spanned { value: Tagged(raw, tag), referenced, .. } = node;
        self.tag(tag, keys, referenced);
        match raw {
            Raw::Scalar(value) => Ok(value),
            Raw::List(items) => {
                let mut list = Vec::with_capacity(items.len());
                for (index, item) in items.into_iter().enumerate() {
                    let path = format!("{path}[{index}]");
                    let place = place(item.referenced);
                    self.note(&path, Span { key: place, value: place })?;
                    list.push(self.node(item, &path, None)?);
                }
                Ok(Value::Array(list))
            }
            Raw::Map(entries) => {
                let mut map = Map::new();
                for (key, value) in entries {
                    let Spanned { value: Tagged(key, tag), referenced, .. } = key;
                    self.tag(tag, None, referenced);
                    let span = Span { key: place(referenced), value: place(value.referenced) };
                    if let Some(message) = (self.limits.key)(&key) {
                        return Err(Malformed::Refused(message, span.key));
                    }
                    let path = join(path, &key);
                    let keys = keys.map(|above| [above, &[key.as_str()]].concat());
                    if map.contains_key(&key) {
                        let first = self.tree.places.get(&path).map_or(0, |span| span.key.line);
                        self.tree.twice.push(Twice { path, key, first, place: span.key });
                        continue;
                    }
                    self.note(&path, span)?;
                    let value = self.node(value, &path, keys.as_deref())?;
                    map.insert(key, value);
                }
                Ok(Value::Object(map))
            }
        }
    }

    fn note(&mut self, path: &str, span: Span) -> Result<(), Malformed> {
        self.tree.entries += 1;
        if self.tree.entries > self.limits.entries {
            return Err(Malformed::TooMany);
        }
        self.tree.places.insert(path.to_owned(), span);
        Ok(())
    }

    fn tag(&mut self, tag: Option<String>, keys: Option<&[&str]>, at: Location) {
        // Those of YAML say what the value is already.
        let own = |tag: &String| tag == "!" || tag.starts_with("tag:yaml.org,2002:");
        if let Some(tag) = tag.filter(|tag| !own(tag)) {
            let keys = keys.filter(|keys| !keys.is_empty());
            let keys = keys.map(|keys| keys.iter().map(|key| (*key).to_owned()).collect());
            self.tree.tags.push(TagUse { tag, keys, place: place(at) });
        }
    }
}

fn place(location: Location) -> Place {
    Place { line: location.line() as u32, column: location.column() as u32 }
}

type Node<T = Raw> = Spanned<Tagged<T>>;

enum Raw {
    Scalar(Value),
    List(Vec<Node>),
    Map(Vec<(Node<String>, Node)>),
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RawVisitor)
    }
}

/// Counts text before it is kept.
fn take_text<E: serde::de::Error>(text: &str) -> Result<(), E> {
    let left = TEXT_LEFT.get().checked_sub(text.len());
    TEXT_LEFT.set(left.ok_or_else(|| E::custom("its text is beyond the limit"))?);
    Ok(())
}

struct RawVisitor;

impl<'de> Visitor<'de> for RawVisitor {
    type Value = Raw;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E>(self, v: bool) -> Result<Raw, E> {
        Ok(Raw::Scalar(Value::Bool(v)))
    }

    fn visit_i64<E>(self, v: i64) -> Result<Raw, E> {
        Ok(Raw::Scalar(v.into()))
    }

    fn visit_u64<E>(self, v: u64) -> Result<Raw, E> {
        Ok(Raw::Scalar(v.into()))
    }

    fn visit_i128<E>(self, v: i128) -> Result<Raw, E> {
        Ok(Raw::Scalar(Value::String(v.to_string())))
    }

    fn visit_u128<E>(self, v: u128) -> Result<Raw, E> {
        Ok(Raw::Scalar(Value::String(v.to_string())))
    }

    fn visit_f64<E: serde::de::Error>(self, v: f64) -> Result<Raw, E> {
        let number = Number::from_f64(v);
        number
            .map(|number| Raw::Scalar(Value::Number(number)))
            .ok_or_else(|| E::custom("a number that is not finite; quote it if a word is meant"))
    }

    fn visit_str<E: serde::de::Error>(self, v: &str) -> Result<Raw, E> {
        take_text(v)?;
        Ok(Raw::Scalar(Value::String(v.to_owned())))
    }

    fn visit_string<E: serde::de::Error>(self, v: String) -> Result<Raw, E> {
        take_text(&v)?;
        Ok(Raw::Scalar(Value::String(v)))
    }

    fn visit_unit<E>(self) -> Result<Raw, E> {
        Ok(Raw::Scalar(Value::Null))
    }

    fn visit_none<E>(self) -> Result<Raw, E> {
        Ok(Raw::Scalar(Value::Null))
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Raw, D::Error> {
        Raw::deserialize(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Raw, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element()? {
            items.push(item);
        }
        Ok(Raw::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Raw, A::Error> {
        let mut entries: Vec<(Node<String>, Node)> = Vec::new();
        while let Some(key) = access.next_key::<Node<String>>()? {
            take_text::<A::Error>(&key.value.0)?;
            entries.push((key, access.next_value()?));
        }
        Ok(Raw::Map(entries))
    }
}
