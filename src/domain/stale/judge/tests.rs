use super::*;
use crate::domain::sandbox::State;
use crate::domain::stale::ReapAction;
use crate::domain::tests as examples;

fn at(seconds: i64) -> Time {
    Time::from_unix(1_800_000_000 + seconds)
}

fn from(seconds: i64) -> Standpoint {
    Standpoint {
        now: at(seconds),
        settings: StaleSettings::default(),
        owners: vec!["us".into(), "adopted".into()],
        owners_ahead: vec!["ahead".into()],
    }
}

fn record(change: impl FnOnce(&mut SandboxRecord)) -> SandboxRecord {
    let mut record = examples::sandbox(serde_json::json!({
        "host": "far", "since": at(0), "revision": 7, "created_at": at(0), "ready_at": at(0), "owner": "us",
    }));
    change(&mut record);
    record
}

fn sight(record: &SandboxRecord) -> RecordSight<'_> {
    RecordSight { record, left_by_dead: None, is_gone: false, found: None, unjudged: None }
}

/// `class action`, or `-` for what is in order.
fn words(item: Option<StaleItem>) -> String {
    item.map_or_else(|| "-".to_owned(), |item| format!("{} {}", item.class, item.action))
}

#[test]
fn a_record_is_stale_by_its_deadline_its_failure_its_dead_or_its_host() {
    let dead = LeftByDead { was: "create by process 1 on box".into(), action: ReapAction::Destroy };
    let day = 24 * 3600;
    let judge = |record: &SandboxRecord, now: i64, dead: Option<&LeftByDead>, gone: bool| {
        words(judge_record(
            RecordSight { left_by_dead: dead, is_gone: gone, ..sight(record) },
            &from(now),
        ))
    };
    let lives = record(|record| record.expires_at = Some(at(100)));
    assert_eq!(judge(&lives, 99, None, false), "-");
    assert_eq!(judge(&lives, 100, None, false), "expired destroy");
    assert_eq!(judge(&lives, 100, Some(&dead), true), "expired destroy", "its time counts first");
    assert_eq!(judge(&lives, 99, Some(&dead), true), "stuck destroy", "then who died over it");
    assert_eq!(judge(&lives, 99, None, true), "lost close");
    assert_eq!(
        judge(&record(|_| ()), 10 * day, None, false),
        "-",
        "without a deadline it lives for ever"
    );
    let failed = record(|record| record.state = State::Failed);
    assert_eq!(judge(&failed, day - 1, None, false), "-");
    assert_eq!(judge(&failed, day, None, false), "failed destroy");
    let old_deadline = record(|record| {
        record.state = State::Failed;
        record.expires_at = Some(at(1));
    });
    assert_eq!(judge(&old_deadline, 100, None, false), "-", "a failed one has no deadline");
    let kept = record(|record| {
        record.state = State::Failed;
        record.kept_failed = true;
        record.expires_at = Some(at(50));
    });
    assert_eq!(judge(&kept, 49, None, false), "-");
    assert_eq!(judge(&kept, 50, None, false), "expired destroy");
    for state in [State::Destroyed, State::Forgotten, State::Other("odd".into())] {
        let over = record(|record| {
            record.state = state;
            record.expires_at = Some(at(1));
        });
        assert_eq!(judge(&over, 10 * day, Some(&dead), true), "-");
    }
    let ending = record(|record| {
        record.state = State::Destroying;
        record.expires_at = Some(at(1));
    });
    assert_eq!(judge(&ending, 100, None, false), "-", "somebody is at it");
    assert_eq!(judge(&ending, 100, Some(&dead), false), "stuck destroy");
}

#[test]
fn what_is_protected_or_on_a_host_that_cannot_be_judged_is_kept() {
    let expired = record(|record| record.expires_at = Some(at(1)));
    let guarded = record(|record| {
        record.expires_at = Some(at(1));
        record.labels.insert("protect".into(), "true".into());
    });
    let item = judge_record(sight(&guarded), &from(2)).unwrap();
    assert_eq!((words(Some(item.clone())), item.protected), ("expired keep".into(), true));
    assert!(item.possible.is_empty() && item.why.contains("protect=true"), "{item:?}");
    let unread = RecordSight { unjudged: Some("far does not answer"), ..sight(&expired) };
    let item = judge_record(unread, &from(2)).unwrap();
    assert_eq!(words(Some(item.clone())), "expired keep");
    assert!(item.possible.is_empty() && item.why.contains("far does not answer"), "{item:?}");
    let others = record(|record| {
        record.expires_at = Some(at(1));
        record.owner = "ahead".into();
    });
    let item = judge_record(sight(&others), &from(2)).unwrap();
    assert_eq!((words(Some(item.clone())), item.possible.len()), ("expired keep".into(), 0));
    let item = judge_record(sight(&expired), &from(2)).unwrap();
    assert_eq!((item.identity.as_str(), item.possible), ("revision 7", vec![ReapAction::Destroy]));
}

fn found(owner: Option<&str>, expires_at: Option<Time>) -> InventoryItem {
    InventoryItem {
        sandbox_id: "a1b2c3d4".into(),
        owner: owner.map(str::to_owned),
        directory: Some("/r/sbx-a1b2c3d4".into()),
        containers: Vec::new(),
        networks: Vec::new(),
        volumes: Vec::new(),
        profile: None,
        created_at: Some(at(-1000)),
        expires_at,
        bytes: None,
        name: None,
        protected: false,
        engines: Vec::new(),
        made_on: None,
        fingerprint: "f".into(),
    }
}

fn engine(program: &str) -> Engine {
    Engine {
        program: program.to_owned(),
        version: None,
        id: None,
        rootless: false,
        podman_behind: false,
    }
}

fn seen<'a>(host: &'a HostName, found: &'a InventoryItem) -> FoundSight<'a> {
    FoundSight { host, found, answering: &[], silent: None, destroyed_at: None }
}

#[test]
fn what_no_record_knows_is_reaped_when_its_time_is_over_and_adopted_before() {
    let host = HostName::new("far");
    let docker = [engine("docker")];
    let judge = |found: &InventoryItem, silent| {
        let sight = FoundSight { silent, answering: &docker, ..seen(&host, found) };
        let item = judge_found(sight, &from(0));
        let possible = item.as_ref().map_or(0, |item| item.possible.len());
        format!("{} {possible}", words(item))
    };
    let stack = |found: InventoryItem| InventoryItem { engines: vec!["docker".into()], ..found };
    let bare = |found: InventoryItem| InventoryItem { directory: None, ..stack(found) };
    let (over, later) = (Some(at(-1)), Some(at(1)));
    assert_eq!(judge(&found(Some("us"), over), None), "orphan_dir remove 2");
    assert_eq!(judge(&found(Some("us"), later), None), "orphan_dir adopt 2");
    assert_eq!(judge(&found(Some("adopted"), None), None), "orphan_dir adopt 2");
    assert_eq!(judge(&stack(found(Some("us"), over)), None), "orphan_stack remove 2");
    assert_eq!(judge(&stack(found(Some("us"), later)), None), "orphan_stack adopt 2");
    assert_eq!(judge(&bare(found(Some("us"), None)), None), "orphan_stack keep 1");
    assert_eq!(judge(&found(Some("them"), over), None), "foreign keep 0");
    assert_eq!(judge(&found(Some("ahead"), over), None), "orphan_dir keep 0");
    assert_eq!(judge(&found(None, over), None), "unreadable keep 0");
    let odd = InventoryItem { sandbox_id: "../x".into(), ..found(Some("us"), over) };
    assert_eq!(judge(&odd, None), "unreadable keep 0");
    let guarded = InventoryItem { protected: true, ..found(Some("us"), over) };
    assert_eq!(judge(&guarded, None), "orphan_dir keep 1");
    // An engine that does not answer may have more of it, unless the manifest says which one it was made on.
    assert_eq!(judge(&found(Some("us"), over), Some("docker is silent")), "orphan_dir keep 2");
    let made_on =
        |engine: &str| InventoryItem { made_on: Some(engine.into()), ..found(Some("us"), over) };
    assert_eq!(judge(&made_on("docker"), Some("podman is silent")), "orphan_dir remove 2");
    assert_eq!(judge(&made_on("none"), Some("podman is silent")), "orphan_dir remove 2");
    assert_eq!(judge(&made_on("podman"), Some("podman is silent")), "orphan_dir keep 0");
    // Things of a destroyed sandbox that are here all the same came after: they go, whatever the deadline, and are never
    // adopted.
    for found in [found(Some("us"), later), bare(found(Some("us"), None))] {
        let destroyed = FoundSight { destroyed_at: Some(at(-5)), ..seen(&host, &found) };
        let item = judge_found(destroyed, &from(0)).unwrap();
        assert_eq!((&item.action, item.possible.len()), (&ReapAction::Remove, 1), "{item:?}");
    }
    let destroyed = FoundSight { destroyed_at: Some(at(-5)), ..seen(&host, &guarded) };
    assert_eq!(judge_found(destroyed, &from(0)).unwrap().action, ReapAction::Keep);
}

#[test]
fn what_is_young_is_not_judged_and_what_claims_the_future_is() {
    let host = HostName::new("far");
    let made = |seconds: i64| InventoryItem {
        created_at: Some(at(seconds)),
        ..found(Some("us"), Some(at(-2)))
    };
    let judge = |found: &InventoryItem| words(judge_found(seen(&host, found), &from(0)));
    assert_eq!(judge(&made(-59)), "-");
    assert_eq!(judge(&made(-60)), "orphan_dir remove");
    assert_eq!(judge(&made(30)), "-", "the host's clock is a little ahead");
    assert_eq!(judge(&made(86_400)), "orphan_dir remove");
    let unknown = InventoryItem { created_at: None, ..made(0) };
    assert_eq!(judge(&unknown), "orphan_dir remove");
    let foreign = InventoryItem { owner: Some("them".into()), ..made(0) };
    assert_eq!(judge(&foreign), "foreign keep", "it is shown, however young");
}

#[test]
fn an_archive_that_no_record_knows_goes_only_where_it_is_asked_for() {
    let host = HostName::new("far");
    let archive = |owner: Option<&str>, protected| InventoryArchive {
        snapshot_id: "snap-0000000a".into(),
        sandbox_id: None,
        owner: owner.map(str::to_owned),
        directory: "/r/snapshots/snap-0000000a".into(),
        created_at: Some(at(-1000)),
        bytes: Some(1),
        name: None,
        expires_at: None,
        protected,
        fingerprint: "f".into(),
    };
    let judge = |found: &InventoryArchive| {
        let item = judge_archive(&host, found, &from(0)).unwrap();
        format!("{} {:?}", words(Some(item.clone())), item.possible)
    };
    assert_eq!(judge(&archive(Some("us"), false)), "orphan_snapshot keep [Remove, Adopt]");
    assert_eq!(judge(&archive(Some("us"), true)), "orphan_snapshot keep [Adopt]");
    assert_eq!(judge(&archive(Some("them"), false)), "foreign keep []");
    assert_eq!(judge(&archive(None, false)), "unreadable keep []");
    assert_eq!(judge(&archive(Some("ahead"), false)), "orphan_snapshot keep []");
}
