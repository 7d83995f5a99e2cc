//! Snapshots in the dashboard: the tree of lineage, the verbs on snapshots and what each is asked with, patches, and the
//! screens of all of it.

use std::sync::Arc;
use std::time::Duration;

use super::drive::{
    self, Drive, draw, event, hear, model_of, now, patch_status, point_at, press, real_now,
    refused, screen, shows, started, toast, type_text,
};
use super::lineage::{go_to, lineage_model, open_patches};
use crate::test_env::fixture::{self, ended, lineage_world, snapshot_of};
use crate::test_env::script::{Act, Script, Scripted};
use sandboxer::client::{Error, PatchRequest, Request, RestoreRequest, SnapshotDiff, Update};
use sandboxer::domain::error::Code;
use sandboxer::domain::event::Event;
use sandboxer::domain::lineage::SnapshotView;
use sandboxer::domain::name::OperationId;
use sandboxer::domain::operation::{Operation, OperationKind, OperationState, Subject};
use sandboxer::domain::reporter::Report;
use sandboxer::domain::request::Change;
use sandboxer::domain::snapshot::{ReplicaState, SnapshotState};
use sandboxer::domain::update::Ended;
use sandboxer::tui::keymap::Mode;
use sandboxer::tui::model::{Fetch, Job, JobState, Model, NodeId, Overlay, Pane};
use sandboxer::tui::update::update;
use sandboxer::tui::{Effect, Msg, Timer};
use tokio::sync::Notify;

const SIZES: [(u16, u16); 3] = [(120, 36), (100, 30), (80, 24)];

/// A snapshot of a screen at every size.
fn at_every_size(name: &str, model: &mut Model) {
    for (width, height) in SIZES {
        insta::assert_snapshot!(format!("{name}_{width}x{height}"), screen(model, (width, height)));
    }
}

fn diff() -> SnapshotDiff {
    let change = |path: &str, change: &str, differs: &[&str]| Change {
        path: path.to_owned(),
        change: change.to_owned(),
        differs: differs.iter().map(|word| (*word).to_owned()).collect(),
        a: None,
        b: None,
    };
    SnapshotDiff {
        a: "snap-0000000a".to_owned(),
        b: "50bac0de".to_owned(),
        added: 1,
        removed: 1,
        changed: 2,
        bytes: -1_200_000,
        changes: vec![
            change("workspace/app/config.yml", "changed", &["size", "modified"]),
            change("workspace/app/data.db", "removed", &[]),
            change("workspace/app/run.sh", "changed", &["mode"]),
            change("workspace/notes\u{1b}[31m.txt", "added", &[]),
        ],
        truncated: false,
        notes: vec!["volumes are not compared: only an archive has them".to_owned()],
    }
}

// ---- the pane ------------------------------------------------------------------------------------------------------

#[test]
fn the_tree() {
    let mut model = lineage_model();
    press(&mut model, "2");
    at_every_size("tree", &mut model);
    model.appearance.ascii = true;
    let drawn = screen(&mut model, (120, 36));
    assert!(drawn.is_ascii(), "{drawn}");
    insta::assert_snapshot!("tree_ascii", drawn);
}

#[test]
fn one_that_came_to_nothing_is_not_in_the_tree() {
    let mut scenario = lineage_world(now());
    let at =
        scenario.snapshots.iter().position(|record| record.state == SnapshotState::Failed).unwrap();
    scenario.snapshots[at].replicas.clear();
    let mut model = model_of(scenario);
    press(&mut model, "2");
    let shown = screen(&mut model, (120, 36));
    let named = |model: &Model| {
        model.snapshots.rows().iter().any(|row| row.view.record.title() == "nightly")
    };
    assert!(!named(&model) && shown.contains("Snapshots 4 "), "{shown}");
    press(&mut model, "/");
    type_text(&mut model, "nightly");
    press(&mut model, "enter");
    assert!(screen(&mut model, (120, 36)).contains("nothing matches 'nightly'"));
    // While something of it may be there it is shown.
    assert!(named(&lineage_model()));
}

#[test]
fn one_whose_archive_is_damaged_says_so_in_its_row_and_its_record() {
    let mut scenario = lineage_world(now());
    let message = "the archive of snapshot snap-0000000a on coulombcore was cut short".to_owned();
    let host = scenario.snapshots[0].host.clone();
    scenario.snapshots[0].mark_replica(&host, ReplicaState::Damaged, Some(message));
    let mut model = model_of(scenario);
    press(&mut model, "2");
    let shown = screen(&mut model, (120, 36));
    let row = shown.lines().find(|line| line.contains("my-env")).unwrap();
    assert!(row.contains("damaged"), "{shown}");
    go_to(&mut model, "my-env");
    press(&mut model, "enter");
    shows(&mut model, (120, 36), &["archive damaged", "was cut short"]);
}

#[test]
fn loading_empty_nothing_matches_and_error_are_told_apart() {
    let mut model = model_of(fixture::world(now()));
    press(&mut model, "2");
    at_every_size("empty", &mut model);
    model.snapshots = sandboxer::tui::model::Snapshots::default();
    assert!(screen(&mut model, (100, 30)).contains("reading the snapshots…"));
    let mut problem = Error::new(Code::StoreCorrupt, "snapshots.json cannot be parsed");
    problem.causes = vec!["expected `,` at line 3".to_owned()];
    update(&mut model, Msg::Snapshots(Err(problem.clone())));
    at_every_size("error", &mut model);
    let mut model = lineage_model();
    press(&mut model, "2 /");
    type_text(&mut model, "zzz");
    press(&mut model, "enter");
    shows(&mut model, (100, 30), &["nothing matches 'zzz'", "esc shows all of them"]);
    assert_eq!(model.sandboxes.shown().len(), 11, "the other pane has its own filter");
    press(&mut model, "esc");
    assert_eq!(model.snapshots.rows().len(), 8);
    // What was there stays, and the title says that it is old.
    update(&mut model, Msg::Snapshots(Err(problem)));
    shows(&mut model, (120, 36), &["not read again", "my-env"]);
}

#[test]
fn below_100_columns_the_panes_are_tabs() {
    let mut model = lineage_model();
    let tabs = |model: &mut Model| {
        let shown = screen(model, (80, 24));
        let title = shown.lines().find(|line| line.starts_with('├') && line.contains(" Hosts "));
        title.unwrap_or_else(|| panic!("{shown}")).replace('─', "").trim().to_owned()
    };
    assert!(tabs(&mut model).starts_with("├ Activity"), "{}", tabs(&mut model));
    assert!(tabs(&mut model).ends_with(" Snapshots  Hosts  Credits ┤"), "{}", tabs(&mut model));
    press(&mut model, "tab");
    assert_eq!(model.focus, Pane::Snapshots);
    assert!(tabs(&mut model).starts_with("├ Snapshots 5"), "{}", tabs(&mut model));
    assert!(tabs(&mut model).ends_with(" Hosts  Credits  Activity ┤"), "{}", tabs(&mut model));
    press(&mut model, "tab tab tab tab");
    assert_eq!(model.focus, Pane::Sandboxes);
    assert!(tabs(&mut model).starts_with("├ Activity"), "the one that was there last");
    press(&mut model, "2");
    let low = screen(&mut model, (80, 14));
    assert!(low.contains("╭ Snapshots 5 ─"), "{low}");
    assert!(low.contains(" Hosts ─ Credits ─ Activity ─ Sandboxes ─"), "{low}");
}

#[test]
fn the_snapshots_are_read_again_on_what_can_have_changed_them_and_once_for_many() {
    let mut model = lineage_model();
    let event = |kind: &str, id: &str, seq: u64| Update::Event(event(seq, kind, Some(id)));
    let reads = |effects: &[Effect]| {
        let is_read = |effect: &&Effect| matches!(effect, Effect::After(_, timer) if **timer == Timer::Snapshots);
        effects.iter().filter(is_read).count()
    };
    let extended = event("sandbox.extended", "a1b2c3d4", 1);
    assert_eq!(reads(&hear(&mut model, extended)), 0, "it is based on none");
    assert_eq!(reads(&hear(&mut model, event("sandbox.sleeping", "00000001", 2))), 1);
    assert_eq!(reads(&hear(&mut model, Update::Snapshots)), 0, "one is about to be made");
    assert_eq!(update(&mut model, Msg::Due(Timer::Snapshots)), [Effect::Snapshots]);
    hear(&mut model, Update::Snapshots);
    let again = update(&mut model, Msg::Snapshots(Ok(Vec::new())));
    assert_eq!(reads(&again), 1, "asked for while it was made");
    let (deleted, added) = (event("snapshot.deleted", "gone", 3), event("patch.added", "gone", 4));
    for (at, what) in [deleted, added, Update::Resync].into_iter().enumerate() {
        model.reading_snapshots = Fetch::Idle;
        assert_eq!(reads(&hear(&mut model, what)), 1, "{at}");
    }
    model.reading_snapshots = Fetch::Idle;
    let over = Operation {
        subject: Subject::Snapshot("snap-0000000a".into()),
        kind: OperationKind::Verify,
        ..ended(&OperationId::from_random(9), OperationState::Succeeded, now())
    };
    let record = lineage_world(now()).snapshots.remove(0);
    let over = Ended { operation: over, outcome: Ok(record.into()) };
    assert_eq!(reads(&hear(&mut model, Update::Ended(Box::new(over)))), 1);
}

#[test]
fn the_list_marks_what_waits_and_what_failed() {
    let mut model = lineage_model();
    let shown = screen(&mut model, (120, 36));
    let row = |name: &str| shown.lines().find(|line| line.contains(name)).unwrap().to_owned();
    assert!(row("● one ").contains("patch 3"), "{shown}");
    assert!(
        row("☾ two ").contains("2 patches pending") && row("☾ two ").contains("sleeping"),
        "{shown}"
    );
    assert!(!row("● three ").contains("patch"), "{shown}");
}

#[test]
fn details_of_a_snapshot_and_of_a_sandbox_that_is_based_on_one() {
    let mut model = lineage_model();
    go_to(&mut model, "my-env");
    press(&mut model, "enter");
    insta::assert_snapshot!("snapshot_120x36", screen(&mut model, (120, 36)));
    insta::assert_snapshot!("snapshot_80x24", screen(&mut model, (80, 24)));
    press(&mut model, "G");
    insta::assert_snapshot!("snapshot_end_80x24", screen(&mut model, (80, 24)));
    press(&mut model, "esc");
    go_to(&mut model, "snap-0000000d");
    press(&mut model, "enter");
    let shown = screen(&mut model, (120, 60));
    for words in [
        "⚠ files changed while it was read; volume cache is not in it",
        "cache: its driver keeps it on another",
    ] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    press(&mut model, "esc");
    go_to(&mut model, "one");
    press(&mut model, "enter");
    insta::assert_snapshot!("based_sandbox_120x80", screen(&mut model, (120, 80)));
}

// ---- snapshot ------------------------------------------------------------------------------------------------------

#[test]
fn a_snapshot_is_asked_with_name_mode_and_the_revision_that_was_seen() {
    let mut model = lineage_model();
    go_to(&mut model, "one");
    press(&mut model, "s");
    assert_eq!(model.mode(), Mode::Form);
    at_every_size("take", &mut model);
    type_text(&mut model, "Before");
    assert!(screen(&mut model, (100, 30)).contains("✗ a name is 1 to 63 characters"));
    assert_eq!(press(&mut model, "enter"), [], "a wrong name asks nothing");
    press(&mut model, "backspace backspace backspace backspace backspace backspace");
    type_text(&mut model, "before");
    press(&mut model, "down right right");
    // What happens behind the form changes nothing of what it acts on.
    drive::list(&mut model, Vec::new());
    let effects = press(&mut model, "enter");
    let [Effect::Start(job, Request::Snapshot(request))] = &effects[..] else {
        panic!("{effects:?}")
    };
    assert_eq!((request.id.as_str(), request.revision), ("00000001", Some(3)));
    assert_eq!((request.name.as_deref(), request.mode.as_deref()), (Some("before"), Some("live")));
    assert_eq!(press(&mut model, "enter esc"), [], "asked once, and the answer is waited for");
    let mut problem =
        Error::new(Code::Conflict, "the name 'before' is taken").hint("choose another");
    problem.details = serde_json::json!({"field": "name"});
    update(&mut model, Msg::Started(*job, Err(problem)));
    shows(&mut model, (100, 30), &["✗ the name 'before' is taken (choose another)"]);
    assert!(
        matches!(&press(&mut model, "enter")[..], [Effect::Start(_, Request::Snapshot(..))]),
        "and asked again"
    );
}

#[test]
fn several_at_once_get_no_name_and_those_that_cannot_are_left_out_with_the_reason() {
    let mut world = lineage_world(now());
    world.records.iter_mut().find(|record| record.id.as_str() == "50bac0de").unwrap().extension =
        "ext.bare".into();
    let mut model = model_of(world);
    press(&mut model, "1 /");
    type_text(&mut model, "checkpoint");
    press(&mut model, "enter * s");
    let shown = shows(
        &mut model,
        (120, 36),
        &["50bac0de golden  left out: ext.bare cannot take or restore snapshots"],
    );
    assert!(!shown.contains("unique among snapshots"), "{shown}");
    let effects = press(&mut model, "enter");
    let begun = started(&effects);
    assert!(begun.len() == 4 && begun.iter().all(|it| matches!(it, Request::Snapshot(..))));
    assert!(model.overlays.is_empty() && model.sandboxes.marks.is_empty());
}

#[test]
fn what_a_backend_cannot_is_dimmed_and_says_why() {
    let mut world = lineage_world(now());
    world.records.iter_mut().for_each(|record| record.extension = "ext.bare".into());
    world.snapshots.iter_mut().for_each(|record| record.extension = "ext.bare".into());
    let mut model = model_of(world);
    for (key, words) in [
        ("s", "cannot take or restore snapshots"),
        ("z", "cannot sleep"),
        ("w", "cannot sleep"),
        ("!", "cannot run commands"),
        ("G l", "cannot show logs"),
    ] {
        assert_eq!(press(&mut model, key), []);
        assert!(model.overlays.is_empty(), "{key}");
        let said = toast(&mut model);
        assert!(said.contains("ext.bare") && said.contains(words), "{key}: {said}");
    }
    let buffer = draw(&mut model, (120, 36));
    let cell = |key: &str| {
        let line = drive::text(&buffer).lines().last().unwrap().to_owned();
        let at = line.find(key).unwrap_or_else(|| panic!("{key} in {line}"));
        buffer[(u16::try_from(line[..at].chars().count()).unwrap(), 35)].style().add_modifier
    };
    assert!(cell("s snapshot").contains(ratatui::style::Modifier::DIM));
    assert!(!cell("d destroy").contains(ratatui::style::Modifier::DIM));
    go_to(&mut model, "my-env");
    assert_eq!(press(&mut model, "r"), []);
    assert!(toast(&mut model).contains("ext.bare cannot"));
}

#[test]
fn read_only_looks_at_everything_and_changes_nothing() {
    let mut model = lineage_model();
    for (row, keys) in [("one", "s z w B d"), ("my-env", "r d")] {
        go_to(&mut model, row);
        refused(&mut model, keys);
    }
    press(&mut model, "enter esc");
    open_patches(&mut model);
    refused(&mut model, "a e x A");
    assert!(matches!(model.overlays.as_slice(), [Overlay::Patches(_)]));
    press(&mut model, "enter");
    assert!(screen(&mut model, (100, 30)).contains("cp certs/* /etc/ssl"));
}

/// Captures tell their bytes, and wait until they are let go.
fn capturing() -> (Scripted, Arc<Notify>) {
    let (script, go_on) = (Scripted::default(), Arc::new(Notify::new()));
    script.shelf.capture.lock().unwrap().push_back(Act::Until(Arc::clone(&go_on)));
    let told = |part: u64| Report {
        stage: "capture",
        step: 1,
        steps: 1,
        bytes: Some(part * 12_000_000),
        ..Report::default()
    };
    *script.progress.lock().unwrap() = (0..3).map(told).collect();
    (script, go_on)
}

#[tokio::test]
async fn a_snapshot_shows_its_bytes_while_it_is_made_and_ends_as_a_line() {
    let (script, go_on) = capturing();
    let mut drive = Drive::scripted(lineage_world(real_now()), script).await;
    drive.press("1");
    point_at(&mut drive.model, "golden");
    drive.press("s");
    drive.type_text("monday");
    drive.press("enter");
    let moved = |model: &Model| model.jobs.running().next().and_then(Job::moved);
    drive.until("some bytes", |model| moved(model) > Some(20_000_000)).await;
    let has_row =
        |model: &Model| model.snapshots.all().iter().any(|view| view.record.title() == "monday");
    drive.until("its row", has_row).await;
    let shown = drive.screen((160, 45));
    let row =
        shown.lines().find(|line| line.contains("◐ monday")).unwrap_or_else(|| panic!("{shown}"));
    assert!(row.contains("capture") && row.contains('M'), "{row}");
    let selected = drive.model.snapshots.selected().unwrap();
    assert_eq!(selected.view.record.title(), "monday", "the cursor is on it");
    go_on.notify_one();
    drive.until("the end", |model| model.jobs.running().count() == 0).await;
    let shown = drive.screen((160, 45));
    assert!(shown.contains("✓ snapshot golden ") && shown.contains("monday 1.2K"), "{shown}");
}

#[tokio::test]
async fn a_running_snapshot_keeps_the_console_and_is_cancelled_on_request() {
    let mut drive = Drive::scripted(lineage_world(real_now()), capturing().0).await;
    drive.press("1");
    point_at(&mut drive.model, "golden");
    drive.press("s enter");
    drive
        .until("it runs", |model| model.jobs.running().any(|job| job.state == JobState::Running))
        .await;
    drive.press("q");
    assert!(drive.screen((100, 30)).contains("what was written of the archive is removed"));
    drive.press("esc 2");
    let creating = |view: &Arc<SnapshotView>| view.record.state == SnapshotState::Creating;
    drive.until("its row", |model| model.snapshots.pointed().is_some_and(creating)).await;
    drive.press("c");
    assert!(drive.screen((100, 30)).contains("Cancel snapshot"));
    drive.press("tab enter");
    drive.until("the end", |model| model.jobs.running().count() == 0).await;
    assert!(matches!(drive.model.jobs.list().next().unwrap().state, JobState::Undone(_)));
}

#[test]
fn events_name_the_snapshot_and_the_patch_that_they_are_about() {
    let mut model = lineage_model();
    let about = serde_json::json!({"snapshot_id": "snap-0000000a", "snapshot_name": "my-env", "sequence": 4});
    let kinds = ["snapshot.ready", "patch.added", "patch.failed"];
    for (kind, seq) in kinds.into_iter().zip(1_u64..) {
        let event = Event { data: about.clone(), ..event(seq, kind, Some("00000001")) };
        hear(&mut model, Update::Event(event));
    }
    update(&mut model, Msg::Tick(now().plus_seconds(3)));
    let shown = screen(&mut model, (120, 36));
    for words in
        ["✓ snapshot ready my-env of one", "· patch added 4 on my-env", "✗ patch failed 4 on one"]
    {
        assert!(shown.contains(words), "{words}: {shown}");
    }
}

#[test]
fn what_another_process_does_with_a_snapshot_is_listed_with_its_name() {
    let mut model = lineage_model();
    let mut copy = ended(&OperationId::from_random(0x77), OperationState::Running, now());
    copy.kind = OperationKind::Copy;
    copy.subject = Subject::Snapshot("snap-0000000a".into());
    (copy.pid, copy.host, copy.finished_at) = (4711, "desk-2".to_owned(), None);
    update(&mut model, Msg::Operations(Ok(vec![copy])));
    let shown = shows(&mut model, (160, 36), &["◐ copy my-env"]);
    assert!(
        shown.lines().any(|line| line.contains("◆ my-env") && line.contains("copy")),
        "{shown}"
    );
    go_to(&mut model, "my-env");
    press(&mut model, "c");
    assert!(screen(&mut model, (120, 36)).contains("It runs in process 4711 on desk-2"));
}

// ---- restore -------------------------------------------------------------------------------------------------------

#[test]
fn a_restore_form_that_is_open_learns_of_a_patch_that_was_added_meanwhile() {
    let mut world = lineage_world(now());
    let patches = std::mem::take(&mut world.patches);
    let mut model = model_of(world);
    go_to(&mut model, "my-env");
    press(&mut model, "r");
    assert!(screen(&mut model, (120, 36)).contains("no patches: it starts as it was"));
    let seen = model.snapshots.all().to_vec();
    let newer = |view: &Arc<SnapshotView>| {
        let mut view = SnapshotView::clone(view);
        if view.record.title() == "my-env" {
            view.record.revision += 1;
            view.patches.clone_from(&patches);
        }
        Arc::new(view)
    };
    update(&mut model, Msg::Snapshots(Ok(seen.iter().map(newer).collect())));
    shows(&mut model, (120, 36), &["gets 3 patches before it is ready", "1 "]);
    let effects = press(&mut model, "enter");
    let [Request::Restore(request)] = started(&effects)[..] else { panic!("{effects:?}") };
    let revision = |views: &[Arc<SnapshotView>]| {
        views.iter().find(|view| view.record.title() == "my-env").unwrap().record.revision
    };
    assert_eq!(request.revision, Some(revision(&seen) + 1), "what is asked for is what is shown");
    // From here on it is what was asked for.
    update(&mut model, Msg::Snapshots(Ok(seen)));
    assert!(screen(&mut model, (120, 36)).contains("gets 3 patches before it is ready"));
}

#[test]
fn a_restore_shows_what_differs_what_is_missing_and_what_it_will_get() {
    let mut model = lineage_model();
    go_to(&mut model, "my-env");
    let effects = press(&mut model, "r");
    let [Effect::Compare(number, request)] = &effects[..] else { panic!("{effects:?}") };
    assert_eq!((request.a.as_str(), &request.b), ("snap-0000000a", &None));
    assert!(screen(&mut model, (100, 30)).contains("comparing it with what it was taken of…"));
    update(&mut model, Msg::Compared(number + 7, Ok(Box::new(diff()))));
    assert!(screen(&mut model, (100, 30)).contains("comparing it"), "another form's answer");
    update(&mut model, Msg::Compared(*number, Ok(Box::new(diff()))));
    at_every_size("restore", &mut model);
    type_text(&mut model, "again");
    press(&mut model, "tab");
    type_text(&mut model, "sandboxer01");
    press(&mut model, "tab");
    type_text(&mut model, "2h");
    press(&mut model, "tab y tab y");
    let effects = press(&mut model, "enter");
    let [Request::Restore(request)] = started(&effects)[..] else { panic!("{effects:?}") };
    assert_eq!((request.snapshot.as_str(), request.revision), ("snap-0000000a", Some(2)));
    let (name, host) = (request.name.as_deref(), request.host.as_deref());
    assert_eq!((name, host), (Some("again"), Some("sandboxer01")));
    let (ttl, strict) = (request.ttl.as_deref(), request.strict);
    assert_eq!((ttl, strict, request.require_patches), (Some("2h"), true, true));
    // One that is not whole is said to be so.
    let mut model = lineage_model();
    go_to(&mut model, "snap-0000000d");
    press(&mut model, "r");
    shows(
        &mut model,
        (120, 36),
        &["not captured: cache: its driver keeps it", "files changed while"],
    );
    press(&mut model, "esc");
    go_to(&mut model, "nightly");
    assert_eq!(press(&mut model, "r"), []);
    assert!(toast(&mut model).contains("nightly is failed"));
    press(&mut model, "1");
    assert_eq!(press(&mut model, "r"), []);
    assert!(toast(&mut model).contains("a restore is from a snapshot"));
}

#[tokio::test]
async fn a_restore_ends_as_a_row_below_its_snapshot_and_says_which_patch_failed() {
    let script = Scripted::default();
    let ends = [0, 0, 1].map(Script::Exits);
    script.patch.lock().unwrap().extend(ends);
    let mut drive = Drive::scripted(lineage_world(real_now()), script).await;
    go_to(&mut drive.model, "my-env");
    drive.press("r");
    drive.type_text("fresh");
    drive.press("enter");
    drive.jobs_end().await;
    assert!(drive.model.overlays.is_empty(), "the form is closed");
    let based = |model: &Model| {
        let mut rows = model.snapshots.rows().iter().filter_map(|row| row.sandbox());
        rows.any(|based| based.name.as_deref() == Some("fresh"))
    };
    drive.until("its row", based).await;
    let patched = |model: &Model| {
        let mut fresh = model.sandboxes.all().filter(|entry| entry.record.title() == "fresh");
        fresh.any(|entry| entry.record.patch_error.is_some())
    };
    drive.until("its patches", patched).await;
    let shown = drive.screen((160, 40));
    assert!(shown.lines().any(|line| line.contains("fresh") && line.contains("✓✓✗")), "{shown}");
    let line =
        shown.lines().find(|line| line.contains("⚠ restore")).unwrap_or_else(|| panic!("{shown}"));
    assert!(line.contains("but patch 3 (pat-0000a003) failed with exit status 1"), "{line}");
    let selected = drive.model.sandboxes.selected().unwrap();
    assert_eq!(selected.record.title(), "fresh", "the list's cursor is on it");
}

#[tokio::test]
async fn a_snapshot_that_changed_behind_the_form_is_not_restored() {
    let mut drive = Drive::new(lineage_world(real_now())).await;
    go_to(&mut drive.model, "my-env");
    drive.press("r");
    let request = PatchRequest {
        snapshot: "snap-0000000a".to_owned(),
        script: "true".to_owned(),
        ..PatchRequest::default()
    };
    drive.env.other.add_patch(&request).await.unwrap();
    drive.press("enter");
    drive.until("the refusal", |model| model.jobs.list().any(|job| !job.is_running())).await;
    let shown = drive.screen((100, 30));
    assert!(shown.contains("snapshot snap-0000000a changed since it was looked at"), "{shown}");
    assert!(drive.asked("restore").is_empty());
}

// ---- deleting ------------------------------------------------------------------------------------------------------

#[test]
fn a_snapshot_in_use_names_what_depends_on_it_and_goes_by_force_only_typed() {
    let mut model = lineage_model();
    go_to(&mut model, "my-env");
    press(&mut model, "d");
    at_every_size("delete_in_use", &mut model);
    assert_eq!(press(&mut model, "tab enter"), []);
    assert!(toast(&mut model).contains("type its id first"));
    assert_eq!(update(&mut model, Msg::Paste("snap-0000000a".to_owned())), [], "typed, not pasted");
    type_text(&mut model, "snap-0000000a");
    let effects = press(&mut model, "enter");
    let [Request::DeleteSnapshot(request)] = started(&effects)[..] else { panic!("{effects:?}") };
    let asked = (request.id.as_str(), request.revision, request.force);
    assert_eq!(asked, ("snap-0000000a", Some(2), true));
    assert_eq!(request.dependants.as_ref().unwrap().len(), 5, "the client judges it");
    // One on which nothing depends: no force.
    go_to(&mut model, "nightly");
    let effects = press(&mut model, "d tab enter");
    assert!(
        matches!(&effects[..], [Effect::Start(_, Request::DeleteSnapshot(request))] if !request.force),
        "{effects:?}"
    );
    // A bulk leaves those in use out.
    press(&mut model, "* d");
    shows(&mut model, (120, 36), &["Delete 3 snapshots?", "left out: it is in use: patch 1"]);
    let effects = press(&mut model, "tab enter");
    let gentle = |request: &&Request| matches!(request, Request::DeleteSnapshot(it) if !it.force);
    assert_eq!(started(&effects).into_iter().filter(gentle).count(), 3);
    // On a sandbox's row it is that sandbox.
    go_to(&mut model, "three");
    let effects = press(&mut model, "d tab enter");
    assert!(
        matches!(&effects[..], [Effect::Start(_, Request::Destroy(request))] if request.id == "00000003"),
        "{effects:?}"
    );
}

#[test]
fn more_than_five_snapshots_ask_for_their_number() {
    let mut world = lineage_world(now());
    let source =
        world.records.iter().find(|record| record.id.as_str() == "50bac0de").unwrap().clone();
    world.snapshots =
        (0..7).map(|n| snapshot_of(&source, &format!("snap-000000{n:02}"), None, now())).collect();
    world.patches.clear();
    let mut model = model_of(world);
    press(&mut model, "2 * d tab");
    assert_eq!(press(&mut model, "enter"), []);
    type_text(&mut model, "7");
    assert_eq!(press(&mut model, "enter").len(), 7);
    assert!(model.snapshots.marks.is_empty());
}

#[tokio::test]
async fn what_came_to_depend_on_it_meanwhile_is_not_deleted_from_under_it() {
    let mut drive = Drive::new(lineage_world(real_now())).await;
    go_to(&mut drive.model, "my-env");
    drive.press("d tab");
    drive.type_text("snap-0000000a");
    let request =
        RestoreRequest { snapshot: "snap-0000000a".to_owned(), ..RestoreRequest::default() };
    let restored = drive.env.other.restore(&request).await.unwrap();
    drive.env.other.finish(&restored.operation.unwrap()).await.unwrap();
    let four = restored.sandbox.id;
    drive.press("enter");
    drive.until("the answer", |model| model.jobs.list().any(|job| !job.is_running())).await;
    let job = drive.model.jobs.list().next().unwrap();
    let JobState::Skipped(reason) = &job.state else { panic!("{:?}", job.state) };
    let more = "more depends on snapshot my-env than was looked at: sandbox ";
    assert_eq!(*reason, format!("{more}{four}"));
    assert!(drive.asked("remove").is_empty());
    // Looked at again, it goes.
    drive.until("the tree", |model| model.snapshots.of_sandbox(&four).is_some()).await;
    go_to(&mut drive.model, "my-env");
    drive.press("d tab");
    drive.type_text("snap-0000000a");
    drive.press("enter");
    drive.until("it is gone", |model| model.snapshots.get(&"snap-0000000a".into()).is_none()).await;
    assert_eq!(drive.asked("remove"), ["remove snap-0000000a"]);
}

// ---- rebuild -------------------------------------------------------------------------------------------------------

#[test]
fn a_rebuild_says_from_which_snapshot_and_with_what() {
    let mut model = lineage_model();
    go_to(&mut model, "one");
    press(&mut model, "B");
    let asks = screen(&mut model, (120, 36));
    assert!(asks.contains("made again from snapshot my-env, with its 3 patches"));
    let effects = press(&mut model, "tab enter");
    assert!(
        matches!(&effects[..], [Effect::Start(_, Request::Recreate(request))] if request.id == "00000001"),
        "{effects:?}"
    );
    press(&mut model, "1");
    let mut records: Vec<_> = lineage_world(now()).records;
    records.retain(|record| record.id.as_str() == "00000001");
    records[0].based_on_snapshot = Some("snap-000dead0".into());
    drive::list(&mut model, records);
    update(&mut model, Msg::Snapshots(Ok(Vec::new())));
    press(&mut model, "B");
    let asks = screen(&mut model, (120, 36));
    assert!(asks.contains("its snapshot snap-000dead0 is gone: this will be refused"));
}

// ---- any size, any text --------------------------------------------------------------------------------------------

#[test]
fn no_screen_of_these_panics_at_any_size_and_hostile_text_stays_in_its_cells() {
    let mut world = lineage_world(now());
    let evil = "\u{1b}[2J\u{202e}日本語\u{7}\n";
    for record in &mut world.snapshots {
        record.name = Some(format!("{evil}{}", record.title()));
        record.sandbox_name = Some(evil.to_owned());
        record.message = Some(format!("{evil} {}", "x".repeat(90_000)));
    }
    for patch in &mut world.patches {
        patch.description = Some(format!("{evil}{}", "y".repeat(240)));
        patch.script = evil.repeat(40);
    }
    let status = patch_status(&world, "snap-0000000a");
    let all = "2|2 enter|2 d|2 r|2 p|2 p a|2 p A|2 j enter|2 j j j j s|2 j j j j w|2 /|2 :";
    for keys in all.split('|') {
        for ascii in [false, true] {
            let mut model = model_of(world.clone());
            model.appearance.ascii = ascii;
            press(&mut model, "2 j j j");
            press(&mut model, keys);
            let number = model.last_form;
            update(&mut model, Msg::Compared(number, Ok(Box::new(diff()))));
            update(&mut model, Msg::PatchStatus("snap-0000000a".into(), Ok(status.clone())));
            for width in [0, 1, 59, 60, 61, 80, 99, 100, 101, 250] {
                for height in [0, 1, 14, 15, 16, 19, 20, 21, 80] {
                    let buffer = draw(&mut model, (width, height));
                    let mut cells = buffer.content.iter();
                    let is_bad = cells.any(|cell| cell.symbol().chars().any(char::is_control));
                    assert!(!is_bad, "{keys} {width}x{height}");
                    assert!(!ascii || drive::text(&buffer).is_ascii(), "{keys} {width}x{height}");
                }
            }
        }
    }
}

#[test]
fn of_a_long_tree_only_the_window_is_drawn_and_the_mouse_finds_its_rows() {
    use crossterm::event::{KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
    let mut world = lineage_world(now());
    let source = world.records[0].clone();
    world.snapshots =
        (0..3000).map(|n| snapshot_of(&source, &format!("snap-{n:08x}"), None, now())).collect();
    world.patches.clear();
    let mut model = model_of(world);
    update(&mut model, Msg::Resize(120, 36));
    press(&mut model, "2 G");
    let began = drive::on_cpu();
    for _ in 0..20 {
        draw(&mut model, (120, 36));
    }
    let worked = drive::on_cpu().saturating_sub(began);
    assert!(worked < Duration::from_secs(2), "{worked:?}");
    let screen = model.screen();
    let at = |kind, row| {
        Msg::Mouse(MouseEvent {
            kind,
            column: screen.snapshots.x + 4,
            row,
            modifiers: KeyModifiers::NONE,
        })
    };
    update(&mut model, at(MouseEventKind::Down(MouseButton::Left), screen.snapshots.y + 2));
    assert_eq!(model.snapshots.window.index, model.snapshots.window.offset + 2);
    press(&mut model, "1");
    update(&mut model, at(MouseEventKind::ScrollUp, screen.snapshots.y));
    assert_eq!(model.focus, Pane::Sandboxes, "the wheel moves what is under it, the focus stays");
    assert!(matches!(model.snapshots.selected().unwrap().id, NodeId::Snapshot(_)));
}
