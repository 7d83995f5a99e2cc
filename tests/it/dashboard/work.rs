//! Labels, shells, what other processes do, and services that die: keys, screens, and what the client is asked.

use std::time::Duration;

use super::drive::{
    Drive, check, hear, list, now, point_at, press, real_now, refused, screen, shows, toast,
    type_text, world_model,
};
use crate::test_env::fixture::{Fixture, ended, host, many, ready, record, service, world};
use sandboxer::client::{Client as _, Error, EventQuery, LabelRequest, ShellRequest, Update};
use sandboxer::domain::Time;
use sandboxer::domain::actor::{Actor, ActorType};
use sandboxer::domain::error::Code;
use sandboxer::domain::host_view::HostState;
use sandboxer::domain::name::OperationId;
use sandboxer::domain::operation::{
    CancelOutcome, Operation, OperationKind, OperationState, Subject,
};
use sandboxer::domain::patch::PatchState;
use sandboxer::domain::sandbox::State;
use sandboxer::tui::keymap::Mode;
use sandboxer::tui::model::{ActivityRow, Job, JobState, Model};
use sandboxer::tui::update::update;
use sandboxer::tui::{Effect, Msg, ShellEnd};

fn labels_asked(effects: &[Effect]) -> Vec<LabelRequest> {
    let request = |effect: &Effect| match effect {
        Effect::Label(request) => Some(request.clone()),
        _ => None,
    };
    effects.iter().filter_map(request).collect()
}

/// Operations of another process: on `77fe01aa`, which its record tells of too, and one that ended.
fn elsewhere(now: Time) -> Vec<Operation> {
    let nightly = Actor { kind: ActorType::Atm, name: "nightly".to_owned() };
    let running = Operation {
        kind: OperationKind::Recreate,
        subject: Subject::Sandbox("77fe01aa".into()),
        pid: 4711,
        host: "desk-2".to_owned(),
        actor: nightly.clone(),
        finished_at: None,
        started_at: now.minus_seconds(40),
        ..ended(&OperationId::from_random(7), OperationState::Running, now)
    };
    let over = Operation {
        subject: Subject::Sandbox("dead0000".into()),
        pid: 4712,
        host: "desk-2".to_owned(),
        actor: nightly,
        started_at: now.minus_seconds(900),
        finished_at: Some(now.minus_seconds(890)),
        ..ended(&OperationId::from_random(8), OperationState::Succeeded, now)
    };
    vec![over, running]
}

// ---- labels --------------------------------------------------------------------------------------------------------

#[test]
fn labels_are_set_removed_and_protected_in_one_form() {
    let mut model = world_model();
    point_at(&mut model, "e2e-core");
    press(&mut model, "L");
    assert_eq!(model.mode(), Mode::Form);
    insta::assert_snapshot!("labels_80x24", screen(&mut model, (80, 24)));
    press(&mut model, "backtab");
    type_text(&mut model, "Team=web");
    assert_eq!(press(&mut model, "enter"), []);
    assert!(screen(&mut model, (120, 36)).contains("✗ a label's key is"), "said beside the field");
    insta::assert_snapshot!("labels_wrong_100x30", screen(&mut model, (100, 30)));
    for _ in 0..8 {
        press(&mut model, "backspace");
    }
    type_text(&mut model, "zone=eu west");
    // Protected, and the label below it emptied.
    press(&mut model, "tab y tab backspace backspace backspace backspace");
    insta::assert_snapshot!("labels_changed", screen(&mut model, (120, 36)));
    // A refresh behind the form changes nothing of what it acts on.
    list(&mut model, Vec::new());
    let requests = labels_asked(&press(&mut model, "enter"));
    let [request] = &requests[..] else { panic!("{requests:?}") };
    assert_eq!((request.id.as_str(), request.revision), ("a1b2c3d4", Some(3)));
    let set: Vec<String> =
        request.set.iter().map(|(key, value)| format!("{key}={value}")).collect();
    assert_eq!(set, ["protect=true", "zone=eu west"]);
    assert_eq!(request.remove.iter().collect::<Vec<_>>(), ["team"]);
    assert_eq!(press(&mut model, "enter n x"), [], "asked once, and not changed under way");
}

#[test]
fn nothing_changed_asks_nothing_and_esc_leaves_without_a_trace() {
    let mut model = world_model();
    assert_eq!(press(&mut model, "L enter"), []);
    assert!(toast(&mut model).contains("nothing is changed"));
    assert_eq!(press(&mut model, "y esc"), []);
    assert!(model.overlays.is_empty());
}

#[tokio::test]
async fn a_conflict_is_shown_and_asked_again_after_a_look() {
    let records =
        ["aaaaaaaa", "bbbbbbbb"].map(|id| record(id, None, "x", "local", State::Ready, real_now()));
    let mut drive = Drive::new(Fixture { records: records.to_vec(), ..Fixture::default() }).await;
    drive.press("* L y");
    let labels = LabelRequest {
        id: "bbbbbbbb".to_owned(),
        set: std::collections::BTreeMap::from([("team".to_owned(), "core".to_owned())]),
        ..LabelRequest::default()
    };
    drive.env.other.label(labels).await.unwrap();
    drive.press("enter");
    drive.form_answered().await;
    let shown = drive.screen((100, 30));
    assert!(
        shown.contains("✗ bbbbbbbb  sandbox bbbbbbbb changed")
            && shown.contains("✓ aaaaaaaa  written"),
        "{shown}"
    );
    let revision = |model: &Model| model.sandboxes.get(&"bbbbbbbb".into()).unwrap().record.revision;
    drive.until("the newer record", |model| revision(model) >= 4).await;
    drive.press("ctrl-p enter");
    drive.until("the end", |model| model.overlays.is_empty()).await;
    for id in ["aaaaaaaa", "bbbbbbbb"] {
        assert!(drive.model.sandboxes.get(&id.into()).unwrap().record.is_protected(), "{id}");
    }
    assert!(drive.model.toast.as_ref().unwrap().text.contains("2 sandboxes are written"));
    let of = EventQuery { sandbox: Some("aaaaaaaa".into()), ..EventQuery::default() };
    let events = drive.env.client.events(of).await.unwrap();
    assert_eq!(events.len(), 1, "what is written is not written again: {events:?}");
}

// ---- shells --------------------------------------------------------------------------------------------------------

#[test]
fn a_shell_asks_where_and_the_workspace_comes_first() {
    let mut model = world_model();
    point_at(&mut model, "checkout");
    assert_eq!(press(&mut model, "!"), []);
    insta::assert_snapshot!("shell_where_80x24", screen(&mut model, (80, 24)));
    let workspace = ShellRequest { id: "5d20aa17".to_owned(), service: None };
    let shell = Effect::Shell(Box::new(workspace), "checkout".to_owned());
    assert_eq!(press(&mut model, "enter"), [shell]);
    let service = ShellRequest { id: "5d20aa17".to_owned(), service: Some("db".to_owned()) };
    let shell = Effect::Shell(Box::new(service), "checkout db".to_owned());
    assert_eq!(press(&mut model, "! G k j enter"), [shell]);
    // Without services there is nothing to ask.
    point_at(&mut model, "demo");
    assert!(matches!(&press(&mut model, "!")[..], [Effect::Shell(..)]));
}

#[test]
fn how_a_shell_ended_is_told() {
    let mut model = world_model();
    for (end, words) in [
        (ShellEnd::Left(0), "the shell in x ended"),
        (ShellEnd::Left(3), "the shell in x ended with status 3"),
        (ShellEnd::GivenUp, "the shell in x was not opened"),
    ] {
        update(&mut model, Msg::ShellEnded("x".to_owned(), end));
        assert_eq!(toast(&mut model), words);
    }
    let mut problem = Error::new(Code::HostUnreachable, "the connection of the shell in x failed");
    problem.causes = vec!["ssh: connect to host x port 22: Connection refused".to_owned()];
    update(&mut model, Msg::ShellEnded("x".to_owned(), ShellEnd::Failed(problem)));
    shows(&mut model, (100, 30), &["failed", "Connection refused"]);
}

// ---- read-only -----------------------------------------------------------------------------------------------------

#[test]
fn a_read_only_console_reads_logs_and_changes_nothing() {
    let mut model = world_model();
    refused(&mut model, "! L c");
    press(&mut model, "G");
    assert!(matches!(&press(&mut model, "l")[..], [Effect::Follow(..)]));
}

// ---- other processes -----------------------------------------------------------------------------------------------

#[test]
fn what_other_processes_do_is_listed_with_who_and_where() {
    let mut model = world_model();
    update(&mut model, Msg::Operations(Ok(elsewhere(now()))));
    shows(
        &mut model,
        (160, 36),
        &["1 running", "◐ recreate 77fe01aa", "by atm:nightly in process 47"],
    );
    press(&mut model, "J");
    insta::assert_snapshot!("jobs_elsewhere", screen(&mut model, (120, 36)));
    press(&mut model, "c");
    insta::assert_snapshot!("cancel_elsewhere_100x30", screen(&mut model, (100, 30)));
    let effects = press(&mut model, "tab enter");
    assert!(
        matches!(&effects[..], [Effect::Cancel(_, id)] if *id == OperationId::from_random(7)),
        "{effects:?}"
    );
    assert!(model.jobs.running().all(|job| job.state == JobState::Cancelling));
    // It is no job of this console: one can leave.
    press(&mut model, "esc");
    assert_eq!(press(&mut model, "q"), [Effect::Quit]);
    // Told by that process's record of it.
    let mut over = elsewhere(now());
    over[1].state = OperationState::Cancelled;
    over[1].finished_at = Some(now());
    update(&mut model, Msg::Operations(Ok(over)));
    assert_eq!(model.jobs.running().count(), 0);
}

#[test]
fn it_is_cancelled_from_the_list_and_from_the_activity_too() {
    for keys in ["c", "5 c", "enter c"] {
        let mut model = world_model();
        // The list can know of it before the operations are read: from the record alone.
        if keys.starts_with('5') {
            update(&mut model, Msg::Operations(Ok(elsewhere(now()))));
        }
        point_at(&mut model, "77fe01aa");
        press(&mut model, keys);
        let asks = screen(&mut model, (120, 36));
        assert!(asks.contains("It runs in process 4711 on desk-2, for atm:nightly"), "{keys}");
        let effects = press(&mut model, "tab enter");
        assert!(matches!(&effects[..], [Effect::Cancel(..)]), "{keys}: {effects:?}");
    }
}

#[test]
fn a_cancel_that_is_refused_is_said_and_it_runs_on() {
    let mut model = world_model();
    update(&mut model, Msg::Operations(Ok(elsewhere(now()))));
    press(&mut model, "5 c tab enter");
    let job = model.jobs.running().next().unwrap().id;
    update(&mut model, Msg::CancelAsked(job, Err(Error::new(Code::Conflict, "it has ended"))));
    assert_eq!(model.jobs.get(job).unwrap().state, JobState::Running);
    assert!(toast(&mut model).contains("it has ended"));
}

#[tokio::test]
async fn operations_are_read_when_a_record_tells_of_a_new_one() {
    let mut drive =
        Drive::new(Fixture { operations: elsewhere(real_now()), ..world(real_now()) }).await;
    drive.until("the operations", |model| model.jobs.running().count() == 1).await;
    let job = drive.model.jobs.running().next().unwrap();
    assert_eq!(job.external.as_ref().unwrap().pid, 4711);
    assert!(drive.model.jobs.running_here().next().is_none());
    assert_eq!(drive.model.jobs.list().len(), 2);
    // Read again: the same two.
    drive.press("J");
    drive.go_on(Duration::from_millis(50)).await;
    assert_eq!(drive.model.jobs.list().len(), 2);
}

/// Patches that another process applies, a verify, a deep check: their begin and their end have no event, and no record is read
/// for them.
#[test]
fn what_touches_no_record_is_seen_to_begin_and_to_end_and_can_be_cancelled() {
    for (kind, sandbox) in
        [(OperationKind::Patch, Some("a1b2c3d4".into())), (OperationKind::Check, None)]
    {
        let mut model = world_model();
        update(&mut model, Msg::Operations(Ok(Vec::new())));
        assert_eq!(hear(&mut model, Update::Operations), [Effect::Operations]);
        let subject = sandbox.clone().map_or(Subject::Host, Subject::Sandbox);
        let running = Operation { kind, subject, ..elsewhere(now()).remove(1) };
        let effects = update(&mut model, Msg::Operations(Ok(vec![running.clone()])));
        let gets: Vec<Effect> = sandbox.clone().map(Effect::Get).into_iter().collect();
        assert_eq!(effects, gets, "its record may say more");
        assert_eq!(model.jobs.running().count(), 1);
        if sandbox.is_some() {
            point_at(&mut model, "e2e-core");
            shows(&mut model, (160, 36), &["patch 40s by"]);
            press(&mut model, "c");
            assert!(matches!(&press(&mut model, "tab enter")[..], [Effect::Cancel(..)]));
        }
        assert_eq!(hear(&mut model, Update::Operations), [Effect::Operations]);
        let problem = CancelOutcome::Stopped.error("the script was cut off").hint("look at it");
        let ended = Operation {
            state: OperationState::Cancelled,
            cancel_outcome: Some(CancelOutcome::Stopped),
            error: Some(Box::new(problem)),
            finished_at: Some(now()),
            ..running
        };
        assert_eq!(update(&mut model, Msg::Operations(Ok(vec![ended.clone()]))), gets);
        assert_eq!(model.jobs.running().count(), 0);
        let job = model.jobs.list().next().unwrap();
        let words = model.job_words(job);
        assert!(words.ends_with("may be half done: the script was cut off; look at it"), "{words}");
        let told = model.job_sentence(job).unwrap();
        let is_told = model.toast.as_ref().is_some_and(|toast| toast.text == told);
        assert_eq!(is_told, sandbox.is_some(), "who asked is told");
        assert_eq!(model.activity.rows()[0], ActivityRow::Job(job.id));
        // Told once.
        let rows = model.activity.rows().len();
        update(&mut model, Msg::Operations(Ok(vec![ended])));
        assert_eq!(model.activity.rows().len(), rows);
    }
}

#[test]
fn an_own_operation_is_not_taken_for_another_processs() {
    let mut model = world_model();
    model.process = (4711, "desk-2".to_owned());
    update(&mut model, Msg::Operations(Ok(elsewhere(now()))));
    assert!(model.jobs.running().next().is_none());
}

// ---- services ------------------------------------------------------------------------------------------------------

#[tokio::test]
async fn services_are_asked_for_where_something_is_ready_and_never_twice_at_once() {
    let mut drive = Drive::new(world(real_now())).await;
    let script = std::sync::Arc::clone(&drive.env.script);
    let asked = || {
        let asked = script.asked().into_iter().filter(|asked| asked.starts_with("services"));
        let mut asked: Vec<String> = asked.collect();
        asked.sort();
        asked
    };
    drive.until_so("the question to each host", || asked().len() >= 3).await;
    drive.go_on(Duration::from_millis(100)).await;
    let hosts = ["services 1 on local", "services 1 on sandboxer01", "services 2 on coulombcore"];
    assert_eq!(asked(), hosts, "not the one that is down");
    // While one is under way the next ones are one.
    let name = sandboxer::domain::name::HostName::new("local");
    let view = host("local", HostState::Up, None);
    let effects: Vec<Effect> = (0..3)
        .flat_map(|_| check(&mut drive.model, view.clone()))
        .filter(|effect| matches!(effect, Effect::RefreshServices(_)))
        .collect();
    assert_eq!(effects, [Effect::RefreshServices(name.clone())]);
    let again = update(&mut drive.model, Msg::ServicesRefreshed(name.clone(), Ok(())));
    assert_eq!(again, [Effect::RefreshServices(name.clone())]);
    assert_eq!(update(&mut drive.model, Msg::ServicesRefreshed(name, Ok(()))), []);
}

#[test]
fn that_services_cannot_be_asked_for_is_no_popup_and_stands_in_the_details() {
    let mut model = world_model();
    let problem = Error::new(Code::Timeout, "docker ps took longer than 20 s");
    update(&mut model, Msg::ServicesRefreshed("coulombcore".into(), Err(problem)));
    assert!(model.toast.is_none() && model.overlays.is_empty());
    point_at(&mut model, "e2e-core");
    press(&mut model, "enter");
    assert!(screen(&mut model, (120, 90)).contains("cannot be asked for: docker ps took longer"));
}

#[test]
fn a_service_that_died_marks_its_row_and_the_header() {
    let mut model = world_model();
    let fine = ready(record("a1b2c3d4", Some("solo"), "x", "local", State::Ready, now()), now());
    list(&mut model, vec![fine.clone()]);
    assert!(!screen(&mut model, (100, 30)).contains("degraded"));
    let mut sick = fine;
    sick.revision += 1;
    sick.services = vec![service("web", "running", None), service("db", "exited", Some(137))];
    sick.services[1].restarts = Some(4);
    hear(&mut model, Update::Record(Box::new(sick.clone())));
    let shown = shows(&mut model, (100, 30), &["1 live  1 degraded"]);
    let row = shown.lines().find(|line| line.contains("solo")).unwrap();
    assert!(row.contains('⚠') && row.contains("degraded") && row.contains("db exit 137"), "{row}");
    press(&mut model, "enter");
    shows(&mut model, (100, 30), &["exited, exit 137, restarted 4 times"]);
    press(&mut model, "esc");
    // A patch that failed hides it not, nor is it hidden.
    sick.revision += 1;
    sick.patch_state = PatchState::Failed;
    sick.patch_error = Some("patch 2 (pat-00000002) failed with exit status 1".to_owned());
    hear(&mut model, Update::Record(Box::new(sick)));
    for (width, says) in [(120, "db exit 137"), (180, "db exit 137, patch failed")] {
        let shown = screen(&mut model, (width, 36));
        let row = shown.lines().find(|line| line.contains("solo")).unwrap();
        assert!(row.contains('⚠') && row.contains(says), "{row}");
    }
}

// ---- documentation -------------------------------------------------------------------------------------------------

/// `UPDATE=1` writes it.
#[test]
fn the_documented_keys_are_the_tables() {
    use std::fmt::Write as _;
    let map = sandboxer::tui::keymap::Keymap::new(&std::collections::BTreeMap::new()).unwrap();
    let mut text = "# Keys of the dashboard\n\nPrinted from its table of keys. An action is put on other keys in the configuration, by its name:\n`dashboard: {keys: {destroy: \"ctrl-x\"}}`.\n".to_owned();
    for mode in Mode::ALL {
        write!(text, "\n## {}\n\n| key | action | does |\n| --- | --- | --- |\n", mode.title())
            .unwrap();
        for row in sandboxer::tui::keymap::TABLE.iter().filter(|row| row.modes.contains(mode)) {
            let keys = map.spelled(*mode, row.action).replace('|', "\\|");
            let keys = keys.split(' ').map(|key| format!("`{key}`")).collect::<Vec<_>>().join(" ");
            writeln!(text, "| {keys} | `{}` | {} |", row.action.name(), row.help).unwrap();
        }
    }
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/keys.md");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(written, text, "docs/keys.md is not what the table says: UPDATE=1 writes it");
}

#[tokio::test]
async fn what_was_not_begun_when_the_terminal_is_gone_is_not_begun() {
    let mut drive =
        Drive::new(Fixture { records: many(3, real_now()), ..Fixture::default() }).await;
    drive.effects.begin_nothing();
    drive.press("* d tab enter");
    let is_skipped = |job: &&Job| matches!(job.state, JobState::Skipped(_));
    let skipped = |model: &Model| model.jobs.list().filter(is_skipped).count();
    drive.until("three skipped jobs", |model| skipped(model) == 3).await;
    assert_eq!(drive.asked("teardown"), Vec::<String>::new());
}

#[test]
fn the_form_of_a_deadline_shows_what_it_becomes_and_asks_for_it_as_shown() {
    let mut model = world_model();
    press(&mut model, "1 G k e");
    let drawn = screen(&mut model, (100, 30));
    assert!(drawn.contains("Extend") && drawn.contains("then   "), "{drawn}");
    let effects = press(&mut model, "enter");
    let [Effect::Extend(form, request)] = effects.as_slice() else { panic!("{effects:?}") };
    assert_eq!(request.by_s, Some(3600));
    assert!(request.expires_at.is_some(), "the deadline that was shown");
    let refused = Error::new(Code::Conflict, "the deadline changed since it was looked at");
    update(&mut model, Msg::Extended(*form, Err(refused)));
    assert!(screen(&mut model, (100, 30)).contains("changed since it was looked at"));
}
