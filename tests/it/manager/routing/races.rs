//! Several creates at once: who loses the last room or the last credits goes on to the next candidate.

use std::sync::Arc;

use futures_util::future::join_all;
use sandboxer::domain::credit::EntryKind;
use sandboxer::domain::host::HostSpec;
use sandboxer::domain::request::{CreateRequest, ListQuery};
use sandboxer::domain::route::RouteCondition;
use sandboxer::domain::sandbox::{SandboxRecord, State};
use sandboxer::domain::{Code, Error};
use sandboxer::store::CreditStore as _;
use tokio::sync::Barrier;

use super::money::PAID_FIRST;
use super::{Routed, burst, routed, routed_by, short, spec, tried, usd};
use crate::support::json_assertions::JsonAssertions as _;
use crate::test_env::script::Act;

/// Creates that race.
const CREATES: usize = 4;

/// Profile with another host of ours behind the paid backend.
const THREE: &str = "
config: {workspace_only: true}
routing:
  candidates:
    - {extension: ext.compose-ssh, hosts: [own]}
    - {extension: ext.saas-stub, hosts: [paid]}
    - {extension: ext.compose-ssh, hosts: [other]}
";

fn narrow() -> HostSpec {
    HostSpec { max_sandboxes: Some(1), ..spec("own") }
}

impl Routed {
    /// Lets the next creates write their records only when each of them has chosen.
    fn all_choose_first(&self) {
        let barrier = Arc::new(Barrier::new(CREATES));
        for _ in 0..CREATES {
            let barrier = Arc::clone(&barrier);
            let waits = async move {
                barrier.wait().await;
            };
            self.house.script.before_lock.push(Box::pin(waits));
        }
    }

    async fn race(&self) -> Vec<Result<SandboxRecord, Error>> {
        self.all_choose_first();
        let create = async || {
            let started = self.manager.create(burst()).await?;
            let (ended, record) = self.manager.finish(&started.operation.unwrap()).await?;
            assert_eq!(ended.error, None);
            Ok(record.unwrap())
        };
        join_all((0..CREATES).map(|_| create())).await
    }

    /// Two creates whose first candidate fails, and of which nobody can hold credits before both have chosen the next.
    async fn two_that_fall_back(&self) -> [(SandboxRecord, Option<Error>); 2] {
        let fails = || Act::fails("the disk is full");
        self.house.script(&[fails(), fails()], &[], &[]);
        let turn = self.house.stores().credits.lock_holders().await.unwrap();
        let both_chose = async {
            while self.paid.examined.lock().unwrap().len() < 2 {
                tokio::task::yield_now().await;
            }
            drop(turn);
        };
        let (one, other, ()) =
            tokio::join!(self.created(burst()), self.created(burst()), both_chose);
        [one, other]
    }

    async fn ready(&self) -> Vec<SandboxRecord> {
        let all = self.race().await.into_iter().collect::<Result<Vec<_>, _>>().unwrap();
        assert!(all.iter().all(|record| record.state == State::Ready), "{all:?}");
        assert_eq!(self.manager.list(&ListQuery::default()).await.unwrap().len(), CREATES);
        all
    }
}

fn on<'a>(all: &'a [SandboxRecord], host: &str) -> Vec<&'a SandboxRecord> {
    all.iter().filter(|record| record.host.as_str() == host).collect()
}

#[tokio::test]
async fn who_loses_the_last_room_goes_on_to_the_next_candidate() {
    let it = routed_by(super::BURST, narrow());
    let all = Box::pin(it.ready()).await;
    let (own, paid) = (on(&all, "own"), on(&all, "paid"));
    assert_eq!((own.len(), paid.len()), (1, CREATES - 1));
    assert_eq!((it.made().0.len(), it.made().1.len()), (1, CREATES - 1), "each is made once");
    for record in paid {
        assert_eq!((record.extension.as_str(), tried(record)), ("ext.saas-stub", Vec::new()));
        let route = record.route.clone().unwrap();
        let refused = ("ext.compose-ssh", false, Some(RouteCondition::Saturated));
        assert_eq!(short(&route.candidates), [refused, ("ext.saas-stub", true, None)]);
        assert_eq!(route.candidates[0].reason, "host own is full: 1 of 1 sandboxes");
        assert!(!route.candidates[0].verdicts[0].ok, "{route:?}");
        assert_eq!(record.profile, all[0].profile);
    }
    let kinds = it.house.kinds().await;
    let requested = kinds.iter().filter(|kind| *kind == "sandbox.requested").count();
    assert_eq!(requested, CREATES);
}

#[tokio::test]
async fn who_loses_the_last_credits_goes_on_to_the_next_candidate() {
    let it = routed_by(PAID_FIRST, spec("own"));
    it.price(720_000);
    it.grant(1_000_000).await;
    let all = Box::pin(it.ready()).await;
    let (own, paid) = (on(&all, "own"), on(&all, "paid"));
    assert_eq!((own.len(), paid.len()), (CREATES - 1, 1));
    assert_eq!((paid[0].hold_usd, it.sums().await), (Some(usd(720_000)), (280_000, 720_000)));
    for record in own {
        assert_eq!((record.quote_usd, record.hold_usd), (None, None));
        let route = record.route.clone().unwrap();
        let refused = ("ext.saas-stub", false, Some(RouteCondition::OverBudget));
        assert_eq!(short(&route.candidates), [refused, ("ext.compose-ssh", true, None)]);
        assert_eq!(route.candidates[0].quote_usd, Some(usd(720_000)));
    }
}

#[tokio::test]
async fn where_the_next_candidate_cannot_either_one_error_has_each_ones_verdict() {
    let it = routed_by(super::BURST, narrow());
    it.price(720_000);
    it.grant(720_000).await;
    let (made, refused): (Vec<_>, Vec<_>) =
        Box::pin(it.race()).await.into_iter().partition(Result::is_ok);
    assert_eq!((made.len(), refused.len()), (2, 2), "one there, and one for the credits");
    for error in refused.into_iter().filter_map(Result::err) {
        error.coded(Code::InsufficientCredits);
        assert_eq!(
            error.causes[0],
            "ext.compose-ssh (saturated): host own is full: 1 of 1 sandboxes"
        );
        assert!(error.causes[1].starts_with("ext.saas-stub (over-budget): "), "{error:?}");
        assert_eq!(error.causes.len(), 2);
    }
    assert_eq!(it.manager.list(&ListQuery::default()).await.unwrap().len(), 2);
    assert_eq!(it.sums().await, (0, 720_000), "nothing else is held");
}

#[tokio::test]
async fn an_id_a_name_and_a_key_go_along_to_the_next_candidate() {
    let it = routed_by(super::BURST, narrow());
    let manager = it.manager.clone();
    let first = async move { drop(manager.create(burst()).await.unwrap()) };
    it.house.script.before_lock.push(Box::pin(first));
    let request = CreateRequest {
        id: Some("0a1b2c3d".into()),
        name: Some("my-own".into()),
        idempotency_key: Some("k".into()),
        ..burst()
    };
    let (record, error) = it.created(request.clone()).await;
    assert_eq!((error, record.host.as_str()), (None, "paid"));
    assert_eq!((record.id.as_str(), record.name.as_deref()), ("0a1b2c3d", Some("my-own")));
    let again = it.manager.create(request).await.unwrap();
    assert_eq!((again.sandbox.id, again.operation), (record.id, None));
}

#[tokio::test]
async fn a_profile_without_candidates_has_nowhere_to_go() {
    let it = routed_by("\nplacement: {hosts: [own, other]}\n", narrow());
    let mut lost: Vec<Error> =
        Box::pin(it.race()).await.into_iter().filter_map(Result::err).collect();
    let error = lost.pop().unwrap();
    assert_eq!((lost.len(), &error.code), (CREATES - 2, &Code::Conflict));
    assert_eq!(error.message, "host own is full: 1 of 1 sandboxes");
}

#[tokio::test]
async fn a_fallback_that_loses_the_last_credits_goes_on_to_the_one_after_it() {
    let it = routed_by(THREE, spec("own"));
    it.price(720_000);
    it.grant(1_000_000).await;
    let both = Box::pin(it.two_that_fall_back()).await;
    let all = both.map(|(record, error)| {
        assert_eq!(error, None);
        record
    });
    let (paid, behind) = (on(&all, "paid"), on(&all, "other"));
    assert_eq!((paid.len(), behind.len()), (1, 1));
    let found = tried(behind[0]);
    assert_eq!(found, [("ext.compose-ssh", "own", false), ("ext.compose-ssh", "other", true)]);
    let candidates = behind[0].route.clone().unwrap().candidates;
    assert_eq!(candidates[1].condition, Some(RouteCondition::OverBudget));
    assert_eq!((behind[0].quote_usd, behind[0].hold_usd), (None, None));
    assert_eq!(it.sums().await, (280_000, 720_000));
    let held = it.house.stores().credits.history().await.unwrap();
    assert_eq!(held.iter().filter(|one| one.entry.kind == EntryKind::Hold).count(), 1);
}

#[tokio::test]
async fn a_fallback_that_loses_the_last_credits_and_has_no_other_ends_with_its_failure() {
    let it = routed();
    it.price(720_000);
    it.grant(1_000_000).await;
    let both = Box::pin(it.two_that_fall_back()).await;
    let errors: Vec<Error> = both.into_iter().filter_map(|(_, error)| error).collect();
    assert_eq!((errors.len(), errors[0].message.as_str()), (1, "the disk is full"));
    assert!(errors[0].causes[1].starts_with("ext.saas-stub (over-budget): "), "{errors:?}");
    assert_eq!(it.sums().await, (280_000, 720_000));
}
