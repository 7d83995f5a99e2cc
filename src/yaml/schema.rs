//! Schema of a file: that of the type which serde reads it as, closed, with the forms of single values.

use jsonschema::Validator;
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
        let options = jsonschema::options().with_keyword(FORM, |_, word, _| {
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
