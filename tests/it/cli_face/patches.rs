//! `patches` as they are typed and read, and `wait --for patched`.

use insta::assert_snapshot;
use sandboxer::client::{Client as _, Error, RolloutItem, Started};
use sandboxer::domain::operation::OperationKind;
use sandboxer::domain::patch::{AppliedPatch, PatchState};
use sandboxer::domain::{Code, SandboxId, SandboxRecord, SnapshotId, State};
use serde_json::json;

use super::cli_world::*;
use super::fits;
use super::snapshot_records::{A, patch, run_of, snapshot};
use crate::test_env::fixture::{Fixture, held, service};
use crate::test_env::script::Script;

fn one() -> SandboxRecord {
    let mut one = named("b1b1b1b1", "one", State::Ready);
    one.based_on_snapshot = Some(SnapshotId::new(A));
    one
}

/// A snapshot, two patches on it, and these sandboxes beside its source.
async fn patched_with(sandboxes: Vec<SandboxRecord>) -> Console {
    let mut base = snapshot(A, Some("base"), "a1b2c3d4");
    base.next_patch_sequence = 3;
    let patches = vec![
        patch(1, A, "true", Some("newer\u{1b}[2J certificates")),
        patch(2, A, "make fix", None),
    ];
    let mut records = sandboxes;
    records.insert(0, ready("a1b2c3d4"));
    let snapshots = vec![base];
    env_of(Fixture { records, hosts: hosts(), snapshots, patches, ..Fixture::default() }).await
}

/// The same, with a sandbox that owes both.
async fn patched() -> Console {
    patched_with(vec![one()]).await
}

/// Neither patch is there any more.
async fn without_patches(console: &Console) {
    for patch in [1, 2] {
        run(console, &format!("patches remove base {patch} --yes")).await;
    }
}

#[tokio::test]
async fn patches_in_their_order() {
    let console = patched().await;
    assert_snapshot!("patches_list", run(&console, "patches list base").await);
    let ran = run(&console, "patches list base --json").await;
    assert_eq!(
        (ran.json().as_array().unwrap().len(), ran.json()[1]["script"].clone()),
        (2, json!("make fix"))
    );
    without_patches(&console).await;
    let ran = run(&console, "patches list base").await;
    assert_eq!(ran.said(), (0, "snapshot base has no patches\n"));
    assert_eq!(run(&console, "patches list base --json").await.stdout, "[]\n");
    assert_eq!(exits(&console, "patches list nothing").await, 3);
}

#[tokio::test]
async fn a_script_comes_from_a_file_or_stdin_and_is_kept_exactly() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("fix.sh");
    std::fs::write(&file, "#!/bin/sh\necho ü\t'x'\n").unwrap();
    let console = patched().await;
    let line = format!(
        "patches add base --script-file {} --description 'a fix' --run-in web",
        file.display()
    );
    assert_snapshot!("patches_add", run(&console, &line).await);
    let asked = json!({"snapshot": A, "script": "#!/bin/sh\necho ü\t'x'\n", "description": "a fix", "run_in": "web"});
    assert_eq!(console.last().1, asked);
    let piped = World { types: "make all\n", ..World::default() };
    let ran = run_in(piped, &console, "patches add base --script-file - --json").await;
    assert_eq!((ran.status, &ran.json()["script"]), (0, &json!("make all\n")));
}

#[tokio::test]
async fn what_is_no_script_is_refused_before_anything_is_asked() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, content: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        path.display().to_string()
    };
    let binary = file("binary", b"#!/bin/sh\n\xff\xfe");
    let large = file("large", &vec![b'#'; 96 * 1024 + 1]);
    let console = patched().await;
    for (path, says) in [
        (binary.as_str(), "is not UTF-8: byte 10 belongs to no character"),
        (large.as_str(), "the script has more than 96K"),
        ("/nowhere/file", "cannot be read"),
        (folder.path().to_str().unwrap(), "cannot be read"),
    ] {
        let ran = run(&console, &format!("patches add base --script-file {path}")).await;
        assert_eq!(ran.status, 2, "{path}: {ran}");
        assert!(ran.stderr.contains(says), "{path}: {ran}");
    }
    assert!(console.calls().is_empty());
    let most = file("most", &vec![b'#'; 96 * 1024]);
    assert_eq!(exits(&console, &format!("patches add base --script-file {most}")).await, 0);
    assert_eq!(exits(&console, "patches add base").await, 2);
}

#[tokio::test]
async fn removing_says_what_and_the_second_time_not_found() {
    let console = patched().await;
    let ran = run(&console, "patches remove base 2 --yes").await;
    assert_eq!(ran.out(), (0, "removed patch 2 (pat-00000002) from base\n"));
    assert_eq!(console.last().1, json!([A, "pat-00000002"]));
    assert_eq!(
        run(&console, "patches remove base 2 --yes --json").await.error()["code"],
        "not_found"
    );
    assert_eq!(document(&console, "patches remove base pat-00000001 --yes").await["sequence"], 1);
}

#[tokio::test]
async fn removing_asks_on_a_terminal_and_needs_yes_off_it() {
    let console = patched().await;
    let ran = run_in(on_terminal("n\n"), &console, "patches remove base 1 --no-color").await;
    assert_snapshot!("patches_remove_asks", ran);
    for (types, line, status) in [
        ("y\n", "patches remove base 2", 0),
        ("\n", "patches remove base 2", 130),
        ("n\n", "patches remove base pat-00000002", 130),
        ("", "patches remove base 2 --yes", 0),
        ("y\n", "patches remove base 7", 3),
    ] {
        let console = patched().await;
        let ran = run_in(on_terminal(types), &console, line).await;
        assert_eq!(
            (ran.status, console.client.snapshot_view(A).await.unwrap().patches.len()),
            (status, 2 - usize::from(status == 0)),
            "{line}: {ran}"
        );
        // What was not asked about is not asked for either: somebody may add a 7 meanwhile.
        assert_eq!(console.calls().is_empty(), status != 0, "{line}: {:?}", console.calls());
    }
    for (line, status) in [
        ("patches remove base 2", 2),
        ("patches remove snap-0000000a pat-00000002", 2),
        ("patches remove snap-0000 2", 2),
        ("patches remove base 2 --yes", 0),
        ("patches remove snap-0000 2 --yes", 0),
    ] {
        for json in ["", " --json"] {
            let console = patched().await;
            assert_eq!(exits(&console, &format!("{line}{json}")).await, status, "{line}{json}");
            assert_eq!(
                console.calls().is_empty(),
                status == 2,
                "{line}{json}: {:?}",
                console.calls()
            );
        }
    }
}

#[tokio::test]
async fn status_says_how_each_sandbox_stands() {
    let of = |id: &str, runs: Vec<AppliedPatch>| SandboxRecord {
        name: (id == "b1b1b1b1").then(|| "one".to_owned()),
        id: SandboxId::new(id),
        applied_patches: runs,
        ..one()
    };
    let console = patched_with(vec![
        of("b1b1b1b1", vec![run_of(1, "applied", "secret")]),
        of("b2b2b2b2", vec![run_of(1, "failed", "secret")]),
        of("b3b3b3b3", vec![run_of(1, "unknown", "secret")]),
        of("b4b4b4b4", vec![run_of(1, "applying", "secret")]),
    ])
    .await;
    assert_snapshot!("patches_status", run(&console, "patches status base").await);
    let ran = run(&console, "patches status base --json").await;
    fits("patch_status", &ran.json());
    // On another one there is a patch that nobody has.
    run(&console, "snapshot b1b1b1b1 --name alone").await;
    let piped = World { types: "true\n", ..World::default() };
    run_in(piped, &console, "patches add alone --script-file -").await;
    let ran = run(&console, "patches status alone").await;
    assert!(ran.stdout.contains("no sandbox is based on the snapshot\n"), "{ran}");
}

/// The sandbox `one`, with this run of patch 2.
fn stands(state: PatchState) -> SandboxRecord {
    let mut record = one();
    record.applied_patches = vec![run_of(2, state.as_str(), "no such \u{1b}[31mfile")];
    record.patch_state = state;
    record
}

#[tokio::test]
async fn applying_to_one_fails_when_a_patch_does() {
    let console = patched().await;
    let ran = run(&console, "patches apply one --json").await;
    assert_eq!((ran.status, &ran.json()["patch_state"]), (0, &json!("applied")));
    assert_eq!(console.last().1, json!({"id": "b1b1b1b1", "revision": null, "retry": false}));
    let console = patched().await;
    console.script.patch.lock().unwrap().extend([Script::Exits(0), Script::Exits(7)]);
    assert_snapshot!("patches_apply_failed", run(&console, "patches apply one").await);
    let ran = run(&console, "patches apply one --json").await;
    assert_eq!((ran.status, &ran.error()["details"]["patch_state"]), (1, &json!("failed")));
    let ran = run(&console, "patches apply one --retry").await;
    assert_eq!((ran.status, &console.last().1["retry"]), (0, &json!(true)), "{ran}");
}

#[tokio::test]
async fn a_rollout_ends_like_a_bulk_verb() {
    let item = |text: &str, canary, error: Option<Code>| RolloutItem {
        id: SandboxId::new(text),
        ok: error.is_none(),
        canary,
        applied: if error.is_none() { vec![1, 2] } else { vec![] },
        reason: None,
        error: error.map(|code| Error::new(code, format!("{text} went wrong"))),
    };
    for (errors, status) in [
        ([None, None], 0),
        ([Some(Code::OperationFailed), Some(Code::OperationFailed)], 1),
        ([None, Some(Code::Conflict)], 8),
        ([Some(Code::Conflict), Some(Code::Conflict)], 4),
    ] {
        let [first, second] = errors.clone();
        let items = vec![item("b1b1b1b1", true, first), item("b2b2b2b2", false, second)];
        let console = patched().await.answers("roll_out", items);
        let ran = run(&console, "patches apply --all base --canary 1 --json").await;
        assert_eq!(ran.status, status, "{errors:?}");
        assert_eq!(console.last().1, json!({"snapshot": A, "canary": 1}));
        fits("rollout", &ran.json());
        assert_eq!(exits(&console, "patches apply --all base").await, status, "{errors:?}");
    }
    let items = vec![item("b1b1b1b1", true, None), item("b2b2b2b2", false, Some(Code::Conflict))];
    let console = patched().await.answers("roll_out", items);
    assert_snapshot!("rollout", run(&console, "patches apply --all base --canary 1").await);
    let ran = run(&console, "patches apply --all base --canary 0").await;
    assert_eq!(ran.status, 2, "{ran}");
    assert!(ran.stderr.contains("--canary"), "{ran}");
    for wrong in [
        "",
        "one --all base",
        "one --canary 1",
        "--all base --retry",
        "--canary 1",
        "--all base --canary x",
    ] {
        let console = patched().await;
        assert_eq!(exits(&console, &format!("patches apply {wrong}")).await, 2, "{wrong}");
        assert!(console.calls().is_empty());
    }
    let ran = run(&patched_with(vec![]).await, "patches apply --all base").await;
    assert_eq!(ran.stderr, "no sandbox is based on the snapshot: nothing to do\n");
}

fn skipped(text: &str, ok: bool, reason: &str) -> RolloutItem {
    RolloutItem {
        id: SandboxId::new(text),
        ok,
        canary: false,
        applied: vec![],
        reason: Some(reason.to_owned()),
        error: None,
    }
}

/// A sandbox that sleeps, and one that was not begun, have not failed.
#[tokio::test]
async fn whom_a_rollout_skips_has_not_failed() {
    let asleep = skipped("b2b2b2b2", true, "it sleeps, and gets them on its next wake");
    let late = skipped("b3b3b3b3", false, "not begun: sandbox one failed");
    let first = |error: Option<Code>| RolloutItem {
        canary: true,
        ok: error.is_none(),
        reason: None,
        error: error.map(|code| Error::new(code, "one went wrong")),
        ..skipped("b1b1b1b1", true, "")
    };
    for (items, status) in [
        (vec![asleep.clone()], 0),
        (vec![first(None), asleep.clone()], 0),
        (vec![first(Some(Code::OperationFailed)), late.clone()], 8),
        (vec![first(Some(Code::Cancelled)), late.clone()], 130),
        (vec![first(Some(Code::Cancelled)), asleep.clone(), late.clone()], 8),
    ] {
        let console = patched().await.answers("roll_out", items.clone());
        let ran = run(&console, "patches apply --all base --json").await;
        assert_eq!(ran.status, status, "{items:?} {ran}");
        fits("rollout", &ran.json());
        assert_eq!(exits(&console, "patches apply --all base").await, status, "{items:?}");
    }
    let items = vec![first(Some(Code::OperationFailed)), asleep, late];
    let console = patched().await.answers("roll_out", items);
    assert_snapshot!("rollout_skips", run(&console, "patches apply --all base --canary 1").await);
    let error = run(&console, "patches apply --all base --json").await.error();
    assert_eq!(error["message"], "1 of 3 failed");
}

/// Patch 3 failed and was removed since; patch 1 stands in the way; patch 2 fails now.
#[tokio::test]
async fn only_what_ran_now_or_stands_in_the_way_is_shown() {
    let mut before = one();
    before.patch_state = PatchState::Failed;
    before.applied_patches =
        vec![run_of(1, "failed", "words of one"), run_of(3, "failed", "words of three")];
    let shows = |ran: &Ran| {
        ["words of one", "ran make fix", "words of three"]
            .map(|words| ran.to_string().contains(words))
    };
    // Blocked: nothing runs.
    let console = patched_with(vec![before]).await;
    let ran = run(&console, "patches apply one").await;
    assert_eq!((ran.status, shows(&ran)), (1, [true, false, false]), "{ran}");
    assert_eq!(shows(&run(&console, "get one").await), [true, false, false]);
    // With --retry the first goes well, and the second fails.
    console.script.patch.lock().unwrap().extend([Script::Exits(0), Script::Exits(7)]);
    let ran = run(&console, "patches apply one --retry").await;
    assert_eq!((ran.status, shows(&ran)), (1, [false, true, false]), "{ran}");
    // Of a snapshot that is gone nothing can be removed.
    let ran = run(&console, "get one").await;
    assert!(ran.stdout.contains("patches remove"), "{ran}");
    run(&console, "snapshots delete base --force --yes").await;
    let ran = run(&console, "get one").await;
    assert_eq!((ran.stdout.contains("patches remove"), shows(&ran)), (false, [false; 3]), "{ran}");
}

/// That a patch failed does not hide that a service died, nor the other way round.
#[tokio::test]
async fn a_failed_patch_and_a_dead_service_are_both_seen() {
    let console = patched_with(vec![SandboxRecord { state: State::Sleeping, ..one() }]).await;
    console.script.patch.lock().unwrap().push_back(Script::Exits(7));
    let mut found = readiness();
    found.services = vec![service("web", "exited", Some(1))];
    console.script.seen.lock().unwrap().services.clone_from(&found.services);
    *console.script.readiness.lock().unwrap() = Some(found);
    for line in ["wake one", "get one", "list"] {
        let ran = run(&console, line).await;
        assert!(ran.stdout.contains("web exit 1, patch failed"), "{line}: {ran}");
    }
}

#[tokio::test]
async fn ctrl_c_cancels_what_a_rollout_runs() {
    let elsewhere = held(named("c0000001", "else", State::Ready), OperationKind::Patch, now());
    let console = patched_with(vec![one(), elsewhere]).await;
    console.script.patch.lock().unwrap().push_back(Script::Hangs);
    let world = pressed(1, "patch ");
    let ran = run_in(world, &console, "patches apply --all base").await;
    assert_eq!(ran.status, 130, "{ran}");
    let calls = console.calls();
    assert!(calls.len() == 2 && calls[1].starts_with("cancel "), "only this process's: {calls:?}");
}

/// A sandbox whose record says `said` of its patches, and the one patch that is on its snapshot, which it ran with `ran`.
async fn owing_in(said: PatchState, ran: Option<PatchState>, state: State) -> Console {
    let mut record = stands(said);
    record.state = state;
    record.applied_patches = ran.map(|state| run_of(2, state.as_str(), "")).into_iter().collect();
    if record.patch_state == PatchState::Applying {
        record = held(record, OperationKind::Patch, now());
    }
    let mut base = snapshot(A, Some("base"), "a1b2c3d4");
    base.next_patch_sequence = 3;
    let (snapshots, patches) = (vec![base], vec![patch(2, A, "make fix", None)]);
    env_of(Fixture { records: vec![record], snapshots, patches, ..Fixture::default() }).await
}

async fn owing(said: PatchState, ran: Option<PatchState>) -> Console {
    owing_in(said, ran, State::Ready).await
}

const PATCHED: &str = "wait one --for patched --timeout 0s";

#[tokio::test]
async fn wait_for_patched_knows_every_state() {
    for (state, ran, status) in [
        (PatchState::Applied, Some(PatchState::Applied), 0),
        (PatchState::Failed, Some(PatchState::Failed), 1),
        (PatchState::Unknown, Some(PatchState::Unknown), 1),
        (PatchState::Pending, None, 5),
        (PatchState::Applying, Some(PatchState::Applying), 5),
        (PatchState::Applying, Some(PatchState::Applied), 5),
    ] {
        let ran = run(&owing(state.clone(), ran).await, PATCHED).await;
        assert_eq!(ran.status, status, "{state}: {ran}");
    }
    assert_eq!(run(&with(vec![one()]).await, PATCHED).await.status, 0);
    let gone = owing_in(PatchState::Pending, None, State::Destroying).await;
    assert_eq!(exits(&gone, "wait one --for patched").await, 4);
}

/// Whoever works on a sandbox may write down late what it owes.
#[tokio::test]
async fn wait_for_patched_goes_by_what_is_owed() {
    for (said, ran) in [(PatchState::None, None), (PatchState::Applied, None)] {
        assert_eq!(
            exits(&owing(said, ran).await, PATCHED).await,
            5,
            "it owes the patch that is there by now"
        );
    }
    for line in ["patches remove base 2 --yes", "snapshots delete base --force --yes"] {
        let console = owing(PatchState::Failed, Some(PatchState::Failed)).await;
        assert_eq!(exits(&console, line).await, 0, "{line}");
        assert_eq!(exits(&console, PATCHED).await, 0, "the bad one was taken away: {line}");
    }
    let silent = owing(PatchState::Applied, Some(PatchState::Unknown)).await;
    let ran = run(&silent, PATCHED).await;
    assert_eq!(ran.said(), (1, "error: its patches are not all in\n"));
}

#[tokio::test]
async fn every_document_fits_its_schema() {
    let console = patched().await;
    let piped = World { types: "make all\n", ..World::default() };
    fits("patch", &run_in(piped, &console, "patches add base --script-file - --json").await.json());
    fits("patches", &document(&console, "patches list base").await);
    fits("patch", &document(&console, "patches remove base 1 --yes").await);
    fits("sandbox", &document(&console, "patches apply one").await);
    let refused = Error::new(Code::Unsupported, "ext.saas-stub has no patches");
    console.client.answers::<Started>("start", Err(refused));
    let ran = run(&console, "patches apply one --json").await;
    assert_eq!(ran.code(), (7, "unsupported".to_owned()));
    fits("error", &json!({"error": ran.error()}));
}
