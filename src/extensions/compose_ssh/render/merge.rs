//! How compose lays one file over another, and a service over the one that it extends.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::document::ENTRY_BYTES;

/// How an upper value is laid over a lower one.
enum Rule {
    /// The upper one counts, also where it says nothing.
    Replace,
    /// `NAME=value` in a list or mapping: by name.
    Assignments,
    /// Names in a list, or a mapping from names to settings: by name, and the settings over each other.
    Names(fn() -> Value),
    /// `name:address` in a list or mapping: all that are not there yet.
    Hosts,
    /// A list or the one word that is in it: all that are not there yet.
    Append,
    /// A list of which each entry is about something; the upper one about it counts.
    Keyed(fn(&Value) -> String),
    /// A list of mappings; those with one subnet are laid over each other.
    Subnets,
    /// A build is a folder, or a mapping.
    Build,
    /// Settings of another driver than the lower one's are no addition to it.
    Driver,
    /// A mapping of these keys; the others are laid over each other as their kind of value is.
    Keys(&'static [(&'static str, Rule)]),
    /// A mapping from names of the file's own.
    Each(&'static Self),
    /// Mappings are laid over each other, lists are joined, the upper one of anything else counts.
    Deep,
}

static PROJECT: Rule = Rule::Keys(&[
    ("services", Rule::Each(&SERVICE)),
    (
        "networks",
        Rule::Each(&Rule::Keys(&[
            ("labels", Rule::Assignments),
            ("ipam", Rule::Keys(&[("config", Rule::Subnets)])),
        ])),
    ),
    ("volumes", Rule::Each(&Rule::Keys(&[("labels", Rule::Assignments)]))),
    ("secrets", Rule::Each(&Rule::Keys(&[("labels", Rule::Assignments)]))),
    ("configs", Rule::Each(&Rule::Keys(&[("labels", Rule::Assignments)]))),
]);

static SERVICE: Rule = Rule::Keys(&[
    ("annotations", Rule::Assignments),
    ("build", Rule::Build),
    ("command", Rule::Replace),
    ("configs", Rule::Keyed(target)),
    ("depends_on", Rule::Names(started)),
    ("deploy", Rule::Keys(&[("labels", Rule::Assignments)])),
    ("devices", Rule::Keyed(target)),
    ("dns", Rule::Append),
    ("dns_opt", Rule::Append),
    ("dns_search", Rule::Append),
    ("entrypoint", Rule::Replace),
    ("env_file", Rule::Append),
    ("environment", Rule::Assignments),
    ("expose", Rule::Append),
    ("extra_hosts", Rule::Hosts),
    ("healthcheck", Rule::Keys(&[("test", Rule::Replace)])),
    ("label_file", Rule::Append),
    ("labels", Rule::Assignments),
    ("links", Rule::Append),
    ("logging", Rule::Driver),
    ("networks", Rule::Names(nothing)),
    ("ports", Rule::Append),
    ("secrets", Rule::Keyed(target)),
    ("sysctls", Rule::Assignments),
    ("tmpfs", Rule::Keyed(memory)),
    ("ulimits", Rule::Each(&Rule::Deep)),
    ("volumes", Rule::Keyed(target)),
]);

static BUILD: Rule = Rule::Keys(&[
    ("additional_contexts", Rule::Assignments),
    ("args", Rule::Assignments),
    ("extra_hosts", Rule::Hosts),
    ("labels", Rule::Assignments),
]);

/// A project whose file lies over another's.
pub(super) fn projects(below: Map<String, Value>, above: Map<String, Value>) -> Map<String, Value> {
    mapping(lay(&PROJECT, Value::Object(below), Value::Object(above)))
}

/// A service over the one that it extends.
pub(super) fn services(below: Map<String, Value>, above: Map<String, Value>) -> Map<String, Value> {
    mapping(lay(&SERVICE, Value::Object(below), Value::Object(above)))
}

fn mapping(value: Value) -> Map<String, Value> {
    if let Value::Object(map) = value { map } else { Map::new() }
}

/// Takes out of a project what a file over it resets or replaces: the keys that lead to each.
pub(super) fn make_way(project: &mut Map<String, Value>, replaced: &[Vec<String>]) {
    let mut below = Value::Object(std::mem::take(project));
    for keys in replaced {
        take_away(&PROJECT, &mut below, keys);
    }
    *project = mapping(below);
}

/// The same for what the service `name` of a file extends.
pub(super) fn make_way_for(service: &mut Map<String, Value>, name: &str, replaced: &[Vec<String>]) {
    let mut below = Value::Object(std::mem::take(service));
    for keys in replaced {
        if let [section, service, keys @ ..] = keys.as_slice()
            && section == "services"
            && service == name
        {
            take_away(&SERVICE, &mut below, keys);
        }
    }
    *service = mapping(below);
}

fn take_away(rule: &Rule, value: &mut Value, keys: &[String]) {
    let [key, rest @ ..] = keys else {
        *value = Value::Null;
        return;
    };
    *value = spread(rule, value.take());
    let Some(map) = value.as_object_mut() else { return };
    if rest.is_empty() {
        map.shift_remove(key);
    } else if let Some(inner) = map.get_mut(key) {
        take_away(rule.of(key), inner, rest);
    }
}

/// A value that may be written in a short form, as the mapping that it means.
fn spread(rule: &Rule, value: Value) -> Value {
    match rule {
        Rule::Assignments => assignments(value),
        Rule::Names(empty) => named(value, *empty),
        Rule::Build => context(value),
        Rule::Replace
        | Rule::Hosts
        | Rule::Append
        | Rule::Keyed(_)
        | Rule::Subnets
        | Rule::Driver
        | Rule::Keys(_)
        | Rule::Each(_)
        | Rule::Deep => value,
    }
}

impl Rule {
    /// Rule for what stands behind a key.
    fn of(&self, key: &str) -> &Self {
        match self {
            Self::Assignments => &Self::Replace,
            Self::Each(inner) => inner,
            Self::Build => BUILD.of(key),
            Self::Keys(table) => {
                table.iter().find(|(name, _)| *name == key).map_or(&Self::Deep, |(_, rule)| rule)
            }
            Self::Replace
            | Self::Names(_)
            | Self::Hosts
            | Self::Append
            | Self::Keyed(_)
            | Self::Subnets
            | Self::Driver
            | Self::Deep => &Self::Deep,
        }
    }
}

fn lay(rule: &Rule, below: Value, above: Value) -> Value {
    match rule {
        Rule::Replace => return above,
        _ if above.is_null() => return below,
        _ if below.is_null() => return above,
        Rule::Driver => {
            let driver =
                |value: &Value| value.get("driver").filter(|driver| !driver.is_null()).cloned();
            if let (Some(lower), Some(upper)) = (driver(&below), driver(&above))
                && lower != upper
            {
                return above;
            }
        }
        Rule::Append => return appended(list(below), list(above)),
        Rule::Hosts => return appended(pairs(below), pairs(above)),
        Rule::Keyed(about) => return keyed(list(below), list(above), *about),
        Rule::Subnets => return subnets(list(below), list(above)),
        Rule::Assignments
        | Rule::Names(_)
        | Rule::Build
        | Rule::Keys(_)
        | Rule::Each(_)
        | Rule::Deep => {}
    }
    match (spread(rule, below), spread(rule, above)) {
        (Value::Object(mut below), Value::Object(above)) => {
            for (key, value) in above {
                match below.get_mut(&key) {
                    Some(lower) => *lower = lay(rule.of(&key), lower.take(), value),
                    None => drop(below.insert(key, value)),
                }
            }
            Value::Object(below)
        }
        (Value::Array(below), Value::Array(above)) => appended(below, above),
        (_, above) => above,
    }
}

/// Entries of a mapping and of all that is in it, long texts counted as several.
pub(super) fn size(map: &Map<String, Value>) -> usize {
    fn of(value: &Value) -> usize {
        match value {
            Value::Object(map) => size(map),
            Value::Array(items) => items.iter().map(|item| 1 + of(item)).sum(),
            Value::String(text) => text.len() / ENTRY_BYTES,
            Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        }
    }
    map.values().map(|value| 1 + of(value)).sum()
}

fn nothing() -> Value {
    Value::Null
}

fn started() -> Value {
    json!({"condition": "service_started"})
}

/// `["A=b", "C"]` as `{A: b, C: null}`.
pub(super) fn assignments(value: Value) -> Value {
    let Value::Array(items) = value else { return value };
    let entries = items.into_iter().map(|item| {
        let text = scalar(&item);
        text.split_once('=').map_or_else(
            || (text.clone(), Value::Null),
            |(name, value)| (name.to_owned(), value.into()),
        )
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

fn named(value: Value, empty: fn() -> Value) -> Value {
    let Value::Array(items) = value else { return value };
    Value::Object(items.iter().map(|item| (scalar(item), empty())).collect())
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

/// Hosts as a list of `name:address`.
fn pairs(value: Value) -> Vec<Value> {
    let Value::Object(map) = value else { return list(value) };
    let each = |(name, addresses)| {
        let line = move |address| Value::String(format!("{name}:{}", scalar(&address)));
        list(addresses).into_iter().map(line).collect::<Vec<_>>()
    };
    map.into_iter().flat_map(each).collect()
}

fn appended(mut below: Vec<Value>, above: Vec<Value>) -> Value {
    // `80` and `"80"` are one word to every tool.
    let word = |value: &Value| {
        if value.is_object() { value.clone() } else { Value::String(scalar(value)) }
    };
    let mut seen: HashSet<Value> = below.iter().map(word).collect();
    below.extend(above.into_iter().filter(|item| seen.insert(word(item))));
    Value::Array(below)
}

fn keyed(mut below: Vec<Value>, above: Vec<Value>, about: fn(&Value) -> String) -> Value {
    let replaced: HashSet<String> = above.iter().map(about).collect();
    below.retain(|lower| !replaced.contains(&about(lower)));
    below.extend(above);
    Value::Array(below)
}

fn subnets(mut below: Vec<Value>, above: Vec<Value>) -> Value {
    for item in above {
        match below.iter_mut().find(|lower| {
            lower.get("subnet").is_some() && lower.get("subnet") == item.get("subnet")
        }) {
            Some(lower) => *lower = lay(&Rule::Deep, lower.take(), item),
            None => below.push(item),
        }
    }
    Value::Array(below)
}

/// Subject of a list's entry: the path in the container, or the name of a secret or config.
fn target(item: &Value) -> String {
    if let Some(text) = item.as_str() {
        let mut parts = text.split(':');
        let first = parts.next().unwrap_or_default();
        return parts.next().filter(|part| part.starts_with('/')).unwrap_or(first).to_owned();
    }
    scalar(item.get("target").or_else(|| item.get("source")).unwrap_or(&Value::Null))
}

/// Where a file system of memory is mounted.
fn memory(item: &Value) -> String {
    scalar(item).split(':').next().unwrap_or_default().to_owned()
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
            (
                "volumes",
                json!(["./a:/x", "./b:/y"]),
                json!(["./c:/x:ro"]),
                json!(["./b:/y", "./c:/x:ro"]),
            ),
            (
                "volumes",
                json!([{"type": "bind", "source": "a", "target": "/x"}]),
                json!(["b:/x"]),
                json!(["b:/x"]),
            ),
            (
                "depends_on",
                json!(["a"]),
                json!({"b": {"condition": "service_healthy"}}),
                json!({"a": {"condition": "service_started"}, "b": {"condition": "service_healthy"}}),
            ),
            (
                "networks",
                json!(["a"]),
                json!({"b": {"aliases": ["x"]}}),
                json!({"a": null, "b": {"aliases": ["x"]}}),
            ),
            (
                "build",
                json!("."),
                json!({"args": ["A=1"]}),
                json!({"context": ".", "args": ["A=1"]}),
            ),
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
            (
                "logging",
                json!({"options": {"x": "1"}}),
                json!({"driver": "b"}),
                json!({"options": {"x": "1"}, "driver": "b"}),
            ),
            (
                "extra_hosts",
                json!({"a": "1.1.1.1"}),
                json!(["b:2.2.2.2", "a:1.1.1.1"]),
                json!(["a:1.1.1.1", "b:2.2.2.2"]),
            ),
            ("expose", json!([80]), json!(["80", "81"]), json!([80, "81"])),
            ("tmpfs", json!("/run"), json!(["/run:size=1m"]), json!(["/run:size=1m"])),
            ("volumes", json!(["/a", "./b:/b"]), json!(["/a:ro"]), json!(["./b:/b", "/a:ro"])),
            ("command", json!("a"), Value::Null, Value::Null),
            // Names of the file's own are no keys of compose.
            (
                "networks",
                json!({"dns": {"priority": 1}}),
                json!({"dns": {"aliases": ["x"]}}),
                json!({"dns": {"priority": 1, "aliases": ["x"]}}),
            ),
            (
                "logging",
                json!({"driver": "a", "options": {"x": "1"}}),
                json!({"driver": "b"}),
                json!({"driver": "b"}),
            ),
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

    #[test]
    fn sections_are_laid_over_each_other_by_name() {
        let object = |value: Value| mapping(value);
        let below = json!({"services": {"web": {"image": "a", "command": "x"}, "db": {"image": "b"}},
            "networks": {"n": {"ipam": {"config": [{"subnet": "10.0.0.0/24"}]}, "labels": ["a=1"]}}, "volumes": {"v": null}});
        let above = json!({"services": {"web": {"command": null}, "job": {"image": "c"}, "db": null},
            "networks": {"n": {"ipam": {"config": [{"subnet": "10.0.0.0/24", "gateway": "10.0.0.1"}]}, "labels": {"b": "2"}}},
            "volumes": {"v": {"driver": "local"}}});
        let want = json!({"services": {"web": {"image": "a", "command": null}, "db": {"image": "b"}, "job": {"image": "c"}},
            "networks": {"n": {"ipam": {"config": [{"subnet": "10.0.0.0/24", "gateway": "10.0.0.1"}]}, "labels": {"a": "1", "b": "2"}}},
            "volumes": {"v": {"driver": "local"}}});
        assert_eq!(Value::Object(projects(object(below), object(above))), want);
    }

    #[test]
    fn tags_take_away_what_lies_below_in_whatever_form_it_is_written() {
        let mark = |keys: &[&str]| keys.iter().map(|key| (*key).to_owned()).collect::<Vec<_>>();
        let mut below = mapping(json!({
            "services": {"web": {"environment": ["A=1", "B=2"], "networks": ["n", "m"], "build": ".", "ports": ["80"]}, "db": {}},
            "volumes": {"v": {}},
        }));
        let marks = [
            mark(&["services", "web", "environment", "A"]),
            mark(&["services", "web", "networks", "n"]),
            mark(&["services", "web", "build", "context"]),
            mark(&["services", "web", "ports"]),
            mark(&["services", "db"]),
            mark(&["services", "gone", "ports"]),
            mark(&["volumes"]),
        ];
        make_way(&mut below, &marks);
        let want = json!({"services": {"web": {"environment": {"B": "2"}, "networks": {"m": null}, "build": {}}}});
        assert_eq!(Value::Object(below), want);
    }
}
