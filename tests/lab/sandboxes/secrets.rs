//! Values that a compose file was given do not come out again: not on the screen, not in a record, not in a log. podman-compose 1.0
//! prints each value that it hands on, and a container prints what it likes.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::json;

use crate::lab::{Bench, DOCKER, PODMAN, Ran, stack_args, text};

/// Where the values are, and how they get into the stack; `then` is what the container does at last.
fn stack(bench: &Bench, image: &str, then: &str) -> std::path::PathBuf {
    let compose = format!(
        r#"services:
  web:
    image: {image}
    pull_policy: never
    command: ["sh", "-c", "trap 'exit 0' TERM; echo with ${{DB_PASSWORD}}; echo $$API_TOKEN; env; {then}"]
    env_file: [secret.env]
    environment:
      FROM_PROFILE: ${{ADMIN_TOKEN}}
      DEBUG: "1"
"#
    );
    let env = "API_TOKEN=tok-5e1f9a\nPIN=q7!\nPLAIN=some words in it'x\nDSN=\"pg://me:pw-9x@db/$x\"\nPEM_KEY=\"-----BEGIN X-----\nMIIabcdefLINE2\nabc=\n-----END X-----\"\n";
    let files = [
        ("docker-compose.yml", compose.as_str()),
        ("secret.env", env),
        (".env", "DB_PASSWORD=dotenv-hunter2\n"),
    ];
    bench.repository("secrets", &files)
}

const SECRETS: [&str; 8] = [
    "tok-5e1f9a",
    "q7!",
    "some words in it",
    "pw-9x",
    "MIIabcdefLINE2",
    "abc=",
    "dotenv-hunter2",
    "profile-s3cret",
];

/// The files below a folder, apart from `repos` and `profiles`, which the test wrote itself, and the pinned profiles, which are
/// profiles.
fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        let kind = entry.file_type().unwrap();
        if kind.is_dir() && !["repos", "profiles", "pinned"].iter().any(|own| path.ends_with(own)) {
            found.extend(files(&path));
        } else if kind.is_file() {
            found.push(path);
        }
    }
    found
}

#[track_caller]
fn assert_kept(bench: &Bench, host: &str, ran: &Ran) {
    let mut told =
        vec![("stdout".to_owned(), ran.stdout.clone()), ("stderr".to_owned(), ran.stderr.clone())];
    for path in files(&bench.path("")) {
        told.push((
            path.display().to_string(),
            String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned(),
        ));
    }
    assert!(told.iter().any(|(name, _)| name.ends_with("sandboxes.json")), "{told:#?}");
    for secret in SECRETS {
        let at: Vec<_> = told.iter().filter(|(_, text)| text.contains(secret)).collect();
        assert!(at.is_empty(), "{host}: {secret} is in {at:#?}");
    }
}

fn profile(bench: &Bench) -> String {
    bench.profile("given", "config: {environment: {ADMIN_TOKEN: profile-s3cret}}")
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_stack_that_starts_tells_none_of_its_values() {
    for host in [PODMAN, "coulombcore-new", DOCKER] {
        let bench = Bench::with(&["coulombcore-new"]);
        let repo = stack(&bench, "localhost/sbx-lab:1", "while :; do sleep 1 & wait $$!; done");
        let ran = bench.run_telling(stack_args(&profile(&bench), host, &repo, &[]));
        let record: serde_json::Value =
            serde_json::from_str(ran.stdout.lines().last().unwrap_or_default()).unwrap();
        assert_eq!(record["state"], json!("ready"), "{ran:#?}");
        if host == PODMAN {
            assert!(
                ran.stderr.contains("DEBUG=***"),
                "it prints them all, and is still told: {ran:#?}"
            );
        }
        assert_kept(&bench, host, &ran);
        let id = text(&record["id"]);
        assert!(bench.run(["logs", &id]).stdout.contains("tok-5e1f9a"), "a log is its user's");
        bench.ok(["recreate", &id, "--yes"]);
        assert_kept(&bench, host, &ran);
    }
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_stack_that_fails_is_explained_without_its_values() {
    for host in [PODMAN, "coulombcore-new", DOCKER] {
        for (image, step) in [("localhost/sbx-lab:1", "ready"), ("localhost/sbx-none:1", "up")] {
            let bench = Bench::with(&["coulombcore-new"]);
            let repo = stack(&bench, image, "exit 3");
            let ran = bench.run_telling(stack_args(&profile(&bench), host, &repo, &[]));
            ran.error("operation_failed");
            let record = bench.stored().remove(0);
            let failure = &record["failure"];
            assert_eq!(failure["step"], json!(step), "{host}: {record:#}");
            if step == "ready" {
                let told = text(&failure["output"]);
                assert!(told.contains("with ***"), "{host}: its last words are there: {record:#}");
            }
            assert_kept(&bench, host, &ran);
        }
    }
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_refusal_does_not_quote_a_secret() {
    let bench = Bench::new();
    let compose = "services:\n  web:\n    image: localhost/sbx-lab:1\n    pid: ${DB_PASSWORD}\n    network_mode: ${DB_PASSWORD}\n    volumes: [\"/${DB_PASSWORD}:/x\"]\n";
    let repo = bench.repository(
        "refused",
        &[("docker-compose.yml", compose), (".env", "DB_PASSWORD=dotenv-hunter2\n")],
    );
    for more in [&[][..], &["--dry-run"]] {
        let ran = bench.run_telling(stack_args("profile.compose-e2e", DOCKER, &repo, more));
        assert_ne!(ran.status, Some(0), "{ran:#?}");
        assert!(ran.stderr.contains("***"), "{ran:#?}");
        assert!(!format!("{}{}", ran.stdout, ran.stderr).contains("dotenv-hunter2"), "{ran:#?}");
    }
}

/// The engine quotes what it cannot execute, and with it what was filled in there.
#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_wake_that_fails_is_explained_without_its_values() {
    for host in [PODMAN, DOCKER] {
        let bench = Bench::new();
        let compose = "services:\n  web:\n    image: localhost/sbx-lab:1\n    pull_policy: never\n    stop_signal: SIGKILL\n    command: [\"/tools/${API_TOKEN}\"]\n    volumes: [\"./tools:/tools\"]\n";
        let files = [
            ("docker-compose.yml", compose),
            (".env", "API_TOKEN=tok-5e1f9a\n"),
            ("tools/readme", ""),
        ];
        let repo = bench.repository("wakes", &files);
        let tool = repo.join("tools/tok-5e1f9a");
        fs::write(&tool, "#!/bin/sh\nwhile :; do sleep 1; done\n").unwrap();
        fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).unwrap();
        let id = text(&bench.create_stack(host, &repo, &[])["id"]);
        bench.ok(["sleep", &id]);
        fs::remove_file(bench.directory(host, &id).join("workspace/tools/tok-5e1f9a")).unwrap();
        let ran = bench.run_telling(["wake", &id]);
        ran.error("operation_failed");
        assert!(ran.stderr.contains("/tools/***"), "{host}: it says why: {ran:#?}");
        assert_kept(&bench, host, &ran);
        bench.ok(["destroy", &id, "--yes"]);
    }
}
