//! SIGKILL over the patches of a restore, a wake and a recreate, and then `recover`: no patch runs twice, and no sandbox is
//! ready that owes one which could run.

use serde_json::{Value, json};

use super::{add, canary_base, patches_of};
use crate::each_case::each_case;
use crate::lab::{Bench, DOCKER, Started, engine, on_host, text, wait_until};
use crate::patches::kills::marks;
use crate::sandboxes::kills::id_of;
use crate::sandboxes::rollback::containers;

/// A stack and its snapshot `base`.
fn stack_base(bench: &Bench) {
    let repo = bench.repository(
        "web",
        &[("docker-compose.yml", crate::lab::WEB_STACK), ("www/index.html", "x"), ("marks", "")],
    );
    bench.create_stack(DOCKER, &repo, &["--name", "source"]);
    bench.ok(["snapshot", "source", "--name", "base"]);
}

/// Two patches on `base`, each of which leaves a mark.
fn two_patches(bench: &Bench) {
    add(bench, "base", "echo 1 >>marks", &[]);
    add(bench, "base", "echo 2 >>marks", &[]);
}

/// No patch left its mark twice, and what the record says of each is what it left.
#[track_caller]
fn once_each(record: &Value, marks: &[String], point: &str) {
    for sequence in ["1", "2"] {
        let ran = marks.iter().filter(|mark| *mark == sequence).count();
        assert!(ran <= 1, "{point}: patch {sequence} ran {ran} times: {record:#}");
        let known = patches_of(record).contains(&(sequence.parse().unwrap(), "applied".to_owned()));
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

/// Every step of a pass; a patch that was killed over is the first of two.
#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_restore_that_is_killed_over_a_patch_is_taken_away() {
    let points = ["patch.applying", "patch.ran", "patch.applied"];
    let bench = Bench::new();
    stack_base(&bench);
    two_patches(&bench);
    for point in points {
        bench.killed(point, ["restore", "base", "--name", &id_of(point)]);
    }
    bench.recovered();
    for point in points {
        let record = bench.get(&id_of(point));
        assert_eq!(record["state"], json!("destroyed"), "{point}: {record:#}");
        assert_eq!(containers(DOCKER, &text(&record["id"])), 0, "{point}: {record:#}");
    }
    for point in points {
        bench.ok(["restore", "base", "--name", &id_of(point)]);
        assert_eq!(marks(&bench, &id_of(point)), ["1", "2"], "{point}: there is no trace of it");
    }
}

/// Every step of a pass of a wake, and what it leaves. A patch that ended is written down, and the other one could run: the
/// sandbox is asleep until a wake does it. A wake runs nothing again.
#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_wake_that_is_killed_over_a_patch_is_not_ready_in_part() {
    let points = [
        ("patch.applying", ("ready", "unknown"), 0),
        ("patch.ran", ("ready", "unknown"), 1),
        ("patch.applied", ("sleeping", "applied"), 2),
    ];
    let bench = Bench::new();
    canary_base(&bench, DOCKER, "profile.sandbox-canary");
    for (point, ..) in points {
        let id = id_of(point);
        bench.ok(["restore", "base", "--name", &id]);
        bench.ok(["exec", &id, "--", "touch", "marks"]);
        bench.ok(["sleep", &id]);
    }
    two_patches(&bench);
    for (point, ..) in points {
        bench.killed(point, ["wake", &id_of(point)]);
    }
    bench.recovered();
    for (point, wanted, runs) in points {
        let id = id_of(point);
        let record = bench.get(&id);
        let of = |sequence: u64| {
            let runs = patches_of(&record);
            runs.iter().find(|run| run.0 == sequence).map_or("owed".to_owned(), |run| run.1.clone())
        };
        let found = (text(&record["state"]), of(1));
        assert_eq!((found.0.as_str(), found.1.as_str()), wanted, "{point}: {record:#}");
        assert_eq!(of(2), "owed", "{point}: {record:#}");
        bench.ok(["sleep", &id]);
        bench.ok(["wake", &id]);
        let marks = marks(&bench, &id);
        assert_eq!(marks.len(), runs, "{point}: a wake runs nothing again: {marks:?}");
        if runs < 2 {
            bench.ok(["patches", "apply", &id, "--retry"]);
        }
    }
}

// Every step behind the removal: what comes to nothing there is made again whole, patches and all.
each_case! {
    a_recreate_of_a_restored_sandbox_that_is_killed_owes_nothing_that_could_run = a_killed_recreate {
        up_to_its_archive: &[
            ("recreate.begin", "ready"),
            ("recreate.torn_down", "failed"),
            ("restore.prepared", "failed"),
        ];
        before_its_patches: &[
            ("restore.extracted", "failed"),
            ("restore.up", "failed"),
            ("create.started", "failed"),
        ];
        over_its_patches: &[
            ("patch.applying", "ready"),
            ("patch.ran", "ready"),
            ("patch.applied", "failed"),
            ("create.patched", "ready"),
            ("create.ready", "ready"),
        ];
    }
}

fn a_killed_recreate(points: &[(&str, &str)]) {
    let bench = Bench::new();
    stack_base(&bench);
    two_patches(&bench);
    let id = text(&bench.ok(["restore", "base", "--name", "box"])["id"]);
    for (point, wanted) in points {
        bench.killed(point, ["recreate", "box", "--yes"]);
        bench.recovered();
        let record = bench.get("box");
        assert_eq!(record["state"], *wanted, "{point}: {record:#}");
        owes_nothing_that_could_run(&record, point);
        let there = usize::from(*wanted == "ready");
        assert_eq!(containers(DOCKER, &id), there, "{point}: what is not ready is not there");
        if *wanted == "ready" {
            once_each(&record, &marks(&bench, "box"), point);
        } else {
            bench.ok(["recreate", "box", "--yes"]);
            assert_eq!(marks(&bench, "box"), ["1", "2"], "{point}: made again, it has each once");
        }
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
