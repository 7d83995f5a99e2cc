//! A sandbox with something of everything in it, its snapshot, and where that is on a host.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::lab::{Bench, text};
use crate::support::json_assertions::JsonAssertions as _;

/// A stack with a volume, which is filled once.
const KEEPER: &str = r#"services:
  keeper:
    image: "localhost/sbx-lab:1"
    command: ["sh", "-c", "test -s /kept/first || { echo in a volume >/kept/first; ln /kept/first /kept/second; }; exec sleep 100000"]
    volumes: ["kept:/kept"]
    stop_signal: SIGKILL
volumes:
  kept: {}
"#;

/// What tar has to say in more than one way.
const FILL: &str = "mkdir deep && echo text >deep/file && ln deep/file deep/hard && ln -s ../.. deep/out && chmod 4755 deep/file
mkfifo deep/pipe && long=$(printf '%0120d' 7) && mkdir $long && echo long >$long/$long && : >'a b' && head -c 3000000 /dev/urandom >random";

/// A ready snapshot called `base` of a sandbox on this host.
pub(crate) fn snapshot(bench: &Bench, host: &str, id: &str) -> Value {
    let repo = bench.stack("keeper", KEEPER);
    bench.create_stack(host, &repo, &["--id", id]);
    bench.ok(["exec", id, "--", "sh", "-ec", FILL]);
    let record = bench.ok(["snapshot", id, "--name", "base"]);
    record.has(json!({"state": "ready", "captured_volumes.0.name": "kept"}));
    record
}

/// Whether a sandbox has what [`snapshot`]'s had.
pub(crate) fn assert_whole(bench: &Bench, id: &str) {
    let look = "cat deep/file; stat -c '%a %h' deep/file; readlink deep/out; test -p deep/pipe; stat -c %s random";
    let told = bench.ok(["exec", id, "--", "sh", "-ec", look]);
    told.has(json!({"stdout": "text\n4755 2\n../..\n3000000\n"}));
    let volume = bench.ok(["exec", id, "--service", "keeper", "--", "cat", "/kept/second"]);
    assert_eq!(text(&volume["stdout"]), "in a volume\n");
}

/// A record's replicas, as `host state`.
pub(crate) fn replicas(record: &Value) -> Vec<String> {
    let listed = record["replicas"].as_array().unwrap().iter();
    listed.map(|it| format!("{} {}", text(&it["host"]), text(&it["state"]))).collect()
}

/// The folder of a snapshot on a host.
pub(crate) fn folder(bench: &Bench, host: &str, id: &str) -> PathBuf {
    bench.workspace_root(host).join("snapshots").join(id)
}

/// The archive's file on a host.
pub(crate) fn archive(bench: &Bench, host: &str, record: &Value) -> PathBuf {
    folder(bench, host, &text(&record["id"])).join(format!("archive.{}", text(&record["format"])))
}

/// What a program makes of these bytes.
pub(crate) fn through(program: &[&str], bytes: &[u8]) -> Vec<u8> {
    use std::io::Write as _;
    let mut child = Command::new(program[0])
        .args(&program[1..])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let bytes = bytes.to_vec();
    let writer = std::thread::spawn(move || drop(stdin.write_all(&bytes)));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    output.stdout
}

/// The SHA-256 of what is in a file that `gzip` or `zstd` wrote.
pub(crate) fn sha256_inside(file: &Path) -> String {
    let program = if file.extension().is_some_and(|end| end == "gz") { "gzip" } else { "zstd" };
    let content = through(&[program, "-dc"], &fs::read(file).unwrap());
    String::from_utf8(through(&["sha256sum"], &content)).unwrap()[..64].to_owned()
}
