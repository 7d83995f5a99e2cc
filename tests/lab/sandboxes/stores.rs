//! A data directory that cannot be read or written: said with a way out, and nothing is made worse.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use crate::faults::Tmpfs;
use crate::held::held_and;
use crate::lab::{Bench, Started, rooms, text, tree, wait_until};
use crate::support::json_assertions::JsonAssertions as _;

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_store_that_is_not_ours_to_read_stays_untouched() {
    let bench = Bench::new();
    bench.run_base(["create", "--id", "there"]).ok();
    let file = bench.data().join("sandboxes.json");
    let good = fs::read(&file).unwrap();
    let half = &good[..good.len() / 2];
    let newer = String::from_utf8(good.clone())
        .unwrap()
        .replacen("\"schema\":1", "\"schema\":2", 1)
        .replacen("\"schema\": 1", "\"schema\": 2", 1);
    let cases: [(&str, &[u8], &str); 9] = [
        ("empty", b"", "store_corrupt"),
        ("half-written", half, "store_corrupt"),
        ("not JSON", b"sandboxes: []\n", "store_corrupt"),
        ("zeros", &[0; 4096], "store_corrupt"),
        (
            "not UTF-8",
            b"{\"schema\": 1, \"revision\": 1, \"records\": [\"\xff\"]}",
            "store_corrupt",
        ),
        ("newer", newer.as_bytes(), "store_foreign"),
        ("another program's", br#"{"name": "left-pad", "version": "1.0.0"}"#, "store_foreign"),
        ("a list", br#"[{"sandbox_id": "1"}]"#, "store_foreign"),
        (
            "the Python tool's",
            br#"{"sandboxes": {"ab12": {"sandbox_id": "ab12", "state": "ready"}}}"#,
            "store_foreign",
        ),
    ];
    for (what, bytes, code) in cases {
        fs::write(&file, bytes).unwrap();
        let others = tree(&bench.home().join("sandboxes"));
        for args in [
            &["list"][..],
            &["get", "there"],
            &["create"],
            &["create", "--name", "x"],
            &["destroy", "there"],
        ] {
            let ran = bench.run_base(args.iter().copied());
            let error = ran.error_with_hint(code);
            assert!(text(&error["message"]).contains("sandboxes.json"), "{what}: {error:#}");
            if code == "store_corrupt" {
                let told = text(&error["hint"]);
                assert!(told.contains("sandboxes.json.bak"), "{what}: names the backup: {error:#}");
            }
        }
        assert_eq!(fs::read(&file).unwrap(), bytes, "{what}: untouched");
        assert_eq!(tree(&bench.home().join("sandboxes")), others, "{what}: the host too");
    }
    // The way out that the error names.
    fs::copy(bench.data().join("sandboxes.json.bak"), &file).unwrap();
    assert_eq!(bench.get("there")["id"], "there");
    fs::write(&file, &good).unwrap();
    bench.run_base(["destroy", "there"]).ok();
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_data_directory_that_cannot_be_written_changes_nothing() {
    let bench = Bench::new();
    let disk = Tmpfs::mount(bench.data(), "size=512k,mode=0700");
    bench.run_base(["create", "--id", "there"]).ok();
    let sandboxes = bench.home().join("sandboxes");

    let hows = [
        ("full", "No space left", "internal"),
        ("read-only", "Read-only file system", "invalid_config"),
    ];
    for (how, cause, code) in hows {
        let filler = (how == "full").then(|| disk.fill());
        if filler.is_none() {
            disk.remount("ro");
        }
        let before = (fs::read(bench.data().join("sandboxes.json")).unwrap(), tree(&sandboxes));
        let found = bench.run_base(["list"]).ok().as_array().unwrap().len();
        assert_eq!(found, 1, "{how}: looking works");
        let all = [&["create"][..], &["recreate", "there", "--yes"], &["destroy", "there"]];
        // On a full disk a removal works: see below.
        for args in all.iter().filter(|args| how != "full" || args[0] != "destroy") {
            let ran = bench.run_base(args.iter().copied());
            let error = ran.error_with_hint(code);
            assert!(text(&error["hint"]).contains("--data-dir"), "{how}: {error:#}");
            assert!(error["causes"].to_string().contains(cause), "{how}: {error:#}");
        }
        let after = (fs::read(bench.data().join("sandboxes.json")).unwrap(), tree(&sandboxes));
        assert_eq!(before, after, "{how}: record and host are as they were");
        match filler {
            Some(filler) => fs::remove_file(filler).unwrap(),
            None => disk.remount("rw"),
        }
    }
    assert_eq!(bench.get("there")["state"], "ready");

    // Full in the middle of a create: what was made is removed, and that is written down.
    let (create, gate) =
        held_and(&bench, "compose.prepared", "", bench.base_command(["create", "--id", "middle"]));
    let filler = disk.fill();
    gate.open();
    let error = create.finish().error_with_hint("internal");
    error.says("middle");
    let record = bench.get("middle");
    record.has(json!({"state": "failed", "leftovers": []}));
    assert_eq!(rooms(&sandboxes), ["sbx-there"]);
    assert_eq!(
        bench
            .run_base(["operations", "list"])
            .ok()
            .as_array()
            .unwrap()
            .iter()
            .filter(|o| o["state"] == "running")
            .count(),
        0
    );

    // And on a disk that is still full everything can be removed.
    for id in ["middle", "there"] {
        assert_eq!(bench.run_base(["destroy", id]).ok(), json!([{"id": id, "ok": true}]));
        assert_eq!(bench.get(id)["state"], "destroyed");
    }
    assert!(rooms(&sandboxes).is_empty());
    fs::remove_file(filler).unwrap();

    // Where nothing is reserved any more, the error says what is left and who brings the record in order.
    let (create, gate) =
        held_and(&bench, "compose.prepared", "", bench.base_command(["create", "--id", "last"]));
    fs::remove_file(bench.data().join("reserve")).unwrap();
    let filler = disk.fill();
    gate.open();
    let error = create.finish().error_with_hint("internal");
    error.says("last").hints("sandboxer recover").hints("nothing of it is left");
    assert!(rooms(&sandboxes).is_empty(), "it was taken away all the same");
    fs::remove_file(filler).unwrap();
    assert_eq!(bench.run_base(["recover"]).ok()[0]["ok"], true);
    assert_eq!(bench.get("last")["state"], "destroyed");
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn eight_processes_share_one_data_directory() {
    const EACH: usize = 2;
    let bench = Bench::new();
    bench.run_base(["create", "--id", "first"]).ok();
    let log = bench.path("followed");
    let mut follow = bench.command(["events", "--follow"]);
    follow.stdout(fs::File::create(&log).unwrap());
    let follow = Started::spawn(follow);
    let seen = || -> Vec<Value> {
        let seen = fs::read_to_string(&log).unwrap();
        let whole = seen.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        let seen = whole.map(|line| serde_json::from_str::<Value>(line).unwrap());
        seen.filter(|event| event["kind"] != "operation.progress").collect()
    };
    // It follows when it tells of something, and not before.
    let mut times = 0;
    wait_until("it follows", || {
        times += 1;
        bench.run_base(["label", "first", &format!("times=t{times}")]).ok();
        !seen().is_empty()
    });
    bench.run_base(["destroy", "first"]).ok();
    let over = AtomicBool::new(false);
    let looks = std::thread::scope(|scope| {
        let (bench, over) = (&bench, &over);
        let looking =
            scope.spawn(move || watch_the_file(&bench.data().join("sandboxes.json"), over));
        let workers: Vec<_> = (0..8)
            .map(|n| {
                scope.spawn(move || {
                    for round in 0..EACH {
                        let id = format!("p{n}-{round}");
                        bench
                            .run_base(["create", "--id", &id, "--label", "of=many"])
                            .ok()
                            .has(json!({"state": "ready"}));
                        bench.run_base(["destroy", &id]).ok();
                    }
                })
            })
            .collect();
        for worker in workers {
            worker.join().unwrap();
        }
        over.store(true, Ordering::Relaxed);
        looking.join().unwrap()
    });
    assert!(looks > 50, "{looks} looks");
    // No lost update: every record is there, over, with all of its events.
    let records = bench.ok(["list", "--all"]);
    let records: Vec<&Value> =
        records.as_array().unwrap().iter().filter(|record| record["id"] != "first").collect();
    assert_eq!(records.len(), 8 * EACH);
    let events = bench.ok(["events"]);
    let events = events.as_array().unwrap();
    let numbers: Vec<u64> = events.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>(), "numbered without gaps");
    for record in records {
        assert_eq!(record["state"], "destroyed");
        let kinds: Vec<String> = events
            .iter()
            .filter(|e| e["sandbox_id"] == record["id"])
            .map(|e| text(&e["kind"]))
            .collect();
        assert_eq!(
            kinds,
            ["requested", "provisioning", "ready", "destroying", "destroyed"]
                .map(|kind| format!("sandbox.{kind}"))
        );
    }
    // The follower saw each of them, in order, while it happened.
    let since = events.iter().position(|event| *event == seen()[0]).unwrap();
    wait_until("the follower has seen them", || seen().len() >= events.len() - since);
    follow.signal("INT");
    follow.finish();
    assert_eq!(seen(), events[since..]);
    assert_eq!(seen()[0]["kind"], "sandbox.labelled", "it followed before they began");
}

/// Reads the file until told to stop: it is whole at every moment, and its revision only grows.
fn watch_the_file(file: &Path, over: &AtomicBool) -> u32 {
    let (mut looks, mut revision) = (0, 0);
    while !over.load(Ordering::Relaxed) {
        if let Ok(bytes) = fs::read(file) {
            let document: Value = serde_json::from_slice(&bytes).unwrap();
            let now = document["revision"].as_u64().unwrap();
            assert!(now >= revision, "{now} after {revision}");
            revision = now;
            looks += 1;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    looks
}
