//! Credits around the verbs: held before anything is touched, charged when it is confirmed that nothing is there, whatever
//! happens in between.

use sandboxer::client::Error;
use sandboxer::domain::credit::{Credits, EntryKind, GrantRequest};
use sandboxer::domain::request::{
    CreateRequest, EventQuery, ExtendRequest, ListQuery, RestoreRequest,
};
use sandboxer::domain::sandbox::SandboxRecord;
use sandboxer::domain::{Code, State, Usd};
use sandboxer::manager::SandboxManager;

use crate::support::json_assertions::JsonAssertions as _;
use crate::test_env::script::Act;
use crate::test_env::{TestEnv, from_snapshot, of, test_env};

mod ends;
#[cfg(feature = "failpoints")]
mod kills;

/// Micro-dollars per second.
const PRICE: i64 = 10;

/// What an hour costs.
const HOUR: i64 = 36_000;

fn usd(micros: i64) -> Usd {
    Usd::from_micros(micros)
}

async fn grant(manager: &SandboxManager, micros: i64) -> Credits {
    manager.grant_credits(GrantRequest { usd: usd(micros), note: None }).await.unwrap()
}

/// A house in which sandboxes cost something, with so many credits.
async fn metered(micros: i64) -> TestEnv {
    let house = test_env();
    house.script.price.set(Some(PRICE));
    if micros > 0 {
        grant(&house.manager, micros).await;
    }
    house
}

fn hour() -> CreateRequest {
    CreateRequest { ttl: Some("1h".into()), ..CreateRequest::default() }
}

/// Request for a sandbox without a deadline.
fn endless(house: &TestEnv) -> CreateRequest {
    let folder = house.folder.path().join("profiles");
    std::fs::create_dir_all(&folder).unwrap();
    let profile = "id: profile.endless\nversion: 1.0.0\nsummary: No end\nextension: ext.compose-ssh\nttl: none\n\
                   ready_timeout: 60s\nconfig: {workspace_only: true}\n";
    std::fs::write(folder.join("endless.yaml"), profile).unwrap();
    CreateRequest { profile: Some("profile.endless".into()), ..CreateRequest::default() }
}

/// Request for a sandbox that is kept when it is removed.
fn kept(house: &TestEnv) -> CreateRequest {
    let folder = house.folder.path().join("profiles");
    std::fs::create_dir_all(&folder).unwrap();
    let profile = "id: profile.kept\nversion: 1.0.0\nsummary: Kept\nextension: ext.compose-ssh\nttl: 1h\nundo: true\n\
                   ready_timeout: 60s\nconfig: {workspace_only: true}\n";
    std::fs::write(folder.join("kept.yaml"), profile).unwrap();
    CreateRequest { profile: Some("profile.kept".into()), ..CreateRequest::default() }
}

impl TestEnv {
    fn costs(&self, micros: i64) {
        self.script.cost.set(Some(micros));
    }

    /// Balance and what is held, in micro-dollars.
    async fn sums(&self) -> (i64, i64) {
        let credits = self.other.credits().await.unwrap();
        (credits.balance_usd.micros(), credits.held_usd.micros())
    }

    /// Entries of the ledger behind the grants.
    async fn entries(&self) -> Vec<(String, i64)> {
        let history = self.other.credit_history().await.unwrap();
        let entries = history.into_iter().filter(|one| one.entry.kind != EntryKind::Grant);
        entries.map(|one| (one.entry.kind.to_string(), one.entry.usd.micros())).collect()
    }

    /// Destroys it.
    async fn gone(&self, record: &SandboxRecord) {
        assert_eq!(self.destroy(&record.id).await.1, Ok(()));
    }

    /// Amounts of the events about credits.
    async fn told_of_credits(&self) -> Vec<String> {
        let events = self.manager.events(&EventQuery::default()).await.unwrap();
        let of_credits = events.iter().filter(|event| event.kind.as_str().starts_with("credits."));
        of_credits.map(|event| format!("{} {}", event.kind, event.data["usd"])).collect()
    }
}

fn entries(list: &[(&str, i64)]) -> Vec<(String, i64)> {
    list.iter().map(|(kind, micros)| ((*kind).to_owned(), *micros)).collect()
}

#[tokio::test]
async fn a_create_holds_its_quote_and_its_destroy_charges_what_it_cost() {
    // The balance exactly.
    let house = metered(HOUR).await;
    let one = house.made(hour()).await;
    assert_eq!(
        (one.quote_usd, one.hold_usd, one.cost_usd),
        (Some(usd(HOUR)), Some(usd(HOUR)), None)
    );
    assert!(!one.manifest_pending, "what it costs does not stand on its host");
    assert_eq!(house.sums().await, (0, HOUR));
    assert_eq!(house.manager.credits().await.unwrap().burn_usd_per_h, usd(HOUR));
    house.script.pass(600);
    let cost = house.record(&one.id).await.cost_usd.unwrap().micros();
    assert!((6_000..6_500).contains(&cost), "{cost}");
    let listed = house.manager.list(&ListQuery::default()).await.unwrap();
    assert!(listed[0].cost_usd.unwrap().micros() >= cost);
    house.costs(6_100);
    let (gone, _) = house.destroy(&one.id).await;
    assert_eq!((gone.cost_usd, gone.hold_usd, &gone.meter), (Some(usd(6_100)), None, &None));
    assert_eq!(house.sums().await, (HOUR - 6_100, 0));
    let found = house.entries().await;
    assert_eq!(found, entries(&[("hold", HOUR), ("charge", 6_100), ("release", HOUR - 6_100)]));
    assert_eq!(
        house.told_of_credits().await,
        [
            "credits.granted 0.036",
            "credits.held 0.036",
            "credits.charged 0.0061",
            "credits.released 0.0299"
        ]
    );
}

#[tokio::test]
async fn what_is_beyond_the_hold_is_a_shortfall_and_the_balance_stays() {
    let house = metered(HOUR + 5).await;
    let one = house.made(hour()).await;
    house.costs(HOUR + 700);
    house.gone(&one).await;
    assert_eq!(house.sums().await, (5, 0));
    let found = house.entries().await;
    assert_eq!(found, entries(&[("hold", HOUR), ("charge", HOUR), ("shortfall", 700)]));
}

#[tokio::test]
async fn a_create_beyond_the_credits_is_refused_before_anything_is_touched() {
    let house = metered(HOUR - 1).await;
    let error = house.manager.create(hour()).await.unwrap_err();
    error.coded(Code::InsufficientCredits);
    assert_eq!(error.details["missing_usd"], 0.000_001);
    error.hints("sandboxer credits grant 0.000001");
    assert_eq!(house.script.asked(), Vec::<String>::new());
    assert_eq!(house.script.examined.lock().unwrap().len(), 0, "no host was asked");
    let found = house.manager.list(&ListQuery { all: true, ..ListQuery::default() }).await.unwrap();
    assert_eq!(found, []);
    assert_eq!(house.sums().await, (HOUR - 1, 0));
    let plan = house.manager.plan_create(&hour()).await.unwrap();
    assert_eq!((plan.ok, plan.quote_usd, plan.missing_usd), (false, Some(usd(HOUR)), Some(usd(1))));
    plan.error.unwrap().coded(Code::InsufficientCredits);
    grant(&house.manager, 1).await;
    let plan = house.manager.plan_create(&hour()).await.unwrap();
    assert_eq!((plan.ok, plan.missing_usd), (true, None));
    assert_eq!(house.sums().await, (HOUR, 0), "a plan holds nothing");
}

#[tokio::test]
async fn a_create_whose_id_is_taken_gives_its_hold_back() {
    let house = metered(10 * HOUR).await;
    house.made(CreateRequest { id: Some("one".into()), ..hour() }).await;
    let again = CreateRequest { id: Some("one".into()), ..hour() };
    house.manager.create(again).await.unwrap_err().coded(Code::Conflict);
    assert_eq!(house.sums().await, (9 * HOUR, HOUR));
}

#[tokio::test]
async fn what_costs_nothing_needs_no_credits_and_leaves_no_ledger() {
    let house = test_env();
    let one = house.made(hour()).await;
    house.gone(&one).await;
    assert_eq!((one.quote_usd, one.hold_usd, one.meter), (None, None, None));
    assert!(!house.folder.path().join("credits.jsonl").exists());
}

#[tokio::test]
async fn a_grant_is_above_zero_and_told_once() {
    let house = test_env();
    for micros in [0, -1] {
        let request = GrantRequest { usd: usd(micros), note: None };
        house.manager.grant_credits(request).await.unwrap_err().coded(Code::InvalidInput);
    }
    let long = GrantRequest { usd: usd(1), note: Some("x".repeat(201)) };
    house.manager.grant_credits(long).await.unwrap_err().coded(Code::InvalidInput);
    let note = Some("invoice 7".to_owned());
    let sums = house.manager.grant_credits(GrantRequest { usd: usd(5000), note }).await.unwrap();
    assert_eq!((sums.balance_usd, sums.held_usd, sums.burn_usd_per_h), (usd(5000), usd(0), usd(0)));
    house.other.recover().await.unwrap();
    house.manager.settle().await.unwrap();
    assert_eq!(house.told_of_credits().await, ["credits.granted 0.005"]);
}

#[tokio::test]
async fn a_create_that_failed_pays_for_what_was_there_and_for_nothing_where_nothing_was() {
    let house = metered(10 * HOUR).await;
    house.costs(70);
    house.script(&[Act::Untouched(Code::MissingDependency)], &[], &[]);
    let (failed, _) = house.create(hour()).await;
    assert_eq!(
        (failed.state, failed.hold_usd, failed.cost_usd),
        (State::Failed, None, Some(usd(0)))
    );
    house.script(&[Act::fails("no image")], &[], &[]);
    let (failed, _) = house.create(hour()).await;
    assert_eq!((failed.hold_usd, failed.cost_usd), (None, Some(usd(70))));
    assert_eq!(house.sums().await, (10 * HOUR - 70, 0));
    // Its removal finds nothing, and charges nothing again.
    house.gone(&failed).await;
    assert_eq!(house.sums().await, (10 * HOUR - 70, 0));
}

#[tokio::test]
async fn what_a_failed_create_left_costs_until_it_is_removed() {
    let house = metered(HOUR).await;
    house.costs(70);
    house.script(&[Act::fails("no image")], &[], &[Act::LeaveNetwork]);
    let (failed, _) = house.create(hour()).await;
    assert_eq!((failed.hold_usd, house.sums().await), (Some(usd(HOUR)), (0, HOUR)));
    house.costs(90);
    house.recover().await;
    assert_eq!(house.sums().await, (HOUR - 90, 0));
    assert_eq!(house.record(&failed.id).await.cost_usd, Some(usd(90)));
}

#[tokio::test]
async fn extend_holds_more_first_or_is_refused() {
    let house = metered(HOUR + HOUR / 2).await;
    let one = house.made(hour()).await;
    let by = |by_s| ExtendRequest { by_s: Some(by_s), ..of(&one.id) };
    let before = house.record(&one.id).await;
    house.manager.extend(&by(3600)).await.unwrap_err().coded(Code::InsufficientCredits);
    let after = house.record(&one.id).await;
    assert_eq!((after.expires_at, after.revision), (before.expires_at, before.revision));
    assert_eq!(house.sums().await, (HOUR / 2, HOUR));
    let moved = house.manager.extend(&by(1200)).await.unwrap().sandbox;
    let held = moved.hold_usd.unwrap().micros();
    assert!((HOUR + 12_000..HOUR + 12_200).contains(&held), "{held}");
    assert_eq!(house.sums().await, (HOUR + HOUR / 2 - held, held));
    // An earlier end needs nothing, and gives nothing back before the end.
    let shorter = ExtendRequest {
        to: Some(moved.expires_at.unwrap().minus_seconds(1800)),
        allow_shorten: true,
        ..of(&one.id)
    };
    assert_eq!(house.manager.extend(&shorter).await.unwrap().sandbox.hold_usd, moved.hold_usd);
    house.costs(40_000);
    house.gone(&one).await;
    assert_eq!(house.sums().await, (HOUR + HOUR / 2 - 40_000, 0));
}

#[tokio::test]
async fn recreate_holds_for_its_next_run_first_and_charges_the_last_one() {
    let house = metered(HOUR).await;
    let one = house.made(hour()).await;
    let request = of(&one.id);
    let asked = house.script.asked().len();
    let fault = house.manager.recreate(&request).await.unwrap_err();
    fault.coded(Code::InsufficientCredits).hints("nothing of the sandbox was touched");
    assert_eq!(house.script.asked().len(), asked);
    assert_eq!(house.record(&one.id).await.operation, None);
    grant(&house.manager, HOUR).await;
    house.costs(500);
    let (_, record) = house.finished(house.manager.recreate(&request).await).await;
    let again = record;
    assert_eq!(
        (again.state, again.hold_usd, again.cost_usd),
        (State::Ready, Some(usd(HOUR)), Some(usd(500)))
    );
    assert_eq!(house.sums().await, (HOUR - 500, HOUR));
    house.costs(20);
    house.gone(&one).await;
    assert_eq!(house.record(&one.id).await.cost_usd, Some(usd(520)));
    assert_eq!(house.sums().await, (2 * HOUR - 520, 0));
}

#[tokio::test]
async fn a_recreate_that_removed_nothing_gives_back_what_it_held() {
    let house = metered(2 * HOUR).await;
    let one = house.made(hour()).await;
    house.script(&[], &[Act::no_route()], &[]);
    let (operation, record) = house.finished(house.manager.recreate(&of(&one.id)).await).await;
    let kept = record;
    assert!(operation.error.is_some());
    assert_eq!((kept.state, kept.hold_usd), (State::Ready, Some(usd(HOUR))));
    assert_eq!(kept.meter.unwrap().next_usd, None);
    assert_eq!(house.sums().await, (HOUR, HOUR));
}

#[tokio::test]
async fn an_undo_snapshot_between_hold_and_removal_changes_nothing_of_it() {
    let house = metered(2 * HOUR).await;
    let one = house.made(kept(&house)).await;
    house.costs(500);
    let request = of(&one.id);
    let (operation, record) = house.finished(house.manager.recreate(&request).await).await;
    assert_eq!(operation.error, None);
    assert!(house.script.count("snapshot") > 0);
    assert_eq!(record.hold_usd, Some(usd(HOUR)));
    assert_eq!(house.sums().await, (HOUR - 500, HOUR));
    let all = [("hold", HOUR), ("hold", HOUR), ("charge", 500), ("release", HOUR - 500)];
    assert_eq!(house.entries().await, entries(&all));
    // One that the undo snapshot stops gives back what it held.
    grant(&house.manager, HOUR).await;
    let fails = Act::fails("no room");
    house.script.measure.push(fails);
    let (operation, record) = house.finished(house.manager.recreate(&request).await).await;
    assert!(operation.error.is_some());
    assert_eq!(record.hold_usd, Some(usd(HOUR)));
    assert_eq!(house.sums().await, (2 * HOUR - 500, HOUR));
}

#[tokio::test]
async fn wake_covers_what_its_hold_lacks() {
    let house = metered(HOUR).await;
    let one = house.made(hour()).await;
    let request = of(&one.id);
    house.finished(house.manager.sleep(&request).await).await;
    // It got dearer, say.
    house.script.price.set(Some(PRICE + 1));
    house.manager.wake(&request).await.unwrap_err().coded(Code::InsufficientCredits);
    assert_eq!(house.record(&one.id).await.state, State::Sleeping);
    grant(&house.manager, HOUR).await;
    house.finished(house.manager.wake(&request).await).await;
    let awake = house.record(&one.id).await;
    assert!(awake.hold_usd > Some(usd(HOUR)), "{awake:?}");
    assert_eq!(Some(usd(house.sums().await.1)), awake.hold_usd);
}

#[tokio::test]
async fn a_restore_holds_like_a_create_and_is_refused_like_one() {
    let house = metered(HOUR).await;
    let one = house.made(hour()).await;
    let base = house.snapshot(&one.id, "base").await.unwrap();
    let restore = RestoreRequest { ttl: Some("30m".into()), ..from_snapshot(&base.id) };
    let asked = house.script.asked().len();
    house.manager.restore(&restore).await.unwrap_err().coded(Code::InsufficientCredits);
    assert_eq!(house.script.asked().len(), asked);
    grant(&house.manager, HOUR).await;
    let (_, record) = house.finished(house.manager.restore(&restore).await).await;
    assert_eq!(record.hold_usd, Some(usd(HOUR / 2)));
    assert_eq!(house.sums().await, (HOUR / 2, HOUR + HOUR / 2));
}

#[tokio::test]
async fn doctor_says_what_is_there_and_which_line_of_the_ledger_cannot_be_read() {
    let house = metered(HOUR).await;
    let check = async |house: &TestEnv| {
        let checks = house.manager.doctor(false).await.unwrap();
        checks.into_iter().find(|check| check.name == "credits")
    };
    assert_eq!(check(&house).await.unwrap().message, "$0.036 of balance, $0.00 held");
    std::fs::write(house.folder.path().join("credits.jsonl"), "garbage\n").unwrap();
    let failed = check(&house).await.unwrap();
    assert!(failed.message.contains("line 1") && failed.hint.is_some(), "{failed:?}");
    std::fs::remove_file(house.folder.path().join("credits.jsonl")).unwrap();
    assert_eq!(check(&house).await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_creates_race_for_the_last_credits_and_exactly_one_wins() {
    let house = metered(HOUR + HOUR / 2).await;
    let (one, other) = tokio::join!(house.manager.create(hour()), house.other.create(hour()));
    let lost: Vec<Error> = [one, other].into_iter().filter_map(Result::err).collect();
    assert_eq!(lost.len(), 1, "{lost:?}");
    assert_eq!(lost[0].code, Code::InsufficientCredits);
    assert_eq!(house.sums().await, (HOUR / 2, HOUR));
}

#[tokio::test]
async fn a_ledger_that_cannot_be_read_refuses_what_costs_and_nothing_else() {
    let house = metered(HOUR).await;
    let one = house.made(hour()).await;
    let file = house.folder.path().join("credits.jsonl");
    let good = std::fs::read(&file).unwrap();
    std::fs::write(&file, [b"garbage\n", good.as_slice()].concat()).unwrap();
    house.manager.create(hour()).await.unwrap_err().coded(Code::StoreCorrupt);
    house.manager.credits().await.unwrap_err().coded(Code::StoreCorrupt);
    assert_eq!(house.manager.list(&ListQuery::default()).await.unwrap().len(), 1);
    house.costs(100);
    let (gone, ended) = house.destroy(&one.id).await;
    assert_eq!((gone.state, ended), (State::Destroyed, Ok(())), "a removal waits for no ledger");
    let told = house.kinds().await;
    assert!(told.contains(&"sandbox.destroyed".to_owned()), "nor do its events: {told:?}");
    assert!(!told.contains(&"credits.charged".to_owned()), "{told:?}");
    house.manager.recover().await.unwrap();
    // What could not be written is on the record, and follows once the file is mended.
    std::fs::write(&file, good).unwrap();
    house.manager.recover().await.unwrap();
    assert_eq!(house.sums().await, (HOUR - 100, 0));
    let found = house.entries().await;
    assert_eq!(found, entries(&[("hold", HOUR), ("charge", 100), ("release", HOUR - 100)]));
}

#[tokio::test]
async fn a_hold_that_the_ledger_lost_is_held_anew() {
    let house = metered(2 * HOUR).await;
    let one = house.made(hour()).await;
    let file = house.folder.path().join("credits.jsonl");
    let whole = std::fs::read_to_string(&file).unwrap();
    let lines: Vec<&str> = whole.lines().filter(|line| !line.contains("\"hold\"")).collect();
    std::fs::write(&file, lines.join("\n") + "\n").unwrap();
    assert_eq!(house.sums().await, (2 * HOUR, 0));
    let recovered = house.manager.recover().await.unwrap();
    let items: Vec<_> =
        recovered.iter().map(|one| (one.id.as_str(), one.ok, one.message.as_str())).collect();
    assert_eq!(items, [(one.id.as_str(), true, "held")]);
    assert_eq!(house.sums().await, (HOUR, HOUR));
    assert_eq!(house.manager.recover().await.unwrap(), []);
}
