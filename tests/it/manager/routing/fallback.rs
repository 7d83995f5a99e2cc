//! The next candidate where one fails: when it is tried, and what is left of the failed one.

use sandboxer::domain::operation::CancelOutcome;
use sandboxer::domain::request::CreateRequest;
use sandboxer::domain::sandbox::State;
use sandboxer::domain::{Code, HostName, Usd};

use super::{burst, routed, tried};
use crate::test_env::script::Act;

#[tokio::test]
async fn a_candidate_that_fails_and_leaves_nothing_is_followed_by_the_next_one() {
    for (provision, ready) in [
        (Act::fails("the disk is full"), Act::Well),
        (Act::Well, Act::Fail(Code::Timeout, "web was not ready in time")),
        (Act::Untouched(Code::HostUnreachable), Act::Well),
    ] {
        let it = routed();
        it.price(720_000);
        it.grant(720_000).await;
        let touched = !matches!(provision, Act::Untouched(_));
        it.house.script(&[provision], &[ready], &[]);
        let (record, error) = it.created(burst()).await;
        assert_eq!((error, &record.state), (None, &State::Ready));
        assert_eq!((record.extension.as_str(), record.host.as_str()), ("ext.saas-stub", "paid"));
        assert_eq!(record.quote_usd, Some(Usd::from_micros(720_000)));
        let found = tried(&record);
        assert_eq!(found, [("ext.compose-ssh", "own", false), ("ext.saas-stub", "paid", true)]);
        let attempt = record.attempts.iter().find(|one| one.extension.is_some()).unwrap();
        assert!(attempt.failure.is_some() && attempt.at.is_some(), "{attempt:?}");
        assert_eq!((record.failure, record.leftovers.len()), (None, 0));
        let route = record.route.unwrap();
        assert_eq!(route.host.as_str(), "paid");
        assert!(route.candidates[0].reason.starts_with("it was tried and failed: "), "{route:?}");
        assert!(route.remarks[0].contains("nothing of it is left"), "{route:?}");
        let (own, paid) = it.made();
        assert_eq!((own.len(), paid.len()), (1 + usize::from(touched), 1), "{own:?} {paid:?}");
        let made = it.paid.configs.get() == [r#"{"startup_s":7}"#];
        assert!(made, "with its own config");
        let mut kinds = it.house.kinds().await;
        kinds.retain(|kind| kind.starts_with("sandbox."));
        assert_eq!(
            kinds,
            ["sandbox.requested", "sandbox.provisioning", "sandbox.provisioning", "sandbox.ready"]
        );
        // Whoever reads it elsewhere sees the same.
        let elsewhere = it.house.other.get(record.id.as_str()).await.unwrap();
        assert_eq!(elsewhere.attempts, record.attempts);
    }
}

#[tokio::test]
async fn each_candidate_is_tried_once_and_the_last_failure_ends_it_with_all_verdicts() {
    let it = routed();
    it.house.script(&[Act::fails("the disk is full")], &[], &[]);
    it.paid.provision.push(Act::fails("no quota"));
    let (record, error) = it.created(burst()).await;
    let error = error.unwrap();
    assert_eq!((&error.code, error.message.as_str()), (&Code::OperationFailed, "no quota"));
    assert_eq!(
        error.causes,
        [
            "ext.compose-ssh: it was tried and failed: the disk is full",
            "ext.saas-stub: it was tried and failed: no quota",
        ]
    );
    assert_eq!(error.details["candidates"].as_array().unwrap().len(), 2);
    assert_eq!((&record.state, record.leftovers.len()), (&State::Failed, 0));
    let found = tried(&record);
    assert_eq!(found, [("ext.compose-ssh", "own", false), ("ext.saas-stub", "paid", false)]);
    let (own, paid) = it.made();
    assert_eq!((own.len(), paid.len()), (2, 2), "{own:?} {paid:?}");
}

#[tokio::test]
async fn where_no_other_candidate_can_the_failure_stands_with_their_verdicts() {
    let it = routed();
    it.price(5_000_000);
    it.house.script(&[Act::fails("the disk is full")], &[], &[]);
    let (record, error) = it.created(burst()).await;
    let error = error.unwrap();
    assert_eq!(error.message, "the disk is full");
    assert!(error.causes[1].starts_with("ext.saas-stub (over-budget): "), "{error:?}");
    assert_eq!((record.extension.as_str(), &record.state), ("ext.compose-ssh", &State::Failed));
    assert_eq!(it.made().1, Vec::<String>::new());
}

#[tokio::test]
async fn where_something_may_be_left_no_other_candidate_is_tried() {
    let it = routed();
    let fails = || Act::fails("the disk is full");
    it.house.script(&[fails()], &[], &[Act::LeaveNetwork]);
    let (record, error) = it.created(burst()).await;
    let error = error.unwrap();
    assert!(
        error.causes.contains(
            &"no other candidate was tried: something of it may be left on own".to_owned()
        ),
        "{error:?}"
    );
    assert_eq!((record.leftovers.len(), record.extension.as_str()), (1, "ext.compose-ssh"));
    assert_eq!(tried(&record), [("ext.compose-ssh", "own", false)]);
    // A host that nobody could look at is no proof either.
    let it = routed();
    it.house.script(&[fails()], &[], &[Act::Fail(Code::HostChanged, "another machine")]);
    let (record, _) = it.created(burst()).await;
    assert_eq!((record.leftovers.len(), it.made().1.len()), (1, 0));
}

#[tokio::test]
async fn what_another_candidate_cannot_mend_is_not_tried_elsewhere() {
    let kept = CreateRequest { keep_failed: true, ..burst() };
    for (request, code) in
        [(kept, Code::OperationFailed), (burst(), Code::InvalidInput), (burst(), Code::Internal)]
    {
        let it = routed();
        let keeps = request.keep_failed;
        it.house.script(&[Act::Fail(code.clone(), "no")], &[], &[]);
        let (record, error) = it.created(request).await;
        assert_eq!((error.unwrap().code, record.kept_failed), (code, keeps));
        assert_eq!(it.made().1, Vec::<String>::new());
    }
    // On the host that was named there is nobody else.
    let it = routed();
    it.paid.place.set(Some(HostName::new("cloud")));
    it.house.script(&[Act::fails("no")], &[], &[]);
    let (record, error) = it.created(CreateRequest { host: Some("own".into()), ..burst() }).await;
    assert!(error.unwrap().causes[1].contains("at cloud, not on own"));
    assert_eq!((record.host.as_str(), it.made().1.len()), ("own", 0));
}

#[tokio::test]
async fn a_create_that_is_cancelled_tries_no_other_candidate() {
    let it = routed();
    it.house.script(&[Act::Hang], &[], &[]);
    let started = it.manager.create(burst()).await.unwrap();
    let operation = started.operation.unwrap();
    while it.made().0.is_empty() {
        tokio::task::yield_now().await;
    }
    it.manager.cancel(&operation).await.unwrap();
    let (ended, record) = it.manager.finish(&operation).await.unwrap();
    assert_eq!(ended.cancel_outcome, Some(CancelOutcome::Undone));
    assert_eq!((&record.unwrap().state, it.made().1.len()), (&State::Failed, 0));
    // While the next one is looked for, too.
    let it = routed();
    it.house.script(&[Act::fails("the disk is full")], &[], &[Act::Slow]);
    let started = it.manager.create(burst()).await.unwrap();
    let operation = started.operation.unwrap();
    while it.made().0.len() < 2 {
        tokio::task::yield_now().await;
    }
    it.house.other.cancel(&operation).await.unwrap();
    let (ended, record) = it.manager.finish(&operation).await.unwrap();
    assert_eq!(ended.cancel_outcome, Some(CancelOutcome::Undone), "{:?}", ended.error);
    let record = record.unwrap();
    assert_eq!((&record.state, it.made().1.len()), (&State::Failed, 0));
    assert!(record.message.unwrap().contains("nothing of it is left on own"));
}
