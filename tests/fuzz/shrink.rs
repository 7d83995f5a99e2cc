//! The smallest file that still shows a fault.

use serde_json::Value;

use super::grammar::Case;
use super::judge::Finding;

/// Most tries; a tool behind a try takes its time.
const TRIES: usize = 120;

/// Takes away whatever the fault does not need.
pub(crate) fn smallest(
    mut case: Case,
    mut found: Finding,
    shows: &mut dyn FnMut(&Case) -> Option<Finding>,
) -> (Case, Finding) {
    let mut tries = 0;
    let mut at = 0;
    loop {
        let places = places(&case.project);
        if at >= places.len() || tries >= TRIES {
            return (case, found);
        }
        tries += 1;
        let mut smaller = case.clone();
        remove(&mut smaller.project, &places[at]);
        match shows(&smaller) {
            Some(still) => (case, found) = (smaller, still),
            None => at += 1,
        }
    }
}

/// Pointers to every entry, the outer ones first.
fn places(value: &Value) -> Vec<String> {
    let mut all = Vec::new();
    let mut level = vec![(String::new(), value)];
    while !level.is_empty() {
        let mut next = Vec::new();
        for (path, value) in level {
            let inner: Vec<(String, &Value)> = match value {
                Value::Object(map) => map.iter().map(|(key, value)| (escape(key), value)).collect(),
                Value::Array(items) => items
                    .iter()
                    .enumerate()
                    .map(|(index, value)| (index.to_string(), value))
                    .collect(),
                _ => Vec::new(),
            };
            for (key, value) in inner {
                all.push(format!("{path}/{key}"));
                next.push((format!("{path}/{key}"), value));
            }
        }
        level = next;
    }
    all
}

fn escape(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

fn remove(value: &mut Value, place: &str) {
    let Some((above, key)) = place.rsplit_once('/') else { return };
    match value.pointer_mut(above) {
        Some(Value::Object(map)) => {
            drop(map.shift_remove(&key.replace("~1", "/").replace("~0", "~")));
        }
        Some(Value::Array(items)) => drop(items.remove(key.parse().unwrap_or_default())),
        _ => {}
    }
}
