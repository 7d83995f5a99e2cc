use super::*;
use crate::domain::profile::Bytes;
use crate::domain::snapshot::{Replica, ReplicaState};
use crate::domain::tests as examples;

fn at(n: i64) -> Time {
    Time::from_unix(1_700_000_000 + n)
}

/// An archive that is whole.
fn replica(host: &str) -> serde_json::Value {
    serde_json::json!({"host": host, "path": "/r", "state": "ready", "created_at": at(8)})
}

/// `name time`: taken here; `name time import`: brought here; `name time adopt`: found on its host.
fn line(words: &str) -> Vec<SnapshotRecord> {
    let one = |words: &str| {
        let mut words = words.split_whitespace();
        let (id, n) = (words.next().unwrap(), words.next().unwrap().parse().unwrap());
        let mut record = examples::snapshot(serde_json::json!({
            "id": id, "sandbox_id": "a1b2c3d4", "created_at": at(n), "replicas": [replica("here")],
        }));
        match words.next() {
            Some("import") => record.imported_at = Some(at(1000)),
            Some("adopt") => record.adopted_at = Some(at(1000)),
            _ => {}
        }
        record
    };
    words.split(',').map(one).collect()
}

fn old(rule: RetentionRule, records: &[SnapshotRecord]) -> String {
    let all: Vec<&SnapshotRecord> = records.iter().collect();
    let old = rule.old(&all, at(100));
    old.iter().map(|(record, _)| record.id.as_str()).collect::<Vec<_>>().join(" ")
}

fn keep(keep: u32) -> RetentionRule {
    RetentionRule { keep: Some(keep), ..RetentionRule::default() }
}

#[test]
fn the_newest_is_what_came_last_whatever_the_clock_said() {
    for (records, kept, expected) in [
        ("a 1, b 2, c 3", 1, "a b"),
        ("a 1, b 2, c 3", 2, "a"),
        ("a 1, b 2, c 3", 0, "a b c"),
        // The clock was set back before the last one.
        ("a 50, b 60, c 3", 1, "a b"),
        ("a 50, b 4, c 3", 2, "a"),
        // An import stands where its time puts it among those that were there, and before all that came later.
        ("a 10, b 20, i 15 import", 1, "a i"),
        ("a 10, b 20, i 15 import", 2, "a"),
        ("a 10, b 20, i 30 import", 1, "a b"),
        ("a 10, i 30 import, b 20", 1, "a i"),
        ("i 30 import, b 3", 1, "i"),
        // So does what is adopted, whatever order it is written down in.
        ("n 30 adopt, m 20 adopt, b 40, o 10 adopt", 1, "o m n"),
        ("b 25, n 30 adopt, o 20 adopt", 1, "o b"),
    ] {
        assert_eq!(old(keep(kept), &line(records)), expected, "{records}, keep {kept}");
    }
}

#[test]
fn an_age_goes_by_the_clock() {
    let age = |older_than_s| RetentionRule {
        older_than_s: Some(older_than_s),
        ..RetentionRule::default()
    };
    assert_eq!(old(age(50), &line("a 20, b 50, c 60, d 49")), "a d");
    // A snapshot of a time to come is not old.
    assert_eq!(old(age(0), &line("a 200, b 99")), "b");
    assert_eq!(
        old(RetentionRule { keep: Some(1), ..age(50) }, &line("a 20, b 60, c 10")),
        "a",
        "what is both"
    );
}

#[test]
fn what_a_profile_keeps_is_counted_without_what_was_imported() {
    let rule = RetentionRule { taken_here: true, ..keep(1) };
    assert_eq!(old(rule, &line("i 1 import, a 10, j 20 import")), "");
    assert_eq!(old(rule, &line("i 1 import, a 10, j 20 import, b 15")), "a");
}

#[test]
fn only_what_is_ready_and_sound_counts() {
    let mut records = line("a 1, b 2, c 3");
    records[2].state = SnapshotState::Deleting;
    // A deletion that was not finished goes on; one that somebody is at is left to them.
    assert_eq!(old(keep(1), &records), "a c");
    let running = serde_json::json!({"id": "op-0000000a", "kind": "delete", "started_at": at(9), "pid": 1, "host": "here",
        "actor": {"type": "adm", "name": "ops"}});
    records[2].operation = serde_json::from_value(running).unwrap();
    assert_eq!(old(keep(1), &records), "a");
    records[1].kind = SnapshotKind::Undo;
    assert_eq!(old(keep(1), &records), "");
    let mut records = line("a 1, b 2");
    records[1].mark_all(&ReplicaState::Damaged);
    assert_eq!(old(keep(1), &records), "");
    records[1].sandbox_id = SandboxId::new("b1b2b3b4");
    assert_eq!(old(keep(0), &records), "a b");
}

#[test]
fn it_says_why() {
    let records = line("a 1, b 2, c 3");
    let all: Vec<&SnapshotRecord> = records.iter().collect();
    let said = |rule: RetentionRule, at_: usize| rule.judge(all[at_], &all, at(100));
    let age = |older_than_s| RetentionRule {
        older_than_s: Some(older_than_s),
        ..RetentionRule::default()
    };
    assert_eq!(said(keep(1), 0).unwrap(), "2 newer ones of sandbox a1b2c3d4 are there");
    assert_eq!(said(keep(1), 2).unwrap_err(), "it is the newest of sandbox a1b2c3d4");
    assert_eq!(said(keep(2), 1).unwrap_err(), "it is one of the newest 2 of sandbox a1b2c3d4");
    assert_eq!(said(age(39), 0).unwrap(), "1m old");
    assert_eq!(said(age(3600), 0).unwrap_err(), "it is not older than 1h");
}

#[test]
fn undo_snapshots_of_a_host_go_when_their_window_is_over_and_the_oldest_where_they_are_too_many() {
    let settings = |most| UndoSettings { max_total: Bytes(most), ..UndoSettings::default() };
    let mut records = line("old 1, user 2, first 3, second 4, away 5, failed 6, third 7");
    for record in &mut records {
        record.archive.bytes = Some(10);
        if record.id.as_str() != "user" {
            record.kind = SnapshotKind::Undo;
            record.expires_at = Some(at(200));
        }
    }
    records[0].expires_at = Some(at(100));
    records[4].replicas =
        serde_json::from_value(serde_json::json!([replica("elsewhere")])).unwrap();
    records[5].state = SnapshotState::Failed;
    let surplus = |most: u64, host: &str, records: &[SnapshotRecord]| {
        let all: Vec<&SnapshotRecord> = records.iter().collect();
        let surplus = surplus_undo(&all, &HostName::new(host), &settings(most), at(100));
        surplus.iter().map(|(record, _)| record.id.as_str()).collect::<Vec<_>>().join(" ")
    };
    for (most, host, expected) in [
        (30, "here", "old"),
        (29, "here", "old first"),
        (10, "HERE", "old first second"),
        (9, "here", "old first second third"),
        (9, "elsewhere", "away"),
        (0, "nowhere", ""),
    ] {
        assert_eq!(surplus(most, host, &records), expected, "{most} on {host}");
    }
    // A copy takes room where it is.
    let mut copy: Replica = serde_json::from_value(replica("elsewhere")).unwrap();
    copy.bytes = Some(90);
    records[3].list_replica(copy);
    assert_eq!(surplus(99, "elsewhere", &records), "second");
    // An adopted one goes by its time, not by when its record was made.
    let mut adopted = line("old 30, found 2 adopt");
    for record in &mut adopted {
        record.archive.bytes = Some(10);
        record.kind = SnapshotKind::Undo;
    }
    assert_eq!(surplus(10, "here", &adopted), "found");
    // Protection of a sandbox is none of its undo snapshot.
    records[0].labels.insert("protect".into(), "true".into());
    records[1].labels.insert("protect".into(), "true".into());
    assert_eq!((records[0].is_protected(), records[1].is_protected()), (false, true));
}
