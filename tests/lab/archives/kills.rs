//! SIGKILL while an archive is on its way, and then `recover`: a copy or an import is whole or gone.

use std::fs;

use serde_json::json;

use crate::archives::source::{replicas, snapshot};
use crate::lab::{Bench, DOCKER, PODMAN, text};
use crate::points::each_point;
use crate::support::said::Said as _;

each_point! {
    copies_that_are_killed_are_whole_or_gone = a_killed_copy_is_whole_or_gone() {
        copy_received: "copy.received", false, false;
        copy_sealed: "copy.sealed", true, false;
        copy_received_below_an_earlier_root: "copy.received", false, true;
        copy_sealed_below_an_earlier_root: "copy.sealed", true, true;
    }
}

fn a_killed_copy_is_whole_or_gone(point: &str, stays: bool, moves: bool) {
    let bench = Bench::watching(&[PODMAN]);
    snapshot(&bench, DOCKER, &format!("killed-{}-{moves}", point.replace('.', "-")));
    bench.killed(point, ["snapshots", "copy", "base", "--to", PODMAN]);
    let file = bench.path("config.yaml");
    let config = fs::read_to_string(&file).unwrap();
    if moves {
        // It is looked for where it was brought, wherever new ones go.
        let root = format!("workspace_root: {}", bench.workspace_root(PODMAN).display());
        assert!(config.contains(&root), "{config}");
        fs::write(&file, config.replace(&root, &format!("{root}-later"))).unwrap();
    }
    bench.recovered();
    fs::write(&file, config).unwrap();
    let record = bench.ok(["snapshots", "get", "base"]);
    record.has(json!({"state": "ready", "operation": null}));
    // From the seal on it is whole, whoever lives to write that down.
    let listed = replicas(&record);
    let copy = [format!("{PODMAN} ready")];
    let expected =
        [format!("{DOCKER} ready")].into_iter().chain(copy.into_iter().filter(|_| stays));
    assert_eq!(listed, expected.collect::<Vec<_>>(), "{record:#}");
    if !stays {
        bench.assert_as_before();
    }
    let copied = bench.ok(["snapshots", "copy", "base", "--to", PODMAN]);
    assert_eq!(replicas(&copied).len(), 2, "{copied:#}");
    bench.ok(["snapshots", "verify", "base"]);
    bench.clear();
    bench.assert_as_before();
}

each_point! {
    imports_that_are_killed_are_whole_or_gone = a_killed_import_is_whole_or_gone() {
        import_received: "import.received", false;
        import_sealed: "import.sealed", true;
    }
}

fn a_killed_import_is_whole_or_gone(point: &str, stays: bool) {
    let bench = Bench::watching(&[PODMAN]);
    snapshot(&bench, DOCKER, &format!("killed-{}", point.replace('.', "-")));
    let file = bench.path("base.tar");
    let path = file.to_str().unwrap();
    bench.ok(["snapshots", "export", "base", path]);
    bench.killed(point, ["snapshots", "import", path, "--host", PODMAN, "--name", "imported"]);
    bench.recovered();
    if stays {
        // From the seal on it is whole, whoever lives to write that down.
        let imported = bench.ok(["snapshots", "get", "imported"]);
        assert_eq!(imported["state"], "ready", "{imported:#}");
        bench.ok(["snapshots", "verify", "imported"]);
        let back = bench.ok(["restore", "imported"]);
        crate::archives::source::assert_whole(&bench, &text(&back["id"]));
    } else {
        bench.assert_as_before();
        let listed = bench.ok(["snapshots", "list"]);
        assert_eq!(listed.as_array().unwrap().len(), 1, "{listed:#}");
    }
    bench.clear();
    bench.assert_as_before();
}
