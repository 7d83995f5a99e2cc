//! Shape of a document: its outside, and why a text has another one.

use std::fmt;
use std::marker::PhantomData;
use std::path::Path;

use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::domain::earlier::entries_of;
use crate::domain::error::Error;
use crate::store::corruption::{self, Foreign, Position, START};

pub(super) const SCHEMA: u64 = 1;

/// Error of a text that is no document of ours: broken JSON, or whole JSON of another kind.
pub(super) fn misfit(path: &Path, text: &str, error: &serde_json::Error) -> Error {
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

/// The document's outside, its records still bytes.
pub(super) struct Shape<'a> {
    pub(super) revision: u64,
    pub(super) records: Vec<&'a RawValue>,
    pub(super) extra: Vec<(String, &'a RawValue)>,
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
