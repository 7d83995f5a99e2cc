//! `ext.saas-stub` with the program itself, in a home of its own: no host, no network.

mod account;
mod failures;
#[cfg(feature = "failpoints")]
mod kills;
mod lifecycle;
mod lost;
mod place;

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// A home with the program's files, on which no host may be asked.
pub(super) struct World {
    home: tempfile::TempDir,
}

/// What a command came to.
#[derive(Debug)]
pub(super) struct Ran {
    pub(super) status: i32,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

impl Ran {
    fn of(output: Output) -> Self {
        Self {
            status: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Its document.
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Its error.
    pub(super) fn error(&self) -> Value {
        let line = self.stderr.lines().rfind(|line| line.starts_with("{\"error\""));
        let line = line.unwrap_or_else(|| panic!("no error: {self:?}"));
        serde_json::from_str::<Value>(line).unwrap()["error"].clone()
    }
}

impl World {
    pub(super) fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let world = Self { home };
        let config = world.path(".config/sandboxer");
        std::fs::create_dir_all(&config).unwrap();
        let text =
            "hosts: {local: {forbid: not here}, far: {forbid: not here}}\nstale: {grace: 0s}\n";
        std::fs::write(config.join("config.yaml"), text).unwrap();
        world.grant();
        world
    }

    /// Credits for what follows.
    pub(super) fn grant(&self) {
        self.ok("credits grant 1000");
    }

    pub(super) fn path(&self, below: &str) -> PathBuf {
        self.home.path().join(below)
    }

    /// File or folder of the provider's account.
    pub(super) fn account(&self, below: &str) -> PathBuf {
        self.path(".local/state/sandboxer/saas-stub").join(below)
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sandboxer"));
        command.args(shlex::split(line).unwrap()).env_clear().current_dir(self.home.path());
        command.env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", self.home.path());
        command.env("USER", "kim").stdin(Stdio::null());
        command
    }

    /// Runs a command to its end, with `--json`.
    pub(super) fn run(&self, line: &str) -> Ran {
        Ran::of(self.command(&format!("{line} --json --quiet")).output().unwrap())
    }

    /// Runs one that is killed when it comes to a failpoint.
    #[cfg(feature = "failpoints")]
    pub(super) fn killed_at(&self, point: &str, line: &str) -> Ran {
        let mut command = self.command(&format!("{line} --json --quiet"));
        Ran::of(command.env("FAILPOINTS", format!("{point}=return")).output().unwrap())
    }

    /// Runs one that is to end well; its document.
    pub(super) fn ok(&self, line: &str) -> Value {
        let ran = self.run(line);
        assert_eq!(ran.status, 0, "{line}: {ran:?}");
        ran.json()
    }

    /// Runs one that is to fail; its error.
    pub(super) fn fails(&self, line: &str, status: i32) -> Value {
        let ran = self.run(line);
        assert_eq!(ran.status, status, "{line}: {ran:?}");
        ran.error()
    }

    /// Runs one as somebody reads it.
    pub(super) fn shown(&self, line: &str) -> Ran {
        Ran::of(self.command(line).output().unwrap())
    }

    /// Starts one.
    pub(super) fn start(&self, line: &str) -> Child {
        let mut command = self.command(&format!("{line} --json --quiet"));
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Creates a sandbox without latency.
    pub(super) fn create(&self, more: &str) -> Value {
        self.ok(&format!("create --profile saas-stub --input startup_s=0 {more}"))
    }

    /// Record of a sandbox.
    pub(super) fn get(&self, id: &str) -> Value {
        self.ok(&format!("get {id}"))
    }

    /// Files of a room of the account.
    pub(super) fn files(&self, room: &str) -> Vec<String> {
        let Ok(folder) = std::fs::read_dir(self.account(room)) else { return Vec::new() };
        let mut names: Vec<String> =
            folder.map(|it| it.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// Items of `inspect stale` at the place: id, class, action.
    pub(super) fn stale(&self) -> Vec<(String, String, String)> {
        let report = self.ok("inspect stale --host saas-stub");
        let word = |item: &Value, key: &str| item[key].as_str().unwrap_or_default().to_owned();
        let of = |item: &Value| {
            let id = [word(item, "sandbox_id"), word(item, "snapshot_id")].concat();
            (id, word(item, "class"), word(item, "action"))
        };
        report.as_array().unwrap().iter().map(of).collect()
    }
}

/// Text of a value that is one.
pub(super) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_else(|| panic!("{key}: {value}"))
}

/// Waits until something holds.
pub(super) fn until(what: &str, holds: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_mins(1);
    while !holds() {
        assert!(Instant::now() < end, "not seen: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Copies a folder with its files.
pub(super) fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to.join(entry.file_name()));
        } else {
            std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
}

/// Makes a link.
pub(super) fn link(to: &Path, at: &Path) {
    symlink(to, at).unwrap();
}
