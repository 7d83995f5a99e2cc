use super::*;
use crate::domain::actor::Actor;

fn entry(kind: EntryKind, sandbox: Option<&str>, micros: i64) -> LedgerEntry {
    LedgerEntry {
        id: EventId::new("x"),
        time: Time::from_unix(0),
        kind,
        sandbox_id: sandbox.map(|id| SandboxId::parse(id).unwrap()),
        usd: Usd::from_micros(micros),
        actor: Actor::observer(),
        note: None,
    }
}

#[test]
fn a_balance_is_what_was_granted_less_what_is_charged_and_held() {
    let mut ledger = LedgerSums::default();
    for (kind, sandbox, usd, balance, held) in [
        (EntryKind::Grant, None, 100, 100, 0),
        // The balance exactly.
        (EntryKind::Hold, Some("a"), 100, 0, 100),
        (EntryKind::Charge, Some("a"), 30, 0, 70),
        (EntryKind::Shortfall, Some("a"), 1000, 0, 70),
        (EntryKind::Release, Some("a"), 70, 70, 0),
    ] {
        ledger.count(&entry(kind, sandbox, usd)).unwrap();
        assert_eq!((ledger.balance().micros(), ledger.held().micros()), (balance, held));
    }
    let kept = ledger.clone();
    for (kind, sandbox, usd) in [
        (EntryKind::Hold, Some("a"), 71),
        (EntryKind::Charge, Some("a"), 1),
        (EntryKind::Release, Some("b"), 1),
        (EntryKind::Hold, None, 1),
        (EntryKind::Grant, None, -1),
        (EntryKind::Grant, None, i64::MAX),
        (EntryKind::Other("gift".into()), None, 1),
    ] {
        assert!(ledger.count(&entry(kind, sandbox, usd)).is_err());
        assert_eq!(ledger, kept);
    }
}

#[test]
fn an_entry_is_cut_to_what_is_held_and_a_hold_above_the_balance_says_what_is_missing() {
    let mut ledger = LedgerSums::default();
    ledger.count(&entry(EntryKind::Grant, None, 1_000_000)).unwrap();
    ledger.count(&entry(EntryKind::Hold, Some("a"), 400_000)).unwrap();
    let cut = ledger.admit(entry(EntryKind::Charge, Some("a"), 500_000)).unwrap();
    assert_eq!(cut.usd.micros(), 400_000);
    let error = ledger.admit(entry(EntryKind::Hold, Some("b"), 2_000_000)).unwrap_err();
    assert_eq!(error.code, Code::InsufficientCredits);
    assert_eq!(error.details["missing_usd"], 1.4);
    assert!(error.hint.unwrap().contains("sandboxer credits grant 1.40"));
    assert!(ledger.admit(entry(EntryKind::Grant, None, Usd::MAX.micros())).is_err());
}

#[test]
fn credits_last_as_long_as_the_spending_of_now_lets_them() {
    let credits = |balance, burn| Credits {
        balance_usd: Usd::from_micros(balance),
        held_usd: Usd::ZERO,
        burn_usd_per_h: Usd::from_micros(burn),
    };
    assert_eq!(credits(100, 0).lasts(), None);
    assert_eq!(credits(100, 200).lasts(), Some(Duration::from_mins(30)));
    assert_eq!(credits(0, 1).lasts(), Some(Duration::ZERO));
    assert!(credits(i64::MAX, 1).lasts() > Some(Duration::from_hours(1)));
}
