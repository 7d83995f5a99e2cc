//! Shape of a document: its outside, and why a text has another one.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;
use std::path::Path;

use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::domain::earlier::entries_of;
use crate::domain::error::Error;
use crate::store::corruption::{self, Foreign, Position, START};

pub(super) const SCHEMA: u64 = 1;

/// Error of a text that is no document of ours: broken JSON, or whole JSON of another kind.
fn misfit(path: &Path, text: &str, error: &serde_json::Error) -> Error {
    let corrupt = |error: &serde_json::Error| {
        let what = if text.is_empty() { "an empty file" } else { "the file" };
        corruption::corrupt(path, what, Position::of_json(error, START), corruption::words(error))
    };
    let value: serde_json::Value = match serde_json::from_str(text) {
        Ok(value) => value,
        Err(broken) => return corrupt(&broken),
    };
    match value.get("schema").map(serde_json::Value::as_u64) {
        Some(Some(SCHEMA)) => corrupt(error),
        Some(Some(newer)) if newer > SCHEMA => corruption::foreign(path, Foreign::Newer(newer)),
        Some(_) => corruption::foreign(path, Foreign::Unknown),
        None => corruption::foreign(path, shape_of(&value)),
    }
}

/// Origin of a value that is known not to be ours.
fn shape_of(value: &serde_json::Value) -> Foreign {
    if entries_of(value).is_some() { Foreign::Python } else { Foreign::Unknown }
}

/// Outside of a document, and where in its text each record is.
pub(super) struct Outside {
    pub(super) revision: u64,
    /// Keys that a newer version wrote beside the three we know.
    pub(super) extra: Vec<(String, Box<RawValue>)>,
    pub(super) pieces: Vec<Range<usize>>,
}

impl Outside {
    /// Outside of any text of ours. Errors: `store_corrupt`, `store_foreign`.
    pub(super) fn of(path: &Path, text: &str) -> Result<Self, Error> {
        let shape: Shape<'_> =
            serde_json::from_str(text).map_err(|error| misfit(path, text, &error))?;
        let begin = |raw: &RawValue| raw.get().as_ptr() as usize - text.as_ptr() as usize;
        let pieces = shape.records.iter().map(|raw| begin(raw)..begin(raw) + raw.get().len());
        Ok(Self { pieces: pieces.collect(), ..shape.into() })
    }

    /// Outside of a text that is laid out as our writes are, each record on a line of its own, without a look into these. It is
    /// right where each of them is whole JSON: no line breaks within a string.
    pub(super) fn by_line(text: &str) -> Option<Self> {
        let (head, rest) = text.split_once('\n')?;
        let body = rest.strip_suffix("\n]}\n").filter(|_| head.ends_with("\"records\":["))?;
        let outside = format!("{head}]}}");
        let shape: Shape<'_> = serde_json::from_str(&outside).ok()?;
        let mut pieces = Vec::new();
        let mut begin = head.len() + 1;
        let end = begin + body.len();
        while begin < end {
            let line = memchr::memchr(b'\n', &text.as_bytes()[begin..end]).map(|at| begin + at);
            let piece = begin..line.map_or(end, |at| at - 1);
            // Between two records is a comma.
            if line.is_some() && text.as_bytes()[piece.end] != b',' {
                return None;
            }
            begin = line.map_or(end, |at| at + 1);
            pieces.push(piece);
        }
        Some(Self { pieces, ..shape.into() })
    }
}

impl From<Shape<'_>> for Outside {
    fn from(shape: Shape<'_>) -> Self {
        let extra = shape.extra.into_iter().map(|(key, raw)| (key, raw.to_owned())).collect();
        Self { revision: shape.revision, extra, pieces: Vec::new() }
    }
}

/// The document's outside, its records still bytes.
struct Shape<'a> {
    revision: u64,
    records: Vec<&'a RawValue>,
    extra: Vec<(String, &'a RawValue)>,
}

impl<'de: 'a, 'a> Deserialize<'de> for Shape<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Outside<'a>(PhantomData<&'a ()>);

        impl<'de: 'a, 'a> Visitor<'de> for Outside<'a> {
            type Value = Shape<'a>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object with `schema`, `revision` and `records`")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Shape<'a>, A::Error> {
                let (mut schema, mut revision, mut records, mut extra) =
                    (None, None, None, Vec::new());
                while let Some(key) = map.next_key::<String>()? {
                    let twice = match key.as_str() {
                        "schema" => schema.replace(map.next_value::<u64>()?).is_some(),
                        "revision" => revision.replace(map.next_value()?).is_some(),
                        "records" => records.replace(map.next_value()?).is_some(),
                        _ => {
                            extra.push((key.clone(), map.next_value()?));
                            false
                        }
                    };
                    if twice {
                        return Err(de::Error::custom(format_args!(
                            "the key `{key}` is there twice"
                        )));
                    }
                }
                if schema.ok_or_else(|| de::Error::missing_field("schema"))? != SCHEMA {
                    return Err(de::Error::custom("a schema that this version does not know"));
                }
                Ok(Shape {
                    revision: revision.ok_or_else(|| de::Error::missing_field("revision"))?,
                    records: records.ok_or_else(|| de::Error::missing_field("records"))?,
                    extra,
                })
            }
        }

        deserializer.deserialize_map(Outside(PhantomData))
    }
}
