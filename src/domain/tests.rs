//! Records of tests, as short as they can be; each test names the fields that it is about.

use serde_json::{Value, json};

use crate::domain::{Patch, SandboxRecord, SnapshotRecord, Time};

/// A ready sandbox, with these fields instead.
pub(crate) fn sandbox(fields: Value) -> SandboxRecord {
    let record = json!({
        "id": "a1b2c3d4", "profile": {"id": "profile.x", "version": "1.0.0", "hash": "00"}, "extension": "ext.x",
        "host": "here", "state": "ready", "since": Time::from_unix(0), "revision": 1, "created_at": Time::from_unix(0),
        "actor": {"type": "adm", "name": "ops"}, "owner": "o",
    });
    serde_json::from_value(with(record, fields)).unwrap()
}

/// A ready snapshot, with these fields instead.
pub(crate) fn snapshot(fields: Value) -> SnapshotRecord {
    let record = json!({
        "id": "snap-a", "kind": "user", "sandbox_id": "source", "profile": {"id": "profile.x", "version": "1.0.0", "hash": "00"},
        "extension": "ext.x", "host": "here", "state": "ready", "created_at": Time::from_unix(1_700_000_000), "patch_level": 0,
        "next_patch_sequence": 1, "actor": {"type": "adm", "name": "ops"}, "owner": "o", "revision": 1,
    });
    serde_json::from_value(with(record, fields)).unwrap()
}

/// A patch of this number of a snapshot.
pub(crate) fn patch(sequence: u64, on: &str) -> Patch {
    let patch = json!({
        "id": format!("pat-{sequence:08}"), "snapshot_id": on, "sequence": sequence, "script": "true",
        "run_in": "workspace", "created_at": Time::from_unix(0), "actor": {"type": "adm", "name": "ops"}, "revision": 1,
    });
    serde_json::from_value(patch).unwrap()
}

fn with(mut record: Value, fields: Value) -> Value {
    let Value::Object(fields) = fields else { panic!("no fields: {fields}") };
    record.as_object_mut().unwrap().extend(fields);
    record
}
