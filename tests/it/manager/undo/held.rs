//! Undo snapshots in the making: killed, cancelled, overtaken; and how long they are kept.

use std::collections::BTreeMap;

use sandboxer::domain::operation::CancelOutcome;
use sandboxer::domain::profile::{Bytes, Seconds};
use sandboxer::domain::request::{
    DestroyRequest, ExtendRequest, LabelRequest, PruneRequest, RecreateRequest, SnapshotQuery,
};
use sandboxer::domain::undo::UndoSettings;
use sandboxer::domain::{Code, State};

use super::super::recover::killed;
use super::{assert_as_it_was, keeping, keeping_within};
use crate::support::json_assertions::JsonAssertions as _;
use crate::test_env::script::Act;
use crate::test_env::{TestEnv, of, there};

impl TestEnv {
    fn slow_capture(&self) {
        self.script.shelf.capture.push(Act::Slow);
    }
}

#[tokio::test]
async fn a_process_killed_over_it_leaves_a_sandbox_that_lives() {
    for verb in ["destroy", "recreate", "sweep"] {
        let house = keeping();
        let record = house.keep_one(None).await;
        let id = record.id.to_string();
        house.script.seen.set(there(true, false));
        house.script.shelf.capture.push(Act::Hang);
        if verb == "sweep" {
            house.script.pass(3600);
        }
        killed(&house, "snapshot", move |manager| async move {
            match verb {
                "destroy" => manager.destroy(&of(id)).await.map(|_| ()),
                "recreate" => manager.recreate(&of(id)).await.map(|_| ()),
                _ => {
                    tokio::spawn(async move {
                        manager.sweep(&sandboxer::domain::sweep::SweepRequest::default()).await
                    });
                    Ok(())
                }
            }
        });
        let stuck = house.record(&record.id).await;
        assert_eq!(stuck.operation.unwrap().kind.as_str(), "snapshot", "{verb}");
        house.manager.recover().await.unwrap();
        let now = house.record(&record.id).await;
        assert_eq!((&now.state, &now.operation), (&State::Ready, &None), "{verb}");
        assert_eq!((house.teardowns(), house.there()), (0, vec![]), "{verb}");
        assert_eq!(house.manager.recover().await.unwrap(), [], "{verb}");
    }
}

#[tokio::test]
async fn a_cancel_of_the_removal_ends_it_too_and_leaves_all_as_it_was() {
    for elsewhere in [false, true] {
        for recreate in [false, true] {
            let house = keeping();
            let record = house.keep_one(None).await;
            house.script.shelf.capture.push(Act::Hang);
            let id = record.id.to_string();
            let started = if recreate {
                house.manager.recreate(&of(id)).await.unwrap()
            } else {
                house.manager.destroy(&of(&record.id)).await.unwrap()
            };
            let operation = started.operation.unwrap();
            house.script.until_asked("snapshot").await;
            let by = if elsewhere { &house.other } else { &house.manager };
            by.cancel(&operation).await.unwrap();
            let error = house.manager.wait(&operation).await.unwrap_err();
            assert_eq!(error.cancel_outcome(), Some(CancelOutcome::Undone), "{error:?}");
            assert_as_it_was(&house.record(&record.id).await, &record);
            assert_eq!((house.teardowns(), house.there()), (0, vec![]));
        }
    }
}

#[tokio::test]
async fn a_cancel_of_the_snapshot_alone_removes_nothing() {
    let house = keeping();
    let record = house.keep_one(None).await;
    house.script.shelf.capture.push(Act::Hang);
    let started = house.manager.destroy(&of(&record.id)).await.unwrap();
    house.script.until_asked("snapshot").await;
    let on_it = house.record(&record.id).await.operation.unwrap();
    house.manager.cancel(&on_it.id).await.unwrap();
    house.manager.wait(&started.operation.unwrap()).await.unwrap_err().coded(Code::Cancelled);
    assert_as_it_was(&house.record(&record.id).await, &record);
}

#[tokio::test]
async fn a_second_destroy_waits_for_the_first_and_its_snapshot() {
    let house = keeping();
    let record = house.keep_one(None).await;
    house.slow_capture();
    let first = house.manager.destroy(&of(&record.id)).await.unwrap().operation.unwrap();
    house.script.until_asked("snapshot").await;
    let second = house.other.destroy(&of(&record.id)).await.unwrap().operation.unwrap();
    house.other.wait(&second).await.unwrap();
    house.manager.wait(&first).await.unwrap();
    assert_eq!((house.teardowns(), house.undos().await.len()), (1, 1));
}

#[tokio::test]
async fn what_was_protected_or_extended_meanwhile_stays() {
    for protect in [true, false] {
        let house = keeping();
        let record = house.keep_one(None).await;
        house.script.pass(3600);
        house.slow_capture();
        let id = record.id.to_string();
        let change = async {
            house.script.until_asked("snapshot").await;
            if protect {
                let set = BTreeMap::from([("protect".to_owned(), "true".to_owned())]);
                let label = LabelRequest { set, ..of(&id) };
                house.other.label(label).await.unwrap();
            } else {
                let more = ExtendRequest { by_s: Some(7200), ..of(&id) };
                house.other.extend(&more).await.unwrap();
            }
        };
        let (report, ()) = tokio::join!(house.sweep(), change);
        assert_eq!(report.items[0].skipped.as_ref().unwrap().as_str(), "changed", "{report:?}");
        let now = house.record(&id).await;
        assert_eq!((&now.state, &now.operation), (&State::Ready, &None));
        assert_eq!((house.teardowns(), house.undos().await), (0, vec![]));
    }
    for recreate in [false, true] {
        let house = keeping();
        let record = house.keep_one(None).await;
        house.slow_capture();
        let started = if recreate {
            house.manager.recreate(&of::<RecreateRequest>(&record.id)).await.unwrap()
        } else {
            house.manager.destroy(&of(&record.id)).await.unwrap()
        };
        house.script.until_asked("snapshot").await;
        let set = BTreeMap::from([("protect".to_owned(), "true".to_owned())]);
        let label = LabelRequest { set, ..of(&record.id) };
        house.other.label(label).await.unwrap();
        house.manager.wait(&started.operation.unwrap()).await.unwrap_err().says("protect=true");
        let now = house.record(&record.id).await;
        assert_eq!((&now.state, now.is_protected()), (&State::Ready, true));
        assert_eq!((house.teardowns(), house.undos().await), (0, vec![]));
    }
}

#[tokio::test]
async fn of_too_many_on_a_host_the_oldest_goes_and_never_a_users() {
    let settings = UndoSettings {
        max_bytes: Bytes(1234),
        max_total: Bytes(2 * 1234),
        ..UndoSettings::default()
    };
    let house = keeping_within(settings);
    let record = house.keep_one(None).await;
    house.snapshot(&record.id, "mine").await.unwrap();
    let mut removed = vec![record];
    for _ in 0..2 {
        removed.push(house.keep_one(None).await);
    }
    for record in &removed {
        house.removed(of(&record.id)).await.unwrap();
    }
    let kept: Vec<_> = house.undos().await.iter().map(|one| one.sandbox_id.clone()).collect();
    assert_eq!(kept, [removed[1].id.clone(), removed[2].id.clone()]);
    assert_eq!(house.manager.snapshots(&SnapshotQuery::default()).await.unwrap().len(), 1);
    let fault = house.undo(Some(removed[0].id.as_str())).await.unwrap_err();
    fault.coded(Code::NotFound).hints("the oldest go first");
}

#[tokio::test]
async fn an_archive_that_became_larger_than_could_be_told_is_not_kept() {
    let settings = UndoSettings { max_bytes: Bytes(1233), ..UndoSettings::default() };
    let house = keeping_within(settings);
    let record = house.keep_one(None).await;
    let gone = house.removed(of(&record.id)).await.unwrap();
    assert!(gone.message.unwrap().contains("its archive has 1.2KiB"));
    assert_eq!((gone.state, house.there()), (State::Destroyed, vec![]));
}

#[tokio::test]
async fn when_its_window_is_over_it_goes_at_the_next_contact() {
    let window = Seconds(3600);
    let house = keeping_within(UndoSettings { window, ..UndoSettings::default() });
    let record = house.keep_one(None).await;
    house.removed(of(&record.id)).await.unwrap();
    let undo = house.undos().await.remove(0);
    house.script.pass(3601);
    for id in [Some(record.id.as_str()), Some(undo.id.as_str()), None] {
        let over = house.undo(id).await.unwrap_err();
        assert_eq!(over.code, Code::NotFound, "{id:?}");
        assert!(id.is_none() || over.causes[0].contains("window"), "{over:?}");
    }
    // What is based on it keeps it.
    let based = house.restored(&undo.id).await;
    assert_eq!(house.undos().await.len(), 1);
    house.removed(DestroyRequest { no_undo: true, ..of(&based.id) }).await.unwrap();
    assert_eq!((house.undos().await, house.there()), (vec![], vec![]));
    let over = house.undo(Some(record.id.as_str())).await.unwrap_err();
    assert!(over.causes[0].contains("was kept until") || over.causes[0].contains("is kept until"));
}

#[tokio::test]
async fn a_copied_data_directory_deletes_none() {
    let window = Seconds(3600);
    let house = keeping_within(UndoSettings { window, ..UndoSettings::default() });
    let record = house.keep_one(None).await;
    house.removed(of(&record.id)).await.unwrap();
    house.script.pass(3601);
    house.copy_from_elsewhere();
    let copied = crate::test_env::manager(house.folder.path(), &house.script);
    let started =
        copied.create(sandboxer::domain::request::CreateRequest::default()).await.unwrap();
    copied.wait(&started.operation.unwrap()).await.unwrap();
    assert_eq!(house.there().len(), 1);
}

#[tokio::test]
async fn a_prune_takes_those_whose_window_is_over_and_leaves_the_rest() {
    let window = Seconds(3600);
    let house = keeping_within(UndoSettings { window, ..UndoSettings::default() });
    let old = house.keep_one(None).await;
    house.removed(of(&old.id)).await.unwrap();
    let old = house.undos().await.remove(0);
    house.script.pass(3601);
    house.script.shelf.away.lock().unwrap().push("local");
    let young = house.keep_one(None).await;
    house.removed(of(&young.id)).await.unwrap();
    house.script.shelf.away.lock().unwrap().clear();
    // Its host could not be asked: the next prune goes on.
    assert_eq!(house.undos().await.len(), 1);
    let prune = PruneRequest { keep: Some(0), ..PruneRequest::default() };
    let plan =
        house.manager.prune_snapshots(&PruneRequest { dry_run: true, ..prune.clone() }).await;
    let plan = plan.unwrap();
    assert_eq!((plan.len(), plan[0].ok, &plan[0].id), (1, true, &old.id));
    assert!(plan[0].reason.contains("not finished"), "{plan:?}");
    assert_eq!(house.there().len(), 2);
    house.manager.prune_snapshots(&prune).await.unwrap();
    let left = house.undos().await;
    assert_eq!((left.len(), &left[0].sandbox_id), (1, &young.id));
    assert_eq!(house.there().len(), 1);
}
