//! Which candidate of a profile's routing takes a create, and why not the others.

mod damage;
mod fallback;
mod money;
mod races;

use std::fs;
use std::sync::Arc;

use sandboxer::domain::credit::GrantRequest;
use sandboxer::domain::extension::{HostAnswer, MeterQuote};
use sandboxer::domain::headroom::{Headroom, NetworkRoom};
use sandboxer::domain::host::{HostSpec, Limits};
use sandboxer::domain::request::{CreateRequest, ListQuery};
use sandboxer::domain::route::{CandidateVerdict, RouteCondition};
use sandboxer::domain::sandbox::SandboxRecord;
use sandboxer::domain::{Code, Error, HostName, Usd};
use sandboxer::manager::SandboxManager;

use crate::support::json_assertions::JsonAssertions as _;
use crate::test_env::script::{Act, Scripted};
use crate::test_env::{TestEnv, finished, from_snapshot, manager_on, of, test_env};

/// Profile with a backend on a host of ours first, and a paid one behind it.
const BURST: &str = "
config: {workspace_only: true}
routing:
  candidates:
    - {extension: ext.compose-ssh, hosts: [own]}
    - {extension: ext.saas-stub, hosts: [paid], when: [no-host], config: {startup_s: 7}}
  conditions: {no-host: [host-unreachable, saturated, unsupported]}
  max_cost_usd: 2
";

/// A house with two backends, each on a host of its own, and a profile that names both.
struct Routed {
    house: TestEnv,
    paid: Arc<Scripted>,
    manager: SandboxManager,
}

fn spec(name: &str) -> HostSpec {
    let limits = Limits { disk_used_pct: 90.0, mem_used_pct: 80.0, load_per_core: 2.0 };
    HostSpec { limits, ..HostSpec::named(name) }
}

fn routed_by(routing: &str, own: HostSpec) -> Routed {
    let house = test_env();
    let paid = Arc::new(Scripted::default());
    house.script.paid.set(Some(Arc::clone(&paid)));
    let text = fs::read_to_string("profiles/sandbox-canary.yaml").unwrap();
    let kept = text.lines().filter(|line| !line.starts_with("config:") && !line.starts_with("  "));
    let text = kept.collect::<Vec<_>>().join("\n");
    let text = text.replace("profile.sandbox-canary", "profile.burst") + routing;
    let profiles = house.folder.path().join("profiles");
    fs::create_dir_all(&profiles).unwrap();
    fs::write(profiles.join("burst.yaml"), text).unwrap();
    let hosts = vec![own, spec("paid"), spec("other")];
    let manager = manager_on(house.folder.path(), &house.script, "local", hosts);
    Routed { house, paid, manager }
}

fn routed() -> Routed {
    routed_by(BURST, spec("own"))
}

fn burst() -> CreateRequest {
    CreateRequest { profile: Some("burst".into()), ..CreateRequest::default() }
}

fn short(verdicts: &[CandidateVerdict]) -> Vec<(&str, bool, Option<RouteCondition>)> {
    verdicts.iter().map(|one| (one.extension.as_str(), one.ok, one.condition.clone())).collect()
}

impl Routed {
    /// Answer of our own host from now on.
    fn own_answers(&self, answer: Result<HostAnswer, Error>) {
        self.house.script.hosts.lock().unwrap().insert("own".into(), answer);
    }

    fn price(&self, micros: i64) {
        let usd = Usd::from_micros(micros);
        self.paid.quote.set(Some(MeterQuote { usd, basis: "as scripted".into() }));
    }

    fn made(&self) -> (Vec<String>, Vec<String>) {
        let made = |script: &Scripted| {
            let mut asked = script.asked();
            asked.retain(|what| what.starts_with("provision") || what.starts_with("teardown"));
            asked
        };
        (made(&self.house.script), made(&self.paid))
    }
}

fn overloaded() -> HostAnswer {
    let headroom = Headroom {
        load_per_core: Some(9.0),
        mem_used_pct: Some(1.0),
        disk_used_pct: Some(1.0),
        networks: NetworkRoom::NotNeeded,
    };
    HostAnswer { headroom: Some(headroom), ..HostAnswer::default() }
}

fn usd(micros: i64) -> Usd {
    Usd::from_micros(micros)
}

impl Routed {
    async fn grant(&self, micros: i64) {
        let request = GrantRequest { usd: usd(micros), note: None };
        self.manager.grant_credits(request).await.unwrap();
    }

    async fn created(&self, request: CreateRequest) -> (SandboxRecord, Option<Error>) {
        let (operation, record) = finished(&self.manager, self.manager.create(request).await).await;
        (record, operation.error.map(|error| *error))
    }
}

fn tried(record: &SandboxRecord) -> Vec<(&str, &str, bool)> {
    let tried = record
        .attempts
        .iter()
        .filter_map(|one| Some((one.extension.as_ref()?.as_str(), one.host.as_str(), one.ok)));
    tried.collect()
}

#[tokio::test]
async fn the_first_candidate_that_can_takes_it_and_those_behind_it_are_not_asked() {
    let it = routed();
    let (record, _) = it.created(burst()).await;
    assert_eq!((record.extension.as_str(), record.host.as_str()), ("ext.compose-ssh", "own"));
    let candidates = record.route.unwrap().candidates;
    let found = short(&candidates);
    assert_eq!(found, [("ext.compose-ssh", true, None), ("ext.saas-stub", false, None)]);
    assert_eq!(candidates[1].reason, "not asked: ext.compose-ssh takes it");
    assert_eq!(it.paid.asked(), Vec::<String>::new());
}

#[tokio::test]
async fn a_candidate_that_cannot_is_passed_with_its_condition_and_reason() {
    let full = || HostSpec { max_sandboxes: Some(0), ..spec("own") };
    let cases: [(HostSpec, Result<HostAnswer, Error>, RouteCondition, &str); 6] = [
        (
            spec("own"),
            Err(Error::new(Code::HostUnreachable, "own does not answer")),
            RouteCondition::HostUnreachable,
            "own does not answer",
        ),
        (
            spec("own"),
            Err(Error::new(Code::HostChanged, "own is another machine")),
            RouteCondition::HostUnreachable,
            "own is another machine",
        ),
        (
            spec("own"),
            Err(Error::new(Code::OperationFailed, "its answer cannot be read")),
            RouteCondition::HostUnreachable,
            "its answer cannot be read",
        ),
        (full(), Ok(HostAnswer::default()), RouteCondition::Saturated, "own is full"),
        (spec("own"), Ok(overloaded()), RouteCondition::Saturated, "load 9.00 per core"),
        (
            spec("own"),
            Err(Error::new(Code::MissingDependency, "own has no compose runtime")),
            RouteCondition::Unsupported,
            "own has no compose runtime",
        ),
    ];
    for (own, answer, condition, words) in cases {
        let it = routed_by(BURST, own);
        it.own_answers(answer);
        let plan = it.manager.plan_create(&burst()).await.unwrap();
        assert!(plan.ok, "{:?}", plan.error);
        assert_eq!(plan.extension, "ext.saas-stub");
        let (record, _) = it.created(burst()).await;
        assert_eq!((record.extension.as_str(), record.host.as_str()), ("ext.saas-stub", "paid"));
        let route = record.route.unwrap();
        assert_eq!(route.candidates, plan.candidates);
        assert_eq!(
            short(&route.candidates),
            [("ext.compose-ssh", false, Some(condition)), ("ext.saas-stub", true, None)]
        );
        assert!(route.candidates[0].reason.contains(words), "{:?}", route.candidates[0]);
        assert_eq!(it.house.script.asked(), Vec::<String>::new(), "nothing was made there");
    }
}

#[tokio::test]
async fn a_backend_that_this_version_lacks_is_passed_as_unsupported() {
    let it = routed();
    it.house.script.paid.set(None);
    let manager = manager_on(it.house.folder.path(), &it.house.script, "local", vec![spec("own")]);
    it.own_answers(Err(Error::new(Code::HostUnreachable, "own does not answer")));
    let error = manager.create(burst()).await.unwrap_err();
    assert_eq!(error.code, Code::HostUnreachable, "that may be mended, and this cannot");
    assert_eq!(
        error.causes[1],
        "ext.saas-stub (unsupported): this version of sandboxer has no ext.saas-stub"
    );
}

#[tokio::test]
async fn where_every_candidate_refuses_one_error_has_each_ones_verdict() {
    let it = routed();
    it.own_answers(Err(Error::new(Code::HostUnreachable, "own does not answer")));
    it.price(2_000_001);
    let plan = it.manager.plan_create(&burst()).await.unwrap();
    let error = it.manager.create(burst()).await.unwrap_err();
    let planned = plan.error.unwrap();
    assert_eq!((planned.code, planned.causes), (error.code.clone(), error.causes.clone()));
    assert_eq!((plan.ok, plan.route.is_none()), (false, true));
    let usd = Some(Usd::from_micros(2_000_001));
    assert_eq!((plan.quote_usd, plan.missing_usd), (usd, usd), "of what would be paid");
    assert_eq!(error.message, "no candidate of profile.burst can take the sandbox");
    assert_eq!(
        error.causes,
        [
            "ext.compose-ssh (host-unreachable): own does not answer",
            "ext.saas-stub (over-budget): ext.saas-stub would cost $2.000001, and profile.burst allows $2.00",
        ]
    );
    assert_eq!(error.details["candidates"].as_array().unwrap().len(), 2);
    assert_eq!(error.details["candidates"][1]["quote_usd"], 2.000_001);
    assert_eq!(error.code, Code::Conflict, "a shorter life is mended more easily than a host");
    error.hints("--ttl");
    assert_eq!(it.manager.list(&ListQuery::default()).await.unwrap().len(), 0);
    // To the micro-dollar.
    it.price(2_000_000);
    it.grant(2_000_000).await;
    assert!(it.manager.plan_create(&burst()).await.unwrap().ok);
}

#[tokio::test]
async fn a_candidate_is_not_considered_where_nothing_before_it_is_as_it_names() {
    let routing = BURST.replace("when: [no-host]", "when: [saturated]");
    let it = routed_by(&routing, spec("own"));
    it.own_answers(Err(Error::new(Code::HostUnreachable, "own does not answer")));
    let error = it.manager.create(burst()).await.unwrap_err();
    error.coded(Code::HostUnreachable);
    assert_eq!(
        error.causes[1],
        "ext.saas-stub: not considered: only where one before it fails or is saturated"
    );
    assert_eq!(it.paid.examined.get(), Vec::<String>::new());
}

#[tokio::test]
async fn what_is_asked_for_wrongly_is_refused_and_nobody_else_is_asked() {
    let it = routed();
    it.house.script.preview.extend([Act::Refuse, Act::Refuse]);
    it.manager.create(burst()).await.unwrap_err().coded(Code::InvalidInput);
    let plan = it.manager.plan_create(&burst()).await.unwrap();
    plan.error.unwrap().coded(Code::InvalidInput);
    assert_eq!(plan.candidates[1].reason, "not asked: the request is refused");
    assert_eq!(it.paid.examined.get(), Vec::<String>::new());
}

#[tokio::test]
async fn a_host_that_is_named_pins_the_backends_that_make_sandboxes_there() {
    let it = routed();
    it.paid.place.set(Some(HostName::new("cloud")));
    it.own_answers(Err(Error::new(Code::HostUnreachable, "own does not answer")));
    let on = |host: &str| CreateRequest { host: Some(host.into()), ..burst() };
    let error = it.manager.create(on("own")).await.unwrap_err();
    error.coded(Code::HostUnreachable);
    assert!(error.causes[1].contains("makes its sandboxes at cloud, not on own"), "{error:?}");
    let plan = it.manager.plan_create(&on("other")).await.unwrap();
    assert_eq!((plan.ok, plan.extension.as_str()), (true, "ext.compose-ssh"));
    assert_eq!(plan.route.unwrap().host.as_str(), "other");
    // The other way round: our own extension has no business there.
    it.house.script.examined.lock().unwrap().clear();
    let plan = it.manager.plan_create(&on("cloud")).await.unwrap();
    assert!(plan.candidates[0].reason.contains("the place of another backend"), "{plan:?}");
    assert_eq!((plan.ok, plan.extension.as_str()), (true, "ext.saas-stub"), "{plan:?}");
    assert_eq!(it.house.script.examined.get(), Vec::<String>::new());
}

#[tokio::test]
async fn a_price_above_the_limit_is_refused_without_candidates_too() {
    let it = routed_by("\nrouting: {max_cost_usd: 0.5}\n", spec("own"));
    let usd = Usd::from_micros(500_001);
    it.house.script.quote.set(Some(MeterQuote { usd, basis: String::new() }));
    let error = it.manager.create(burst()).await.unwrap_err();
    assert_eq!(
        (error.code, error.message.as_str()),
        (Code::Conflict, "ext.compose-ssh would cost $0.500001, and profile.burst allows $0.50")
    );
    let plan = it.manager.plan_create(&burst()).await.unwrap();
    assert_eq!((plan.ok, plan.candidates.len()), (false, 0));
}

#[tokio::test]
async fn whatever_is_done_with_it_later_goes_to_the_candidate_that_made_it_with_its_config() {
    let it = routed();
    it.own_answers(Err(Error::new(Code::HostUnreachable, "own does not answer")));
    let (record, _) = it.created(burst()).await;
    // Our own host is back, and all the same it stays where it is.
    it.own_answers(Ok(HostAnswer::default()));
    finished(&it.manager, it.manager.recreate(&of(&record.id)).await).await;
    let snapshot = it.manager.snapshot(&of(&record.id)).await.unwrap();
    it.manager.finish(&snapshot.operation.unwrap()).await.unwrap();
    let restore = from_snapshot(&snapshot.snapshot.id);
    let (ended, restored) = finished(&it.manager, it.manager.restore(&restore).await).await;
    assert_eq!(ended.error, None);
    assert_eq!(restored.extension.as_str(), "ext.saas-stub");
    assert_eq!(restored.profile, record.profile);
    assert_eq!(it.paid.configs.get(), vec![r#"{"startup_s":7}"#; 3]);
    finished(&it.manager, it.manager.destroy(&of(&record.id)).await).await;
    assert_eq!(it.house.script.asked(), Vec::<String>::new(), "ours was asked for nothing");
    assert_eq!(it.made().1.iter().filter(|what| what.starts_with("teardown")).count(), 2);
}
