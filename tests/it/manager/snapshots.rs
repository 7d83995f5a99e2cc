//! Snapshots, restores and their end: never a listed snapshot that cannot be restored, nothing left of one that failed,
//! and none deleted that something depends on.

use sandboxer::domain::record::Record;
use std::sync::Arc;
use std::time::Duration;

use sandboxer::domain::request::{
    CreateRequest, PruneRequest, RestoreRequest, SnapshotCopyRequest, SnapshotDeleteRequest,
    SnapshotQuery, SnapshotRequest,
};
use sandboxer::domain::sandbox::{Reason, State};
use sandboxer::domain::snapshot::SnapshotState;
use sandboxer::domain::{Code, Error, OperationState};

use super::recover::killed;
use crate::support::json_assertions::JsonAssertions as _;
use crate::test_env::script::Act;
use crate::test_env::{from_snapshot, named, of, test_env, with_sandbox, with_snapshot};

#[tokio::test]
async fn a_snapshot_is_written_down_first_and_ready_only_when_it_is_whole() {
    let (house, id) = with_sandbox().await;
    house.script.shelf.capture.push(Act::Slow);
    let started = house.manager.snapshot(&named(&id, "my-env")).await.unwrap();
    assert_eq!(started.snapshot.state, SnapshotState::Creating);
    let held = house.other.get(&id).await.unwrap().operation.unwrap();
    assert_eq!((held.kind.as_str(), &held.id), ("snapshot", started.operation.as_ref().unwrap()));
    // One at a time, from this process and from others.
    let busy = house.other.snapshot(&named(&id, "second")).await.unwrap_err();
    assert_eq!((busy.code, &busy.details["operation"]), (Code::Busy, &held.id.as_str().into()));
    let record = house.manager.wait(&held.id).await.and_then(Record::into_snapshot).unwrap();
    assert_eq!((record.state, record.archive.bytes), (SnapshotState::Ready, Some(1234)));
    assert_eq!((record.sandbox_id.as_str(), record.next_patch_sequence), (id.as_str(), 1));
    assert!(record.operation.is_none());
    let sandbox = house.other.get(&id).await.unwrap();
    assert_eq!(sandbox.state, State::Ready, "the source is as it was, and free");
    assert_eq!(sandbox.operation, None, "the source is as it was, and free");
    assert_eq!(house.kinds().await.last().unwrap(), "snapshot.ready");
    assert_eq!(house.listed().await, [("my-env".into(), SnapshotState::Ready)]);
}

#[tokio::test]
async fn a_snapshot_that_fails_leaves_its_reason_and_nothing_else() {
    let (house, id) = with_sandbox().await;
    house.script.shelf.capture.push(Act::full());
    let fault = house.snapshot(&id, "my-env").await.unwrap_err();
    assert_eq!(fault.code, Code::OperationFailed);
    assert_eq!(fault.message.as_str(), "No space left on device");
    assert!(house.there().is_empty());
    assert!(house.script.asked().contains(&"resume".to_owned()), "its containers run again");
    let sandbox = house.record(&id).await;
    assert_eq!((sandbox.state, sandbox.operation), (State::Ready, None));
    assert!(sandbox.message.unwrap().contains("No space left on device"));
    let failed = &house.manager.snapshots(&SnapshotQuery { all: true }).await.unwrap()[0];
    assert_eq!(failed.record.state, SnapshotState::Failed);
    assert!(!failed.record.has_remains());
    assert!(failed.record.failure.as_ref().unwrap().output.contains("No space left on device"));
    assert!(
        house.manager.snapshots(&SnapshotQuery::default()).await.unwrap().is_empty(),
        "it is not offered"
    );
    assert_eq!(house.kinds().await.last().unwrap(), "snapshot.failed");
    house.snapshot(&id, "my-env").await.expect("its name is free again");
    house.delete(&failed.record.id, false).await.expect("and it can be deleted still");
    assert_eq!(house.listed().await, [("my-env".to_owned(), SnapshotState::Ready)]);
}

#[tokio::test]
async fn of_snapshots_that_came_to_nothing_the_newest_ten_are_told_of() {
    let (house, id) = with_sandbox().await;
    let fail = |name: String| {
        house.script.shelf.capture.push(Act::full());
        let (house, id) = (&house, id.as_str());
        async move { house.snapshot(id, &name).await.unwrap_err() }
    };
    // Something of the first may still be there: its record stays.
    house.script.shelf.remove.push(Act::no_route());
    fail("stays".to_owned()).await;
    for n in 0..12 {
        fail(format!("n{n}")).await;
    }
    let names: Vec<String> = house.listed().await.into_iter().map(|(name, _)| name).collect();
    let newest = (2..12).map(|n| format!("n{n}"));
    assert_eq!(names, std::iter::once("stays".to_owned()).chain(newest).collect::<Vec<_>>());
}

#[tokio::test]
async fn what_could_not_be_taken_away_is_said_and_taken_away_by_recover() {
    let (house, id) = with_sandbox().await;
    house.script.shelf.capture.push(Act::Fail(Code::Timeout, "the link stood still"));
    house.script.shelf.remove.push(Act::no_route());
    house.snapshot(&id, "my-env").await.unwrap_err().hints("recover");
    assert_eq!(house.there().len(), 1);
    let items = house.other.recover().await.unwrap();
    assert!(items.len() == 1 && items[0].ok, "{items:?}");
    assert!(house.there().is_empty());
    assert_eq!(house.other.recover().await.unwrap(), []);
}

#[tokio::test]
async fn a_panic_leaves_no_snapshot_and_frees_its_sandbox() {
    let (house, id) = with_sandbox().await;
    house.script.shelf.capture.push(Act::Panic);
    house.snapshot(&id, "my-env").await.unwrap_err().coded(Code::Internal);
    assert_eq!(house.listed().await, [("my-env".into(), SnapshotState::Failed)]);
    let sandbox = house.record(&id).await;
    assert_eq!((sandbox.state, sandbox.operation), (State::Ready, None));
    assert!(house.manager.recover().await.unwrap()[0].ok);
    assert!(house.there().is_empty());
}

/// A process that dies over a snapshot before the archive is whole, or after.
#[tokio::test]
async fn a_dead_processs_snapshot_is_finished_if_it_is_whole_and_else_gone() {
    for whole in [false, true] {
        let (house, id) = with_sandbox().await;
        let queue = if whole { &house.script.shelf.sealed } else { &house.script.shelf.capture };
        queue.lock().unwrap().push_back(Act::Hang);
        let (request, script) = (named(&id, "my-env"), Arc::clone(&house.script));
        killed(&house, "snapshot", move |manager| async move {
            manager.snapshot(&request).await?;
            // Until it hangs where it is to die.
            let queue = if whole { &script.shelf.sealed } else { &script.shelf.capture };
            while !queue.lock().unwrap().is_empty() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            Ok(())
        });
        assert_eq!(house.listed().await, [("my-env".into(), SnapshotState::Creating)]);
        house.script.seen.lock().unwrap().ready = true;
        house.recover().await;
        let state = if whole { SnapshotState::Ready } else { SnapshotState::Failed };
        assert_eq!(house.listed().await, [("my-env".into(), state)]);
        assert_eq!(house.there().len(), usize::from(whole));
        assert!(house.script.asked().contains(&"resume".to_owned()), "its containers run again");
        let sandbox = house.record(&id).await;
        assert_eq!((sandbox.state, sandbox.operation), (State::Ready, None));
        let found = house.manager.recover().await.unwrap();
        assert_eq!(found, [], "a second recover has nothing to do");
        if whole {
            let snapshot = house.manager.snapshot_view("my-env").await.unwrap().record.id;
            assert_eq!(house.restore(&snapshot).await.1, Ok(()), "what is listed can be restored");
        }
    }
}

#[tokio::test]
async fn a_restore_is_a_sandbox_of_its_own_and_leaves_the_source_alone() {
    let (house, id) = with_sandbox().await;
    let snapshot = house.snapshot(&id, "my-env").await.unwrap();
    let before = house.record(&id).await;
    let (record, ended) = house.restore(&snapshot.id).await;
    assert_eq!((ended, &record.state), (Ok(()), &State::Ready));
    assert_ne!(record.id.as_str(), id);
    assert_eq!(record.based_on_snapshot.as_ref(), Some(&snapshot.id));
    let found = record.expires_at.unwrap();
    assert_eq!(found, record.ready_at.unwrap().plus_seconds(3600), "its own full time to live");
    assert_eq!(house.record(&id).await, before);
    assert!(house.kinds().await.contains(&"sandbox.restored".to_owned()));
    let view = house.manager.snapshot_view("my-env").await.unwrap();
    assert_eq!(view.sandboxes.iter().map(|s| &s.id).collect::<Vec<_>>(), [&record.id]);
}

#[tokio::test]
async fn a_restore_that_fails_is_compensated_like_a_create() {
    let (house, snapshot) = with_snapshot().await;
    house.script.shelf.restore.push(Act::fails("the archive was altered"));
    let (record, ended) = house.restore(&snapshot).await;
    assert_eq!(ended, Err(Code::OperationFailed));
    assert_eq!((record.state, record.reason), (State::Failed, Some(Reason::ProvisionFailed)));
    assert!(record.failure.unwrap().output.contains("the archive was altered"));
    assert_eq!(record.teardown.len(), 1);
    assert_eq!(house.listed().await, [("my-env".into(), SnapshotState::Ready)]);
}

#[tokio::test]
async fn what_a_verify_proves_of_an_archive_stays_on_its_record_until_a_good_one() {
    let (house, snapshot) = with_snapshot().await;
    let verify = async |act: Act| {
        house.script.shelf.verify.push(act);
        house.verify(&snapshot).await.map_err(|fault| fault.code)
    };
    let shown = async || {
        let record = house.other.snapshot_view("my-env").await.unwrap().record;
        (record.state.clone(), record.replica_words(), record.message)
    };
    let ready = SnapshotState::Ready;
    assert_eq!(verify(Act::Altered).await, Err(Code::OperationFailed));
    assert_eq!(shown().await, (ready.clone(), vec!["damaged".to_owned()], None));
    // Nobody could look: that proves nothing, neither way.
    assert_eq!(verify(Act::no_route()).await, Err(Code::HostUnreachable));
    let found = shown().await;
    assert_eq!(found, (ready.clone(), vec!["damaged".to_owned()], Some("no route".to_owned())));
    let good = verify(Act::Well).await.unwrap();
    assert!(good.damaged().next().is_none() && good.verified_at.is_some());
    assert_eq!(shown().await, (ready.clone(), Vec::new(), None));
    // A restore reads all of it too, and says what is wrong; nothing is written of it.
    house.script.shelf.restore.push(Act::Altered);
    assert_eq!(house.restore(&snapshot).await.1, Err(Code::OperationFailed));
    assert_eq!(shown().await, (ready, Vec::new(), None));
}

#[tokio::test]
async fn a_snapshot_in_use_is_not_deleted_and_says_by_what() {
    let (house, id) = with_sandbox().await;
    let snapshot = house.snapshot(&id, "my-env").await.unwrap().id.to_string();
    house.script.shelf.restore.push(Act::Slow);
    let request = RestoreRequest { name: Some("box".into()), ..from_snapshot(&snapshot) };
    let making = house.manager.restore(&request).await.unwrap();
    // Not even by force while something is being made from it.
    let forced = SnapshotDeleteRequest { force: true, ..of(&snapshot) };
    let fault = house.other.delete_snapshot(&forced).await.unwrap_err();
    fault.coded(Code::Busy);
    let who = format!(
        "is being made from snapshot {snapshot}: restore by process {} on here since 20",
        std::process::id()
    );
    fault.says(&who);
    house.manager.finish(&making.operation.unwrap()).await.unwrap();
    house.delete(&snapshot, false).await.unwrap_err().coded(Code::InUse).says("sandbox box");
    assert_eq!(house.listed().await, [("my-env".into(), SnapshotState::Ready)], "it is as it was");
    let gone = house.delete(&snapshot, true).await.unwrap();
    assert_eq!(gone.id.as_str(), snapshot);
    assert!(house.there().is_empty() && house.listed().await.is_empty());
    assert_eq!(house.kinds().await.last().unwrap(), "snapshot.deleted");

    // What was based on it runs on, and cannot be made again: said before anything is removed.
    let before = house.teardowns();
    let boxed = house.manager.get("box").await.unwrap();
    house.manager.recreate(&of(&boxed.id)).await.unwrap_err().coded(Code::NotFound);
    assert_eq!(house.teardowns(), before, "nothing was touched");
    assert_eq!(house.manager.get("box").await.unwrap().state, State::Ready);
}

/// Who works on it, and since when.
fn names(fault: &Error, kind: &str) {
    fault.coded(Code::Busy);
    let who = format!("busy: {kind} by process {} on here since 20", std::process::id());
    fault.says(&who);
    assert!(
        fault.details["operation"].as_str().is_some_and(|id| id.starts_with("op-")),
        "{fault:?}"
    );
}

#[tokio::test]
async fn a_copy_that_meets_another_one_is_busy_with_who_and_since_when() {
    let (house, snapshot) = with_snapshot().await;
    let to = |host: &str| SnapshotCopyRequest { id: snapshot.clone(), host: host.to_owned() };
    house.script.shelf.copy.push(Act::Slow);
    let first = house.manager.copy_snapshot(&to("second")).await.unwrap().operation.unwrap();
    for host in ["third", "second"] {
        names(&house.other.copy_snapshot(&to(host)).await.unwrap_err(), "copy");
    }
    house.manager.wait(&first).await.and_then(Record::into_snapshot).unwrap();
    let third = house.other.copy_snapshot(&to("third")).await.unwrap().operation.unwrap();
    let copied = house.other.wait(&third).await.and_then(Record::into_snapshot).unwrap();
    assert_eq!(
        copied.hosts().map(|host| host.as_str().to_owned()).collect::<Vec<_>>(),
        ["local", "second", "third"]
    );
}

/// The one who has the lock writes what for a moment later.
#[tokio::test]
async fn busy_waits_for_who_it_is() {
    let (house, id) = with_sandbox().await;
    house.script.shelf.capture.push(Act::Slow);
    let (mine, theirs) = (named(&id, "mine"), named(&id, "theirs"));
    let (one, two) = tokio::join!(house.manager.snapshot(&mine), house.other.snapshot(&theirs));
    let fault = one.err().or(two.err()).expect("one of them is refused");
    names(&fault, "snapshot");
    let again = house.other.recreate(&of(&id)).await;
    names(&again.unwrap_err(), "snapshot");
    house.manager.destroy(&of(id)).await.unwrap();
}

#[tokio::test]
async fn a_restored_sandbox_is_made_again_from_its_snapshot() {
    let (house, snapshot) = with_snapshot().await;
    let (record, _) = house.restore(&snapshot).await;
    let (operation, record) = house.finished(house.manager.recreate(&of(&record.id)).await).await;
    assert_eq!((operation.state, record.state), (OperationState::Succeeded, State::Ready));
    let restores = house.script.count("restore");
    assert_eq!(restores, 2);
}

#[tokio::test]
async fn a_recreate_from_an_archive_that_is_not_whole_touches_nothing() {
    let (house, snapshot) = with_snapshot().await;
    let (before, _) = house.restore(&snapshot).await;
    let again = of(&before.id);
    let count = |what: &str| house.script.count(what);
    let removed = count("teardown");
    for act in [
        Act::Altered,
        Act::Fail(Code::NotFound, "the archive is not there"),
        Act::Untouched(Code::HostUnreachable),
    ] {
        house.script.shelf.verify.push(act);
        let (operation, record) = house.finished(house.manager.recreate(&again).await).await;
        let error = operation.error.unwrap();
        error.hints("nothing of the sandbox was touched");
        assert_eq!(
            (&record.state, &record.since, &record.operation),
            (&State::Ready, &before.since, &None)
        );
        assert!(record.reachability.is_some());
        assert_eq!(record.message, Some(format!("it was not made again: {}", error.message)));
        assert_eq!((count("teardown"), count("restore")), (removed, 1), "{error:?}");
    }
    let (operation, _) = house.finished(house.manager.recreate(&again).await).await;
    assert_eq!((operation.state, count("restore")), (OperationState::Succeeded, 2));
}

#[tokio::test]
async fn a_deletion_that_finds_nobody_is_finished_later() {
    let (house, snapshot) = with_snapshot().await;
    house.script.shelf.remove.push(Act::no_route());
    house.delete(&snapshot, false).await.unwrap_err().coded(Code::HostUnreachable);
    assert_eq!(house.listed().await, [("my-env".into(), SnapshotState::Deleting)]);
    let found = house.manager.restore(&from_snapshot(&snapshot)).await.unwrap_err().code;
    assert_eq!(found, Code::Conflict, "nobody begins with it");
    assert!(house.other.recover().await.unwrap()[0].ok);
    assert!(house.listed().await.is_empty() && house.there().is_empty());
}

#[tokio::test]
async fn prune_keeps_the_newest_and_what_is_in_use() {
    let (house, id) = with_sandbox().await;
    let mut ids = Vec::new();
    for name in ["one", "two", "three", "four"] {
        ids.push(house.snapshot(&id, name).await.unwrap().id.to_string());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(house.restore(&ids[0]).await.1, Ok(()));
    let plan = PruneRequest { keep: Some(1), dry_run: true, ..PruneRequest::default() };
    let planned = house.manager.prune_snapshots(&plan).await.unwrap();
    let shown: Vec<_> = planned.iter().map(|item| (item.name.clone().unwrap(), item.ok)).collect();
    assert_eq!(
        shown,
        [("one".to_owned(), false), ("two".to_owned(), true), ("three".to_owned(), true)]
    );
    assert!(planned[0].reason.contains("in use by sandbox"), "{}", planned[0].reason);
    assert_eq!(house.listed().await.len(), 4, "a plan touches nothing");
    let old = PruneRequest { keep: Some(1), older_than_s: Some(3600), ..PruneRequest::default() };
    assert_eq!(house.manager.prune_snapshots(&old).await.unwrap(), [], "none is that old");
    let done =
        house.manager.prune_snapshots(&PruneRequest { dry_run: false, ..plan }).await.unwrap();
    assert!(done.iter().all(|item| item.error.is_none()));
    let left: Vec<String> = house.listed().await.into_iter().map(|(name, _)| name).collect();
    assert_eq!(left, ["one", "four"]);
    let fault = house.manager.prune_snapshots(&PruneRequest::default()).await.unwrap_err();
    fault.coded(Code::InvalidInput);
}

#[tokio::test]
async fn one_whose_archive_is_lost_does_not_count_as_a_newer_one() {
    let (house, id) = with_sandbox().await;
    for name in ["one", "two"] {
        house.snapshot(&id, name).await.unwrap();
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let two = house.manager.snapshot_view("two").await.unwrap().record.id;
    house.script.shelf.verify.push(Act::Altered);
    house.verify(&two).await.unwrap_err();
    let plan = PruneRequest { keep: Some(1), dry_run: true, ..PruneRequest::default() };
    assert_eq!(house.manager.prune_snapshots(&plan).await.unwrap(), [], "the only sound one stays");
}

#[tokio::test]
async fn what_cannot_be_snapshotted_is_refused_before_anything_happens() {
    let house = test_env();
    house.script(&[], &[Act::Fail(Code::Timeout, "web is created")], &[]);
    let (failed, _) = house.create(CreateRequest::default()).await;
    let asked = house.script.asked().len();
    let code =
        async |request: SnapshotRequest| house.manager.snapshot(&request).await.unwrap_err().code;
    assert_eq!(code(named(failed.id.as_str(), "x")).await, Code::Conflict);
    let id = house.ready().await;
    let before = house.script.asked().len();
    assert!(before > asked);
    assert_eq!(code(named("nosuch", "x")).await, Code::NotFound);
    assert_eq!(code(named(&id, "Bad Name")).await, Code::InvalidInput);
    let found = code(SnapshotRequest { mode: Some("freeze".into()), ..named(&id, "x") }).await;
    assert_eq!(found, Code::InvalidInput);
    for mode in ["pause", "stop"] {
        let request = SnapshotRequest { mode: Some(mode.into()), ..named(&id, "x") };
        assert_eq!(code(request).await, Code::Unsupported, "it has no containers");
    }
    let found = code(SnapshotRequest { revision: Some(1), ..named(&id, "x") }).await;
    assert_eq!(found, Code::Conflict);
    assert_eq!(house.script.asked().len(), before);
    house.snapshot(&id, "taken").await.unwrap();
    assert_eq!(code(named(&id, "taken")).await, Code::Conflict);
    assert_eq!(house.record(&id).await.operation, None, "a refused one leaves the sandbox free");
    let destroy = of(&id);
    house.finished(house.manager.destroy(&destroy).await).await;
    assert_eq!(code(named(&id, "x")).await, Code::Conflict);
    let found = house.listed().await;
    assert_eq!(found, [("taken".into(), SnapshotState::Ready)], "it outlives its sandbox");
}
