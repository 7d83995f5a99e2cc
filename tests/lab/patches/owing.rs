//! Patches that come and go while somebody works on a sandbox, and operations that begin over dead ones.

use serde_json::{Value, json};

use super::{add, canary_base, patches_of};
use crate::held::held;
use crate::lab::{Bench, DOCKER, engine, on_host, text};
use crate::support::json_assertions::JsonAssertions as _;

const PATCHED: [&str; 6] = ["wait", "box", "--for", "patched", "--timeout", "1s"];

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn one_that_comes_or_goes_during_an_operation_is_on_the_record() {
    let bench = Bench::new();
    canary_base(&bench, DOCKER, "profile.sandbox-canary");
    add(&bench, "base", "true", &[]);
    bench.ok(["restore", "base", "--name", "box"]);
    let state = |record: &Value| (text(&record["patch_state"]), record["patch_error"].clone());
    for (point, args, wake) in
        [("snapshot.captured", ["snapshot", "box"], false), ("wake.patched", ["wake", "box"], true)]
    {
        bench.ok(["patches", "apply", "box"]);
        if wake {
            bench.ok(["sleep", "box"]);
        }
        let (working, gate) = held(&bench, point, &args);
        add(&bench, "base", "true", &[]);
        let found = state(&bench.get("box"));
        assert_eq!(found, ("pending".to_owned(), Value::Null), "{point}: during it");
        bench.run(PATCHED).error("timeout");
        gate.open();
        working.finish().ok();
        let found = state(&bench.get("box"));
        assert_eq!(found, ("pending".to_owned(), Value::Null), "{point}: after it");
        bench.run(PATCHED).error("timeout");
    }
    let bad = add(&bench, "base", "exit 7", &[]).to_string();
    bench.run(["patches", "apply", "box"]).error("operation_failed");
    bench.run(PATCHED).error("operation_failed");
    let (working, gate) = held(&bench, "snapshot.captured", &["snapshot", "box"]);
    bench.ok(["patches", "remove", "base", &bad, "--yes"]);
    gate.open();
    working.finish().ok();
    assert_eq!(state(&bench.get("box")), ("applied".to_owned(), Value::Null));
    bench.ok(PATCHED);
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_snapshot_hides_nothing_of_what_died_before_it() {
    let bench = Bench::new();
    let repo = bench.web_stack("x");
    let id = text(&bench.create_stack(DOCKER, &repo, &[])["id"]);
    let running = || {
        let script =
            format!("{} ps -q --filter label=com.docker.compose.project=sbx-{id}", engine(DOCKER));
        on_host(DOCKER, &[&script]).lines().count()
    };
    bench.ok(["snapshot", &id, "--name", "base"]);
    bench.ok(["sleep", &id]);
    bench.killed("wake.started", ["wake", &id]);
    bench.run(["snapshot", &id]).error("conflict").hints("sandboxer recover");
    bench.recovered();
    let awake = bench.get(&id)["state"] == "ready";
    assert_eq!(running() > 0, awake, "what runs is what the record says");
    bench.ok(["snapshot", &id]);

    bench.ok(["restore", "base", "--name", "box"]);
    add(&bench, "base", "true", &[]);
    bench.killed("patch.applying", ["patches", "apply", "box"]);
    bench.ok(["snapshot", "box"]);
    let record = bench.get("box");
    assert_eq!(patches_of(&record), vec![(1, "unknown".to_owned())]);
    assert_eq!(record["patch_state"], json!("unknown"));
    assert_eq!(bench.ok(["recover"]), json!([]), "nothing of it is left");
    bench.run(PATCHED).error("operation_failed");
}
