//! Scripts that do what scripts do on a bad day: hang, flood, kill their shell, want what is not there, leave something
//! running. Each is a patch that failed or not; none keeps a console waiting, and none runs twice.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{add, canary_base, patches_of, read};
use crate::lab::{Bench, DOCKER, on_host, text, wait_until};

/// Whoever waits for a script that sleeps for an hour waits longer than this.
const LONG: Duration = Duration::from_secs(90);

/// One sandbox without services, and what one script after the other comes to in it.
struct Patched {
    bench: Bench,
    host: &'static str,
}

impl Patched {
    fn new(host: &'static str) -> Self {
        Self::within(host, "60s")
    }

    /// With so much time for a script.
    fn within(host: &'static str, limit: &str) -> Self {
        let bench = Bench::new();
        let lines = format!(
            "placement: {{hosts: []}}\ninputs: {{}}\npatches: {{timeout: {limit}, pass_timeout: 60s}}\nconfig: {{workspace_only: true}}\n"
        );
        let profile = bench.profile("quick", &lines);
        canary_base(&bench, host, &profile);
        bench.ok(["restore", "base", "--name", "box"]);
        Self { bench, host }
    }

    /// Runs a script as a patch and takes it away again: what the record said of it, with its `error`.
    fn runs(&self, script: &str) -> (Value, Duration) {
        let sequence = add(&self.bench, "base", script, &[]);
        let began = Instant::now();
        let ran = self.bench.run(["patches", "apply", "box"]);
        let took = began.elapsed();
        let record = self.bench.get("box");
        let runs = record["applied_patches"].as_array().unwrap();
        let mut run = runs.iter().find(|run| run["sequence"] == sequence).unwrap().clone();
        run["error"] = record["patch_error"].clone();
        assert_eq!(ran.status, Some(i32::from(run["state"] != "applied")), "{ran:#?}");
        self.bench.ok(["patches", "remove", "base", &sequence.to_string(), "--yes"]);
        (run, took)
    }

    fn alive(&self, what: &str) -> bool {
        !on_host(self.host, &["pgrep -fx -- \"$1\" || :", what]).trim().is_empty()
    }

    /// What was ended is gone when its end has come through.
    #[track_caller]
    fn gone(&self, what: &str) {
        wait_until(&format!("the end of {what}"), || !self.alive(what));
    }
}

/// How long a script sleeps that is to be found again: nobody else for so long, here or in another run.
fn nap(number: u32) -> String {
    format!("47{number}{}.5", std::process::id())
}

fn came_to(run: &Value) -> (String, i64, String) {
    (text(&run["state"]), run["exit_status"].as_i64().unwrap(), text(&run["output"]))
}

fn failed(status: i64, output: &str) -> (String, i64, String) {
    ("failed".to_owned(), status, output.to_owned())
}

fn applied(output: &str) -> (String, i64, String) {
    ("applied".to_owned(), 0, output.to_owned())
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_script_runs_as_its_first_line_says() {
    for host in [DOCKER, "local"] {
        let on = Patched::new(host);
        let of = |script: &str| came_to(&on.runs(script).0);
        assert_eq!(
            of("echo ${BASH_VERSION:+bash}"),
            applied("bash\n"),
            "without one: bash, where there is one"
        );
        assert_eq!(of("#!/bin/sh\necho ${BASH_VERSION:-sh}; exit 4"), failed(4, "sh\n"));
        assert_eq!(of("#!/bin/sh -e\nfalse\necho not reached"), failed(1, ""));
        assert_eq!(of("#! /usr/bin/env\tsh \necho found"), applied("found\n"));
        assert_eq!(of("#!/bin/cat\nthe whole"), applied("#!/bin/cat\nthe whole"));
        let (state, status, words) = of("#!/usr/bin/nonesuch -x\ntrue");
        assert_eq!((state.as_str(), status), ("failed", 127));
        assert!(words.contains("/usr/bin/nonesuch"), "{words}");
        assert_eq!(of("#!/etc/passwd\ntrue").1, 126, "it is there, and no program");
        assert_eq!(of("no-such-program-here").1, 127);
        assert_eq!(of("cat; echo its input is empty"), applied("its input is empty\n"));
        assert_eq!(of("echo out; echo err >&2; printf 'a\\000b'"), applied("out\nerr\na\0b"));
        let variables = of(
            "echo $SANDBOXER_ID $SANDBOXER_SNAPSHOT $SANDBOXER_PATCH_SEQUENCE; [ \"$PWD\" -ef \"$SANDBOXER_WORKSPACE\" ]; umask",
        );
        let (record, base) = (on.bench.get("box"), on.bench.ok(["snapshots", "get", "base"]));
        let last =
            on.bench.ok(["snapshots", "get", "base"])["next_patch_sequence"].as_u64().unwrap() - 1;
        let umask = on_host_umask(host);
        assert_eq!(
            variables,
            applied(&format!("{} {} {last}\n{umask}", text(&record["id"]), text(&base["id"])))
        );
    }
}

/// The umask that a command has there.
fn on_host_umask(host: &str) -> String {
    if host == "local" {
        let output = std::process::Command::new("bash").args(["-c", "umask"]).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    } else {
        on_host(host, &["bash -c umask"])
    }
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_script_that_hangs_is_ended_with_all_that_it_began() {
    let host = DOCKER;
    let on = Patched::within(host, "3s");
    let (one, other, deaf) = (nap(11), nap(12), nap(13));
    let (run, took) = on.runs(&format!("echo before; sleep {one} & sleep {other}"));
    assert_eq!(came_to(&run).0, "failed");
    assert_eq!(text(&run["output"]).lines().next(), Some("before"));
    assert!(took < LONG, "{took:?}");
    for nap in [one, other] {
        on.gone(&format!("sleep {nap}"));
    }
    assert!(text(&run["error"]).contains("was ended after 3 s"), "{run:#}");
    assert_eq!(on.bench.get("box")["patch_error"], Value::Null, "it went with its patch");
    // One that is deaf to TERM gets KILL.
    let (run, took) =
        on.runs(&format!("trap '' TERM; echo deaf; sleep {deaf} & wait; sleep {deaf}"));
    assert_eq!((came_to(&run).0.as_str(), text(&run["output"]).as_str()), ("failed", "deaf\n"));
    assert!(took < LONG, "{took:?}");
    on.gone(&format!("sleep {deaf}"));
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_flood_costs_64_kib() {
    let on = Patched::within(DOCKER, "60s");
    let mark = on.bench.path("before");
    std::fs::write(&mark, "").unwrap();
    let (run, _) = on.runs("head -c 400000000 /dev/zero | tr '\\0' x; echo; echo last");
    let output = text(&run["output"]);
    assert_eq!((run["state"].as_str().unwrap(), output.len()), ("applied", 65_536));
    assert!(output.ends_with("x\nlast\n"));
    // Others fill the same disk meanwhile: what of it were kept there is known by what is in it.
    let root = on.bench.workspace_root(DOCKER);
    let kept = r#"find /tmp /var/tmp "$HOME" "$1" -xdev -type f -size +256k -newer "$2" -exec sh -c '
[ "$(head -c 300000 "$1" | tail -c 16)" != xxxxxxxxxxxxxxxx ] || echo "$1"' sh {} \; 2>/dev/null || :"#;
    let kept = on_host(DOCKER, &[kept, root.to_str().unwrap(), mark.to_str().unwrap()]);
    assert_eq!(kept, "", "nothing of it is kept on the host");
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_script_that_kills_who_runs_it_has_only_failed() {
    for host in [DOCKER, "local"] {
        // Nobody waits for the time that a script has, and that is not what ends it.
        let on = Patched::within(host, "60s");
        let nap = nap(21);
        let killed = ["-9", "-TERM"].map(|signal| format!("kill {signal} $PPID; sleep {nap}"));
        for script in [&killed[0], "kill -9 $$", "kill -9 0", &killed[1]] {
            let (run, took) = on.runs(script);
            let (state, status, _) = came_to(&run);
            assert_eq!((state.as_str(), status > 128), ("failed", true), "{script}: {run:#}");
            assert!(took < Duration::from_secs(50), "{script}: {took:?}");
        }
        if host != "local" {
            // What it began does not go on alone.
            on.gone(&format!("sleep {nap}"));
        }
        assert_eq!(came_to(&on.runs("echo well").0), applied("well\n"), "and the next one runs");
    }
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn what_a_script_leaves_running_keeps_nobody_waiting() {
    let on = Patched::within(DOCKER, "60s");
    let nap = nap(31);
    let (run, took) = on.runs(&format!("sleep {nap} & echo started"));
    assert_eq!(came_to(&run), applied("started\n"));
    assert!(took < LONG, "{took:?}");
    assert!(on.alive(&format!("sleep {nap}")), "a patch may start something");
    on_host(DOCKER, &["pkill -fx -- \"$1\"", &format!("sleep {nap}")]);
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_pass_ends_in_its_time_with_the_patch_that_runs_then() {
    let bench = Bench::new();
    let lines = "placement: {hosts: []}\ninputs: {}\npatches: {timeout: 8s, pass_timeout: 8s}\nconfig: {workspace_only: true}\n";
    let profile = bench.profile("short", lines);
    canary_base(&bench, DOCKER, &profile);
    for (n, nap) in [(1, 3), (2, 4747), (3, 0)] {
        add(&bench, "base", &format!("echo {n} >>marks; sleep {nap}"), &[]);
    }
    let began = Instant::now();
    let record = bench.ok(["restore", "base", "--name", "box"]);
    assert!(began.elapsed() < LONG, "nobody waited for the script");
    assert_eq!(patches_of(&record).len(), 2, "{record:#}");
    assert_eq!(record["patch_state"], json!("failed"), "{record:#}");
    assert!(text(&record["patch_error"]).contains("patch 2"), "{record:#}");
    assert_eq!(read(&bench, "box", "marks"), "1\n2\n");
    bench.ok(["patches", "remove", "base", "2", "--yes"]);
    bench.ok(["patches", "apply", "box"]);
    assert_eq!(read(&bench, "box", "marks"), "1\n2\n3\n");
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_workspace_that_is_gone_is_not_patched() {
    let on = Patched::new(DOCKER);
    add(&on.bench, "base", "echo never", &[]);
    let workdir = text(&on.bench.get("box")["workdir"]);
    on_host(DOCKER, &["mv \"$1/workspace\" \"$1/elsewhere\"", &workdir]);
    on.bench.run(["patches", "apply", "box"]).error("operation_failed");
    let record = on.bench.get("box");
    assert_eq!(patches_of(&record), vec![], "it was not begun");
    assert_eq!(record["patch_state"], json!("pending"), "it was not begun");
    on_host(DOCKER, &["mv \"$1/elsewhere\" \"$1/workspace\"", &workdir]);
    on.bench.ok(["patches", "apply", "box"]);
}
