//! Sleep, wake and patches in the dashboard: what is asked before, with what the client is asked, and the screens.

use super::drive::{
    Drive, confirm, model_of, now, patch_status, patches, point_at, press, real_now, screen, shows,
    started, toast, type_text,
};
use super::lineage::{go_to, lineage_model, open_patches};
use crate::test_env::fixture::{Fixture, lineage_world};
use crate::test_env::script::{Script, Scripted};
use sandboxer::client::{Client as _, Error, PatchRequest, Request, RolloutItem};
use sandboxer::domain::error::Code;
use sandboxer::domain::operation::OperationKind;
use sandboxer::domain::sandbox::State;
use sandboxer::tui::model::{JobId, JobState, Load, Model, Overlay, PatchRow};
use sandboxer::tui::update::update;
use sandboxer::tui::{Effect, Msg};

const SIZES: [(u16, u16); 3] = [(120, 36), (100, 30), (80, 24)];

/// A snapshot of a screen at every size.
fn at_every_size(name: &str, model: &mut Model) {
    for (width, height) in SIZES {
        insta::assert_snapshot!(format!("{name}_{width}x{height}"), screen(model, (width, height)));
    }
}

/// The lineage without the patch that fails.
fn two_patches() -> Fixture {
    let mut world = lineage_world(real_now());
    world.patches.truncate(2);
    world
}

// ---- sleep and wake ------------------------------------------------------------------------------------------------

#[test]
fn sleep_asks_and_wake_only_where_there_is_more_to_it() {
    let mut model = lineage_model();
    go_to(&mut model, "one");
    press(&mut model, "z");
    at_every_size("sleep", &mut model);
    assert_eq!(press(&mut model, "enter"), [], "the harmless button has the focus");
    let effects = press(&mut model, "z tab enter");
    let [Request::Sleep(request)] = started(&effects)[..] else { panic!("{effects:?}") };
    assert_eq!((request.id.as_str(), request.revision), ("00000001", Some(3)));
    // It is not ready, or does not sleep.
    go_to(&mut model, "two");
    press(&mut model, "z");
    assert!(screen(&mut model, (100, 30)).contains("left out: it is not ready"));
    press(&mut model, "esc w");
    at_every_size("wake", &mut model);
    let effects = press(&mut model, "tab enter");
    assert!(
        matches!(&effects[..], [Effect::Start(_, Request::Wake(request))] if request.id == "00000002"),
        "{effects:?}"
    );
    // Nothing but waking: at once.
    let mut world = lineage_world(now());
    world.patches.clear();
    let mut model = model_of(world);
    go_to(&mut model, "two");
    assert!(matches!(&press(&mut model, "w")[..], [Effect::Start(_, Request::Wake(..))]));
}

#[test]
fn many_or_protected_ones_are_put_to_sleep_only_when_that_is_typed() {
    let mut world = lineage_world(now());
    for record in &mut world.records {
        record.state = State::Ready;
    }
    let mut model = model_of(world);
    press(&mut model, "1 * z tab enter");
    let demand = confirm(&model).demand.as_ref().unwrap();
    assert_eq!(demand.0, "10", "the protected one is left out");
    type_text(&mut model, "10");
    assert_eq!(press(&mut model, "enter").len(), 0, "a host is silent: it asks again");
    let effects = press(&mut model, "tab enter");
    let begun = started(&effects);
    assert!(begun.len() == 10 && begun.iter().all(|it| matches!(it, Request::Sleep(..))));
}

#[tokio::test]
async fn wake_is_a_job_and_says_what_was_applied() {
    let mut drive = Drive::new(two_patches()).await;
    go_to(&mut drive.model, "two");
    drive.press("w tab enter");
    drive.jobs_end().await;
    let shown = drive.screen((160, 36));
    assert!(shown.contains("✓ wake two ") && shown.contains("1 patch applied"), "{shown}");
    let owes = |model: &Model| model.snapshots.of_sandbox(&"00000002".into()).unwrap().1.owes.len();
    drive.until("the tree", |model| owes(model) == 0).await;
    let shown = drive.screen((160, 36));
    assert!(
        shown.lines().any(|line| line.contains("● 00000002 two") && line.contains("✓✓")),
        "{shown}"
    );
}

#[tokio::test]
async fn a_sandbox_is_put_to_sleep() {
    let mut drive = Drive::new(two_patches()).await;
    go_to(&mut drive.model, "one");
    drive.press("z tab enter");
    let state =
        |model: &Model| model.sandboxes.get(&"00000001".into()).unwrap().record.state.clone();
    drive.until("it sleeps", |model| state(model) == State::Sleeping).await;
}

#[tokio::test]
async fn a_patch_that_came_behind_the_question_runs_nowhere() {
    for (name, keys) in [("two", "w"), ("two", "B"), ("one", "B")] {
        let mut drive = Drive::new(two_patches()).await;
        go_to(&mut drive.model, name);
        drive.press(keys);
        let request = PatchRequest {
            snapshot: "snap-0000000a".to_owned(),
            script: "rm -rf data".to_owned(),
            ..PatchRequest::default()
        };
        drive.env.client.add_patch(request).await.unwrap();
        drive.press("tab enter");
        drive.until("the answer", |model| model.jobs.list().any(|job| !job.is_running())).await;
        let JobState::Skipped(reason) = &drive.model.jobs.list().next().unwrap().state else {
            panic!("{name} {keys}")
        };
        assert!(reason.contains("changed since it was looked at"), "{name} {keys}: {reason}");
        assert!(drive.asked("wake").is_empty() && drive.asked("teardown").is_empty());
    }
}

// ---- patches -------------------------------------------------------------------------------------------------------

#[test]
fn patches_with_their_sandboxes_scripts_and_output() {
    let mut model = lineage_model();
    open_patches(&mut model);
    at_every_size("patches", &mut model);
    press(&mut model, "j enter");
    assert!(screen(&mut model, (100, 30)).contains("Patch 1 on 00000001: applied, exit 0"));
    press(&mut model, "esc j j j j j j enter");
    shows(
        &mut model,
        (100, 30),
        &["Patch 3 on 00000001: failed, exit 1", "ERROR: relation \"orders\" exists"],
    );
    press(&mut model, "esc j enter");
    assert!(toast(&mut model).contains("patch 3 has not run on 00000002 yet"));
    // The cursor stays on its row when another patch comes before it.
    assert_eq!(patches(&model).window.index, 8);
    let mut world = lineage_world(now());
    world.patches.remove(0);
    let status = patch_status(&world, "snap-0000000a");
    update(&mut model, Msg::PatchStatus("snap-0000000a".into(), Ok(status)));
    assert_eq!(patches(&model).window.index, 5);
    // From a sandbox: those of the snapshot that it is based on.
    press(&mut model, "esc");
    go_to(&mut model, "three");
    assert_eq!(press(&mut model, "p"), [Effect::PatchStatus("snap-0000000b".into())]);
    update(&mut model, Msg::PatchStatus("snap-0000000b".into(), Ok(Vec::new())));
    shows(&mut model, (100, 30), &["no patches", "a adds one"]);
    press(&mut model, "esc 1");
    point_at(&mut model, "golden");
    assert_eq!(press(&mut model, "p"), []);
    assert!(toast(&mut model).contains("it is based on no snapshot"));
}

#[test]
fn who_will_get_a_patch_is_shown_before_it_is_added() {
    let mut model = lineage_model();
    open_patches(&mut model);
    press(&mut model, "a");
    at_every_size("patch_add", &mut model);
    assert_eq!(press(&mut model, "enter"), [], "a file is required");
    assert!(screen(&mut model, (100, 30)).contains("✗ is required"));
    type_text(&mut model, "/srv/fix.sh");
    press(&mut model, "down");
    type_text(&mut model, "fix it");
    press(&mut model, "down");
    type_text(&mut model, "db");
    let effects = press(&mut model, "enter");
    let [Effect::AddPatch(number, request, file)] = &effects[..] else { panic!("{effects:?}") };
    assert_eq!(file.as_deref(), Some(std::path::Path::new("/srv/fix.sh")));
    let (description, run_in) = (request.description.as_deref(), request.run_in.as_deref());
    assert_eq!((request.snapshot.as_str(), description), ("snap-0000000a", Some("fix it")));
    assert_eq!(run_in, Some("db"));
    let mut problem = Error::new(Code::InvalidInput, "/srv/fix.sh cannot be read");
    problem.details = serde_json::json!({"field": "script"});
    update(&mut model, Msg::PatchAdded(*number, Err(problem)));
    assert!(screen(&mut model, (100, 30)).contains("✗ /srv/fix.sh cannot be read"));
    press(&mut model, "esc");
    assert!(matches!(model.overlays.as_slice(), [Overlay::Patches(_)]));
    // From the editor: the script is there, so no file is asked for.
    assert_eq!(press(&mut model, "e"), [Effect::Write("snap-0000000a".into())]);
    let written = Ok(Some("set -eu\ntouch done\n".to_owned()));
    update(&mut model, Msg::Written("snap-0000000a".into(), written));
    let shown = screen(&mut model, (100, 30));
    assert!(shown.contains("the script has 2 lines") && !shown.contains("script file"), "{shown}");
    update(&mut model, Msg::Drawn);
    let effects = press(&mut model, "enter");
    assert!(
        matches!(&effects[..], [Effect::AddPatch(_, request, None)] if request.script == "set -eu\ntouch done\n"),
        "{effects:?}"
    );
    update(&mut model, Msg::Written("snap-0000000a".into(), Ok(None)));
    assert!(toast(&mut model).contains("nothing was written"));
}

#[test]
fn a_patch_is_taken_away_after_asking_and_applied_to_one_or_to_all() {
    let mut model = lineage_model();
    open_patches(&mut model);
    press(&mut model, "j j j j j j x");
    at_every_size("patch_remove", &mut model);
    assert_eq!(press(&mut model, "enter"), []);
    let effects = press(&mut model, "x tab enter");
    assert_eq!(effects, [Effect::RemovePatch("snap-0000000a".into(), "pat-0000a003".into())]);
    // On a sandbox on which it failed: once more, after asking.
    press(&mut model, "j A");
    assert!(screen(&mut model, (100, 30)).contains("Run the patch once more?"));
    let effects = press(&mut model, "tab enter");
    let [Request::ApplyPatches(request)] = started(&effects)[..] else { panic!("{effects:?}") };
    assert_eq!((request.id.as_str(), request.revision, request.retry), ("00000001", Some(3), true));
    // One that sleeps gets it when it wakes.
    press(&mut model, "j A");
    assert!(screen(&mut model, (100, 30)).contains("left out: it is not ready"));
    press(&mut model, "esc g A");
    at_every_size("patch_rollout", &mut model);
    press(&mut model, "backspace");
    type_text(&mut model, "0");
    assert_eq!(press(&mut model, "enter"), []);
    press(&mut model, "backspace");
    type_text(&mut model, "2");
    let effects = press(&mut model, "enter");
    let [Effect::RollOut(job, request)] = &effects[..] else { panic!("{effects:?}") };
    assert_eq!((request.snapshot.as_str(), request.canary), ("snap-0000000a", Some(2)));
    // Only what was shown: the one that is ready, and the patches of that revision.
    let ready = &["00000001".into()][..];
    assert_eq!((request.revision, request.sandboxes.as_deref()), (Some(2), Some(ready)));
    assert!(model.jobs.get(*job).unwrap().is_running());
    press(&mut model, "J c tab enter");
    assert_eq!(model.jobs.get(*job).unwrap().state, JobState::Cancelling);
}

/// Begins a rollout here.
fn begin(model: &mut Model) -> JobId {
    let title = "patches of my-env".to_owned();
    model.jobs.start(OperationKind::Patch, None, title, real_now())
}

#[tokio::test]
async fn a_patch_goes_from_a_file_to_every_sandbox_and_stops_at_the_first_failure() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("fix.sh");
    std::fs::write(&script, "touch fixed\n").unwrap();
    let mut drive = Drive::new(two_patches()).await;
    go_to(&mut drive.model, "my-env");
    drive.press("p");
    // Not before the form is closed.
    let read = |count: usize| move |model: &Model| matches!(model.overlays.last(), Some(Overlay::Patches(patches)) if patches.status().len() == count);
    drive.until("the patches", read(2)).await;
    drive.press("a");
    drive.type_text(script.to_str().unwrap());
    drive.press("enter");
    drive.until("the third", read(3)).await;
    let said = toast(&mut drive.model);
    assert!(said.contains("patch 4 is on my-env; it runs on the next wake"), "{said}");
    drive.press("A enter");
    drive.jobs_end().await;
    let rollout =
        |model: &Model| model.jobs.list().find(|job| job.sandbox.is_none()).unwrap().clone();
    let job = rollout(&drive.model);
    assert_eq!(job.state, JobState::Succeeded, "{:?}", job.output);
    assert!(job.output.iter().any(|line| line == "00000001 (first): got 4"), "{:?}", job.output);
    let applied = |model: &Model| {
        let Some(Overlay::Patches(patches)) = model.overlays.last() else { return 0 };
        PatchRow { status: &patches.status()[2], standing: None }.applied()
    };
    drive.until("how they stand", |model| applied(model) == 1).await;
    // One that fails is told, with who has it by then.
    drive.env.script.patch.lock().unwrap().push_back(Script::Exits(1));
    drive.press("a");
    drive.type_text(script.to_str().unwrap());
    drive.press("enter");
    drive.until("the fourth", read(4)).await;
    drive.press("A enter");
    let is_over = |model: &Model| {
        model.jobs.running().count() == 0 && rollout(model).state != JobState::Succeeded
    };
    drive.until("the end", is_over).await;
    let JobState::Failed(problem) = rollout(&drive.model).state else { panic!() };
    assert!(problem.message.contains("0 of 2 have them; 00000001: patch 5"), "{}", problem.message);
    // One that was passed over is told, and is no failure.
    let job = begin(&mut drive.model);
    let item = |id: &str, refused: Option<Code>| RolloutItem {
        id: id.into(),
        ok: refused.is_none(),
        canary: false,
        applied: if refused.is_none() { vec![1] } else { Vec::new() },
        reason: None,
        error: refused.map(|code| Error::new(code, "passed over: it is sleeping")),
    };
    let reason = Some("it sleeps, and gets them on its next wake".to_owned());
    let asleep = RolloutItem { reason, applied: Vec::new(), ..item("00000003", None) };
    let items =
        vec![item("00000001", None), item("00000002", Some(Code::Conflict)), asleep.clone()];
    update(&mut drive.model, Msg::RolledOut(job, Ok(items)));
    assert_eq!(drive.model.jobs.get(job).unwrap().state, JobState::Succeeded);
    assert!(drive.model.toast.as_ref().unwrap().text.contains("1 sandbox has them; 2 passed over"));
    // One that was cancelled is, and nobody is called failed who was not begun.
    let job = begin(&mut drive.model);
    let late = RolloutItem { ok: false, ..asleep };
    let items = vec![item("00000001", Some(Code::Cancelled)), late];
    update(&mut drive.model, Msg::RolledOut(job, Ok(items)));
    let state = &drive.model.jobs.get(job).unwrap().state;
    assert!(matches!(state, JobState::Stopped(_)), "nobody says that it is as before");
}

#[tokio::test]
async fn a_rollout_that_is_stopped_begins_no_further_sandbox() {
    let script = Scripted::default();
    script.patch.lock().unwrap().push_back(Script::Hangs);
    let mut drive = Drive::scripted(two_patches(), script).await;
    let request = PatchRequest {
        snapshot: "snap-0000000a".to_owned(),
        script: "true".to_owned(),
        ..PatchRequest::default()
    };
    drive.env.other.add_patch(&request).await.unwrap();
    let added = |model: &Model| {
        model.snapshots.get(&"snap-0000000a".into()).is_some_and(|view| view.patches.len() == 3)
    };
    drive.until("the patch", added).await;
    go_to(&mut drive.model, "my-env");
    drive.press("p");
    drive.until("the patches", |model| patches(model).load == Load::Ready).await;
    drive.press("A enter J c tab enter");
    drive.until("the end", |model| model.jobs.running().count() == 0).await;
    let job = drive.model.jobs.list().find(|job| job.sandbox.is_none()).unwrap();
    assert!(matches!(job.state, JobState::Stopped(_)), "{:?}", job.state);
}
