//! The events overlay: who did what and why, in groups and by a filter; and how far the State Hub has heard of it.

use sandboxer::client::{Error, HubBacklog, Update};
use sandboxer::domain::EventKind;
use sandboxer::domain::actor::Actor;
use sandboxer::domain::error::Code;
use sandboxer::domain::event::{Event, PendingEvent};
use sandboxer::domain::hub::HubFormat;
use sandboxer::domain::name::{EventId, SandboxId};
use sandboxer::domain::outbox::DeadLetter;
use sandboxer::store::{EventLog as _, OutboxStore as _};
use sandboxer::transport::hub::HubToken;
use sandboxer::tui::model::{EventLog, EventRows, Load, Model, Overlay};
use sandboxer::tui::update::update;
use sandboxer::tui::{Effect, Msg};

use super::drive::{Drive, hear, model_of, now, press, screen, toast, type_text, world_model};
use crate::test_env::fixture::world;
use crate::test_env::script::Scripted;

fn event(seq: u64, kind: EventKind, id: Option<&str>, by: &str, data: serde_json::Value) -> Event {
    Event {
        seq,
        sandbox_seq: None,
        id: EventId::new(format!("event-{seq}")),
        time: now().minus_seconds(100_000 - seq * 1000),
        kind,
        sandbox_id: id.map(SandboxId::new),
        actor: Actor::parse(by).unwrap(),
        data,
    }
}

/// A life that an agent ended, one that its deadline did, a snapshot that was deleted, a host, credits.
fn history() -> Vec<Event> {
    let json = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
    let shop = r#"{"name": "shop-7", "profile": "profile.compose-e2e", "host": "coulombcore"}"#;
    let reaped = r#"{"host": "coulombcore", "was": "failed", "reason": "reaped"}"#;
    let over = r#"{"host": "local", "was": "ready", "reason": "ttl_expired"}"#;
    let down = r#"{"host": "vm-haskell", "message": "\u001b[31mno route to host"}"#;
    let granted = r#"{"usd": 25.5, "note": "demo"}"#;
    let deleted = r#"{"snapshot_id": "snap-0000000a", "snapshot_name": "my-env"}"#;
    vec![
        event(1, EventKind::SandboxRequested, Some("77777777"), "adm:kim", json(shop)),
        event(2, EventKind::SandboxFailed, Some("77777777"), "adm:kim", json("{}")),
        event(3, EventKind::SandboxDestroying, Some("77777777"), "agt:nightly", json(reaped)),
        event(4, EventKind::SandboxDestroyed, Some("77777777"), "agt:nightly", json("{}")),
        event(5, EventKind::HostDown, None, "atm:sandboxer", json(down)),
        event(6, EventKind::SandboxDestroying, Some("88888888"), "atm:sweep", json(over)),
        event(7, EventKind::SandboxDestroyed, Some("88888888"), "atm:sweep", json("{}")),
        event(8, EventKind::SnapshotDeleted, Some("a1b2c3d4"), "adm:kim", json(deleted)),
        event(9, EventKind::CreditsGranted, None, "adm:kim", json(granted)),
    ]
}

/// Answer to the overlay's question.
fn read(events: &[Event]) -> Msg {
    Msg::EventLog(Ok(Box::new(EventRows::of(events))))
}

fn opened() -> Model {
    let mut model = world_model();
    let effects = press(&mut model, "E");
    assert!(
        matches!(&effects[..], [Effect::EventLog(since)] if *since == now().minus_seconds(7 * 86_400))
    );
    update(&mut model, read(&history()));
    model
}

fn log(model: &Model) -> &EventLog {
    let Some(Overlay::Events(log)) = model.overlays.last() else { panic!("no events") };
    log
}

#[test]
fn the_events_at_every_size() {
    let mut model = opened();
    for size in [(120, 36), (80, 24), (60, 15), (40, 10)] {
        let name = format!("events_{}x{}", size.0, size.1);
        insta::assert_snapshot!(name, screen(&mut model, size));
    }
}

#[test]
fn who_destroyed_what_and_why_is_two_keys_away() {
    let mut model = world_model();
    press(&mut model, "E tab");
    update(&mut model, read(&history()));
    insta::assert_snapshot!("events_removed", screen(&mut model, (120, 36)));
    let shown = screen(&mut model, (80, 24));
    let row = shown.lines().find(|line| line.contains("destroyed") && line.contains("shop-7"));
    let row = row.unwrap_or_else(|| panic!("{shown}"));
    assert!(row.contains("agt:nightly") && row.contains("reaped"), "{row}");
}

#[test]
fn a_filter_looks_at_kind_sandbox_actor_host_reason_and_time() {
    let mut model = opened();
    let found = |model: &mut Model, filter: &str| -> Vec<u64> {
        press(model, "/");
        type_text(model, filter);
        press(model, "enter");
        let log = log(model);
        let rows = (0..log.count().0).filter_map(|at| log.at(at)).map(|row| row.seq);
        let rows = rows.collect();
        press(model, "/ esc");
        rows
    };
    assert_eq!(found(&mut model, "kind:destroyed"), [7, 4]);
    assert_eq!(found(&mut model, "sandbox:shop"), [4, 3, 2, 1]);
    assert_eq!(found(&mut model, "by:nightly"), [4, 3]);
    assert_eq!(found(&mut model, "host:vm-haskell"), [5]);
    assert_eq!(found(&mut model, "reason:ttl"), [7, 6]);
    assert_eq!(found(&mut model, "demo"), [9]);
    assert_eq!(found(&mut model, "since:26h"), [9, 8, 7]);
    assert_eq!(found(&mut model, "before:27h kind:sandbox"), [2, 1]);
    assert_eq!(found(&mut model, "!by:kim !by:sweep"), [5, 4, 3]);
    press(&mut model, "/");
    type_text(&mut model, "kind:destoyed");
    assert!(screen(&mut model, (120, 36)).contains("did you mean destroyed?"));
    press(&mut model, "enter");
    assert!(screen(&mut model, (120, 36)).contains("none of them is such an event"));
}

#[test]
fn more_days_are_read_when_the_filter_asks_for_them() {
    let mut model = opened();
    press(&mut model, "/");
    type_text(&mut model, "since:3d");
    assert_eq!(press(&mut model, "enter"), []);
    press(&mut model, "/ esc /");
    type_text(&mut model, "since:30d");
    let effects = press(&mut model, "enter");
    assert!(
        matches!(&effects[..], [Effect::EventLog(since)] if *since == now().minus_seconds(30 * 86_400))
    );
}

#[test]
fn what_is_heard_is_on_top_and_the_cursor_stays_on_its_event() {
    let mut model = opened();
    let heard = |model: &mut Model, seq| {
        let came =
            event(seq, EventKind::SandboxReady, Some("77777777"), "adm:kim", serde_json::json!({}));
        hear(model, Update::Event(came));
    };
    heard(&mut model, 10);
    assert_eq!(log(&model).selected().unwrap().seq, 10, "with the newest");
    press(&mut model, "j j");
    heard(&mut model, 11);
    heard(&mut model, 11);
    assert_eq!((log(&model).selected().unwrap().seq, log(&model).window.index), (8, 3));
    assert_eq!(log(&model).count(), (11, 11), "none twice");
    // One of another group is kept and not shown.
    press(&mut model, "tab");
    heard(&mut model, 12);
    assert_eq!(log(&model).count(), (3, 12));
}

#[test]
fn of_many_events_the_last_are_kept_and_only_the_window_is_looked_at() {
    let mut model = world_model();
    press(&mut model, "E");
    let many: Vec<Event> = (1..=12_000).map(|seq| Event { seq, ..history()[4].clone() }).collect();
    update(&mut model, read(&many));
    assert_eq!(log(&model).count(), (10_000, 10_000));
    press(&mut model, "G");
    assert_eq!(log(&model).selected().unwrap().seq, 2001);
    let shown = screen(&mut model, (120, 36));
    assert!(shown.contains("no route to host") && !shown.contains('\u{1b}'), "{shown}");
    assert!(shown.contains("10000, older left out"), "{shown}");
    // As many as are kept are all, until one more is heard.
    let mut model = world_model();
    press(&mut model, "E");
    update(&mut model, read(&many[2_000..]));
    assert!(!screen(&mut model, (120, 36)).contains("left out"));
    let came = Event { seq: 12_001, ..history()[4].clone() };
    hear(&mut model, Update::Event(came));
    assert_eq!(log(&model).count(), (10_000, 10_000));
    assert!(screen(&mut model, (120, 36)).contains("10000, older left out"));
}

#[tokio::test]
async fn no_more_than_can_be_shown_is_asked_for() {
    let Event { time, kind, actor, data, .. } = history()[4].clone();
    let pending = |seq: u64| PendingEvent {
        id: EventId::new(format!("event-{seq}")),
        time,
        kind: kind.clone(),
        sandbox_id: None,
        actor: actor.clone(),
        data: data.clone(),
    };
    let mut drive = Drive::new(world(now())).await;
    let events = drive.env.stores().events;
    events.append((1..=12_000).map(pending).collect()).await.unwrap();
    drive.press("E");
    drive
        .until("the newest", |model| match model.overlays.last() {
            Some(Overlay::Events(log)) => log.count() == (10_000, 10_000) && log.is_cut(),
            _ => false,
        })
        .await;
    assert_eq!(log(&drive.model).selected().unwrap().seq, 12_000);
}

#[tokio::test]
async fn enter_opens_the_sandbox_of_an_event_listed_or_not() {
    let mut drive = Drive::new(world(now())).await;
    drive.press("E");
    drive.take(read(&history()));
    drive.press("j enter");
    drive
        .until("its details", |model| matches!(model.overlays.last(), Some(Overlay::Details(details)) if details.id.as_str() == "a1b2c3d4"))
        .await;
    drive.press("esc g enter");
    assert!(drive.model.toast.as_ref().unwrap().text.contains("granted"));
    // One that nobody knows any more says so, and the events stay.
    drive.press("j j enter");
    let is_refused =
        |model: &Model| model.toast.as_ref().is_some_and(|toast| toast.text.contains("88888888"));
    drive.until("the refusal", is_refused).await;
    assert!(matches!(drive.model.overlays.last(), Some(Overlay::Events(_))));
}

#[test]
fn events_that_cannot_be_read_say_why_and_are_asked_for_again() {
    let mut model = world_model();
    press(&mut model, "E");
    assert!(screen(&mut model, (80, 24)).contains("reading what happened"));
    update(&mut model, Msg::EventLog(Err(Error::new(Code::StoreCorrupt, "events.jsonl line 7"))));
    assert!(screen(&mut model, (80, 24)).contains("✗ events.jsonl line 7"));
    assert!(matches!(&press(&mut model, "r")[..], [Effect::EventLog(_)]));
}

fn hub(backlog: HubBacklog) -> Model {
    let mut model = world_model();
    update(&mut model, Msg::HubBacklog(Ok(Some(backlog))));
    model
}

fn header(model: &mut Model) -> String {
    screen(model, (160, 36)).lines().next().unwrap().to_owned()
}

#[test]
fn a_backlog_is_in_the_header_once_somebody_should_look() {
    let mut none = world_model();
    update(&mut none, Msg::HubBacklog(Ok(None)));
    assert!(!header(&mut none).contains("hub"));
    assert!(!header(&mut hub(HubBacklog::default())).contains("hub"));
    let fresh = HubBacklog {
        waiting: 3,
        oldest_at: Some(now().minus_seconds(20)),
        ..HubBacklog::default()
    };
    assert!(!header(&mut hub(fresh)).contains("hub"), "they are on their way");
    let down = HubBacklog {
        waiting: 42,
        oldest_at: Some(now().minus_seconds(7200)),
        next_try_at: Some(now().plus_seconds(180)),
        last_error: Some("connection refused".to_owned()),
        dead: 3,
    };
    let mut model = hub(down);
    let shown = header(&mut model);
    assert!(shown.contains("hub 3 refused, 42 waiting 2h00"), "{shown}");
    // It has no row to go to: it is said with the next trouble.
    press(&mut model, "F");
    assert!(model.sandboxes.selected().unwrap().degraded > 0);
    assert!(toast(&mut model).contains("State Hub: refused 3 events"));
    press(&mut model, "E");
    update(&mut model, read(&history()));
    insta::assert_snapshot!("events_hub", screen(&mut model, (120, 36)));
    assert_eq!(log(&model).window.height + 2, 30, "rows stay within what is left");
    let mut unreadable = world_model();
    let corrupt = Error::new(Code::StoreCorrupt, "outbox cannot be read");
    update(&mut unreadable, Msg::HubBacklog(Err(corrupt)));
    assert!(header(&mut unreadable).contains("hub: unreadable"));
}

#[tokio::test]
async fn the_backlog_is_read_with_the_list_and_again_while_a_hub_is_configured() {
    let script = Scripted::default();
    let hub = ("http://127.0.0.1:1/".to_owned(), HubToken::None, HubFormat::CloudEvents);
    *script.hub.lock().unwrap() = Some(hub);
    let mut drive = Drive::scripted(world(now()), script).await;
    drive.until("the backlog", |model| model.hub.load == Load::Ready).await;
    assert!(!drive.screen((160, 36)).contains("hub 1 refused"));
    let (reason, event) = ("no such hub".to_owned(), Some(history()[4].clone()));
    let letter = DeadLetter { at: now(), reason, status: Some(400), event, missed: None };
    drive.env.stores().outbox.give_up(vec![letter]).await.unwrap();
    let later = drive.model.now.plus_seconds(11);
    drive.take(Msg::Tick(later));
    drive
        .until("the letter", |model| model.hub.backlog.as_ref().is_some_and(|hub| hub.dead == 1))
        .await;
    assert!(drive.screen((160, 36)).contains("hub 1 refused"));
    let mut model = model_of(world(now()));
    update(&mut model, Msg::HubBacklog(Ok(None)));
    assert!(!update(&mut model, Msg::Tick(now().plus_seconds(11))).contains(&Effect::HubBacklog));
}
