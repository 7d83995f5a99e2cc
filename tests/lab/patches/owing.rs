//! Patches that come and go while somebody works on a sandbox, and operations that begin over dead ones.

use serde_json::{Value, json};

use super::{add, canary_base, patches_of};
use crate::held::held;
use crate::lab::{Bench, DOCKER, engine, on_host, text};
use crate::patches::kills::{killed, recovered};

const PATCHED: [&str; 6] = ["wait", "box", "--for", "patched", "--timeout", "1s"];

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn one_that_comes_or_goes_during_an_operation_is_on_the_record() {
    let bench = Bench::new();
    canary_base(&bench, DOCKER, "profile.sandbox-canary");
    add(&bench, "base", "true", &[]);
    bench.run(["restore", "base", "--name", "box"]).ok();
    let state = |record: &Value| (text(&record["patch_state"]), record["patch_error"].clone());
    for (point, args, wake) in
        [("snapshot.captured", ["snapshot", "box"], false), ("wake.patched", ["wake", "box"], true)]
    {
        bench.run(["patches", "apply", "box"]).ok();
        if wake {
            bench.run(["sleep", "box"]).ok();
        }
        let (working, gate) = held(&bench, point, &args);
        add(&bench, "base", "true", &[]);
        assert_eq!(
            state(&bench.get("box")),
            ("pending".to_owned(), Value::Null),
            "{point}: during it"
        );
        bench.run(PATCHED).error("timeout");
        gate.open();
        working.finish().ok();
        assert_eq!(
            state(&bench.get("box")),
            ("pending".to_owned(), Value::Null),
            "{point}: after it"
        );
        bench.run(PATCHED).error("timeout");
    }
    let bad = add(&bench, "base", "exit 7", &[]).to_string();
    bench.run(["patches", "apply", "box"]).error("operation_failed");
    bench.run(PATCHED).error("operation_failed");
    let (working, gate) = held(&bench, "snapshot.captured", &["snapshot", "box"]);
    bench.run(["patches", "remove", "base", &bad, "--yes"]).ok();
    gate.open();
    working.finish().ok();
    assert_eq!(state(&bench.get("box")), ("applied".to_owned(), Value::Null));
    bench.run(PATCHED).ok();
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
    bench.run(["snapshot", &id, "--name", "base"]).ok();
    bench.run(["sleep", &id]).ok();
    killed(&bench, "wake.started", &["wake", &id]);
    let error = bench.run(["snapshot", &id]).error("conflict").clone();
    assert!(text(&error["hint"]).contains("sandboxer recover"), "{error:#}");
    recovered(&bench);
    let awake = bench.get(&id)["state"] == "ready";
    assert_eq!(running() > 0, awake, "what runs is what the record says");
    bench.run(["snapshot", &id]).ok();

    bench.run(["restore", "base", "--name", "box"]).ok();
    add(&bench, "base", "true", &[]);
    killed(&bench, "patch.applying", &["patches", "apply", "box"]);
    bench.run(["snapshot", "box"]).ok();
    let record = bench.get("box");
    assert_eq!(
        (patches_of(&record), &record["patch_state"]),
        (vec![(1, "unknown".to_owned())], &json!("unknown"))
    );
    assert_eq!(bench.run(["recover"]).ok(), json!([]), "nothing of it is left");
    bench.run(PATCHED).error("operation_failed");
}
