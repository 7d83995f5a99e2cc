//! Trouble is seen without a key: the screen at every size with something wrong on it, the order of the list, `F`, zoom,
//! the hosts, and what a click finds.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crossterm::event::{KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use ratatui::buffer::Buffer;
use ratatui::style::{Color, Modifier};
use sandboxer::client::Update;
use sandboxer::domain::host::Limits;
use sandboxer::domain::host_view::{HostState, HostView};
use sandboxer::domain::name::SandboxId;
use sandboxer::domain::operation::OperationKind;
use sandboxer::domain::sandbox::State;
use sandboxer::domain::telemetry::{DiskUse, HostSample, SandboxUse};
use sandboxer::domain::update::Progress;
use sandboxer::tui::model::{Model, Overlay, Pane, SavedState, Sort, SortKey, Sweep};
use sandboxer::tui::update::update;
use sandboxer::tui::{Msg, Timer};

use super::drive::{
    check, draw, hear, list, model_of, now, point_at, press, progress, runs, screen, shows, toast,
    type_text, world_model,
};
use crate::test_env::fixture::{host, lineage_world, many, ready, record};

const SIZES: [(u16, u16); 7] =
    [(200, 60), (160, 45), (120, 36), (80, 24), (60, 15), (40, 10), (39, 9)];

fn sample(ago: u64, load: f64) -> HostSample {
    HostSample {
        at: now().minus_seconds(ago),
        latency_ms: Some(12),
        cpus: 4,
        load1: load * 4.0,
        mem_total_bytes: 32 << 30,
        mem_available_bytes: 10 << 30,
        swap_total_bytes: 8 << 30,
        swap_free_bytes: 7 << 30,
        disk: Some(DiskUse {
            path: "/home/ops/sandboxes".to_owned(),
            total_bytes: 500 << 30,
            used_bytes: 205 << 30,
            available_bytes: 295 << 30,
            inodes: Some(1_000_000),
            inodes_free: Some(900_000),
        }),
        uptime_s: Some(90_000),
        clock_offset_s: Some(0.2),
        findings: Vec::new(),
        sandboxes: BTreeMap::new(),
    }
}

fn sampled(model: &mut Model, name: &str, sample: HostSample) {
    update(model, Msg::HostSampled(name.into(), Ok(Box::new(sample))));
}

/// A failed one, a down host, a running operation, an expiring one, a degraded one; and hosts that are measured.
fn trouble() -> Model {
    let mut model = world_model();
    // The host answered once and went down two minutes ago.
    update(&mut model, Msg::Tick(now().minus_seconds(130)));
    let seen =
        |state| HostView { limits: Some(Limits::default()), ..host("vm-haskell", state, Some(40)) };
    check(&mut model, seen(HostState::Up));
    update(&mut model, Msg::Tick(now().minus_seconds(125)));
    check(&mut model, seen(HostState::Down));
    update(&mut model, Msg::Tick(now().minus_seconds(14)));
    check(&mut model, seen(HostState::Down));
    for (name, load, held) in [("coulombcore", 0.4, 12), ("sandboxer01", 3.8, 30)] {
        let view = HostView {
            limits: Some(Limits::default()),
            sandboxes: held,
            ..host(name, HostState::Up, Some(12))
        };
        update(&mut model, Msg::HostChecked(name.into(), Ok(Box::new(view))));
        for step in (0..60).rev() {
            let wave = 1.0 + f64::from(u32::try_from(step % 20).unwrap()) / 20.0;
            sampled(&mut model, name, sample(step * 60 + 2, load * wave / 1.95));
        }
    }
    let mut last = sample(0, 0.4);
    last.sandboxes.insert(
        SandboxId::from("a1b2c3d4"),
        SandboxUse { cpu_pct: Some(12.4), memory_bytes: 1_288_490_189, containers: 2 },
    );
    sampled(&mut model, "coulombcore", last);
    for (second, done) in [(0, None), (1, Some(8_000_000)), (2, Some(14_400_000))] {
        update(&mut model, Msg::Tick(now().minus_seconds(2 - second)));
        hear(&mut model, transfer(done));
    }
    model.sweep = Sweep::On;
    model.toast = None;
    model
}

fn transfer(done: Option<u64>) -> Update {
    Update::Progress(Progress {
        done,
        of: done.map(|_| 32_000_000),
        bytes: done,
        message: Some("src/main.rs".to_owned()),
        ..progress(OperationKind::Recreate, "77fe01aa", "transfer", 3)
    })
}

/// Runs of cells that are not plain, a line each: row, columns, text, style.
fn colours(buffer: &Buffer) -> String {
    let mut out = String::new();
    let colour = |colour: Option<Color>| colour.filter(|colour| *colour != Color::Reset);
    for (y, start, end, style, run) in runs(buffer) {
        let run: String = run.trim().chars().take(40).collect();
        let plain = colour(style.fg).is_none() && colour(style.bg).is_none();
        if run.is_empty() || (plain && style.add_modifier == Modifier::empty()) {
            continue;
        }
        let fg = colour(style.fg).map(|fg| format!("{fg} ")).unwrap_or_default();
        writeln!(out, "{y:>2} {start:>3}-{end:<3} {fg}{:?}  {run}", style.add_modifier).unwrap();
    }
    out
}

#[test]
fn trouble_is_seen_without_a_key_at_every_size() {
    for size in SIZES {
        let mut model = trouble();
        let shown = screen(&mut model, size);
        insta::assert_snapshot!(format!("trouble_{}x{}", size.0, size.1), shown);
    }
    insta::assert_snapshot!("trouble_colours_120x36", colours(&draw(&mut trouble(), (120, 36))));
    insta::assert_snapshot!("trouble_colours_60x15", colours(&draw(&mut trouble(), (60, 15))));
    let mut model = trouble();
    model.appearance.ascii = true;
    let shown = screen(&mut model, (120, 36));
    assert!(shown.is_ascii(), "{shown}");
    insta::assert_snapshot!("trouble_ascii_120x36", shown);
}

#[test]
fn each_pane_of_a_narrow_screen_has_all_of_it() {
    for (key, name) in [("2", "snapshots"), ("3", "hosts"), ("5", "activity")] {
        let mut model = trouble();
        press(&mut model, key);
        let shown = screen(&mut model, (40, 10));
        insta::assert_snapshot!(format!("narrow_{name}_40x10"), shown);
    }
}

#[test]
fn a_host_that_is_down_is_named_in_the_header_at_80_columns_and_with_its_reason_in_its_pane() {
    let mut model = trouble();
    let shown = screen(&mut model, (80, 24));
    assert!(shown.lines().next().unwrap().contains("1 ✗ vm-haskell down 2m"), "{shown}");
    press(&mut model, "3");
    shows(&mut model, (80, 24), &["down 2m: Connection timed out", "next try in 5s"]);
}

#[test]
fn a_host_with_few_networks_left_says_so() {
    for (left, says) in [(Some(0), "nets 0"), (Some(1), "nets 1"), (Some(20), ""), (None, "")] {
        let mut model = trouble();
        let engine = serde_json::json!({"engine": "docker", "used": 31, "left": left});
        let facts = serde_json::json!({
            "at": now(), "machine_id": "m", "hostname": "sandboxer01", "kernel": "Linux", "os": null, "user": "ops", "uid": 1000,
            "cpus": 4, "load1": 0.0, "mem_total_bytes": 1, "mem_available_bytes": 1, "disk": null, "workspace_root": "/srv",
            "clock_offset_s": null, "inventory": {"sandboxes": [], "networks": [engine]},
        });
        let view = HostView {
            facts: Some(serde_json::from_value(facts).unwrap()),
            ..host("sandboxer01", HostState::Up, Some(12))
        };
        check(&mut model, view);
        press(&mut model, "3 +");
        let shown = screen(&mut model, (120, 36));
        assert_eq!(shown.contains("nets"), !says.is_empty(), "{left:?}: {shown}");
        assert!(shown.contains(says), "{left:?}: {shown}");
    }
}

fn ids(model: &Model) -> Vec<String> {
    model.sandboxes.shown().iter().map(|entry| entry.record.id.to_string()).collect()
}

/// Three that are well, the youngest first: c, b, a.
fn three() -> Model {
    let records =
        [("aaaaaaaa", "coulombcore", 300), ("bbbbbbbb", "local", 200), ("cccccccc", "local", 100)];
    let records = records.into_iter().map(|(id, host, ago)| {
        let mut record = ready(record(id, None, "x", host, State::Ready, now()), now());
        record.created_at = now().minus_seconds(ago);
        record.expires_at = Some(now().plus_seconds(1000));
        record
    });
    let mut model = world_model();
    list(&mut model, records.collect());
    model
}

#[test]
fn trouble_comes_first_then_the_youngest() {
    let model = trouble();
    let first = ["0b1c2d3e", "77fe01aa", "5d20aa17", "c0ffee00", "9c0d11ee"];
    assert_eq!(ids(&model)[..5], first, "failed, running, degraded, expiring, silent");
    assert_eq!(ids(&model)[5..], ["a1b2c3d4", "0f00ba12"], "then the youngest");
}

#[test]
fn a_row_moves_when_its_trouble_begins_and_the_cursor_goes_with_it() {
    let mut model = three();
    assert_eq!(ids(&model), ["cccccccc", "bbbbbbbb", "aaaaaaaa"]);
    press(&mut model, "G space");
    assert_eq!(model.sandboxes.window.index, 2);
    // Seconds pass: nothing moves.
    for second in 1..=10 {
        update(&mut model, Msg::Tick(now().plus_seconds(second)));
        assert_eq!(ids(&model), ["cccccccc", "bbbbbbbb", "aaaaaaaa"], "{second}");
    }
    // The host of the last one is asked and stays silent.
    update(&mut model, Msg::Due(Timer::Host("coulombcore".into())));
    update(&mut model, Msg::Tick(now().plus_seconds(14)));
    assert_eq!(ids(&model), ["cccccccc", "bbbbbbbb", "aaaaaaaa"]);
    update(&mut model, Msg::Tick(now().plus_seconds(16)));
    assert_eq!(ids(&model), ["aaaaaaaa", "cccccccc", "bbbbbbbb"], "15 s after its last answer");
    assert_eq!(model.sandboxes.selected().unwrap().record.id.as_str(), "aaaaaaaa");
    assert_eq!(model.sandboxes.marks.ids().len(), 1);
    // It answers again.
    let mut up = host("coulombcore", HostState::Up, Some(9));
    up.checked_at = Some(now().plus_seconds(41));
    check(&mut model, up);
    assert_eq!(ids(&model), ["cccccccc", "bbbbbbbb", "aaaaaaaa"]);
    // A deadline comes near: ten minutes before it, and not a second earlier.
    let mut b = model.sandboxes.get(&"bbbbbbbb".into()).unwrap().record.as_ref().clone();
    (b.expires_at, b.revision) = (Some(now().plus_seconds(700)), b.revision + 1);
    hear(&mut model, Update::Record(Box::new(b)));
    update(&mut model, Msg::Tick(now().plus_seconds(99)));
    assert_eq!(ids(&model)[0], "cccccccc");
    assert_eq!(model.sandboxes.counts().expiring, 0);
    update(&mut model, Msg::Tick(now().plus_seconds(100)));
    assert_eq!(ids(&model), ["bbbbbbbb", "cccccccc", "aaaaaaaa"]);
    assert_eq!(model.sandboxes.counts().expiring, 1);
    assert!(screen(&mut model, (120, 36)).contains("1 expiring"));
    // The clock is set back an hour: it is far again.
    update(&mut model, Msg::Tick(now().minus_seconds(3600)));
    assert_eq!(model.sandboxes.counts().expiring, 0);
    assert_eq!(ids(&model)[0], "cccccccc");
}

#[test]
fn a_frozen_display_moves_no_row() {
    let mut model = three();
    press(&mut model, "f");
    update(&mut model, Msg::Tick(now().plus_seconds(900)));
    assert_eq!(ids(&model), ["cccccccc", "bbbbbbbb", "aaaaaaaa"]);
    press(&mut model, "f");
    assert_eq!(model.sandboxes.counts().expiring, 3);
}

#[test]
fn the_list_sorts_by_what_its_hosts_measure() {
    let mut model = three();
    let used = |cpu, memory| SandboxUse { cpu_pct: Some(cpu), memory_bytes: memory, containers: 1 };
    let mut first = sample(3, 0.1);
    first.sandboxes.insert("bbbbbbbb".into(), used(5.0, 300));
    first.sandboxes.insert("cccccccc".into(), used(50.0, 200));
    sampled(&mut model, "local", first);
    let set = |model: &mut Model, key| {
        while model.sandboxes.sort().key != key {
            press(model, "o");
        }
        ids(model)
    };
    assert_eq!(set(&mut model, SortKey::Cpu), ["cccccccc", "bbbbbbbb", "aaaaaaaa"]);
    assert_eq!(set(&mut model, SortKey::Memory), ["bbbbbbbb", "cccccccc", "aaaaaaaa"]);
    let mut later = sample(1, 0.1);
    later.sandboxes.insert("bbbbbbbb".into(), used(5.0, 100));
    later.sandboxes.insert("cccccccc".into(), used(5.0, 200));
    sampled(&mut model, "local", later);
    update(&mut model, Msg::Tick(now().plus_seconds(1)));
    assert_eq!(ids(&model), ["cccccccc", "bbbbbbbb", "aaaaaaaa"]);
    shows(&mut model, (120, 36), &["MEM ↑"]);
    assert!(screen(&mut model, (80, 24)).contains("Sandboxes 3 ─ by mem"), "it is not shown there");
}

#[test]
fn the_sort_of_an_earlier_version_is_read() {
    let sort = SavedState::parse(r#"{"pane":"hosts","sort":"left","descending":true}"#);
    assert_eq!(sort.pane, Some(Pane::Hosts));
    assert_eq!(sort.sort, Some(Sort { key: SortKey::Left, descending: true }));
    assert_eq!(Sort::default().key, SortKey::Trouble);
}

#[test]
fn f_goes_from_trouble_to_trouble_from_any_pane() {
    let mut model = trouble();
    press(&mut model, "2 F");
    assert_eq!(model.focus, Pane::Sandboxes);
    let at = |model: &Model| model.sandboxes.selected().unwrap().record.id.to_string();
    let mut visited = vec![at(&model)];
    for _ in 0..4 {
        press(&mut model, "F");
        visited.push(at(&model));
    }
    // What is being done needs nobody; round the end it begins again.
    assert_eq!(visited, ["5d20aa17", "c0ffee00", "9c0d11ee", "0b1c2d3e", "5d20aa17"]);
    press(&mut model, "/");
    type_text(&mut model, "reference");
    press(&mut model, "enter F");
    let said = toast(&mut model);
    assert!(said.starts_with("4 sandboxes that need a look"), "{said}");
    let mut model = three();
    press(&mut model, "F");
    assert_eq!(model.focus, Pane::Hosts, "a host is down, and no sandbox knows of it");
    assert_eq!(model.hosts.selected().unwrap().view.name.as_str(), "vm-haskell");
}

#[test]
fn plus_gives_the_focused_pane_all_the_room() {
    let mut model = trouble();
    press(&mut model, "3 +");
    let shown = screen(&mut model, (120, 36));
    assert!(!shown.contains("NAME") && !shown.contains("─╮╭─"), "{shown}");
    assert!(shown.contains("Activity ─ Sandboxes ─ Snapshots"), "{shown}");
    press(&mut model, "tab");
    assert_eq!(model.screen().credits.height, 32);
    press(&mut model, "tab");
    assert_eq!(model.screen().activity.height, 32);
    press(&mut model, "+");
    assert!(screen(&mut model, (120, 36)).contains("NAME"));
}

fn click(model: &mut Model, column: u16, row: u16) {
    let kind = MouseEventKind::Down(MouseButton::Left);
    update(model, Msg::Mouse(MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE }));
}

#[test]
fn a_click_finds_tabs_footer_keys_hosts_and_titles() {
    let mut model = trouble();
    screen(&mut model, (80, 24));
    let (pane, tab) = model.screen().tabs(Pane::Activity)[1];
    assert_eq!(pane, Pane::Hosts);
    click(&mut model, tab.x + 1, tab.y);
    assert_eq!(model.focus, Pane::Hosts);
    screen(&mut model, (120, 36));
    let hosts = model.screen().hosts;
    // Two rows each; the one that is down is first.
    click(&mut model, hosts.x + 2, hosts.y + 3);
    assert_eq!(model.hosts.selected().unwrap().view.name.as_str(), "coulombcore");
    let help = model.hints().into_iter().find(|hint| hint.what == "help").unwrap();
    click(&mut model, help.area.x, help.area.y);
    assert!(matches!(model.overlays.last(), Some(Overlay::Help(_))));
    press(&mut model, "esc");
    let titles = model.screen().titles;
    click(&mut model, titles.x + 5, titles.y);
    assert_eq!(model.sandboxes.sort().key, SortKey::Name);
    click(&mut model, titles.x + 5, titles.y);
    assert!(model.sandboxes.sort().descending);
    assert!(screen(&mut model, (120, 36)).contains("NAME ↓"));
    let list = model.screen().list;
    click(&mut model, list.x, list.y + list.height - 1);
    assert_eq!(model.focus, Pane::Sandboxes, "below its last row it is still the list");
}

#[test]
fn figures_beyond_a_hosts_limits_stand_out_and_what_is_well_is_left_out() {
    let mut model = trouble();
    let mut full = sample(0, 4.4);
    full.mem_available_bytes = 1 << 30;
    full.swap_free_bytes = 0;
    full.disk.as_mut().unwrap().inodes_free = Some(1000);
    full.clock_offset_s = Some(-61.0);
    sampled(&mut model, "sandboxer01", full);
    press(&mut model, "3 +");
    let shown = screen(&mut model, (120, 36));
    let of = |name: &str| {
        let mut lines = shown.lines().skip_while(|line| !line.contains(name)).skip(1);
        lines.next().unwrap().to_owned()
    };
    assert!(shown.contains("4.4 of 4"), "{shown}");
    assert!(
        of("● sandboxer01")
            .contains("mem 97% of 90  disk 41%  inodes 100% of 90  swap 100% of 100  clock -61s"),
        "{shown}"
    );
    assert!(of("● coulombcore").ends_with("│") && !of("● coulombcore").contains("swap"), "{shown}");
    let forbidden = HostView {
        message: Some("forbidden by the configuration: not ours".to_owned()),
        ..host("local", HostState::Forbidden, None)
    };
    check(&mut model, forbidden);
    let shown =
        shows(&mut model, (120, 36), &["– local", "forbidden by the configuration: not ours"]);
    insta::assert_snapshot!("hosts_zoomed", shown);
}

#[test]
fn the_strip_tells_of_the_row_under_the_cursor_and_which_keys_help() {
    let mut model = trouble();
    let mut strips = String::new();
    for _ in 0..7 {
        let shown = screen(&mut model, (120, 36));
        let strip = model.screen().strip;
        let lines = shown.lines().skip(usize::from(strip.y) - 1).take(4);
        writeln!(strips, "{}\n", lines.collect::<Vec<_>>().join("\n")).unwrap();
        press(&mut model, "j");
    }
    insta::assert_snapshot!("strips", strips);
    let mut model = model_of(lineage_world(now()));
    point_at(&mut model, "one");
    shows(&mut model, (120, 36), &["based on my-env with"]);
    press(&mut model, "3");
    assert!(screen(&mut model, (120, 36)).contains("ssh ops@"), "the host under the cursor");
}

#[test]
fn ten_thousand_rows_are_sorted_once_and_moved_one_by_one() {
    let mut model = world_model();
    list(&mut model, many(10_000, now()));
    press(&mut model, "G");
    let last = model.sandboxes.selected().unwrap().record.id.clone();
    // What changes one record moves that row and no other.
    let mut changed = model.sandboxes.shown()[5000].record.as_ref().clone();
    (changed.state, changed.revision) = (State::Failed, changed.revision + 1);
    let id = changed.id.clone();
    let before = ids(&model);
    hear(&mut model, Update::Record(Box::new(changed)));
    let after = ids(&model);
    assert_eq!(after[0], id.to_string());
    assert_eq!(after[1..=5000], before[..5000]);
    assert_eq!(after[5001..], before[5001..]);
    assert_eq!(model.sandboxes.selected().unwrap().record.id, last);
    assert_eq!(model.sandboxes.counts().failed, 1);
}
