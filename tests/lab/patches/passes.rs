//! SIGKILL over the patches of a restore, a wake and a recreate, and then `recover`: no patch runs twice, and no sandbox is
//! ready that owes one which could run.

use serde_json::{Value, json};

use super::{add, patches_of};
use crate::lab::{Bench, DOCKER, Started, engine, on_host, text, wait_until};
use crate::patches::kills::marks;
use crate::points::each_point;

/// A stack, its snapshot `base`, and two patches on that, each of which leaves a mark.
fn patched(bench: &Bench) {
    let repo = bench.repository(
        "web",
        &[("docker-compose.yml", crate::lab::WEB_STACK), ("www/index.html", "x"), ("marks", "")],
    );
    bench.create_stack(DOCKER, &repo, &["--name", "source"]);
    bench.ok(["snapshot", "source", "--name", "base"]);
}

fn two_patches(bench: &Bench) {
    add(bench, "base", "echo 1 >>marks", &[]);
    add(bench, "base", "echo 2 >>marks", &[]);
}

/// No patch left its mark twice, and what the record says of each is what it left.
#[track_caller]
fn once_each(bench: &Bench, point: &str) {
    let (record, marks) = (bench.get("box"), marks(bench, "box"));
    for sequence in ["1", "2"] {
        let ran = marks.iter().filter(|mark| *mark == sequence).count();
        assert!(ran <= 1, "{point}: patch {sequence} ran {ran} times: {record:#}");
        let known =
            patches_of(&record).contains(&(sequence.parse().unwrap(), "applied".to_owned()));
        assert!(!known || ran == 1, "{point}: {sequence} is applied and left no mark: {record:#}");
    }
}

/// One that is ready owes nothing that could run: all is applied, or one whose end nobody knows stands in the way.
#[track_caller]
fn owes_nothing_that_could_run(record: &Value, point: &str) {
    if record["state"] != "ready" {
        return;
    }
    let runs = patches_of(record);
    let all = runs.iter().filter(|run| run.1 == "applied").count() == 2;
    assert!(all || runs.iter().any(|run| run.1 == "unknown"), "{point}: {record:#}");
}

fn containers(id: &str) -> usize {
    let script =
        format!("{} ps -aq --filter label=com.docker.compose.project=sbx-{id}", engine(DOCKER));
    on_host(DOCKER, &[&script]).lines().count()
}

// Every step of a pass; a patch that was killed over is the first of two.
each_point! {
    a_restore_that_is_killed_over_a_patch_is_taken_away = a_killed_restore() {
        patch_applying: "patch.applying";
        patch_ran: "patch.ran";
        patch_applied: "patch.applied";
    }
}

fn a_killed_restore(point: &str) {
    let bench = Bench::new();
    patched(&bench);
    two_patches(&bench);
    bench.killed(point, ["restore", "base", "--name", "box"]);
    bench.recovered();
    let record = bench.get("box");
    assert_eq!(record["state"], json!("destroyed"), "{record:#}");
    assert_eq!(containers(&text(&record["id"])), 0, "{record:#}");
    bench.ok(["restore", "base", "--name", "box"]);
    assert_eq!(marks(&bench, "box"), ["1", "2"], "of the one that was killed there is no trace");
}

// Every step of a pass of a wake, and what it leaves. A patch that ended is written down, and the other one could run: the
// sandbox is asleep until a wake does it. A wake runs nothing again.
each_point! {
    a_wake_that_is_killed_over_a_patch_is_not_ready_in_part = a_killed_wake() {
        patch_applying: "patch.applying", ("ready", "unknown"), 0;
        patch_ran: "patch.ran", ("ready", "unknown"), 1;
        patch_applied: "patch.applied", ("sleeping", "applied"), 2;
    }
}

fn a_killed_wake(point: &str, wanted: (&str, &str), runs: usize) {
    let bench = Bench::new();
    patched(&bench);
    bench.ok(["restore", "base", "--name", "box"]);
    let first = add(&bench, "base", &format!("echo {point} >>marks"), &[]);
    let second = add(&bench, "base", &format!("echo after {point} >>marks"), &[]);
    bench.ok(["sleep", "box"]);
    bench.killed(point, ["wake", "box"]);
    bench.recovered();
    let record = bench.get("box");
    let of = |sequence: u64| {
        let runs = patches_of(&record);
        runs.iter().find(|run| run.0 == sequence).map_or("owed".to_owned(), |run| run.1.clone())
    };
    assert_eq!((text(&record["state"]).as_str(), of(first).as_str()), wanted, "{record:#}");
    assert_eq!(of(second), "owed", "{record:#}");
    bench.ok(["sleep", "box"]);
    bench.ok(["wake", "box"]);
    let marks = marks(&bench, "box");
    assert_eq!(marks.len(), runs, "a wake runs nothing again: {marks:?}");
    if runs < 2 {
        bench.ok(["patches", "apply", "box", "--retry"]);
    }
}

// Every step behind the removal: what comes to nothing there is made again whole, patches and all.
each_point! {
    a_recreate_of_a_restored_sandbox_that_is_killed_owes_nothing_that_could_run = a_killed_recreate() {
        recreate_begin: "recreate.begin", "ready";
        recreate_torn_down: "recreate.torn_down", "failed";
        restore_prepared: "restore.prepared", "failed";
        restore_extracted: "restore.extracted", "failed";
        restore_up: "restore.up", "failed";
        create_started: "create.started", "failed";
        patch_applying: "patch.applying", "ready";
        patch_ran: "patch.ran", "ready";
        patch_applied: "patch.applied", "failed";
        create_patched: "create.patched", "ready";
        create_ready: "create.ready", "ready";
    }
}

fn a_killed_recreate(point: &str, wanted: &str) {
    let bench = Bench::new();
    patched(&bench);
    two_patches(&bench);
    let id = text(&bench.ok(["restore", "base", "--name", "box"])["id"]);
    bench.killed(point, ["recreate", &id, "--yes"]);
    bench.recovered();
    let record = bench.get(&id);
    assert_eq!(record["state"], wanted, "{record:#}");
    owes_nothing_that_could_run(&record, point);
    assert_eq!(containers(&id), usize::from(wanted == "ready"), "what is not ready is not there");
    if wanted == "ready" {
        once_each(&bench, point);
    }
    if wanted == "failed" {
        bench.ok(["recreate", &id, "--yes"]);
        assert_eq!(marks(&bench, "box"), ["1", "2"], "made again, it has each of them once");
    }
}

/// Two containers, one of which takes its time: until it is told to end.
const SLOW: &str = r#"services:
  quick:
    image: localhost/sbx-lab:1
    command: ["sleep", "100000"]
    stop_signal: SIGKILL
  slow:
    image: localhost/sbx-lab:1
    command: ["sh", "-c", "trap '' TERM; while [ ! -e /w/end ]; do sleep 0.2; done"]
    volumes: ["./:/w"]
"#;

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_sleep_that_is_killed_half_way_ends_asleep() {
    let bench = Bench::new();
    let profile = bench.profile("slow", "stop_grace: 60s\n");
    let repo = bench.stack("slow", SLOW);
    let made = bench.ok(crate::lab::stack_args(&profile, DOCKER, &repo, &["--name", "box"]));
    let id = text(&made["id"]);
    let up = || {
        let script =
            format!("{} ps -q --filter label=com.docker.compose.project=sbx-{id}", engine(DOCKER));
        on_host(DOCKER, &[&script]).lines().count()
    };
    let sleep = Started::spawn(bench.command(["sleep", "box"]));
    wait_until("one of them is stopped", || up() < 2);
    assert_eq!(up(), 1, "the other one takes its time");
    sleep.signal("KILL");
    drop(sleep);
    let end = std::path::Path::new(&text(&made["workdir"])).join("workspace/end");
    std::fs::write(&end, "").unwrap();
    bench.recovered();
    std::fs::remove_file(&end).unwrap();
    let record = bench.get("box");
    assert_eq!((&record["state"], up()), (&json!("sleeping"), 0), "{record:#}");
    assert_eq!(bench.ok(["wake", "box"])["state"], "ready");
    assert_eq!(up(), 2, "all that ran runs again");
    // So that it does not take its time over its removal.
    std::fs::write(&end, "").unwrap();
}
