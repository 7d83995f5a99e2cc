//! `snapshot`, `restore`, `sleep`, `wake` as they are typed and read.

use insta::assert_snapshot;
use sandboxer::domain::error::Code;
use sandboxer::domain::profile::SnapshotMode;
use sandboxer::domain::snapshot::{ArchiveFacts, Consistency, NotCaptured};
use serde_json::{Value, json};

use super::cli_world::*;
use super::snapshot_records::{A, family};
use crate::test_env::script::{Act, Script};

#[tokio::test]
async fn a_snapshot_is_asked_for_by_the_sandboxs_id() {
    let console = family().await;
    let ran = run(&console, "snapshot my-env --name before --mode stop").await;
    assert_snapshot!("snapshot", ran);
    assert_eq!(
        console.last().1,
        json!({"id": "a1b2c3d4", "revision": null, "name": "before", "mode": "stop"})
    );
    let ran = run(&console, "snapshot a1b2 --json").await;
    assert_eq!((ran.status, &ran.json()["state"], ran.stderr.as_str()), (0, &json!("ready"), ""));
    assert_eq!(console.last().1["mode"], Value::Null);
    assert_eq!(exits(&console, "snapshot nothing").await, 3);
    assert_eq!(exits(&console, "snapshot my-env --mode paus").await, 2);
}

#[tokio::test]
async fn what_a_snapshot_is_less_than_hoped_is_said() {
    let console = family().await;
    *console.script.shelf.facts.lock().unwrap() = Some(ArchiveFacts {
        bytes: Some(1_500_000),
        mode: Some(SnapshotMode::Pause),
        consistency: Some(Consistency::Fuzzy),
        not_captured: vec![NotCaptured {
            name: "cache".into(),
            reason: "the engine\u{1b}[2J refused".into(),
        }],
        not_preserved: [("xattrs".to_owned(), 3)].into(),
        left_out: (0..7).map(|n| format!("workspace/s{n}")).collect(),
        left_out_count: 120,
        ..ArchiveFacts::default()
    });
    assert_snapshot!("snapshot_fuzzy", run(&console, "snapshot my-env").await);
    assert_eq!(run(&console, "snapshot my-env --quiet").await.stderr, "");
}

#[tokio::test]
async fn what_a_profiles_keep_deleted_is_told() {
    let console = nothing().await;
    console.profile("e2e-kept", "compose-e2e", |text| text.replace("keep: null", "keep: 1"));
    let mut source = ready("a1b2c3d4");
    source.profile.id = "profile.e2e-kept".into();
    console.put(source).await;
    assert_eq!(exits(&console, "snapshot my-env --name old").await, 0);
    console.script.pass(60);
    let ran = run(&console, "snapshot my-env").await;
    let told =
        ran.stderr.lines().find(|line| line.contains("keeps 1")).unwrap_or_else(|| panic!("{ran}"));
    assert!(told.contains("deleted old") && !ran.stdout.contains("keeps"), "{ran}");
    console.script.pass(60);
    let json = document(&console, "snapshot my-env").await;
    assert!(json["message"].as_str().unwrap().contains("keeps 1"), "{json}");
    console.script.pass(60);
    assert_eq!(run(&console, "snapshot my-env --quiet").await.stderr, "");
}

#[tokio::test]
async fn a_failed_snapshot_shows_why_and_what_remains() {
    for (unremoved, name) in [(false, "snapshot_failed"), (true, "snapshot_failed_with_rest")] {
        let console = family().await;
        let said = report(2, "archive", Some("tar: \u{1b}[31mNo space left on device\u{1b}[0m"));
        *console.script.progress.lock().unwrap() = vec![said];
        let broken = || Act::Fail(Code::OperationFailed, "the archive could not be written");
        console.script.shelf.capture.lock().unwrap().extend([broken(), broken()]);
        if unremoved {
            console.script.shelf.remove.lock().unwrap().extend([Act::Refuse, Act::Refuse]);
        }
        assert_snapshot!(name, run(&console, "snapshot my-env --quiet").await);
        let ran = run(&console, "snapshot my-env --json").await;
        let details = &ran.error()["details"];
        assert_eq!((ran.status, &details["failure"]["step"]), (1, &json!("archive")));
        assert_eq!(details["unremoved"], json!(unremoved));
    }
}

#[tokio::test]
async fn ctrl_c_cancels_a_snapshot_and_says_what_remains() {
    let console = family().await;
    console.script.shelf.capture.lock().unwrap().push_back(Act::Hang);
    let ran = run_in(pressed(1, "snapshot"), &console, "snapshot my-env").await;
    assert!(console.calls().iter().any(|call| call.starts_with("cancel ")));
    assert_snapshot!(ran, @r"
    status 130
    --- stdout
    --- stderr
    cancelling; Ctrl-C again leaves at once
    error: snapshot snap-17156075: cancelled; nothing of it is left (undone: as before)
    hint: nothing of it is left on coulombcore; sandboxer snapshots get snap-17156075 shows what was recorded
    ");
}

#[tokio::test]
async fn a_second_ctrl_c_names_recover() {
    for (line, once) in [("sleep my-env", "sleep"), ("patches apply one", "patch ")] {
        let console = family().await;
        console.script.sleep.lock().unwrap().push_back(Act::Hang);
        console.script.patch.lock().unwrap().push_back(Script::Hangs);
        // Whoever is called off looks at what is there.
        console.script(&[], &[Act::Hang, Act::Hang], &[]);
        let ran = run_in(pressed(2, once), &console, line).await;
        assert_eq!((ran.status, ran.left_at_once), (130, true), "{line}: {ran}");
        assert!(
            ran.stderr.contains("hint: sandboxer recover brings into order what remains"),
            "{ran}"
        );
    }
}

#[tokio::test]
async fn restore_makes_another_one() {
    let console = family().await;
    let line = "restore base --host coulombcore --ttl 2h --name try --require-patches --strict";
    let ran = run(&console, line).await;
    let asked = json!({"snapshot": A, "revision": null, "host": "coulombcore", "ttl": "2h", "name": "try", "require_patches": true,
        "strict": true});
    assert_eq!((ran.status, console.last()), (0, ("restore".to_owned(), asked)), "{ran}");
    assert!(ran.stdout.contains("name       try\n"), "{ran}");
    assert_eq!(exits(&console, "restore nothing").await, 3);
}

/// A world with a sandbox that is kept for undo when it is removed.
async fn kept() -> Console {
    let console = nothing().await;
    console.profile("kept", "sandbox-canary", |text| format!("{text}undo: true\n"));
    let mut shop = named("d1d2d3d4", "shop", sandboxer::domain::State::Ready);
    shop.profile.id = "profile.kept".into();
    console.put(shop).await;
    console
}

#[tokio::test]
async fn undo_makes_another_one_of_what_was_removed() {
    let console = kept().await;
    let none = run(&console, "undo").await;
    assert_eq!((none.status, console.last().1), (3, json!({"id": null})), "{none}");
    assert_snapshot!("destroy_kept", run(&console, "destroy shop").await);
    assert_snapshot!("undo", run(&console, "undo shop").await);
    assert_eq!(console.last(), ("undo".to_owned(), json!({"id": "shop"})));
    let ran = run(&console, "undo d1d2d3d4 --json").await;
    assert_eq!((ran.status, &ran.json()["undo_of"]), (0, &json!("d1d2d3d4")), "{ran}");
}

#[tokio::test]
async fn a_destroy_without_an_undo_is_asked_for() {
    let console = kept().await;
    let ran = run(&console, "destroy shop --no-undo --json").await;
    let said = "no undo snapshot of d1d2d3d4 was taken: --no-undo";
    assert_eq!(ran.json(), json!([{"id": "d1d2d3d4", "ok": true, "message": said}]));
    assert!(console.calls().iter().any(|call| call.contains("\"no_undo\":true")));
    assert_eq!(exits(&console, "undo").await, 3);
}

#[tokio::test]
async fn a_restore_that_is_less_than_hoped_says_so() {
    let console = family().await;
    *console.script.shelf.not_preserved.lock().unwrap() = [("owners".to_owned(), 12)].into();
    console.script.patch.lock().unwrap().extend([Script::Exits(0), Script::Exits(1)]);
    let ran = run(&console, "restore base").await;
    assert_eq!(ran.status, 0);
    assert_snapshot!(ran.stderr, @r"
    9e3779b1 1/1 patch 0/2: patch 1 (pat-00000001)
    warning: coulombcore could not set 12 owners; --strict fails on that
    warning: patch 2 (pat-00000002) failed with exit status 1; `sandboxer patches remove base 2` takes it away, `sandboxer patches apply 9e3779b1 --retry` runs it again
    ");
    // It did not come to be.
    console.script.patch.lock().unwrap().push_back(Script::Exits(1));
    let ran = run(&console, "restore base --require-patches").await;
    assert_eq!(ran.status, 1);
    assert!(ran.stderr.contains("\nstep  "), "{ran}");
}

#[tokio::test]
async fn sleep_and_wake_and_nothing_to_do() {
    let console = family().await;
    let ran = run(&console, "sleep one --json").await;
    assert_eq!((ran.status, &ran.json()["state"]), (0, &json!("sleeping")));
    assert_eq!(console.last(), ("sleep".to_owned(), json!({"id": "b1b1b1b1", "revision": null})));
    let ran = run(&console, "sleep one").await;
    assert_eq!(ran.said(), (0, "one is asleep: nothing to do\n"));
    console.script.patch.lock().unwrap().push_back(Script::Exits(7));
    let ran = run(&console, "wake one").await;
    assert!(
        ran.status == 0 && ran.stderr.contains("\nwarning: patch 2 (pat-00000002) failed"),
        "{ran}"
    );
    let ran = run(&console, "wake one").await;
    assert_eq!(ran.stderr.lines().next(), Some("one is awake: nothing to do"));
}
