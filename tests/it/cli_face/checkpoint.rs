//! `snapshot`, `restore`, `sleep`, `wake` as they are typed and read.

use insta::assert_snapshot;
use sandboxer::domain::error::Error;
use sandboxer::domain::patch::PatchState;
use sandboxer::domain::snapshot::{Consistency, NotCaptured, SnapshotState};
use sandboxer::domain::{Code, State};
use serde_json::{Value, json};

use super::cli_client::End;
use super::cli_shelf::{A, badly, based, family, last, snapshot};
use super::cli_world::*;

#[tokio::test]
async fn a_snapshot_is_asked_for_by_the_sandboxs_id() {
    let fake = family();
    let ran = run(&fake, "snapshot my-env --name before --mode stop").await;
    assert_snapshot!("snapshot", ran);
    assert_eq!(
        last(&fake).1,
        json!({"id": "a1b2c3d4", "revision": null, "name": "before", "mode": "stop"})
    );
    let ran = run(&fake, "snapshot a1b2 --json").await;
    assert_eq!((ran.status, &ran.json()["state"], ran.stderr.as_str()), (0, &json!("ready"), ""));
    assert_eq!(last(&fake).1["mode"], Value::Null);
    assert_eq!(run(&fake, "snapshot nothing").await.status, 3);
    assert_eq!(run(&fake, "snapshot my-env --mode paus").await.status, 2);
}

#[tokio::test]
async fn what_a_snapshot_is_less_than_hoped_is_said() {
    let mut fuzzy = snapshot("snap-0000000f", None, "a1b2c3d4");
    fuzzy.archive.consistency = Some(Consistency::Fuzzy);
    fuzzy.archive.not_captured =
        vec![NotCaptured { name: "cache".into(), reason: "the engine\u{1b}[2J refused".into() }];
    fuzzy.archive.not_preserved = [("xattrs".to_owned(), 3)].into();
    (fuzzy.archive.left_out, fuzzy.archive.left_out_count) =
        ((0..7).map(|n| format!("workspace/s{n}")).collect(), 120);
    let fake = family();
    fake.lock().shelf.ends.clear();
    fake.lock().shelf.becomes = Some(fuzzy);
    assert_snapshot!("snapshot_fuzzy", run(&fake, "snapshot my-env").await);
    assert_eq!(run(&fake, "snapshot my-env --quiet").await.stderr, "");
}

#[tokio::test]
async fn what_a_profiles_keep_deleted_is_told() {
    let mut newest = snapshot("snap-0000000f", None, "a1b2c3d4");
    newest.message = Some("the profile keeps 1 of a sandbox: deleted old\u{1b}[2J".to_owned());
    let fake = family();
    fake.lock().shelf.ends.clear();
    fake.lock().shelf.becomes = Some(newest);
    let ran = run(&fake, "snapshot my-env").await;
    let told = ran.stderr.lines().find(|line| line.contains("keeps 1")).unwrap();
    assert!(
        told.contains("deleted old") && !told.contains('\u{1b}') && !ran.stdout.contains("keeps"),
        "{ran}"
    );
    assert!(
        run(&fake, "snapshot my-env --json").await.json()["message"]
            .as_str()
            .unwrap()
            .contains("deleted old")
    );
    assert_eq!(run(&fake, "snapshot my-env --quiet").await.stderr, "");
}

#[tokio::test]
async fn a_failed_snapshot_shows_why_and_what_remains() {
    let problem = Error::new(Code::OperationFailed, "the archive could not be written");
    for (unremoved, name) in [(false, "snapshot_failed"), (true, "snapshot_failed_with_rest")] {
        let fake = family();
        let end = (problem.clone(), badly(SnapshotState::Failed, unremoved));
        fake.lock().shelf.ends.insert("snap-0000000f".into(), end);
        assert_snapshot!(name, run(&fake, "snapshot my-env --quiet").await);
        let ran = run(&fake, "snapshot my-env --json").await;
        let details = &ran.error()["details"];
        assert_eq!((ran.status, &details["failure"]["step"]), (1, &json!("archive")));
        assert_eq!(details["unremoved"], json!(unremoved));
    }
}

#[tokio::test]
async fn ctrl_c_cancels_a_snapshot_and_says_what_remains() {
    let fake = family();
    let end = (
        Error::new(Code::Cancelled, "cancelled and rolled back"),
        badly(SnapshotState::Failed, false),
    );
    fake.lock().shelf.ends.insert("snap-0000000f".into(), end);
    fake.lock().shelf.waits = true;
    let ran = run_in(World { presses: 1, ..World::default() }, &fake, "snapshot my-env").await;
    assert!(fake.calls().contains(&"cancel op-snap-0000000f".to_owned()));
    assert_snapshot!(ran, @r"
    status 130
    --- stdout
    --- stderr
    cancelling; Ctrl-C again leaves at once
    error: cancelled and rolled back
    hint: nothing of it is left on coulombcore; sandboxer snapshots get snap-0000000f shows what was recorded
    ");
}

#[tokio::test]
async fn a_second_ctrl_c_names_recover() {
    let fake = family().ends("a1b2c3d4", End::Never);
    for line in ["sleep my-env", "patches apply my-env"] {
        let ran = run_in(World { presses: 2, ..World::default() }, &fake, line).await;
        assert_eq!((ran.status, ran.left_at_once), (130, true), "{line}: {ran}");
        assert!(
            ran.stderr.contains("hint: sandboxer recover brings into order what remains"),
            "{ran}"
        );
    }
}

#[tokio::test]
async fn restore_makes_another_one() {
    let fake = family();
    let line = "restore base --host coulombcore --ttl 2h --name try --require-patches --strict";
    let ran = run(&fake, line).await;
    assert_eq!((ran.status, ran.stdout.lines().next()), (0, Some("id         r0000001")), "{ran}");
    let asked = json!({"snapshot": A, "revision": null, "host": "coulombcore", "ttl": "2h", "name": "try", "require_patches": true,
        "strict": true});
    assert_eq!(last(&fake), ("restore".to_owned(), asked));
    assert_eq!(run(&fake, "restore nothing").await.status, 3);
}

#[tokio::test]
async fn undo_makes_another_one_of_what_was_removed() {
    let fake = family();
    let none = run(&fake, "undo").await;
    assert_eq!((none.status, last(&fake).1), (3, json!({"id": null})), "{none}");
    fake.lock().records.push(named("d1d2d3d4", "shop", State::Destroyed));
    assert_snapshot!("undo", run(&fake, "undo shop").await);
    assert_eq!(last(&fake), ("undo".to_owned(), json!({"id": "shop"})));
    let ran = run(&fake, "undo --json").await;
    assert_eq!((ran.status, &ran.json()["undo_of"]), (0, &json!("d1d2d3d4")), "{ran}");
}

#[tokio::test]
async fn a_destroy_says_what_is_kept_and_one_without_is_asked_for() {
    let fake = family();
    let mut gone = named("a1b2c3d4", "my-env", State::Destroyed);
    gone.message = Some("undo snapshot snap-0000000e is kept\u{1b}[2J until tomorrow".to_owned());
    fake.lock().ends.insert("a1b2c3d4".into(), End::Well(Box::new(gone)));
    let ran = run(&fake, "destroy my-env").await;
    assert_snapshot!("destroy_kept", ran);
    let fake = family();
    let ran = run(&fake, "destroy my-env --no-undo --json").await;
    assert_eq!(ran.json(), json!([{"id": "a1b2c3d4", "ok": true}]));
    assert!(fake.lock().calls.iter().any(|call| call.contains("\"no_undo\":true")));
}

#[tokio::test]
async fn a_restore_that_is_less_than_hoped_says_so() {
    let mut left = based("r0000001", "try", A);
    left.not_preserved = [("owners".to_owned(), 12)].into();
    left.patch_state = PatchState::Failed;
    left.patch_error =
        Some("patch 2 failed with exit status 1; sandboxer patches apply try --retry".into());
    let fake = family().ends("r0000001", End::Well(Box::new(left)));
    let ran = run(&fake, "restore base").await;
    assert_eq!(ran.status, 0);
    assert_snapshot!(ran.stderr, @r"
    warning: coulombcore could not set 12 owners; --strict fails on that
    warning: patch 2 failed with exit status 1; sandboxer patches apply try --retry
    ");
    // It did not come to be.
    let problem = Error::new(Code::OperationFailed, "patch 2 failed with exit status 1");
    let fake = family().ends("r0000001", End::Badly(problem, Box::new(failed("r0000001"))));
    let ran = run(&fake, "restore base --require-patches").await;
    assert_eq!(ran.status, 1);
    assert!(ran.stderr.contains("step  start, exit 1"), "{ran}");
}

#[tokio::test]
async fn sleep_and_wake_and_nothing_to_do() {
    let asleep = named("a1b2c3d4", "my-env", State::Sleeping);
    let fake = family().ends("a1b2c3d4", End::Well(Box::new(asleep)));
    let ran = run(&fake, "sleep my-env --json").await;
    assert_eq!((ran.status, &ran.json()["state"]), (0, &json!("sleeping")));
    assert_eq!(last(&fake), ("sleep".to_owned(), json!({"id": "a1b2c3d4", "revision": null})));
    let ran = run(&fake, "sleep my-env").await;
    assert_eq!((ran.status, ran.stderr.as_str()), (0, "my-env is asleep: nothing to do\n"));
    let mut awake = named("a1b2c3d4", "my-env", State::Ready);
    awake.patch_state = PatchState::Failed;
    awake.patch_error = Some("patch 3 failed".into());
    let fake = fake.ends("a1b2c3d4", End::Well(Box::new(awake)));
    let ran = run(&fake, "wake my-env").await;
    assert_eq!((ran.status, ran.stderr.as_str()), (0, "warning: patch 3 failed\n"));
    assert_eq!(
        run(&fake, "wake my-env").await.stderr.lines().next(),
        Some("my-env is awake: nothing to do")
    );
}
