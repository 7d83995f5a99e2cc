//! `hosts check --deep` on the lab's hosts: everything works, or the step that does not is named; nothing of it stays.

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};

use crate::each_case::each_case;
use crate::faults::Tmpfs;
use crate::held::held;
use crate::lab::{
    Bench, DOCKER, PODMAN, Ran, Started, Way, free_port, on_engine, port_of, rooms, text, tree,
    wait_until,
};
use crate::support::json_assertions::JsonAssertions as _;

/// No check of a few hosts takes so long, whatever else runs here.
const LONG: Duration = Duration::from_mins(4);

fn check(bench: &Bench, hosts: &[&str]) -> Ran {
    Started::spawn(bench.command([&["hosts", "check", "--deep"], hosts].concat()))
        .finish_within(LONG)
}

/// What a check printed of its hosts, whatever its status.
fn found(ran: &Ran) -> Vec<Value> {
    let views: Value =
        serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:#?}"));
    views.as_array().unwrap().iter().map(|view| view["deep"].clone()).collect()
}

/// `stage outcome` of each step.
fn steps(deep: &Value) -> Vec<String> {
    let steps = deep["steps"].as_array().unwrap().iter();
    steps.map(|step| format!("{} {}", text(&step["stage"]), text(&step["outcome"]))).collect()
}

fn step<'a>(deep: &'a Value, stage: &str) -> &'a Value {
    deep["steps"].as_array().unwrap().iter().find(|step| step["stage"] == stage).unwrap()
}

/// The records are closed, and nothing of the console's is left either.
fn assert_over(bench: &Bench) {
    for record in bench.stored() {
        record.has(json!({"state": "destroyed", "operation": null}));
        assert!(text(&record["labels"]["sandboxer.check"]).starts_with("op-"), "{record:#}");
    }
    assert_eq!(bench.ok(["snapshots", "list", "--all"]), json!([]));
    for operation in bench.ok(["operations", "list"]).as_array().unwrap() {
        assert_ne!(operation["state"], "running", "{operation:#}");
        let folder =
            std::env::temp_dir().join(format!("sandboxer-check-{}", text(&operation["id"])));
        assert!(!folder.exists(), "{}", folder.display());
    }
}

fn a_host_can_do_everything(host: &'static str, more: &[&'static str]) -> Value {
    let bench = Bench::with(more).and_watches(&[host]);
    let ran = check(&bench, &[host]);
    assert_eq!(ran.status, Some(0), "{ran:#?}");
    let deep = found(&ran).remove(0);
    deep.has(json!({"ok": true, "left": []}));
    assert!(steps(&deep).iter().all(|step| step.ends_with(" ok")), "{deep:#}");
    assert_eq!(deep["sandboxes"].as_array().unwrap().len(), 3);
    assert!(text(&step(&deep, "compare")["message"]).contains("volume"), "{deep:#}");
    assert_over(&bench);
    bench.assert_as_before();
    deep
}

each_case! {
    a_host_can_do_everything {
        with_docker: DOCKER, &[];
        with_podman: PODMAN, &[];
    }
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn an_account_with_rootless_podman_can_do_everything() {
    let deep = a_host_can_do_everything("coulombcore-ops", &["coulombcore-ops"]);
    // It cannot pause, which is said.
    let said = text(&step(&deep, "snapshot")["message"]);
    assert!(said.contains("mode stop (") || said.contains("mode pause"), "{said}");
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_host_without_an_engine_is_tried_without_a_stack() {
    let bench = Bench::new();
    let ran = bench.run_base(["hosts", "check", "--deep", "local"]);
    assert_eq!(ran.status, Some(0), "{ran:#?}");
    let deep = found(&ran).remove(0);
    assert_eq!(step(&deep, "stack")["message"], "the host has no compose runtime");
    let others = steps(&deep).into_iter().filter(|step| !step.ends_with(" ok")).collect::<Vec<_>>();
    assert_eq!(others, ["stack skipped"], "{deep:#}");
    assert_over(&bench);
    let root = bench.home().join("sandboxes");
    let left = rooms(&root);
    assert!(left.iter().all(|name| name == "snapshots"), "{left:?}");
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_host_that_is_down_is_named_and_the_others_are_tried() {
    let bench = Bench::new();
    bench.add_host("away", &Way::to(DOCKER, free_port()), &bench.path("never"));
    let ran = check(&bench, &["away"]);
    ran.error("host_unreachable");
    let deep = found(&ran).remove(0);
    assert_eq!(steps(&deep)[0], "probe failed");
    assert!(steps(&deep)[1..].iter().all(|step| step.ends_with(" skipped")), "{deep:#}");
    assert_eq!(bench.stored(), [] as [Value; 0], "nothing was begun");
    let ran = check(&bench, &["away", DOCKER]);
    ran.error("partial");
    let both = found(&ran);
    both.has(json!({"0.ok": false, "1.ok": true}));
    check(&bench, &["nowhere"]).error("not_found");
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_step_that_fails_in_the_middle_leaves_nothing() {
    let bench = Bench::watching(&[DOCKER]);
    let disk = Tmpfs::mount(bench.path("small"), "size=24m");
    bench.add_host("small", &Way::to(DOCKER, port_of(DOCKER)), &disk.path);
    let (running, gate) = held(&bench, "check.written", &["hosts", "check", "--deep", "small"]);
    let filler = disk.fill();
    gate.open();
    let ran = running.finish_within(LONG);
    ran.error("operation_failed");
    let deep = found(&ran).remove(0);
    assert_eq!(step(&deep, "snapshot")["error"]["code"], "operation_failed", "{deep:#}");
    assert_eq!(step(&deep, "restore")["message"], "the step snapshot failed");
    assert_eq!(step(&deep, "destroy")["outcome"], json!("ok"));
    assert_eq!(step(&deep, "host")["outcome"], json!("ok"));
    assert_over(&bench);
    bench.assert_as_before();
    fs::remove_file(filler).unwrap();
    assert!(rooms(&disk.path).is_empty(), "{:?}", tree(&disk.path));
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn ctrl_c_takes_everything_away() {
    let bench = Bench::watching(&[DOCKER]);
    for profile in ["profile.compose-e2e", "profile.sandbox-canary"] {
        let known = bench.stored().len();
        let running = bench.start(["hosts", "check", "--deep", DOCKER]);
        wait_until(&format!("one of {profile} is made"), || {
            bench.stored()[known..]
                .iter()
                .any(|record| record["profile"]["id"] == profile && record["state"] != "requested")
        });
        running.signal("INT");
        let ran = running.finish();
        ran.error("cancelled");
        assert_eq!(found(&ran)[0]["left"], json!([]), "{profile}: {ran:#?}");
        assert_over(&bench);
        bench.assert_as_before();
    }
}

/// Each is the work of a console, and what it takes away of a sandbox is the work of its own verbs, with tests on both engines.
#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn what_a_killed_one_made_is_taken_away_by_recover() {
    let bench = Bench::watching(&[DOCKER]);
    let points =
        ["compose.up", "snapshot.made", "check.snapshot", "check.restored", "check.destroying"];
    for point in points {
        bench.killed(point, ["hosts", "check", "--deep", DOCKER]);
    }
    bench.recovered();
    assert_over(&bench);
    bench.assert_as_before();
}

// A check says what is left of its own, and nothing of what others do meanwhile.
each_case! {
    what_is_left_is_told_and_what_others_make_is_theirs = what_is_left_is_told {
        on_docker: DOCKER;
        on_podman: PODMAN;
    }
}

fn what_is_left_is_told(host: &'static str) {
    let bench = Bench::new();
    let (running, gate) = held(&bench, "check.destroying", &["hosts", "check", "--deep", host]);
    let restored = bench.wait_for_record(|record| {
        record["state"] == "ready" && !record["based_on_snapshot"].is_null()
    });
    let (id, root) = (text(&restored["id"]), bench.workspace_root(host));
    let planted = r#"
$1 volume create "kept-sbx-$2" && $1 volume create "sbx-theirs-$2" || exit
echo x >"$3/.sbx-$2.left"
cd / && nohup sh -c 'sleep 300; : "$1"' sh "sbx-$2" </dev/null >/dev/null 2>&1 &
nohup unshare -m sh -c 'while :; do sleep 1; done' contained "sbx-$2" </dev/null >/dev/null 2>&1 &
echo $!
"#;
    let said = on_engine(host, &[planted, &id, root.to_str().unwrap()]);
    // As a container's is: it has mounts of its own.
    let contained = said.trim_end().lines().next_back().unwrap().to_owned();
    gate.open();
    let ran = running.finish_within(LONG);
    ran.error_with_hint("operation_failed");
    let deep = found(&ran).remove(0);
    let left: Vec<String> = deep["left"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| format!("{} {}", text(&one["kind"]), text(&one["id"])))
        .collect();
    assert_eq!(step(&deep, "destroy")["outcome"].as_str(), Some("ok"));
    assert_eq!(step(&deep, "host")["outcome"].as_str(), Some("failed"));
    assert_eq!(left.len(), 3, "{left:#?}");
    assert_eq!(left[0], format!("directory {}/.sbx-{id}.left", root.display()));
    assert!(left[1].starts_with("process ") && left[1].contains(&id), "{left:#?}");
    assert_eq!(left[2], format!("volume kept-sbx-{id}"));
    let pid = left[1].split(' ').nth(1).unwrap();
    on_engine(
        host,
        &[
            "$1 volume rm \"kept-sbx-$2\" \"sbx-theirs-$2\"; rm -- \"$3/.sbx-$2.left\"; kill \"$4\" \"$5\"",
            &id,
            root.to_str().unwrap(),
            pid,
            &contained,
        ],
    );
    assert_over(&bench);
}
