//! SIGKILL at every step of sleep, wake and a patch, and then `recover`: no patch runs twice without somebody saying so, and
//! a record says what its host says.

use serde_json::json;

use super::{add, canary_base, patches_of, read};
use crate::each_case::each_case;
use crate::lab::{Bench, DOCKER, PODMAN, Started, on_host, text, url_of, wait_until};
use crate::sandboxes::kills::id_of;

/// How often each patch left its mark.
pub(crate) fn marks(bench: &Bench, id: &str) -> Vec<String> {
    read(bench, id, "marks").lines().map(str::to_owned).collect()
}

// A patch whose process died has run once or not at all, and is not run again by a wake, whoever came first: a recover or a
// wake.
each_case! {
    a_killed_patch_is_never_run_twice {
        after_a_recover: true;
        by_a_wake: false;
    }
}

fn a_killed_patch_is_never_run_twice(recover: bool) {
    let points = [("patch.applying", 0), ("patch.ran", 1), ("patch.applied", 1)];
    let bench = Bench::new();
    canary_base(&bench, DOCKER, "profile.sandbox-canary");
    for (point, _) in points {
        bench.ok(["restore", "base", "--name", &id_of(point)]);
        bench.ok(["exec", &id_of(point), "--", "touch", "marks"]);
    }
    add(&bench, "base", "echo 1 >>marks", &[]);
    for (point, _) in points {
        bench.killed(point, ["patches", "apply", &id_of(point)]);
    }
    if recover {
        bench.recovered();
    }
    for (point, ran) in points {
        let id = id_of(point);
        bench.ok(["sleep", &id]);
        bench.run(["wake", &id]);
        let record = bench.get(&id);
        assert_eq!(marks(&bench, &id).len(), ran, "{point}: {record:#}");
        let known = point == "patch.applied";
        let state = if known { "applied" } else { "unknown" };
        assert_eq!(patches_of(&record), [(1, state.to_owned())], "{point}");
        if !known {
            assert!(text(&record["patch_error"]).contains("--retry"), "{point}: {record:#}");
            bench.run(["patches", "apply", &id]).error("operation_failed");
            assert_eq!(marks(&bench, &id).len(), ran, "{point}");
            bench.ok(["patches", "apply", &id, "--retry"]);
            assert_eq!(marks(&bench, &id).len(), ran + 1, "{point}: it is asked for");
        }
    }
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_number_that_a_dead_process_took_is_not_used_again() {
    let bench = Bench::new();
    canary_base(&bench, DOCKER, "profile.sandbox-canary");
    std::fs::write(bench.path("patch.sh"), "true").unwrap();
    let file = bench.path("patch.sh");
    let adding = ["patches", "add", "base", "--script-file", file.to_str().unwrap()];
    bench.killed("patch.numbered", adding);
    assert_eq!(bench.ok(["patches", "list", "base"]), json!([]));
    assert_eq!(add(&bench, "base", "true", &[]), 2);
}

/// Whoever is killed while a script runs takes it along: the watchdog on the host ends it.
#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_script_ends_with_the_console_that_began_it() {
    let host = DOCKER;
    let bench = Bench::new();
    canary_base(&bench, host, "profile.sandbox-canary");
    bench.ok(["restore", "base", "--name", "box"]);
    let nap = format!("47{}.5", std::process::id());
    add(&bench, "base", &format!("echo begun >>marks; sleep {nap}; echo ended >>marks"), &[]);
    let applying = Started::spawn(bench.command(["patches", "apply", "box"]));
    let there =
        || !on_host(host, &["pgrep -fx -- \"$1\" || :", &format!("sleep {nap}")]).trim().is_empty();
    wait_until("it has begun", there);
    applying.signal("KILL");
    wait_until("the script ends with its console", || !there());
    drop(applying);
    bench.recovered();
    let record = bench.get("box");
    assert_eq!(record["state"], json!("ready"));
    assert_eq!(patches_of(&record), vec![(1, "unknown".to_owned())]);
    assert_eq!(marks(&bench, "box"), ["begun"]);
}

// Every step of a sleep and of a wake, and how it is after a recover; on podman those behind which its host stands otherwise.
each_case! {
    sleeps_and_wakes_that_are_killed_are_what_the_host_says {
        on_docker: DOCKER, &[
            ("sleep.stopped", "sleeping"),
            ("sleep.confirmed", "sleeping"),
            ("sleep.sleeping", "sleeping"),
            ("wake.started", "ready"),
            ("wake.awake", "ready"),
            ("wake.patched", "ready"),
            ("wake.ready", "ready"),
        ];
        on_podman: PODMAN, &[
            ("sleep.stopped", "sleeping"),
            ("sleep.confirmed", "sleeping"),
            ("wake.started", "ready"),
            ("wake.awake", "ready"),
        ];
    }
}

fn sleeps_and_wakes_that_are_killed_are_what_the_host_says(host: &str, points: &[(&str, &str)]) {
    let bench = Bench::watching(&[host]);
    let id = text(&bench.create_stack(host, &bench.web_stack("x"), &[])["id"]);
    for (point, state) in points {
        let verb = point.split_once('.').unwrap().0;
        if verb == "wake" {
            bench.ok(["sleep", &id]);
        }
        bench.killed(point, [verb, &id]);
        bench.recovered();
        assert_eq!(bench.get(&id)["state"], *state, "{point}");
        bench.ok(["sleep", &id]);
        let awake = bench.ok(["wake", &id]);
        assert!(crate::lab::http_get(&url_of(&awake)).contains('x'), "{point}");
    }
    bench.ok(["destroy", &id, "--yes"]);
    bench.assert_as_before();
}
