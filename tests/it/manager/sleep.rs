//! Sleep and wake: a state is written when the host confirmed it, and nothing fails but the operation.

use sandboxer::domain::extension::Inspection;
use sandboxer::domain::request::{ApplyRequest, RecreateRequest, SleepRequest, SnapshotRequest};
use sandboxer::domain::sandbox::{Reason, Service, State};
use sandboxer::domain::teardown::Resource;
use sandboxer::domain::{Code, Error, OperationState, SandboxRecord};

use super::recover::killed;
use super::snapshots::source;
use crate::test_env::script::Act;
use crate::test_env::{TestEnv, test_env};

fn of(id: &str) -> SleepRequest {
    SleepRequest { id: id.to_owned(), ..SleepRequest::default() }
}

/// What a host says of a sandbox that is there.
fn there(ready: bool, asleep: bool) -> Inspection {
    let resources = vec![Resource { kind: "directory".into(), id: "/srv/sbx".into() }];
    let state = if ready { "running" } else { "exited" };
    let service = Service {
        name: "web".into(),
        state: state.into(),
        exit_code: (!ready).then_some(143),
        restarts: None,
        health: None,
    };
    Inspection { resources, ready, asleep, services: vec![service], ..Inspection::default() }
}

impl TestEnv {
    pub(crate) async fn sleep(&self, id: &str) -> (SandboxRecord, Result<(), Code>) {
        let started = self.manager.sleep(&of(id)).await.unwrap();
        let (operation, record) = self.manager.finish(&started.operation.unwrap()).await.unwrap();
        (record.unwrap(), operation.error.map_or(Ok(()), |error| Err(error.code)))
    }

    pub(crate) async fn wake(&self, id: &str) -> (SandboxRecord, Result<(), Code>) {
        let started = self.manager.wake(&of(id)).await.unwrap();
        let (operation, record) = self.manager.finish(&started.operation.unwrap()).await.unwrap();
        (record.unwrap(), operation.error.map_or(Ok(()), |error| Err(error.code)))
    }

    fn says(&self, seen: Inspection) {
        *self.script.seen.lock().unwrap() = seen;
    }

    fn asked_for(&self, verb: &str) -> usize {
        self.script.asked().iter().filter(|asked| *asked == verb).count()
    }
}

#[tokio::test]
async fn a_sandbox_sleeps_and_wakes_with_its_deadline_as_it_was() {
    let house = test_env();
    let id = source(&house).await;
    let before = house.manager.get(&id).await.unwrap();
    house.says(there(false, true));
    let (asleep, ended) = house.sleep(&id).await;
    assert_eq!((ended, &asleep.state, &asleep.operation), (Ok(()), &State::Sleeping, &None));
    assert_eq!(
        (asleep.expires_at, asleep.ready_at),
        (before.expires_at, before.ready_at),
        "its clock goes on"
    );
    assert_eq!(
        (asleep.reachability.clone(), asleep.degraded().count()),
        (None, 0),
        "it sleeps; it did not break"
    );
    assert_eq!(asleep.services[0].state, "exited");
    let (awake, ended) = house.wake(&id).await;
    assert_eq!((ended, &awake.state, &awake.operation), (Ok(()), &State::Ready, &None));
    assert!(awake.reachability.is_some(), "how to get there is read anew");
    assert_eq!(awake.expires_at, before.expires_at);
    let kinds = house.kinds().await;
    assert_eq!(kinds[kinds.len() - 2..], ["sandbox.sleeping", "sandbox.woken"]);
}

#[tokio::test]
async fn what_is_there_already_is_nothing_to_do_and_the_rest_is_a_conflict() {
    let house = test_env();
    let id = source(&house).await;
    assert_eq!(house.manager.wake(&of(&id)).await.unwrap().operation, None);
    house.sleep(&id).await.1.unwrap();
    assert_eq!(house.manager.sleep(&of(&id)).await.unwrap().operation, None);
    assert_eq!((house.asked_for("sleep"), house.asked_for("wake")), (1, 0));
    let code = |outcome: Result<_, Error>| {
        outcome.map(|_: sandboxer::domain::request::Started| ()).unwrap_err().code
    };
    assert_eq!(
        code(house.manager.wake(&SleepRequest { revision: Some(1), ..of(&id) }).await),
        Code::Conflict
    );
    house.script(&[Act::Fail(Code::OperationFailed, "no")], &[], &[]);
    let (failed, _) = house.create(sandboxer::domain::request::CreateRequest::default()).await;
    for verb in ["sleep", "wake"] {
        let request = of(failed.id.as_str());
        let outcome = if verb == "sleep" {
            house.manager.sleep(&request).await
        } else {
            house.manager.wake(&request).await
        };
        assert_eq!(code(outcome), Code::Conflict, "{verb}");
    }
    assert_eq!(house.manager.get(failed.id.as_str()).await.unwrap().state, State::Failed);
}

#[tokio::test]
async fn one_operation_at_a_time() {
    let house = test_env();
    let id = source(&house).await;
    house.script.sleep.lock().unwrap().push_back(Act::Slow);
    let started = house.manager.sleep(&of(&id)).await.unwrap();
    assert_eq!(house.other.wake(&of(&id)).await.unwrap_err().code, Code::Busy);
    house.manager.finish(&started.operation.unwrap()).await.unwrap();
    assert_eq!(house.manager.get(&id).await.unwrap().state, State::Sleeping);
}

/// Whatever the state is: who works on it may change that.
#[tokio::test]
async fn what_begins_during_a_create_is_told_who_is_at_it() {
    let house = test_env();
    house.script(&[Act::Hang], &[], &[]);
    let started =
        house.manager.create(sandboxer::domain::request::CreateRequest::default()).await.unwrap();
    let id = started.sandbox.id.to_string();
    let apply = ApplyRequest { id: id.clone(), ..ApplyRequest::default() };
    let snapshot = SnapshotRequest { id: id.clone(), ..SnapshotRequest::default() };
    let recreate = RecreateRequest { id: id.clone(), ..RecreateRequest::default() };
    for fault in [
        house.other.sleep(&of(&id)).await.unwrap_err(),
        house.other.wake(&of(&id)).await.unwrap_err(),
        house.other.apply_patches(&apply).await.unwrap_err(),
        house.other.snapshot(&snapshot).await.unwrap_err(),
        house.other.recreate(&recreate).await.unwrap_err(),
    ] {
        assert!(fault.code == Code::Busy && fault.message.contains("create by process"), "{fault}");
    }
    house.manager.cancel(&started.operation.unwrap()).await.unwrap();
}

#[tokio::test]
async fn a_sleep_that_fails_leaves_what_the_host_says() {
    for (seen, state) in [
        (there(true, false), State::Ready),
        (there(false, true), State::Sleeping),
        (there(false, false), State::Ready),
        (Inspection::default(), State::Lost),
    ] {
        let house = test_env();
        let id = source(&house).await;
        house.says(seen);
        house.script.sleep.lock().unwrap().push_back(Act::Fail(Code::Timeout, "it did not stop"));
        let (record, ended) = house.sleep(&id).await;
        assert_eq!((ended, &record.state, &record.operation), (Err(Code::Timeout), &state, &None));
        assert!(state == State::Lost || record.message.unwrap().contains("it did not stop"));
    }
}

#[tokio::test]
async fn a_host_that_does_not_answer_changes_no_state() {
    let house = test_env();
    let id = source(&house).await;
    house.script.sleep.lock().unwrap().push_back(Act::Fail(Code::HostUnreachable, "no route"));
    house.script(&[], &[Act::Fail(Code::HostUnreachable, "no route")], &[]);
    let (record, ended) = house.sleep(&id).await;
    assert_eq!((ended, &record.state), (Err(Code::HostUnreachable), &State::Ready));
    assert_eq!(house.kinds().await.last().unwrap(), "host.down");
}

#[tokio::test]
async fn a_wake_that_fails_is_put_back_to_sleep_and_can_be_tried_again() {
    let house = test_env();
    let id = source(&house).await;
    house.says(there(false, true));
    house.sleep(&id).await.1.unwrap();
    house
        .script
        .wake
        .lock()
        .unwrap()
        .push_back(Act::Fail(Code::OperationFailed, "service web exited with 1"));
    let (record, ended) = house.wake(&id).await;
    assert_eq!(
        (ended, &record.state, &record.operation),
        (Err(Code::OperationFailed), &State::Sleeping, &None)
    );
    assert!(record.message.unwrap().contains("service web exited with 1"));
    assert_eq!(house.asked_for("sleep"), 2);
    assert_eq!(house.wake(&id).await.0.state, State::Ready);
}

#[tokio::test]
async fn a_wake_that_is_called_off_sleeps_on() {
    for elsewhere in [false, true] {
        let house = test_env();
        let id = source(&house).await;
        house.says(there(false, true));
        house.sleep(&id).await.1.unwrap();
        house.script.wake.lock().unwrap().push_back(Act::Hang);
        let operation = house.manager.wake(&of(&id)).await.unwrap().operation.unwrap();
        let asker = if elsewhere { &house.other } else { &house.manager };
        asker.cancel(&operation).await.unwrap();
        let (operation, record) = house.manager.finish(&operation).await.unwrap();
        let record = record.unwrap();
        assert_eq!((operation.state, &record.state), (OperationState::Cancelled, &State::Sleeping));
        assert_eq!((record.operation, house.asked_for("sleep")), (None, 2));
    }
}

#[tokio::test]
async fn a_process_that_dies_over_a_sleep_leaves_what_the_host_says() {
    for (seen, state) in [(there(true, false), State::Ready), (there(false, true), State::Sleeping)]
    {
        let house = test_env();
        let id = source(&house).await;
        house.script.sleep.lock().unwrap().push_back(Act::Hang);
        let request = of(&id);
        killed(&house, "sleep", |manager| async move { manager.sleep(&request).await.map(|_| ()) });
        assert_eq!(house.manager.get(&id).await.unwrap().operation.unwrap().kind.as_str(), "sleep");
        house.says(seen);
        let items = house.manager.recover().await.unwrap();
        assert!(items.len() == 1 && items[0].ok, "{items:?}");
        let record = house.manager.get(&id).await.unwrap();
        assert_eq!(
            (&record.state, &record.reason, &record.operation),
            (&state, &Some(Reason::CrashRecovered), &None)
        );
    }
}

#[tokio::test]
async fn whoever_comes_before_recover_can_finish_what_a_dead_process_began() {
    let house = test_env();
    let id = source(&house).await;
    house.script.sleep.lock().unwrap().push_back(Act::Hang);
    let request = of(&id);
    killed(&house, "sleep", |manager| async move { manager.sleep(&request).await.map(|_| ()) });
    // It may be asleep or not: nobody has looked.
    let (record, ended) = house.wake(&id).await;
    assert_eq!((ended, record.state, house.asked_for("wake")), (Ok(()), State::Ready, 1));
}

#[tokio::test]
async fn a_sleeping_one_is_looked_at_with_the_others_and_is_lost_when_all_of_it_is_gone() {
    let house = test_env();
    let id = source(&house).await;
    house.says(there(false, true));
    house.sleep(&id).await.1.unwrap();
    house.manager.refresh_services("local").await.unwrap();
    let record = house.manager.get(&id).await.unwrap();
    assert_eq!((&record.state, record.degraded().count()), (&State::Sleeping, 0));
    *house.script.nothing_there.lock().unwrap() = true;
    house.says(Inspection::default());
    house.manager.refresh_services("local").await.unwrap();
    assert_eq!(house.manager.get(&id).await.unwrap().state, State::Lost);
    house.says(there(false, true));
    house.manager.refresh_services("local").await.unwrap();
    let back = house.manager.get(&id).await.unwrap();
    assert_eq!((&back.state, &back.message), (&State::Sleeping, &None), "back as it was, asleep");
    assert_eq!(house.wake(&id).await.0.state, State::Ready);
}
