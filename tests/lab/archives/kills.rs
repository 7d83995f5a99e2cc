//! SIGKILL while an archive is on its way, and then `recover`: a copy or an import is whole or gone.

use serde_json::{Value, json};

use crate::archives::source::{clear, snapshot};
use crate::lab::{Bench, DOCKER, PODMAN, text};

fn killed(bench: &Bench, point: &str, args: &[&str]) {
    let ran = bench.run_failing(&format!("{point}=return"), args);
    assert_eq!(ran.status, None, "{point}: killed by a signal: {ran:#?}");
}

fn recovered(bench: &Bench) {
    for item in bench.run(["recover"]).ok().as_array().unwrap() {
        assert_eq!(item["ok"], true, "{item:#}");
    }
    assert_eq!(bench.run(["recover"]).ok(), json!([]), "a second one has nothing to do");
    let operations = bench.run(["operations", "list"]).ok();
    assert!(operations.as_array().unwrap().iter().all(|operation| operation["state"] != "running"));
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn copies_that_are_killed_are_whole_or_gone() {
    let bench = Bench::new();
    let before = bench.snapshot(PODMAN);
    snapshot(&bench, DOCKER, "killed-copy");
    for (point, stays) in [("copy.received", false), ("copy.sealed", true)] {
        killed(&bench, point, &["snapshots", "copy", "base", "--to", PODMAN]);
        recovered(&bench);
        let record = bench.run(["snapshots", "get", "base"]).ok();
        assert_eq!(record["state"], "ready", "{point}: {record:#}");
        assert_eq!(
            (&record["copying_to"], &record["operation"]),
            (&Value::Null, &Value::Null),
            "{point}: {record:#}"
        );
        // From the seal on it is whole, whoever lives to write that down.
        assert_eq!(record["replicas"][0]["host"] == PODMAN, stays, "{point}: {record:#}");
        if !stays {
            bench.assert_unchanged(PODMAN, &before);
        }
    }
    let copied = bench.run(["snapshots", "copy", "base", "--to", PODMAN]).ok();
    assert_eq!(copied["replicas"][0]["host"], PODMAN);
    bench.run(["snapshots", "verify", "base"]).ok();
    clear(&bench);
    bench.assert_unchanged(PODMAN, &before);
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn imports_that_are_killed_are_whole_or_gone() {
    let bench = Bench::new();
    let before = bench.snapshot(PODMAN);
    snapshot(&bench, DOCKER, "killed-import");
    let file = bench.path("base.tar");
    let path = file.to_str().unwrap();
    bench.run(["snapshots", "export", "base", path]).ok();

    killed(
        &bench,
        "import.received",
        &["snapshots", "import", path, "--host", PODMAN, "--name", "first"],
    );
    recovered(&bench);
    bench.assert_unchanged(PODMAN, &before);
    let listed = bench.run(["snapshots", "list"]).ok();
    assert_eq!(listed.as_array().unwrap().len(), 1, "{listed:#}");

    // From the seal on it is whole, whoever lives to write that down.
    killed(
        &bench,
        "import.sealed",
        &["snapshots", "import", path, "--host", PODMAN, "--name", "second"],
    );
    recovered(&bench);
    let second = bench.run(["snapshots", "get", "second"]).ok();
    assert_eq!(second["state"], "ready", "{second:#}");
    bench.run(["snapshots", "verify", "second"]).ok();
    let back = bench.run(["restore", "second"]).ok();
    crate::archives::source::assert_whole(&bench, &text(&back["id"]));
    clear(&bench);
    bench.assert_unchanged(PODMAN, &before);
}
