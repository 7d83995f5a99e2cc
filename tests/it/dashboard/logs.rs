//! The log of a sandbox in the dashboard: followed, searched, wrapped, saved, bounded.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::drive::{
    Drive, draw, on_cpu, point_at, press, real_now, screen, text, toast, type_text, world_model,
};
use crate::test_env::fixture::{log_line, log_lines, world};
use crate::test_env::script::{LogScript, Scripted};
use ratatui::style::Color;
use sandboxer::client::{Error, LogsRequest};
use sandboxer::domain::error::Code;
use sandboxer::domain::output::Source;
use sandboxer::tui::Effect;
use sandboxer::tui::keymap::Mode;
use sandboxer::tui::model::{
    KEPT_BYTES, KEPT_LINES, LogState, LogText, Logs, Model, Overlay, ThemeName,
};

fn logs(model: &Model) -> &Logs {
    match model.overlays.last() {
        Some(Overlay::Logs(logs)) => logs,
        other => panic!("no log is open: {other:?}"),
    }
}

fn logs_mut(model: &mut Model) -> &mut Logs {
    match model.overlays.last_mut() {
        Some(Overlay::Logs(logs)) => logs,
        other => panic!("no log is open: {other:?}"),
    }
}

/// A log that is open, with the small stack's lines, of the sandbox `e2e-core`.
fn open() -> Model {
    let mut model = world_model();
    point_at(&mut model, "e2e-core");
    let effects = press(&mut model, "l");
    assert!(
        matches!(
            &effects[..],
            [Effect::Follow(1, LogsRequest { service: None, follow: true, tail: Some(500), .. })]
        ),
        "{effects:?}"
    );
    let lines = log_lines()
        .iter()
        .map(|line| Arc::new(LogText::new(line, line.service.as_str().into())))
        .collect();
    let logs = logs_mut(&mut model);
    logs.state = LogState::Open;
    logs.extend(0, lines);
    model
}

#[test]
fn how_it_looks() {
    let mut model = open();
    insta::assert_snapshot!("following", screen(&mut model, (120, 36)));
    insta::assert_snapshot!("following_80x24", screen(&mut model, (80, 24)));
    press(&mut model, "pgup k k");
    let late =
        Arc::new(LogText::new(&log_line("web", Source::Stdout, "GET /late 200"), "web".into()));
    logs_mut(&mut model).extend(1200, vec![late]);
    insta::assert_snapshot!("scrolled_60x15", screen(&mut model, (60, 15)));
    press(&mut model, "/");
    type_text(&mut model, "price");
    insta::assert_snapshot!("searched", screen(&mut model, (100, 30)));
    press(&mut model, "enter s");
    insta::assert_snapshot!("save_80x24", screen(&mut model, (80, 24)));
}

#[test]
fn colours_tell_the_services_apart_and_the_text_does_too() {
    let mut model = open();
    press(&mut model, "g");
    let colour_of = |buffer: &ratatui::buffer::Buffer, word: &str| {
        let rows = text(buffer);
        let y = rows
            .lines()
            .position(|line| line.contains(word))
            .unwrap_or_else(|| panic!("{word}: {rows}"));
        buffer[(1, u16::try_from(y).unwrap())].fg
    };
    let drawn = draw(&mut model, (120, 36));
    assert_ne!(colour_of(&drawn, "listening on"), colour_of(&drawn, "database system"));
    model.appearance.theme = ThemeName::Mono;
    let drawn = draw(&mut model, (120, 36));
    assert!(drawn.content.iter().all(|cell| cell.fg == Color::Reset));
    let rows = text(&drawn);
    assert!(rows.contains("db  ! LOG:  database") && rows.contains("web │ listening"), "{rows}");
    model.appearance.ascii = true;
    let rows = screen(&mut model, (120, 36));
    assert!(rows.is_ascii() && rows.contains("web | listening"), "{rows}");
}

#[test]
fn what_a_service_writes_cannot_move_the_cursor() {
    let mut model = open();
    let nasty = [
        "\u{1b}[2J\u{1b}]0;x\u{7}gone",
        "a\u{202e}b",
        "tab\there",
        "\u{0}\u{8}x",
        "👩\u{200d}👩\u{200d}👧 family",
    ];
    for raw in nasty {
        let line = log_line("w\u{1b}[2Jeb", Source::Stdout, raw);
        logs_mut(&mut model).extend(0, vec![Arc::new(LogText::new(&line, "web".into()))]);
    }
    for size in [(120, 36), (60, 15)] {
        let drawn = draw(&mut model, size);
        assert!(drawn.content.iter().all(|cell| !cell.symbol().chars().any(char::is_control)));
        let rows = text(&drawn);
        assert!(
            rows.contains("│ gone") && rows.contains("a·b") && rows.contains("tab here"),
            "{rows}"
        );
    }
}

#[test]
fn scrolling_up_stops_following_says_so_and_a_key_follows_again() {
    let mut model = open();
    for back in ["G", "f", "pgdn"] {
        press(&mut model, "k");
        assert!(screen(&mut model, (120, 36)).contains("○ not following"));
        logs_mut(&mut model).extend(0, vec![Arc::new(LogText::gap(1))]);
        assert!(screen(&mut model, (120, 36)).contains("not following, 1 new  G follows"));
        press(&mut model, back);
        assert!(screen(&mut model, (120, 36)).contains("● following"), "{back}");
    }
}

#[test]
fn a_search_is_shown_as_it_is_typed_and_esc_goes_back() {
    let mut model = open();
    press(&mut model, "/");
    assert_eq!(model.mode(), Mode::LogField);
    type_text(&mut model, "PRICE");
    assert_eq!(logs(&model).found(), None, "a capital counts");
    press(&mut model, "esc /");
    type_text(&mut model, "no price");
    let found = logs(&model).found().unwrap();
    assert!(
        logs(&model).tail.line(found).unwrap().text.contains("item 47"),
        "upwards from the end"
    );
    press(&mut model, "enter N");
    let found = logs(&model).found().unwrap();
    assert!(logs(&model).tail.line(found).unwrap().text.contains("item 27"));
    press(&mut model, "n n");
    let found = logs(&model).found().unwrap();
    assert!(logs(&model).tail.line(found).unwrap().text.contains("item 7"), "round the end");
    assert!(toast(&mut model).contains("from the first line"));
    press(&mut model, "G /");
    type_text(&mut model, "nowhere");
    press(&mut model, "enter");
    assert!(toast(&mut model).contains("not in what is kept"));
    press(&mut model, "/ esc");
    assert_eq!(logs(&model).top, None, "it follows as before");
    // Letters in the field are text: none of them is a key.
    press(&mut model, "/ q w s q esc");
    assert!(matches!(model.overlays.last(), Some(Overlay::Logs(_))));
}

#[test]
fn no_size_and_no_place_panics() {
    let mut model = open();
    for keys in ["k", "g", "w", "right", "pgup", "/ i t e m", "enter", "N", "w", "s", "esc", "G"] {
        press(&mut model, keys);
        for width in [0, 1, 59, 60, 61, 80, 250] {
            for height in [0, 1, 14, 15, 16, 30, 80] {
                draw(&mut model, (width, height));
            }
        }
    }
}

#[test]
fn another_service_and_number_of_lines_are_chosen_in_a_form() {
    let mut model = open();
    press(&mut model, "o");
    assert_eq!(model.mode(), Mode::Form);
    press(&mut model, "d tab");
    type_text(&mut model, "0");
    assert_eq!(press(&mut model, "enter"), []);
    assert!(screen(&mut model, (80, 24)).contains("✗ a number from 1 to 100000"));
    press(&mut model, "backspace");
    type_text(&mut model, "50");
    insta::assert_snapshot!("options_80x24", screen(&mut model, (80, 24)));
    let effects = press(&mut model, "enter");
    let [Effect::Follow(2, request)] = &effects[..] else { panic!("{effects:?}") };
    assert_eq!((request.service.as_deref(), request.tail), (Some("db"), Some(50)));
    assert_eq!(logs(&model).service.as_deref(), Some("db"));
    // Nothing typed: as it is.
    let effects = press(&mut model, "o enter");
    assert!(matches!(&effects[..], [Effect::Follow(3, request)] if request.tail == Some(50)));
}

/// The log of a sandbox, followed.
async fn opened(log: LogScript) -> Drive {
    let script = Scripted::default();
    *script.log.lock().unwrap() = log;
    let mut drive = Drive::scripted(world(real_now()), script).await;
    point_at(&mut drive.model, "e2e-core");
    drive.press("l");
    drive
}

#[tokio::test]
async fn closing_it_ends_the_stream() {
    let mut drive = opened(LogScript::Open(log_lines())).await;
    drive.until("lines", |model| logs(model).tail.len() == log_lines().len()).await;
    let script = Arc::clone(&drive.env.script);
    let open = || script.open_logs.load(Ordering::SeqCst);
    assert_eq!(open(), 1);
    drive.press("esc");
    drive.until_so("the end of the stream", || open() == 0).await;
}

#[tokio::test]
async fn a_service_alone_is_asked_for_and_the_stream_before_is_dropped() {
    let mut drive = opened(LogScript::Open(log_lines())).await;
    drive.until("lines", |model| !logs(model).tail.is_empty()).await;
    drive.press("tab tab");
    drive.until("the lines of db", |model| !logs(model).tail.is_empty()).await;
    assert!(logs(&drive.model).tail.lines().all(|line| line.service.as_deref() == Some("db")));
    let script = Arc::clone(&drive.env.script);
    let open = || script.open_logs.load(Ordering::SeqCst);
    drive.until_so("the end of the streams before", || open() == 1).await;
    // The one in between may be given up before it is asked for.
    let asked = drive.asked("logs");
    assert_eq!(
        (asked.first().unwrap().as_str(), asked.last().unwrap().as_str()),
        ("logs a1b2c3d4 all", "logs a1b2c3d4 db")
    );
    assert!(drive.screen((120, 36)).contains("Log of e2e-core: db"));
}

#[tokio::test]
async fn why_there_is_no_log_is_said_with_the_key_that_asks_again() {
    let down =
        Error::new(Code::HostUnreachable, "coulombcore does not answer").hint("is the machine on?");
    let is_over =
        |model: &Model| matches!(logs(model).state, LogState::Ended | LogState::Failed(_));
    for (log, words) in [
        (
            LogScript::Refused(down.clone()),
            vec!["✗ coulombcore does not answer", "is the machine on?", "r asks again"],
        ),
        (LogScript::Ended(Vec::new()), vec!["nothing was written", "r asks again"]),
        (LogScript::Ended(log_lines()), vec!["○ the log ended  r reads again", "GET /items/59"]),
        (
            LogScript::Broken(log_lines(), down),
            vec!["✗ coulombcore does not answer  r reads again", "GET /items/59"],
        ),
    ] {
        let mut drive = opened(log).await;
        drive.until("its end", is_over).await;
        let shown = drive.screen((120, 36));
        assert!(words.iter().all(|word| shown.contains(word)), "{words:?}: {shown}");
        drive.press("r");
        drive.until("its end", is_over).await;
        assert_eq!(drive.asked("logs").len(), 2);
    }
}

#[tokio::test]
async fn what_is_kept_is_saved_and_nothing_is_overwritten() {
    // A short name: what is said of it has to fit its line.
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    let path = folder.path().join("core.log");
    let mut drive = opened(LogScript::Open(log_lines())).await;
    drive.until("lines", |model| logs(model).tail.len() == log_lines().len()).await;
    for _ in 0..2 {
        drive.press("s");
        for _ in 0..20 {
            drive.press("backspace");
        }
        drive.type_text(path.to_str().unwrap());
        drive.press("enter");
        drive.form_answered().await;
    }
    assert!(drive.screen((120, 36)).contains("is there already: choose another name"));
    let saved = std::fs::read_to_string(&path).unwrap();
    assert_eq!(saved.lines().count(), log_lines().len());
    assert!(
        saved.starts_with("db ! LOG:  database")
            && saved.contains("\nweb | listening on 0.0.0.0:80\n"),
        "{saved}"
    );
}

/// Lines as fast as the machine can make them: well above 50 MB/s where nothing slows it down.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_keeps_keys_quick_and_memory_bounded() {
    let line = log_line("web", Source::Stdout, &"0123456789 abcdef ".repeat(11));
    let size = line.bytes.len() as u64;
    let mut drive = opened(LogScript::Flood(line)).await;
    drive.until("the first lines", |model| !logs(model).tail.is_empty()).await;
    let began = Instant::now();
    let mut worst = Duration::ZERO;
    let mut turns = 0_u32;
    // For two seconds, and on a busy machine until there is too much.
    while began.elapsed() < Duration::from_secs(2)
        || logs(&drive.model).tail.dropped() == 0 && began.elapsed() < Duration::from_mins(1)
    {
        // What the loop does between two keys: the messages that wait, and a frame.
        let turn = on_cpu();
        for _ in 0..64 {
            let Ok(msg) = drive.inbox.try_recv() else { break };
            drive.take(msg);
        }
        drive.press(if turns.is_multiple_of(2) { "k" } else { "G" });
        drive.screen((120, 36));
        worst = worst.max(on_cpu().saturating_sub(turn));
        turns += 1;
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let logs = logs(&drive.model);
    let flooded = drive.env.script.log_lines.load(Ordering::Relaxed) * size;
    assert!(logs.tail.len() <= KEPT_LINES && logs.tail.bytes() <= KEPT_BYTES);
    assert!(logs.tail.dropped() > 0, "what is dropped is counted");
    println!(
        "{} MB in {:?}, {turns} turns, the longest {worst:?}",
        flooded / 1_000_000,
        began.elapsed()
    );
    assert!(flooded > 4_000_000, "it was a flood: {flooded}");
    // Unoptimised, and among other tests; a release build takes a small part of it.
    assert!(worst < Duration::from_millis(400), "{worst:?}");
    assert!(drive.screen((120, 36)).contains("earlier lines dropped"), "counted on the screen");
}
