//! Kills between any two writes of credits, in processes of their own: whatever died where, `recover` or the next verb ends every
//! hold, and the balance is what it has to be.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use sandboxer::client::Error;
use sandboxer::domain::credit::GrantRequest;
use sandboxer::domain::extension::Inspection;
use sandboxer::domain::request::{CreateRequest, ExtendRequest, ListQuery, Started};
use sandboxer::domain::sweep::SweepRequest;
use sandboxer::domain::{Code, State};

use super::{HOUR, PRICE, endless, hour, kept, metered, usd};
use crate::test_env::script::Scripted;
use crate::test_env::{TestEnv, finished, manager, of, test_env};

const VERB: &str = "SANDBOXER_TEST_CREDITS";
const DIR: &str = "SANDBOXER_TEST_DIR";

/// What each sandbox of the other console costs, in all.
const COST: i64 = 1000;

fn script() -> Arc<Scripted> {
    let script = Arc::new(Scripted::default());
    script.price.set(Some(PRICE));
    script.cost.set(Some(COST));
    script
}

/// This test program again, as another console that does a verb and is killed at a failpoint.
fn console(verb: &str, dir: &Path, failpoint: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    let name = "manager::credits::kills::the_other_console";
    command.args(["--exact", name, "--ignored", "--nocapture"]);
    command.env(VERB, verb).env(DIR, dir).stdout(std::process::Stdio::null());
    if !failpoint.is_empty() {
        command.env("FAILPOINTS", format!("{failpoint}=return"));
    }
    command
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "the other tests run it as a process of its own"]
async fn the_other_console() {
    let Ok(verb) = std::env::var(VERB) else { return };
    let _failpoints = fail::FailScenario::setup();
    let dir = std::env::var(DIR).unwrap();
    let script = script();
    if verb == "renew" {
        script.pass(3601);
    }
    let manager = manager(Path::new(&dir), &script);
    let ended = async |started: Result<Started, Error>| {
        let started = started?;
        manager.finish(&started.operation.unwrap()).await.map(|_| ())
    };
    let id = || "one".to_owned();
    let ended = match verb.as_str() {
        "grant" => {
            let request = GrantRequest { usd: usd(7000), note: None };
            manager.grant_credits(request).await.map(|_| ())
        }
        "create" => ended(manager.create(CreateRequest { id: Some(id()), ..hour() }).await).await,
        "any create" => ended(manager.create(hour()).await).await,
        "destroy" => ended(manager.destroy(&of(id())).await).await,
        "recreate" => ended(manager.recreate(&of(id())).await).await,
        "extend" => {
            let by_s = Some(1800);
            let request = ExtendRequest { by_s, ..of(id()) };
            manager.extend(&request).await.map(|_| ())
        }
        "renew" => manager.sweep(&SweepRequest::default()).await.map(|_| ()),
        "recover" => manager.recover().await.map(|_| ()),
        other => panic!("no such verb: {other}"),
    };
    std::process::exit(
        ended.map_or_else(
            |error| if error.code == Code::InsufficientCredits { 6 } else { 1 },
            |()| 0,
        ),
    );
}

fn kill(house: &TestEnv, verb: &str, failpoint: &str) {
    use std::os::unix::process::ExitStatusExt as _;
    let status = console(verb, house.folder.path(), failpoint).status().unwrap();
    assert_eq!(status.signal(), Some(9), "{verb} went past {failpoint}: {status:?}");
}

/// A house of which the other console has a sandbox `one`, and credits for five hours.
async fn with_one(endless_one: bool) -> TestEnv {
    let house = metered(5 * HOUR).await;
    house.costs(COST);
    let request = if endless_one { endless(&house) } else { hour() };
    house.made(CreateRequest { id: Some("one".into()), ..request }).await;
    house
}

/// Recovers, removes what is there, and counts: every hold has ended, and so many sandboxes were paid.
async fn settled(house: &TestEnv, granted: i64, paid: i64) {
    house.recover().await;
    for record in house.other.list(&ListQuery::default()).await.unwrap() {
        finished(&house.other, house.other.destroy(&of(&record.id)).await).await;
    }
    house.other.settle().await.unwrap();
    let entries = house.entries().await;
    let sum = |kind: &str| entries.iter().filter(|one| one.0 == kind).map(|one| one.1).sum::<i64>();
    assert_eq!(sum("hold"), sum("charge") + sum("release"), "{entries:?}");
    assert_eq!(house.sums().await, (granted - paid * COST, 0), "{entries:?}");
    // Each is told once, and in the ledger once.
    let told = house.told_of_credits().await;
    for (kind, event) in [("charge", "credits.charged"), ("release", "credits.released")] {
        let of = told.iter().filter(|one| one.starts_with(event)).count();
        let given_back = entries.iter().filter(|one| one.0 == kind).count();
        assert!(of <= given_back, "{told:?} {entries:?}");
    }
}

#[tokio::test]
async fn killed_between_a_hold_and_its_record() {
    let house = metered(HOUR).await;
    kill(&house, "create", "credits.held");
    assert_eq!(house.sums().await, (0, HOUR));
    assert_eq!(house.manager.list(&ListQuery::default()).await.unwrap(), []);
    settled(&house, HOUR, 0).await;
    assert!(house.told_of_credits().await.contains(&"credits.released 0.036".to_owned()));
}

#[tokio::test]
async fn the_next_create_finds_what_a_dead_one_held() {
    let house = metered(HOUR).await;
    kill(&house, "create", "credits.held");
    house.costs(COST);
    // The same id, for the last credits.
    house.made(CreateRequest { id: Some("one".into()), ..hour() }).await;
    settled(&house, HOUR, 1).await;
}

#[tokio::test]
async fn the_sweep_finds_what_a_dead_one_held() {
    let house = metered(HOUR).await;
    kill(&house, "create", "credits.held");
    house.manager.sweep(&SweepRequest::default()).await.unwrap();
    assert_eq!(house.sums().await, (HOUR, 0));
}

#[tokio::test]
async fn killed_behind_the_record_of_a_create() {
    let house = metered(HOUR).await;
    kill(&house, "create", "create.requested");
    settled(&house, HOUR, 0).await;
}

#[tokio::test]
async fn killed_while_it_is_made() {
    for failpoint in ["create.provisioning", "create.provisioned", "create.ready"] {
        let house = metered(HOUR).await;
        house.script.seen.set(Inspection { ready: true, ..Inspection::default() });
        house.costs(COST);
        kill(&house, "create", failpoint);
        settled(&house, HOUR, 1).await;
    }
}

#[tokio::test]
async fn killed_before_a_refused_hold_is_given_back() {
    let house = with_one(false).await;
    kill(&house, "create", "credits.give_back");
    settled(&house, 5 * HOUR, 1).await;
}

#[tokio::test]
async fn killed_between_the_record_of_a_destroy_and_the_ledger() {
    for failpoint in
        ["credits.pending", "credits.appended", "destroy.torn_down", "destroy.destroyed"]
    {
        let house = with_one(false).await;
        kill(&house, "destroy", failpoint);
        settled(&house, 5 * HOUR, 1).await;
    }
}

#[tokio::test]
async fn killed_between_the_writes_of_an_extend() {
    let house = with_one(false).await;
    kill(&house, "extend", "credits.held");
    assert_eq!(house.record("one").await.hold_usd, Some(usd(HOUR)));
    settled(&house, 5 * HOUR, 1).await;
}

#[tokio::test]
async fn killed_between_the_writes_of_a_renewal() {
    for failpoint in ["credits.held", "credits.renewed"] {
        let house = with_one(true).await;
        kill(&house, "renew", failpoint);
        settled(&house, 5 * HOUR, 1).await;
    }
}

#[tokio::test]
async fn killed_between_the_writes_of_a_recreate() {
    for (failpoint, paid) in [
        ("credits.held", 1),
        ("recreate.begin", 1),
        ("recreate.torn_down", 1),
        ("credits.pending", 1),
        ("credits.appended", 1),
        ("create.provisioned", 2),
    ] {
        let house = with_one(false).await;
        kill(&house, "recreate", failpoint);
        settled(&house, 5 * HOUR, paid).await;
    }
}

#[tokio::test]
async fn a_recreate_that_died_before_it_removed_anything_gives_no_time() {
    let house = with_one(false).await;
    house.script.pass(1800);
    let before = house.record("one").await;
    kill(&house, "recreate", "recreate.begin");
    house.script.seen.set(Inspection { ready: true, ..Inspection::default() });
    house.other.recover().await.unwrap();
    let after = house.record("one").await;
    assert_eq!(after.state, State::Ready);
    assert_eq!((after.expires_at, after.hold_usd), (before.expires_at, before.hold_usd));
}

#[tokio::test]
async fn killed_over_the_undo_snapshot_of_a_recreate() {
    for failpoint in ["undo.measured", "snapshot.freed", "undo.taken", "recreate.begin"] {
        let house = metered(5 * HOUR).await;
        house.costs(COST);
        house.made(CreateRequest { id: Some("one".into()), ..kept(&house) }).await;
        house.script.seen.set(Inspection { ready: true, ..Inspection::default() });
        kill(&house, "recreate", failpoint);
        house.other.recover().await.unwrap();
        assert_eq!(house.sums().await, (4 * HOUR, HOUR), "{failpoint}");
        settled(&house, 5 * HOUR, 1).await;
    }
}

#[tokio::test]
async fn killed_while_what_no_record_has_is_released() {
    let house = metered(HOUR).await;
    kill(&house, "create", "credits.held");
    kill(&house, "recover", "credits.released");
    settled(&house, HOUR, 0).await;
}

#[tokio::test]
async fn a_grant_whose_process_died_counts_and_is_told_later_and_once() {
    let house = test_env();
    kill(&house, "grant", "credits.granted");
    assert_eq!(house.sums().await, (7000, 0));
    assert_eq!(house.told_of_credits().await, Vec::<String>::new());
    house.manager.settle().await.unwrap();
    house.other.recover().await.unwrap();
    assert_eq!(house.told_of_credits().await, ["credits.granted 0.007"]);
}

#[tokio::test]
async fn two_processes_race_for_the_last_credits_and_exactly_one_wins() {
    let house = metered(HOUR + HOUR - 1).await;
    let start = || console("any create", house.folder.path(), "").spawn().unwrap();
    let children = [start(), start(), start()];
    let mut statuses: Vec<_> =
        children.into_iter().map(|mut child| child.wait().unwrap().code().unwrap()).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [0, 6, 6]);
    assert_eq!(house.sums().await, (HOUR - 1, HOUR));
}
