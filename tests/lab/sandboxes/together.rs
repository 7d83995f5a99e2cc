//! Many sandboxes removed by one command: what is in the way of one is in nobody else's way.

use std::fs;

use serde_json::json;

use crate::each_case::each_case;
use crate::lab::{Bench, DOCKER, IMAGE, PODMAN, on_engine, text};
use crate::support::json_assertions::JsonAssertions as _;

const STACK: &str = r#"services:
  web:
    build: .
    command: [sleep, "100000"]
    stop_signal: SIGKILL
    volumes: ["data:/data"]
volumes: {data: {}}
"#;

/// What an engine has of a sandbox, and its images.
fn on(host: &str, id: &str) -> String {
    let all = "$1 ps -aq --filter label=sandboxer.id=$2; $1 network ls -q --filter label=sandboxer.id=$2; $1 volume ls -q --filter label=sandboxer.id=$2; $1 images -q \"sbx-$2-web\"";
    on_engine(host, &[all, id])
}

/// Somebody's container that uses the sandbox's volume. Removed when dropped.
struct Stranger {
    host: &'static str,
    name: String,
}

impl Stranger {
    fn uses_the_volume_of(host: &'static str, id: &str) -> Self {
        // Other tests on the engine take it for none of theirs.
        let name = format!("stranger-of-sbx-{id}");
        let run = "$1 run -d --network none --name \"$2\" -v \"sbx-$3_data:/data\" \"$4\" sleep 100000 >/dev/null";
        on_engine(host, &[run, &name, id, IMAGE]);
        Self { host, name }
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        on_engine(self.host, &["$1 rm -f -v \"$2\" >/dev/null 2>&1; :", &self.name]);
    }
}

each_case! {
    what_is_in_the_way_of_one_removal_is_in_no_others_way = many_are_removed {
        on_docker: DOCKER;
        on_podman: PODMAN;
    }
}

fn many_are_removed(host: &'static str) {
    let bench = Bench::watching(&[host]);
    let files = [
        ("docker-compose.yml", STACK),
        ("Dockerfile", "FROM localhost/sbx-lab:1\nCOPY docker-compose.yml /\n"),
    ];
    let repo = bench.repository("many", &files);
    let profile = bench
        .profile("builds", "ready_timeout: 120s\ncompose: {ports: ephemeral, allow: [builds]}");
    let names = ["first", "plain", "theirs", "used", "gone", "last"];
    let create = |name: &&str| {
        let repo = format!("repo={}", repo.display());
        let words = ["create", "--profile", &profile, "--host", host, "--input", &repo];
        text(&bench.ok([&words[..], &["--name", *name]].concat())["id"])
    };
    let ids: Vec<String> = names.iter().map(create).collect();
    let [first, plain, theirs, used, gone, last] = &ids[..] else { panic!("{ids:?}") };
    let manifest = bench.directory(host, theirs).join("manifest.json");
    let own = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, own.replace("\"owner\": \"", "\"owner\": \"not-")).unwrap();
    let stood = on(host, theirs);
    let stranger = Stranger::uses_the_volume_of(host, used);
    fs::remove_dir_all(bench.directory(host, gone)).unwrap();

    let words = ["destroy", "--yes", "--no-undo"].map(str::to_owned);
    let ran = bench.run(words.iter().chain(&ids));
    let items = ran.json();
    let item = |id: &str| items.as_array().unwrap().iter().find(|item| item["id"] == id).unwrap();
    for id in [first, plain, gone, last] {
        item(id).has(json!({"ok": true}));
        bench.get(id).has(json!({"state": "destroyed", "leftovers": []}));
        assert_eq!(on(host, id), "", "{id}");
        assert!(!bench.directory(host, id).exists(), "{id}");
        let lines = bench.get(id)["teardown"].clone();
        let outcome = |kind: &str| {
            let line =
                lines.as_array().unwrap().iter().find(|line| line["resource"]["kind"] == kind);
            line.unwrap_or_else(|| panic!("{kind}: {lines:#}"))["outcome"].clone()
        };
        let directory = if id == gone { "absent" } else { "removed" };
        for (kind, what) in [
            ("container", "removed"),
            ("network", "removed"),
            ("volume", "removed"),
            ("directory", directory),
            ("image", "removed"),
        ] {
            assert_eq!(outcome(kind), what, "{id} {kind}: {lines:#}");
        }
    }
    // Whose it is was not proved: nothing of it was touched.
    let error = &item(theirs)["error"];
    error.has(json!({"code": "conflict"}));
    assert!(error["message"].as_str().unwrap().contains("not proved"), "{error:#}");
    assert_eq!(on(host, theirs), stood);
    bench.get(theirs).has(json!({"state": "ready", "operation": null}));
    // What somebody uses stays, and the engine's words are about that alone.
    item(used).has(json!({"ok": false}));
    let record = bench.get(used);
    let volume = format!("sbx-{used}_data");
    record.has(json!({"state": "destroying", "leftovers": [{"kind": "volume", "id": volume}]}));
    let lines = record["teardown"].as_array().unwrap();
    let line = lines.iter().find(|line| line["outcome"] == "failed").unwrap();
    let reason = line["reason"].as_str().unwrap();
    assert!(reason.contains(&volume), "{reason}");
    for id in ids.iter().filter(|id| *id != used) {
        assert!(!reason.contains(id.as_str()), "{reason}");
    }

    drop(stranger);
    fs::write(&manifest, own).unwrap();
    bench.ok(["destroy", "--yes", theirs, used]);
    assert_eq!((on(host, theirs), on(host, used)), (String::new(), String::new()));
    bench.assert_as_before();
}
