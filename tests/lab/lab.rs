//! What each test works with: the lab's two hosts, a data directory, HOME and workspace roots of its own, and the
//! binary as a user starts it.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::support::busy_machine::LIMITS;

/// The host with Docker's engine and compose v2.
pub(crate) const DOCKER: &str = "sandboxer01";
/// The host with podman and podman-compose 1.0.3.
pub(crate) const PODMAN: &str = "coulombcore";
/// Accounts that are not root; they cannot enter the lab's own folder.
const ACCOUNTS: [&str; 3] = ["sandboxer01-dev", "sandboxer01-sudo", "coulombcore-ops"];
/// The image that both engines have; no registry is ever asked.
pub(crate) const IMAGE: &str = "localhost/sbx-lab:1";

/// No command of these tests takes so long.
const HANGS: Duration = Duration::from_mins(2);
/// Whatever a test waits for has come by then, however busy the machine is. What has to be quick is measured apart from this.
pub(crate) const EVENTUALLY: Duration = Duration::from_mins(1);

/// A busybox httpd that answers with what is in `www`; its fixed name and port are there to be rewritten.
pub(crate) const WEB_STACK: &str = r#"services:
  web:
    image: localhost/sbx-lab:1
    container_name: web
    command: ["httpd", "-f", "-p", "80", "-h", "/www"]
    stop_signal: SIGKILL
    ports: ["18080:80"]
    volumes: ["./www:/www:ro"]
"#;

/// One test's world. When it is dropped, what the test left running is destroyed.
pub(crate) struct Bench {
    dir: tempfile::TempDir,
    /// The folder of this bench's workspace roots, one below each host's folder.
    root: String,
    /// The lab's hosts in its configuration.
    hosts: Vec<&'static str>,
    /// What the hosts had that it watches.
    before: BTreeMap<String, BTreeSet<String>>,
}

/// How ssh reaches a host that a test adds.
#[derive(Clone)]
pub(crate) struct Way {
    pub(crate) port: u16,
    /// The name that its key has in `known_hosts`.
    pub(crate) known_as: &'static str,
    pub(crate) key: PathBuf,
    pub(crate) known_hosts: PathBuf,
}

impl Way {
    /// To one of the lab's hosts, or what stands before it on this port.
    pub(crate) fn to(host: &'static str, port: u16) -> Self {
        Self {
            port,
            known_as: host,
            key: lab().join("keys/client"),
            known_hosts: lab().join("known_hosts"),
        }
    }
}

/// What a command came to.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) status: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) took: Duration,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self::with(&[])
    }

    /// One that watches these hosts.
    pub(crate) fn watching(hosts: &[&str]) -> Self {
        Self::new().and_watches(hosts)
    }

    /// The same, which remembers what these hosts have for `assert_as_before`.
    pub(crate) fn and_watches(mut self, hosts: &[&str]) -> Self {
        self.before = hosts.iter().map(|host| ((*host).to_owned(), self.snapshot(host))).collect();
        self
    }

    /// With further names of the lab's hosts: other accounts, other compose tools.
    pub(crate) fn with(more: &[&'static str]) -> Self {
        for host in more {
            let reason = fs::read_to_string(lab().join("missing").join(host)).unwrap_or_default();
            assert!(reason.is_empty(), "the lab has no {host}: {reason}");
        }
        let dir = tempfile::Builder::new().prefix("sbx-e2e-").tempdir_in("/tmp").unwrap();
        let root = dir.path().file_name().unwrap().to_str().unwrap().to_owned();
        let hosts = [&[DOCKER, PODMAN], more].concat();
        let bench = Self { dir, root, hosts, before: BTreeMap::new() };
        for folder in ["home", "profiles", "repos"] {
            fs::create_dir(bench.path(folder)).unwrap();
        }
        fs::write(bench.path("config.yaml"), bench.hosts()).unwrap();
        // The shipped ones, but for the wait: what is no test of readiness does not take it.
        for name in ["compose-e2e", "compose-checkpoint"] {
            let shipped = Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("profiles")
                .join(name)
                .with_extension("yaml");
            let text = fs::read_to_string(shipped).unwrap();
            assert!(text.contains("\nsettle: 2s"), "{name}");
            let file = bench.path("profiles").join(name).with_extension("yaml");
            fs::write(file, text.replace("\nsettle: 2s", "\nsettle: 0s")).unwrap();
        }
        bench
    }

    /// A path of this bench.
    pub(crate) fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.path("home")
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.path("data")
    }

    /// The workspace root of this bench on a host.
    pub(crate) fn workspace_root(&self, host: &str) -> PathBuf {
        let folder =
            if ACCOUNTS.contains(&host) { folder(host).join("sandboxes") } else { folder(host) };
        folder.join(&self.root)
    }

    /// A sandbox's directory on a host.
    pub(crate) fn directory(&self, host: &str, id: &str) -> PathBuf {
        self.workspace_root(host).join(format!("sbx-{id}"))
    }

    fn hosts(&self) -> String {
        let of = |host: &&str| {
            let (config, root) = (lab().join("ssh_config"), self.workspace_root(host));
            let compose = match *host {
                "coulombcore-new" => {
                    format!(
                        "    compose_cmd: {}\n",
                        folder(PODMAN).join("podman-compose-new").display()
                    )
                }
                _ => String::new(),
            };
            format!(
                "  {host}:\n    ssh: {host}\n    ssh_config: {}\n    workspace_root: {}\n{compose}{LIMITS}",
                config.display(),
                root.display()
            )
        };
        let hosts: String = self.hosts.iter().map(of).collect();
        format!("hosts:\n  local:\n{LIMITS}{hosts}")
    }

    /// Adds a host to the configuration: reached as `way` says, with sandboxes below `root`.
    pub(crate) fn add_host(&self, name: &str, way: &Way, root: &Path) {
        let (key, known) = (&way.key, &way.known_hosts);
        let config = self.path(format!("ssh-{name}"));
        let text = format!(
            "Host {name}\n  HostName 127.0.0.1\n  Port {}\n  HostKeyAlias {}\n  User root\n  IdentityFile {}\n  IdentitiesOnly yes\n  IdentityAgent none\n  UserKnownHostsFile {}\n  GlobalKnownHostsFile /dev/null\n  StrictHostKeyChecking yes\n  UpdateHostKeys no\n",
            way.port,
            way.known_as,
            key.display(),
            known.display()
        );
        fs::write(&config, text).unwrap();
        let file = self.path("config.yaml");
        let text = format!(
            "{}  {name}:\n    ssh: {name}\n    ssh_config: {}\n    workspace_root: {}\n{LIMITS}",
            fs::read_to_string(&file).unwrap(),
            config.display(),
            serde_json::to_string(root).unwrap()
        );
        fs::write(&file, text).unwrap();
    }

    /// A repository with these files, each a path and its text.
    pub(crate) fn repository(&self, name: &str, files: &[(&str, &str)]) -> PathBuf {
        let repo = self.path("repos").join(name);
        fs::create_dir_all(&repo).unwrap();
        for (path, text) in files {
            let path = repo.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        repo
    }

    /// A repository whose compose file is this.
    pub(crate) fn stack(&self, name: &str, compose: &str) -> PathBuf {
        self.repository(name, &[("docker-compose.yml", compose)])
    }

    /// The web stack, which answers with `page`.
    pub(crate) fn web_stack(&self, page: &str) -> PathBuf {
        self.repository("web", &[("docker-compose.yml", WEB_STACK), ("www/index.html", page)])
    }

    /// Writes a profile of the operator's: compose-e2e under another name, with these lines instead of its own.
    pub(crate) fn profile(&self, name: &str, lines: &str) -> String {
        let id = format!("profile.{name}");
        let mut text = format!(
            "id: {id}\nversion: 1.0.0\nsummary: For a test\nextension: ext.compose-ssh\n{lines}"
        );
        for (key, default) in [
            ("placement", "{hosts: [sandboxer01, coulombcore], strategy: first-available}"),
            ("ttl", "1h"),
            ("max_ttl", "24h"),
            ("ready_timeout", "60s"),
            ("settle", "0s"),
            ("stop_grace", "1s"),
            (
                "inputs",
                "{repo: {required: true, kind: directory, help: r}, compose_file: {kind: string, help: f}}",
            ),
            ("compose", "{ports: ephemeral, allow: []}"),
        ] {
            if !lines.lines().any(|line| line.starts_with(&format!("{key}:"))) {
                text = format!("{text}\n{key}: {default}");
            }
        }
        fs::write(self.path("profiles").join(format!("{name}.yaml")), text).unwrap();
        id
    }

    /// The command, with nothing of the caller's environment but PATH. Errors and records come as JSON.
    pub(crate) fn command<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Command {
        let mut command = self.telling();
        command.arg("--quiet").args(args);
        command
    }

    /// Runs the command to its end; its progress is on stderr.
    pub(crate) fn run_telling<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Ran {
        let mut command = self.telling();
        command.args(args);
        finish(command)
    }

    fn telling(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sandboxer"));
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.home())
            .env("USER", "tester")
            .env("SANDBOXER_CONFIG", self.path("config.yaml"))
            .env("SANDBOXER_DATA_DIR", self.data())
            .args(["--json", "--profiles-dir"])
            .arg(self.path("profiles"))
            .current_dir(self.dir.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs the command to its end.
    pub(crate) fn run<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Ran {
        finish(self.command(args))
    }

    /// What the command says, which is to go well.
    #[track_caller]
    pub(crate) fn ok<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Value {
        self.run(args).ok()
    }

    /// The error of a command that is to be refused, and to say what to do.
    #[track_caller]
    pub(crate) fn refused<S: AsRef<OsStr>>(
        &self,
        args: impl IntoIterator<Item = S>,
        code: &str,
    ) -> Value {
        self.run(args).error_with_hint(code)
    }

    /// Runs the command with failpoints, as in `create.provisioned=return`.
    pub(crate) fn run_failing<S: AsRef<OsStr>>(
        &self,
        failpoints: &str,
        args: impl IntoIterator<Item = S>,
    ) -> Ran {
        let mut command = self.command(args);
        command.env("FAILPOINTS", failpoints);
        finish(command)
    }

    /// Starts the command and leaves it running.
    pub(crate) fn start<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Started {
        Started::spawn(self.command(args))
    }

    /// One of `tests/cases`, with the lab's image.
    pub(crate) fn case(&self, name: &str) -> PathBuf {
        let repo = self.path("repos").join(name);
        fs::create_dir_all(&repo).unwrap();
        for entry in
            fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases").join(name))
                .unwrap()
        {
            let file = entry.unwrap();
            let text = fs::read_to_string(file.path()).unwrap().replace("lab/box:1", IMAGE);
            fs::write(repo.join(file.file_name()), text).unwrap();
        }
        repo
    }

    /// A create of a compose stack.
    pub(crate) fn try_stack(&self, host: &str, repo: &Path, more: &[&str]) -> Ran {
        self.run(stack_args("profile.compose-e2e", host, repo, more))
    }

    /// A create of a compose stack that is to become ready.
    #[track_caller]
    pub(crate) fn create_stack(&self, host: &str, repo: &Path, more: &[&str]) -> Value {
        self.try_stack(host, repo, more).ok()
    }

    /// The record as `get` prints it.
    pub(crate) fn get(&self, id: &str) -> Value {
        self.run(["get", id]).ok()
    }

    /// The records as they are on the disk, with the empty lists and maps that are left out there.
    pub(crate) fn stored(&self) -> Vec<Value> {
        let mut records = self.recorded("sandboxes");
        for fields in records.iter_mut().filter_map(Value::as_object_mut) {
            for list in [
                "services",
                "applied_patches",
                "attempts",
                "rewrites",
                "teardown",
                "leftovers",
                "pending",
            ] {
                fields.entry(list).or_insert_with(|| Value::Array(Vec::new()));
            }
            for map in ["labels", "inputs", "not_preserved"] {
                fields.entry(map).or_insert_with(|| Value::Object(serde_json::Map::new()));
            }
        }
        records
    }

    /// The records of one store, as they are on the disk.
    fn recorded(&self, store: &str) -> Vec<Value> {
        let Ok(text) = fs::read_to_string(self.data().join(store).with_extension("json")) else {
            return Vec::new();
        };
        let document: Value = serde_json::from_str(&text).unwrap();
        document["records"].as_array().cloned().unwrap_or_default()
    }

    /// The snapshots' records as they are on the disk.
    pub(crate) fn stored_snapshots(&self) -> Vec<Value> {
        self.recorded("snapshots")
    }

    /// Waits for the first record that is as wanted; for looking at what another process does.
    pub(crate) fn wait_for_record(&self, wanted: impl Fn(&Value) -> bool) -> Value {
        let until = Instant::now() + EVENTUALLY;
        loop {
            if let Some(record) = self.stored().into_iter().find(&wanted) {
                return record;
            }
            assert!(Instant::now() < until, "no such record: {:#?}", self.stored());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The kinds of a sandbox's events, in order, with what the contract says of each checked.
    pub(crate) fn event_kinds(&self, id: &str) -> Vec<String> {
        let events = self.run(["events", "--sandbox", id]).ok();
        events.as_array().unwrap().iter().map(|event| text(&event["kind"])).collect()
    }

    /// What a host has: one line per container, network, volume, pod, image and file. Docker's volumes without a name say nothing of
    /// whose they are: other tests have some.
    pub(crate) fn snapshot(&self, host: &str) -> BTreeSet<String> {
        let root = self.workspace_root(host);
        let look = || on_host(host, &[SNAPSHOT_SH, root.to_str().unwrap()]);
        let mut found = look();
        // Another test's build: it goes on without us, and what stays is somebody's.
        let until = Instant::now() + EVENTUALLY;
        while found.lines().any(is_build_step) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(500));
            found = look();
        }
        assert!(
            found.lines().any(|line| line == "end"),
            "the snapshot of {host} is whole: {found}"
        );
        // Other tests work on the same engines; whatever bears another sandbox's or operation's id is theirs.
        let sandboxes = self
            .recorded("sandboxes")
            .into_iter()
            .map(|record| format!("sbx-{}", text(&record["id"])));
        let operations = self
            .recorded("operations")
            .into_iter()
            .map(|record| format!("sandboxer-{}", text(&record["id"])));
        let ours: Vec<String> = sandboxes.chain(operations).collect();
        let nameless = |line: &str| line.strip_prefix("volume ").is_some_and(is_random);
        let foreign = |line: &str| {
            let line = line.replace(IMAGE, "");
            let named = line.contains("sbx-") || line.contains("sandboxer-op-");
            named
                && !line.contains(&self.root)
                && !ours.iter().any(|name| line.contains(name.as_str()))
        };
        found.lines().filter(|line| !foreign(line) && !nameless(line)).map(str::to_owned).collect()
    }

    /// Fails unless the host is as it was.
    pub(crate) fn assert_unchanged(&self, host: &str, before: &BTreeSet<String>) {
        let after = self.snapshot(host);
        let more: Vec<_> = after.difference(before).collect();
        let less: Vec<_> = before.difference(&after).collect();
        assert!(more.is_empty(), "{host} is not as before; new: {more:#?}; gone: {less:#?}");
        assert!(less.is_empty(), "{host} is not as before; new: {more:#?}; gone: {less:#?}");
    }

    /// Fails unless the hosts that it watches are as they were.
    #[track_caller]
    pub(crate) fn assert_as_before(&self) {
        for (host, before) in &self.before {
            self.assert_unchanged(host, before);
        }
    }

    /// A PATH with the programs of Debian's base and no container runtime.
    pub(crate) fn base_path(&self) -> PathBuf {
        let bin = self.path("bin");
        if !bin.exists() {
            crate::support::base_path::make(&bin);
        }
        bin
    }

    /// As `command`, on a machine with nothing but Debian's base.
    pub(crate) fn base_command<S: AsRef<OsStr>>(
        &self,
        args: impl IntoIterator<Item = S>,
    ) -> Command {
        let mut command = self.command(args);
        command.env("PATH", self.base_path());
        command
    }

    /// As `run`, on a machine with nothing but Debian's base.
    pub(crate) fn run_base<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Ran {
        finish(self.base_command(args))
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let over = |record: &Value| record["state"] == "destroyed";
        let left: Vec<String> =
            self.stored().iter().filter(|r| !over(r)).map(|r| text(&r["id"])).collect();
        if !left.is_empty() {
            let mut args =
                vec!["destroy".to_owned(), "--yes".to_owned(), "--force-protected".to_owned()];
            args.extend(left);
            finish(self.command(args));
        }
        let owner = fs::read_to_string(self.data().join("owner")).unwrap_or_default();
        for host in &self.hosts {
            let _ = fs::remove_file(self.workspace_root(host).join(".sandboxer-root"));
            let _ = fs::remove_dir(self.workspace_root(host));
            let counters = folder(host).join("home/.local/state/sandboxer/owners");
            for entry in fs::read_dir(counters).into_iter().flatten().filter_map(Result::ok) {
                if owner.contains(&*entry.file_name().to_string_lossy()) {
                    let _ = fs::remove_file(entry.path());
                }
            }
        }
    }
}

impl Ran {
    /// The JSON document on stdout, after a success.
    #[track_caller]
    pub(crate) fn ok(&self) -> Value {
        assert_eq!(self.status, Some(0), "{self:#?}");
        assert!(!self.stderr.contains("\"error\""), "{self:#?}");
        self.json()
    }

    /// The one JSON document on stdout.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }

    /// The error on stderr's last line, after checking its form, its code, and the status that goes with the code.
    #[track_caller]
    pub(crate) fn error(&self, code: &str) -> Value {
        let last = self.stderr.lines().last().unwrap_or_default();
        let line: Value =
            serde_json::from_str(last).unwrap_or_else(|error| panic!("{error}: {self:#?}"));
        let error = line["error"].clone();
        assert_eq!(error["code"], code, "{self:#?}");
        assert!(!text(&error["message"]).is_empty(), "{self:#?}");
        assert!(error["causes"].is_array(), "{self:#?}");
        assert!(error["retryable"].is_boolean(), "{self:#?}");
        for key in ["hint", "details"] {
            assert!(error.get(key).is_some(), "{key} is there: {self:#?}");
        }
        assert_eq!(self.status, Some(status_of(code)), "{self:#?}");
        for line in self.stderr.lines() {
            let parsed: Value = serde_json::from_str(line)
                .unwrap_or_else(|error| panic!("{error} in {line}: {self:#?}"));
            assert!(parsed.get("error").is_some() || parsed.get("progress").is_some(), "{line}");
        }
        assert_eq!(self.stderr.matches("{\"error\":").count(), 1, "{self:#?}");
        error
    }

    /// As `error`, and it has to say what to do.
    #[track_caller]
    pub(crate) fn error_with_hint(&self, code: &str) -> Value {
        let error = self.error(code);
        assert!(error["hint"].as_str().is_some_and(|hint| !hint.is_empty()), "a hint: {self:#?}");
        error
    }
}

/// Whether a line of a snapshot is a container in which Docker's classic builder runs a step: Docker made its name up, and its image
/// has none.
fn is_build_step(line: &str) -> bool {
    let mut words = line.split(' ');
    let (Some("container"), Some(name), Some(image)) = (words.next(), words.next(), words.next())
    else {
        return false;
    };
    let is_made_up = name.split_once('_').is_some_and(|(adjective, surname)| {
        let is_word = |word: &str| !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase());
        is_word(adjective) && is_word(surname.trim_end_matches(|c: char| c.is_ascii_digit()))
    });
    is_made_up && image.len() == 12 && image.chars().all(|c| c.is_ascii_hexdigit())
}

/// Whether a volume's name is one that an engine made up.
pub(crate) fn is_random(name: &str) -> bool {
    name.len() == 64 && name.chars().all(|c| c.is_ascii_hexdigit())
}

/// The exit status that the contract gives a code.
fn status_of(code: &str) -> i32 {
    match code {
        "internal" | "store_corrupt" | "store_foreign" | "operation_failed" => 1,
        "usage" | "invalid_input" | "invalid_config" | "invalid_profile" => 2,
        "not_found" => 3,
        "conflict" | "busy" | "in_use" => 4,
        "host_unreachable" | "host_changed" | "timeout" | "server_unreachable" => 5,
        "insufficient_credits" => 6,
        "unsupported" | "missing_dependency" => 7,
        "partial" => 8,
        "unauthorized" | "forbidden" | "read_only" | "overloaded" => 9,
        "cancelled" => 130,
        other => panic!("{other} is not in the contract"),
    }
}

/// A process of ours that runs; it is killed if the test ends before it does.
pub(crate) struct Started {
    child: Option<Child>,
    since: Instant,
}

impl Started {
    pub(crate) fn spawn(mut command: Command) -> Self {
        let child = Some(command.spawn().unwrap());
        Self { child, since: Instant::now() }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }

    pub(crate) fn signal(&self, name: &str) {
        signal(self.pid(), name);
    }

    /// Waits for its end. One that hangs is interrupted, so that it clears up, and fails the test by its status.
    pub(crate) fn finish(self) -> Ran {
        self.finish_within(HANGS)
    }

    /// As `finish`, for what may take longer.
    pub(crate) fn finish_within(mut self, limit: Duration) -> Ran {
        let child = self.child.take().unwrap();
        let pid = child.id();
        let (ended, end) = mpsc::channel::<()>();
        let watch = std::thread::spawn(move || {
            if end.recv_timeout(limit) == Err(mpsc::RecvTimeoutError::Timeout) {
                signal(pid, "INT");
            }
        });
        let output = child.wait_with_output().unwrap();
        drop(ended);
        watch.join().unwrap();
        Ran {
            status: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            took: self.since.elapsed(),
        }
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn finish(command: Command) -> Ran {
    Started::spawn(command).finish()
}

/// Sends a signal by name (`INT`) to one process, at once: to start kill(1) takes a busy machine a while.
pub(crate) fn signal(pid: u32, name: &str) {
    let (pid, signal) =
        (Pid::from_raw(pid.try_into().unwrap()), format!("SIG{name}").parse::<Signal>().unwrap());
    kill(pid, signal).unwrap_or_else(|error| panic!("SIG{name} to {pid}: {error}"));
}

/// The arguments of a create of a compose stack.
pub(crate) fn stack_args(profile: &str, host: &str, repo: &Path, more: &[&str]) -> Vec<String> {
    let repo = format!("repo={}", repo.to_str().unwrap());
    let words = ["create", "--profile", profile, "--host", host, "--input", &repo];
    words.iter().chain(more).map(|word| (*word).to_owned()).collect()
}

/// The lab's folder.
pub(crate) fn lab() -> PathBuf {
    std::env::var_os("LAB_DIR")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join(".lab"), PathBuf::from)
}

/// The port of a host's sshd.
pub(crate) fn port_of(host: &str) -> u16 {
    lab_state(&format!("PORT_{host}")).parse().unwrap()
}

/// What the lab wrote down about itself.
fn lab_state(name: &str) -> String {
    let state = fs::read_to_string(lab().join("state")).unwrap();
    let wanted = format!("{name}=");
    state.lines().find_map(|line| line.strip_prefix(&wanted)).unwrap().to_owned()
}

/// A port of this machine that nothing listens on. It is none of those that the kernel and the engines give to whoever asks
/// for any: such a one would be somebody else's before it is used. Each process begins at another one.
pub(crate) fn free_port() -> u16 {
    static GIVEN: AtomicU32 = AtomicU32::new(0);
    let from = std::process::id().wrapping_mul(16);
    let next = || from.wrapping_add(GIVEN.fetch_add(1, Ordering::Relaxed)) % 9000 + 23_000;
    let ports = std::iter::repeat_with(next).take(9000).map(|port| u16::try_from(port).unwrap());
    ports
        .into_iter()
        .find(|port| std::net::TcpListener::bind(("127.0.0.1", *port)).is_ok())
        .unwrap()
}

/// One at a time, until it is dropped: who changes what the lab's account with sudo may do, and who must not meet such a
/// change in the middle of something.
pub(crate) fn sudo_stays() -> fs::File {
    let file = fs::File::create(lab().join("sudo-lock")).unwrap();
    file.lock().unwrap();
    file
}

/// A string of a JSON document.
pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Where the first endpoint of a sandbox answers.
pub(crate) fn url_of(record: &Value) -> String {
    text(&record["reachability"]["endpoints"][0]["url"])
}

/// An ssh client apart from what is tested, on a connection that all tests share while there are some.
fn looking() -> Command {
    let mut ssh = Command::new("ssh");
    ssh.arg("-F").arg(lab().join("ssh_config"));
    ssh.args(["-o", "ControlPath=/tmp/sbx-lab-%C", "-o", "ControlPersist=30"]);
    ssh
}

/// Sees to the connection. Without one each command makes its own, which takes it ten times as long.
fn connect(host: &str) {
    let quiet = |ssh: &mut Command| {
        ssh.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        ssh.process_group(0).status().is_ok_and(|status| status.success())
    };
    let there = || quiet(looking().args(["-O", "check", host]));
    if !there() {
        // One at a time: a second master would find the socket there, and stay for ever without one.
        let turn = fs::File::create(lab().join("looking-lock")).unwrap();
        turn.lock().unwrap();
        // With `auto` a socket that a killed master left is taken away; `-M` leaves it, and stays for ever without one.
        let _ = there() || quiet(looking().args(["-o", "ControlMaster=auto", "-Nf", host]));
    }
}

/// Runs a script on a host over ssh, apart from what is tested; `words` are the script and its parameters.
pub(crate) fn on_host(host: &str, words: &[&str]) -> String {
    connect(host);
    let (script, parameters) = words.split_first().unwrap();
    let quoted: Vec<String> =
        parameters.iter().map(|word| format!("'{}'", word.replace('\'', r"'\''"))).collect();
    let mut child = looking()
        .args([host, &format!("sh -s -- {}", quoted.join(" "))])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "a script on {host} failed: {output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The same with the program of the host's engine as the script's first parameter.
pub(crate) fn on_engine(host: &str, words: &[&str]) -> String {
    let (script, parameters) = words.split_first().unwrap();
    on_host(host, &[&[*script, engine(host)], parameters].concat())
}

/// Where a host or account of the lab has its home.
fn folder(host: &str) -> PathBuf {
    match host {
        "coulombcore-new" => folder(PODMAN),
        _ if ACCOUNTS.contains(&host) => PathBuf::from(lab_state("OPEN")).join(host),
        _ => lab().join("hosts").join(host),
    }
}

/// The program of a host's engine.
pub(crate) fn engine(host: &str) -> &'static str {
    if host.starts_with(PODMAN) { "podman" } else { "docker" }
}

/// One line per thing that a host has. Images without a name belong to whoever builds at the moment, the counters of
/// installations stay by design, and a shell that somebody had writes down what was typed. Podman may fail over what it has
/// just seen and another test takes away meanwhile: then it is asked again.
const SNAPSHOT_SH: &str = r#"
engine=docker
! command -v podman >/dev/null || engine=podman
ask() {
  tries=20
  until said=$($engine "$@"); do
    tries=$((tries - 1))
    [ $tries -gt 0 ] || return
    sleep 0.5
  done
  [ -z "$said" ] || printf '%s\n' "$said"
}
ask ps -a --format 'container {{.Names}} {{.Image}}' || exit
ask network ls --format 'network {{.Name}} {{.Driver}}' || exit
ask volume ls --format 'volume {{.Name}}' || exit
images=$(ask images --format 'image {{.Repository}}:{{.Tag}} {{.ID}}') || exit
printf '%s\n' "$images" | grep -v '<none>'
[ $engine = docker ] || ask pod ls --format 'pod {{.Name}}' || exit
for folder in "$HOME" "$1"; do
  [ ! -e "$folder" ] || find "$folder" -mindepth 1 ! -path '*/sandboxer/owners/*' ! -path '*/home/.local' ! -path '*/home/.local/state' ! -path '*/state/sandboxer' ! -path '*/sandboxer/owners' ! -path '*/.docker/*' ! -path '*/.cache' ! -path '*/.cache/*' ! -path '*/.local/share' ! -path '*/.local/share/containers*' ! -path '*/home/.bash_history' ! -name .sandboxer-root | sed 's/^/file /'
done
echo end
"#;

/// Waits until something is so, and fails with `what` if it never is.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut is: impl FnMut() -> bool) {
    let until = Instant::now() + EVENTUALLY;
    while !is() {
        assert!(Instant::now() < until, "never: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// What a GET of this URL brings, as soon as something listens.
pub(crate) fn http_get(url: &str) -> String {
    let address = url.strip_prefix("http://").unwrap_or_else(|| panic!("an http URL: {url}"));
    let until = Instant::now() + EVENTUALLY;
    loop {
        match try_http_get(address) {
            Ok(answer) if answer.starts_with("HTTP/1") => return answer,
            other => assert!(Instant::now() < until, "{url}: {other:?}"),
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn try_http_get(address: &str) -> std::io::Result<String> {
    let at = address.trim_end_matches('/').parse().map_err(std::io::Error::other)?;
    let mut stream = TcpStream::connect_timeout(&at, Duration::from_secs(5))?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    stream.write_all(format!("GET / HTTP/1.0\r\nHost: {address}\r\n\r\n").as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

/// What is in a workspace root, but for its mark: that stays for as long as the root does.
pub(crate) fn rooms(root: &Path) -> Vec<String> {
    let names = fs::read_dir(root).into_iter().flatten().filter_map(Result::ok);
    let mut found: Vec<String> =
        names.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    found.retain(|name| name != ".sandboxer-root");
    found.sort();
    found
}

/// Every path below a folder with its kind, mode and content; equal for equal trees.
pub(crate) fn tree(folder: &Path) -> BTreeSet<String> {
    fn walk(folder: &Path, found: &mut BTreeSet<String>) {
        for entry in fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok) {
            let (path, kind) = (entry.path(), entry.file_type().unwrap());
            let content =
                if kind.is_file() { fs::read(&path).unwrap_or_default() } else { Vec::new() };
            found.insert(format!(
                "{} {kind:?} {}",
                path.display(),
                String::from_utf8_lossy(&content)
            ));
            if kind.is_dir() {
                walk(&path, found);
            }
        }
    }
    let mut found = BTreeSet::new();
    walk(folder, &mut found);
    found
}
