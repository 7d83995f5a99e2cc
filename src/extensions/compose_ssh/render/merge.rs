//! How compose lays one definition of a service over another (`extends`).

use serde_json::{Map, Value, json};

/// `over` laid over `base`.
pub(super) fn services(base: Map<String, Value>, over: Map<String, Value>) -> Map<String, Value> {
    let mut merged = base;
    for (key, value) in over {
        match merged.get_mut(&key) {
            Some(below) => *below = entry(&key, below.take(), value),
            None => drop(merged.insert(key, value)),
        }
    }
    merged
}

fn entry(key: &str, below: Value, above: Value) -> Value {
    match key {
        "command" | "entrypoint" | "test" => above,
        "environment" | "labels" | "annotations" | "sysctls" | "args" | "additional_contexts" => {
            overlaid(assignments(below), assignments(above))
        }
        "depends_on" => objects(
            named(below, &json!({"condition": "service_started"})),
            named(above, &json!({"condition": "service_started"})),
        ),
        "networks" => objects(named(below, &Value::Null), named(above, &Value::Null)),
        "build" => objects(context(below), context(above)),
        "logging" if below.get("driver") != above.get("driver") && above.get("driver").is_some() => above,
        "volumes" | "secrets" | "configs" | "devices" => keyed(list(below), list(above)),
        "dns" | "dns_search" | "dns_opt" | "tmpfs" | "env_file" | "label_file" | "ports" | "expose" | "extra_hosts"
        | "links" => appended(list(below), list(above)),
        _ => match (below, above) {
            (below @ Value::Object(_), above @ Value::Object(_)) => objects(below, above),
            (Value::Array(below), Value::Array(above)) => appended(below, above),
            (below, Value::Null) => below,
            (_, above) => above,
        },
    }
}

fn objects(below: Value, above: Value) -> Value {
    match (below, above) {
        (Value::Object(below), Value::Object(above)) => Value::Object(services(below, above)),
        (below, Value::Null) => below,
        (_, above) => above,
    }
}

/// User-chosen names on both sides: no key means anything here.
fn overlaid(below: Value, above: Value) -> Value {
    match (below, above) {
        (Value::Object(mut below), Value::Object(above)) => {
            below.extend(above);
            Value::Object(below)
        }
        (below, Value::Null) => below,
        (_, above) => above,
    }
}

/// `["A=b", "C"]` as `{A: b, C: null}`.
pub(super) fn assignments(value: Value) -> Value {
    let Value::Array(items) = value else { return value };
    let entries = items.into_iter().map(|item| {
        let text = scalar(&item);
        text.split_once('=')
            .map_or_else(|| (text.clone(), Value::Null), |(name, value)| (name.to_owned(), value.into()))
    });
    Value::Object(entries.collect())
}

/// Names that a list of `NAME=value` sets to different values. A mapping has none.
pub(super) fn contradictions(value: &Value) -> Vec<String> {
    let mut seen: Map<String, Value> = Map::new();
    let mut names = Vec::new();
    for text in value.as_array().into_iter().flatten().map(scalar) {
        let (name, value) = text.split_once('=').unwrap_or((&text, ""));
        if seen.insert(name.to_owned(), value.into()).is_some_and(|earlier| earlier != value) {
            names.push(name.to_owned());
        }
    }
    names
}

fn named(value: Value, empty: &Value) -> Value {
    let Value::Array(items) = value else { return value };
    Value::Object(items.iter().map(|item| (scalar(item), empty.clone())).collect())
}

fn context(value: Value) -> Value {
    if value.is_string() { json!({"context": value}) } else { value }
}

/// A list of one for a scalar, none for null.
pub(super) fn list(value: Value) -> Vec<Value> {
    match value {
        Value::Array(items) => items,
        Value::Null => Vec::new(),
        other => vec![other],
    }
}

/// A scalar as compose would write it into a string.
pub(super) fn scalar(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

fn appended(mut below: Vec<Value>, above: Vec<Value>) -> Value {
    for item in above {
        if !below.contains(&item) {
            below.push(item);
        }
    }
    Value::Array(below)
}

fn keyed(mut below: Vec<Value>, above: Vec<Value>) -> Value {
    for item in above {
        let key = target(&item);
        below.retain(|existing| target(existing) != key);
        below.push(item);
    }
    Value::Array(below)
}

/// What an entry of a list is about: the path in the container, or the name of a secret or config.
fn target(item: &Value) -> String {
    if let Some(text) = item.as_str() {
        return text.split(':').nth(1).unwrap_or(text).to_owned();
    }
    scalar(item.get("target").or_else(|| item.get("source")).unwrap_or(&Value::Null))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_merges_as_in_compose() {
        let cases = [
            ("command", json!(["a"]), json!(["b"]), json!(["b"])),
            ("image", json!("a"), json!("b"), json!("b")),
            ("environment", json!(["A=1", "B=2"]), json!({"B": 3}), json!({"A": "1", "B": 3})),
            ("labels", json!({"a": "1"}), json!(["b=2"]), json!({"a": "1", "b": "2"})),
            ("ports", json!(["80"]), json!(["81", "80"]), json!(["80", "81"])),
            ("volumes", json!(["./a:/x", "./b:/y"]), json!(["./c:/x:ro"]), json!(["./b:/y", "./c:/x:ro"])),
            ("volumes", json!([{"type": "bind", "source": "a", "target": "/x"}]), json!(["b:/x"]), json!(["b:/x"])),
            (
                "depends_on",
                json!(["a"]),
                json!({"b": {"condition": "service_healthy"}}),
                json!({"a": {"condition": "service_started"}, "b": {"condition": "service_healthy"}}),
            ),
            ("networks", json!(["a"]), json!({"b": {"aliases": ["x"]}}), json!({"a": null, "b": {"aliases": ["x"]}})),
            ("build", json!("."), json!({"args": ["A=1"]}), json!({"context": ".", "args": ["A=1"]})),
            (
                "build",
                json!({"context": ".", "args": ["A=0", "B=1"]}),
                json!({"args": {"A": "1"}}),
                json!({"context": ".", "args": {"A": "1", "B": "1"}}),
            ),
            (
                "healthcheck",
                json!({"test": ["a"], "retries": 1}),
                json!({"test": ["b"]}),
                json!({"test": ["b"], "retries": 1}),
            ),
            ("logging", json!({"driver": "a", "options": {"x": "1"}}), json!({"driver": "b"}), json!({"driver": "b"})),
            ("dns", json!("1.1.1.1"), json!(["8.8.8.8"]), json!(["1.1.1.1", "8.8.8.8"])),
            ("env_file", json!("a"), json!(["b"]), json!(["a", "b"])),
            (
                "deploy",
                json!({"resources": {"limits": {"cpus": "1"}}}),
                json!({"resources": {"limits": {"memory": "1g"}}}),
                json!({"resources": {"limits": {"cpus": "1", "memory": "1g"}}}),
            ),
            ("environment", json!({"ports": "a"}), json!({"ports": "b"}), json!({"ports": "b"})),
            ("environment", json!({"A": 1}), Value::Null, json!({"A": 1})),
        ];
        for (key, below, above, want) in cases {
            let base = Map::from_iter([(key.to_owned(), below)]);
            let over = Map::from_iter([(key.to_owned(), above)]);
            let got = services(base, over).remove(key).unwrap();
            // Values of lists that became maps are compared as compose prints them.
            assert_eq!(got, want, "{key}");
        }
    }
}
