//! What differs between a snapshot and its sandbox as it is now, or another snapshot.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::archives::source::snapshot;
use crate::each_case::each_case;
use crate::lab::{Bench, DOCKER, PODMAN, sudo_stays, text};
use crate::support::json_assertions::JsonAssertions as _;

/// Each change by its path: what it is, and what differs.
fn changes(diff: &Value) -> BTreeMap<String, String> {
    let of = |change: &Value| {
        let differs: Vec<String> = change["differs"].as_array().unwrap().iter().map(text).collect();
        (
            text(&change["path"]),
            format!("{} {}", text(&change["change"]), differs.join(",")).trim().to_owned(),
        )
    };
    diff["changes"].as_array().unwrap().iter().map(of).collect()
}

each_case! {
    a_diff_says_what_changed {
        on_docker: DOCKER;
        on_podman: PODMAN;
    }
}

/// What this account cannot read is listed as a snapshot reads it: here through a container.
#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_diff_lists_what_the_account_alone_cannot_read() {
    let _ours = sudo_stays();
    for host in ["sandboxer01-dev", "sandboxer01-sudo"] {
        let bench = Bench::with(&[host]).and_watches(&[host]);
        snapshot(&bench, host, "closed-source");
        let work = "mkdir shut && echo secret >shut/in && : >none && chmod 000 shut none";
        bench.ok(["exec", "closed-source", "--", "sh", "-ec", work]);
        let now = bench.ok(["snapshots", "diff", "base"]);
        let mut found = changes(&now);
        found.remove("workspace");
        let expected = ["workspace/none", "workspace/shut", "workspace/shut/in"];
        assert_eq!(
            found,
            expected.map(|path| (path.to_owned(), "added".to_owned())).into(),
            "{host}"
        );
        bench.ok(["snapshot", "closed-source", "--name", "later"]);
        let same = bench.ok(["snapshots", "diff", "later", "closed-source"]);
        assert_eq!(same["changes"], json!([]), "{host}: as the snapshot lists it");
        bench.clear();
        bench.assert_as_before();
    }
}

fn a_diff_says_what_changed(host: &str) {
    let bench = Bench::new();
    snapshot(&bench, host, "diff-source");
    let same = bench.ok(["snapshots", "diff", "base"]);
    same.has(json!({"b": "diff-source", "changes": []}));
    let told = same["notes"].to_string();
    assert!(told.contains("kept"), "volumes are only compared between snapshots: {same:#}");

    // Nothing is older than the second that a listing tells.
    std::thread::sleep(std::time::Duration::from_millis(1100));
    let work = "rm 'a b'; chmod 600 deep/pipe; rm deep/out; ln -s elsewhere deep/out; echo more >>deep/file; echo 12345 >new; rm random; mkdir random";
    bench.ok(["exec", "diff-source", "--", "sh", "-ec", work]);
    bench.ok([
        "exec",
        "diff-source",
        "--service",
        "keeper",
        "--",
        "sh",
        "-c",
        "echo new >/kept/third",
    ]);
    let now = bench.ok(["snapshots", "diff", "base", "diff-source"]);
    let expected = [
        ("workspace/a b", "removed"),
        ("workspace/deep/file", "changed size,modified"),
        // The other name of the same file.
        ("workspace/deep/hard", "changed size,modified"),
        ("workspace/deep/out", "changed target"),
        ("workspace/deep/pipe", "changed mode"),
        ("workspace/new", "added"),
        ("workspace/random", "changed kind,mode,size,modified"),
    ];
    let mut expected: BTreeMap<String, String> =
        expected.into_iter().map(|(path, change)| (path.to_owned(), change.to_owned())).collect();
    let mut found = changes(&now);
    // What is a folder and a file at the same name differs in more or less.
    let odd = found.remove("workspace/random").unwrap();
    assert!(odd.starts_with("changed kind,"), "{odd}");
    expected.remove("workspace/random");
    assert_eq!(found, expected);
    now.has(json!({"added": 1, "removed": 1, "changed": 5}));

    // Between two snapshots, with their volumes.
    bench.ok(["snapshot", "diff-source", "--name", "later"]);
    let between = bench.ok(["snapshots", "diff", "base", "later"]);
    expected.insert("volumes/kept/third".to_owned(), "added".to_owned());
    let mut found = changes(&between);
    assert_eq!(found.remove("workspace/random").unwrap(), odd);
    assert_eq!(found, expected);
    let back = changes(&bench.ok(["snapshots", "diff", "later", "base"]));
    assert_eq!(back["volumes/kept/third"], "removed");

    // With nothing named, and the sandbox gone, there is nothing to compare it with.
    bench.ok(["destroy", "diff-source"]);
    bench.refused(["snapshots", "diff", "base"], "invalid_input");
    bench.clear();
}
