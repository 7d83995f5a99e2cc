//! The verbs: write ahead, compensate, one operation at a time, nothing lost when a step fails, panics or is cancelled.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures_util::future::join_all;

use crate::support::json_assertions::JsonAssertions as _;
use crate::test_env::script::Act;
use crate::test_env::{finished, now, of, test_env};
use sandboxer::domain::extension::Unsettled;
use sandboxer::domain::request::{CreateRequest, DestroyRequest, ListQuery};
use sandboxer::domain::sandbox::{Reason, State};
use sandboxer::domain::{Code, OperationState};

fn plain() -> CreateRequest {
    CreateRequest::default()
}

#[tokio::test]
async fn a_create_is_written_down_before_the_host_is_touched_and_becomes_ready() {
    let house = test_env();
    house.script(&[Act::Hang], &[], &[]);
    let started = house.manager.create(plain()).await.unwrap();
    let id = started.sandbox.id.to_string();
    assert_eq!(started.sandbox.state, State::Requested);
    tokio::time::timeout(Duration::from_secs(10), async {
        // And the host is at it: what is cancelled before that would leave its hanging to the next one.
        while house.other.get(&id).await.unwrap().state != State::Provisioning
            || !house.script.provision.lock().unwrap().is_empty()
        {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await
    .unwrap();
    let seen = house.other.get(&id).await.unwrap();
    let running = seen.operation.unwrap();
    assert_eq!((running.pid, running.host.as_str()), (std::process::id(), "here"));
    assert!(seen.expires_at.unwrap() > seen.created_at, "the deadline is there from the start");
    house.manager.cancel(&running.id).await.unwrap();
    house.manager.finish(&running.id).await.unwrap();

    let (record, ended) = house.create(plain()).await;
    assert_eq!((ended, &record.state), (Ok(()), &State::Ready));
    let found = record.expires_at.unwrap();
    assert_eq!(found, record.ready_at.unwrap().plus_seconds(3600), "TTL counts from ready");
    assert!(record.operation.is_none());
    let asked = house.script.asked();
    assert_eq!(
        asked[asked.len() - 3..],
        ["provision 2", "wait_ready", "write_manifest"],
        "the owner's counter was raised"
    );
}

#[tokio::test]
async fn what_dies_while_it_settles_is_not_ready() {
    let house = test_env();
    house.script.unsettled.set(Unsettled::All);
    assert_eq!(house.create(plain()).await.1, Ok(()));
    let asked = house.script.asked();
    assert_eq!(
        asked[asked.len() - 3..],
        ["wait_ready", "wait_settled", "write_manifest"],
        "TTL counts from what is ready"
    );
    house.script.settled.push(Act::fails("db ended with status 3"));
    let (record, ended) = house.create(plain()).await;
    assert_eq!((ended, &record.state), (Err(Code::OperationFailed), &State::Failed));
    assert_eq!(record.message.as_deref(), Some("db ended with status 3"));
    assert!(house.script.asked().contains(&format!("teardown /srv/sbx-{}", record.id)));
}

#[tokio::test]
async fn a_failed_step_is_rolled_back_with_its_evidence() {
    let house = test_env();
    house.script(&[], &[Act::Fail(Code::Timeout, "web is created")], &[]);
    let (record, ended) = house.create(plain()).await;
    assert_eq!(ended, Err(Code::Timeout));
    assert_eq!((record.state, record.reason), (State::Failed, Some(Reason::ProvisionFailed)));
    assert!(record.failure.unwrap().output.contains("web is created"));
    assert!(record.leftovers.is_empty());
    assert_eq!(record.teardown.len(), 1);
    assert!(house.script.asked().contains(&format!("teardown /srv/sbx-{}", record.id)));
    assert_eq!(
        house.kinds().await,
        ["sandbox.requested", "sandbox.provisioning", "sandbox.failed"]
    );
    // Somebody looked and found nothing left: the record can be closed although the host may be down by now.
    house.script(&[], &[], &[Act::Fail(Code::HostUnreachable, "down")]);
    assert_eq!(house.destroy(&record.id).await.0.state, State::Destroyed);
}

#[tokio::test]
async fn what_a_rollback_could_not_remove_is_left_over_and_removed_by_destroy() {
    let house = test_env();
    let down = || Act::no_route();
    house.script(&[Act::Fail(Code::HostUnreachable, "lost")], &[], &[down(), down(), down()]);
    let (record, ended) = house.create(plain()).await;
    assert_eq!(ended, Err(Code::HostUnreachable));
    assert_eq!(record.state, State::Failed);
    assert_eq!(record.leftovers.len(), 1, "nobody looked: it may all be there");
    let (record, ended) = house.destroy(&record.id).await;
    assert_eq!((ended, record.state), (Ok(()), State::Destroyed));
    assert!(record.leftovers.is_empty());
}

#[tokio::test]
async fn nothing_is_torn_down_when_nothing_was_made() {
    let house = test_env();
    house.script(&[Act::Untouched(Code::Conflict)], &[], &[]);
    let (record, ended) = house.create(plain()).await;
    assert_eq!((ended, record.state), (Err(Code::Conflict), State::Failed));
    assert!(record.leftovers.is_empty());
    assert!(house.script.count("teardown") == 0, "what is there is somebody else's");
}

#[tokio::test]
async fn a_panic_is_a_failed_operation_and_the_sandbox_can_be_destroyed() {
    let house = test_env();
    house.script(&[Act::Panic], &[], &[]);
    let (record, ended) = house.create(plain()).await;
    assert_eq!((ended, &record.state), (Err(Code::Internal), &State::Failed));
    assert!(record.operation.is_none());
    let (record, ended) = house.destroy(&record.id).await;
    assert_eq!((ended, record.state), (Ok(()), State::Destroyed));
    assert!(house.script.count("teardown") > 0, "a panic's remains were looked for");
}

#[tokio::test]
async fn destroy_by_another_process_cancels_a_running_create() {
    let house = test_env();
    house.script(&[Act::Hang], &[], &[]);
    let started = house.manager.create(plain()).await.unwrap();
    let (operation, record) =
        finished(&house.other, house.other.destroy(&of(&started.sandbox.id)).await).await;
    assert_eq!(operation.state, OperationState::Succeeded);
    assert_eq!(record.state, State::Destroyed);
    let (mine, _) = house.manager.finish(&started.operation.unwrap()).await.unwrap();
    assert_eq!(mine.state, OperationState::Cancelled);
}

#[tokio::test]
async fn a_host_that_does_not_answer_leaves_it_destroying_never_destroyed() {
    let house = test_env();
    let (record, _) = house.create(plain()).await;
    let down = || Act::no_route();
    house.script(&[], &[], &[down(), down(), down()]);
    let (record, ended) = house.destroy(&record.id).await;
    assert_eq!(ended, Err(Code::HostUnreachable));
    assert_eq!((record.state, record.reason), (State::Destroying, Some(Reason::HostLost)));
    let before = house.kinds().await.len();
    let (record, ended) = house.destroy(&record.id).await;
    assert_eq!((ended, record.state), (Ok(()), State::Destroyed));
    let kinds = house.kinds().await;
    assert_eq!(kinds[before - 1], "host.down");
    assert_eq!(kinds[before..], ["sandbox.destroying", "sandbox.destroyed", "host.up"]);
}

#[tokio::test]
async fn what_could_not_be_removed_keeps_it_from_being_destroyed() {
    let house = test_env();
    let (record, _) = house.create(plain()).await;
    house.script(&[], &[], &[Act::LeaveNetwork]);
    let (record, ended) = house.destroy(&record.id).await;
    assert_eq!((ended, record.state), (Err(Code::OperationFailed), State::Destroying));
    assert_eq!(record.leftovers[0].kind, "network");
    assert_eq!(record.teardown[0].reason.as_deref(), Some("in use"));
}

#[tokio::test]
async fn a_destroy_acts_only_on_what_was_looked_at() {
    let house = test_env();
    let (record, _) = house.create(plain()).await;
    let stale = DestroyRequest { revision: Some(record.revision - 1), ..of(&record.id) };
    let fault = house.manager.destroy(&stale).await.unwrap_err();
    fault.coded(Code::Conflict);
    assert_eq!(fault.details["current"]["id"], record.id.as_str());
    let found = house.manager.destroy(&of(&record.id.as_str()[..4])).await.unwrap_err().code;
    assert_eq!(found, Code::NotFound, "the manager resolves no prefix");
}

#[tokio::test]
async fn a_protected_one_needs_to_be_forced() {
    let house = test_env();
    let labels = BTreeMap::from([("protect".to_owned(), "true".to_owned())]);
    let (record, _) = house.create(CreateRequest { labels, ..plain() }).await;
    let mut request = of(&record.id);
    house.manager.destroy(&request).await.unwrap_err().coded(Code::Conflict);
    request.force_protected = true;
    let started = house.manager.destroy(&request).await.unwrap();
    let found = house.manager.finish(&started.operation.unwrap()).await.unwrap().1.unwrap().state;
    assert_eq!(found, State::Destroyed);
}

#[tokio::test]
async fn the_same_key_and_request_is_the_same_sandbox() {
    let house = test_env();
    let request =
        CreateRequest { idempotency_key: Some("k1".into()), name: Some("one".into()), ..plain() };
    let (record, _) = house.create(request.clone()).await;
    let again = house.other.create(request.clone()).await.unwrap();
    assert_eq!((again.operation, again.sandbox.id), (None, record.id));
    let another = CreateRequest { name: Some("two".into()), ..request };
    house.other.create(another).await.unwrap_err().coded(Code::Conflict);
    assert_eq!(house.manager.list(&ListQuery::default()).await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn equal_requests_at_once_are_one_sandbox() {
    let house = test_env();
    let request =
        CreateRequest { idempotency_key: Some("k".into()), name: Some("one".into()), ..plain() };
    let both = [&house.manager, &house.other];
    let started = join_all((0..8).map(|n| both[n % 2].create(request.clone()))).await;
    let started: Vec<_> = started.into_iter().map(Result::unwrap).collect();
    let ids: BTreeSet<String> = started.iter().map(|one| one.sandbox.id.to_string()).collect();
    assert_eq!(ids.len(), 1, "{ids:?}");
    for (n, one) in started.into_iter().enumerate() {
        if let Some(operation) = one.operation {
            let (_, record) = both[n % 2].finish(&operation).await.unwrap();
            assert_eq!(record.unwrap().state, State::Ready);
        }
    }
    assert_eq!(house.manager.list(&ListQuery::default()).await.unwrap().len(), 1);
}

#[tokio::test]
async fn recreate_keeps_the_sandbox_when_nobody_could_look_or_it_would_be_refused() {
    let house = test_env();
    let (record, _) = house.create(plain()).await;
    let request = of(&record.id);

    house.script.preview.push(Act::Refuse);
    house.manager.recreate(&request).await.unwrap_err().coded(Code::InvalidInput);
    assert!(house.script.count("teardown") == 0, "a refused recreate removed something");

    let down = || Act::Untouched(Code::HostUnreachable);
    house.script(&[], &[], &[down(), down(), down()]);
    let (operation, after) = house.finished(house.manager.recreate(&request).await).await;
    assert_eq!(operation.state, OperationState::Failed);
    assert_eq!(after.state, State::Ready);

    let (_, after) = house.finished(house.manager.recreate(&request).await).await;
    assert_eq!((after.id, after.state), (record.id, State::Ready));
    assert!(after.ready_at > record.ready_at, "the TTL starts again");
    assert!(house.kinds().await.contains(&"sandbox.recreated".to_owned()));
}

#[tokio::test]
async fn a_recreate_whose_removal_breaks_off_is_no_longer_ready() {
    let house = test_env();
    let (record, _) = house.create(plain()).await;
    let request = of(&record.id);
    // The first try got as far as the host; nobody knows what it removed.
    let gone = || Act::Untouched(Code::HostUnreachable);
    house.script(
        &[],
        &[],
        &[Act::Fail(Code::HostUnreachable, "the connection was lost"), gone(), gone()],
    );
    let (_, after) = house.finished(house.manager.recreate(&request).await).await;
    assert_eq!((&after.state, &after.reason), (&State::Failed, &Some(Reason::HostLost)));
    assert!(after.reachability.is_none() && after.leftovers.len() == 1, "{after:?}");
    let (_, again) = house.finished(house.manager.recreate(&request).await).await;
    assert_eq!(again.state, State::Ready);
}

#[tokio::test]
async fn a_destroy_that_meets_another_one_waits_for_it() {
    let house = test_env();
    let (record, _) = house.create(plain()).await;
    let request = of(&record.id);
    house.script(&[], &[], &[Act::Slow]);
    let first = house.manager.destroy(&request).await.unwrap();
    while !house.script.teardown.lock().unwrap().is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let (second, third) = (
        house.other.destroy(&request).await.unwrap(),
        house.other.destroy(&request).await.unwrap(),
    );
    for (manager, started) in
        [(&house.manager, first), (&house.other, second), (&house.other, third)]
    {
        let (operation, record) = manager.finish(&started.operation.unwrap()).await.unwrap();
        assert_eq!(operation.state, OperationState::Succeeded);
        assert_eq!(record.unwrap().state, State::Destroyed);
    }
    assert_eq!(house.script.count("teardown"), 1);
}

#[tokio::test]
async fn a_key_is_about_directories_and_not_about_how_they_are_spelled() {
    let house = test_env();
    let (a, b) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let create = async |repo: &std::path::Path, yes: bool| {
        let inputs = BTreeMap::from([("repo".to_owned(), repo.to_str().unwrap().to_owned())]);
        let key = Some("k".to_owned());
        let profile = Some("compose-e2e".to_owned());
        let request = CreateRequest {
            inputs,
            idempotency_key: key,
            profile,
            yes,
            host: Some("local".into()),
            ..plain()
        };
        house.manager.create(request).await
    };
    let first = create(a.path(), false).await.unwrap();
    house.manager.finish(&first.operation.unwrap()).await.unwrap();
    let spelled = a.path().join(".").join("..").join(a.path().file_name().unwrap());
    assert_eq!(create(&spelled, true).await.unwrap().sandbox.id, first.sandbox.id);
    create(b.path(), false).await.unwrap_err().coded(Code::Conflict);
}

#[tokio::test]
async fn a_kept_failure_stays_for_an_hour_and_destroy_removes_it() {
    let house = test_env();
    house.script(&[], &[Act::fails("web ended")], &[]);
    let (record, _) = house.create(CreateRequest { keep_failed: true, ..plain() }).await;
    assert!(record.kept_failed && record.state == State::Failed);
    let left = record.expires_at.unwrap().since(now());
    assert!(left > Duration::from_secs(3500) && left <= Duration::from_hours(1), "{left:?}");
    assert!(house.script.count("teardown") == 0);
    assert_eq!(house.destroy(&record.id).await.0.state, State::Destroyed);
    assert!(house.script.count("teardown") > 0);
}

#[tokio::test]
async fn a_reference_is_an_id_a_name_or_a_unique_prefix_in_this_order() {
    let house = test_env();
    for id in ["abcd-1", "abcd-2"] {
        assert_eq!(house.create(CreateRequest { id: Some(id.into()), ..plain() }).await.1, Ok(()));
    }
    let (named, _) = house
        .create(CreateRequest { id: Some("x-1".into()), name: Some("abcd".into()), ..plain() })
        .await;
    assert_eq!(
        house.manager.get("abcd").await.unwrap().id,
        named.id,
        "an exact name goes before a prefix"
    );
    let fault = house.manager.get("abcd-").await.unwrap_err();
    assert_eq!(fault.code, Code::Conflict);
    assert_eq!(fault.details["matches"].as_array().unwrap().len(), 2);
    let found = house.manager.get("abc").await.unwrap_err().code;
    assert_eq!(found, Code::NotFound, "three characters are no prefix");
    assert_eq!(house.destroy("x-1").await.1, Ok(()));
    let taken = house
        .manager
        .create(CreateRequest { id: Some("x-1".into()), ..plain() })
        .await
        .unwrap_err();
    assert_eq!(taken.code, Code::Conflict, "an id is never used twice");
    let (again, _) = house.create(CreateRequest { name: Some("abcd".into()), ..plain() }).await;
    assert_eq!(
        house.manager.get("abcd").await.unwrap().id,
        again.id,
        "the living bearer of a name is meant"
    );
}

#[tokio::test]
async fn what_can_be_refused_is_refused_before_anything_is_written() {
    let house = test_env();
    let long = "x".repeat(10_000);
    let cases: Vec<(CreateRequest, &str)> = vec![
        (CreateRequest { id: Some("$(reboot)".into()), ..plain() }, "id"),
        (CreateRequest { id: Some(long.clone()), ..plain() }, "id"),
        (CreateRequest { name: Some("a'b".into()), ..plain() }, "name"),
        (CreateRequest { name: Some("deadbeef".into()), ..plain() }, "name"),
        (CreateRequest { host: Some("-oProxyCommand=x".into()), ..plain() }, "host"),
        (CreateRequest { host: Some("a\nb".into()), ..plain() }, "host"),
        (CreateRequest { ttl: Some("none".into()), ..plain() }, "ttl"),
        (CreateRequest { ttl: Some("0s".into()), ..plain() }, "ttl"),
        (CreateRequest { ttl: Some("99d".into()), ..plain() }, "ttl"),
        (
            CreateRequest {
                labels: BTreeMap::from([("k".into(), "a\u{1b}[2Jb".into())]),
                ..plain()
            },
            "label",
        ),
        (
            CreateRequest { inputs: BTreeMap::from([("rpeo".into(), "x".into())]), ..plain() },
            "rpeo",
        ),
        (CreateRequest { idempotency_key: Some(String::new()), ..plain() }, "idempotency_key"),
    ];
    for (request, field) in cases {
        let fault = house.manager.create(request.clone()).await.unwrap_err();
        assert_eq!(fault.code, Code::InvalidInput, "{request:?}");
        assert_eq!(fault.details["field"].as_str(), Some(field), "{request:?}");
    }
    house.script.preview.push(Act::Refuse);
    house.manager.create(plain()).await.unwrap_err().coded(Code::InvalidInput);
    assert!(
        house
            .manager
            .list(&ListQuery { all: true, ..Default::default() })
            .await
            .unwrap()
            .is_empty()
    );
    assert!(house.kinds().await.is_empty());
}

#[tokio::test]
async fn a_removal_that_is_cut_off_stays_destroying_and_is_finished_later() {
    let house = test_env();
    let (record, _) = house.create(plain()).await;
    house.script(&[], &[], &[Act::Hang]);
    let operation = house.manager.destroy(&of(&record.id)).await.unwrap().operation.unwrap();
    // Its host is at it before that is written down.
    tokio::time::timeout(Duration::from_mins(1), async {
        while house.other.get(record.id.as_str()).await.unwrap().state != State::Destroying {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await
    .unwrap();
    house.manager.cancel(&operation).await.unwrap();
    let (ended, after) = house.manager.finish(&operation).await.unwrap();
    assert_eq!((ended.state, after.unwrap().state), (OperationState::Cancelled, State::Destroying));
    assert_eq!(house.destroy(&record.id).await.0.state, State::Destroyed);
}

#[tokio::test]
async fn a_plan_says_what_a_create_would_be_told_of_names_and_ids() {
    let house = test_env();
    let named = CreateRequest { id: Some("x-1".into()), name: Some("shop".into()), ..plain() };
    assert_eq!(house.create(named).await.1, Ok(()));
    for request in [
        CreateRequest { id: Some("x-1".into()), ..plain() },
        CreateRequest { name: Some("shop".into()), ..plain() },
        CreateRequest { name: Some("x-1".into()), ..plain() },
    ] {
        let plan = house.manager.plan_create(&request).await.unwrap();
        let told = house.manager.create(request.clone()).await.unwrap_err();
        assert!(!plan.ok, "{request:?}");
        assert_eq!(plan.error.map(|error| error.code), Some(told.code), "{request:?}");
    }
    assert!(house.manager.plan_create(&plain()).await.unwrap().ok);
}

#[tokio::test]
async fn a_host_is_recorded_as_it_is_configured() {
    let (record, _) =
        test_env().create(CreateRequest { host: Some("LOCAL".into()), ..plain() }).await;
    assert_eq!(record.host.as_str(), "local");
}
