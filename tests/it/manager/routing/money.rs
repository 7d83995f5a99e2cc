//! Credits over the attempts of a create: each is held and charged for itself, whenever its process dies.

use std::sync::Arc;

use sandboxer::domain::sandbox::{SandboxRecord, State};
use sandboxer::domain::{Code, Error};

use super::super::recover::die;
use super::{Routed, burst, routed, routed_by, spec, tried, usd};
use crate::support::json_assertions::JsonAssertions as _;
use crate::test_env::manager_on;
use crate::test_env::script::{Act, Scripted};

/// Profile with the paid backend first.
pub(super) const PAID_FIRST: &str = "
config: {workspace_only: true}
routing:
  candidates:
    - {extension: ext.saas-stub, hosts: [paid]}
    - {extension: ext.compose-ssh, hosts: [own]}
";

/// A house with the paid backend first, whose sandboxes cost, and a million micro-dollars.
async fn paid_first() -> Routed {
    let it = routed_by(PAID_FIRST, spec("own"));
    it.price(720_000);
    it.grant(1_000_000).await;
    it.paid.cost.set(Some(30_000));
    it.paid.ready.push(Act::Fail(Code::Timeout, "not ready in time"));
    it
}

impl Routed {
    /// Balance and what is held, in micro-dollars.
    pub(super) async fn sums(&self) -> (i64, i64) {
        let credits = self.house.other.credits().await.unwrap();
        (credits.balance_usd.micros(), credits.held_usd.micros())
    }

    /// Runs a create in another process, as it were, and kills that process once this backend was asked for this.
    fn killed(&self, script: &Arc<Scripted>, until: &'static str) {
        let (folder, own) = (self.house.folder.path().to_owned(), Arc::clone(&self.house.script));
        let manager = move || manager_on(&folder, &own, "local", vec![spec("own"), spec("paid")]);
        die(script, until, async move { manager().create(burst()).await.unwrap() });
    }

    /// Recovers what a killed create left; the record then.
    async fn recovered(&self) -> SandboxRecord {
        let items = self.manager.recover().await.unwrap();
        assert!(items.len() == 1 && items[0].ok, "{items:?}");
        assert_eq!(self.manager.recover().await.unwrap(), []);
        self.manager.get(&items[0].id).await.unwrap()
    }
}

#[tokio::test]
async fn a_balance_below_the_quote_is_over_budget_and_the_error_is_for_want_of_credits() {
    let it = routed();
    it.own_answers(Err(Error::new(Code::HostUnreachable, "own does not answer")));
    it.price(720_000);
    it.grant(719_999).await;
    let plan = it.manager.plan_create(&burst()).await.unwrap();
    let error = it.manager.create(burst()).await.unwrap_err();
    error.coded(Code::InsufficientCredits);
    assert!(error.causes[1].starts_with("ext.saas-stub (over-budget): "), "{error:?}");
    assert_eq!(plan.error.unwrap().causes, error.causes);
    it.grant(1).await;
    assert!(it.manager.plan_create(&burst()).await.unwrap().ok, "the balance exactly");
}

#[tokio::test]
async fn each_attempt_is_held_and_charged_for_itself() {
    let it = paid_first().await;
    let (record, error) = it.created(burst()).await;
    assert_eq!((error, record.extension.as_str()), (None, "ext.compose-ssh"));
    let attempt = record.attempts.iter().find(|one| one.extension.is_some()).unwrap();
    assert_eq!((attempt.cost_usd, record.cost_usd), (Some(usd(30_000)), Some(usd(30_000))));
    assert_eq!((record.quote_usd, record.hold_usd), (None, None), "the next one costs nothing");
    assert_eq!(it.sums().await, (970_000, 0));
    // The other way round: what costs nothing fails first, and the hold is the second one's.
    let it = routed();
    it.price(720_000);
    it.grant(1_000_000).await;
    it.house.script(&[Act::fails("the disk is full")], &[], &[]);
    let (record, _) = it.created(burst()).await;
    assert_eq!((record.hold_usd, it.sums().await), (Some(usd(720_000)), (280_000, 720_000)));
    // An attempt that nothing follows is charged, too.
    let it = paid_first().await;
    it.own_answers(Err(Error::new(Code::HostUnreachable, "own does not answer")));
    let (record, error) = it.created(burst()).await;
    assert_eq!((error.unwrap().code, &record.state), (Code::Timeout, &State::Failed));
    assert_eq!((record.cost_usd, it.sums().await), (Some(usd(30_000)), (970_000, 0)));
}

#[tokio::test]
async fn a_create_that_is_killed_between_attempts_leaks_and_costs_nothing_twice() {
    // While the first one is torn down.
    let it = paid_first().await;
    it.paid.teardown.push(Act::Hang);
    it.killed(&it.paid, "teardown");
    let record = it.recovered().await;
    assert_eq!((&record.state, record.cost_usd), (&State::Destroyed, Some(usd(30_000))));
    assert_eq!((it.sums().await, it.made().0.len()), ((970_000, 0), 0));
    // While the second one is made.
    let it = paid_first().await;
    it.house.script(&[Act::Hang], &[], &[]);
    it.killed(&it.house.script, "provision");
    let record = it.recovered().await;
    assert_eq!((&record.state, record.extension.as_str()), (&State::Destroyed, "ext.compose-ssh"));
    assert_eq!((record.cost_usd, it.sums().await), (Some(usd(30_000)), (970_000, 0)));
    assert_eq!(tried(&record), [("ext.saas-stub", "paid", false)]);
    let (own, paid) = it.made();
    assert_eq!((own.len(), paid.len()), (2, 2), "{own:?} {paid:?}");
    // While the second one, which costs something, is made.
    let it = routed();
    it.price(720_000);
    it.grant(1_000_000).await;
    it.house.script(&[Act::fails("the disk is full")], &[], &[]);
    it.paid.provision.push(Act::Hang);
    it.killed(&it.paid, "provision");
    it.paid.cost.set(Some(10_000));
    let record = it.recovered().await;
    assert_eq!((&record.state, record.host.as_str()), (&State::Destroyed, "paid"));
    let (balance, held) = it.sums().await;
    let charged = record.cost_usd.unwrap_or_default().micros();
    assert_eq!((held, balance), (0, 1_000_000 - charged));
}
