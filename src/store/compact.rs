//! Compact form of a sandbox's record in its file. Empty fields are left out, and those that another one says; a record that
//! an earlier version wrote loses at its next write what is kept elsewhere, or nowhere, by now.

use serde_json::Value;

use crate::domain::SandboxRecord;
use crate::domain::raw_json::RawJson;
use crate::domain::route::Attempt;
use crate::store::document_entry::Record;

/// Fields whose nulls are left out at any depth. The handle is its extension's, and events are as they were appended.
const TYPED: [&str; 9] = [
    "host_identity",
    "operation",
    "reachability",
    "services",
    "applied_patches",
    "route",
    "attempts",
    "failure",
    "teardown",
];

impl Record for SandboxRecord {
    fn key(&self) -> &str {
        self.id.as_str()
    }

    /// Earlier versions wrote every field, whether or not it said something.
    fn is_of_earlier_version(text: &str) -> bool {
        text.contains("\"leftovers\":[]") || text.contains("\"not_preserved\":{}")
    }

    fn slim(&mut self) {
        // Nobody asks for it without the key.
        if self.idempotency_key.is_none() {
            self.request_hash = None;
        }
        // Earlier versions kept there what the start had written, long after somebody could need it.
        if let Some(Value::Object(handle)) = &mut self.handle {
            handle.shift_remove("up_output");
        }
        // Earlier versions kept all of the host's facts, too.
        let full = self.telemetry.as_ref().filter(|telemetry| telemetry.has("tools"));
        if let Some(summary) = full.and_then(RawJson::read) {
            self.telemetry = RawJson::new(&summary).ok();
        }
    }

    fn leave_out(record: &mut Value) {
        let Value::Object(record) = record else { return };
        let verdicts = record.get("route").and_then(|route| route.get("verdicts"));
        if verdicts.is_some() && verdicts == record.get("attempts") {
            record.shift_remove("attempts");
        }
        // An empty handle says something: that there is one.
        record.retain(|field, value| !is_empty(value) || (field == "handle" && !value.is_null()));
        for (field, usual) in [("kept_failed", false.into()), ("last_patch_sequence", 0.into())] {
            if record.get(field) == Some(&usual) {
                record.shift_remove(field);
            }
        }
    }

    fn leave_nulls_out(record: &mut Value) {
        for field in TYPED {
            if let Some(value) = record.get_mut(field) {
                without_nulls(value);
            }
        }
    }

    fn complete(&mut self) {
        if let Some(route) = &self.route
            && self.attempts.is_empty()
        {
            self.attempts = route.verdicts.iter().cloned().map(Attempt::from).collect();
        }
        // A list grows by four, and mostly has one.
        if let Some(route) = &mut self.route {
            route.verdicts.shrink_to_fit();
        }
        self.teardown.shrink_to_fit();
        self.services.shrink_to_fit();
    }
}

/// Whether a field says nothing: a reader takes it as this where it is absent.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

fn without_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(without_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(without_nulls),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
