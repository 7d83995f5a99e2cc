use super::*;

fn at(n: i64) -> Time {
    Time::from_unix(1_700_000_000 + n)
}

/// `name time`: taken here; `name time import`: brought here.
fn line(words: &str) -> Vec<SnapshotRecord> {
    let one = |words: &str| {
        let mut words = words.split_whitespace();
        let (id, n) = (words.next().unwrap(), words.next().unwrap().parse().unwrap());
        let mut record: SnapshotRecord = serde_json::from_value(serde_json::json!({
            "id": id, "kind": "user", "sandbox_id": "a1b2c3d4", "profile": {"id": "profile.x", "version": "1.0.0",
            "hash": "00"}, "extension": "ext.x", "host": "here", "state": "ready", "created_at": at(n), "patch_level": 0,
            "next_patch_sequence": 1, "actor": {"type": "adm", "name": "ops"}, "owner": "o", "revision": 1
        }))
        .unwrap();
        record.imported_at = words.next().map(|_| at(1000));
        record
    };
    words.split(',').map(one).collect()
}

fn old(rule: OldRule, records: &[SnapshotRecord]) -> String {
    let all: Vec<&SnapshotRecord> = records.iter().collect();
    let old = rule.old(&all, at(100));
    old.iter().map(|(record, _)| record.id.as_str()).collect::<Vec<_>>().join(" ")
}

fn keep(keep: u32) -> OldRule {
    OldRule { keep: Some(keep), ..OldRule::default() }
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
        // What is imported stands where its time puts it among those that were there, and before all that came later.
        ("a 10, b 20, i 15 import", 1, "a i"),
        ("a 10, b 20, i 15 import", 2, "a"),
        ("a 10, b 20, i 30 import", 1, "a b"),
        ("a 10, i 30 import, b 20", 1, "a i"),
        ("i 30 import, b 3", 1, "i"),
    ] {
        assert_eq!(old(keep(kept), &line(records)), expected, "{records}, keep {kept}");
    }
}

#[test]
fn an_age_goes_by_the_clock() {
    let age = |older_than_s| OldRule { older_than_s: Some(older_than_s), ..OldRule::default() };
    assert_eq!(old(age(50), &line("a 20, b 50, c 60, d 49")), "a d");
    // One of a time to come is not old.
    assert_eq!(old(age(0), &line("a 200, b 99")), "b");
    assert_eq!(
        old(OldRule { keep: Some(1), ..age(50) }, &line("a 20, b 60, c 10")),
        "a",
        "what is both"
    );
}

#[test]
fn what_a_profile_keeps_is_counted_without_what_was_imported() {
    let rule = OldRule { taken_here: true, ..keep(1) };
    assert_eq!(old(rule, &line("i 1 import, a 10, j 20 import")), "");
    assert_eq!(old(rule, &line("i 1 import, a 10, j 20 import, b 15")), "a");
}

#[test]
fn only_what_is_ready_and_sound_counts() {
    let mut records = line("a 1, b 2, c 3");
    records[2].state = SnapshotState::Deleting;
    assert_eq!(old(keep(1), &records), "a");
    records[1].kind = SnapshotKind::Undo;
    assert_eq!(old(keep(1), &records), "");
    let mut records = line("a 1, b 2");
    records[1].damage = serde_json::from_value(
        serde_json::json!([{"host": "here", "kind": "missing", "message": "gone", "found_at": at(50)}]),
    )
    .unwrap();
    assert_eq!(old(keep(1), &records), "");
    records[1].sandbox_id = SandboxId::new("b1b2b3b4");
    assert_eq!(old(keep(0), &records), "a b");
}

#[test]
fn it_says_why() {
    let records = line("a 1, b 2, c 3");
    let all: Vec<&SnapshotRecord> = records.iter().collect();
    let said = |rule: OldRule, at_: usize| rule.judge(all[at_], &all, at(100));
    let age = |older_than_s| OldRule { older_than_s: Some(older_than_s), ..OldRule::default() };
    assert_eq!(said(keep(1), 0).unwrap(), "2 newer ones of sandbox a1b2c3d4 are there");
    assert_eq!(said(keep(1), 2).unwrap_err(), "it is the newest of sandbox a1b2c3d4");
    assert_eq!(said(keep(2), 1).unwrap_err(), "it is one of the newest 2 of sandbox a1b2c3d4");
    assert_eq!(said(age(39), 0).unwrap(), "1m old");
    assert_eq!(said(age(3600), 0).unwrap_err(), "it is not older than 1h");
}
