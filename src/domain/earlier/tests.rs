//! Entries of the earlier tool, made by hand: nobody here has one of its files.

use serde_json::json;
use std::collections::BTreeMap;

use super::fields::{duration, moment};
use super::*;
use crate::domain::actor::Actor;
use crate::domain::name::{ExtensionId, ProfileId};
use crate::domain::profile::Seconds;
use crate::domain::time::Time;

fn now() -> Time {
    Time::from_unix(1_800_000_000)
}

fn into(
    profile: &(dyn Fn(&str) -> Option<(ProfileId, ExtensionId)> + Send + Sync),
) -> ImportInto<'_> {
    ImportInto { now: now(), actor: Actor::parse("adm:me").unwrap(), owner: "0f".into(), profile }
}

fn catalogue(name: &str) -> Option<(ProfileId, ExtensionId)> {
    let known = matches!(name, "profile.compose-e2e" | "compose-e2e");
    known.then(|| ("profile.compose-e2e".into(), "ext.compose-ssh".into()))
}

fn sandbox(entry: Value) -> Result<Imported<SandboxRecord>, String> {
    sandbox_of(&(None, entry), &into(&catalogue))
}

#[test]
fn a_list_a_map_and_either_under_a_key_are_its_and_nothing_else_is() {
    let one = json!({"id": "a1b2c3d4", "status": "ready"});
    for (value, count) in [
        (json!([one, {"sandbox_id": "b"}]), 2),
        (json!({"a1b2c3d4": one, "x": "not an object"}), 2),
        (json!({"sandboxes": [one], "version": 2}), 1),
        (json!({"version": 1, "snapshots": {"s": {"snapshot_id": "s"}}}), 1),
        (json!([]), 0),
        (json!({}), 0),
    ] {
        assert_eq!(entries_of(&value).map(|entries| entries.len()), Some(count), "{value}");
    }
    for value in
        [json!({"a": 1}), json!([{"title": "x"}]), json!("text"), json!(7), json!({"a": {"b": {}}})]
    {
        assert_eq!(entries_of(&value), None, "{value}");
    }
}

#[test]
fn what_has_a_place_takes_it_and_the_rest_is_kept() {
    let entry = json!({
        "sandbox_id": "a1b2c3d4", "profile": "compose-e2e", "host": "coulombcore", "status": "ready",
        "inputs": {"repo": "/src", "depth": 1, "env": {"A": "b"}}, "name": "shop",
        "handle": {"project": "sandbox-a1b2c3d4"}, "reachability": {"ssh": "ops@coulombcore"},
        "created_at": "2026-05-01T12:00:00.5", "ttl": "4h", "snapshot_id": "snap-0a0b0c0d", "owner": "team",
    });
    let Imported { record, remarks } = sandbox(entry).unwrap();
    assert_eq!(remarks, Vec::<String>::new());
    assert_eq!((record.id.as_str(), record.name.as_deref()), ("a1b2c3d4", Some("shop")));
    assert_eq!(
        (record.profile.id.as_str(), record.host.as_str()),
        ("profile.compose-e2e", "coulombcore")
    );
    assert_eq!(record.state, State::Other(IMPORTED.to_owned()));
    assert_eq!(
        record.inputs,
        BTreeMap::from([("repo".into(), "/src".into()), ("depth".into(), "1".into())])
    );
    assert_eq!(record.created_at.to_string(), "2026-05-01T12:00:00.500Z");
    assert_eq!((record.ttl_s, record.expires_at, record.handle), (Some(14_400), None, None));
    assert_eq!(record.based_on_snapshot.unwrap().as_str(), "snap-0a0b0c0d");
    let kept = record.imported.unwrap();
    assert_eq!(kept["handle"]["project"], "sandbox-a1b2c3d4");
    assert_eq!(
        (&kept["status"], &kept["owner"], &kept["ttl"]),
        (&json!("ready"), &json!("team"), &json!("4h"))
    );
    assert_eq!(kept["inputs"], json!({"env": {"A": "b"}}));
    assert!(kept.get("sandbox_id").is_none() && kept.get("profile").is_none());
}

#[test]
fn times_and_durations_come_in_many_ways() {
    let may = "2026-05-01T12:00:00Z";
    for (value, at) in [
        (json!(1_777_636_800), Some(may)),
        (json!(1_777_636_800.25), Some("2026-05-01T12:00:00.250Z")),
        (json!(1_777_636_800_000_u64), Some(may)),
        (json!("1777636800"), Some(may)),
        (json!("2026-05-01T14:00:00+02:00"), Some(may)),
        (json!("2026-05-01 12:00:00"), Some(may)),
        (json!("2026-05-01T12:00:00"), Some(may)),
        (json!("yesterday"), None),
        (json!(null), None),
        (json!(1e300), None),
    ] {
        assert_eq!(moment(&value), at.map(|at| at.parse().unwrap()), "{value}");
    }
    for (value, seconds) in [
        (json!(3600), Some(3600)),
        (json!(3600.9), Some(3600)),
        (json!("4h"), Some(14_400)),
        (json!("90"), Some(90)),
        (json!(0), None),
        (json!(-5), None),
        (json!("soon"), None),
        (json!(1e300), Some(Seconds::MAX.get())),
    ] {
        assert_eq!(duration(&value), seconds, "{value}");
    }
    let ahead = sandbox(json!({"id": "a", "created_at": "2999-01-01T00:00:00Z"})).unwrap().record;
    assert_eq!(ahead.created_at, now());
}

#[test]
fn what_is_odd_is_said_and_what_is_no_entry_is_refused() {
    for (entry, why) in [
        (json!("text"), "no object"),
        (json!({"title": "x"}), "no field"),
        (json!({"state": "ready"}), "no id"),
        (json!({"id": [1], "state": "ready"}), "no id"),
        (json!({"id": " ", "state": "ready"}), "no id"),
    ] {
        assert!(sandbox(entry.clone()).unwrap_err().contains(why), "{entry}");
    }
    let Imported { record, remarks } = sandbox(json!({
        "id": "My Box", "profile": {"id": "gone"}, "host": {"name": "h"}, "state": "hibernating", "name": "$(x)",
    }))
    .unwrap();
    assert_eq!(record.id, sandbox(json!({"id": "My Box"})).unwrap().record.id, "the same id again");
    assert!(is_hex8(record.id.as_str()) && record.name.is_none());
    assert_eq!((record.host.as_str(), record.extension.as_str()), ("h", "ext.unknown"));
    for word in ["My Box", "no profile", "hibernating", "when it was made"] {
        assert!(remarks.iter().any(|remark| remark.contains(word)), "{word}: {remarks:?}");
    }
    assert_eq!(record.imported.unwrap()["id"], "My Box");
    let number = sandbox(json!({"id": 12_345_678, "state": "Destroyed"})).unwrap().record;
    assert_eq!((number.id.as_str(), number.state), ("12345678", State::Destroyed));
    let reserved = sandbox(json!({"id": "snap-deadbeef"})).unwrap().record;
    assert!(is_hex8(reserved.id.as_str()));
    let host = sandbox(json!({"id": "a", "host": "-oProxyCommand=x"})).unwrap().record.host;
    assert_eq!(host.as_str(), "unknown");
}

#[test]
fn a_snapshot_keeps_its_source_and_is_nothing_to_restore_from() {
    let entry = json!({"id": "nightly", "sandbox_id": "a1b2c3d4", "host": "h", "path": "/tmp/x.tar", "created_at": 5});
    let Imported { record, .. } =
        snapshot_of(&(Some("key".into()), entry), &into(&catalogue)).unwrap();
    assert!(SnapshotId::is_one(record.id.as_str()));
    assert_eq!(record.sandbox_id.as_str(), "a1b2c3d4");
    assert_eq!(record.state, SnapshotState::Other(IMPORTED.to_owned()));
    assert_eq!(record.imported.unwrap()["path"], "/tmp/x.tar");
    let keyed =
        snapshot_of(&(Some("snap-0a0b0c0d".into()), json!({"host": "h"})), &into(&catalogue))
            .unwrap();
    assert_eq!(keyed.record.id.as_str(), "snap-0a0b0c0d");
}
