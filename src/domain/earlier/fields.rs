//! Fields of an entry of the earlier tool's: each is looked at as if it could be anything.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::domain::actor::Actor;
use crate::domain::name::{ExtensionId, HostName, OwnerId, ProfileId, check_label, check_name};
use crate::domain::profile::Seconds;
use crate::domain::sandbox::ProfileRef;
use crate::domain::text::clean_line;
use crate::domain::time::Time;

/// Fields of which an entry of its has one at least.
const FIELDS: [&str; 10] = [
    "id",
    "sandbox_id",
    "snapshot_id",
    "profile",
    "host",
    "inputs",
    "handle",
    "state",
    "status",
    "reachability",
];

/// Words for what is over.
const OVER: [&str; 6] = ["destroyed", "deleted", "removed", "terminated", "gone", "reaped"];

/// Words for what was there.
const KNOWN: [&str; 12] = [
    "ready",
    "running",
    "up",
    "active",
    "requested",
    "provisioning",
    "creating",
    "pending",
    "failed",
    "error",
    "stopped",
    "sleeping",
];

/// Installation that imports.
pub(crate) struct ImportInto<'a> {
    pub now: Time,
    pub actor: Actor,
    /// The installation.
    pub owner: OwnerId,
    /// Profile of the catalogue by its name, with or without `profile.`: its id and extension.
    pub profile: &'a (dyn Fn(&str) -> Option<(ProfileId, ExtensionId)> + Send + Sync),
}

/// Whether it is an object with a field that the earlier tool wrote.
pub(super) fn has_field(value: &Value) -> bool {
    value.as_object().is_some_and(|fields| FIELDS.iter().any(|field| fields.contains_key(*field)))
}

/// Fields of an entry: those that find a place are taken out, the rest is kept.
pub(super) struct Fields {
    pub(super) rest: Map<String, Value>,
    remarks: Vec<String>,
}

impl Fields {
    pub(super) fn of(entry: &Value) -> Result<Self, String> {
        match entry {
            Value::Object(fields) if has_field(entry) => {
                Ok(Self { rest: fields.clone(), remarks: Vec::new() })
            }
            Value::Object(_) => Err("it has no field that the earlier tool wrote".to_owned()),
            _ => Err("it is no object".to_owned()),
        }
    }

    /// The id under these keys, else the key that the entry stood under.
    pub(super) fn id(&mut self, names: &[&str], key: Option<&str>) -> Result<String, String> {
        let found = names.iter().find_map(|name| self.rest.get(*name).and_then(word));
        let id = found.or_else(|| key.map(str::to_owned)).filter(|id| !id.trim().is_empty());
        id.ok_or_else(|| format!("it has no {}", names.join(" and no ")))
    }

    pub(super) fn text(&mut self, name: &str) -> Option<String> {
        let text = self.rest.get(name).and_then(word)?;
        self.rest.remove(name);
        Some(text)
    }

    pub(super) fn remark(&mut self, text: impl Into<String>) {
        self.remarks.push(text.into());
    }

    pub(super) fn name(&mut self) -> Option<String> {
        let name = self.rest.get("name").and_then(word).filter(|name| check_name(name).is_ok())?;
        self.rest.remove("name");
        Some(name)
    }

    pub(super) fn labels(&mut self) -> BTreeMap<String, String> {
        let mut labels = BTreeMap::new();
        if let Some(Value::Object(found)) = self.rest.get_mut("labels") {
            found.retain(|key, value| match word(value) {
                Some(value) if check_label(key, &value).is_ok() => {
                    labels.insert(key.clone(), value);
                    false
                }
                _ => true,
            });
        }
        labels
    }

    /// Inputs that are words; others stay with the rest.
    pub(super) fn inputs(&mut self) -> BTreeMap<String, String> {
        let mut inputs = BTreeMap::new();
        if let Some(Value::Object(found)) = self.rest.get_mut("inputs") {
            found.retain(|key, value| {
                let taken = word(value);
                let kept = taken.is_none();
                inputs.extend(taken.map(|value| (key.clone(), value)));
                kept
            });
            if found.is_empty() {
                self.rest.remove("inputs");
            }
        }
        inputs
    }

    pub(super) fn host(&mut self) -> HostName {
        let host = match self.rest.get("host") {
            Some(Value::Object(host)) => host.get("name").or(host.get("host")).and_then(word),
            other => other.and_then(word),
        };
        let is_plain = |host: &String| {
            !host.is_empty()
                && host.len() <= 255
                && !host.starts_with('-')
                && host.chars().all(|c| c.is_ascii_graphic())
        };
        let Some(host) = host.filter(is_plain) else {
            self.remark("it does not say its host");
            return HostName::new("unknown");
        };
        if self.rest.get("host").is_some_and(Value::is_string) {
            self.rest.remove("host");
        }
        HostName::new(host)
    }

    pub(super) fn profile(&mut self, into: &ImportInto<'_>) -> (ProfileRef, ExtensionId) {
        let said = match self.rest.get("profile") {
            Some(Value::Object(profile)) => {
                profile.get("id").or(profile.get("name")).and_then(word)
            }
            other => other.and_then(word),
        };
        let known = said.as_deref().and_then(|said| (into.profile)(said));
        if known.is_none() {
            let what = said.as_deref().map_or("none".to_owned(), |said| clean_line(said, 60));
            self.remark(format!("the catalogue has no profile of its name ({what})"));
        } else if self.rest.get("profile").is_some_and(Value::is_string) {
            self.rest.remove("profile");
        }
        let (id, extension) = known.unwrap_or_else(|| {
            let id =
                said.map_or_else(|| "profile.unknown".to_owned(), |said| clean_line(&said, 60));
            (ProfileId::new(id), ExtensionId::new("ext.unknown"))
        });
        // No profile of today is the one that it was made from.
        (ProfileRef { id, version: "0.0.0".to_owned(), hash: String::new() }, extension)
    }

    pub(super) fn created_at(&mut self, now: Time) -> Time {
        let Some(time) = self.rest.get("created_at").and_then(moment) else {
            self.remark("it does not say when it was made");
            return now;
        };
        self.rest.remove("created_at");
        time.min(now)
    }

    /// The state's word, and whether it says that it is over.
    pub(super) fn state(&mut self) -> (String, bool) {
        let said = ["state", "status"].iter().find_map(|name| self.rest.get(*name).and_then(word));
        let said = said.map_or_else(|| "nothing".to_owned(), |said| clean_line(&said, 40));
        let lower = said.to_ascii_lowercase();
        let is_over = OVER.contains(&lower.as_str());
        if !is_over && !KNOWN.contains(&lower.as_str()) {
            self.remark(format!("its state was {said:?}, which means nothing here"));
        }
        (said, is_over)
    }

    pub(super) fn end(mut self, taken: &[&str]) -> (Option<Value>, Vec<String>) {
        for name in taken {
            self.rest.remove(*name);
        }
        (Some(Value::Object(self.rest)), self.remarks)
    }
}

/// A text, a number or a truth value as a text.
pub(super) fn word(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(truth) => Some(truth.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// A moment: seconds or milliseconds since 1970, or ISO 8601, without a zone in UTC.
pub(super) fn moment(value: &Value) -> Option<Time> {
    /// Seconds of the year 5138; more than that are milliseconds.
    const LAST: f64 = 1e11;
    let of_number = |number: f64| {
        let seconds = if number.abs() > LAST { number / 1000.0 } else { number };
        // A float becomes an integer by cutting, and one that is too large the largest.
        #[allow(
            clippy::cast_possible_truncation,
            reason = "whole milliseconds, and the type's limits"
        )]
        let milliseconds = (seconds * 1000.0) as i64;
        jiff::Timestamp::from_millisecond(milliseconds).ok().map(Time::new)
    };
    match value {
        Value::Number(number) => of_number(number.as_f64()?),
        Value::String(text) => {
            let text = text.trim();
            let civil = || {
                let at: jiff::civil::DateTime = text.parse().ok()?;
                let at = jiff::tz::TimeZone::UTC.to_timestamp(at).ok()?;
                Some(Time::new(at))
            };
            text.parse().ok().or_else(civil).or_else(|| of_number(text.parse().ok()?))
        }
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// A duration in seconds: a number, or such as `4h`.
pub(super) fn duration(value: &Value) -> Option<u64> {
    let seconds = match value {
        // Whole seconds; what is no number of them is none.
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "cut to whole seconds, between 0 and the type's limit"
        )]
        Value::Number(number) => number.as_f64().filter(|ttl| *ttl >= 1.0)? as u64,
        Value::String(text) => match text.trim().parse::<u64>() {
            Ok(seconds) => seconds,
            Err(_) => text.trim().parse::<Seconds>().ok()?.get(),
        },
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => return None,
    };
    (seconds > 0).then_some(seconds.min(Seconds::MAX.get()))
}
