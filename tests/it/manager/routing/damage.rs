//! A ledger or a price that cannot be read: what costs nothing is made all the same, and a plan says what the create does.

use std::fs;

use sandboxer::domain::host::HostSpec;
use sandboxer::domain::request::Decision;
use sandboxer::domain::route::RouteCondition;
use sandboxer::domain::{Code, Error};

use super::money::PAID_FIRST;
use super::{Routed, burst, routed_by, short, spec};
use crate::support::json_assertions::JsonAssertions as _;
use crate::test_env::script::Act;

/// Profile with our own host first, and the paid backend behind it whatever came of that.
const OWN_FIRST: &str = "
config: {workspace_only: true}
routing:
  candidates:
    - {extension: ext.compose-ssh, hosts: [own]}
    - {extension: ext.saas-stub, hosts: [paid]}
";

/// Damages of a ledger: what stands in the place of a grant's kind.
const DAMAGES: [(&str, Code); 2] = [("", Code::StoreCorrupt), ("gift", Code::StoreForeign)];

async fn damaged(routing: &str, own: HostSpec, kind: &str) -> Routed {
    let it = routed_by(routing, own);
    it.price(720_000);
    it.grant(1_000_000).await;
    let path = it.house.folder.path().join("credits.jsonl");
    let ledger = fs::read_to_string(&path).unwrap();
    let damaged = match kind {
        "" => "garbage\n".to_owned(),
        kind => ledger.replace("\"grant\"", &format!("\"{kind}\"")),
    };
    assert_ne!(damaged, ledger);
    fs::write(path, damaged).unwrap();
    it
}

fn full() -> HostSpec {
    HostSpec { max_sandboxes: Some(0), ..spec("own") }
}

impl Routed {
    /// Plan, and a create that ends the same way.
    async fn planned_and_created(&self) -> (Decision, Result<String, Error>) {
        let plan = self.manager.plan_create(&burst()).await.unwrap();
        let created = match self.manager.create(burst()).await {
            Err(error) => Err(error),
            Ok(started) => {
                let ended = self.manager.finish(&started.operation.unwrap()).await.unwrap();
                Ok(ended.1.unwrap().host.to_string())
            }
        };
        let planned = plan.error.as_ref().map(|error| (&error.code, &error.causes, &error.hint));
        let refused = created.as_ref().err();
        assert_eq!(planned, refused.map(|error| (&error.code, &error.causes, &error.hint)));
        assert_eq!(plan.ok, created.is_ok());
        (plan, created)
    }
}

#[tokio::test]
async fn what_costs_nothing_is_made_whatever_the_ledger_is_like() {
    for (kind, _) in DAMAGES {
        let it = damaged(OWN_FIRST, spec("own"), kind).await;
        let (plan, created) = it.planned_and_created().await;
        assert_eq!((created.unwrap(), plan.extension.as_str()), ("own".into(), "ext.compose-ssh"));
        let over = Some(RouteCondition::OverBudget);
        let taken = ("ext.compose-ssh", true, None);
        let found = short(&plan.candidates);
        assert_eq!(found, [taken.clone(), ("ext.saas-stub", false, over.clone())]);
        assert!(plan.candidates[1].reason.contains("credits.jsonl"), "{plan:?}");
        let it = damaged(PAID_FIRST, spec("own"), kind).await;
        let (plan, created) = it.planned_and_created().await;
        assert_eq!(created.unwrap(), "own");
        assert_eq!(short(&plan.candidates), [("ext.saas-stub", false, over), taken]);
        assert_eq!((plan.quote_usd, plan.missing_usd), (None, None));
        assert_eq!(it.made().1, Vec::<String>::new());
    }
}

#[tokio::test]
async fn where_nothing_else_takes_it_the_error_is_the_ledgers_with_all_verdicts() {
    for (kind, code) in DAMAGES {
        for routing in [OWN_FIRST, PAID_FIRST] {
            let it = damaged(routing, full(), kind).await;
            let told = it.manager.credits().await.unwrap_err();
            let (plan, created) = it.planned_and_created().await;
            let error = created.unwrap_err();
            assert_eq!((&error.code, &error.hint), (&code, &told.hint));
            assert_eq!(error.message, "no candidate of profile.burst can take the sandbox");
            let words = |start: &str| error.causes.iter().any(|cause| cause.starts_with(start));
            assert!(words("ext.compose-ssh (saturated): "), "{error:?}");
            assert!(words("ext.saas-stub (over-budget): "), "{error:?}");
            assert_eq!((plan.missing_usd, plan.candidates.len()), (None, 2));
        }
    }
}

#[tokio::test]
async fn a_price_above_the_limit_is_told_without_the_ledger() {
    let routing = format!("{OWN_FIRST}  max_cost_usd: 0.5\n");
    let it = damaged(&routing, full(), DAMAGES[0].0).await;
    let error = it.planned_and_created().await.1.unwrap_err();
    error.coded(Code::Conflict);
    assert!(error.causes[1].contains("allows $0.50"), "{error:?}");
}

#[tokio::test]
async fn a_quote_that_cannot_be_made_passes_its_candidate_alone() {
    for (routing, own, taken) in [
        (OWN_FIRST, spec("own"), true),
        (PAID_FIRST, spec("own"), true),
        (PAID_FIRST, full(), false),
    ] {
        let it = routed_by(routing, own);
        // Less than nothing is no price.
        it.price(-1);
        let (plan, created) = it.planned_and_created().await;
        let paid = plan.candidates.iter().find(|one| one.extension.as_str() == "ext.saas-stub");
        assert!(paid.unwrap().reason.contains("less than nothing"), "{plan:?}");
        match created {
            Ok(host) => assert_eq!((host.as_str(), taken), ("own", true)),
            Err(error) => assert_eq!((error.code, taken), (Code::OperationFailed, false)),
        }
    }
}

#[tokio::test]
async fn what_is_asked_for_wrongly_comes_before_the_ledger() {
    let it = damaged(PAID_FIRST, spec("own"), DAMAGES[0].0).await;
    it.paid.preview.extend([Act::Refuse, Act::Refuse]);
    it.planned_and_created().await.1.unwrap_err().coded(Code::InvalidInput);
}

#[tokio::test]
async fn a_profile_without_candidates_keeps_the_ledgers_error() {
    let it = damaged("\nplacement: {hosts: [own]}\n", spec("own"), DAMAGES[0].0).await;
    it.house.script.quote.set(it.paid.quote.get());
    let planned = it.manager.plan_create(&burst()).await.unwrap_err();
    let created = it.manager.create(burst()).await.unwrap_err();
    assert_eq!((&created.code, created == planned), (&Code::StoreCorrupt, true));
}
