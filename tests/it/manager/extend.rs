//! `extend`: later only, never past what the profile allows, beside whatever works on the sandbox.

use std::collections::BTreeMap;

use sandboxer::domain::request::{CreateRequest, ExtendRequest, LabelRequest};
use sandboxer::domain::sandbox::{SandboxRecord, State};
use sandboxer::domain::{Code, Time};

use crate::support::json_assertions::JsonAssertions as _;
use crate::test_env::script::Act;
use crate::test_env::{TestEnv, of, test_env};

async fn living(house: &TestEnv, ttl: &str) -> SandboxRecord {
    let request = CreateRequest { ttl: Some(ttl.into()), ..CreateRequest::default() };
    house.made(request).await
}

fn rewritten(house: &TestEnv) -> usize {
    let asked = house.script.asked.lock().unwrap();
    asked.iter().filter(|call| *call == "write_manifest").count()
}

fn by(record: &SandboxRecord, seconds: u64) -> ExtendRequest {
    ExtendRequest { by_s: Some(seconds), ..of(&record.id) }
}

fn to(record: &SandboxRecord, at: Time) -> ExtendRequest {
    ExtendRequest { to: Some(at), ..of(&record.id) }
}

#[tokio::test]
async fn an_extension_moves_the_deadline_tells_of_it_and_rewrites_the_manifest() {
    let house = test_env();
    let made = living(&house, "30m").await;
    let was = made.expires_at.unwrap();
    let before = rewritten(&house);
    let later = house.manager.extend(&by(&made, 600)).await.unwrap().sandbox;
    assert_eq!(later.expires_at, Some(was.plus_seconds(600)));
    assert_eq!(rewritten(&house), before + 1);
    assert_eq!(house.kinds().await.last().map(String::as_str), Some("sandbox.extended"));
    let at = was.plus_seconds(1200);
    assert_eq!(house.other.extend(&to(&made, at)).await.unwrap().sandbox.expires_at, Some(at));
    let same = house.other.extend(&to(&made, at)).await.unwrap().sandbox;
    let told = house.count_told("sandbox.extended").await;
    assert_eq!((same.expires_at, told), (Some(at), 2), "nothing to do is no event");
}

#[tokio::test]
async fn an_extension_is_refused_where_it_would_shorten_or_pass_the_limit() {
    let house = test_env();
    let made = living(&house, "30m").await;
    let (was, max) = (made.expires_at.unwrap(), made.max_expires_at.unwrap());
    let refusal =
        async |request: ExtendRequest| house.manager.extend(&request).await.unwrap_err().code;
    assert_eq!(refusal(to(&made, was.minus_seconds(60))).await, Code::InvalidInput);
    assert_eq!(refusal(to(&made, max.plus_seconds(1))).await, Code::InvalidInput);
    assert_eq!(refusal(by(&made, 0)).await, Code::InvalidInput);
    let over = ExtendRequest { allow_shorten: true, ..to(&made, Time::from_unix(0)) };
    assert_eq!(refusal(over).await, Code::InvalidInput);
    let endless = ExtendRequest { allow_shorten: true, ..to(&made, was.plus_seconds(400_000_000)) };
    assert_eq!(refusal(endless).await, Code::InvalidInput);
    let both = ExtendRequest { to: Some(max), ..by(&made, 60) };
    assert_eq!(refusal(both).await, Code::InvalidInput);
    assert_eq!(house.record(&made.id).await.expires_at, Some(was));
    assert_eq!(house.manager.extend(&to(&made, max)).await.unwrap().sandbox.expires_at, Some(max));
    let shorter = ExtendRequest { allow_shorten: true, ..to(&made, was) };
    assert_eq!(house.manager.extend(&shorter).await.unwrap().sandbox.expires_at, Some(was));
}

#[tokio::test]
async fn an_extension_of_another_deadline_than_was_looked_at_is_a_conflict() {
    let house = test_env();
    let made = living(&house, "30m").await;
    house.other.extend(&by(&made, 60)).await.unwrap();
    let stale = ExtendRequest { expires_at: made.expires_at, ..by(&made, 60) };
    house.manager.extend(&stale).await.unwrap_err().coded(Code::Conflict);
    assert_eq!(house.destroy(&made.id).await.1, Ok(()));
    house.manager.extend(&by(&made, 60)).await.unwrap_err().coded(Code::Conflict);
}

#[tokio::test]
async fn an_extension_that_the_host_does_not_know_of_says_so_and_is_written_by_the_next() {
    let house = test_env();
    let made = living(&house, "30m").await;
    let at = made.expires_at.unwrap().plus_seconds(60);
    house.script.dated.push(Act::Fail(Code::HostUnreachable, "down"));
    let extended = house.manager.extend(&to(&made, at)).await.unwrap();
    assert_eq!(extended.sandbox.expires_at, Some(at), "the record is what counts");
    let error = extended.unwritten.unwrap();
    assert!(error.message.contains("its manifest on") && error.hint.is_some(), "{error:?}");
    let before = rewritten(&house);
    assert_eq!(house.manager.extend(&to(&made, at)).await.unwrap().unwritten, None);
    assert_eq!(rewritten(&house), before + 1);
}

fn labelled(record: &SandboxRecord, key: &str, value: &str) -> LabelRequest {
    let set = BTreeMap::from([(key.to_owned(), value.to_owned())]);
    LabelRequest { set, ..of(&record.id) }
}

#[tokio::test]
async fn labels_are_written_to_the_manifest_at_once_or_at_the_next_contact() {
    let house = test_env();
    let made = living(&house, "30m").await;
    let on_host = || house.script.manifests.lock().unwrap()[&made.id].clone();
    assert_eq!((on_host().state, on_host().expires_at), (State::Ready, made.expires_at));
    let record = house.manager.label(labelled(&made, "protect", "true")).await.unwrap();
    assert!(!record.manifest_pending && on_host().is_protected());
    house.script.down.lock().unwrap().insert("local");
    let record = house.manager.label(labelled(&made, "team", "a")).await.unwrap();
    assert!(record.manifest_pending && record.labels["team"] == "a");
    assert_eq!(on_host().labels.get("team"), None);
    house.script.down.lock().unwrap().clear();
    house.other.check_host("local").await.unwrap();
    let record = house.record(&made.id).await;
    assert!(!record.manifest_pending && on_host().labels["team"] == "a");
}

#[tokio::test]
async fn nobody_protects_what_waits_in_line_to_be_removed() {
    let house = test_env();
    let made = living(&house, "30m").await;
    house.script(&[], &[], &[Act::InLine]);
    let started = house.manager.destroy(&of(&made.id)).await.unwrap();
    house.script.until_asked("teardown").await;
    let error = house.other.label(labelled(&made, "protect", "true")).await.unwrap_err();
    error.coded(Code::Conflict);
    assert!(error.message.contains("is being destroyed") && error.hint.is_some(), "{error:?}");
    house.other.label(labelled(&made, "team", "a")).await.unwrap();
    // Cancelled, it is there and can be protected.
    let operation = started.operation.unwrap();
    house.manager.cancel(&operation).await.unwrap();
    house.manager.finish(&operation).await.unwrap();
    let record = house.other.label(labelled(&made, "protect", "true")).await.unwrap();
    assert!(record.state == State::Ready && record.is_protected());
}

#[tokio::test]
async fn a_label_does_not_wait_for_a_host_that_hangs() {
    let house = test_env();
    let made = living(&house, "30m").await;
    house.script.dated.push(Act::Hang);
    let record = house.manager.label(labelled(&made, "team", "a")).await.unwrap();
    assert!(record.manifest_pending && record.labels["team"] == "a");
}

#[tokio::test]
async fn a_label_that_comes_while_it_is_made_is_in_its_manifest_in_the_end() {
    let house = test_env();
    house.script.ready.push(Act::Slow);
    let started = house.manager.create(CreateRequest::default()).await.unwrap();
    house.script.until_asked("wait_ready").await;
    house.other.label(labelled(&started.sandbox, "protect", "true")).await.unwrap();
    let (_, record) = house.manager.finish(&started.operation.unwrap()).await.unwrap();
    let record = record.unwrap();
    assert_eq!(record.state, State::Ready);
    assert!(house.script.manifests.lock().unwrap()[&record.id].is_protected());
}
