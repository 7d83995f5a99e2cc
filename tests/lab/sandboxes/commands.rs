//! `exec` as whoever types it has it: the real program, on both hosts, between real pipes.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::lab::{Bench, DOCKER, EVENTUALLY, PODMAN, on_host, signal, text, wait_until};

/// The program without `--json`, and with pipes.
pub(crate) fn plain(bench: &Bench, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sandboxer"));
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", bench.home());
    command
        .env("SANDBOXER_CONFIG", bench.path("config.yaml"))
        .env("SANDBOXER_DATA_DIR", bench.data());
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Waits until no process of the host has these words any more.
fn gone(host: &str, words: &str) {
    let until = Instant::now() + EVENTUALLY;
    // The brackets keep the search from finding itself.
    let script = format!("ps ax -o args | grep -c '[s]{}' || true", &words[1..]);
    while on_host(host, &[&script]).trim() != "0" {
        assert!(Instant::now() < until, "{words} still runs on {host}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn exec_between_pipes_on_either_host() {
    for (host, seconds) in [(DOCKER, "42421"), (PODMAN, "42422")] {
        let bench = Bench::new();
        let made = bench.ok(["create", "--profile", "sandbox-canary", "--host", host]);
        let id = text(&made["id"]);
        let id = id.as_str();

        // Bytes and words are exact, and the streams stay apart.
        let script = "printf '\\377\\000%s|' \"$@\"; printf 'e\\033[1m' >&2; exit 7";
        let words = [
            "exec",
            id,
            "--",
            "sh",
            "-c",
            script,
            "sh",
            "a  b",
            "$HOME 'x' \"y\"",
            "",
            "*",
            "--json",
        ];
        let output = plain(&bench, &words).output().unwrap();
        let expected: Vec<u8> = ["a  b", "$HOME 'x' \"y\"", "", "*", "--json"]
            .iter()
            .flat_map(|word| [&b"\xff\0"[..], word.as_bytes(), b"|"].concat())
            .collect();
        assert_eq!((output.status.code(), output.stdout), (Some(7), expected), "{host}");
        assert_eq!(output.stderr, b"e\x1b[1m", "{host}");

        // Ctrl-C ends it there too.
        let sleeping = plain(
            &bench,
            &["exec", id, "--", "sh", "-c", &format!("echo on; exec sleep {seconds}")],
        );
        interrupted(sleeping, true);
        gone(host, &format!("sleep {seconds}"));
        // Also while nobody reads what it writes: the pipe is full, and a write would wait.
        interrupted(plain(&bench, &["exec", id, "--", "yes", "sbx-full-pipe"]), false);

        // A reader that left ends it, and that is no success.
        let mut child = plain(&bench, &["exec", id, "--", "yes"]).spawn().unwrap();
        let mut line = String::new();
        BufReader::with_capacity(2, child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "y\n");
        assert_eq!(child.wait().unwrap().code(), Some(141), "{host}");
        bench.ok(["destroy", id]);
    }
}

/// Starts it, waits until it writes, presses Ctrl-C.
fn interrupted(mut command: Command, read: bool) {
    let mut child = command.spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    if read {
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        assert_eq!(line, "on\n");
    } else {
        // A pipe has 64 KiB; whoever writes on waits.
        wait_until("a full pipe", || {
            rustix::io::ioctl_fionread(out.get_ref()).unwrap() >= 60 << 10
        });
        std::thread::sleep(Duration::from_millis(300));
    }
    let pressed = Instant::now();
    signal(child.id(), "INT");
    while child.try_wait().unwrap().is_none() {
        if pressed.elapsed() > EVENTUALLY {
            child.kill().unwrap();
            panic!("Ctrl-C was not heard");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(child.wait().unwrap().code(), Some(130));
    drop(out);
}
