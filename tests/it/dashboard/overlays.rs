//! Overlays that are read: their order, their search, the raw record, the host, the help, an error.

use sandboxer::domain::OperationKind;
use sandboxer::domain::error::{Code, Error};
use sandboxer::domain::facts::{Certificate, HostFacts};
use sandboxer::domain::host_view::HostState;
use sandboxer::domain::name::HostName;
use sandboxer::domain::sandbox::{Failure, State};
use sandboxer::domain::telemetry::HostSample;
use sandboxer::tui::keymap::{Action, Mode};
use sandboxer::tui::model::{Model, NodeId, Overlay, Role, line_text};
use sandboxer::tui::update::update;
use sandboxer::tui::{Effect, Msg};

use super::drive::{
    check, list, model_of, now, patch_status, patches, point_at, press, screen, type_text,
    world_model,
};
use crate::test_env::fixture::{self, facts, record, world};

/// The details of one that is ready, tall enough to be scrolled at 80x24.
fn details() -> Model {
    let mut model = model_of(fixture::lineage_world(now()));
    screen(&mut model, (80, 24));
    point_at(&mut model, "00000001");
    press(&mut model, "enter");
    model
}

fn offset(model: &Model) -> usize {
    model.overlays.last().unwrap().offset(usize::MAX)
}

fn sample(age_s: u64) -> HostSample {
    serde_json::from_value(serde_json::json!({
        "at": now().minus_seconds(age_s), "latency_ms": 12, "cpus": 8, "load1": 3.2,
        "mem_total_bytes": 34_359_738_368_u64, "mem_available_bytes": 10_995_116_277_u64,
        "swap_total_bytes": 0, "swap_free_bytes": 0,
        "disk": {"path": "/home/ops", "total_bytes": 107_374_182_400_u64, "used_bytes": 42_949_672_960_u64, "available_bytes": 64_424_509_440_u64,
                 "inodes": 1000, "inodes_free": 900},
        "uptime_s": 864_000, "clock_offset_s": -0.4
    }))
    .unwrap()
}

// ---- search --------------------------------------------------------------------------------------------------------

#[test]
fn a_search_counts_its_matches_and_walks_them_round_the_end() {
    let mut model = details();
    press(&mut model, "/");
    assert_eq!(model.mode(), Mode::SearchField);
    type_text(&mut model, "patch");
    let shown = screen(&mut model, (80, 24));
    let found = model.found();
    assert!(found.len() > 2, "{found:?}");
    assert!(shown.contains("/patch"), "{shown}");
    assert!(shown.contains(&format!("1 of {}", found.len())), "{shown}");
    press(&mut model, "enter");
    assert_eq!(model.mode(), Mode::TextBlock);
    for (keys, at) in [("n", 2), ("n", 3), ("N", 2), ("N", 1), ("N", found.len()), ("n", 1)] {
        press(&mut model, keys);
        let shown = screen(&mut model, (80, 24));
        let count = format!("/patch  {at} of {}", found.len());
        assert!(shown.contains(&count), "{keys}: {count}\n{shown}");
        let row = model.found()[model.search().unwrap().found.unwrap()];
        let height = usize::from(model.screen().overlay_text().height);
        assert!((offset(&model)..offset(&model) + height).contains(&row), "it is on the screen");
    }
    // Esc ends the search first, then closes.
    press(&mut model, "esc");
    assert!(model.search().is_none() && matches!(model.overlays.last(), Some(Overlay::Details(_))));
    press(&mut model, "esc");
    assert!(model.overlays.is_empty());
}

#[test]
fn a_search_that_is_left_goes_back_to_where_the_eye_was_and_one_in_vain_says_so() {
    let mut model = details();
    press(&mut model, "j j j");
    assert_eq!(offset(&model), 3);
    press(&mut model, "/");
    type_text(&mut model, "figures");
    assert!(offset(&model) > 3);
    press(&mut model, "esc");
    assert_eq!((offset(&model), model.overlays.len()), (3, 1));
    assert!(model.search().is_none());
    press(&mut model, "/");
    type_text(&mut model, "Figures OF nothing");
    assert!(screen(&mut model, (80, 24)).contains("none"));
    press(&mut model, "enter");
    assert_eq!(model.toast.as_ref().map(|toast| toast.role), Some(Role::Warn));
    // In a text field only enter, esc, tab and ctrl-c leave.
    press(&mut model, "/");
    type_text(&mut model, "q?dB:");
    press(&mut model, "ctrl-d");
    assert_eq!((model.mode(), model.overlays.len()), (Mode::SearchField, 1));
    press(&mut model, "ctrl-c");
    assert_eq!((model.mode(), model.overlays.len()), (Mode::TextBlock, 1));
}

#[test]
fn capitals_count_once_one_is_typed() {
    let mut model = details();
    let count = |model: &mut Model, text: &str| {
        press(model, "/");
        type_text(model, text);
        let count = model.found().len();
        press(model, "esc");
        count
    };
    assert!(count(&mut model, "timeline") >= 1);
    assert_eq!(count(&mut model, "TIMELINE"), 0);
    assert!(count(&mut model, "Timeline") >= 1);
}

#[test]
fn a_search_is_in_every_overlay_that_is_read_or_is_a_list() {
    let mut model = model_of(fixture::lineage_world(now()));
    let job = model.jobs.start(OperationKind::Check, None, "coulombcore".to_owned(), model.now);
    for line in ["one", "two refused", "three"] {
        model.jobs.get_mut(job).unwrap().write(line);
    }
    model.jobs.start(OperationKind::Wake, None, "shop".to_owned(), model.now);
    let found = |model: &mut Model, text: &str| {
        press(model, "/");
        assert_eq!(model.mode(), Mode::SearchField, "{:?}", model.overlays.last());
        type_text(model, text);
        press(model, "enter");
        let shown = screen(model, (80, 24));
        let count =
            shown.lines().any(|line| line.contains(&format!("/{text}  ")) && line.contains(" of "));
        assert!(count, "{text}: {shown}");
    };
    press(&mut model, "?");
    found(&mut model, "suspend");
    press(&mut model, "esc esc J");
    found(&mut model, "coulomb");
    let at = match model.overlays.last() {
        Some(Overlay::Jobs(at)) => *at,
        other => panic!("{other:?}"),
    };
    assert_eq!(model.jobs.list().nth(at).unwrap().id, job, "the cursor is on what was found");
    press(&mut model, "esc enter");
    found(&mut model, "refused");
    let held = matches!(model.overlays.last(), Some(Overlay::Output(_, Some(_))));
    assert!(held, "it follows no more");
    press(&mut model, "esc esc esc 2");
    model.snapshots.point_at(NodeId::Snapshot("snap-0000000a".into()));
    press(&mut model, "enter");
    assert!(matches!(model.overlays.last(), Some(Overlay::Snapshot(_))));
    found(&mut model, "my-env");
    press(&mut model, "v");
    found(&mut model, "revision");
    press(&mut model, "esc esc esc esc p");
    let id = patches(&model).snapshot.clone();
    let status = patch_status(&fixture::lineage_world(now()), id.as_str());
    update(&mut model, Msg::PatchStatus(id, Ok(status)));
    found(&mut model, "feature");
}

#[test]
fn each_overlay_has_its_own_search() {
    let mut model = details();
    press(&mut model, "/");
    type_text(&mut model, "patch");
    press(&mut model, "enter ?");
    assert!(model.search().is_none(), "the help has none");
    press(&mut model, "/");
    type_text(&mut model, "mark");
    press(&mut model, "enter q q");
    assert_eq!(model.search().map(|search| search.pattern.text()), Some("patch"));
}

// ---- details -------------------------------------------------------------------------------------------------------

/// Headings of the overlay on top.
fn headings(model: &Model) -> Vec<String> {
    let block = model.block().unwrap();
    let titles = block.lines.iter().filter(|line| {
        line.first().is_some_and(|(role, text)| *role == Role::Title && !text.starts_with(' '))
    });
    titles.map(|line| line_text(line)).collect()
}

#[test]
fn details_tell_the_failure_from_its_end_and_their_parts_in_order() {
    let steps: Vec<String> = (1..=30).map(|step| format!("Step {step}")).collect();
    let mut output = steps.join("\n") + "\n";
    output.push_str(
        "podman run --name=web -d --label a=b --label c=d --label e=f localhost/nosuch\n",
    );
    output.push_str("Error: connection refused\nexit code: 125\n");
    let mut broken =
        record("0b1c2d3e", Some("nightly"), "compose-e2e", "coulombcore", State::Failed, now());
    broken.failure = Some(Failure { step: "up".to_owned(), exit_status: Some(125), output });
    broken.leftovers =
        serde_json::from_value(serde_json::json!([{"kind": "network", "id": "n1"}])).unwrap();
    let rewrites = serde_json::json!([{"path": "services.web", "what": "labels added"}]);
    broken.rewrites = serde_json::from_value(rewrites).unwrap();
    let mut scenario = world(now());
    scenario.records = vec![broken];
    let mut model = model_of(scenario);
    update(&mut model, Msg::HostSampled(HostName::new("coulombcore"), Ok(Box::new(sample(4)))));
    press(&mut model, "enter");
    let order = headings(&model);
    let place = |heading: &str| {
        let at = order.iter().position(|own| own.starts_with(heading));
        at.unwrap_or_else(|| panic!("{heading}: {order:?}"))
    };
    let wanted = [
        "Failure",
        "Timeline",
        "Changed in the compose file",
        "Left on coulombcore",
        "Host coulombcore",
        "Figures, 4s ago",
    ];
    assert!(wanted.map(place).is_sorted(), "{order:?}");
    let lines: Vec<String> =
        model.block().unwrap().lines.iter().map(|line| line_text(line).trim().to_owned()).collect();
    let at = lines.iter().position(|line| line == "Failure").unwrap();
    assert_eq!(lines[at + 1], "Error: connection refused", "why comes first");
    assert_eq!(lines[at + 2], "step          up, exit 125");
    assert_eq!(lines[at + 4], "21 earlier lines: in its output, or in the raw record");
    let end: Vec<&str> = lines[at + 5..at + 17].iter().map(String::as_str).collect();
    assert_eq!(
        end[8..],
        [
            "Step 30",
            "podman run --name=web … (8 more words)",
            "Error: connection refused",
            "exit code: 125"
        ]
    );
    // The host's latest figures, not those of the creation.
    assert!(lines.iter().any(|line| line.contains("68% used, 10G free of 32G")), "{lines:#?}");
}

#[test]
fn the_raw_record_is_yaml_and_is_copied_clean() {
    let mut model = world_model();
    point_at(&mut model, "a1b2c3d4");
    press(&mut model, "enter v");
    let shown = screen(&mut model, (120, 36));
    for line in ["id: a1b2c3d4", "name: e2e-core", "team: core", "revision: 3"] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
    let effects = press(&mut model, "y");
    let [Effect::Copy(copied)] = effects.as_slice() else { panic!("{effects:?}") };
    assert!(copied.starts_with("id: a1b2c3d4\n"), "{copied}");
    // Parts that are kept as JSON text are YAML too, and an escape sequence of others reaches no clipboard.
    let mut wicked = record("0badc0de", None, "sandbox-canary", "local", State::Ready, now());
    let (runtime, ps_format, findings) = (None, None, Vec::new());
    let certificate =
        Certificate { at: now(), runtime, exit_codes_trusted: Some(true), ps_format, findings };
    wicked.certificate = sandboxer::domain::raw_json::RawJson::new(&certificate).ok();
    wicked.message = Some("a\u{1b}]52;c;eA==\u{7}b\u{202e}".to_owned());
    list(&mut model, vec![wicked]);
    press(&mut model, "esc esc g enter v");
    let effects = press(&mut model, "y");
    let [Effect::Copy(copied)] = effects.as_slice() else { panic!("{effects:?}") };
    assert!(!copied.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{copied}");
    assert!(copied.contains("exit_codes_trusted: true"), "{copied}");
}

// ---- a host --------------------------------------------------------------------------------------------------------

#[test]
fn a_host_that_is_down_says_why_what_to_do_and_when_it_is_tried_next() {
    let mut model = world_model();
    press(&mut model, ":");
    type_text(&mut model, "host vm-h");
    press(&mut model, "enter");
    assert!(matches!(model.overlays.last(), Some(Overlay::Host(_))), "{:?}", model.overlays);
    check(&mut model, fixture::host("vm-haskell", HostState::Down, None));
    model.toast = None;
    insta::assert_snapshot!("host_down_80x24", screen(&mut model, (80, 24)));
}

#[test]
fn a_host_tells_its_figures_its_facts_and_what_is_on_it() {
    let mut scenario = world(now());
    let mut said: HostFacts = facts("coulombcore", now().minus_seconds(40));
    let inventory = serde_json::json!({
        "sandboxes": [
            {"sandbox_id": "a1b2c3d4", "owner": "owner-1", "directory": "/home/ops/sandboxes/sbx-a1b2c3d4",
             "containers": ["web", "db"], "networks": ["n"], "volumes": [], "bytes": 125_829_120},
            {"sandbox_id": "feedf00d", "owner": "owner-2", "directory": "/home/ops/sandboxes/sbx-feedf00d",
             "containers": [], "networks": [], "volumes": ["v"], "created_at": now().minus_seconds(260_000)}
        ],
        "archives": [{"snapshot_id": "snap-0000000a", "sandbox_id": "a1b2c3d4", "owner": "owner-1",
                      "directory": "/home/ops/sandboxes/snapshots/snap-0000000a",
                      "created_at": now().minus_seconds(7_400), "bytes": 1_288_490_189_u64}],
        "networks": [{"engine": "docker", "used": 29, "left": 2}, {"engine": "podman", "used": 1, "left": null}]
    });
    said.inventory = serde_json::from_value(inventory).unwrap();
    scenario.hosts[0].facts = Some(said);
    let mut model = model_of(scenario);
    update(&mut model, Msg::HostSampled(HostName::new("coulombcore"), Ok(Box::new(sample(2)))));
    point_at(&mut model, "a1b2c3d4");
    press(&mut model, "enter h");
    insta::assert_snapshot!("host_120x36", screen(&mut model, (120, 36)));
    press(&mut model, "v");
    assert!(screen(&mut model, (80, 24)).contains("coulombcore: as it was seen last"));
}

#[test]
fn enter_on_a_row_of_the_hosts_opens_that_host() {
    let mut model = world_model();
    press(&mut model, "3 g j enter");
    let opened = model.hosts.selected().unwrap().view.name.clone();
    assert!(matches!(model.overlays.last(), Some(Overlay::Host(host)) if host.name == opened));
}

// ---- help ----------------------------------------------------------------------------------------------------------

#[test]
fn the_help_opens_at_the_mode_one_is_in_and_explains_every_sign() {
    let mut model = details();
    let first = |model: &mut Model| {
        let shown = screen(model, (80, 24));
        shown.lines().nth(2).unwrap_or_default().trim_matches(['│', ' ']).to_owned()
    };
    press(&mut model, "?");
    assert_eq!(first(&mut model), Mode::TextBlock.title());
    press(&mut model, "q q J ?");
    assert_eq!(first(&mut model), Mode::Jobs.title());
    press(&mut model, "q q ?");
    assert_eq!(first(&mut model), Mode::Main.title());
    let block = model.block().unwrap();
    let help: Vec<String> = block.lines.iter().map(|line| line_text(line)).collect();
    let at = help.iter().position(|line| line == "Signs").unwrap();
    for state in State::ALL {
        let sign = sandboxer::tui::model::state_glyph(state).to_string();
        let told = |line: &String| line.contains(&sign) && line.contains(state.as_str());
        assert!(help[at..].iter().any(told), "{state}");
    }
}

// ---- an error ------------------------------------------------------------------------------------------------------

#[test]
fn an_error_says_code_sentence_causes_and_hint_and_is_copied() {
    let mut model = world_model();
    let mut problem = Error::new(Code::OperationFailed, "the stack could not be started")
        .hint("look at its output");
    problem.causes = vec!["exit 125".to_owned()];
    model.overlays.push(Overlay::Error(problem, 0));
    let shown = screen(&mut model, (80, 24));
    let sentence = "the stack could not be started";
    for part in ["operation_failed", sentence, "exit 125", "look at its output", "copy"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let effects = press(&mut model, "y");
    assert_eq!(effects, [Effect::Copy("the stack could not be started\nexit 125".to_owned())]);
    assert!(model.keymap.first(Mode::TextBlock, Action::Logs).is_some());
}
