//! First figures, side by side in one run: medians and ratios, never a limit. `just bench`, with the lab up for the
//! part that needs it.
//!
//! * process start to the first full frame of the dashboard, 1,000 records, in a pty with a terminal behind it
//! * `list --json` with 1,000 records
//! * create + destroy of a compose stack against the same by hand (ssh, rsync, docker compose), alternating

#![allow(clippy::expect_used, reason = "a figure that cannot be taken ends the run")]

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const BIN: &str = env!("CARGO_BIN_EXE_sandboxer");
const RECORDS: usize = 1000;

fn main() {
    // `cargo test --all-targets` runs a bench binary too: nothing is measured there.
    if std::env::args().any(|arg| arg == "--test") || !std::env::args().any(|arg| arg == "--bench") {
        println!("first_figures: measures only under `cargo bench`");
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary directory");
    let home = House::new(folder.path());
    home.fill(RECORDS);
    println!("figure                                      median      p90     runs");
    let frame = sample(15, || home.first_frame());
    print("start to first full frame, 1,000 records", &frame);
    let list = sample(30, || home.list());
    print("list --json, 1,000 records", &list);
    let version = sample(30, || home.version());
    print("  (--version: the process alone)", &version);
    match std::env::var_os("LAB_DIR").map(PathBuf::from) {
        Some(lab) => home.create_and_destroy(&lab),
        None => println!("create + destroy: skipped, LAB_DIR is not set (tests/lab/up, then . LAB/env)"),
    }
}

struct House {
    home: PathBuf,
    data: PathBuf,
}

impl House {
    fn new(folder: &Path) -> Self {
        let house = Self { home: folder.join("home"), data: folder.join("data") };
        std::fs::create_dir_all(&house.home).expect("a home");
        house
    }

    fn sandboxer(&self) -> Command {
        let mut command = Command::new(BIN);
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", &self.home).env("SANDBOXER_DATA_DIR", &self.data).env("TERM", "xterm-256color");
        command
    }

    /// Makes one real record, then as many copies of it as are wanted.
    fn fill(&self, count: usize) {
        let made = self.sandboxer().args(["create", "--json", "--quiet"]).output().expect("create");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let id: serde_json::Value = serde_json::from_slice(&made.stdout).expect("a record");
        let file = self.data.join("sandboxes.json");
        let mut store: serde_json::Value =
            serde_json::from_slice(&std::fs::read(&file).expect("the store")).expect("JSON");
        let record = store["records"][0].clone();
        let copies = (0..count).map(|number| {
            let mut copy = record.clone();
            copy["id"] = format!("{number:08x}").into();
            copy["pending"] = serde_json::json!([]);
            copy
        });
        let destroyed = self.sandboxer().args(["destroy", id["id"].as_str().expect("an id"), "--quiet"]).output();
        assert!(destroyed.expect("destroy").status.success());
        store["records"] = copies.collect();
        std::fs::write(&file, serde_json::to_vec(&store).expect("JSON")).expect("the store");
    }

    fn list(&self) -> Duration {
        let began = Instant::now();
        let output = self.sandboxer().args(["list", "--json"]).output().expect("list");
        let took = began.elapsed();
        assert!(output.status.success() && output.stdout.len() > 100 * RECORDS);
        took
    }

    fn version(&self) -> Duration {
        let began = Instant::now();
        assert!(self.sandboxer().arg("--version").output().expect("version").status.success());
        began.elapsed()
    }

    /// From the process's start until the screen shows the pane with its count and a row.
    fn first_frame(&self) -> Duration {
        let pty = portable_pty::native_pty_system();
        let size = portable_pty::PtySize { rows: 36, cols: 120, ..Default::default() };
        let pair = pty.openpty(size).expect("a pty");
        let mut command = portable_pty::CommandBuilder::new(BIN);
        command.env_clear();
        for (key, value) in self.sandboxer().get_envs() {
            if let Some(value) = value {
                command.env(key, value);
            }
        }
        let mut reader = pair.master.try_clone_reader().expect("a reader");
        let mut writer = pair.master.take_writer().expect("a writer");
        let began = Instant::now();
        let mut child = pair.slave.spawn_command(command).expect("the dashboard");
        drop(pair.slave);
        let [rows, columns] = [36, 120].map(|size| std::num::NonZeroU16::new(size).expect("not 0"));
        let mut screen = vt100::Parser::new(rows, columns, 0);
        let mut buffer = [0; 16384];
        let took = loop {
            let read = reader.read(&mut buffer).expect("output");
            assert!(read > 0, "the dashboard ended:\n{}", screen.screen().contents());
            screen.process(&buffer[..read]);
            let text = screen.screen().contents();
            if text.contains("Sandboxes 1000") && text.contains("sandbox-canary") {
                break began.elapsed();
            }
        };
        writer.write_all(b"q").expect("q");
        let until = Instant::now() + Duration::from_secs(5);
        while child.try_wait().expect("its status").is_none() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = child.kill();
        took
    }

    fn create_and_destroy(&self, lab: &Path) {
        let repo = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lab/example");
        let (mut ours, mut hand, mut mux) = (Vec::new(), Vec::new(), Vec::new());
        for round in 0..6 {
            let began = Instant::now();
            self.our_round(lab, &repo, round);
            ours.push(began.elapsed());
            let began = Instant::now();
            by_hand(lab, &repo, round, false);
            hand.push(began.elapsed());
            let began = Instant::now();
            by_hand(lab, &repo, round, true);
            mux.push(began.elapsed());
        }
        print("create + destroy, sandboxer", &ours);
        print("  by hand, a connection each", &hand);
        print("  by hand, ControlMaster", &mux);
        let ratio = |other: &[Duration]| median(&ours).as_secs_f64() / median(other).as_secs_f64();
        println!("sandboxer / by hand: {:.2}; / by hand with ControlMaster: {:.2}", ratio(&hand), ratio(&mux));
    }

    fn our_round(&self, lab: &Path, repo: &Path, round: usize) {
        let data = self.data.with_file_name("lab-data");
        let run = |args: &[&str]| {
            let mut command = self.sandboxer();
            command.env("SANDBOXER_DATA_DIR", &data).env("SANDBOXER_CONFIG", lab.join("config.yaml"));
            let output = command.args(args).output().expect("sandboxer");
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        };
        let name = format!("bench-{round}");
        let input = format!("repo={}", repo.display());
        let profile = ["create", "--profile", "compose-e2e", "--host", "sandboxer01", "--quiet"];
        run(&[&profile[..], &["--input", &input, "--name", &name]].concat());
        run(&["destroy", &name, "--quiet"]);
    }
}

/// The same by hand: make a directory, rsync, up, ask what runs, down, remove. The same stop grace.
fn by_hand(lab: &Path, repo: &Path, round: usize, shared: bool) {
    let control = std::env::temp_dir().join(format!("sbxbench-{}", std::process::id()));
    let config = lab.join("ssh_config");
    let options = if shared {
        format!("-o ControlMaster=auto -o ControlPersist=60 -o ControlPath={}", control.display())
    } else {
        String::new()
    };
    let script = format!(
        r#"set -e
ssh() {{ command ssh -F '{config}' {options} "$@"; }}
dir=$(ssh sandboxer01 'd=$HOME/by-hand-{round}; mkdir -p "$d" && echo "$d"')
rsync -a -e "ssh -F '{config}' {options}" '{repo}/' "sandboxer01:$dir/"
ssh sandboxer01 "cd '$dir' && docker compose -p hand{round} up -d" 2>/dev/null
ssh sandboxer01 "docker ps -a --filter label=com.docker.compose.project=hand{round} --format json" >/dev/null
ssh sandboxer01 "cd '$dir' && docker compose -p hand{round} down -v -t 2" 2>/dev/null
ssh sandboxer01 "rm -rf '$dir'"
{close}"#,
        config = config.display(),
        repo = repo.display(),
        close = if shared { "ssh -O exit sandboxer01 2>/dev/null" } else { "" },
    );
    let status = Command::new("bash").arg("-c").arg(script).stdin(Stdio::null()).stdout(Stdio::null()).status();
    assert!(status.expect("bash").success(), "the script by hand failed");
}

fn sample(runs: usize, mut run: impl FnMut() -> Duration) -> Vec<Duration> {
    run();
    (0..runs).map(|_| run()).collect()
}

fn median(samples: &[Duration]) -> Duration {
    quantile(samples, 0.5)
}

fn quantile(samples: &[Duration], at: f64) -> Duration {
    let mut sorted = samples.to_vec();
    sorted.sort();
    sorted[((sorted.len() - 1) as f64 * at).round() as usize]
}

fn print(name: &str, samples: &[Duration]) {
    let ms = |duration: Duration| duration.as_secs_f64() * 1000.0;
    println!("{name:<42} {:>8.1} ms {:>8.1} {:>8}", ms(median(samples)), ms(quantile(samples, 0.9)), samples.len());
}
