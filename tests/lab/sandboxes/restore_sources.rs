//! What a restored sandbox is made from: an archive that is not as it was is found out before anything is removed for it, and
//! a strict restore takes no less than everything.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::lab::{Bench, DOCKER, on_host, text, tree};
use crate::sandboxes::snapshot_lost_hosts::KEEPER;
use crate::support::json_assertions::JsonAssertions as _;

/// `KEEPER` without its volume.
const UNKEPT: &str = r#"services:
  keeper:
    image: "localhost/sbx-lab:1"
    command: ["sleep", "100000"]
    stop_signal: SIGKILL
"#;

/// A sandbox's containers, by id and state: other ids are other containers.
fn containers(id: &str) -> String {
    let script = format!(
        "docker ps -a --no-trunc --filter label=com.docker.compose.project=sbx-{id} --format '{{{{.ID}}}} {{{{.State}}}}'"
    );
    on_host(DOCKER, &[&script])
}

fn workspace(record: &Value) -> PathBuf {
    PathBuf::from(text(&record["workdir"])).join("workspace")
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_recreate_from_an_archive_that_is_altered_or_gone_touches_nothing() {
    let bench = Bench::watching(&[DOCKER]);
    bench.create_stack(DOCKER, &bench.stack("kept", KEEPER), &["--name", "source"]);
    let taken = bench.ok(["snapshot", "source", "--name", "base"]);
    let made = bench.ok(["restore", "base", "--name", "box"]);
    let id = text(&made["id"]);
    fs::write(workspace(&made).join("work"), "of an hour").unwrap();
    let archive = PathBuf::from(text(&taken["replicas"][0]["path"])).join("archive.tar.zst");
    let whole = fs::read(&archive).unwrap();
    let (stand, files) = (containers(&id), tree(&PathBuf::from(text(&made["workdir"]))));

    let refused = |code: &str, words: &str| {
        bench.refused(["recreate", &id, "--yes"], code).hints("nothing of the sandbox was touched");
        let record = bench.get(&id);
        record.has(json!({"state": "ready", "operation": null}));
        let message = text(&record["message"]);
        assert!(message.starts_with("it was not made again: "), "{message}");
        assert!(message.contains(words), "{message}");
        assert!(record["reachability"].is_object(), "{record:#}");
        assert_eq!(containers(&id), stand.clone());
        assert_eq!(tree(&PathBuf::from(text(&made["workdir"]))), files.clone());
    };
    let mut altered = whole.clone();
    let middle = altered.len() / 2;
    altered[middle] ^= 1;
    fs::write(&archive, &altered).unwrap();
    refused("operation_failed", "cannot be read any more");
    fs::remove_file(&archive).unwrap();
    refused("not_found", "is not on");

    fs::write(&archive, &whole).unwrap();
    let again = bench.ok(["recreate", &id, "--yes"]);
    again.has(json!({"state": "ready", "message": null}));
    assert!(containers(&id) != stand, "it is made again");
    assert!(!workspace(&again).join("work").exists(), "it is made again");
    bench.ok(["destroy", "box", "source"]);
    bench.ok(["snapshots", "delete", "base"]);
    bench.assert_as_before();
}

/// The compose file in the workspace is what is restored, and it may have been changed since the containers were made.
#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_strict_restore_refuses_a_volume_that_nobody_would_use() {
    let bench = Bench::watching(&[DOCKER]);
    let made = bench.create_stack(DOCKER, &bench.stack("kept", KEEPER), &["--name", "source"]);
    fs::write(workspace(&made).join("docker-compose.yml"), UNKEPT).unwrap();
    let told = bench.ok(["snapshot", "source", "--name", "base"]);
    told.has(json!({"captured_volumes.0.name": "kept"}));
    let between = bench.snapshot(DOCKER);

    let error =
        bench.refused(["restore", "base", "--strict", "--name", "strict"], "operation_failed");
    error.says("volume");
    assert_eq!(error["details"]["leftovers"], json!([]), "{error:#}");
    assert_eq!(bench.get("strict")["state"], "failed");
    bench.assert_unchanged(DOCKER, &between);

    let back = bench.ok(["restore", "base", "--name", "back"]);
    back.has(json!({"state": "ready", "not_preserved": {"volumes": 1}}));
    let volumes =
        on_host(DOCKER, &["docker volume ls -q --filter name=\"sbx-$1\"", &text(&back["id"])]);
    assert_eq!(volumes, "", "it is nobody's, and not there");
    bench.ok(["destroy", "back", "source", "strict"]);
    bench.ok(["snapshots", "delete", "base"]);
    bench.assert_as_before();
}
