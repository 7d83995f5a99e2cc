use super::*;

fn snapshot() -> SnapshotRecord {
    serde_json::from_value(serde_json::json!({
        "id": "snap-a", "kind": "user", "sandbox_id": "source", "profile": {"id": "profile.x", "version": "1.0.0", "hash": "00"},
        "extension": "ext.x", "host": "here", "state": "ready", "created_at": Time::from_unix(1_700_000_000), "patch_level": 0,
        "parent_snapshot": null, "next_patch_sequence": 1, "actor": {"type": "adm", "name": "ops"}, "owner": "o",
        "revision": 1
    }))
    .unwrap()
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
