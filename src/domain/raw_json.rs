//! JSON that is handed on as it came, and understood only when somebody asks.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// A large part of a record that few ask for. It is kept as the text it came as: copying it is free, and what a
/// newer version wrote into it stays.
pub struct RawJson<T> {
    text: Arc<RawValue>,
    of: PhantomData<fn() -> T>,
}

impl<T: Serialize + DeserializeOwned> RawJson<T> {
    /// Keeps a value.
    ///
    /// Errors: a value that is no JSON, such as a map whose keys are no strings.
    pub fn new(value: &T) -> Result<Self, serde_json::Error> {
        Ok(Self { text: serde_json::value::to_raw_value(value)?.into(), of: PhantomData })
    }

    /// Value; `None` if this version cannot understand it.
    pub fn read(&self) -> Option<T> {
        serde_json::from_str(self.text.get()).ok()
    }

    /// Whether it is an object with this field.
    pub fn has(&self, field: &str) -> bool {
        let fields: Option<BTreeMap<&str, &RawValue>> = serde_json::from_str(self.text.get()).ok();
        fields.is_some_and(|fields| fields.contains_key(field))
    }
}

impl<T> Clone for RawJson<T> {
    fn clone(&self) -> Self {
        Self { text: Arc::clone(&self.text), of: PhantomData }
    }
}

impl<T> PartialEq for RawJson<T> {
    fn eq(&self, other: &Self) -> bool {
        self.text.get() == other.text.get()
    }
}

impl<T> fmt::Debug for RawJson<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text.get())
    }
}

impl<T> Serialize for RawJson<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.text.serialize(serializer)
    }
}

impl<'de, T> Deserialize<'de> for RawJson<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut text = Box::<RawValue>::deserialize(deserializer)?;
        // Somebody laid the file out anew: a record is handed on within one line.
        if text.get().as_bytes().contains(&b'\n') {
            let value: serde_json::Value =
                serde_json::from_str(text.get()).map_err(D::Error::custom)?;
            text = serde_json::value::to_raw_value(&value).map_err(D::Error::custom)?;
        }
        Ok(Self { text: text.into(), of: PhantomData })
    }
}

impl<T: JsonSchema> JsonSchema for RawJson<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn schema_id() -> Cow<'static, str> {
        T::schema_id()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}
