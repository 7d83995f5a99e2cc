//! Sleep and wake: a state is written when the host confirmed it, and nothing fails but the operation.

use sandboxer::domain::extension::Inspection;
use sandboxer::domain::request::SleepRequest;
use sandboxer::domain::sandbox::{Reason, State};
use sandboxer::domain::{Code, Error, OperationState};

use super::recover::killed;
use crate::support::json_assertions::JsonAssertions as _;
use crate::test_env::script::Act;
use crate::test_env::{TestEnv, of, test_env, there, with_sandbox};

impl TestEnv {
    fn says(&self, seen: Inspection) {
        self.script.seen.set(seen);
    }

    fn asked_for(&self, verb: &str) -> usize {
        self.script.asked().iter().filter(|asked| *asked == verb).count()
    }
}

#[tokio::test]
async fn a_sandbox_sleeps_and_wakes_with_its_deadline_as_it_was() {
    let (house, id) = with_sandbox().await;
    let before = house.record(&id).await;
    house.says(there(false, true));
    let (asleep, ended) = house.sleep(&id).await;
    assert_eq!((ended, &asleep.state, &asleep.operation), (Ok(()), &State::Sleeping, &None));
    assert_eq!(asleep.expires_at, before.expires_at, "its clock goes on");
    assert_eq!(asleep.ready_at, before.ready_at, "its clock goes on");
    assert_eq!(asleep.reachability.clone(), None, "it sleeps; it did not break");
    assert_eq!(asleep.degraded().count(), 0, "it sleeps; it did not break");
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
    let (house, id) = with_sandbox().await;
    assert_eq!(house.manager.wake(&of(&id)).await.unwrap().operation, None);
    house.sleep(&id).await.1.unwrap();
    assert_eq!(house.manager.sleep(&of(&id)).await.unwrap().operation, None);
    assert_eq!((house.asked_for("sleep"), house.asked_for("wake")), (1, 0));
    let code = |outcome: Result<_, Error>| {
        outcome.map(|_: sandboxer::domain::request::Started| ()).unwrap_err().code
    };
    let found = code(house.manager.wake(&SleepRequest { revision: Some(1), ..of(&id) }).await);
    assert_eq!(found, Code::Conflict);
    house.script(&[Act::fails("no")], &[], &[]);
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
    assert_eq!(house.record(&failed.id).await.state, State::Failed);
}

#[tokio::test]
async fn one_operation_at_a_time() {
    let (house, id) = with_sandbox().await;
    house.script.sleep.push(Act::Slow);
    let started = house.manager.sleep(&of(&id)).await.unwrap();
    house.other.wake(&of(&id)).await.unwrap_err().coded(Code::Busy);
    house.manager.finish(&started.operation.unwrap()).await.unwrap();
    assert_eq!(house.record(&id).await.state, State::Sleeping);
}

/// Whatever the state is: who works on it may change that.
#[tokio::test]
async fn what_begins_during_a_create_is_told_who_is_at_it() {
    let house = test_env();
    house.script(&[Act::Hang], &[], &[]);
    let started =
        house.manager.create(sandboxer::domain::request::CreateRequest::default()).await.unwrap();
    let id = started.sandbox.id.to_string();
    let snapshot = of(&id);
    let recreate = of(&id);
    for fault in [
        house.other.sleep(&of(&id)).await.unwrap_err(),
        house.other.wake(&of(&id)).await.unwrap_err(),
        house.other.apply_patches(&of(&id)).await.unwrap_err(),
        house.other.snapshot(&snapshot).await.unwrap_err(),
        house.other.recreate(&recreate).await.unwrap_err(),
    ] {
        fault.coded(Code::Busy).says("create by process");
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
        let (house, id) = with_sandbox().await;
        house.says(seen);
        house.script.sleep.push(Act::Fail(Code::Timeout, "it did not stop"));
        let (record, ended) = house.sleep(&id).await;
        assert_eq!((ended, &record.state, &record.operation), (Err(Code::Timeout), &state, &None));
        assert!(state == State::Lost || record.message.unwrap().contains("it did not stop"));
    }
}

#[tokio::test]
async fn a_host_that_does_not_answer_changes_no_state() {
    let (house, id) = with_sandbox().await;
    house.script.sleep.push(Act::no_route());
    house.script(&[], &[Act::no_route()], &[]);
    let (record, ended) = house.sleep(&id).await;
    assert_eq!((ended, &record.state), (Err(Code::HostUnreachable), &State::Ready));
    assert_eq!(house.kinds().await.last().unwrap(), "host.down");
}

#[tokio::test]
async fn a_wake_that_fails_is_put_back_to_sleep_and_can_be_tried_again() {
    let (house, id) = with_sandbox().await;
    house.says(there(false, true));
    house.sleep(&id).await.1.unwrap();
    house.script.wake.push(Act::fails("service web exited with 1"));
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
        let (house, id) = with_sandbox().await;
        house.says(there(false, true));
        house.sleep(&id).await.1.unwrap();
        house.script.wake.push(Act::Hang);
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
        let (house, id) = with_sandbox().await;
        house.script.sleep.push(Act::Hang);
        let request = of(&id);
        killed(&house, "sleep", |manager| async move { manager.sleep(&request).await });
        assert_eq!(house.record(&id).await.operation.unwrap().kind.as_str(), "sleep");
        house.says(seen);
        let items = house.manager.recover().await.unwrap();
        assert!(items.len() == 1 && items[0].ok, "{items:?}");
        let record = house.record(&id).await;
        assert_eq!(
            (&record.state, &record.reason, &record.operation),
            (&state, &Some(Reason::CrashRecovered), &None)
        );
    }
}

#[tokio::test]
async fn whoever_comes_before_recover_can_finish_what_a_dead_process_began() {
    let (house, id) = with_sandbox().await;
    house.script.sleep.push(Act::Hang);
    let request = of(&id);
    killed(&house, "sleep", |manager| async move { manager.sleep(&request).await });
    // It may be asleep or not: nobody has looked.
    let (record, ended) = house.wake(&id).await;
    assert_eq!((ended, record.state, house.asked_for("wake")), (Ok(()), State::Ready, 1));
}

#[tokio::test]
async fn a_sleeping_one_is_looked_at_with_the_others_and_is_lost_when_all_of_it_is_gone() {
    let (house, id) = with_sandbox().await;
    house.says(there(false, true));
    house.sleep(&id).await.1.unwrap();
    house.manager.refresh_services("local").await.unwrap();
    let record = house.record(&id).await;
    assert_eq!((&record.state, record.degraded().count()), (&State::Sleeping, 0));
    house.script.nothing_there.set(true);
    house.says(Inspection::default());
    house.manager.refresh_services("local").await.unwrap();
    assert_eq!(house.record(&id).await.state, State::Lost);
    house.says(there(false, true));
    house.manager.refresh_services("local").await.unwrap();
    let back = house.record(&id).await;
    assert_eq!((&back.state, &back.message), (&State::Sleeping, &None), "back as it was, asleep");
    assert_eq!(house.wake(&id).await.0.state, State::Ready);
}
