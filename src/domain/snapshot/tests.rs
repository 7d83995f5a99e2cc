use super::*;
use crate::domain::tests as examples;

fn snapshot() -> SnapshotRecord {
    examples::snapshot(serde_json::json!({}))
}

#[test]
fn a_snapshot_makes_only_legal_moves() {
    use SnapshotState::{Creating, Deleting, Failed, Ready};
    for (from, to, legal) in [
        (Creating, Ready, true),
        (Creating, Failed, true),
        (Ready, Deleting, true),
        (Deleting, Ready, true),
        (Failed, Deleting, true),
        (Ready, Creating, false),
        (Ready, Failed, false),
        (Failed, Ready, false),
    ] {
        assert_eq!(from.may_become(&to), legal, "{from} to {to}");
    }
}

#[test]
fn the_archives_facts_stand_among_the_records_fields() {
    let mut record = snapshot();
    record.archive = ArchiveFacts {
        bytes: Some(7),
        format: Some(ArchiveFormat::TarGz),
        ..ArchiveFacts::default()
    };
    let json = serde_json::to_value(&record).unwrap();
    assert_eq!((json["bytes"].as_u64(), json["format"].as_str()), (Some(7), Some("tar.gz")));
    assert_eq!(serde_json::from_value::<SnapshotRecord>(json).unwrap(), record);
}

/// Fields of a record as the versions before the one list of replicas wrote them.
fn of_an_earlier_version(change: &serde_json::Value) -> SnapshotRecord {
    let mut record = serde_json::to_value(snapshot()).unwrap();
    let fields = record.as_object_mut().unwrap();
    fields.remove("replicas");
    fields.remove("imported_from");
    let earlier = serde_json::json!({
        "host_identity": {"machine_id": "m", "engine": "docker", "engine_id": "e"},
        "path": "/srv/snapshots/snap-a", "format": "tar.zst", "bytes": 9,
        "unremoved": false, "replicas": [], "copying_to": null, "damage": [],
    });
    fields.extend(earlier.as_object().unwrap().clone());
    fields.extend(change.as_object().unwrap().clone());
    serde_json::from_value(record).unwrap()
}

/// Its replicas, as `host state path`.
fn listed(record: &SnapshotRecord) -> Vec<String> {
    let path = |replica: &Replica| replica.path.clone().unwrap_or_else(|| "-".to_owned());
    let shown = |replica: &Replica| format!("{} {} {}", replica.host, replica.state, path(replica));
    record.replicas.iter().map(shown).collect()
}

#[test]
fn a_record_of_an_earlier_version_has_one_list_of_replicas() {
    let copy = serde_json::json!({"host": "there", "host_identity": null, "path": "/b/snapshots/snap-a",
        "format": "tar.gz", "bytes": 8, "created_at": Time::from_unix(1_700_000_100)});
    let damage = serde_json::json!({"host": "There", "kind": "altered", "message": "was cut short",
        "found_at": Time::from_unix(1_700_000_200)});
    let first = "here ready /srv/snapshots/snap-a";
    for (what, change, expected) in [
        ("as it was made", serde_json::json!({}), vec![first]),
        (
            "with a damaged copy, and one on its way",
            serde_json::json!({"replicas": [copy], "damage": [damage], "copying_to": "third"}),
            vec![first, "there damaged /b/snapshots/snap-a", "third arriving -"],
        ),
        (
            "the first is brought back",
            serde_json::json!({"replicas": [copy], "copying_to": "HERE"}),
            vec!["there ready /b/snapshots/snap-a", "HERE arriving -"],
        ),
        (
            "being made",
            serde_json::json!({"state": "creating", "path": null, "format": null, "bytes": null}),
            vec!["here arriving -"],
        ),
        ("failed", serde_json::json!({"state": "failed", "path": null}), vec![]),
        (
            "failed, and nobody could look",
            serde_json::json!({"state": "failed", "path": null, "unremoved": true}),
            vec!["here removing -"],
        ),
        (
            "half deleted",
            serde_json::json!({"state": "deleting", "replicas": [copy]}),
            vec!["here removing /srv/snapshots/snap-a", "there removing /b/snapshots/snap-a"],
        ),
        ("of the Python tool", serde_json::json!({"state": "imported", "path": null}), vec![]),
    ] {
        let record = of_an_earlier_version(&change);
        assert_eq!(listed(&record), expected, "{what}");
        let written = serde_json::to_value(&record).unwrap();
        for gone in ["path", "host_identity", "copying_to", "damage", "unremoved"] {
            assert!(written.get(gone).is_none(), "{what}: {gone}");
        }
        assert_eq!(serde_json::from_value::<SnapshotRecord>(written).unwrap(), record, "{what}");
    }
    let record =
        of_an_earlier_version(&serde_json::json!({"replicas": [copy], "damage": [damage]}));
    assert_eq!(record.replicas[0].host_identity.as_ref().unwrap().machine_id, "m");
    assert_eq!((record.replicas[0].bytes, record.replicas[1].bytes), (Some(9), Some(8)));
    assert_eq!(record.replicas[1].message.as_deref(), Some("was cut short"));
}

#[test]
fn a_replica_is_one_by_its_host_and_by_its_place() {
    let at = |host: &str, machine: &str, path: Option<&str>| Replica {
        path: path.map(str::to_owned),
        state: ReplicaState::Ready,
        ..Replica::arriving(
            HostName::new(host),
            Some(HostIdentity { machine_id: machine.to_owned(), engine: None, engine_id: None }),
            Time::from_unix(1),
        )
    };
    let mut record = snapshot();
    record.list_replica(at("one", "m", Some("/a")));
    record.list_replica(at("two", "n", Some("/a")));
    // Another root of the same machine, and a machine that says nothing of itself, are other places.
    record.list_replica(at("three", "m", Some("/b")));
    record.list_replica(at("four", "", Some("/a")));
    record.list_replica(at("five", "", Some("/a")));
    assert_eq!(listed(&record).len(), 5);
    record.list_replica(at("alias", "m", Some("/a")));
    record.list_replica(at("TWO", "o", None));
    assert_eq!(
        listed(&record),
        ["alias ready /a", "TWO ready -", "three ready /b", "four ready /a", "five ready /a"]
    );
}

#[test]
fn the_words_for_replicas_say_what_the_state_does_not() {
    let mut record = snapshot();
    let replica = |host: &str, state: ReplicaState| Replica {
        state,
        ..Replica::arriving(HostName::new(host), None, Time::from_unix(1))
    };
    record.replicas = vec![replica("one", ReplicaState::Damaged)];
    assert_eq!((record.replica_words(), record.is_lost()), (vec!["damaged".to_owned()], true));
    record.replicas.push(replica("two", ReplicaState::Ready));
    record.replicas.push(replica("three", ReplicaState::Arriving));
    assert_eq!(record.replica_words(), ["damaged on one", "arriving on three"]);
    assert!(!record.is_lost() && record.has_remains());
    record.state = SnapshotState::Deleting;
    record.replicas = vec![replica("one", ReplicaState::Removing)];
    assert!(record.replica_words().is_empty());
}
