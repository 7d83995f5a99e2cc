//! A create whose idempotency key was used before answers like the first call.

use std::collections::BTreeMap;

use sandboxer::domain::request::{CreateRequest, Started};
use sandboxer::domain::sandbox::State;
use sandboxer::domain::{Code, Error, SandboxRecord};
use sandboxer::manager::SandboxManager;

use super::recover::killed;
use crate::support::json_assertions::JsonAssertions as _;
use crate::test_env::script::Act;
use crate::test_env::test_env;

fn keyed() -> CreateRequest {
    CreateRequest { idempotency_key: Some("k".into()), ..CreateRequest::default() }
}

/// What whoever asks is told in the end.
async fn told(manager: &SandboxManager, request: CreateRequest) -> Result<SandboxRecord, Error> {
    let Started { operation, sandbox } = manager.create(request).await?;
    let Some(operation) = operation else { return Ok(sandbox) };
    let (ended, record) = manager.finish(&operation).await?;
    ended.error.map_or(Ok(record.unwrap()), |error| Err(*error))
}

#[tokio::test]
async fn a_repeat_waits_for_a_create_of_another_process() {
    let house = test_env();
    house.script(&[Act::Slow], &[], &[]);
    let first = house.manager.create(keyed()).await.unwrap();
    let record = told(&house.other, keyed()).await.unwrap();
    assert_eq!((record.id, record.state), (first.sandbox.id, State::Ready));
}

#[tokio::test]
async fn a_repeat_of_a_failed_create_fails_alike() {
    let house = test_env();
    house.script(&[], &[Act::Fail(Code::Timeout, "web is created")], &[]);
    let first = told(&house.manager, keyed()).await.unwrap_err();
    for manager in [&house.manager, &house.other] {
        let again = told(manager, keyed()).await.unwrap_err();
        assert_eq!(
            (&again.code, &again.message, &again.details),
            (&Code::Timeout, &first.message, &first.details)
        );
    }
    let plan = house.other.plan_create(&keyed()).await.unwrap();
    assert_eq!((plan.ok, plan.error.unwrap().code), (false, Code::Timeout));
    // After a day nobody knows more than the record.
    for file in ["operations.json", "operations.json.bak"] {
        std::fs::remove_file(house.folder.path().join(file)).unwrap();
    }
    let again = told(&house.other, keyed()).await.unwrap_err();
    assert_eq!((again.code, again.message), (Code::OperationFailed, first.message));
}

#[tokio::test]
async fn a_repeat_of_what_is_destroyed_is_a_conflict() {
    let house = test_env();
    let record = told(&house.manager, keyed()).await.unwrap();
    assert!(house.other.plan_create(&keyed()).await.unwrap().ok);
    house.destroy(&record.id).await.1.unwrap();
    let fault = told(&house.other, keyed()).await.unwrap_err();
    assert_eq!((fault.code, &fault.details["id"]), (Code::Conflict, &record.id.as_str().into()));
}

#[tokio::test]
async fn a_repeat_of_what_a_dead_process_left_half_made_says_so() {
    let house = test_env();
    house.script(&[Act::Hang], &[], &[]);
    killed(&house, "provision", |manager| async move { manager.create(keyed()).await });
    told(&house.other, keyed()).await.unwrap_err().coded(Code::OperationFailed).hints("recover");
}

#[tokio::test]
async fn the_same_request_is_the_same_however_it_is_written() {
    let house = test_env();
    let labels = |pairs: &[(&str, &str)]| {
        pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
    };
    let first = CreateRequest {
        profile: Some("sandbox-canary".into()),
        host: Some("local".into()),
        ttl: Some("30m".into()),
        id: Some("mine".into()),
        labels: labels(&[("a", "1"), ("b", "2")]),
        ..keyed()
    };
    let made = told(&house.manager, first.clone()).await.unwrap();
    let same = CreateRequest {
        profile: None,
        host: Some("LOCAL".into()),
        ttl: Some("1800s".into()),
        id: None,
        inputs: BTreeMap::from([("sandbox_id".to_owned(), "mine".to_owned())]),
        labels: labels(&[("b", "2"), ("a", "1")]),
        keep_failed: true,
        yes: true,
        ..keyed()
    };
    let full = CreateRequest { profile: Some("profile.sandbox-canary".into()), ..first.clone() };
    for request in [same, full] {
        assert_eq!(told(&house.other, request).await.unwrap().id, made.id);
    }
    for other in [
        CreateRequest { host: None, ..first.clone() },
        CreateRequest { ttl: Some("31m".into()), ..first.clone() },
        CreateRequest { name: Some("x".into()), ..first.clone() },
        CreateRequest { labels: BTreeMap::new(), ..first.clone() },
    ] {
        told(&house.other, other).await.unwrap_err().coded(Code::Conflict);
    }
}
