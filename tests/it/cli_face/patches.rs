//! `patches` as they are typed and read, and `wait --for patched`.

use insta::assert_snapshot;
use sandboxer::client::{Error, RolloutItem};
use sandboxer::domain::patch::{AppliedPatch, PatchState};
use sandboxer::domain::{Code, SandboxRecord, SnapshotId, State};
use serde_json::{Value, json};

use super::cli_client::{End, FakeClient, id, now};
use super::cli_shelf::{patch, snapshot};
use super::cli_world::*;
use super::fits;

const A: &str = "snap-0000000a";

/// A snapshot, two patches on it, and a sandbox that owes both.
fn patched() -> FakeClient {
    let mut one = named("b1b1b1b1", "one", State::Ready);
    one.based_on_snapshot = Some(SnapshotId::new(A));
    let fake = FakeClient::with(vec![ready("a1b2c3d4"), one]);
    let mut inner = fake.lock();
    inner.shelf.snapshots = vec![snapshot(A, Some("base"), "a1b2c3d4")];
    inner.shelf.patches = vec![
        patch(1, A, "true", Some("newer\u{1b}[2J certificates")),
        patch(2, A, "make fix", None),
    ];
    drop(inner);
    fake
}

fn last(fake: &FakeClient) -> Value {
    let call = fake.calls().last().cloned().unwrap();
    serde_json::from_str(call.split_once(' ').unwrap().1).unwrap()
}

#[tokio::test]
async fn patches_in_their_order() {
    let fake = patched();
    assert_snapshot!("patches_list", run(&fake, "patches list base").await);
    let ran = run(&fake, "patches list base --json").await;
    assert_eq!(
        (ran.json().as_array().unwrap().len(), ran.json()[1]["script"].clone()),
        (2, json!("make fix"))
    );
    fake.lock().shelf.patches.clear();
    let ran = run(&fake, "patches list base").await;
    assert_eq!((ran.status, ran.stderr.as_str()), (0, "snapshot base has no patches\n"));
    assert_eq!(run(&fake, "patches list base --json").await.stdout, "[]\n");
    assert_eq!(run(&fake, "patches list nothing").await.status, 3);
}

#[tokio::test]
async fn a_script_comes_from_a_file_or_stdin_and_is_kept_exactly() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("fix.sh");
    std::fs::write(&file, "#!/bin/sh\necho ü\t'x'\n").unwrap();
    let fake = patched();
    let line = format!(
        "patches add base --script-file {} --description 'a fix' --run-in web",
        file.display()
    );
    assert_snapshot!("patches_add", run(&fake, &line).await);
    let asked = json!({"snapshot": A, "script": "#!/bin/sh\necho ü\t'x'\n", "description": "a fix", "run_in": "web"});
    assert_eq!(last(&fake), asked);
    let piped = World { types: "make all\n", ..World::default() };
    let ran = run_in(piped, &fake, "patches add base --script-file - --json").await;
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
    let fake = patched();
    for (path, says) in [
        (binary.as_str(), "is not UTF-8: byte 10 belongs to no character"),
        (large.as_str(), "the script has more than 96K"),
        ("/nowhere/file", "cannot be read"),
        (folder.path().to_str().unwrap(), "cannot be read"),
    ] {
        let ran = run(&fake, &format!("patches add base --script-file {path}")).await;
        assert_eq!(ran.status, 2, "{path}: {ran}");
        assert!(ran.stderr.contains(says), "{path}: {ran}");
    }
    assert!(fake.calls().is_empty());
    let most = file("most", &vec![b'#'; 96 * 1024]);
    assert_eq!(run(&fake, &format!("patches add base --script-file {most}")).await.status, 0);
    assert_eq!(run(&fake, "patches add base").await.status, 2);
}

#[tokio::test]
async fn removing_says_what_and_the_second_time_not_found() {
    let fake = patched();
    let ran = run(&fake, "patches remove base 2 --yes").await;
    assert_eq!(
        (ran.status, ran.stdout.as_str()),
        (0, "removed patch 2 (pat-00000002) from base\n")
    );
    assert_eq!(last(&fake), json!([A, "pat-00000002"]));
    assert_eq!(run(&fake, "patches remove base 2 --yes --json").await.error()["code"], "not_found");
    assert_eq!(
        run(&fake, "patches remove base pat-00000001 --yes --json").await.json()["sequence"],
        1
    );
}

#[tokio::test]
async fn removing_asks_on_a_terminal_and_needs_yes_off_it() {
    let fake = patched();
    let ran = run_in(on_terminal("n\n"), &fake, "patches remove base 1 --no-color").await;
    assert_snapshot!("patches_remove_asks", ran);
    for (types, line, status) in [
        ("y\n", "patches remove base 2", 0),
        ("\n", "patches remove base 2", 130),
        ("n\n", "patches remove base pat-00000002", 130),
        ("", "patches remove base 2 --yes", 0),
        ("y\n", "patches remove base 7", 3),
    ] {
        let fake = patched();
        let ran = run_in(on_terminal(types), &fake, line).await;
        assert_eq!(
            (ran.status, fake.lock().shelf.patches.len()),
            (status, 2 - usize::from(status == 0)),
            "{line}: {ran}"
        );
        // What was not asked about is not asked for either: somebody may add a 7 meanwhile.
        assert_eq!(fake.calls().is_empty(), status != 0, "{line}: {:?}", fake.calls());
    }
    for (line, status) in [
        ("patches remove base 2", 2),
        ("patches remove snap-0000000a pat-00000002", 2),
        ("patches remove snap-0000 2", 2),
        ("patches remove base 2 --yes", 0),
        ("patches remove snap-0000 2 --yes", 0),
    ] {
        for json in ["", " --json"] {
            let fake = patched();
            assert_eq!(run(&fake, &format!("{line}{json}")).await.status, status, "{line}{json}");
            assert_eq!(fake.calls().is_empty(), status == 2, "{line}{json}: {:?}", fake.calls());
        }
    }
}

fn standing(id: &str, name: Option<&str>, state: &str, blocked: bool, exit: Option<i32>) -> Value {
    let run = exit.map(|exit| {
        json!({"id": "pat-00000001", "sequence": 1, "state": state, "started_at": now(), "took_ms": 75_000,
            "exit_status": exit, "output": "secret"})
    });
    json!({"id": id, "name": name, "host": "coulombcore", "state": state, "blocked": blocked, "run": run})
}

#[tokio::test]
async fn status_says_how_each_sandbox_stands() {
    let fake = patched();
    let value = json!([
        {"patch": patch(1, A, "true", None), "sandboxes": [
            standing("b1b1b1b1", Some("one"), "applied", false, Some(0)),
            standing("b2b2b2b2", None, "failed", false, Some(7)),
            standing("b3b3b3b3", None, "unknown", false, None),
            standing("b4b4b4b4", None, "applying", false, None),
        ]},
        {"patch": patch(2, A, "true", None), "sandboxes": [
            standing("b1b1b1b1", Some("one"), "pending", false, None),
            standing("b2b2b2b2", None, "pending", true, None),
        ]},
        {"patch": patch(3, A, "true", None), "sandboxes": []},
    ]);
    fake.lock().shelf.status = serde_json::from_value(value).unwrap();
    assert_snapshot!("patches_status", run(&fake, "patches status base").await);
    let ran = run(&fake, "patches status base --json").await;
    fits("patch_status", &ran.json());
}

fn stands(state: PatchState, error: Option<&str>) -> SandboxRecord {
    let mut record = named("b1b1b1b1", "one", State::Ready);
    (record.patch_state, record.patch_error) = (state, error.map(str::to_owned));
    record.based_on_snapshot = Some(SnapshotId::new(A));
    record.applied_patches = vec![serde_json::from_value(json!({"id": "pat-00000002", "sequence": 2,
        "state": record.patch_state, "started_at": now(), "took_ms": 2000, "exit_status": 7, "output": "no such \u{1b}[31mfile"}))
    .unwrap()];
    record
}

#[tokio::test]
async fn applying_to_one_fails_when_a_patch_does() {
    let fake = patched().ends("b1b1b1b1", End::Well(Box::new(stands(PatchState::Applied, None))));
    let ran = run(&fake, "patches apply one --json").await;
    assert_eq!((ran.status, &ran.json()["patch_state"]), (0, &json!("applied")));
    assert_eq!(last(&fake), json!({"id": "b1b1b1b1", "revision": null, "retry": false}));
    run(&fake, "patches apply one --retry").await;
    assert_eq!(last(&fake)["retry"], true);
    let error = "patch 2 (pat-00000002) failed with exit status 7";
    let fake =
        patched().ends("b1b1b1b1", End::Well(Box::new(stands(PatchState::Failed, Some(error)))));
    assert_snapshot!("patches_apply_failed", run(&fake, "patches apply one").await);
    let ran = run(&fake, "patches apply one --json").await;
    assert_eq!((ran.status, &ran.error()["details"]["patch_state"]), (1, &json!("failed")));
}

#[tokio::test]
async fn a_rollout_ends_like_a_bulk_verb() {
    let item = |text: &str, canary, error: Option<Code>| RolloutItem {
        id: id(text),
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
        let fake = patched();
        let [first, second] = errors.clone();
        fake.lock().shelf.rollout =
            vec![item("b1b1b1b1", true, first), item("b2b2b2b2", false, second)];
        let ran = run(&fake, "patches apply --all base --canary 1 --json").await;
        assert_eq!(ran.status, status, "{errors:?}");
        assert_eq!(last(&fake), json!({"snapshot": A, "canary": 1}));
        fits("rollout", &ran.json());
        assert_eq!(run(&fake, "patches apply --all base").await.status, status, "{errors:?}");
    }
    let fake = patched();
    fake.lock().shelf.rollout =
        vec![item("b1b1b1b1", true, None), item("b2b2b2b2", false, Some(Code::Conflict))];
    assert_snapshot!("rollout", run(&fake, "patches apply --all base --canary 1").await);
    let ran = run(&fake, "patches apply --all base --canary 0").await;
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
        let fake = patched();
        assert_eq!(run(&fake, &format!("patches apply {wrong}")).await.status, 2, "{wrong}");
        assert!(fake.calls().is_empty());
    }
    let ran = run(&patched(), "patches apply --all base").await;
    assert_eq!(ran.stderr, "no sandbox is based on the snapshot: nothing to do\n");
}

fn skipped(text: &str, ok: bool, reason: &str) -> RolloutItem {
    RolloutItem {
        id: id(text),
        ok,
        canary: false,
        applied: vec![],
        reason: Some(reason.to_owned()),
        error: None,
    }
}

/// One that sleeps, and one that was not begun, have not failed.
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
        let fake = patched();
        fake.lock().shelf.rollout = items.clone();
        let ran = run(&fake, "patches apply --all base --json").await;
        assert_eq!(ran.status, status, "{items:?} {ran}");
        fits("rollout", &ran.json());
        assert_eq!(run(&fake, "patches apply --all base").await.status, status, "{items:?}");
    }
    let fake = patched();
    fake.lock().shelf.rollout = vec![first(Some(Code::OperationFailed)), asleep, late];
    assert_snapshot!("rollout_skips", run(&fake, "patches apply --all base --canary 1").await);
    let error = run(&fake, "patches apply --all base --json").await.error();
    assert_eq!(error["message"], "1 of 3 failed");
}

/// A run of a patch on the sandbox `one`.
fn ran_once(sequence: u64, state: &str, output: &str) -> AppliedPatch {
    serde_json::from_value(
        json!({"id": format!("pat-0000000{sequence}"), "sequence": sequence, "state": state,
        "started_at": now(), "took_ms": 2000, "exit_status": 7, "output": output}),
    )
    .unwrap()
}

/// Patch 3 failed and was removed since; patch 1 stands in the way; patch 2 fails now.
#[tokio::test]
async fn only_what_ran_now_or_stands_in_the_way_is_shown() {
    let mut before = stands(PatchState::Failed, Some("patch 1 (pat-00000001) failed"));
    before.applied_patches =
        vec![ran_once(1, "failed", "words of one"), ran_once(3, "failed", "words of three")];
    let shows = |ran: &Ran| {
        [1, 2, 3].map(|n| {
            ran.to_string().contains(&format!("words of {}", ["one", "two", "three"][n - 1]))
        })
    };
    let with = |record: &SandboxRecord, end: End| {
        let fake = patched();
        fake.lock().records = vec![ready("a1b2c3d4"), record.clone()];
        fake.ends("b1b1b1b1", end)
    };
    // Blocked: nothing runs.
    let problem = Error::new(Code::OperationFailed, "patch 1 (pat-00000001) failed");
    let fake = with(&before, End::Badly(problem.clone(), Box::new(before.clone())));
    let ran = run(&fake, "patches apply one").await;
    assert_eq!((ran.status, shows(&ran)), (1, [true, false, false]), "{ran}");
    assert_eq!(shows(&run(&fake, "get one").await), [true, false, false]);
    // With --retry the first goes well, and the second fails.
    let mut after = before.clone();
    after.applied_patches[0] = ran_once(1, "applied", "words of one");
    after.applied_patches.insert(1, ran_once(2, "failed", "words of two"));
    let fake = with(&before, End::Badly(problem, Box::new(after.clone())));
    let ran = run(&fake, "patches apply one --retry").await;
    assert_eq!((ran.status, shows(&ran)), (1, [false, true, false]), "{ran}");
    // Of a snapshot that is gone nothing can be removed.
    after.patch_error = Some("`sandboxer patches remove base 2` takes it away".to_owned());
    let fake = with(&after, End::Never);
    assert!(run(&fake, "get one").await.stdout.contains("takes it away"));
    fake.lock().shelf.snapshots.clear();
    let ran = run(&fake, "get one").await;
    assert_eq!((ran.stdout.contains("takes it away"), shows(&ran)), (false, [false; 3]), "{ran}");
}

/// That a patch failed does not hide that a service died, nor the other way round.
#[tokio::test]
async fn a_failed_patch_and_a_dead_service_are_both_seen() {
    let mut woken = stands(PatchState::Failed, Some("patch 2 (pat-00000002) failed"));
    woken.services =
        serde_json::from_value(json!([{"name": "web", "state": "exited", "exit_code": 1}]))
            .unwrap();
    let mut asleep = woken.clone();
    asleep.state = State::Sleeping;
    let fake = patched();
    fake.lock().records = vec![asleep];
    let fake = fake.ends("b1b1b1b1", End::Well(Box::new(woken)));
    for line in ["wake one", "get one", "list"] {
        let ran = run(&fake, line).await;
        assert!(ran.stdout.contains("web exit 1, patch failed"), "{line}: {ran}");
    }
}

#[tokio::test]
async fn ctrl_c_cancels_what_a_rollout_runs() {
    let fake = patched();
    fake.lock().shelf.waits = true;
    let running = json!({
        "id": "op-1a2b3c4d", "kind": "patch", "sandbox_id": "b1b1b1b1", "snapshot_id": null, "state": "running",
        "stage": null, "done": null, "of": null, "bytes": null, "started_at": now(), "finished_at": null,
        "pid": std::process::id(), "host": "box", "actor": {"type": "adm", "name": "tester"}, "error": null,
    });
    let mut elsewhere = running.clone();
    (elsewhere["id"], elsewhere["pid"]) = (json!("op-00000001"), json!(1));
    fake.lock().operations =
        [running, elsewhere].map(|one| serde_json::from_value(one).unwrap()).to_vec();
    let world = World { presses: 1, ..World::default() };
    run_in(world, &fake, "patches apply --all base").await;
    assert_eq!(fake.calls()[1..], ["cancel op-1a2b3c4d"], "only this process's");
}

/// A sandbox whose record says `said` of its patches, and the one patch that is on its snapshot, which it ran with `ran`.
fn owing(said: PatchState, ran: Option<PatchState>) -> FakeClient {
    let mut record = stands(said, None);
    let run = record.applied_patches.pop().unwrap();
    record.applied_patches.extend(ran.map(|state| AppliedPatch { state, ..run }));
    if record.patch_state == PatchState::Applying {
        record.operation = Some(
            serde_json::from_value(
                json!({"id": "op-1a2b3c4d", "kind": "patch", "started_at": now(),
            "pid": 1, "host": "box", "actor": {"type": "adm", "name": "tester"}}),
            )
            .unwrap(),
        );
    }
    let fake = FakeClient::with(vec![record]);
    fake.lock().shelf.snapshots = vec![snapshot(A, Some("base"), "a1b2c3d4")];
    fake.lock().shelf.patches = vec![patch(2, A, "make fix", None)];
    fake
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
        let ran = run(&owing(state.clone(), ran), PATCHED).await;
        assert_eq!(ran.status, status, "{state}: {ran}");
    }
    assert_eq!(
        run(&FakeClient::with(vec![stands(PatchState::None, None)]), PATCHED).await.status,
        0
    );
    let gone = owing(PatchState::Pending, None);
    gone.lock().records[0].state = State::Destroying;
    assert_eq!(run(&gone, "wait one --for patched").await.status, 4);
}

/// Whoever works on a sandbox may write down late what it owes.
#[tokio::test]
async fn wait_for_patched_goes_by_what_is_owed() {
    for (said, ran) in [(PatchState::None, None), (PatchState::Applied, None)] {
        assert_eq!(
            run(&owing(said, ran), PATCHED).await.status,
            5,
            "it owes the patch that is there by now"
        );
    }
    let failed = || owing(PatchState::Failed, Some(PatchState::Failed));
    let fake = failed();
    fake.lock().shelf.patches.clear();
    assert_eq!(run(&fake, PATCHED).await.status, 0, "the bad one was taken away");
    let fake = failed();
    fake.lock().shelf.snapshots.clear();
    assert_eq!(run(&fake, PATCHED).await.status, 0, "with a snapshot go its patches");
    let silent = owing(PatchState::Applied, Some(PatchState::Unknown));
    let ran = run(&silent, PATCHED).await;
    assert_eq!((ran.status, ran.stderr.as_str()), (1, "error: its patches are not all in\n"));
}

#[tokio::test]
async fn every_document_fits_its_schema() {
    let fake = patched();
    let piped = World { types: "make all\n", ..World::default() };
    fits("patch", &run_in(piped, &fake, "patches add base --script-file - --json").await.json());
    fits("patches", &run(&fake, "patches list base --json").await.json());
    fits("patch", &run(&fake, "patches remove base 1 --yes --json").await.json());
    fits("sandbox", &run(&fake, "patches apply one --json").await.json());
    let refused = Error::new(Code::Unsupported, "ext.saas-stub has no patches");
    fake.lock().shelf.refuses = Some(refused);
    let ran = run(&fake, "patches apply one --json").await;
    assert_eq!((ran.status, &ran.error()["code"]), (7, &json!("unsupported")));
    fits("error", &json!({"error": ran.error()}));
}
