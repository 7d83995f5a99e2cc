//! Records of earlier versions, and manifests beside archives that they made: where a snapshot's archives are stood in several
//! fields then (`path`, `host_identity`, `replicas` of further hosts, `copying_to`, `damage`, `unremoved`), and is one list now.

use serde_json::{Map, Value, json};

/// Fields that no record has any more. Each of an earlier version has them all.
const GONE: [&str; 3] = ["copying_to", "damage", "unremoved"];

/// Makes the one list of replicas of what a record of an earlier version says; leaves any other as it is.
pub(super) fn list_replicas(record: &mut Map<String, Value>) {
    if !GONE.iter().any(|field| record.contains_key(*field)) {
        return;
    }
    if is_listed(record) {
        return drop_fields(record);
    }
    let mut take = |field: &str| record.remove(field).unwrap_or_default();
    let [copying_to, damage, unremoved] = GONE.map(&mut take);
    let (path, identity) = (take("path"), take("host_identity"));
    let copies = match take("replicas") {
        Value::Array(copies) => copies,
        _ => Vec::new(),
    };
    let state = record.get("state").and_then(Value::as_str).unwrap_or_default().to_owned();
    let mut replicas = Vec::new();
    let first = json!({
        "host": record.get("host"),
        "host_identity": identity,
        "path": path,
        "format": record.get("format"),
        "bytes": record.get("bytes"),
        "created_at": record.get("created_at"),
    });
    let is_first_there = match state.as_str() {
        "creating" => true,
        "failed" => unremoved == true,
        _ => !first["path"].is_null(),
    };
    replicas.extend(is_first_there.then_some(first));
    replicas.extend(copies);
    for replica in &mut replicas {
        let found = damage.as_array().into_iter().flatten();
        let found = found.clone().find(|found| is_same_host(&found["host"], &replica["host"]));
        let how = match (state.as_str(), found) {
            ("creating", _) => "arriving",
            ("failed" | "deleting", _) => "removing",
            (_, Some(_)) => "damaged",
            (_, None) => "ready",
        };
        replica["state"] = how.into();
        replica["message"] = found.map_or(Value::Null, |found| found["message"].clone());
    }
    if copying_to.is_string() {
        replicas.retain(|replica| !is_same_host(&replica["host"], &copying_to));
        let since = record.get("created_at");
        replicas.push(json!({
            "host": copying_to, "path": null, "state": "arriving", "created_at": since,
        }));
    }
    record.insert("replicas".to_owned(), replicas.into());
}

/// Whether replicas have states: an earlier version changed a record of this one, and left its list alone.
fn is_listed(record: &Map<String, Value>) -> bool {
    let replicas = record.get("replicas").and_then(Value::as_array);
    replicas.is_some_and(|all| all.iter().any(|replica| replica.get("state").is_some()))
}

/// Leaves the list as it is; what the earlier version copied meanwhile is whole.
fn drop_fields(record: &mut Map<String, Value>) {
    for field in GONE.iter().chain(&["path", "host_identity"]) {
        record.remove(*field);
    }
    for replica in record.get_mut("replicas").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Value::Object(replica) = replica {
            replica.entry("state").or_insert_with(|| "ready".into());
        }
    }
}

fn is_same_host(one: &Value, other: &Value) -> bool {
    match (one.as_str(), other.as_str()) {
        (Some(one), Some(other)) => one.eq_ignore_ascii_case(other),
        _ => false,
    }
}
