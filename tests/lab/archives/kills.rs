//! SIGKILL while an archive is on its way, and then `recover`: a copy or an import is whole or gone.

use std::fs;

use serde_json::{Value, json};

use crate::archives::source::{clear, replicas, snapshot};
use crate::lab::{Bench, DOCKER, PODMAN, text};
use crate::points::each_point;

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

each_point! {
    copies_that_are_killed_are_whole_or_gone = a_killed_copy_is_whole_or_gone() {
        copy_received: "copy.received", false, false;
        copy_sealed: "copy.sealed", true, false;
        copy_received_below_an_earlier_root: "copy.received", false, true;
        copy_sealed_below_an_earlier_root: "copy.sealed", true, true;
    }
}

fn a_killed_copy_is_whole_or_gone(point: &str, stays: bool, moves: bool) {
    let bench = Bench::new();
    let before = bench.snapshot(PODMAN);
    snapshot(&bench, DOCKER, &format!("killed-{}-{moves}", point.replace('.', "-")));
    killed(&bench, point, &["snapshots", "copy", "base", "--to", PODMAN]);
    let file = bench.path("config.yaml");
    let config = fs::read_to_string(&file).unwrap();
    if moves {
        // It is looked for where it was brought, wherever new ones go.
        let root = format!("workspace_root: {}", bench.workspace_root(PODMAN).display());
        assert!(config.contains(&root), "{config}");
        fs::write(&file, config.replace(&root, &format!("{root}-later"))).unwrap();
    }
    recovered(&bench);
    fs::write(&file, config).unwrap();
    let record = bench.run(["snapshots", "get", "base"]).ok();
    assert_eq!(record["state"], "ready", "{record:#}");
    assert_eq!(record["operation"], Value::Null, "{record:#}");
    // From the seal on it is whole, whoever lives to write that down.
    let listed = replicas(&record);
    let copy = [format!("{PODMAN} ready")];
    let expected =
        [format!("{DOCKER} ready")].into_iter().chain(copy.into_iter().filter(|_| stays));
    assert_eq!(listed, expected.collect::<Vec<_>>(), "{record:#}");
    if !stays {
        bench.assert_unchanged(PODMAN, &before);
    }
    let copied = bench.run(["snapshots", "copy", "base", "--to", PODMAN]).ok();
    assert_eq!(replicas(&copied).len(), 2, "{copied:#}");
    bench.run(["snapshots", "verify", "base"]).ok();
    clear(&bench);
    bench.assert_unchanged(PODMAN, &before);
}

each_point! {
    imports_that_are_killed_are_whole_or_gone = a_killed_import_is_whole_or_gone() {
        import_received: "import.received", false;
        import_sealed: "import.sealed", true;
    }
}

fn a_killed_import_is_whole_or_gone(point: &str, stays: bool) {
    let bench = Bench::new();
    let before = bench.snapshot(PODMAN);
    snapshot(&bench, DOCKER, &format!("killed-{}", point.replace('.', "-")));
    let file = bench.path("base.tar");
    let path = file.to_str().unwrap();
    bench.run(["snapshots", "export", "base", path]).ok();
    killed(&bench, point, &["snapshots", "import", path, "--host", PODMAN, "--name", "imported"]);
    recovered(&bench);
    if stays {
        // From the seal on it is whole, whoever lives to write that down.
        let imported = bench.run(["snapshots", "get", "imported"]).ok();
        assert_eq!(imported["state"], "ready", "{imported:#}");
        bench.run(["snapshots", "verify", "imported"]).ok();
        let back = bench.run(["restore", "imported"]).ok();
        crate::archives::source::assert_whole(&bench, &text(&back["id"]));
    } else {
        bench.assert_unchanged(PODMAN, &before);
        let listed = bench.run(["snapshots", "list"]).ok();
        assert_eq!(listed.as_array().unwrap().len(), 1, "{listed:#}");
    }
    clear(&bench);
    bench.assert_unchanged(PODMAN, &before);
}
