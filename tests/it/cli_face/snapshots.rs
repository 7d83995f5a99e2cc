//! `snapshots` as it is typed and read.

use insta::assert_snapshot;
use sandboxer::client::{Client as _, Error, PruneItem, PruneRequest, SnapshotDiff, Started};
use sandboxer::domain::patch::PatchState;
use sandboxer::domain::snapshot::{ArchiveFormat, Replica, ReplicaState};
use sandboxer::domain::{Code, HostName};
use serde_json::{Value, json};

use super::cli_world::*;
use super::fits;
use super::snapshot_records::{A, B, family, relatives, run_of, snapshot};
use crate::test_env::script::Act;

// --- what there is

/// A copy that is whole.
fn copy() -> Replica {
    Replica {
        path: Some("/x".into()),
        state: ReplicaState::Ready,
        format: Some(ArchiveFormat::TarGz),
        bytes: Some(1_600_000),
        ..Replica::arriving(HostName::new("sandboxer01"), None, now().minus_seconds(60))
    }
}

#[tokio::test]
async fn snapshots_in_a_table_and_as_a_tree() {
    let mut fixture = relatives();
    fixture.snapshots[0].list_replica(copy());
    let console = env_of(fixture).await;
    assert_snapshot!("snapshots_list", run(&console, "snapshots list").await);
    assert_snapshot!("snapshots_get", run(&console, "snapshots get base").await);
    assert_snapshot!(
        "snapshots_get_ascii",
        run(&console, "snapshots get base --ascii").await.stdout
    );
    let ran = run(&console, "snapshots get base --json").await;
    assert_eq!(
        (&ran.json()["children"], ran.json()["sandboxes"].as_array().unwrap().len()),
        (&json!([B]), 2)
    );
    let ran = run(&nothing().await, "snapshots list").await;
    assert_eq!(ran.out(), (0, ""));
    assert_eq!(run(&nothing().await, "snapshots list --json").await.stdout, "[]\n");
    assert_eq!(exits(&console, "snapshots").await, 2);
}

#[tokio::test]
async fn one_whose_archive_is_damaged_says_so() {
    let damaged = async |hosts: &[&str], copied: bool| {
        let mut fixture = relatives();
        let base = &mut fixture.snapshots[0];
        if copied {
            base.list_replica(copy());
        }
        for host in hosts {
            let message = format!("the archive of snapshot {A} on {host} was cut short");
            base.mark_replica(&HostName::new(*host), ReplicaState::Damaged, Some(message));
        }
        env_of(fixture).await
    };
    let row = |ran: Ran| ran.stdout.lines().find(|line| line.starts_with(A)).unwrap().to_owned();
    let console = damaged(&["coulombcore"], false).await;
    assert!(row(run(&console, "snapshots list").await).contains("  ready, damaged  "));
    let shown = run(&console, "snapshots get base").await.stdout;
    assert!(shown.contains("the archive of snapshot snap-0000000a on coulombcore was cut short"));
    assert!(shown.contains("ready, damaged\n"), "{shown}");
    // There is a copy that is sound.
    let console = damaged(&["coulombcore"], true).await;
    assert!(
        row(run(&console, "snapshots list").await).contains("  ready, damaged on coulombcore  ")
    );
    let console = damaged(&["coulombcore", "sandboxer01"], true).await;
    let both = "  ready, damaged on coulombcore, damaged on sandboxer01  ";
    assert!(row(run(&console, "snapshots list").await).contains(both));
}

#[tokio::test]
async fn failed_ones_only_with_all() {
    let console = family().await;
    let broken = Act::Fail(Code::OperationFailed, "no space left");
    console.script.shelf.capture.lock().unwrap().push_back(broken);
    assert_eq!(exits(&console, "snapshot my-env").await, 1);
    let count = |ran: &Ran| ran.json().as_array().unwrap().len();
    assert_eq!(count(&run(&console, "snapshots list --json").await), 2);
    assert_eq!(count(&run(&console, "snapshots list --all --json").await), 3);
}

#[tokio::test]
async fn get_shows_where_a_sandbox_comes_from() {
    let mut fixture = relatives();
    let broken = &mut fixture.records[2];
    broken.applied_patches = vec![run_of(1, "failed", "one\n\u{1b}[31mno such file\u{1b}[0m\n")];
    broken.patch_state = PatchState::Failed;
    broken.patch_error = Some("patch 1 (pat-00000001) failed with exit status 7".into());
    let console = env_of(fixture).await;
    assert_snapshot!("get_lineage", run(&console, "get one").await);
    assert_snapshot!("get_patch_failed", run(&console, "get two").await);
    assert_snapshot!("get_deep", run(&console, "get three").await);
    let ran = run(&console, "get three --json").await;
    assert_eq!(ran.json()["lineage"], json!({"ancestors": [B, A], "snapshots": []}));
    assert_eq!(document(&console, "get one").await["lineage"]["snapshots"], json!([B]));
    // Somebody insisted.
    run(&console, &format!("snapshots delete {B} --force --yes")).await;
    assert!(run(&console, "get three").await.stdout.contains("based on   snap-1000000b  (gone)\n"));
}

// --- delete, prune

#[tokio::test]
async fn delete_prints_an_array_in_the_order_given() {
    let console = family().await;
    let ran = run(&console, &format!("snapshots delete {B} nothing base {B} --json")).await;
    let items = ran.json();
    let short = |item: &Value| format!("{} {} {}", item["id"], item["ok"], item["error"]["code"]);
    let short: Vec<String> = items.as_array().unwrap().iter().map(short).collect();
    assert_eq!(
        short,
        [
            format!("{B:?} false \"in_use\""),
            "\"nothing\" false \"not_found\"".to_owned(),
            format!("{A:?} false \"in_use\""),
        ]
    );
    assert_eq!(ran.code(), (8, "partial".to_owned()));
    for (line, status) in [
        ("snapshots delete base", 4),
        ("snapshots delete no-1 no-2", 3),
        ("snapshots delete base snap-1000000b", 4),
        ("snapshots delete base --force", 2),
        ("snapshots delete base --force --yes", 0),
        ("snapshots delete base --force-protected", 2),
        ("snapshots delete snap-0000", 2),
        ("snapshots delete snap-1000000b snap-0000", 2),
        ("snapshots delete snap-1000000b --force --yes", 0),
    ] {
        assert_eq!(exits(&family().await, line).await, status, "{line}");
        assert_eq!(exits(&family().await, &format!("{line} --json")).await, status, "{line}");
    }
    assert_snapshot!("delete_in_use", run(&family().await, "snapshots delete base nothing").await);
}

#[tokio::test]
async fn delete_asks_and_shows_what_depends_on_it() {
    let ran = run_in(
        on_terminal("n\n"),
        &family().await,
        "snapshots delete base snap-1000000b --force --no-color",
    )
    .await;
    assert_snapshot!("delete_asks", ran);
    for (types, status) in [("y\n", 0), ("n\n", 130), ("\n", 130)] {
        let console = family().await;
        let ran = run_in(on_terminal(types), &console, "snapshots delete base --force").await;
        assert_eq!(
            (ran.status, console.calls().is_empty()),
            (status, status != 0),
            "{types:?} {ran}"
        );
    }
    // Whoever was shown a record agreed to that revision, and to what he was shown to depend on it.
    let console = family().await;
    run_in(on_terminal("y\n"), &console, "snapshots delete base --force").await;
    let seen = [
        "patch 1 (pat-00000001)",
        "patch 2 (pat-00000002)",
        "sandbox one (b1b1b1b1)",
        "sandbox two (b2b2b2b2)",
    ];
    let asked = json!({"id": A, "revision": 2, "force": true, "dependants": seen, "force_protected": false});
    assert_eq!(console.last(), ("delete_snapshot".to_owned(), asked));
    let console = family().await;
    run(&console, "snapshots delete base --force --yes").await;
    let asked = json!({"id": A, "revision": null, "force": true, "force_protected": false});
    assert_eq!(console.last(), ("delete_snapshot".to_owned(), asked));
    // Under --json nobody can be asked.
    let ran =
        run_in(on_terminal("y\n"), &family().await, "snapshots delete base --force --json").await;
    assert_eq!(ran.code(), (2, "usage".to_owned()));
}

/// Two more of the same sandbox, of which the older one may go.
async fn old() -> Console {
    let mut fixture = relatives();
    for (id, name, ago) in [("snap-0000000c", "older", 9000), ("snap-0000000d", "newest", 60)] {
        let mut more = snapshot(id, Some(name), "a1b2c3d4");
        more.created_at = now().minus_seconds(ago);
        fixture.snapshots.push(more);
    }
    env_of(fixture).await
}

#[tokio::test]
async fn prune_names_both_ways_to_say_what_is_old() {
    let ran = run(&old().await, "snapshots prune").await;
    assert_eq!(ran.status, 2, "{ran}");
    assert!(ran.stderr.contains("--keep <N>") && ran.stderr.contains("--older-than <D>"), "{ran}");
    assert_eq!(exits(&old().await, "snapshots prune --older-than 1d --dry-run").await, 0);
    assert_eq!(exits(&old().await, "snapshots prune --older-than 1d --keep 1 --dry-run").await, 0);
}

#[tokio::test]
async fn off_a_terminal_a_prune_needs_yes_whatever_it_would_find() {
    for (rule, console) in
        [("--keep 0", old().await), ("--older-than 1h", old().await), ("--keep 0", family().await)]
    {
        for json in ["", " --json"] {
            let ran = run(&console, &format!("snapshots prune {rule}{json}")).await;
            assert_eq!(ran.out(), (2, ""), "{rule}{json}: {ran}");
            assert!(
                ran.stderr.contains("snapshots prune needs --yes where nobody can be asked"),
                "{ran}"
            );
        }
        assert!(
            console.calls().iter().all(|call| !call.starts_with("delete_snapshot")),
            "{:?}",
            console.calls()
        );
        assert_eq!(
            exits(&console, &format!("snapshots prune {rule} --dry-run")).await,
            0,
            "{rule}"
        );
        assert_eq!(exits(&console, &format!("snapshots prune {rule} --yes")).await, 0, "{rule}");
    }
}

#[tokio::test]
async fn prune_deletes_what_it_showed_and_nothing_else() {
    let console = old().await;
    assert_snapshot!("prune_dry_run", run(&console, "snapshots prune --keep 1 --dry-run").await);
    assert_eq!(console.calls().len(), 1, "{:?}", console.calls());
    assert_eq!(console.last().1, json!({"keep": 1, "older_than_s": null, "dry_run": true}));
    let ran = run(&console, "snapshots prune --keep 1 --older-than 2h --yes --json").await;
    let oks = |ran: &Ran| -> Vec<(Value, Value)> {
        let items = ran.json().as_array().unwrap().clone();
        items.iter().map(|item| (item["id"].clone(), item["ok"].clone())).collect()
    };
    assert_eq!(
        (ran.status, oks(&ran)),
        (0, vec![(json!(A), json!(false)), (json!("snap-0000000c"), json!(true))]),
        "{ran}"
    );
    // Who deletes judges again.
    let rule = json!({"keep": 1, "older_than_s": 7200, "taken_here": false});
    let asked = json!({"id": "snap-0000000c", "revision": null, "force": false, "force_protected": false, "rule": rule});
    assert_eq!(console.last(), ("delete_snapshot".to_owned(), asked));
    // Whoever was shown a record agreed to that revision.
    let console = old().await;
    run_in(on_terminal("y\n"), &console, "snapshots prune --keep 1").await;
    let asked = console.last().1;
    assert_eq!((&asked["revision"], &asked["rule"]["keep"]), (&json!(2), &json!(1)));
    assert_snapshot!(
        "prune_asks",
        run_in(on_terminal("n\n"), &old().await, "snapshots prune --keep 1 --no-color").await
    );
    assert_snapshot!("prune", run(&old().await, "snapshots prune --keep 1 --yes").await);
    for wrong in ["", "--keep -1", "--keep many", "--older-than yesterday"] {
        assert_eq!(exits(&old().await, &format!("snapshots prune {wrong}")).await, 2, "{wrong}");
    }
    let ran = run(&nothing().await, "snapshots prune --keep 1 --yes").await;
    assert_eq!(ran.said(), (0, "no snapshot is that old: nothing to do\n"));
}

#[tokio::test]
async fn prune_ends_like_a_bulk_verb() {
    let console = old().await;
    let busy = Error::new(Code::Busy, "snapshot snap-0000000c is busy");
    console.client.answers::<Started>("start", Err(busy));
    let ran = run(&console, "snapshots prune --keep 1 --yes --json").await;
    let error = ran.error();
    assert_eq!((ran.status, &error["code"]), (4, &json!("busy")), "{ran}");
    assert_eq!(
        run(&console, "snapshots prune --keep 1 --yes").await.stderr,
        "error: snapshot snap-0000000c is busy\n"
    );
}

#[tokio::test]
async fn prune_skips_what_is_not_old_any_more() {
    for (reason, line) in [
        (
            "kept, it is the newest of sandbox a1b2c3d4",
            "kept snap-0000000c older: it is the newest",
        ),
        (PruneItem::GONE, "skipped snap-0000000c older: somebody else deleted it meanwhile"),
    ] {
        let console = old().await;
        let refused = Error::new(Code::Conflict, "it stays").passed_over(reason);
        console.client.answers::<Started>("start", Err(refused));
        let ran = run_in(on_terminal("y\n"), &console, "snapshots prune --keep 1 --no-color").await;
        assert_eq!(
            (ran.status, ran.stdout.contains(line), ran.stdout.contains("deleted snap")),
            (0, true, false),
            "{ran}"
        );
        assert!(!ran.stderr.contains("error") && !ran.stderr.contains("deleted one"), "{ran}");
        let ran = run(&console, "snapshots prune --keep 1 --yes --json").await;
        let items = ran.json();
        let item =
            items.as_array().unwrap().iter().find(|item| item["id"] == "snap-0000000c").unwrap();
        assert_eq!(
            (ran.status, &item["ok"], &item["reason"], &item["error"]),
            (0, &json!(false), &json!(reason), &Value::Null)
        );
    }
    // It went between the plan and the question.
    let console = old().await;
    let rule = PruneRequest { keep: Some(1), dry_run: true, ..PruneRequest::default() };
    let plan = console.client.prune_snapshots(rule).await.unwrap();
    assert_eq!(exits(&console, "snapshots delete snap-0000000c").await, 0);
    let console = console.answers("prune_snapshots", plan);
    let before = console.calls().len();
    let ran = run_in(on_terminal("y\n"), &console, "snapshots prune --keep 1 --no-color").await;
    assert_eq!(
        (ran.status, ran.stdout.contains("skipped snap-0000000c"), console.calls().len()),
        (0, true, before + 1),
        "{ran}"
    );
}

// --- verify, copy, diff

#[tokio::test]
async fn verify_and_copy() {
    let console = family().await;
    let ran = run(&console, "snapshots verify base").await;
    assert_eq!(ran.out(), (0, "base (snap-0000000a) is what was recorded, on coulombcore\n"));
    assert_eq!(document(&console, "snapshots verify base").await["id"], A);
    console.script.shelf.verify.lock().unwrap().push_back(Act::Altered);
    assert_eq!(exits(&console, "snapshots verify base").await, 1);
    let console = family().await;
    let ran = run(&console, "snapshots copy base --to sandboxer01").await;
    assert_eq!(
        (ran.status, console.last().1),
        (0, json!({"id": A, "host": "sandboxer01"})),
        "{ran}"
    );
    for (code, status) in [
        (Code::Unsupported, 7),
        (Code::Busy, 4),
        (Code::Conflict, 4),
        (Code::HostUnreachable, 5),
        (Code::InUse, 4),
    ] {
        let console = family().await;
        console.client.answers::<Started>("start", Err(Error::new(code.clone(), "no")));
        for line in [
            "snapshots copy base --to x",
            "snapshot my-env",
            "restore base",
            "sleep my-env",
            "wake one",
        ] {
            let ran = run(&console, &format!("{line} --json")).await;
            assert_eq!(
                (ran.status, &ran.error()["code"]),
                (status, &json!(code.as_str())),
                "{line}"
            );
        }
    }
}

fn difference() -> SnapshotDiff {
    let entry = |path: &str, kind: &str, mode: &str, size: u64, target: Option<&str>| {
        json!({"path": path, "kind": kind, "mode": mode, "owner": "self/self", "size": size,
            "modified": "2026-03-14T12:00:00Z", "target": target})
    };
    let value = json!({
        "a": A, "b": "a1b2c3d4", "added": 2, "removed": 1, "changed": 2, "bytes": -2_000_000, "truncated": true,
        "notes": ["volumes are not compared\u{1b}[2J"],
        "changes": [
            {"path": "workspace/new\\033[2J", "change": "added", "differs": [], "a": null,
                "b": entry("workspace/new", "file", "rw-r--r--", 2048, None)},
            {"path": "workspace/link", "change": "added", "differs": [], "a": null,
                "b": entry("workspace/link", "symlink", "rwxrwxrwx", 0, Some("/etc/passwd"))},
            {"path": "workspace/old", "change": "removed", "differs": [], "b": null,
                "a": entry("workspace/old", "directory", "rwxr-xr-x", 0, None)},
            {"path": "workspace/run", "change": "changed", "differs": ["mode", "size"],
                "a": entry("workspace/run", "file", "rw-r--r--", 2_100_000, None),
                "b": entry("workspace/run", "file", "rwxr-xr-x", 2_100_001, None)},
            {"path": "volumes/data/x", "change": "changed", "differs": ["target", "else"],
                "a": entry("volumes/data/x", "symlink", "rwxrwxrwx", 0, Some("a")),
                "b": entry("volumes/data/x", "symlink", "rwxrwxrwx", 0, Some("b"))},
        ],
    });
    serde_json::from_value(value).unwrap()
}

#[tokio::test]
async fn diff_in_words_and_as_json() {
    let console = family().await.answers("diff_snapshot", difference());
    assert_snapshot!("diff", run(&console, "snapshots diff base").await);
    assert_eq!(console.last().1, json!({"a": A, "b": null}));
    assert_eq!(document(&console, "snapshots diff base").await["bytes"], -2_000_000);
    for (b, id) in [("my-env", "a1b2c3d4"), ("a1b2", "a1b2c3d4"), (B, B), ("base", A)] {
        assert_eq!(exits(&console, &format!("snapshots diff base {b}")).await, 0, "{b}");
        assert_eq!(console.last().1["b"], id, "{b}");
    }
    assert_eq!(exits(&console, "snapshots diff base nothing").await, 3);
    // A name that both have could mean either.
    let mut fixture = relatives();
    fixture.snapshots.push(snapshot("snap-0000000d", Some("my-env"), "a1b2c3d4"));
    let console = env_of(fixture).await;
    let ran = run(&console, "snapshots diff base my-env").await;
    assert_snapshot!(ran, @r"
    status 4
    --- stdout
    --- stderr
    error: my-env is a snapshot, snap-0000000d, and a sandbox, a1b2c3d4
    hint: write the id of the one that is meant
    ");
}

// --- export, import

#[tokio::test]
async fn export_writes_a_whole_file_or_none() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("base.sbx");
    let line = format!("snapshots export base {}", file.display());
    let console = family().await;
    *console.script.shelf.pieces.lock().unwrap() =
        vec![Ok(b"ab".to_vec()), Ok(b"c\x00\xff".to_vec())];
    let ran = run(&console, &line).await;
    let whole = std::fs::read(&file).unwrap();
    assert_eq!((ran.status, whole.ends_with(b"\nabc\x00\xff")), (0, true), "{ran}");
    let said = format!("base (snap-0000000a) is in {}, ", file.display());
    assert!(ran.stdout.starts_with(&said), "{ran}");
    // Nothing is overwritten.
    let ran = run(&console, &line).await;
    assert_eq!((ran.status, std::fs::read(&file).unwrap()), (4, whole), "{ran}");
    std::fs::remove_file(&file).unwrap();
    assert_eq!(document(&console, &line).await["id"], A);
    std::fs::remove_file(&file).unwrap();
    // It breaks off, or somebody presses Ctrl-C: nothing is left.
    let names = || std::fs::read_dir(folder.path()).unwrap().count();
    console
        .script
        .shelf
        .pieces
        .lock()
        .unwrap()
        .push(Err(Error::new(Code::HostUnreachable, "coulombcore does not answer")));
    assert_eq!((exits(&console, &line).await, names()), (5, 0));
    console.script.shelf.pieces.lock().unwrap().pop();
    *console.script.shelf.exports_for_ever.lock().unwrap() = true;
    let ran = run_in(World { presses: 1, ..World::default() }, &console, &line).await;
    assert_eq!((ran.status, names()), (130, 0), "{ran}");
    // Another one is at it.
    std::fs::write(folder.path().join("base.sbx.partial"), "").unwrap();
    let ran = run(&console, &line).await;
    assert_eq!((ran.status, names()), (4, 1), "{ran}");
    // A path that cannot be written is the caller's, and no host is asked.
    let asked = console.calls().len();
    std::fs::write(folder.path().join("file"), "").unwrap();
    for path in [
        "/nowhere/file".to_owned(),
        format!("{}/file/x", folder.path().display()),
        "/proc/x".to_owned(),
    ] {
        let ran = run(&console, &format!("snapshots export base {path} --json")).await;
        assert_eq!(ran.code(), (2, "invalid_input".to_owned()), "{path}: {ran}");
    }
    assert_eq!(console.calls().len(), asked);
}

#[tokio::test]
async fn of_two_exports_to_one_file_one_is_whole_and_the_other_says_conflict() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("base.sbx");
    let line = format!("snapshots export base {} --json", file.display());
    let console = family().await;
    *console.script.shelf.pieces.lock().unwrap() =
        vec![Ok(vec![b'x'; 100_000]), Ok(b"end".to_vec())];
    let (one, two) = tokio::join!(run(&console, &line), run(&console, &line));
    let (won, lost) = if one.status == 0 { (one, two) } else { (two, one) };
    assert_eq!(
        (won.status, lost.status, &lost.error()["code"]),
        (0, 4, &json!("conflict")),
        "{won}\n{lost}"
    );
    let whole = std::fs::read(&file).unwrap();
    assert!(whole.len() > 100_003 && whole.ends_with(b"xend"));
    let mode = file.metadata().unwrap().permissions().mode();
    assert_eq!(
        (mode & 0o777, std::fs::read_dir(folder.path()).unwrap().count()),
        (0o600, 1),
        "it has all of a workspace"
    );
}

#[tokio::test]
async fn export_to_a_pipe_and_never_to_a_terminal() {
    let console = family().await;
    *console.script.shelf.pieces.lock().unwrap() = vec![Ok(b"abc".to_vec())];
    let ran = run(&console, "snapshots export base -").await;
    assert_eq!((ran.status, ran.stdout.ends_with("}\nabc"), ran.stderr.as_str()), (0, true, ""));
    assert_eq!(run_in(on_terminal(""), &console, "snapshots export base -").await.status, 2);
    assert_eq!(exits(&console, "snapshots export base - --json").await, 2);
    // Half of it is no success, whoever closed the pipe.
    for (kind, status) in
        [(std::io::ErrorKind::BrokenPipe, 141), (std::io::ErrorKind::StorageFull, 1)]
    {
        let ran = run_in(
            World { stdout: Some(kind), ..World::default() },
            &console,
            "snapshots export base -",
        )
        .await;
        assert_eq!((ran.status, ran.stderr.is_empty()), (status, status == 141), "{ran}");
    }
    console
        .script
        .shelf
        .pieces
        .lock()
        .unwrap()
        .push(Err(Error::new(Code::HostUnreachable, "coulombcore does not answer")));
    assert_eq!(exits(&console, "snapshots export base -").await, 5);
}

#[tokio::test]
async fn import_reads_a_file_to_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("base.sbx");
    let content: Vec<u8> = (0..1_000_000_u32).map(|n| (n % 251) as u8).collect();
    let elsewhere = family().await;
    *elsewhere.script.shelf.pieces.lock().unwrap() = vec![Ok(content.clone())];
    run(&elsewhere, &format!("snapshots export base {}", file.display())).await;
    let console = nothing().await;
    let ran = run(
        &console,
        &format!("snapshots import {} --host coulombcore --name again", file.display()),
    )
    .await;
    assert_eq!(ran.status, 0, "{ran}");
    assert_eq!(console.last().1, json!({"host": "coulombcore", "name": "again"}));
    assert!(*console.script.shelf.imported.lock().unwrap() == content);
    assert_eq!(exits(&console, "snapshots import /nowhere/file --host coulombcore").await, 2);
    assert_eq!(
        run(&console, &format!("snapshots import {} --host coulombcore", folder.path().display()))
            .await
            .status,
        2
    );
    assert_eq!(exits(&console, "snapshots import x").await, 2);
    assert_eq!(
        run_in(on_terminal(""), &console, "snapshots import - --host coulombcore").await.status,
        2
    );
}

#[tokio::test]
async fn every_document_fits_its_schema() {
    let console = old().await.answers("diff_snapshot", difference());
    for (line, schema) in [
        ("snapshots list --all", "snapshots"),
        ("snapshots get base", "snapshot_view"),
        ("snapshots verify base", "snapshot"),
        ("snapshots copy base --to sandboxer01", "snapshot"),
        ("snapshots diff base", "snapshot_diff"),
        ("snapshots prune --keep 1 --yes", "prune"),
        ("snapshots delete base nothing", "bulk"),
        ("snapshot my-env", "snapshot"),
        ("restore base", "sandbox"),
        ("get one", "sandbox_detail"),
        ("sleep my-env", "sandbox"),
    ] {
        fits(schema, &document(&console, line).await);
    }
}
