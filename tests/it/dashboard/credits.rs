//! The credits pane: sums, spending, entries; what it says when there are none, and what it does when they change.

use sandboxer::client::{Client as _, Credits, Error, GrantRequest};
use sandboxer::domain::actor::Actor;
use sandboxer::domain::credit::{EntryKind, LedgerEntry};
use sandboxer::domain::error::Code;
use sandboxer::domain::event::PendingEvent;
use sandboxer::domain::{EventKind, Usd};
use sandboxer::store::EventLog as _;
use sandboxer::tui::model::{Ledger, Load, Model, Overlay, Role, ThemeName};
use sandboxer::tui::update::update;
use sandboxer::tui::{Effect, Msg};

use super::drive::{Drive, draw, form, model_of, now, press, refused, screen, shows, text};
use crate::test_env::fixture::{Fixture, ledger_entry, metered, metered_world, world};
use crate::test_env::script::Scripted;

fn usd(text: &str) -> Usd {
    text.parse().unwrap()
}

/// A world with what its credits answered.
fn with_credits(world: Fixture) -> Model {
    let (sums, history) = world.credits.clone();
    let mut model = model_of(world);
    update(&mut model, Msg::Credits(Ok(Box::new(Ledger::of(sums, history, now())))));
    model
}

/// The pane in a state, focused.
fn pane(world: Fixture) -> Model {
    let mut model = with_credits(world);
    press(&mut model, "4");
    model
}

fn corrupt() -> Error {
    let mut problem = Error::new(Code::StoreCorrupt, "credits.jsonl line 3 cannot be read")
        .hint("the entries before it are whole: move the rest away, then `sandboxer recover`");
    problem.causes = vec!["EOF while parsing an object".to_owned()];
    problem
}

#[test]
fn the_pane_at_every_size() {
    let mut model = pane(metered_world(now()));
    for size in [(200, 60), (160, 45), (120, 36), (100, 24), (80, 24), (60, 15), (40, 10), (39, 9)]
    {
        let name = format!("credits_{}x{}", size.0, size.1);
        insta::assert_snapshot!(name, screen(&mut model, size));
    }
    press(&mut model, "+");
    insta::assert_snapshot!("credits_zoomed", screen(&mut model, (120, 20)));
}

#[test]
fn a_sandbox_at_a_place_that_is_no_host_is_not_missed() {
    let mut world = metered_world(now());
    world.records.retain(|record| record.host.as_str() == "saas-stub");
    let mut model = model_of(world);
    let later = now().plus_seconds(300);
    update(&mut model, Msg::Tick(later));
    let seen = text(&draw(&mut model, (160, 45)));
    assert!(seen.contains("burst-1") && !seen.contains("not seen"), "{seen}");
}

#[test]
fn the_pane_without_colours_and_in_ascii() {
    let mut model = pane(metered_world(now()));
    model.appearance.theme = ThemeName::Mono;
    model.appearance.ascii = true;
    let buffer = draw(&mut model, (80, 24));
    assert!(buffer.content.iter().all(|cell| cell.symbol().is_ascii()));
    insta::assert_snapshot!("credits_mono", text(&buffer));
}

#[test]
fn no_extension_that_costs_an_empty_ledger_and_one_that_is_not_there_yet_are_told_apart() {
    let mut costs = world(now());
    costs.extensions.push(metered());
    let mut loading = model_of(costs.clone());
    press(&mut loading, "4");
    let said = |model: &mut Model| {
        let shown = screen(model, (60, 15));
        let lines = shown.lines().skip(2).take(2);
        lines.map(|line| line.trim_matches(['│', ' ']).to_owned()).collect::<Vec<_>>()
    };
    let band = |model: &mut Model| screen(model, (120, 36));
    assert!(band(&mut loading).contains("reading…"));
    press(&mut loading, "+");
    assert_eq!(said(&mut loading), ["reading…", ""]);
    let mut nothing = pane(world(now()));
    press(&mut nothing, "+");
    let none = "no extension that is metered is in the catalogue";
    assert_eq!(said(&mut nothing), ["nothing here costs credits", none]);
    let mut none = pane(costs);
    press(&mut none, "+");
    let grants = "$ grants some; what costs is refused";
    assert_eq!(said(&mut none), ["no credits were granted", grants]);
}

#[test]
fn an_unreadable_ledger_says_what_to_do_and_one_that_was_read_stays() {
    let mut model = model_of(metered_world(now()));
    update(&mut model, Msg::Credits(Err(corrupt())));
    press(&mut model, "4");
    insta::assert_snapshot!("credits_unreadable_120x36", screen(&mut model, (120, 36)));
    insta::assert_snapshot!("credits_unreadable_60x15", screen(&mut model, (60, 15)));
    press(&mut model, "enter");
    assert!(
        matches!(model.overlays.last(), Some(Overlay::Error(problem, _)) if *problem == corrupt())
    );
    // A create could not say what is left: the header does not either.
    assert!(!screen(&mut model, (120, 36)).lines().next().unwrap().contains('$'));

    let mut model = pane(metered_world(now()));
    update(&mut model, Msg::Credits(Err(corrupt())));
    press(&mut model, "+");
    shows(&mut model, (100, 20), &["$41.20", "not read again: credits.jsonl line 3"]);
}

#[test]
fn a_zero_balance_and_a_shortfall_are_seen_without_a_key() {
    let with = |balance: &str, held: &str, short: bool| {
        let mut world = metered_world(now());
        let (sums, history) = &mut world.credits;
        *sums =
            Credits { balance_usd: usd(balance), held_usd: usd(held), burn_usd_per_h: usd("0.21") };
        if short {
            let time = now().minus_seconds(600);
            history.push(ledger_entry(EntryKind::Shortfall, Some("d0d0d0d0"), usd("0.12"), time));
        }
        with_credits(world)
    };
    let header = |mut model: Model| {
        let shown = screen(&mut model, (160, 36));
        shown.lines().next().unwrap().to_owned()
    };
    assert!(header(with("41.20", "0.80", false)).contains("   $41.20   "));
    assert!(header(with("0", "0.80", false)).contains("$0.00 all held"));
    assert!(header(with("0", "0", false)).contains("$0.00 used up"));
    assert!(header(with("0.42", "0", false)).contains("$0.42 lasts 2h"));
    assert!(header(with("41.20", "0", true)).contains("$41.20 short $0.12"));
    let mut model = with("0", "0.80", true);
    press(&mut model, "4");
    insta::assert_snapshot!("credits_used_up", screen(&mut model, (120, 36)));
}

#[test]
fn text_of_others_is_cleaned_and_enter_opens_the_entry_s_sandbox() {
    let mut model = pane(metered_world(now()));
    press(&mut model, "+ G");
    let shown = screen(&mut model, (120, 20));
    assert!(shown.contains("November, ") && !shown.contains('\u{1b}'), "{shown}");
    press(&mut model, "enter");
    assert!(model.overlays.is_empty());
    let toast = model.toast.clone().unwrap();
    assert_eq!(toast.role, Role::Dim);
    assert!(toast.text.starts_with("grant by adm:kim: November"), "{toast:?}");
    press(&mut model, "g enter");
    assert!(
        matches!(model.overlays.last(), Some(Overlay::Details(details)) if details.id.as_str() == "e1e2e3e4")
    );
    press(&mut model, "esc j");
    let effects = press(&mut model, "enter");
    assert!(matches!(&effects[..], [Effect::Get(id)] if id.as_str() == "d0d0d0d0"), "{effects:?}");
}

/// Something else writes into the ledger.
fn damage(drive: &Drive) {
    let file = drive.env.folder.path().join("credits.jsonl");
    let damaged = std::fs::read_to_string(&file).unwrap().replace("\"hold\"", "\"ho");
    std::fs::write(&file, damaged).unwrap();
}

#[tokio::test]
async fn an_event_of_credits_reads_them_again() {
    let mut drive = Drive::new(metered_world(now())).await;
    drive.until("the credits", |model| model.credits.load == Load::Ready).await;
    assert_eq!(drive.model.credits.ledger.sums.balance_usd, usd("41.20"));
    let granted = GrantRequest { usd: usd("1"), note: None };
    drive.env.other.grant_credits(granted.clone()).await.unwrap();
    drive
        .until("the other balance", |model| model.credits.ledger.sums.balance_usd == usd("42.20"))
        .await;
    // Another process tells of a change, and the file is damaged by then.
    damage(&drive);
    let told = PendingEvent {
        id: "told".into(),
        time: now(),
        kind: EventKind::CreditsCharged,
        sandbox_id: None,
        actor: Actor::parse("adm:kim").unwrap(),
        data: serde_json::json!({}),
    };
    drive.env.stores().events.append(vec![told]).await.unwrap();
    drive.until("the error", |model| matches!(model.credits.load, Load::Failed(_))).await;
}

#[tokio::test]
async fn a_grant_is_a_form_with_an_amount_and_a_note() {
    let script = Scripted { standing: Some(now()).into(), ..Scripted::default() };
    let mut drive = Drive::scripted(metered_world(now()), script).await;
    drive.until("the credits", |model| model.credits.load == Load::Ready).await;
    let asked = |model: &Model| model.hosts.list.iter().all(|it| it.view.checked_at.is_some());
    drive.until("the hosts", asked).await;
    drive.press("$ enter");
    assert!(drive.screen((120, 36)).contains("is required"));
    drive.type_text("0");
    assert!(drive.screen((120, 36)).contains("above zero"));
    drive.press("enter");
    let history = drive.env.client.credit_history().await.unwrap();
    assert_eq!(history.len(), 5, "nothing was granted");
    drive.press("backspace");
    drive.type_text("25.50");
    drive.press("tab");
    drive.type_text("for the demo");
    drive.model.toast = None;
    insta::assert_snapshot!("credits_grant", drive.screen((60, 15)));
    drive.press("enter");
    drive.until("the form to close", |model| model.overlays.is_empty()).await;
    let history = drive.env.client.credit_history().await.unwrap();
    let LedgerEntry { kind, usd: granted, note, .. } = &history.last().unwrap().entry;
    let entry = (kind, granted, note.as_deref());
    assert_eq!(entry, (&EntryKind::Grant, &usd("25.50"), Some("for the demo")));
    let toast = drive.model.toast.clone().unwrap();
    assert_eq!(toast.text, "granted: the balance is $66.70");
    drive.until("the balance", |model| model.credits.ledger.sums.balance_usd == usd("66.70")).await;
}

#[tokio::test]
async fn a_grant_that_is_refused_keeps_its_form_and_says_why() {
    let mut drive = Drive::new(metered_world(now())).await;
    damage(&drive);
    drive.press("$");
    drive.type_text("5");
    drive.press("enter");
    drive.until("the refusal", |model| form(model).error.is_some()).await;
    assert!(drive.screen((120, 36)).contains("credits.jsonl"));
}

#[test]
fn a_console_that_is_read_only_grants_nothing() {
    refused(&mut pane(metered_world(now())), "$");
}
