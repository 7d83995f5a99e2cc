//! Rollouts: some sandboxes first, then the rest; nobody touched that is not to be, and nobody called failed who was not
//! begun.

use sandboxer::domain::request::{LabelRequest, RolloutRequest};
use sandboxer::domain::{Code, OperationState};

use crate::support::json_assertions::JsonAssertions as _;
use crate::test_env::script::{Act, Script};
use crate::test_env::{TestEnv, of, test_env, with_snapshot};

/// Five sandboxes on one snapshot with one patch that none has yet.
async fn five(house: &TestEnv) -> (String, Vec<String>) {
    let base = house.base("my-env").await;
    let mut ids = Vec::new();
    for _ in 0..5 {
        ids.push(house.restored(&base).await.id.to_string());
    }
    house.add(&base, "fix").await;
    (base, ids)
}

fn rollout(snapshot: &str, canary: Option<u32>) -> RolloutRequest {
    RolloutRequest { snapshot: snapshot.to_owned(), canary, ..RolloutRequest::default() }
}

#[tokio::test]
async fn a_rollout_does_the_canary_first_and_stops_at_its_failure() {
    let house = test_env();
    let (base, ids) = five(&house).await;
    house.scripts(&[Script::Exits(9)]);
    let items = house.manager.roll_out(&rollout(&base, Some(1))).await.unwrap();
    let order: Vec<&str> = items.iter().map(|item| item.id.as_str()).collect();
    assert_eq!(order, ids, "oldest first");
    assert!(items[0].canary);
    assert!(!items[0].ok);
    assert!(items[0].error.as_ref().unwrap().message.contains("exit status 9"));
    assert!(
        items[1..].iter().all(|item| !item.canary && !item.ok && item.error.is_none()),
        "not begun is not failed"
    );
    let why = format!("not begun: sandbox {} failed", ids[0]);
    assert!(items[1..].iter().all(|item| item.reason.as_ref() == Some(&why)), "{items:#?}");
    assert!(ids[1..].iter().all(|id| house.ran(id).is_empty()), "no other got it");
    house.manager.roll_out(&rollout(&base, Some(0))).await.unwrap_err().coded(Code::InvalidInput);
}

#[tokio::test]
async fn a_rollout_reaches_the_rest_and_passes_over_who_is_not_to_be_touched() {
    let house = test_env();
    let (base, ids) = five(&house).await;
    let set = [("protect".to_owned(), "true".to_owned())].into();
    house.manager.label(LabelRequest { set, ..of(&ids[1]) }).await.unwrap();
    house.sleep(&ids[2]).await.1.unwrap();
    house.scripts(&[Script::Hangs]);
    let working = house.manager.apply_patches(&of(&ids[3])).await;
    let working = working.unwrap().operation.unwrap();
    house.script.until_asked("patch").await;
    let items = house.manager.roll_out(&rollout(&base, Some(1))).await.unwrap();
    let told: Vec<_> =
        items.iter().map(|item| (item.ok, item.canary, item.applied.clone())).collect();
    let passed = (false, false, vec![]);
    let asleep = (true, false, vec![]);
    let expected = [(true, true, vec![1]), passed.clone(), asleep, passed, (true, false, vec![1])];
    assert_eq!(told, expected, "{items:#?}");
    let why = |at: usize| items[at].error.as_ref().unwrap().message.clone();
    let who = format!("is busy: patch by process {} on here since 20", std::process::id());
    assert!(why(1).contains("protect=true") && why(3).contains(&who), "{items:#?}");
    assert_eq!(items[2].reason.as_deref(), Some("it sleeps, and gets them on its next wake"));
    assert_eq!(items[2].error, None);
    assert_eq!(
        (house.ran(&ids[2]), house.wake(&ids[2]).await.1, house.ran(&ids[2])),
        (vec![], Ok(()), vec![1])
    );
    house.manager.cancel(&working).await.unwrap();
    house.manager.finish(&working).await.unwrap();
    let again = house.manager.roll_out(&rollout(&base, None)).await.unwrap();
    assert!(again[0].ok, "once is enough");
    assert_eq!(again[0].applied.len(), 0, "once is enough");
    assert_eq!(house.ran(&ids[0]).len(), 1, "once is enough");
}

#[tokio::test]
async fn a_rollout_touches_only_what_was_seen() {
    let house = test_env();
    let (base, ids) = five(&house).await;
    let seen = house.manager.snapshot_view(&base).await.unwrap();
    house.sleep(&ids[0]).await.1.unwrap();
    let ready =
        seen.sandboxes.iter().map(|sandbox| sandbox.id.clone()).filter(|id| id.as_str() != ids[4]);
    let request = RolloutRequest {
        revision: Some(seen.record.revision),
        sandboxes: Some(ready.collect()),
        ..rollout(&base, Some(1))
    };
    let items = house.manager.roll_out(&request).await.unwrap();
    let told: Vec<_> =
        items.iter().map(|item| (item.ok, item.applied.len(), item.canary)).collect();
    assert_eq!(
        told,
        [(true, 0, false), (true, 1, true), (true, 1, false), (true, 1, false), (false, 0, false)]
    );
    assert_eq!(
        items[4].reason.as_deref(),
        Some("not begun: it was not ready when that was looked at")
    );
    assert_eq!((&items[4].error, house.ran(&ids[4]).len()), (&None, 0));
    // Another patch than those that were seen.
    house.add(&base, "more").await;
    let fault = house.manager.roll_out(&request).await.unwrap_err();
    fault.coded(Code::Conflict).says("changed since it was looked at");
    assert!(ids.iter().all(|id| house.ran(id).len() <= 1), "nobody got it");
}

#[tokio::test]
async fn one_that_is_not_there_is_no_failure_of_a_rollout() {
    let house = test_env();
    let (base, ids) = five(&house).await;
    house.script(&[], &[Act::Fail(Code::Timeout, "not ready")], &[]);
    let missing = house.restore(&base).await.0;
    let items = house.manager.roll_out(&rollout(&base, None)).await.unwrap();
    assert_eq!(items.len(), ids.len() + 1);
    let failed = items.iter().find(|item| item.id == missing.id).unwrap();
    assert_eq!((failed.ok, &failed.error), (true, &None), "{failed:#?}");
    assert_eq!(failed.reason.as_deref(), Some("it is failed, and gets them if it is made again"));
    assert!(items.iter().all(|item| item.ok));
}

#[tokio::test]
async fn a_rollout_that_is_cancelled_calls_nobody_failed_who_was_not_begun() {
    let house = test_env();
    let (base, ids) = five(&house).await;
    house.scripts(&[Script::Hangs]);
    let request = rollout(&base, Some(1));
    let cancel = async {
        house.script.until_asked("patch").await;
        let operations = house.manager.operations().await.unwrap();
        let running = operations.iter().find(|one| one.state == OperationState::Running).unwrap();
        house.manager.cancel(&running.id).await.unwrap();
    };
    let (items, ()) = tokio::join!(house.manager.roll_out(&request), cancel);
    let items = items.unwrap();
    let error = items[0].error.as_ref().unwrap();
    error.coded(Code::Cancelled);
    let not_begun = Some("not begun: the rollout was cancelled");
    assert!(
        items[1..].iter().all(|item| item.error.is_none() && item.reason.as_deref() == not_begun),
        "{items:#?}"
    );
    // A script that is cut off has done what it has done.
    let record = house.manager.get(&ids[0]).await.unwrap();
    let told = record.patch_error.unwrap();
    assert!(told.contains("(it was cut off)") && !told.contains("rolled back"), "{told}");
    assert!(!error.message.contains("rolled back"), "{}", error.message);
}

#[tokio::test]
async fn one_that_sleeps_over_a_failed_patch_is_no_success_of_a_rollout() {
    let (house, base) = with_snapshot().await;
    house.add(&base, "one").await;
    house.scripts(&[Script::Exits(3)]);
    let id = house.restored(&base).await.id.to_string();
    house.sleep(&id).await.1.unwrap();
    let items = house.manager.roll_out(&rollout(&base, None)).await.unwrap();
    let error = items[0].error.as_ref().unwrap();
    assert_eq!(
        (items[0].ok, error.message.contains("sleeps, and its patch 1 is failed")),
        (false, true),
        "{}",
        error.message
    );
}
