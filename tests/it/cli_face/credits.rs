//! `credits`: the balance, what a grant takes and refuses, the entries of the ledger.

use insta::assert_snapshot;
use sandboxer::client::{Credits, Error};
use sandboxer::domain::credit::{EntryKind, HistoryEntry, LedgerEntry};
use sandboxer::domain::{Actor, Code, EventId, Usd};

use super::cli_client::{FakeClient, id, now};
use super::cli_world::*;

fn usd(micros: i64) -> Usd {
    Usd::from_micros(micros)
}

fn granted() -> FakeClient {
    let fake = fleet();
    let entry = |kind, sandbox: Option<&str>, micros, note: Option<&str>| LedgerEntry {
        id: EventId::new("7d1c41f2-93a8-4c55-9f0e-2b8a64d011c3"),
        time: now(),
        kind,
        sandbox_id: sandbox.map(id),
        usd: usd(micros),
        actor: Actor::parse("adm:tester").unwrap(),
        note: note.map(str::to_owned),
    };
    let entries = [
        (entry(EntryKind::Grant, None, 42_000_000, Some("invoice\u{1b}[2J 4711")), 42_000_000),
        (entry(EntryKind::Hold, Some("a0000001"), 800_000, None), 41_200_000),
        (entry(EntryKind::Charge, Some("a0000001"), 799_999, None), 41_200_000),
        (entry(EntryKind::Release, Some("a0000001"), 1, None), 41_200_001),
        (entry(EntryKind::Shortfall, Some("a0000001"), 12, None), 41_200_001),
    ];
    let history = entries.map(|(entry, balance)| HistoryEntry { entry, balance_usd: usd(balance) });
    fake.lock().ledger = history.to_vec();
    fake.lock().credits = Credits {
        balance_usd: usd(41_200_000),
        held_usd: usd(800_000),
        burn_usd_per_h: usd(210_000),
    };
    fake
}

#[tokio::test]
async fn credits_shows_what_is_there_what_is_held_and_how_long_it_lasts() {
    assert_snapshot!("credits", run(&granted(), "credits").await);
    assert_eq!(
        run(&granted(), "credits balance").await.stdout,
        run(&granted(), "credits").await.stdout
    );
    let ran = run(&granted(), "credits --json").await;
    assert_eq!(
        ran.json(),
        serde_json::json!({"balance_usd": 41.2, "held_usd": 0.8, "burn_usd_per_h": 0.21})
    );
    super::fits("credits", &ran.json());
    // Nothing is spent: nothing says how long it lasts.
    assert_snapshot!("credits_of_nothing", run(&fleet(), "credits").await);
}

#[tokio::test]
async fn a_grant_answers_with_the_sums() {
    let fake = granted();
    let ran = run(&fake, "credits grant 12.50 --note lunch --json").await;
    assert_eq!((ran.status, ran.json()["balance_usd"].as_f64()), (0, Some(53.7)), "{ran}");
    super::fits("credits", &ran.json());
    assert_eq!(fake.lock().calls, ["grant {\"usd\":12.5,\"note\":\"lunch\"}"]);
}

#[tokio::test]
async fn an_amount_that_could_mean_something_else_is_refused_before_anything_is_asked() {
    for amount in [
        "0",
        "0.00",
        "-5",
        "-0.01",
        "1,50",
        "1.000,00",
        "1e3",
        "NaN",
        "inf",
        "$5",
        "0.0000001",
        "9000000000.01",
        "999999999999999999999",
        "5USD",
        ".5",
        "5.",
        "+5",
        "--",
        "--json",
    ] {
        let fake = granted();
        let ran = run(&fake, &format!("credits grant {amount}")).await;
        assert_eq!(ran.status, 2, "{amount}: {ran}");
        assert_eq!(fake.lock().calls, Vec::<String>::new(), "{amount}");
    }
    assert_snapshot!("credits_grant_comma", run(&granted(), "credits grant 1,50").await);
    assert_snapshot!("credits_grant_negative", run(&granted(), "credits grant -5 --json").await);
}

#[tokio::test]
async fn history_shows_every_entry_with_the_balance_behind_it() {
    assert_snapshot!("credits_history", run(&granted(), "credits history").await);
    let ran = run(&granted(), "credits history --json").await;
    assert_eq!(ran.json()[0]["balance_usd"], 42.0);
    super::fits("credit_history", &ran.json());
    let ran = run(&fleet(), "credits history").await;
    assert!(ran.stderr.contains("credits grant USD"), "{ran}");
    assert_eq!(run(&fleet(), "credits history --json").await.json(), serde_json::json!([]));
}

#[tokio::test]
async fn missing_credits_end_with_6_and_the_command_that_adds_them() {
    let fake = granted();
    fake.lock().refuses =
        Some(sandboxer::domain::credit::insufficient_credits(usd(2_400_000), usd(1_000_000)));
    let ran = run(&fake, "create --profile sandbox-canary").await;
    assert_eq!(ran.status, 6, "{ran}");
    assert_snapshot!("credits_missing", ran);
    let error: Error = Error::new(Code::InsufficientCredits, "x");
    assert!(!error.retryable);
}
