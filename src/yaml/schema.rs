//! Schema of a file: that of the type which serde reads it as, closed, with the forms of single values.

use jsonschema::{Draft, Validator};
use schemars::JsonSchema;
use serde_json::{Value, json};

use super::form::Form;
use crate::domain::name::HostName;
use crate::domain::problem::violation::schema_at;
use crate::domain::profile::{Bytes, Seconds};
use crate::domain::usd::Usd;

/// Keyword of a schema under which a form stands.
pub(super) const FORM: &str = "form";

/// Schema of a file, ready to check.
#[derive(Debug)]
pub(crate) struct Schema {
    schema: Value,
    /// `None`: no valid schema came of the type, and nothing is read by it.
    validator: Option<Validator>,
}

impl Schema {
    /// Schema of what is read as a `T`; `adjust` may change it, where what is written differs.
    pub(crate) fn of<T: JsonSchema>(adjust: impl FnOnce(&mut Value)) -> Self {
        let mut schema =
            schemars::SchemaGenerator::default().into_root_schema_for::<T>().to_value();
        let forms = [
            (Seconds::schema_name(), Form::Duration),
            (Bytes::schema_name(), Form::Size),
            (Usd::schema_name(), Form::Usd),
            (HostName::schema_name(), Form::Host),
        ];
        if let Some(types) = schema.get_mut("$defs").and_then(Value::as_object_mut) {
            for (name, form) in forms {
                if let Some(schema) = types.get_mut(name.as_ref()) {
                    *schema = json!({FORM: form.word()});
                }
            }
        }
        close(&mut schema);
        adjust(&mut schema);
        debug_assert!(says_the_same_to_draft_7(&schema), "{schema:#}");
        // The schemas that schemas are checked by are read first: of draft 7 it is one, of a later draft eight, in ten times the time.
        let options =
            jsonschema::options().with_draft(Draft::Draft7).with_keyword(FORM, |_, word, _| {
                let form = Form::from_word(word);
                form.map(|form| Box::new(form) as _)
                    .ok_or_else(|| jsonschema::ValidationError::custom("no form"))
            });
        let validator = options.build(&schema).ok();
        Self { schema, validator }
    }

    pub(super) fn validator(&self) -> Option<&Validator> {
        self.validator.as_ref()
    }

    /// Schema at a path of evaluation, such as `/properties/compose/$ref/properties/ports`.
    pub(super) fn at(&self, path: &str) -> &Value {
        schema_at(&self.schema, path)
    }
}

/// Whether a schema has no keyword that came later than draft 7, and none beside a `$ref`, where that draft passes over it, but
/// those that say nothing of what is valid.
fn says_the_same_to_draft_7(schema: &Value) -> bool {
    const LATER: [&str; 7] = [
        "prefixItems",
        "unevaluatedProperties",
        "unevaluatedItems",
        "dependentRequired",
        "dependentSchemas",
        "minContains",
        "$dynamicRef",
    ];
    match schema {
        Value::Object(map) => {
            let refers = map.get("$ref").is_some_and(Value::is_string);
            let silent = |key: &String| matches!(key.as_str(), "$ref" | "description" | "default");
            !LATER.iter().any(|key| map.contains_key(*key))
                && (!refers || map.keys().all(silent))
                && map.values().all(says_the_same_to_draft_7)
        }
        Value::Array(list) => list.iter().all(says_the_same_to_draft_7),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}

/// Makes a schema say what is not said elsewhere: keys that are not named are wrong; what may be null may be left out, and that
/// is judged apart; a whole number is not written as `1.0`.
fn close(schema: &mut Value) {
    if let Some(map) = schema.as_object_mut() {
        if let Some(Value::Array(ways)) = map.get_mut("anyOf") {
            ways.retain(|way| way["type"] != "null");
            if let [Value::Object(only)] = ways.as_slice() {
                let only = only.clone();
                map.remove("anyOf");
                map.extend(only);
            }
        }
        if let Some(Value::Array(types)) = map.get_mut("type") {
            types.retain(|name| name != "null");
            if let [only] = types.as_slice() {
                let only = only.clone();
                map.insert("type".to_owned(), only);
            }
        }
        if map.contains_key("properties") {
            map.entry("additionalProperties").or_insert(Value::Bool(false));
        }
        // A list that is read as a set says nothing of repeats.
        map.remove("uniqueItems");
        if map.get("type").is_some_and(|name| name == "integer") {
            let small = map.get("format").is_some_and(|format| format == "uint32");
            let form = if small { Form::Whole32 } else { Form::Whole64 };
            *map = serde_json::Map::from_iter([(FORM.to_owned(), form.word().into())]);
        }
    }
    match schema {
        Value::Object(map) => map.values_mut().for_each(close),
        Value::Array(list) => list.iter_mut().for_each(close),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
