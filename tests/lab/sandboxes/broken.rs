//! An sshd and an engine that are killed under a running operation, and what `recover` makes of it when they are back.

use std::fs::{self, File};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::lab::{
    Bench, DOCKER, EVENTUALLY, IMAGE, Started, Way, free_port, lab, rooms, signal, stack_args,
    text, wait_until,
};
use crate::sandboxes::rollback::{containers, destroy, slow_stack};

/// The environment that the lab's Docker host gives its sessions, `NAME=value` each.
fn session_environment() -> Vec<String> {
    let config = fs::read_to_string(lab().join("hosts").join(DOCKER).join("sshd_config")).unwrap();
    let line = config.lines().find_map(|line| line.strip_prefix("SetEnv ")).unwrap();
    line.split(' ').map(str::to_owned).collect()
}

/// An sshd of the test's own whose sessions are like the Docker host's, but for some variables.
pub(crate) struct Sshd {
    config: PathBuf,
    pub(crate) port: u16,
    child: Option<Child>,
}

impl Sshd {
    pub(crate) fn start(bench: &Bench, name: &str, variables: &[(&str, &str)]) -> Self {
        let port = free_port();
        let config = bench.path(format!("sshd-{name}"));
        // Not in the lab's folder, which accounts that are not root cannot enter.
        let keys = bench.path(format!("keys-{name}"));
        fs::copy(lab().join("keys/client.pub"), &keys).unwrap();
        let own =
            |word: &String| variables.iter().any(|(key, _)| word.starts_with(&format!("{key}=")));
        let mut words: Vec<String> =
            session_environment().into_iter().filter(|word| !own(word)).collect();
        words.extend(variables.iter().map(|(key, value)| format!("{key}={value}")));
        let text = format!(
            "Port {port}\nListenAddress 127.0.0.1\nHostKey {lab}/keys/{DOCKER}\nPidFile none\nAuthorizedKeysFile {keys}\nStrictModes no\nUsePAM no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin prohibit-password\nPrintMotd no\nSetEnv {}\n",
            words.join(" "),
            lab = lab().display(),
            keys = keys.display(),
        );
        fs::write(&config, text).unwrap();
        bench.add_host(name, &Way::to(DOCKER, port), &bench.workspace_root(DOCKER));
        let mut sshd = Self { config, port, child: None };
        sshd.up();
        sshd
    }

    fn up(&mut self) {
        let mut command = Command::new("/usr/sbin/sshd");
        command
            .arg("-D")
            .arg("-f")
            .arg(&self.config)
            .arg("-E")
            .arg(self.config.with_extension("log"));
        self.child = Some(
            command
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap(),
        );
        wait_until("sshd listens", || TcpStream::connect(("127.0.0.1", self.port)).is_ok());
    }

    /// Kills it with all of its sessions.
    fn kill(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        // Sessions are its children; what runs in them is not killed with them.
        for session in children(child.id()) {
            for process in children(session) {
                quiet_kill(process);
            }
            quiet_kill(session);
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Processes of sshd beneath a process.
fn children(pid: u32) -> Vec<u32> {
    let output = Command::new("pgrep").args(["-P", &pid.to_string(), "sshd"]).output().unwrap();
    String::from_utf8_lossy(&output.stdout).lines().map(|line| line.parse().unwrap()).collect()
}

fn quiet_kill(pid: u32) {
    let _ =
        Command::new("kill").args(["-s", "KILL", &pid.to_string()]).stderr(Stdio::null()).status();
}

/// A Docker engine of the test's own, with the lab's image.
struct Engine {
    folder: PathBuf,
    child: Option<Child>,
}

impl Engine {
    fn start(bench: &Bench) -> Self {
        let folder = bench.path("engine");
        fs::create_dir(&folder).unwrap();
        let mut engine = Self { folder, child: None };
        engine.up();
        let mut save = environment(Command::new("docker").args(["save", IMAGE]))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let loaded = engine.docker(&["load"]).stdin(save.stdout.take().unwrap()).output().unwrap();
        assert!(save.wait().unwrap().success());
        assert!(loaded.status.success(), "{loaded:?}");
        engine
    }

    fn socket(&self) -> String {
        format!("unix://{}", self.folder.join("sock").display())
    }

    fn docker(&self, args: &[&str]) -> Command {
        let mut command = Command::new("docker");
        command.args(["-H", &self.socket()]).args(args);
        command
    }

    fn up(&mut self) {
        let log = File::create(self.folder.join("log")).unwrap();
        let folder = |name: &str| self.folder.join(name).into_os_string();
        let mut command = Command::new("dockerd");
        command.args(["--host", &self.socket()]);
        for (flag, name) in [("--data-root", "data"), ("--exec-root", "exec"), ("--pidfile", "pid")]
        {
            command.arg(flag).arg(folder(name));
        }
        command.args(["--iptables=false", "--ip-masq=false", "--bridge=none"]);
        command.args(["--default-address-pool", "base=10.190.0.0/16,size=24"]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        self.child = Some(command.spawn().unwrap());
        let until = Instant::now() + EVENTUALLY;
        while !self.docker(&["version"]).output().unwrap().status.success() {
            assert!(
                Instant::now() < until,
                "{}",
                fs::read_to_string(self.folder.join("log")).unwrap()
            );
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn kill(&mut self) {
        let mut child = self.child.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        // Its containerd dies with it. Where nobody reaps that, its pid would look like a living one's.
        for file in ["pid", "exec/containerd/containerd.pid"] {
            let _ = fs::remove_file(self.folder.join(file));
        }
    }

    /// How many containers and networks of sandboxes it has.
    fn left(&self) -> usize {
        let count = |args: &[&str]| {
            let output =
                self.docker(args).args(["-q", "--filter", "label=sandboxer.id"]).output().unwrap();
            assert!(output.status.success(), "{output:?}");
            String::from_utf8_lossy(&output.stdout).lines().count()
        };
        count(&["ps", "-a"]) + count(&["network", "ls"]) + count(&["volume", "ls"])
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // Containers outlive a kill; an engine that ends in order takes them along.
        if self.child.is_none() {
            self.up();
        }
        let Some(mut child) = self.child.take() else { return };
        signal(child.id(), "TERM");
        let _ = child.wait();
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        for mount in mounts.lines().filter_map(|line| line.split(' ').nth(1)) {
            if Path::new(mount).starts_with(&self.folder) {
                let _ = Command::new("umount").args(["-l", mount]).status();
            }
        }
    }
}

/// As a session on the lab's Docker host.
fn environment(command: &mut Command) -> &mut Command {
    command.envs(session_environment().iter().filter_map(|word| word.split_once('=')))
}

/// A create that takes long in `up`, and its id, once `made` says that its containers are there.
fn start_slow(bench: &Bench, host: &str, made: impl Fn(&str) -> bool) -> (Started, String) {
    let profile = bench.profile("slow", "ready_timeout: 300s\nstop_grace: 1s");
    let repo = bench.stack("slow", &slow_stack(DOCKER));
    let create = bench.start(stack_args(&profile, host, &repo, &[]));
    let id = text(&bench.wait_for_record(|record| record["state"] == "provisioning")["id"]);
    wait_until("its containers", || made(&id));
    (create, id)
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn an_sshd_that_is_killed_under_a_create_leaves_nothing_once_it_is_back() {
    let bench = Bench::new();
    let mut sshd = Sshd::start(&bench, "fragile", &[]);
    let before = bench.snapshot(DOCKER);
    // With the console: the record is stuck, and says so.
    let (create, id) = start_slow(&bench, "fragile", |id| containers(DOCKER, id) >= 2);
    sshd.kill();
    create.signal("KILL");
    create.finish();
    let away = bench.run(["recover"]);
    let item = &away.json()[0];
    assert_eq!((away.status, &item["ok"]), (Some(5), &json!(false)), "{item:#}");
    assert_eq!(item["error"]["code"], "host_unreachable", "{item:#}");
    sshd.up();
    assert_eq!(bench.ok(["recover"])[0]["ok"], true);
    assert_eq!(bench.get(&id)["state"], "destroyed");
    bench.assert_unchanged(DOCKER, &before);
    // Without: what could not be rolled back is left over on the record, and `destroy` removes it.
    let (create, id) = start_slow(&bench, "fragile", |id| containers(DOCKER, id) >= 2);
    sshd.kill();
    create.finish().error("host_unreachable");
    let record = bench.get(&id);
    assert_eq!(record["state"], json!("failed"));
    assert_eq!(record["leftovers"].as_array().map(Vec::len), Some(1));
    sshd.up();
    destroy(&bench, &id);
    bench.assert_unchanged(DOCKER, &before);
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn an_engine_that_is_killed_under_a_create_leaves_nothing_once_it_is_back() {
    let bench = Bench::new();
    let mut engine = Engine::start(&bench);
    let _sshd = Sshd::start(&bench, "engineless", &[("DOCKER_HOST", &engine.socket())]);
    let made = |engine: &Engine| engine.left() >= 3;
    let (create, id) = start_slow(&bench, "engineless", |_| made(&engine));
    engine.kill();
    create.signal("KILL");
    create.finish();
    let dead = bench.run(["recover"]);
    let item = &dead.json()[0];
    assert_eq!(dead.status, Some(1), "{item:#}");
    assert_eq!(item["error"]["code"], json!("operation_failed"), "{item:#}");
    assert!(text(&item["error"]["message"]).contains("engine"), "{item:#}");
    let record = bench.get(&id);
    assert_eq!(
        record["state"], "provisioning",
        "nobody could look, so nothing is decided: {record:#}"
    );
    engine.up();
    assert_eq!(bench.ok(["recover"])[0]["ok"], true);
    assert_eq!((bench.get(&id)["state"].as_str(), engine.left()), (Some("destroyed"), 0));

    let (create, id) = start_slow(&bench, "engineless", |_| made(&engine));
    engine.kill();
    create.finish().error("operation_failed");
    let record = bench.get(&id);
    assert_eq!(record["state"], "failed", "{record:#}");
    assert!(!record["leftovers"].as_array().unwrap().is_empty(), "{record:#}");
    engine.up();
    destroy(&bench, &id);
    assert_eq!(engine.left(), 0);
    let root = bench.workspace_root(DOCKER);
    assert!(rooms(&root).is_empty(), "no directory in {}", root.display());
}
