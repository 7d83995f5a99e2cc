//! SIGKILL while an archive is on its way, and then `recover`: a copy or an import is whole or gone.

use std::fs;

use serde_json::json;

use crate::archives::source::{assert_whole, folder, replicas, snapshot};
use crate::each_case::each_case;
use crate::lab::{Bench, DOCKER, PODMAN, text};
use crate::sandboxes::kills::id_of;
use crate::support::json_assertions::JsonAssertions as _;

each_case! {
    copies_that_are_killed_are_whole_or_gone {
        below_the_same_root: false;
        below_an_earlier_root: true;
    }
}

fn copies_that_are_killed_are_whole_or_gone(moves: bool) {
    // From the seal on it is whole, whoever lives to write that down.
    let points = [("copy.received", false), ("copy.sealed", true)];
    let bench = Bench::watching(&[PODMAN]);
    let source = format!("killed-{moves}");
    snapshot(&bench, DOCKER, &source);
    for (point, _) in points {
        bench.ok(["snapshot", &source, "--name", &id_of(point)]);
        bench.killed(point, ["snapshots", "copy", &id_of(point), "--to", PODMAN]);
    }
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
    for (point, stays) in points {
        let base = id_of(point);
        let record = bench.ok(["snapshots", "get", &base]);
        record.has(json!({"state": "ready", "operation": null}));
        let own = [format!("{DOCKER} ready")];
        let both = [format!("{DOCKER} ready"), format!("{PODMAN} ready")];
        let expected = if stays { &both[..] } else { &own[..] };
        assert_eq!(replicas(&record), expected, "{point}: {record:#}");
        assert_eq!(folder(&bench, PODMAN, &text(&record["id"])).exists(), stays, "{point}");
        let copied = bench.ok(["snapshots", "copy", &base, "--to", PODMAN]);
        assert_eq!(replicas(&copied).len(), 2, "{point}: {copied:#}");
        bench.ok(["snapshots", "verify", &base]);
    }
    bench.clear();
    bench.assert_as_before();
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn imports_that_are_killed_are_whole_or_gone() {
    let bench = Bench::watching(&[PODMAN]);
    snapshot(&bench, DOCKER, "killed-import");
    let file = bench.path("base.tar");
    let path = file.to_str().unwrap();
    bench.ok(["snapshots", "export", "base", path]);
    let import = |point: &str| {
        bench.killed(
            point,
            ["snapshots", "import", path, "--host", PODMAN, "--name", &id_of(point)],
        );
        bench.recovered();
    };
    import("import.received");
    bench.assert_as_before();
    let listed = bench.ok(["snapshots", "list"]);
    assert_eq!(listed.as_array().unwrap().len(), 1, "{listed:#}");
    // From the seal on it is whole, whoever lives to write that down.
    import("import.sealed");
    let imported = bench.ok(["snapshots", "get", "import-sealed"]);
    assert_eq!(imported["state"], "ready", "{imported:#}");
    bench.ok(["snapshots", "verify", "import-sealed"]);
    let back = bench.ok(["restore", "import-sealed"]);
    assert_whole(&bench, &text(&back["id"]));
    bench.clear();
    bench.assert_as_before();
}
