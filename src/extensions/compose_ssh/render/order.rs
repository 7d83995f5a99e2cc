//! The order in which services start: one that waits for itself never does.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::merge::{list, scalar};
use super::pass::Pass;

/// Refuses services that wait for each other in a circle, each circle once.
pub(super) fn judge(services: &Map<String, Value>, pass: &mut Pass<'_>) {
    let needs: BTreeMap<&str, BTreeSet<String>> =
        services.iter().map(|(name, service)| (name.as_str(), needs(service))).collect();
    let mut judged = BTreeSet::new();
    for name in needs.keys() {
        let mut way = Vec::new();
        if let Some(circle) = circle(name, &needs, &mut way, &mut judged) {
            let path = format!("services.{}.depends_on", circle[0]);
            let told = format!("{} → {}", circle.join(" → "), circle[0]);
            pass.findings().refuse(
                &path,
                None,
                format!("services wait for each other: {told}; take one of these out"),
            );
        }
    }
}

/// A circle that can be come to from here, if there is one that nobody has come to before.
fn circle<'a>(
    name: &'a str,
    needs: &'a BTreeMap<&str, BTreeSet<String>>,
    way: &mut Vec<&'a str>,
    judged: &mut BTreeSet<&'a str>,
) -> Option<Vec<&'a str>> {
    if let Some(at) = way.iter().position(|before| *before == name) {
        return Some(way[at..].to_vec());
    }
    if !judged.insert(name) {
        return None;
    }
    way.push(name);
    let found =
        needs.get(name).into_iter().flatten().find_map(|needed| circle(needed, needs, way, judged));
    way.pop();
    found
}

/// Services that are started before this one: those that it names, and those whose network or namespace it joins.
fn needs(service: &Value) -> BTreeSet<String> {
    let depends = service.get("depends_on");
    let mut named: BTreeSet<String> = match depends {
        Some(Value::Object(map)) => map.keys().cloned().collect(),
        other => list(other.cloned().unwrap_or_default()).iter().map(scalar).collect(),
    };
    for key in ["links", "volumes_from"] {
        let entries = list(service.get(key).cloned().unwrap_or_default());
        named.extend(
            entries
                .iter()
                .map(scalar)
                .map(|entry| entry.split(':').next().unwrap_or_default().to_owned()),
        );
    }
    for key in ["network_mode", "ipc", "pid"] {
        let joined = service.get(key).map(scalar).unwrap_or_default();
        named.extend(joined.strip_prefix("service:").map(str::to_owned));
    }
    named
}
