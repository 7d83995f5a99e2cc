//! `credits`: the balance, what a grant takes and refuses, the entries of the ledger.

use insta::assert_snapshot;
use sandboxer::client::Client as _;
use sandboxer::domain::credit::{EntryKind, HistoryEntry, LedgerEntry};
use sandboxer::domain::extension::MeterQuote;
use sandboxer::domain::{Actor, Usd};

use super::cli_world::*;
use crate::test_env::fixture::{Fixture, ledger_entry, metered_world};

fn usd(micros: i64) -> Usd {
    Usd::from_micros(micros)
}

/// A ledger with an entry of each kind, and a sandbox that costs.
async fn granted() -> Console {
    let mut fixture = metered_world(now());
    let entry = |kind, sandbox: Option<&str>, micros, note: Option<&str>| HistoryEntry {
        entry: LedgerEntry {
            actor: Actor::parse("adm:tester").unwrap(),
            note: note.map(str::to_owned),
            ..ledger_entry(kind, sandbox, usd(micros), now()).entry
        },
        balance_usd: Usd::ZERO,
    };
    fixture.credits.1 = vec![
        entry(EntryKind::Grant, None, 42_800_000, Some("invoice\u{1b}[2J 4711")),
        entry(EntryKind::Hold, Some("a0000001"), 800_000, None),
        entry(EntryKind::Charge, Some("a0000001"), 799_999, None),
        entry(EntryKind::Release, Some("a0000001"), 1, None),
        entry(EntryKind::Shortfall, Some("a0000001"), 12, None),
        entry(EntryKind::Hold, Some("e1e2e3e4"), 800_000, None),
    ];
    env_of(fixture).await
}

async fn nothing() -> Console {
    env_of(Fixture::default()).await
}

#[tokio::test]
async fn credits_shows_what_is_there_what_is_held_and_how_long_it_lasts() {
    let env = granted().await;
    assert_snapshot!("credits", run(&env, "credits").await);
    assert_eq!(run(&env, "credits balance").await.stdout, run(&env, "credits").await.stdout);
    let ran = run(&env, "credits --json").await;
    let sums =
        serde_json::json!({"balance_usd": 41.200_001, "held_usd": 0.8, "burn_usd_per_h": 0.2});
    assert_eq!(ran.json(), sums);
    super::fits("credits", &ran.json());
    // Nothing is spent: nothing says how long it lasts.
    assert_snapshot!("credits_of_nothing", run(&nothing().await, "credits").await);
}

#[tokio::test]
async fn a_grant_answers_with_the_sums() {
    let env = granted().await;
    let ran = run(&env, "credits grant 12.50 --note lunch --json").await;
    assert_eq!((ran.status, ran.json()["balance_usd"].as_f64()), (0, Some(53.700_001)), "{ran}");
    super::fits("credits", &ran.json());
    let last = env.client.credit_history().await.unwrap().pop().unwrap().entry;
    assert_eq!((last.usd, last.note.as_deref()), (usd(12_500_000), Some("lunch")));
}

#[tokio::test]
async fn an_amount_that_could_mean_something_else_is_refused_before_anything_is_asked() {
    let env = granted().await;
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
        let ran = run(&env, &format!("credits grant {amount}")).await;
        assert_eq!(ran.status, 2, "{amount}: {ran}");
    }
    assert_eq!(env.client.credit_history().await.unwrap().len(), 6);
    assert_snapshot!("credits_grant_comma", run(&env, "credits grant 1,50").await);
    assert_snapshot!("credits_grant_negative", run(&env, "credits grant -5 --json").await);
}

#[tokio::test]
async fn history_shows_every_entry_with_the_balance_behind_it() {
    let env = granted().await;
    assert_snapshot!("credits_history", run(&env, "credits history").await);
    let ran = run(&env, "credits history --json").await;
    assert_eq!(ran.json()[0]["balance_usd"], 42.8);
    super::fits("credit_history", &ran.json());
    let env = nothing().await;
    let ran = run(&env, "credits history").await;
    assert!(ran.stderr.contains("credits grant USD"), "{ran}");
    assert_eq!(document(&env, "credits history").await, serde_json::json!([]));
}

#[tokio::test]
async fn missing_credits_end_with_6_and_the_command_that_adds_them() {
    let mut fixture = Fixture::default();
    fixture.credits.1 = vec![ledger_entry(EntryKind::Grant, None, usd(1_000_000), now())];
    let env = env_of(fixture).await;
    let quote = MeterQuote { usd: usd(2_400_000), basis: "an hour".to_owned() };
    *env.script.quote.lock().unwrap() = Some(quote);
    let ran = run(&env, "create --profile sandbox-canary").await;
    assert_eq!(ran.status, 6, "{ran}");
    assert_snapshot!("credits_missing", ran);
}
