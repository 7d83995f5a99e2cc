//! The binary on a data directory of the bench's own.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

const BIN: &str = env!("CARGO_BIN_EXE_sandboxer");

/// A home and a data directory.
pub(crate) struct House {
    folder: PathBuf,
}

impl House {
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
        command.env("TERM", "xterm-256color");
        command
    }

    /// Makes one real record, then as many copies of it as are wanted, laid out as our own writes lay them out.
    pub(crate) fn fill(&self, count: usize) {
        let made = self.sandboxer().args(["create", "--json", "--quiet"]).output().expect("create");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let mut record: serde_json::Value = serde_json::from_slice(&made.stdout).expect("a record");
        let id = record["id"].as_str().expect("an id").to_owned();
        let destroyed =
            self.sandboxer().args(["destroy", &id, "--quiet"]).output().expect("destroy");
        assert!(destroyed.status.success(), "{}", String::from_utf8_lossy(&destroyed.stderr));
        record["pending"] = serde_json::json!([]);
        let lines = (0..count).map(|number| {
            record["id"] = format!("{number:08x}").into();
            record.to_string()
        });
        let lines: Vec<String> = lines.collect();
        let text =
            format!("{{\"schema\":1,\"revision\":9,\"records\":[\n{}\n]}}\n", lines.join(",\n"));
        println!("({count} records of {} bytes)", lines[0].len());
        std::fs::write(self.join("data/sandboxes.json"), text).expect("the store");
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
        let title = format!("Sandboxes {count}");
        let took = loop {
            let read = reader.read(&mut buffer).expect("output");
            assert!(read > 0, "the dashboard ended:\n{}", screen.screen().contents());
            screen.process(&buffer[..read]);
            let text = screen.screen().contents();
            if text.contains(&title) && text.contains("sandbox-canary") {
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
}

/// Runs a command that has to succeed; how long it took.
pub(crate) fn timed(mut command: Command) -> Duration {
    let began = Instant::now();
    let output = command.output().expect("a command");
    let took = began.elapsed();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    took
}
