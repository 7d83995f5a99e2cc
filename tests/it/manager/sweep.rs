//! The sweep: what it ends, when, and what it leaves; by clocks that the test sets, and by two processes at once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;

use futures_util::FutureExt as _;
use sandboxer::domain::request::{
    CreateRequest, DestroyRequest, EventQuery, ExtendRequest, LabelRequest, ListQuery,
};
use sandboxer::domain::sandbox::{Reason, SandboxRecord};
use sandboxer::domain::sweep::{HoldReason, SkipReason, SweepOutcome, SweepReport, SweepRequest};
use sandboxer::domain::{Code, OperationState, State};
use sandboxer::manager::SandboxManager;

use super::recover::killed;
use crate::support::json_assertions::JsonAssertions as _;
use crate::test_env::script::Act;
use crate::test_env::{self, TestEnv, of, test_env};

const HOUR: i64 = 3600;

fn living(ttl: &str) -> CreateRequest {
    CreateRequest { ttl: Some(ttl.into()), ..CreateRequest::default() }
}

fn on(host: &str, ttl: &str) -> CreateRequest {
    CreateRequest { host: Some(host.into()), ..living(ttl) }
}

async fn swept(manager: &SandboxManager) -> SweepReport {
    let report = manager.sweep(&SweepRequest::default()).await.unwrap();
    assert_eq!(report.held_back, None);
    report
}

/// Each sandbox with what was done about it, or why not.
fn done(report: &SweepReport) -> Vec<(String, String)> {
    let items = report.items.iter();
    items
        .map(|item| {
            let what = item.skipped.as_ref().map_or(item.outcome.as_str(), SkipReason::as_str);
            (item.id.to_string(), what.to_owned())
        })
        .collect()
}

impl TestEnv {
    async fn living(&self, ttl: &str) -> SandboxRecord {
        self.made(living(ttl)).await
    }

    async fn state(&self, record: &SandboxRecord) -> (State, Option<Reason>) {
        let record = self.record(&record.id).await;
        (record.state, record.reason)
    }

    /// Has this done right before the lock of a sandbox is asked for.
    fn before_lock<F: Future<Output = ()> + Send + 'static>(&self, work: F) {
        self.script.before_lock.push(work.boxed());
    }
}

fn label(record: &SandboxRecord, key: &str, value: &str) -> LabelRequest {
    let set = BTreeMap::from([(key.to_owned(), value.to_owned())]);
    LabelRequest { set, ..of(&record.id) }
}

fn extend(record: &SandboxRecord, by_s: u64) -> ExtendRequest {
    ExtendRequest { by_s: Some(by_s), ..of(&record.id) }
}

#[tokio::test]
async fn what_expired_is_destroyed_and_nothing_else() {
    let house = test_env();
    let (short, long) = (house.living("30m").await, house.living("2h").await);
    house.script(&[Act::fails("no image")], &[], &[]);
    let (failed, _) = house.create(living("30m")).await;
    house.script(&[Act::fails("no image")], &[], &[]);
    let (kept, _) = house.create(CreateRequest { keep_failed: true, ..living("30m") }).await;
    assert_eq!(done(&swept(&house.manager).await), []);

    house.script.pass(31 * 60);
    let found = done(&swept(&house.manager).await);
    assert_eq!(found, [(short.id.to_string(), "destroyed".to_owned())]);
    assert_eq!(house.state(&short).await, (State::Destroyed, Some(Reason::TtlExpired)));
    house.script.pass(30 * 60);
    assert_eq!(done(&swept(&house.manager).await), [(kept.id.to_string(), "destroyed".to_owned())]);
    assert_eq!(house.state(&long).await.0, State::Ready);
    assert_eq!(house.state(&failed).await.0, State::Failed);
    assert_eq!(done(&swept(&house.manager).await), []);
}

#[tokio::test]
async fn a_deadline_is_told_ten_minutes_ahead_once_and_again_after_an_extension() {
    let house = test_env();
    let record = house.living("30m").await;
    house.script.pass(19 * 60);
    assert_eq!(done(&swept(&house.manager).await), []);
    house.script.pass(90);
    let report = swept(&house.manager).await;
    assert_eq!(done(&report), [(record.id.to_string(), "warned".to_owned())]);
    assert!(report.items[0].message.contains(&record.expires_at.unwrap().to_string()));
    assert_eq!(done(&swept(&house.manager).await), []);
    assert_eq!(done(&swept(&house.other).await), [], "another process knows it from the record");
    assert_eq!(house.count_told("sandbox.expiring").await, 1);

    house.manager.extend(&extend(&record, 1800)).await.unwrap();
    assert_eq!(done(&swept(&house.manager).await), []);
    house.script.pass(30 * 60);
    swept(&house.manager).await;
    assert_eq!(house.count_told("sandbox.expiring").await, 2);
    let events = house.manager.events(&EventQuery::default()).await.unwrap();
    let last = events.iter().rfind(|event| event.kind.as_str() == "sandbox.expiring").unwrap();
    assert_eq!(last.data["protected"], false);
    // One that lives for less than that is told of at once.
    house.living("5m").await;
    swept(&house.manager).await;
    assert_eq!(house.count_told("sandbox.expiring").await, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_consoles_that_sweep_at_once_tell_and_destroy_once() {
    let house = test_env();
    for _ in 0..8 {
        house.living("30m").await;
    }
    house.script.pass(25 * 60);
    let both = futures_util::join!(swept(&house.manager), swept(&house.other));
    let warned = |report: &SweepReport| report.with(&SweepOutcome::Warned).count();
    assert_eq!(warned(&both.0) + warned(&both.1), 8, "{both:?}");
    assert_eq!(house.count_told("sandbox.expiring").await, 8);

    house.script.pass(6 * 60);
    let both = futures_util::join!(
        swept(&house.manager),
        swept(&house.other),
        swept(&house.manager),
        swept(&house.other)
    );
    let reports = [both.0, both.1, both.2, both.3];
    let all = reports.iter().flat_map(|report| &report.items);
    assert!(all.clone().all(|item| item.error.is_none()), "{reports:?}");
    assert_eq!(all.filter(|item| item.outcome == SweepOutcome::Destroyed).count(), 8);
    assert_eq!((house.teardowns(), house.count_told("sandbox.destroyed").await), (8, 8));
}

#[tokio::test]
async fn a_jump_of_the_clock_holds_one_sweep_back_and_the_next_judges() {
    let house = test_env();
    let record = house.living("30m").await;
    swept(&house.manager).await;
    house.script.jump(HOUR);
    let report = house.manager.sweep(&SweepRequest::default()).await.unwrap();
    let held = report.held_back.unwrap();
    assert_eq!((&held.reason, report.items), (&HoldReason::ClockJumped, Vec::new()));
    assert!(held.message.contains("suspended") && held.hint.is_some(), "{held:?}");
    assert_eq!(house.state(&record).await.0, State::Ready);
    let found = done(&swept(&house.manager).await);
    assert_eq!(found, [(record.id.to_string(), "destroyed".to_owned())]);
}

#[tokio::test]
async fn a_clock_that_goes_back_an_hour_ends_nothing_early() {
    let house = test_env();
    let record = house.living("30m").await;
    swept(&house.manager).await;
    house.script.jump(-HOUR);
    let held = house.manager.sweep(&SweepRequest::default()).await.unwrap().held_back.unwrap();
    held.says("set back by");
    house.script.pass(80 * 60);
    assert_eq!(done(&swept(&house.manager).await), [(record.id.to_string(), "warned".to_owned())]);
    house.script.pass(11 * 60);
    swept(&house.manager).await;
    assert_eq!(house.state(&record).await.0, State::Destroyed);
}

#[tokio::test]
async fn a_jump_between_two_commands_is_seen_by_the_second() {
    let house = test_env();
    let record = house.living("30m").await;
    swept(&house.manager).await;
    house.script.jump(HOUR);
    let manager = test_env::manager(house.folder.path(), &house.script);
    let held = manager.sweep(&SweepRequest { alone: true }).await.unwrap().held_back.unwrap();
    assert_eq!(held.reason, HoldReason::ClockJumped);
    let manager = test_env::manager(house.folder.path(), &house.script);
    assert_eq!(done(&swept(&manager).await), [(record.id.to_string(), "destroyed".to_owned())]);
}

#[tokio::test]
async fn a_protected_one_is_told_of_and_stays() {
    let house = test_env();
    let labels = BTreeMap::from([("protect".to_owned(), "true".to_owned())]);
    let (record, _) = house.create(CreateRequest { labels, ..living("30m") }).await;
    house.script.pass(40 * 60);
    let report = swept(&house.manager).await;
    assert_eq!(done(&report), [(record.id.to_string(), "warned".to_owned())]);
    assert!(report.items[0].message.contains("protect=true"), "{report:?}");
    for manager in [&house.other, &house.manager] {
        assert_eq!(done(&swept(manager).await), [(record.id.to_string(), "protected".to_owned())]);
    }
    assert_eq!(house.state(&record).await.0, State::Ready);
    assert_eq!((house.count_told("sandbox.expiring").await, house.teardowns()), (1, 0));
}

#[tokio::test]
async fn whoever_changes_it_between_judgement_and_removal_wins() {
    for protects in [true, false] {
        let house = test_env();
        let record = house.living("30m").await;
        house.script.pass(31 * 60);
        let (other, of) = (house.other.clone(), record.clone());
        house.before_lock(async move {
            if protects {
                other.label(label(&of, "protect", "true")).await.unwrap();
            } else {
                other.extend(&extend(&of, 7200)).await.unwrap();
            }
        });
        let report = swept(&house.manager).await;
        assert_eq!(done(&report), [(record.id.to_string(), "changed".to_owned())]);
        let again = done(&swept(&house.manager).await);
        let expected: Vec<_> =
            protects.then(|| (record.id.to_string(), "warned".to_owned())).into_iter().collect();
        assert_eq!(again, expected);
        assert_eq!(house.state(&record).await.0, State::Ready);
        assert_eq!(house.teardowns(), 0);
    }
}

/// Somebody extended or protected it from another copy of this data directory, of which this one knows nothing.
#[tokio::test]
async fn one_that_lives_longer_by_its_hosts_manifest_is_left() {
    for (what, later_s, owner, protect, outcome) in [
        ("extended", 7200, None, "", "changed"),
        ("extended, and over by now", 30, None, "", "destroyed"),
        ("as recorded", 0, None, "", "destroyed"),
        ("somebody else's manifest", 7200, Some("ffff"), "", "destroyed"),
        ("beyond what its profile allows", 90 * 24 * 3600, None, "", "destroyed"),
        ("protected", 0, None, "true", "changed"),
        ("not protected any more", 0, None, "false", "destroyed"),
        ("somebody else's, protected", 0, Some("ffff"), "true", "destroyed"),
    ] {
        let house = test_env();
        let root = house.folder.path().join("root");
        house.script.workdirs.set(Some(root.clone()));
        let record = house.living("30m").await;
        let folder = root.join(record.id.project());
        std::fs::create_dir_all(&folder).unwrap();
        let manifest = serde_json::json!({
            "schema": 1, "id": record.id, "owner": owner.unwrap_or(record.owner.as_str()), "profile": "profile.x",
            "expires_at": record.expires_at.unwrap().plus_seconds(later_s),
            "sandbox": {"labels": {"protect": protect}},
        });
        std::fs::write(folder.join("manifest.json"), manifest.to_string()).unwrap();
        house.script.pass(31 * 60);
        let report = swept(&house.manager).await;
        assert_eq!(done(&report), [(record.id.to_string(), outcome.to_owned())], "{what}");
        assert_eq!(house.teardowns(), usize::from(outcome == "destroyed"), "{what}");
    }
}

#[tokio::test]
async fn an_extension_of_what_is_being_destroyed_is_refused() {
    let house = test_env();
    let record = house.living("30m").await;
    house.script.pass(31 * 60);
    house.script(&[], &[], &[Act::Slow]);
    let manager = house.manager.clone();
    let sweep = tokio::spawn(async move { swept(&manager).await });
    house.script.until_asked("teardown").await;
    house.other.extend(&extend(&record, 60)).await.unwrap_err().coded(Code::Conflict);
    assert_eq!(sweep.await.unwrap().items[0].outcome, SweepOutcome::Destroyed);
}

#[tokio::test]
async fn an_operation_that_runs_when_the_time_is_over_ends_first() {
    let house = test_env();
    let record = house.living("30m").await;
    house.script.shelf.capture.push(Act::Slow);
    let (other, id) = (house.other.clone(), record.id.to_string());
    let request =
        sandboxer::domain::request::SnapshotRequest { name: Some("last".into()), ..of(&id) };
    let started = other.snapshot(&request).await.unwrap();
    house.script.pass(31 * 60);
    let report = swept(&house.manager).await;
    assert_eq!(done(&report), [(id.clone(), "busy".to_owned())]);
    assert!(report.items[0].message.contains("snapshot by process"), "{report:?}");
    let (operation, _) = other.finish(&started.operation.unwrap()).await.unwrap();
    assert_eq!(operation.state, OperationState::Succeeded);
    assert_eq!(done(&swept(&house.manager).await), [(id, "destroyed".to_owned())]);
}

#[tokio::test]
async fn a_host_that_is_down_holds_up_its_own_sandboxes_alone() {
    let house = test_env();
    let (far, _) = house.create(on("second", "30m")).await;
    let near = house.living("30m").await;
    assert_eq!((far.state.clone(), far.host.as_str()), (State::Ready, "second"));
    house.script.down.lock().unwrap().insert("second");
    house.script.pass(31 * 60);
    let report = swept(&house.manager).await;
    let what: BTreeMap<String, String> = done(&report).into_iter().collect();
    assert_eq!(what[near.id.as_str()].as_str(), "destroyed");
    assert_eq!(what[far.id.as_str()].as_str(), "failed");
    assert_eq!(house.state(&far).await, (State::Destroying, Some(Reason::HostLost)));
    // No storm: it waits, longer each time.
    let tries = house.teardowns();
    for _ in 0..3 {
        let report = swept(&house.manager).await;
        assert_eq!(done(&report), [(far.id.to_string(), "waits".to_owned())]);
        assert!(report.items[0].message.contains("no route"), "{report:?}");
    }
    assert_eq!(house.teardowns(), tries);
    house.script.pass(16);
    assert_eq!(done(&swept(&house.manager).await), [(far.id.to_string(), "failed".to_owned())]);
    house.script.pass(16);
    assert_eq!(done(&swept(&house.manager).await), [(far.id.to_string(), "waits".to_owned())]);
    // It is back.
    house.script.down.lock().unwrap().clear();
    house.script.pass(15);
    assert_eq!(done(&swept(&house.manager).await), [(far.id.to_string(), "finished".to_owned())]);
    assert_eq!(house.state(&far).await, (State::Destroyed, Some(Reason::TtlExpired)));
}

#[tokio::test]
async fn a_removal_whose_process_died_is_finished_and_a_forgotten_one_collected() {
    let house = test_env();
    let (half, given_up) = (house.living("2h").await, house.living("2h").await);
    house.script(&[], &[], &[Act::Hang]);
    let request = of(&half.id);
    killed(&house, "teardown", move |manager| async move {
        let started = manager.destroy(&request).await?;
        while manager.get(&request.id).await?.state != State::Destroying {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        drop(started);
        Ok(())
    });
    let request = DestroyRequest { forget: true, ..of(&given_up.id) };
    house.finished(house.manager.destroy(&request).await).await;
    let report = swept(&house.manager).await;
    let what: BTreeMap<String, String> = done(&report).into_iter().collect();
    assert_eq!(what[half.id.as_str()].as_str(), "finished");
    assert_eq!(what[given_up.id.as_str()].as_str(), "collected");
    assert_eq!(house.state(&half).await, (State::Destroyed, Some(Reason::User)));
    assert_eq!(house.state(&given_up).await.0, State::Destroyed);
    house.assert_nothing_runs().await;
}

#[tokio::test]
async fn a_sweep_that_was_killed_in_the_middle_is_finished_by_the_next() {
    let house = test_env();
    let record = house.living("30m").await;
    house.script.pass(31 * 60);
    house.script(&[], &[], &[Act::Hang]);
    let id = record.id.clone();
    killed(&house, "teardown", move |manager| async move {
        let request = SweepRequest::default();
        let sweeping = manager.sweep(&request);
        tokio::select! {
            swept = sweeping => drop(swept),
            () = async {
                while manager.get(id.as_str()).await.unwrap().state != State::Destroying {
                    tokio::time::sleep(std::time::Duration::from_millis(5)).await;
                }
            } => {}
        }
        Ok(())
    });
    assert_eq!(house.state(&record).await, (State::Destroying, Some(Reason::TtlExpired)));
    assert_eq!(done(&swept(&house.other).await), [(record.id.to_string(), "finished".to_owned())]);
    assert_eq!(house.state(&record).await, (State::Destroyed, Some(Reason::TtlExpired)));
}

#[tokio::test]
async fn a_forbidden_host_and_a_copied_data_directory_are_left_alone() {
    let house = test_env();
    let (record, _) = house.create(on("third", "30m")).await;
    house.script.pass(31 * 60);
    house.script.third_is_forbidden.store(true, Ordering::SeqCst);
    let report = swept(&house.manager).await;
    assert_eq!(done(&report), [(record.id.to_string(), "forbidden".to_owned())]);
    assert!(report.items[0].message.contains("production"), "{report:?}");
    house.script.third_is_forbidden.store(false, Ordering::SeqCst);
    house.copy_from_elsewhere();
    let report = house.manager.sweep(&SweepRequest::default()).await.unwrap();
    let held = report.held_back.unwrap();
    held.hints("doctor --claim");
    assert_eq!((held.reason, report.items), (HoldReason::NotOwn, Vec::new()));
    assert_eq!((house.state(&record).await.0, house.teardowns()), (State::Ready, 0));
    assert_eq!(house.count_told("sandbox.expiring").await, 0);
}

#[tokio::test]
async fn only_one_at_a_time_wants_to_be_alone() {
    let house = test_env();
    let record = house.living("30m").await;
    house.script.pass(31 * 60);
    house.script(&[], &[], &[Act::Slow]);
    let manager = house.manager.clone();
    let first =
        tokio::spawn(async move { manager.sweep(&SweepRequest { alone: true }).await.unwrap() });
    house.script.until_asked("teardown").await;
    let second = house.other.sweep(&SweepRequest { alone: true }).await.unwrap();
    assert_eq!(second.held_back.unwrap().reason, HoldReason::Another);
    // A dashboard's goes on beside it, and leaves what is worked on.
    assert_eq!(done(&swept(&house.other).await), []);
    assert_eq!(done(&first.await.unwrap()), [(record.id.to_string(), "destroyed".to_owned())]);
}

#[tokio::test]
async fn a_host_removes_six_at_a_time() {
    let house = test_env();
    for _ in 0..8 {
        house.living("30m").await;
    }
    house.script.pass(31 * 60);
    house.script(&[], &[], &vec![Act::Hang; 8]);
    let manager = house.manager.clone();
    let sweep = tokio::spawn(async move { swept(&manager).await });
    while house.teardowns() < 6 {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    // A second sweep of this process has no more room.
    assert_eq!(done(&swept(&house.manager).await), []);
    let working = house.manager.list(&ListQuery::default()).await.unwrap();
    let at_work: BTreeSet<_> =
        working.iter().filter(|record| record.operation.is_some()).map(|r| r.id.clone()).collect();
    assert_eq!((house.teardowns(), at_work.len()), (6, 6));
    sweep.abort();
}

#[tokio::test]
async fn a_deadline_that_was_moved_while_the_host_was_down_is_written_at_the_next_contact() {
    let house = test_env();
    let record = house.living("30m").await;
    house.script.down.lock().unwrap().insert("local");
    let extended = house.manager.extend(&extend(&record, 600)).await.unwrap();
    let error = extended.unwritten.unwrap();
    error.hints("when local is next reached");
    assert!(house.record(&record.id).await.manifest_pending);
    let asked = || house.script.asked().iter().filter(|call| *call == "write_manifest").count();
    let before = asked();
    // Another process reaches it, and it is still not well; then it is.
    house.other.check_host("local").await.unwrap();
    assert!(house.record(&record.id).await.manifest_pending);
    house.script.down.lock().unwrap().clear();
    house.other.check_host("local").await.unwrap();
    let written = house.record(&record.id).await;
    assert!(!written.manifest_pending);
    assert_eq!((written.expires_at, asked()), (extended.sandbox.expires_at, before + 2));
    house.other.check_host("local").await.unwrap();
    assert_eq!(asked(), before + 2, "nothing is left to write");
}
