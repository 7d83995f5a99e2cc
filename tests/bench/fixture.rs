//! The binary on a data directory of the bench's own.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use sandboxer::store::SandboxStore as _;
use sandboxer::store::json::JsonStores;

use crate::console::Console;

pub(crate) const BIN: &str = env!("CARGO_BIN_EXE_sandboxer");

/// A home and a data directory.
pub(crate) struct Fixture {
    folder: PathBuf,
}

impl Fixture {
    pub(crate) fn new(folder: &Path) -> Self {
        let settings = folder.join("home/.config/sandboxer");
        std::fs::create_dir_all(&settings).expect("a home");
        // Whatever runs beside the bench, the machine takes its sandboxes.
        let limits = "limits: {disk_used_pct: 100, mem_used_pct: 100, load_per_core: 1000}";
        std::fs::write(settings.join("config.yaml"), format!("hosts: {{local: {{{limits}}}}}\n"))
            .expect("config.yaml");
        Self { folder: folder.to_owned() }
    }

    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The binary with this environment alone.
    pub(crate) fn sandboxer(&self) -> Command {
        let mut command = Command::new(BIN);
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", self.join("home")).env("SANDBOXER_DATA_DIR", self.join("data"));
        command.env("TERM", "xterm-256color").env("LC_ALL", "C.UTF-8");
        command
    }

    /// A directory with so many records: copies of a real one, written as our own writes are.
    pub(crate) fn with_records(folder: &Path, count: usize) -> Self {
        let fixture = Self::new(&folder.join(format!("of-{count}")));
        fixture.fill(count);
        fixture
    }

    fn fill(&self, count: usize) {
        let made = self.sandboxer().args(["create", "--json", "--quiet"]).output().expect("create");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let mut record: serde_json::Value = serde_json::from_slice(&made.stdout).expect("a record");
        let id = record["id"].as_str().expect("an id").to_owned();
        let destroyed =
            self.sandboxer().args(["destroy", &id, "--quiet"]).output().expect("destroy");
        assert!(destroyed.status.success(), "{}", String::from_utf8_lossy(&destroyed.stderr));
        record["pending"] = serde_json::json!([]);
        // Nobody looks for it on its host.
        record["state"] = "failed".into();
        let lines = (0..count).map(|number| {
            record["id"] = format!("{number:08x}").into();
            record["name"] = format!("box-{number}").into();
            record.to_string()
        });
        let lines: Vec<String> = lines.collect();
        let text =
            format!("{{\"schema\":1,\"revision\":9,\"records\":[\n{}\n]}}\n", lines.join(",\n"));
        std::fs::write(self.join("data/sandboxes.json"), text).expect("the store");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let store = JsonStores::open(&self.join("data")).expect("the stores").sandboxes;
        runtime.expect("a runtime").block_on(store.renew()).expect("records as we write them");
        let written = std::fs::metadata(self.join("data/sandboxes.json")).expect("the store").len();
        println!("({count} records of {} bytes)", written / count as u64);
    }

    pub(crate) fn list(&self, count: usize) -> Duration {
        let began = Instant::now();
        let output = self.sandboxer().args(["list", "--json"]).output().expect("list");
        let took = began.elapsed();
        assert!(output.status.success() && output.stdout.len() > 100 * count);
        took
    }

    pub(crate) fn version(&self) -> Duration {
        let began = Instant::now();
        assert!(self.sandboxer().arg("--version").output().expect("version").status.success());
        began.elapsed()
    }

    /// From the process's start until the screen shows the pane with its count and a row.
    pub(crate) fn first_frame(&self, count: usize) -> Duration {
        let console = Console::start(&self.sandboxer());
        let took = console.first_frame(count);
        console.leave();
        took
    }
}

/// Runs a command that has to succeed; how long it took.
pub(crate) fn timed(mut command: Command) -> Duration {
    let began = Instant::now();
    let output = command.output().expect("a command");
    let took = began.elapsed();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    took
}
