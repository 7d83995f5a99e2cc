//! Every screen of the dashboard, as reviewed snapshots: text, and the colours of some.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::drive::{draw, list, now, press_beyond_folders as press, text, type_text};
use crate::test_env::fixture::{self, decision, host, many, profiles, ready, record, world};
use crossterm::event::{KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use ratatui::buffer::Buffer;
use ratatui::style::{Color, Modifier};
use sandboxer::client::{Error, Update};
use sandboxer::domain::error::Code;
use sandboxer::domain::event::Event;
use sandboxer::domain::extension::Refusal;
use sandboxer::domain::host_view::{HostState, HostView};
use sandboxer::domain::name::OperationId;
use sandboxer::domain::operation::OperationKind;
use sandboxer::domain::sandbox::State;
use sandboxer::domain::update::Progress;
use sandboxer::tui::Msg;
use sandboxer::tui::keymap::Keymap;
use sandboxer::tui::model::{Model, ThemeName};
use sandboxer::tui::update::update;

const SIZES: [(u16, u16); 3] = [(120, 36), (80, 24), (60, 15)];

fn empty_model() -> Model {
    let mut model = Model::new(now(), Keymap::new(&BTreeMap::new()).unwrap());
    "adm:kim".clone_into(&mut model.actor);
    model.listening = true;
    update(&mut model, Msg::Resize(120, 36));
    model
}

/// The small world with its hosts' answers.
fn world_model() -> Model {
    let mut model = empty_model();
    let world = world(now());
    list(&mut model, world.records);
    let unseen =
        world.hosts.iter().map(|view| host(view.name.as_str(), HostState::Unknown, None)).collect();
    update(&mut model, Msg::Hosts(Ok(unseen)));
    for mut view in world.hosts {
        view.checked_at = Some(now());
        update(&mut model, Msg::HostChecked(view.name.clone(), Ok(Box::new(view))));
    }
    update(&mut model, Msg::Events(None, Ok(Vec::new())));
    model.toast = None;
    model
}

/// Runs of cells that are not plain, a line each: row, columns, text, style.
fn styles(buffer: &Buffer) -> String {
    let mut out = String::new();
    for y in 0..buffer.area.height {
        let mut x = 0;
        while x < buffer.area.width {
            let style = buffer[(x, y)].style();
            let start = x;
            let mut run = String::new();
            while x < buffer.area.width && buffer[(x, y)].style() == style {
                run.push_str(buffer[(x, y)].symbol());
                x += 1;
            }
            let plain = |color: Option<Color>| color.is_none_or(|color| color == Color::Reset);
            if plain(style.fg) && plain(style.bg) && style.add_modifier.is_empty() {
                continue;
            }
            let mut words = Vec::new();
            words.extend(style.fg.filter(|fg| *fg != Color::Reset).map(|fg| fg.to_string()));
            words.extend(style.bg.filter(|bg| *bg != Color::Reset).map(|bg| format!("on {bg}")));
            if style.add_modifier != Modifier::empty() {
                words.push(format!("{:?}", style.add_modifier));
            }
            let run = run.trim();
            let run = if run.chars().count() > 40 {
                format!("{}…", run.chars().take(40).collect::<String>())
            } else {
                run.to_owned()
            };
            writeln!(out, "{y:>2} {start:>3}-{:<3} {}  {run}", x - 1, words.join(" ")).unwrap();
        }
    }
    out
}

/// A snapshot of a model at every size.
fn at_every_size(name: &str, model: &mut Model) {
    for (width, height) in SIZES {
        insta::assert_snapshot!(
            format!("{name}_{width}x{height}"),
            text(&draw(model, (width, height)))
        );
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
    insta::assert_snapshot!("empty_read_only", text(&draw(&mut model, (80, 24))));
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
fn the_list() {
    at_every_size("list", &mut world_model());
}

#[test]
fn the_list_in_colours() {
    let mut model = world_model();
    insta::assert_snapshot!("list_colours_terminal", styles(&draw(&mut model, (120, 36))));
    model.look.theme = ThemeName::Dark;
    insta::assert_snapshot!("list_colours_dark", styles(&draw(&mut model, (80, 24))));
}

#[test]
fn without_colours_no_cell_has_one() {
    for (theme, no_color) in
        [(ThemeName::Mono, false), (ThemeName::Dark, true), (ThemeName::Terminal, true)]
    {
        let mut model = world_model();
        model.look.theme = theme;
        model.look.no_color = no_color;
        for keys in ["j", "d", "esc", "enter", "esc"] {
            press(&mut model, keys);
            let buffer = draw(&mut model, (120, 36));
            assert!(
                buffer
                    .content
                    .iter()
                    .all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset),
                "{theme:?}"
            );
        }
    }
    let mut model = world_model();
    model.look.theme = ThemeName::Mono;
    insta::assert_snapshot!("list_mono", styles(&draw(&mut model, (80, 24))));
}

#[test]
fn ascii_means_ascii_on_every_screen() {
    let mut model = world_model();
    model.look.ascii = true;
    insta::assert_snapshot!("list_ascii", text(&draw(&mut model, (80, 24))));
    let mut hostile = hostile_model();
    hostile.look.ascii = true;
    for model in [&mut model, &mut hostile] {
        for keys in
            ["enter", "esc", "d", "esc", "?", "esc", "J", "esc", "n", "esc", ":", "esc", "/"]
        {
            press(model, keys);
            for size in SIZES {
                let drawn = text(&draw(model, size));
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

fn progress(stage: &str, step: u32, done: Option<u64>) -> Msg {
    Msg::Heard(Box::new(Update::Progress(Progress {
        operation: OperationId::from_random(0x77),
        kind: OperationKind::Create,
        sandbox_id: Some("77fe01aa".into()),
        snapshot_id: None,
        stage: stage.to_owned(),
        step,
        steps: 6,
        done,
        of: done.map(|_| 32_000_000),
        bytes: done,
        message: Some("src/main.rs".to_owned()),
    })))
}

fn start_job(model: &mut Model) {
    update(model, progress("prepare", 2, None));
    update(model, progress("transfer", 3, Some(8_000_000)));
    update(model, Msg::Tick(now().plus_seconds(1)));
    update(model, progress("transfer", 3, Some(14_400_000)));
}

#[test]
fn a_running_job_has_a_bar_and_its_row_says_the_stage() {
    let mut model = world_model();
    start_job(&mut model);
    at_every_size("job_running", &mut model);
    press(&mut model, "J");
    insta::assert_snapshot!("jobs", text(&draw(&mut model, (120, 36))));
    press(&mut model, "enter");
    insta::assert_snapshot!("job_output", text(&draw(&mut model, (80, 24))));
}

#[test]
fn details_have_the_latest_figures_of_the_host_and_one_time_zone() {
    let mut model = world_model();
    let zone = jiff::tz::TimeZone::posix("CET-1").unwrap();
    model.zone = zone;
    let mut facts = fixture::facts("desk-1", now().minus_seconds(5));
    facts.load1 = 7.77;
    let view = HostView { facts: Some(facts), ..fixture::host("local", HostState::Up, Some(1)) };
    update(&mut model, Msg::HostChecked("local".into(), Ok(Box::new(view))));
    while model.sandboxes.selected().unwrap().record.name.as_deref() != Some("demo") {
        press(&mut model, "j");
    }
    press(&mut model, "enter");
    let shown = text(&draw(&mut model, (120, 200)));
    assert!(shown.contains("Figures, 5s ago") && shown.contains("7.77"), "{shown}");
    assert!(shown.contains("CET"), "the header names the zone: {shown}");
    assert!(!shown.contains("Z)"), "no UTC beside it: {shown}");
}

#[test]
fn details() {
    let mut model = world_model();
    press(&mut model, "j enter");
    let events: Vec<Event> = [
        ("sandbox.requested", 2460_u64),
        ("sandbox.provisioning", 2458),
        ("sandbox.failed", 2400),
    ]
    .into_iter()
    .zip(1_u64..)
    .map(|((kind, ago), seq)| {
        let event = serde_json::json!({
            "seq": seq, "sandbox_seq": seq, "id": format!("e{seq}"), "time": now().minus_seconds(ago), "kind": kind,
            "sandbox_id": "0b1c2d3e", "actor": {"type": "adm", "name": "kim"}, "data": {"host": "coulombcore"}
        });
        serde_json::from_value(event).unwrap()
    })
    .collect();
    update(&mut model, Msg::Events(Some("0b1c2d3e".into()), Ok(events)));
    insta::assert_snapshot!("details_failed", text(&draw(&mut model, (120, 36))));
    press(&mut model, "G");
    insta::assert_snapshot!("details_failed_end", text(&draw(&mut model, (120, 36))));
    press(&mut model, "esc G");
    press(&mut model, "k enter");
    insta::assert_snapshot!("details_down_host", text(&draw(&mut model, (80, 60))));
    press(&mut model, "esc k k enter");
    insta::assert_snapshot!("details_ready_60x15", text(&draw(&mut model, (60, 15))));
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
    insta::assert_snapshot!("form_preview", text(&draw(&mut model, (120, 36))));
    decision.ok = false;
    decision.preview.refusals.push(Refusal {
        path: "services.web.privileged".to_owned(),
        message: "privileged containers leave the sandbox".to_owned(),
        allow: Some("privileged".to_owned()),
    });
    update(&mut model, Msg::Planned(generation, Ok(Box::new(decision))));
    insta::assert_snapshot!("form_refused", text(&draw(&mut model, (80, 24))));
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
    let shown = text(&draw(&mut model, (80, 24)));
    assert!(
        shown.contains("Containers, networks, volumes and the workspace are removed."),
        "{shown}"
    );
    assert!(shown.contains("5 on coulombcore, 5 on local, 4 on sandboxer01"), "{shown}");
    assert!(shown.contains("14 ready") && shown.contains("14 compose-e2e"), "{shown}");
    assert!(shown.contains("1 left out"), "{shown}");
}

#[test]
fn the_destroy_dialog() {
    let mut model = world_model();
    press(&mut model, "space space space d");
    at_every_size("destroy", &mut model);
    press(&mut model, "esc esc G d");
    insta::assert_snapshot!("destroy_protected", text(&draw(&mut model, (120, 36))));
    press(&mut model, "esc * d");
    insta::assert_snapshot!("destroy_many", text(&draw(&mut model, (120, 36))));
    insta::assert_snapshot!("destroy_many_60x15", text(&draw(&mut model, (60, 15))));
    press(&mut model, "6 tab enter");
    insta::assert_snapshot!("destroy_again", text(&draw(&mut model, (80, 24))));
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
    insta::assert_snapshot!("help", text(&draw(&mut model, (100, 190))));
    insta::assert_snapshot!("help_80x24", text(&draw(&mut model, (80, 24))));
    press(&mut model, "esc :");
    type_text(&mut model, "re");
    insta::assert_snapshot!("palette", text(&draw(&mut model, (80, 24))));
}

#[test]
fn filter_and_nothing_matches() {
    let mut model = world_model();
    press(&mut model, "/");
    type_text(&mut model, "host:coul e2e");
    insta::assert_snapshot!("filter", text(&draw(&mut model, (80, 24))));
    type_text(&mut model, " zzz");
    press(&mut model, "enter");
    insta::assert_snapshot!("filter_nothing", text(&draw(&mut model, (80, 24))));
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
            let mut record = record(
                &format!("{place:08x}"),
                Some(name),
                "compose-e2e",
                name,
                State::Failed,
                now(),
            );
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
    insta::assert_snapshot!("hostile", text(&draw(&mut model, (120, 36))));
    insta::assert_snapshot!("hostile_80x24", text(&draw(&mut model, (80, 24))));
    press(&mut model, "d");
    insta::assert_snapshot!("hostile_destroy", text(&draw(&mut model, (120, 36))));
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
    insta::assert_snapshot!("long_list_end", text(&draw(&mut model, (120, 36))));
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
    assert_eq!(model.sandboxes.index(), model.sandboxes.offset() + 2);
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
    let drawn = text(&draw(&mut model, (199, 36)));
    for expected in ["db exit 137", "recreate 40s by nightly", "not seen for 2m", "protected"] {
        assert!(drawn.contains(expected), "{expected}: {drawn}");
    }
    let mut fine = ready(record("a1b2c3d4", None, "x", "local", State::Ready, now()), now());
    fine.services[0].state = "restarting".to_owned();
    list(&mut model, vec![fine]);
    assert!(text(&draw(&mut model, (120, 36))).contains("web restarting"));
}
