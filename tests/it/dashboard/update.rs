//! Answers of the dashboard to keys and messages: the pure update, and update with effects on a real client.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::drive::{
    Drive, check, confirm, event, form, hear, list, model_with, now, press_beyond_folders as press,
    progress, real_now, refused, screen, started, type_text,
};
use crate::test_env::fixture::{Fixture, host, many, profiles, ready, record, world};
use crate::test_env::script::{Act, Scripted};

use futures_util::FutureExt as _;
use sandboxer::client::{CreateRequest, Error, LabelRequest, Record, Request, Started, Update};
use sandboxer::domain::error::Code;
use sandboxer::domain::host_view::HostState;
use sandboxer::domain::name::{OperationId, SandboxId};
use sandboxer::domain::operation::{CancelOutcome, OperationKind};
use sandboxer::domain::reporter::Report;
use sandboxer::domain::sandbox::{Failure, SandboxRecord, State};
use sandboxer::domain::update::Progress;
use sandboxer::tui::keymap::Mode;
use sandboxer::tui::model::{
    ActivityRow, Entry, Filter, FormKind, JobState, Load, Model, Overlay, Plan, Sort, SortKey,
};
use sandboxer::tui::update::update;
use sandboxer::tui::{Effect, Msg, Timer};

fn selected(model: &Model) -> String {
    model.sandboxes.selected().map(|entry| entry.record.id.to_string()).unwrap_or_default()
}

fn four() -> Vec<SandboxRecord> {
    [
        ("aaaaaaaa", "delta", 40),
        ("bbbbbbbb", "alpha", 30),
        ("cccccccc", "gamma", 20),
        ("dddddddd", "beta", 10),
    ]
    .into_iter()
    .map(|(id, name, ago)| {
        let mut record = record(id, Some(name), "compose-e2e", "local", State::Ready, now());
        record.created_at = now().minus_seconds(ago);
        record
    })
    .collect()
}

/// Targets and revisions of the destroys among effects.
fn destroyed(effects: &[Effect]) -> Vec<(String, Option<u64>)> {
    let of = |request: &Request| match request {
        Request::Destroy(request) => Some((request.id.clone(), request.revision)),
        _ => None,
    };
    started(effects).into_iter().filter_map(of).collect()
}

#[test]
fn cursor_and_marks_follow_the_id_through_sort_filter_and_refresh() {
    let mut model = model_with(four());
    press(&mut model, "j space");
    press(&mut model, "k");
    assert_eq!(selected(&model), "cccccccc");
    for key in SortKey::ALL {
        for descending in [false, true] {
            model.sandboxes.set_sort(Sort { key: *key, descending });
            assert_eq!(selected(&model), "cccccccc", "{key:?} {descending}");
        }
    }
    // A refresh in another order, with a new one on top.
    let mut records = four();
    records.reverse();
    let later = now().plus_seconds(5);
    records.push(record("eeeeeeee", None, "compose-e2e", "local", State::Ready, later));
    list(&mut model, records);
    assert_eq!(selected(&model), "cccccccc");
    // Hidden by a filter, then back.
    model.sandboxes.set_filter(Filter::parse("alpha"));
    assert_eq!(selected(&model), "bbbbbbbb");
    model.sandboxes.set_filter(Filter::default());
    assert_eq!(selected(&model), "cccccccc");
    let marks: Vec<_> = model.sandboxes.marks.ids().iter().map(SandboxId::as_str).collect();
    assert_eq!(marks, ["cccccccc"]);
}

#[test]
fn one_changed_record_moves_nothing_but_itself() {
    let mut model = model_with(four());
    press(&mut model, "G");
    assert_eq!(selected(&model), "aaaaaaaa");
    let mut newer = four().remove(3);
    newer.revision += 1;
    newer.name = Some("zeta".to_owned());
    model.sandboxes.set_sort(Sort { key: SortKey::Name, descending: false });
    update(&mut model, Msg::Got(newer.id.clone(), Ok(Box::new(Entry::new(newer)))));
    let order: Vec<&str> =
        model.sandboxes.shown().iter().filter_map(|entry| entry.record.name.as_deref()).collect();
    assert_eq!(order, ["alpha", "delta", "gamma", "zeta"]);
    assert_eq!(selected(&model), "aaaaaaaa");
    // An older answer that comes late changes nothing.
    let late = four().remove(3);
    update(&mut model, Msg::Got(late.id.clone(), Ok(Box::new(Entry::new(late)))));
    assert_eq!(model.sandboxes.shown()[3].record.name.as_deref(), Some("zeta"));
}

#[test]
fn one_that_is_over_leaves_and_the_cursor_stays_in_place() {
    let mut model = model_with(four());
    press(&mut model, "j");
    let mut gone = four().remove(2);
    gone.revision += 1;
    gone.state = State::Destroyed;
    update(&mut model, Msg::Got(gone.id.clone(), Ok(Box::new(Entry::new(gone)))));
    assert_eq!(model.sandboxes.len(), 3);
    assert_eq!(selected(&model), "bbbbbbbb");
    assert_eq!(model.sandboxes.window.index, 1);
}

#[test]
fn the_dialog_acts_on_exactly_what_it_named() {
    let mut model = model_with(four());
    press(&mut model, "space space d");
    assert_eq!(model.mode(), Mode::Confirm);
    // Everything changes behind the dialog: order, revisions, one is gone.
    let mut records = four();
    records.remove(3);
    for record in &mut records {
        record.revision = 99;
    }
    list(&mut model, records);
    let effects = press(&mut model, "tab enter");
    assert_eq!(
        destroyed(&effects),
        [("dddddddd".to_owned(), Some(3)), ("cccccccc".to_owned(), Some(3))]
    );
    assert_eq!(model.jobs.running().count(), 2);
    assert!(model.sandboxes.marks.is_empty());
}

#[test]
fn the_harmless_button_has_the_focus() {
    let mut model = model_with(four());
    for keys in ["d enter", "B enter", "d d esc", "d tab tab enter"] {
        assert_eq!(destroyed(&press(&mut model, keys)), [], "{keys}");
        assert!(model.overlays.is_empty(), "{keys}");
    }
    assert_eq!(destroyed(&press(&mut model, "d tab enter")).len(), 1);
}

#[test]
fn many_targets_ask_for_their_number() {
    let mut model = model_with(many(7, now()));
    press(&mut model, "* d");
    assert_eq!(destroyed(&press(&mut model, "tab enter")), [], "nothing was typed");
    type_text(&mut model, "6");
    assert_eq!(destroyed(&press(&mut model, "enter")), [], "another number was typed");
    assert_eq!(update(&mut model, Msg::Paste("7".to_owned())), [], "it is typed, not pasted");
    press(&mut model, "backspace");
    type_text(&mut model, "7");
    assert_eq!(destroyed(&press(&mut model, "enter")).len(), 7);
}

#[test]
fn a_protected_one_asks_for_its_id_and_no_bulk_takes_it() {
    let mut records = four();
    records[3].labels.insert("protect".to_owned(), "true".to_owned());
    let mut model = model_with(records);
    press(&mut model, "d tab");
    assert_eq!(destroyed(&press(&mut model, "enter")), []);
    type_text(&mut model, "dddddddd");
    let effects = press(&mut model, "enter");
    assert!(
        matches!(&effects[..], [Effect::Start(_, Request::Destroy(request))] if request.force_protected)
    );

    press(&mut model, "* d");
    let effects = press(&mut model, "tab enter");
    assert_eq!(destroyed(&effects).len(), 3);
    assert!(destroyed(&effects).iter().all(|(id, _)| id != "dddddddd"));
}

#[test]
fn a_silent_host_makes_it_ask_twice() {
    let mut model = model_with(four());
    update(&mut model, Msg::Hosts(Ok(vec![host("local", HostState::Unknown, None)])));
    let down = host("local", HostState::Down, None);
    check(&mut model, down);
    assert_eq!(destroyed(&press(&mut model, "d tab enter")), []);
    assert!(confirm(&model).again);
    assert_eq!(confirm(&model).focus, 0, "on the harmless button again");
    assert_eq!(destroyed(&press(&mut model, "tab enter")).len(), 1);
}

#[test]
fn recreate_leaves_out_what_cannot_be_recreated() {
    let mut records = four();
    records[3].state = State::Provisioning;
    let mut model = model_with(records);
    press(&mut model, "* B");
    let effects = press(&mut model, "tab enter");
    let begun = started(&effects);
    assert!(begun.len() == 3 && begun.iter().all(|it| matches!(it, Request::Recreate(..))));
    press(&mut model, "d esc");
}

#[test]
fn quit_asks_while_jobs_run_and_leaves_when_they_ended() {
    let mut model = model_with(four());
    assert_eq!(press(&mut model, "q"), [Effect::Quit]);
    press(&mut model, "d tab enter");
    let job = model.jobs.running().next().unwrap().id;
    assert_eq!(press(&mut model, "q"), []);
    // Staying is the default.
    assert_eq!(press(&mut model, "enter"), []);
    assert!(model.leaving.is_none());
    // Waiting: the end of the job is the end of the console.
    assert_eq!(press(&mut model, "q tab enter"), []);
    let effects =
        update(&mut model, Msg::Ended(job, Err(Error::new(Code::OperationFailed, "no")), None));
    assert!(effects.contains(&Effect::Quit));
}

#[test]
fn quit_can_roll_back_first_even_before_the_operation_has_an_id() {
    let mut model = model_with(four());
    press(&mut model, "d tab enter");
    let job = model.jobs.running().next().unwrap().id;
    assert_eq!(press(&mut model, "q tab tab enter"), []);
    let operation = OperationId::from_random(5);
    let started = Started { operation: Some(operation.clone()), record: four().remove(3).into() };
    let effects = update(&mut model, Msg::Started(job, Ok(Box::new(started))));
    assert!(effects.contains(&Effect::Cancel(job, operation)));
    let effects = update(
        &mut model,
        Msg::Ended(job, Err(CancelOutcome::Undone.error("nothing was removed")), None),
    );
    assert!(effects.contains(&Effect::Quit));
    assert!(matches!(model.jobs.get(job).unwrap().state, JobState::Undone(_)));
}

#[test]
fn a_paste_goes_only_into_text_fields() {
    let mut model = model_with(four());
    assert_eq!(update(&mut model, Msg::Paste("dq\nB".to_owned())), []);
    assert!(model.overlays.is_empty());
    press(&mut model, "/");
    update(&mut model, Msg::Paste("al\u{1b}pha\n".to_owned()));
    assert_eq!(model.sandboxes.filter().text(), "alpha");
    assert_eq!(model.sandboxes.shown().len(), 1);
    press(&mut model, "esc");
    assert_eq!(model.sandboxes.shown().len(), 4);
}

#[test]
fn read_only_refuses_and_says_so() {
    refused(&mut model_with(four()), "n d B c s r z w e");
}

#[test]
fn a_frozen_display_holds_changes_back_and_reads_again_after() {
    let mut model = model_with(four());
    press(&mut model, "f");
    list(&mut model, Vec::new());
    assert_eq!(model.sandboxes.len(), 4);
    assert_eq!(model.frozen, Some(1));
    assert!(press(&mut model, "f").contains(&Effect::List));
    list(&mut model, Vec::new());
    assert_eq!(model.sandboxes.len(), 0);
}

#[test]
fn a_failed_read_keeps_the_rows_and_says_so() {
    let mut model = model_with(four());
    update(&mut model, Msg::Listed(Err(Error::new(Code::StoreCorrupt, "cannot be parsed"))));
    assert_eq!(model.sandboxes.len(), 4);
    assert!(matches!(model.sandboxes.load, Load::Failed(_)));
}

fn extended(seq: u64, id: &str) -> Update {
    Update::Event(event(seq, "sandbox.extended", Some(id)))
}

#[test]
fn events_are_gathered_and_a_storm_is_one_list() {
    let mut model = model_with(four());
    let effects: Vec<Effect> =
        (0..20).flat_map(|seq| hear(&mut model, extended(seq + 1, "aaaaaaaa"))).collect();
    assert_eq!(effects.len(), 1, "one reminder for all of them");
    assert_eq!(update(&mut model, Msg::Due(Timer::Fetch)), [Effect::Get("aaaaaaaa".into())]);
    for number in 0..40 {
        hear(&mut model, extended(100 + number, &format!("{number:08x}")));
    }
    assert_eq!(update(&mut model, Msg::Due(Timer::Fetch)), [Effect::List]);
}

#[test]
fn the_same_event_twice_is_one_line() {
    let mut model = model_with(four());
    hear(&mut model, extended(7, "aaaaaaaa"));
    hear(&mut model, extended(7, "aaaaaaaa"));
    assert_eq!(model.activity.lines().len(), 1);
}

#[test]
fn progress_that_comes_before_the_answer_is_the_same_job() {
    let mut model = model_with(Vec::new());
    let operation = OperationId::from_random(9);
    update(&mut model, Msg::Profiles(Ok(Vec::new())));
    press(&mut model, "n");
    update(&mut model, Msg::Profiles(Ok(profiles())));
    press(&mut model, "enter");
    let effects = press(&mut model, "enter");
    let [Effect::Start(job, Request::Create(_))] = &effects[..] else { panic!("{effects:?}") };
    let progress = progress(OperationKind::Create, "12345678", "prepare", 1);
    hear(&mut model, Update::Progress(Progress { operation: operation.clone(), ..progress }));
    assert_eq!(model.jobs.list().len(), 2);
    let sandbox = record("12345678", None, "sandbox-canary", "local", State::Requested, now());
    let started = Started { operation: Some(operation), record: sandbox.into() };
    update(&mut model, Msg::Started(*job, Ok(Box::new(started))));
    assert_eq!(model.jobs.list().len(), 1);
    assert_eq!(model.jobs.get(*job).unwrap().stage.as_ref().unwrap().0, "prepare");
    assert_eq!(selected(&model), "12345678", "the cursor is on the new one");
    assert!(model.overlays.is_empty());
}

fn plan(model: &Model) -> &Plan {
    match &form(model).kind {
        FormKind::Create(create) => &create.plan,
        other => panic!("no create: {other:?}"),
    }
}

#[test]
fn a_field_is_checked_as_it_is_typed_and_missing_ones_at_the_end() {
    let mut model = model_with(Vec::new());
    press(&mut model, "n");
    update(&mut model, Msg::Profiles(Ok(profiles())));
    press(&mut model, "tab enter");
    assert_eq!(press(&mut model, "enter"), [], "repo is required");
    assert_eq!(form(&model).fields.list[0].error.as_deref(), Some("is required"));
    type_text(&mut model, "/srv/app");
    assert_eq!(form(&model).fields.list[0].error, None);
    press(&mut model, "tab tab tab tab");
    type_text(&mut model, "4");
    assert!(form(&model).fields.list[4].error.as_deref().unwrap().contains("no unit"));
    assert_eq!(*plan(&model), Plan::Unasked);
    let effects = type_text(&mut model, "h");
    assert!(
        matches!(&effects[..], [Effect::After(..)]),
        "a plan is asked for after a pause: {effects:?}"
    );
    let effects = press(&mut model, "enter enter");
    let [Effect::Start(_, Request::Create(request))] = &effects[..] else {
        panic!("one create for two keys: {effects:?}")
    };
    assert_eq!(request.inputs, BTreeMap::from([("repo".to_owned(), "/srv/app".to_owned())]));
    assert_eq!(request.ttl.as_deref(), Some("4h"));
}

#[test]
fn a_refusal_stands_at_the_field_that_it_names() {
    let mut model = model_with(Vec::new());
    press(&mut model, "n");
    update(&mut model, Msg::Profiles(Ok(profiles())));
    press(&mut model, "enter");
    let effects = press(&mut model, "enter");
    let [Effect::Start(job, Request::Create(_))] = &effects[..] else { panic!("{effects:?}") };
    let mut problem = Error::new(Code::Conflict, "the name is taken").hint("choose another");
    problem.details = serde_json::json!({"field": "name"});
    update(&mut model, Msg::Started(*job, Err(problem)));
    let form = form(&model);
    assert_eq!(form.fields.list[form.fields.focus].label(), "name");
    assert_eq!(
        form.fields.list[form.fields.focus].error.as_deref(),
        Some("the name is taken (choose another)")
    );
    assert!(!form.is_asked());
}

#[test]
fn the_filter_takes_words_and_fields() {
    let mut records = four();
    records[0].host = "coulombcore".into();
    records[1].labels.insert("team".to_owned(), "Core".to_owned());
    records[2].state = State::Failed;
    records[3].profile.id = sandboxer::domain::ProfileId::new("profile.vm-haskell-build");
    let mut model = model_with(records);
    for (filter, expected) in [
        ("dlt", "aaaaaaaa"),
        ("bbbb", "bbbbbbbb"),
        ("host:coul", "aaaaaaaa"),
        ("label:team=core", "bbbbbbbb"),
        ("label:team", "bbbbbbbb"),
        ("state:fail", "cccccccc"),
        ("profile:profile.vm", "dddddddd"),
        ("host:local profile:comp alp", "bbbbbbbb"),
        ("nothing", ""),
    ] {
        model.sandboxes.set_filter(Filter::parse(filter));
        let shown: Vec<&str> =
            model.sandboxes.shown().iter().map(|entry| entry.record.id.as_str()).collect();
        assert_eq!(shown.join(" "), expected, "{filter}");
    }
}

#[test]
fn what_is_copied_cannot_bring_an_escape_sequence_into_a_shell() {
    let mut records = four();
    let last = ready(records.remove(3), now());
    records.push(last);
    records[3].reachability.as_mut().unwrap().ssh = "ssh a\u{1b}]0;x\u{7}\nrm -r x".to_owned();
    let mut model = model_with(records);
    press(&mut model, "g");
    assert_eq!(press(&mut model, "Y"), [Effect::Copy("ssh a rm -r x".to_owned())]);
}

/// Opens the choice of a profile, and waits until they are read.
async fn choosing(drive: &mut Drive) {
    drive.press("n");
    let read = |model: &Model| matches!(model.overlays.last(), Some(Overlay::Picker(picker)) if picker.load == Load::Ready);
    drive.until("the profiles", read).await;
}

#[tokio::test]
async fn a_create_goes_from_the_form_to_ready() {
    let script = Scripted::default();
    let stages = ["prepare", "transfer", "start"];
    *script.progress.lock().unwrap() = (1..)
        .zip(stages)
        .map(|(step, stage)| Report { stage, step, steps: 3, ..Report::default() })
        .collect();
    let mut drive = Drive::scripted(Fixture::default(), script).await;
    choosing(&mut drive).await;
    drive.press("enter");
    drive.until("a plan", |model| matches!(plan(model), Plan::Known(_))).await;
    drive.press("enter");
    drive.jobs_end().await;
    let job = drive.model.jobs.list().next().unwrap();
    assert_eq!(job.state, JobState::Succeeded);
    assert!(job.output.iter().any(|line| line == "[2/3] transfer"), "{:?}", job.output);
    let row = drive.model.sandboxes.selected().unwrap();
    assert_eq!(row.record.state, State::Ready);
    // The sentence of its end says as exactly as its row how long it took.
    let drawn = screen(&mut drive.model, (120, 36));
    let told = drawn.split("done in ").nth(1).and_then(|rest| rest.split_whitespace().next());
    let told = told.unwrap_or_else(|| panic!("{drawn}"));
    assert!(told.ends_with("ms") && drawn.matches(told).count() == 2, "{told}: {drawn}");
}

#[tokio::test]
async fn a_panic_in_a_task_is_a_failed_job() {
    let mut drive = Drive::new(Fixture::default()).await;
    choosing(&mut drive).await;
    let panics = async { panic!("a scripted panic") };
    drive.env.script.before_lock.lock().unwrap().push_back(panics.boxed());
    drive.press("enter enter");
    drive.jobs_end().await;
    let job = drive.model.jobs.list().next().unwrap();
    let JobState::Failed(problem) = &job.state else { panic!("{:?}", job.state) };
    assert_eq!(problem.code, Code::Internal);
    assert_eq!(problem.causes, ["a scripted panic"]);
    assert!(
        matches!(drive.model.overlays.last(), Some(Overlay::Form(form)) if form.error.is_some() && !form.is_asked())
    );
}

#[tokio::test]
async fn a_target_that_changed_meanwhile_is_skipped_and_said() {
    let mut drive = Drive::new(Fixture { records: four(), ..Fixture::default() }).await;
    drive.press("space space d");
    let labels = LabelRequest {
        id: "dddddddd".to_owned(),
        set: BTreeMap::from([("team".to_owned(), "core".to_owned())]),
        ..LabelRequest::default()
    };
    drive.env.other.label(labels).await.unwrap();
    drive.press("tab enter");
    drive.jobs_end().await;
    let states: BTreeMap<String, JobState> = drive
        .model
        .jobs
        .list()
        .map(|job| (job.sandbox.as_ref().unwrap().to_string(), job.state.clone()))
        .collect();
    assert_eq!(states["cccccccc"], JobState::Succeeded);
    assert_eq!(
        states["dddddddd"],
        JobState::Skipped("sandbox dddddddd changed since it was looked at".to_owned())
    );
    let workdir = four()[2].workdir.clone().unwrap();
    assert_eq!(drive.asked("teardown"), [format!("teardown {workdir}")]);
}

#[tokio::test]
async fn what_another_process_creates_shows_within_a_second() {
    let mut drive = Drive::new(Fixture::default()).await;
    let mut took = Vec::new();
    // A busy machine may stand still for as long as that, but not each time.
    for number in 0..5 {
        let id = format!("0ther00{number}");
        let new = CreateRequest { id: Some(id), ..CreateRequest::default() };
        drive.env.other.create(new).await.unwrap();
        let began = std::time::Instant::now();
        drive.until("the new row", |model| model.sandboxes.len() == number + 1).await;
        took.push(began.elapsed());
    }
    assert!(took.iter().min().unwrap() < &Duration::from_secs(1), "{took:?}");
}

#[tokio::test]
async fn the_console_stays_up_with_every_host_down() {
    let hosts = ["a", "b", "local"].map(|name| host(name, HostState::Down, None)).to_vec();
    let mut drive = Drive::new(Fixture { hosts, ..world(real_now()) }).await;
    drive
        .until("the hosts' verdicts", |model| {
            model.hosts.list.len() == 3
                && model.hosts.list.iter().all(|host| host.view.state == HostState::Down)
        })
        .await;
    assert_eq!(drive.model.sandboxes.len(), 7);
    assert!(drive.model.hosts.list.iter().all(|host| host.view.message.is_some()));
}

#[tokio::test]
async fn a_job_is_cancelled_on_request_and_says_how_it_was_left() {
    let script = Scripted::default();
    script.teardown.lock().unwrap().push_back(Act::Hang);
    let mut drive =
        Drive::scripted(Fixture { records: four(), ..Fixture::default() }, script).await;
    drive.press("d tab enter");
    drive
        .until("the job runs", |model| model.jobs.list().any(|job| job.state == JobState::Running))
        .await;
    let script = Arc::clone(&drive.env.script);
    let is_begun = || script.asked().iter().any(|asked| asked.starts_with("teardown"));
    drive.until_so("its host begins", is_begun).await;
    drive.press("c tab enter");
    drive.jobs_end().await;
    let job = drive.model.jobs.list().next().unwrap();
    assert!(matches!(job.state, JobState::Stopped(_)), "{:?}", job.state);
    let toast = &drive.model.toast.as_ref().unwrap().text;
    assert!(toast.contains("may be half done") && toast.contains("finishes it"), "{toast}");
    assert!(!drive.terminal.contains(&Effect::Quit));
}

#[test]
fn each_end_of_a_cancel_has_its_words_and_what_to_look_at_in_toast_activity_and_jobs() {
    let ended = |answer: Result<Record, Error>| {
        let mut model = model_with(four());
        press(&mut model, "d tab enter");
        let job = model.jobs.running().next().unwrap().id;
        let started = Started {
            operation: Some(OperationId::from_random(5)),
            record: four().remove(3).into(),
        };
        update(&mut model, Msg::Started(job, Ok(Box::new(started))));
        press(&mut model, "J c tab enter");
        assert_eq!(model.jobs.get(job).unwrap().state, JobState::Cancelling);
        update(&mut model, Msg::Ended(job, answer, None));
        let toast = model.toast.as_ref().unwrap().text.clone();
        assert_eq!(model.activity.rows(), [ActivityRow::Job(job)]);
        let job = model.jobs.get(job).unwrap();
        let (state, problem) = (job.state.clone(), job.state.problem().cloned());
        let words = model.job_words(job);
        let word = words.split([':', ',']).next().unwrap();
        assert!(toast.contains(word), "one word everywhere: {words}, {toast}");
        (state, toast, problem)
    };
    let (state, text, _) = ended(Err(CancelOutcome::Undone.error("nothing was removed")));
    assert!(matches!(state, JobState::Undone(_)));
    assert!(text.contains("undone after") && text.contains("nothing was removed"), "{text}");
    let cut: Error =
        CancelOutcome::Stopped.error("it was cut off").hint("`sandboxer destroy X` finishes it");
    let (state, text, problem) = ended(Err(cut));
    assert_eq!(state.word(), "stopped, may be half done");
    assert!(
        text.contains("may be half done: it was cut off; `sandboxer destroy X` finishes it"),
        "{text}"
    );
    assert!(problem.is_some(), "enter on it leads to the error and its hint");
    let (state, text, _) = ended(Ok(four().remove(3).into()));
    assert_eq!(state, JobState::DoneAnyway);
    assert!(text.contains("done anyway in") && text.contains("too late"), "{text}");
    // Nobody says that it is as before.
    let (state, ..) = ended(Err(Error::new(Code::Cancelled, "cancelled")));
    assert!(matches!(state, JobState::Stopped(_)));
}

#[test]
fn the_output_of_what_failed_is_one_key_away_from_its_row_and_from_its_error() {
    let output = "podman run --name=web -d --label a=b --label c=d localhost/nosuch\nError: connection refused\nexit code: 125";
    let mut failed = four().remove(3);
    failed.state = State::Failed;
    failed.failure =
        Some(Failure { step: "up".to_owned(), exit_status: Some(125), output: output.to_owned() });
    let mut records = four();
    records[3] = failed.clone();
    let mut model = model_with(records);
    model.sandboxes.point_at(failed.id.clone());
    let is_output = |model: &Model| match model.overlays.last() {
        Some(Overlay::Text(page)) => {
            let text = &page.text;
            assert!(text.starts_with("Error: connection refused\n"), "why comes first: {text}");
            assert!(page.text.contains("podman run --name=web … (6 more words)"), "{}", page.text);
            assert!(page.title.contains("step up, exit 125"), "{}", page.title);
            true
        }
        _ => false,
    };
    assert_eq!(press(&mut model, "l"), [], "there is no log to be followed");
    assert!(is_output(&model));
    press(&mut model, "esc");
    // A job of it failed: its line leads to the error, and that to the output.
    let job =
        model.jobs.start(OperationKind::Create, Some(failed.id.clone()), "a".to_owned(), model.now);
    let problem = Error::new(Code::OperationFailed, "the stack could not be started");
    update(&mut model, Msg::Ended(job, Err(problem), None));
    press(&mut model, "5 g enter");
    assert!(matches!(model.overlays.last(), Some(Overlay::Error(..))), "{:?}", model.overlays);
    press(&mut model, "l");
    assert!(is_output(&model));
    // One without a sandbox has its own output.
    press(&mut model, "esc esc");
    let job = model.jobs.start(OperationKind::Check, None, "a host".to_owned(), model.now);
    if let Some(job) = model.jobs.get_mut(job) {
        job.write("[1/2] up");
        job.write("Error: no route to host");
        job.write("exit code: 1");
        job.write("[2/2] rollback");
        job.write("Error: nothing there");
    }
    update(&mut model, Msg::Ended(job, Err(Error::new(Code::OperationFailed, "it failed")), None));
    let text = &model.toast.as_ref().unwrap().text;
    assert!(text.ends_with("failed: it failed: no route to host"), "{text}");
    press(&mut model, "5 g enter l");
    assert!(matches!(model.overlays.last(), Some(Overlay::Output(id, _)) if *id == job));
}
