//! Every screen of the dashboard, as reviewed snapshots: text, and the colours of some.

use std::fmt::Write as _;

use super::drive::{
    answered, check, draw, empty_model, event, hear, list, now, point_at,
    press_beyond_folders as press, progress, runs, screen, shows, text, type_text,
};
use crate::test_env::fixture::{self, decision, many, profiles, ready, record, world};
use crossterm::event::{KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use ratatui::buffer::Buffer;
use ratatui::style::{Color, Modifier};
use sandboxer::client::{Error, Update};
use sandboxer::domain::error::Code;
use sandboxer::domain::event::Event;
use sandboxer::domain::extension::Refusal;
use sandboxer::domain::host_view::{HostState, HostView};
use sandboxer::domain::operation::OperationKind;
use sandboxer::domain::sandbox::State;
use sandboxer::domain::update::Progress;
use sandboxer::tui::Msg;
use sandboxer::tui::model::{Model, ThemeName};
use sandboxer::tui::update::update;

const SIZES: [(u16, u16); 3] = [(120, 36), (80, 24), (60, 15)];

/// The small world with its hosts' answers.
fn world_model() -> Model {
    let world = world(now());
    answered(world.records, world.hosts)
}

/// Runs of cells that are not plain, a line each: row, columns, text, style.
fn styles(buffer: &Buffer) -> String {
    let mut out = String::new();
    let colour = |colour: Option<Color>| colour.filter(|colour| *colour != Color::Reset);
    for (y, start, end, style, run) in runs(buffer) {
        let mut words = Vec::new();
        words.extend(colour(style.fg).map(|fg| fg.to_string()));
        words.extend(colour(style.bg).map(|bg| format!("on {bg}")));
        if style.add_modifier != Modifier::empty() {
            words.push(format!("{:?}", style.add_modifier));
        }
        let run = run.trim();
        let cut = if run.chars().count() > 40 { "…" } else { "" };
        let run: String = run.chars().take(40).collect();
        if !words.is_empty() {
            writeln!(out, "{y:>2} {start:>3}-{end:<3} {}  {run}{cut}", words.join(" ")).unwrap();
        }
    }
    out
}

/// A snapshot of a model at every size.
fn at_every_size(name: &str, model: &mut Model) {
    for (width, height) in SIZES {
        insta::assert_snapshot!(format!("{name}_{width}x{height}"), screen(model, (width, height)));
    }
}

#[test]
fn loading() {
    at_every_size("loading", &mut empty_model());
}

#[test]
fn empty() {
    let mut model = empty_model();
    list(&mut model, Vec::new());
    update(&mut model, Msg::Events(None, Ok(Vec::new())));
    at_every_size("empty", &mut model);
    model.read_only = true;
    insta::assert_snapshot!("empty_read_only", screen(&mut model, (80, 24)));
}

#[test]
fn error() {
    let mut model = empty_model();
    let mut problem = Error::new(Code::StoreCorrupt, "sandboxes.json cannot be parsed")
        .hint("the backup sandboxes.json.bak is from 14:01");
    problem.causes = vec!["expected `,` or `}` at line 3 column 9".to_owned()];
    update(&mut model, Msg::Listed(Err(problem)));
    at_every_size("error", &mut model);
}

#[test]
fn an_error_that_is_long_says_the_whole_way_out_and_stays_in_its_pane() {
    let path = "/home/operator/.local/share/sandboxer/sandboxes.json";
    let hint = format!("look at {path}.bak, then restore it: cp {path}.bak {path}");
    let mut problem = Error::new(Code::StoreCorrupt, format!("{path}: line 3 cannot be read"));
    problem.causes = vec!["expected `,` or `}` ".repeat(40)];
    let mut model = empty_model();
    update(&mut model, Msg::Listed(Err(problem.hint(hint))));
    for size in [(80, 24), (120, 36), (200, 60)] {
        let drawn = screen(&mut model, size);
        let words: Vec<_> = drawn.split(['│', '\n']).flat_map(str::split_whitespace).collect();
        let words = words.join(" ");
        assert!(
            words.contains("cannot be read") && words.contains(" ctrl-l tries again"),
            "{drawn}"
        );
        let way_out = format!("look at {path}.bak, then restore it: cp {path}.bak {path}");
        assert!(words.contains(&way_out), "{drawn}");
    }
    // Where there is no room, the frames stay.
    let drawn = screen(&mut model, (60, 15));
    assert!(drawn.lines().all(|line| !line.contains("├─") || !line.contains("look")), "{drawn}");
}

#[test]
fn records_that_cannot_be_read_are_in_the_header_wherever_one_looks() {
    let mut model = world_model();
    let broken = |name: &str| Error::new(Code::StoreCorrupt, format!("{name} cannot be parsed"));
    update(&mut model, Msg::Operations(Err(broken("operations.json"))));
    update(&mut model, Msg::Operations(Err(broken("operations.json"))));
    let drawn = screen(&mut model, (120, 36));
    assert!(drawn.lines().next().unwrap().contains("operations: unreadable"), "{drawn}");
    assert_eq!(drawn.matches("✗ the operations cannot be read").count(), 1, "{drawn}");
    press(&mut model, "F");
    let drawn = screen(&mut model, (120, 36));
    assert!(drawn.lines().last().unwrap().contains("operations.json cannot be parsed"), "{drawn}");
    update(&mut model, Msg::Operations(Ok(Vec::new())));
    assert!(!screen(&mut model, (120, 36)).contains("unreadable"));
}

#[test]
fn the_list() {
    at_every_size("list", &mut world_model());
}

#[test]
fn the_list_in_colours() {
    let mut model = world_model();
    insta::assert_snapshot!("list_colours_terminal", styles(&draw(&mut model, (120, 36))));
    model.appearance.theme = ThemeName::Dark;
    insta::assert_snapshot!("list_colours_dark", styles(&draw(&mut model, (80, 24))));
}

#[test]
fn without_colours_no_cell_has_one() {
    for (theme, no_color) in
        [(ThemeName::Mono, false), (ThemeName::Dark, true), (ThemeName::Terminal, true)]
    {
        let mut model = world_model();
        model.appearance.theme = theme;
        model.appearance.no_color = no_color;
        for keys in ["j", "d", "esc", "enter", "esc"] {
            press(&mut model, keys);
            let buffer = draw(&mut model, (120, 36));
            let mut cells = buffer.content.iter();
            let is_plain = cells.all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset);
            assert!(is_plain, "{theme:?}");
        }
    }
    let mut model = world_model();
    model.appearance.theme = ThemeName::Mono;
    insta::assert_snapshot!("list_mono", styles(&draw(&mut model, (80, 24))));
}

#[test]
fn ascii_means_ascii_on_every_screen() {
    let mut model = world_model();
    model.appearance.ascii = true;
    insta::assert_snapshot!("list_ascii", screen(&mut model, (80, 24)));
    let mut hostile = hostile_model();
    hostile.appearance.ascii = true;
    for model in [&mut model, &mut hostile] {
        for keys in "enter esc d esc ? esc J esc n esc : esc /".split(' ') {
            press(model, keys);
            for size in SIZES {
                let drawn = screen(model, size);
                assert!(drawn.is_ascii(), "{keys}: {drawn}");
            }
        }
    }
}

#[test]
fn narrower_than_the_smallest_a_line_says_what_is_needed() {
    for (width, height) in [(39, 9), (39, 40), (200, 9), (20, 3), (1, 1), (0, 0), (0, 10), (10, 0)]
    {
        let buffer = draw(&mut world_model(), (width, height));
        insta::assert_snapshot!(format!("too_small_{width}x{height}"), text(&buffer));
    }
}

#[test]
fn no_screen_panics_at_any_size() {
    for keys in ["j", "enter", "d", "n", "?", "J", ":", "/", "q"] {
        let mut model = world_model();
        start_job(&mut model);
        press(&mut model, keys);
        if keys == "n" {
            update(&mut model, Msg::Profiles(Ok(profiles())));
            draw(&mut model, (40, 10));
            press(&mut model, "tab enter tab tab");
        }
        for width in [0, 1, 39, 40, 41, 59, 60, 61, 80, 100, 160, 200, 250] {
            for height in [0, 1, 9, 10, 11, 14, 15, 16, 19, 20, 30, 80] {
                draw(&mut model, (width, height));
            }
        }
    }
}

fn step(stage: &str, step: u32, done: Option<u64>) -> Update {
    Update::Progress(Progress {
        done,
        of: done.map(|_| 32_000_000),
        bytes: done,
        message: Some("src/main.rs".to_owned()),
        ..progress(OperationKind::Create, "77fe01aa", stage, step)
    })
}

fn start_job(model: &mut Model) {
    hear(model, step("prepare", 2, None));
    hear(model, step("transfer", 3, Some(8_000_000)));
    update(model, Msg::Tick(now().plus_seconds(1)));
    hear(model, step("transfer", 3, Some(14_400_000)));
}

#[test]
fn a_running_job_has_a_bar_and_its_row_says_the_stage() {
    let mut model = world_model();
    start_job(&mut model);
    at_every_size("job_running", &mut model);
    press(&mut model, "J");
    insta::assert_snapshot!("jobs", screen(&mut model, (120, 36)));
    press(&mut model, "enter");
    insta::assert_snapshot!("job_output", screen(&mut model, (80, 24)));
}

#[test]
fn details_have_the_latest_figures_of_the_host_and_one_time_zone() {
    let mut model = world_model();
    let zone = jiff::tz::TimeZone::posix("CET-1").unwrap();
    model.zone = zone;
    let mut facts = fixture::facts("desk-1", now().minus_seconds(5));
    facts.load1 = 7.77;
    let view = HostView { facts: Some(facts), ..fixture::host("local", HostState::Up, Some(1)) };
    check(&mut model, view);
    point_at(&mut model, "demo");
    press(&mut model, "enter");
    let shown = shows(&mut model, (120, 200), &["Figures, 5s ago", "7.77"]);
    assert!(shown.contains("CET"), "the header names the zone: {shown}");
    assert!(!shown.contains("Z)"), "no UTC beside it: {shown}");
}

#[test]
fn details() {
    let mut model = world_model();
    press(&mut model, "j enter");
    let events: Vec<Event> =
        [("sandbox.requested", 2460_u64), ("sandbox.provisioning", 2458), ("sandbox.failed", 2400)]
            .into_iter()
            .zip(1_u64..)
            .map(|((kind, ago), seq)| Event {
                time: now().minus_seconds(ago),
                data: serde_json::json!({"host": "coulombcore"}),
                ..event(seq, kind, Some("0b1c2d3e"))
            })
            .collect();
    update(&mut model, Msg::Events(Some("0b1c2d3e".into()), Ok(events)));
    insta::assert_snapshot!("details_failed", screen(&mut model, (120, 36)));
    press(&mut model, "G");
    insta::assert_snapshot!("details_failed_end", screen(&mut model, (120, 36)));
    press(&mut model, "esc G");
    press(&mut model, "k enter");
    insta::assert_snapshot!("details_down_host", screen(&mut model, (80, 60)));
    press(&mut model, "esc k k enter");
    insta::assert_snapshot!("details_ready_60x15", screen(&mut model, (60, 15)));
}

fn form_model() -> Model {
    let mut model = world_model();
    press(&mut model, "n");
    update(&mut model, Msg::Profiles(Ok(profiles())));
    model
}

#[test]
fn the_create_form() {
    let mut model = form_model();
    at_every_size("form_profiles", &mut model);
    press(&mut model, "tab enter");
    type_text(&mut model, "/srv/app");
    press(&mut model, "tab tab tab tab");
    type_text(&mut model, "4");
    at_every_size("form_field_error", &mut model);
    type_text(&mut model, "h");
    let generation = generation(&mut model);
    let mut decision = decision();
    update(&mut model, Msg::Planned(generation, Ok(Box::new(decision.clone()))));
    insta::assert_snapshot!("form_preview", screen(&mut model, (120, 36)));
    decision.ok = false;
    decision.preview.refusals.push(Refusal {
        path: "services.web.privileged".to_owned(),
        message: "privileged containers leave the sandbox".to_owned(),
        allow: Some("privileged".to_owned()),
    });
    update(&mut model, Msg::Planned(generation, Ok(Box::new(decision))));
    insta::assert_snapshot!("form_refused", screen(&mut model, (80, 24)));
}

fn generation(model: &mut Model) -> u64 {
    model.create_form().map_or(0, |(create, _)| create.generation)
}

#[test]
fn more_than_ten_targets_are_summed_above_the_list_and_what_is_lost_stays_in_sight() {
    let mut model = world_model();
    let mut records = many(15, now());
    records[4].labels.insert("protect".to_owned(), "true".to_owned());
    list(&mut model, records);
    press(&mut model, "* d");
    shows(
        &mut model,
        (80, 24),
        &[
            "Containers, networks, volumes and the workspace are removed.",
            "5 on coulombcore, 5 on local, 4 on sandboxer01",
            "14 ready",
            "14 compose-e2e",
            "1 left out",
        ],
    );
}

#[test]
fn the_destroy_dialog() {
    let mut model = world_model();
    press(&mut model, "space space space d");
    at_every_size("destroy", &mut model);
    press(&mut model, "esc esc G d");
    insta::assert_snapshot!("destroy_protected", screen(&mut model, (120, 36)));
    press(&mut model, "esc * d");
    insta::assert_snapshot!("destroy_many", screen(&mut model, (120, 36)));
    insta::assert_snapshot!("destroy_many_60x15", screen(&mut model, (60, 15)));
    press(&mut model, "6 tab enter");
    insta::assert_snapshot!("destroy_again", screen(&mut model, (80, 24)));
}

#[test]
fn the_quit_guard() {
    let mut model = world_model();
    start_job(&mut model);
    press(&mut model, "q");
    at_every_size("quit", &mut model);
}

#[test]
fn help_and_palette() {
    let mut model = world_model();
    press(&mut model, "?");
    insta::assert_snapshot!("help", screen(&mut model, (100, 190)));
    insta::assert_snapshot!("help_80x24", screen(&mut model, (80, 24)));
    press(&mut model, "esc :");
    type_text(&mut model, "re");
    insta::assert_snapshot!("palette", screen(&mut model, (80, 24)));
}

#[test]
fn filter_and_nothing_matches() {
    let mut model = world_model();
    press(&mut model, "/");
    type_text(&mut model, "host:coul e2e");
    insta::assert_snapshot!("filter", screen(&mut model, (80, 24)));
    type_text(&mut model, " zzz");
    press(&mut model, "enter");
    insta::assert_snapshot!("filter_nothing", screen(&mut model, (80, 24)));
}

fn hostile_model() -> Model {
    let mut model = empty_model();
    let names = [
        "\u{1b}[31mred\u{1b}[0m\u{1b}]0;owned\u{7}",
        "\u{202e}gnp.exe",
        "日本語の名前がとても長い",
        "a\nb\tc\rd",
        "👩\u{200d}👩\u{200d}👧family",
        "e\u{301}\u{301}\u{301}\u{301}\u{301}accents",
    ];
    let mut records: Vec<_> = names
        .iter()
        .zip(0_u64..)
        .map(|(name, place)| {
            let id = format!("{place:08x}");
            let mut record = record(&id, Some(name), "compose-e2e", name, State::Failed, now());
            record.created_at = now().minus_seconds(place);
            record.message = Some(format!("{name} {}", "x".repeat(90_000)));
            record.labels.insert("label".to_owned(), (*name).to_owned());
            record
        })
        .collect();
    records[0].failure = Some(sandboxer::domain::sandbox::Failure {
        step: "start\u{1b}[2J".to_owned(),
        exit_status: Some(1),
        output: "\u{1b}[2Jcleared\r\nline\u{7}\n".repeat(3) + &"y".repeat(90_000),
    });
    list(&mut model, records);
    model
}

#[test]
fn hostile_names_stay_in_their_cells() {
    let mut model = hostile_model();
    insta::assert_snapshot!("hostile", screen(&mut model, (120, 36)));
    insta::assert_snapshot!("hostile_80x24", screen(&mut model, (80, 24)));
    press(&mut model, "d");
    insta::assert_snapshot!("hostile_destroy", screen(&mut model, (120, 36)));
    press(&mut model, "esc enter");
    let drawn = draw(&mut model, (80, 24));
    assert!(drawn.content.iter().all(|cell| !cell.symbol().chars().any(char::is_control)));
    insta::assert_snapshot!("hostile_details", text(&drawn));
}

#[test]
fn a_long_list_shows_its_window_and_the_mouse_finds_its_rows() {
    let mut model = empty_model();
    list(&mut model, many(10_000, now()));
    update(&mut model, Msg::Resize(120, 36));
    press(&mut model, "G");
    insta::assert_snapshot!("long_list_end", screen(&mut model, (120, 36)));
    let screen = model.screen();
    let click = |column, row| {
        Msg::Mouse(MouseEvent {
            kind: MouseEventKind::Down(MouseButton::Left),
            column,
            row,
            modifiers: KeyModifiers::NONE,
        })
    };
    update(&mut model, click(10, screen.list.y + 2));
    assert_eq!(model.sandboxes.window.index, model.sandboxes.window.offset + 2);
    let before = model.sandboxes.selected().unwrap().record.id.clone();
    let columns = screen.columns(model.sandboxes.longest_name(), model.sandboxes.has_prices());
    let host = columns.into_iter().find(|placed| placed.column.title() == "HOST").unwrap();
    update(&mut model, click(screen.titles.x + host.x + 1, screen.titles.y));
    assert_eq!(model.sandboxes.sort().key.as_str(), "host");
    assert_eq!(model.sandboxes.selected().unwrap().record.id, before);
}

#[test]
fn degraded_and_held_by_others_show_in_the_row() {
    let mut model = world_model();
    let drawn = screen(&mut model, (199, 36));
    for expected in ["db exit 137", "recreate 40s by nightly", "not seen for 2m", "protected"] {
        assert!(drawn.contains(expected), "{expected}: {drawn}");
    }
    let mut fine = ready(record("a1b2c3d4", None, "x", "local", State::Ready, now()), now());
    fine.services[0].state = "restarting".to_owned();
    list(&mut model, vec![fine]);
    assert!(screen(&mut model, (120, 36)).contains("web restarting"));
}
