//! Reap of 60 stacks, 30 on each engine's host, and destroy of 24 on one, against one `compose down -v` after another over ssh by hand.
//!
//! All of them are made with sandboxer, for a second each: what is reaped has expired. The script by hand knows their names, asks
//! nothing, and leaves their directories. Hosts of the lab share this machine's processors, so that what is done side by side
//! costs there what it would not cost on two machines.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::fixture::{Fixture, timed};
use crate::sample::Sample;

/// The hosts with the compose tool that each has.
pub(crate) const HOSTS: [(&str, &str); 2] =
    [("sandboxer01", "docker compose"), ("coulombcore", "podman-compose")];
const BOTH: [usize; 2] = [0, 1];
/// Creates on a host at a time; nothing of them is measured.
const AT_ONCE: usize = 3;
/// The shipped profile's stop grace, in seconds: the script waits as long for containers that do not end.
const GRACE: u32 = 2;
const STACK: &str = r#"services:
  worker:
    image: localhost/sbx-lab:1
    command: ["sh", "-c", "trap 'exit 0' TERM; while :; do sleep 5 & wait $$!; done"]
    volumes: ["data:/data"]
volumes:
  data: {}
"#;

pub(crate) fn measure(fixture: &Fixture, lab: &Path) {
    // Fewer than 30 on each host: for a first look.
    let count = std::env::var("SANDBOXER_BENCH_REAP").ok().and_then(|count| count.parse().ok());
    let fleet = Fleet::new(fixture, lab, count.unwrap_or(30));
    println!("({} stacks over 2 hosts; load {})", 2 * fleet.count, load());
    fleet.make("r", &BOTH);
    let (reap, most) = fleet.reap();
    println!("(load {})", load());
    fleet.make("h", &BOTH);
    let downs = fleet.by_hand("h", &BOTH);
    println!("(load {})", load());
    // Their directories and records.
    fleet.run(&["reap-stale", "--yes", "--quiet"]);
    let by_hand: Duration = downs.iter().sum();
    let mut each = Sample::default();
    for took in downs {
        each.push(took);
    }
    println!("reap-stale --yes, {} stacks {:>27.1} s", 2 * fleet.count, reap.as_secs_f64());
    println!("  by hand, one after another {:>26.1} s", by_hand.as_secs_f64());
    each.print("  by hand, each");
    println!("sandboxer / by hand: {:.2}", reap.as_secs_f64() / by_hand.as_secs_f64());
    println!("sessions of ours on one host at once: {most} at most");
}

/// Destroy of many stacks on each engine's host in turn, by one command, by hand, and by the engine alone.
pub(crate) fn measure_bulk(fixture: &Fixture, lab: &Path) {
    let fleet = Fleet::new(fixture, lab, 24);
    for (host, (name, _)) in HOSTS.iter().enumerate() {
        println!("({} stacks on {name}; load {})", fleet.count, load());
        fleet.make("d", &[host]);
        let ids: Vec<String> = (0..fleet.count).map(|n| Fleet::id("d", host, n)).collect();
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        let bulk = fleet.run(&[&["destroy", "--quiet", "--yes"][..], &ids[..]].concat());
        fleet.make("o", &[host]);
        let by_hand: Duration = fleet.by_hand("o", &[host]).iter().sum();
        fleet.make("e", &[host]);
        let engine = fleet.by_engine("e", host);
        fleet.run(&["reap-stale", "--yes", "--quiet"]);
        let ratio = |took: Duration| took.as_secs_f64() / by_hand.as_secs_f64();
        println!("destroy, {} at once {:>33.1} s", fleet.count, bulk.as_secs_f64());
        println!("  by hand, one after another {:>26.1} s", by_hand.as_secs_f64());
        println!("  the engine's own rm -f {:>30.1} s", engine.as_secs_f64());
        println!("sandboxer / by hand: {:.2}; the engine: {:.2}", ratio(bulk), ratio(engine));
    }
}

fn root_of(lab: &Path, host: &str) -> PathBuf {
    lab.join("hosts").join(host).join("sandboxes")
}

fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or_default().to_owned()
}

/// Stacks of one profile on a data directory of its own.
struct Fleet<'a> {
    fixture: &'a Fixture,
    lab: &'a Path,
    project: PathBuf,
    /// Stacks on each host.
    count: usize,
}

impl<'a> Fleet<'a> {
    fn new(fixture: &'a Fixture, lab: &'a Path, count: usize) -> Self {
        let project = fixture.join("reap-stack");
        std::fs::create_dir_all(&project).expect("a folder");
        std::fs::write(project.join("docker-compose.yml"), STACK).expect("a compose file");
        std::fs::create_dir_all(fixture.join("run")).expect("a folder for sockets");
        let hosts = HOSTS.map(|(host, _)| {
            let (config, root) = (lab.join("ssh_config"), root_of(lab, host));
            let limits = "limits: {disk_used_pct: 100, mem_used_pct: 100, load_per_core: 1000}";
            format!(
                "  {host}: {{ssh_config: {}, workspace_root: {}, max_sandboxes: 200, {limits}}}\n",
                config.display(),
                root.display()
            )
        });
        std::fs::write(fixture.join("reap.yaml"), format!("hosts:\n{}", hosts.concat()))
            .expect("a configuration");
        Self { fixture, lab, project, count }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.fixture.sandboxer();
        command.env("SANDBOXER_DATA_DIR", self.fixture.join("reap-data"));
        command.env("SANDBOXER_CONFIG", self.fixture.join("reap.yaml"));
        // Connections of its own, so that its sessions can be counted.
        command.env("XDG_RUNTIME_DIR", self.fixture.join("run"));
        command.args(args).stdin(Stdio::null());
        command
    }

    fn run(&self, args: &[&str]) -> Duration {
        timed(self.command(args))
    }

    fn id(round: &str, host: usize, number: usize) -> String {
        format!("bench-{round}{host}-{number:02}")
    }

    /// Makes the stacks of a round; all of them have expired when it returns.
    fn make(&self, round: &str, hosts: &[usize]) {
        let next = [AtomicUsize::new(0), AtomicUsize::new(0)];
        let input = format!("repo={}", self.project.display());
        std::thread::scope(|scope| {
            for worker in 0..hosts.len() * AT_ONCE {
                let (host, next, input) = (hosts[worker % hosts.len()], &next, &input);
                scope.spawn(move || {
                    loop {
                        let number = next[host].fetch_add(1, Ordering::Relaxed);
                        if number >= self.count {
                            return;
                        }
                        let id = Self::id(round, host, number);
                        let create = ["create", "--profile", "compose-e2e", "--ttl", "1s"];
                        let on = ["--host", HOSTS[host].0, "--id", &id, "--input", input];
                        self.run(&[&create[..], &on, &["--quiet"]].concat());
                    }
                });
            }
        });
        std::thread::sleep(Duration::from_secs(2));
    }

    /// Reaps them; also the most sessions that one host had of ours meanwhile.
    fn reap(&self) -> (Duration, usize) {
        let (done, began) = (AtomicBool::new(false), Instant::now());
        let mut command = self.command(&["reap-stale", "--yes", "--json", "--quiet"]);
        let (output, took, most) = std::thread::scope(|scope| {
            let watcher = scope.spawn(|| self.most_sessions(&done));
            let output = command.output().expect("a reap");
            let took = began.elapsed();
            done.store(true, Ordering::Relaxed);
            (output, took, watcher.join().expect("a watcher"))
        });
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let items: Vec<serde_json::Value> =
            serde_json::from_slice(&output.stdout).expect("what was done");
        let removed = items.iter().filter(|item| item["outcome"] == "removed").count();
        assert_eq!(removed, 2 * self.count, "{items:?}");
        (took, most)
    }

    /// The most sessions that one host had of ours at once, looked for ten times a second.
    fn most_sessions(&self, done: &AtomicBool) -> usize {
        let mut most = 0;
        while !done.load(Ordering::Relaxed) {
            most = most.max(sessions(&self.fixture.join("run")));
            std::thread::sleep(Duration::from_millis(100));
        }
        most
    }

    /// The same by hand, host after host, a connection each.
    fn by_hand(&self, round: &str, hosts: &[usize]) -> Vec<Duration> {
        let config = self.lab.join("ssh_config");
        let down = |(host, number): (usize, usize)| {
            let (name, compose) = HOSTS[host];
            let id = Self::id(round, host, number);
            let file = root_of(self.lab, name).join(format!("sbx-{id}/compose.yaml"));
            let line = format!(
                "{compose} -p sbx-{id} -f {} down -v -t {GRACE} >/dev/null 2>&1",
                file.display()
            );
            let mut ssh = Command::new("ssh");
            ssh.arg("-F").arg(&config).args([name, &line]).stdin(Stdio::null());
            timed(ssh)
        };
        let all = hosts.iter().flat_map(|host| (0..self.count).map(move |n| (*host, n)));
        all.map(down).collect()
    }

    /// Removal of all their containers by one call of the engine.
    fn by_engine(&self, round: &str, host: usize) -> Duration {
        let (name, compose) = HOSTS[host];
        let engine = if compose.starts_with("docker") { "docker" } else { "podman" };
        let prefix = format!("sbx-bench-{round}{host}-");
        let line = format!("{engine} rm -f $({engine} ps -aq --filter name={prefix}) >/dev/null");
        let mut ssh = Command::new("ssh");
        ssh.arg("-F").arg(self.lab.join("ssh_config")).args([name, &line]).stdin(Stdio::null());
        timed(ssh)
    }
}

/// Sessions on the host that has most of them: processes that sshd began for a connection of ours. Hosts are on this machine, and so
/// are the masters, whose sockets are in this folder.
fn sessions(folder: &Path) -> usize {
    let folder = folder.display().to_string();
    let ports: BTreeMap<String, String> = processes()
        .filter(|process| process.has("cmdline", &folder))
        .flat_map(|p| p.ports())
        .collect();
    let mut by_host: BTreeMap<&str, usize> = BTreeMap::new();
    for process in processes().filter(|process| process.is_begun_by("sshd")) {
        let ours = ports.iter().find(|(ours, theirs)| {
            process.has("environ", &format!("SSH_CLIENT=127.0.0.1 {ours} {theirs}\0"))
        });
        if let Some((_, host)) = ours {
            *by_host.entry(host).or_default() += 1;
        }
    }
    by_host.into_values().max().unwrap_or_default()
}

/// A process, by its folder of `/proc`.
struct Process(PathBuf);

fn processes() -> impl Iterator<Item = Process> {
    let all = std::fs::read_dir("/proc").expect("/proc").flatten().map(|entry| entry.path());
    all.filter(|path| path.join("stat").exists()).map(Process)
}

impl Process {
    fn read(&self, name: &str) -> String {
        let bytes = std::fs::read(self.0.join(name)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn has(&self, name: &str, words: &str) -> bool {
        self.read(name).contains(words)
    }

    fn is_begun_by(&self, name: &str) -> bool {
        let status = self.read("status");
        let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"));
        parent.is_some_and(|pid| {
            Self(Path::new("/proc").join(pid.trim())).read("comm").trim() == name
        })
    }

    /// Its TCP connections: our port and theirs.
    fn ports(&self) -> Vec<(String, String)> {
        let links = std::fs::read_dir(self.0.join("fd")).into_iter().flatten().flatten();
        let links: Vec<String> = links
            .filter_map(|link| Some(std::fs::read_link(link.path()).ok()?.display().to_string()))
            .collect();
        let port = |address: &str| {
            let (_, port) = address.split_once(':')?;
            Some(u16::from_str_radix(port, 16).ok()?.to_string())
        };
        let table = self.read("net/tcp");
        let of_line = |line: &str| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let is_its = links.contains(&format!("socket:[{}]", words.get(9)?));
            is_its.then_some(())?;
            Some((port(words.get(1)?)?, port(words.get(2)?)?))
        };
        table.lines().skip(1).filter_map(of_line).collect()
    }
}
