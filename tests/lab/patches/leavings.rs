//! A patch's script may hold secrets: it is on its host only while it runs.

use std::fs;

use serde_json::json;

use super::{add, canary_base, patches_of, read};
use crate::lab::{Bench, DOCKER, PODMAN, text};

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_pass_that_is_killed_before_its_script_runs_leaves_none_of_it() {
    let host = DOCKER;
    let bench = Bench::new();
    canary_base(&bench, host, "profile.sandbox-canary");
    let id = text(&bench.ok(["restore", "base", "--name", "box"])["id"]);
    let place = bench.directory(host, &id).join(".patch");
    add(&bench, "base", "password=hunter2; ls -A ../.patch >seen", &[]);
    bench.killed("patch.placed", ["patches", "apply", "box"]);
    assert!(place.exists(), "the place is there, and empty");
    assert!(fs::read_dir(&place).unwrap().next().is_none(), "the place is there, and empty");
    // As a host leaves it that goes down in the middle.
    fs::write(place.join("script"), "password=hunter2").unwrap();
    bench.recovered();
    assert!(!place.exists(), "recover takes it away");
    let record = bench.ok(["patches", "apply", "box", "--retry"]);
    assert_eq!(patches_of(&bench.get("box")), [(1, "applied".to_owned())], "{record:#}");
    assert!(read(&bench, "box", "seen").contains("script"), "it runs as a file");
    assert!(!place.exists(), "and is gone with its end");
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_script_for_a_service_is_never_a_file_beside_it() {
    for host in [DOCKER, PODMAN] {
        let bench = Bench::new();
        let repo = bench.web_stack("x");
        let source = text(&bench.create_stack(host, &repo, &[])["id"]);
        bench.ok(["snapshot", &source, "--name", "base"]);
        let id = text(&bench.ok(["restore", "base", "--name", "box"])["id"]);
        let place = bench.directory(host, &id).join(".patch");
        add(&bench, "base", "echo done >/done; cat /done", &["--run-in", "web"]);
        bench.killed("patch.placed", ["patches", "apply", "box"]);
        assert!(!place.join("script").exists());
        bench.recovered();
        assert!(!place.exists());
        bench.ok(["patches", "apply", "box", "--retry"]);
        let record = bench.get("box");
        assert_eq!(patches_of(&record), [(1, "applied".to_owned())], "{record:#}");
        assert_eq!(record["applied_patches"][0]["output"], json!("done\n"), "{record:#}");
        assert!(!place.exists());
    }
}
