//! The dashboard as a process on a terminal: a canary from `n` to its removal, another process's create, and how it
//! leaves the terminal.

#[cfg(feature = "failpoints")]
mod operations;
#[cfg(feature = "failpoints")]
mod unseen;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::support::pty::{Console, Owned};
use crate::support::{base_path, busy_machine};

/// A home, and a machine without engines.
pub(crate) struct Place {
    _folder: tempfile::TempDir,
    home: PathBuf,
    bin: PathBuf,
}

impl Place {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (home, bin) = (folder.path().join("home"), folder.path().join("bin"));
        std::fs::create_dir(&home).unwrap();
        busy_machine::take_all(&home);
        base_path::make(&bin);
        Self { _folder: folder, home, bin }
    }

    pub(crate) fn home(&self) -> &Path {
        &self.home
    }

    pub(crate) fn env(&self) -> [(&str, &Path); 3] {
        [("HOME", &self.home), ("PATH", &self.bin), ("SHELL", Path::new("/bin/sh"))]
    }

    fn console(&self, args: &[&str]) -> Console {
        Console::start(args, &self.env(), 120, 36)
    }

    fn sandboxer(&self, args: &[&str]) -> std::process::Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sandboxer"));
        command.env_clear().envs(self.env());
        command.args(args).output().unwrap()
    }

    /// Does what goes well.
    pub(crate) fn make(&self, args: &[&str]) {
        let made = self.sandboxer(args);
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    }

    /// Answer as JSON.
    fn json(&self, args: &[&str]) -> serde_json::Value {
        let answer = self.sandboxer(&[args, &["--json"]].concat()).stdout;
        serde_json::from_slice(&answer).unwrap()
    }

    /// The one sandbox; nothing where there is none.
    pub(crate) fn only(&self) -> serde_json::Value {
        self.json(&["list"])[0].clone()
    }

    pub(crate) fn only_id(&self) -> String {
        self.only()["id"].as_str().unwrap().to_owned()
    }
}

fn program(path: &Path, script: &str) {
    std::fs::write(path, script).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// Modes that a console sets and must take back: alternate screen, bracketed paste, hidden cursor.
const RESTORED: [&str; 3] = ["\u{1b}[?1049l", "\u{1b}[?2004l", "\u{1b}[?25h"];

fn assert_restored(console: &Console) {
    // What a process wrote last may be read after its end is known.
    let until = Instant::now() + Duration::from_mins(1);
    while Instant::now() < until && !RESTORED.iter().all(|mode| console.raw().contains(mode)) {
        std::thread::sleep(Duration::from_millis(20));
    }
    let raw = console.raw();
    let end = &raw[raw.ceil_char_boundary(raw.len().saturating_sub(300))..];
    for mode in RESTORED {
        assert!(raw.contains(mode), "{mode:?} is missing at the end of {end:?}");
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
    console.wait_until("a ready row", |text| {
        text.lines().any(|line| {
            line.contains("sandbox-can") && line.contains(" ready ") && !line.contains("creating")
        })
    });
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
    console.wait_until("destroyed", |text| text.contains(&format!("✓ destroy {id}")));
    assert!(!place.home().join("sandboxes").join(format!("sbx-{id}")).exists());
    // The event comes before the job's own end, and with a running job `q` asks.
    console.wait_until("no running job", |text| !text.contains("1 running"));
    console.keys("q");
    assert_eq!(console.ended_within(Duration::from_mins(1)), 0);
    assert_restored(&console);
}

#[test]
fn a_create_by_a_script_shows_up_by_itself() {
    let place = Place::new();
    let console = place.console(&["--read-only"]);
    console.wait_for("Sandboxes");
    place.make(&["create", "--name", "by-script", "--json"]);
    console.wait_for("by-script");
    place.make(&["destroy", "by-script"]);
}

#[test]
fn an_open_dashboard_ends_what_expires_and_a_read_only_one_does_not() {
    let place = Place::new();
    let config = place.home().join(".config/sandboxer/config.yaml");
    let with_sweep = std::fs::read_to_string(&config).unwrap() + "sweep: {interval: 1s}\n";
    std::fs::write(config, with_sweep).unwrap();
    let watching = place.console(&["--read-only"]);
    watching.wait_for("Sandboxes");
    place.make(&["create", "--name", "brief", "--ttl", "1s", "--json"]);
    let (id, made) = (place.only_id(), place.only());
    watching.wait_for("brief");
    let deadline: jiff::Timestamp = made["expires_at"].as_str().unwrap().parse().unwrap();
    while jiff::Timestamp::now() < deadline {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(place.only()["state"], "ready");
    let noted = place.home().join(".local/share/sandboxer/sweep.json");
    assert!(!noted.exists(), "a console that only reads does not sweep");
    let console = place.console(&[]);
    console.wait_for("destroyed brief: its time was over");
    let record = place.json(&["get", &id]);
    assert_eq!((&record["state"], &record["reason"]), (&"destroyed".into(), &"ttl_expired".into()));
    assert!(!place.home().join("sandboxes").join(format!("sbx-{id}")).exists());
    assert!(noted.exists());
}

#[test]
fn a_signal_leaves_the_terminal_as_it_was() {
    let place = Place::new();
    let mut console = place.console(&[]);
    console.wait_for("Sandboxes");
    signal(&console, "-TERM");
    assert_eq!(console.ended_within(Duration::from_mins(1)), 143);
    assert_restored(&console);
}

#[test]
fn a_lost_terminal_ends_the_process() {
    let place = Place::new();
    let mut dashboard = Owned::start(&[], &place.env());
    dashboard.lose();
    dashboard.wait_for_end();
}

fn signal(console: &Console, name: &str) {
    let pid = console.child.process_id().unwrap().to_string();
    assert!(Command::new("kill").args([name, &pid]).status().unwrap().success());
}

#[test]
fn any_size_is_safe() {
    let place = Place::new();
    for (columns, rows) in [(1, 1), (59, 14), (60, 15), (80, 24)] {
        let mut console = Console::start(&[], &place.env(), columns, rows);
        if columns >= 60 {
            console.wait_for("Sandboxes");
        } else {
            // There is nothing to read on it: that it took the screen over is all that is to be seen.
            console.wait_until("its screen", |_| console.raw().contains("\u{1b}[?1049h"));
        }
        console.keys("q");
        assert_eq!(console.ended_within(Duration::from_mins(1)), 0, "{columns}x{rows}");
    }
}

#[test]
fn a_terminal_that_shrinks_below_the_minimum_destroys_nothing() {
    let (place, mut console) = with_a_canary();
    console.keys("d");
    console.wait_for("[ Cancel ]");
    console.resize(39, 9);
    console.wait_for("needs 40x10");
    // Redraw acts, too: that it was done says that all before it was read.
    let drawn = console.raw().len();
    console.keys("\t\rd\t\r\u{c}");
    console.wait_until("it drawn anew", |_| console.raw()[drawn..].contains("needs 40x10"));
    console.resize(120, 36);
    let shown = console.wait_for("Sandboxes");
    assert!(!shown.contains("[ Cancel ]"), "{shown}");
    // In one read: no frame shows the dialog before its button is pressed.
    console.keys("d\t\r");
    console.wait_for("[ Cancel ]");
    console.keys("\u{1b}q");
    let status = console.ended_within(Duration::from_mins(1));
    assert_eq!(status, 0, "Esc and the next key in one read are two keys");
    assert_eq!(place.only()["state"], "ready");
}

#[test]
fn a_terminal_gets_what_it_can_show() {
    let place = Place::new();
    let shown = |variables: &[(&str, &str)]| {
        let mut env = place.env().to_vec();
        env.extend(variables.iter().map(|(name, value)| (*name, Path::new(value))));
        let mut console = Console::start(&[], &env, 80, 24);
        console.wait_for("no sandboxes");
        console.keys("q");
        assert_eq!(console.ended_within(Duration::from_mins(1)), 0);
        (console.raw(), console.raw().contains("38;5;6"))
    };
    let (raw, coloured) = shown(&[]);
    assert!(raw.contains('╭') && coloured, "{raw}");
    for variables in [[("LANG", "C")], [("TERM", "linux")], [("LC_ALL", "POSIX")]] {
        let (raw, coloured) = shown(&variables);
        assert!(raw.is_ascii() && coloured, "{variables:?}: {raw}");
    }
    let (raw, coloured) = shown(&[("TERM", "vt220")]);
    assert!(raw.contains('╭') && !coloured, "{raw}");
    for dumb in ["dumb", ""] {
        let env = [place.env().to_vec(), vec![("TERM", Path::new(dumb))]].concat();
        let mut console = Console::start(&[], &env, 80, 24);
        assert_eq!(console.ended_within(Duration::from_mins(1)), 7);
        let text = console.wait_for("sandboxer list");
        assert!(text.contains("cannot be drawn on this terminal"), "{text}");
        assert!(!console.raw().contains("\u{1b}[?1049h"), "{text}");
    }
}

#[test]
fn without_a_terminal_and_a_command_it_prints_help_and_ends_with_2() {
    let output = Place::new().sandboxer(&[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("Usage: sandboxer"), "{output:?}");
}

// ---- shells --------------------------------------------------------------------------------------------------------

/// A place with a canary, and a dashboard that has it under the cursor. The shell is a plain one: it waits for line
/// ends and translates nothing.
fn with_a_canary() -> (Place, Console) {
    with_a_canary_and(&[])
}

/// Dashboard of [`with_a_canary`], with more of an environment.
fn with_a_canary_and(more: &[(&str, &Path)]) -> (Place, Console) {
    let place = Place::new();
    place.make(&["create", "--name", "box"]);
    let console = Console::start(&[], &[&place.env(), more].concat(), 120, 36);
    console.wait_until("the canary", |text| text.contains("box") && text.contains("ready"));
    (place, console)
}

fn leave(mut console: Console) {
    console.keys("q");
    assert_eq!(console.ended_within(Duration::from_mins(1)), 0);
    assert_restored(&console);
}

#[test]
fn not_one_key_typed_behind_the_shells_key_is_lost() {
    let (place, mut console) = with_a_canary();
    // In one write: nobody types faster. The digits tell what the shell did from what the terminal echoed.
    let out = place.home().join("out");
    let line = |number: u32| format!("echo {number}-$((40+2)) >> '{}'\r", out.display());
    console.keys(&format!("!{}", (0..50).map(line).collect::<Vec<_>>().concat()));
    let expected = (0..50).map(|number| format!("{number}-42\n")).collect::<Vec<_>>().concat();
    console.wait_until("all lines", |_| {
        std::fs::read_to_string(&out).is_ok_and(|text| text == expected)
    });
    // Nor any while it runs, nor behind its end: `d` is no key of ours.
    console.keys("pwd\rexit\rd\rd\r");
    console.wait_for("the shell in box ended");
    assert!(console.raw().contains("/sandboxes/sbx-"), "it was in the workspace");
    std::thread::sleep(Duration::from_millis(300));
    assert!(!console.text().contains("Destroy"), "{}", console.text());
    leave(console);
}

#[test]
fn a_shell_has_the_keyboards_signals_and_the_screens_size() {
    let (place, mut console) = with_a_canary();
    console.keys("!");
    console.wait_until("a prompt", |text| {
        !text.contains("Sandboxes") && (text.contains('$') || text.contains('#'))
    });
    // A signal reaches what has the terminal: not before that runs, or the shell would have it, and what is typed is lost.
    console.keys("sh -c 'echo first-$((40+1)); exec sleep 1000'; echo broke-$((40+1))\r");
    console.wait_for("first-41");
    console.keys("\u{3}");
    console.keys("echo after-$((40+2))\r");
    console.wait_for("after-42");
    console.keys("sh -c 'echo second-$((40+1)); exec sleep 1001'\r");
    console.wait_for("second-41");
    console.keys("\u{1a}");
    console.wait_for("Stopped");
    console.resize(100, 30);
    console.keys("kill %1; stty size\r");
    console.wait_for("30 100");
    // Meanwhile somebody else makes a sandbox: the dashboard hears of it, within a second.
    place.make(&["create", "--name", "meanwhile"]);
    console.keys("exit 0\rexit 0\r");
    console.wait_for("the shell in box ended");
    let shown = console.wait_for("meanwhile");
    let last = shown.lines().count();
    assert_eq!(last, 30, "drawn anew at the new size:\n{shown}");
    leave(console);
}

#[test]
fn a_shell_that_fails_at_once_leaves_its_words_until_a_key() {
    let folder = tempfile::tempdir().unwrap();
    let shell = folder.path().join("shell");
    program(&shell, "#!/bin/sh\necho no shell for you\nexit 2\n");
    let (_place, mut console) = with_a_canary_and(&[("SHELL", &shell)]);
    // What is typed ahead of it was meant for the shell: it neither answers the question nor reaches the dashboard.
    console.keys("!d\r");
    let left = console.wait_for("enter goes back to the dashboard");
    assert!(left.contains("no shell for you"), "{left}");
    console.keys("\r");
    let shown = console.wait_for("the shell in box ended with status 2");
    assert!(shown.contains("Sandboxes") && !shown.contains("Destroy"), "{shown}");
    leave(console);
}

#[test]
fn a_dashboard_that_is_ended_ends_its_shell() {
    let (_place, mut console) = with_a_canary();
    console.keys("!echo $$-pid\r");
    let shown =
        console.wait_until("its number", |text| text.lines().any(|line| pid_of(line).is_some()));
    let shell = shown.lines().find_map(pid_of).unwrap();
    let dashboard = console.child.process_id().unwrap().to_string();
    assert!(Command::new("kill").args(["-TERM", &dashboard]).status().unwrap().success());
    console.ended_within(Duration::from_mins(1));
    let until = Instant::now() + Duration::from_mins(1);
    while Path::new("/proc").join(&shell).exists() {
        assert!(Instant::now() < until, "the shell {shell} outlived the dashboard");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The number in `# 4711-pid`.
fn pid_of(line: &str) -> Option<String> {
    let number = line.split_whitespace().last()?.strip_suffix("-pid")?;
    number.bytes().all(|byte| byte.is_ascii_digit()).then(|| number.to_owned())
}

#[test]
fn ctrl_z_gives_the_terminal_back_and_fg_draws_it_anew() {
    let place = Place::new();
    let mut shell = Console::start_program("/bin/sh", &["-i"], &place.env(), 100, 30);
    shell.keys(&format!("'{}'\r", env!("CARGO_BIN_EXE_sandboxer")));
    shell.wait_for("Sandboxes");
    shell.keys("\u{1a}");
    shell.wait_for("Stopped");
    assert_restored(&shell);
    shell.keys("echo here-$((40+2))\r");
    shell.wait_for("here-42");
    shell.keys("fg\r");
    shell.wait_until("the dashboard", |text| {
        text.contains("no sandboxes") && !text.contains("here-42")
    });
    shell.keys("q");
    shell.wait_until("the shell", |text| !text.contains("no sandboxes"));
    shell.keys("exit\r");
    shell.ended_within(Duration::from_mins(1));
}

// ---- snapshots -----------------------------------------------------------------------------------------------------

#[test]
fn a_canary_is_snapshotted_restored_and_its_snapshot_deleted() {
    let (place, mut console) = with_a_canary();
    let workspace = |name: &str| {
        let shown = place.json(&["get", name]);
        Path::new(shown["workdir"].as_str().unwrap()).join("workspace")
    };
    std::fs::write(workspace("box").join("kept.txt"), "as it was\n").unwrap();
    console.keys("s");
    console.wait_for("Snapshot of");
    console.keys("monday\r");
    console.wait_until("its row", |text| text.lines().any(|line| line.contains("◆ monday")));
    console.wait_until("its line", |text| {
        text.lines().any(|line| line.contains("✓ snapshot") && line.contains("monday"))
    });
    std::fs::write(workspace("box").join("kept.txt"), "changed since\n").unwrap();
    // The cursor of the pane is on it.
    console.keys("2r");
    console.wait_for("Restore snap-");
    console.wait_until("what differs", |text| {
        text.contains("1 changed") && text.contains("workspace/kept.txt")
    });
    console.keys("again\r");
    console.wait_until("a row below its snapshot", |text| {
        text.lines().any(|line| line.contains("└ ●") && line.contains("again"))
    });
    let kept = std::fs::read_to_string(workspace("again").join("kept.txt")).unwrap();
    assert_eq!(kept, "as it was\n");
    console.wait_until("no running job", |text| !text.contains("1 running"));
    console.keys("d");
    let dialog = console.wait_for("it is in use");
    assert!(dialog.contains("sandbox again ("), "{dialog}");
    console.keys("\u{1b}");
    console.wait_until("no dialog", |text| !text.contains("it is in use"));
    // Its only sandbox goes, from its row in the tree; then the snapshot needs no force.
    console.keys("jd");
    console.wait_for("Destroy this sandbox?");
    console.keys("\t\r");
    console.wait_until("no sandbox below it", |text| {
        !text.contains("└ ") && !text.contains("1 running")
    });
    console.keys("kd");
    let dialog = console.wait_for("Delete this snapshot?");
    assert!(!dialog.contains("in use"), "{dialog}");
    console.keys("\t\r");
    console.wait_for("no snapshots");
    console.wait_until("no running job", |text| !text.contains("1 running"));
    leave(console);
}

#[test]
fn a_patch_is_written_in_the_editor_and_what_was_not_kept_is_none() {
    let place = Place::new();
    place.make(&["create", "--name", "box"]);
    place.make(&["snapshot", "box", "--name", "monday"]);
    // It has the screen and the keys; `keep` leaves it well, everything else as after `:cq`.
    let editor = place.home().join("editor");
    let script = "#!/bin/sh\necho 'an editor on'; cat \"$1\"\nread -r word\n[ \"$word\" = keep ] || exit 1\n\
                  printf 'set -eu\\necho written >> log\\n' >\"$1\"\n";
    program(&editor, script);
    let [home, path, shell] = place.env();
    let env = [home, path, shell, ("EDITOR", editor.as_path())];
    let mut console = Console::start(&[], &env, 120, 36);
    console.wait_for("◆ monday");
    console.keys("2gp");
    console.wait_for("Patches of monday");
    for (turn, word, then) in
        [(1, "drop\r", "nothing was written"), (2, "keep\r", "the script has 2 lines")]
    {
        console.keys("e");
        // The one before is still to be seen on the screen that it had.
        console.wait_until("the editor", |text| {
            console.raw().matches("an editor on").count() == turn && !text.contains("Patches of")
        });
        console.keys(word);
        if word == "drop\r" {
            console.wait_for("[the editor ended with status 1; enter goes back");
            console.keys("\r");
        }
        console.wait_for(then);
    }
    console.keys("\r");
    console.wait_for("patch 1 is on monday");
    let listed = place.json(&["patches", "list", "monday"]);
    assert_eq!(listed[0]["script"], "set -eu\necho written >> log\n", "{listed:#}");
    console.keys("\u{1b}");
    console.wait_until("the panes", |text| !text.contains("Patches of"));
    leave(console);
}
