//! The dashboard as a process on a terminal: a canary from `n` to its removal, another process's create, and how it
//! leaves the terminal.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on has failed")]

#[path = "support/pty.rs"]
mod pty;

use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use pty::Console;

struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn home(&self) -> &Path {
        self.folder.path()
    }

    fn console(&self, args: &[&str]) -> Console {
        Console::start(args, &[("HOME", self.home())], 120, 36)
    }

    fn sandboxer(&self, args: &[&str]) -> std::process::Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sandboxer"));
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", self.home());
        command.args(args).output().unwrap()
    }

    fn only_id(&self) -> String {
        let listed = self.sandboxer(&["list", "--json"]).stdout;
        let listed: serde_json::Value = serde_json::from_slice(&listed).unwrap();
        listed[0]["id"].as_str().unwrap().to_owned()
    }
}

/// Modes that a console sets and must take back: alternate screen, bracketed paste, hidden cursor.
const RESTORED: [&str; 3] = ["\u{1b}[?1049l", "\u{1b}[?2004l", "\u{1b}[?25h"];

fn assert_restored(console: &Console) {
    let raw = console.raw();
    for mode in RESTORED {
        assert!(raw.contains(mode), "{mode:?} is missing at the end of {:?}", &raw[raw.len().saturating_sub(300)..]);
    }
}

#[test]
fn a_canary_is_made_looked_at_and_destroyed_with_no_configuration() {
    let place = Place::new();
    let mut console = place.console(&[]);
    console.wait_for("Sandboxes");
    console.keys("n");
    console.wait_for("An empty workspace");
    console.keys("\r");
    console.wait_for("New sandbox: sandbox-canary");
    console.wait_for("on local");
    console.keys("\r");
    console.wait_until("a ready row", |text| text.lines().any(|line| line.contains('●') && line.contains("ready")));
    let id = place.only_id();
    assert!(place.home().join("sandboxes").join(format!("sbx-{id}/manifest.json")).exists());
    console.keys("\r");
    console.wait_for("Reach it");
    console.wait_for(&format!("sbx-{id}"));
    console.keys("\u{1b}");
    console.wait_until("the list", |text| !text.contains("Reach it"));
    console.keys("d");
    let dialog = console.wait_for("Destroy");
    assert!(dialog.contains(&id), "the dialog names its target:\n{dialog}");
    // The focused button is Cancel: enter alone destroys nothing.
    console.keys("\r");
    console.wait_until("no dialog", |text| !text.contains("[ Cancel ]"));
    assert_eq!(place.only_id(), id);
    console.keys("d");
    console.wait_for("[ Cancel ]");
    console.keys("\t\r");
    console.wait_until("destroyed", |text| text.contains("destroyed") && text.contains(&id));
    assert!(!place.home().join("sandboxes").join(format!("sbx-{id}")).exists());
    // The event comes before the job's own end, and with a running job `q` asks.
    console.wait_until("no running job", |text| !text.contains("1 running"));
    console.keys("q");
    assert_eq!(console.ended_within(Duration::from_secs(20)), 0);
    assert_restored(&console);
}

#[test]
fn a_create_by_a_script_shows_up_by_itself() {
    let place = Place::new();
    let console = place.console(&["--read-only"]);
    console.wait_for("Sandboxes");
    let made = place.sandboxer(&["create", "--name", "by-script", "--json"]);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    console.wait_for("by-script");
    let gone = place.sandboxer(&["destroy", "by-script"]);
    assert!(gone.status.success(), "{}", String::from_utf8_lossy(&gone.stderr));
}

#[test]
fn a_signal_leaves_the_terminal_as_it_was() {
    let place = Place::new();
    let mut console = place.console(&[]);
    console.wait_for("Sandboxes");
    let pid = console.child.process_id().unwrap().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    console.ended_within(Duration::from_secs(20));
    assert_restored(&console);
}

#[test]
fn a_lost_terminal_ends_the_process() {
    let place = Place::new();
    // script(1) owns the terminal: when it is killed, nobody holds the other end any more.
    let binary = env!("CARGO_BIN_EXE_sandboxer");
    let mut owner = Command::new("script")
        .args(["-qfc", &format!("exec '{binary}'"), "/dev/null"])
        .env("HOME", place.home())
        .env("TERM", "xterm-256color")
        .env("SHELL", "/bin/sh")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut screen = owner.stdout.take().unwrap();
    let mut seen = Vec::new();
    // Its terminal has no size here: that it took the screen over is all that is to be seen.
    while !String::from_utf8_lossy(&seen).contains("\u{1b}[?1049h") {
        let mut buffer = [0; 4096];
        let read = screen.read(&mut buffer).unwrap();
        assert!(read > 0, "the dashboard ended: {}", String::from_utf8_lossy(&seen));
        seen.extend_from_slice(&buffer[..read]);
    }
    let children = format!("/proc/{0}/task/{0}/children", owner.id());
    let dashboard = std::fs::read_to_string(children).unwrap().trim().to_owned();
    let alive = Path::new("/proc").join(&dashboard).join("exe");
    assert!(alive.exists(), "the dashboard {dashboard:?} does not run");
    owner.kill().unwrap();
    owner.wait().unwrap();
    let until = Instant::now() + Duration::from_secs(20);
    while alive.exists() {
        assert!(Instant::now() < until, "process {dashboard} outlived its terminal");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn any_size_is_safe() {
    let place = Place::new();
    for (columns, rows) in [(1, 1), (59, 14), (60, 15), (80, 24)] {
        let mut console = Console::start(&[], &[("HOME", place.home())], columns, rows);
        if columns >= 60 {
            console.wait_for("Sandboxes");
        } else {
            std::thread::sleep(Duration::from_millis(500));
        }
        console.keys("q");
        assert_eq!(console.ended_within(Duration::from_secs(20)), 0, "{columns}x{rows}");
    }
}

#[test]
fn without_a_terminal_and_a_command_it_prints_help_and_ends_with_2() {
    let output = Place::new().sandboxer(&[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("Usage: sandboxer"), "{output:?}");
}
