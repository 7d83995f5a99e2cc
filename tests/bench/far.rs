//! One-shot commands on a host whose connection is open, with a delay on the way.
//!
//! How many round trips a command waits for, one after the other, is what the delay adds to it (to the least of its
//! times: a busy machine adds to the others): counted from outside, whatever the command itself believes.

use std::fmt::Write as _;
use std::io::BufRead;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::fixture::{Fixture, timed};
use crate::sample::Sample;
use crate::stack::example;

/// Delays of each direction: a round trip costs twice as much.
const DELAYS_MS: [u32; 3] = [0, 25, 150];
const RUNS: usize = 5;
const NAMES: [&str; 8] = [
    "create canary",
    "exec -- true",
    "label",
    "destroy canary",
    "create stack",
    "exec -- true (stack)",
    "destroy stack",
    "hosts check",
];

pub(crate) fn measure(fixture: &Fixture, lab: &Path) {
    let mut found: Vec<Vec<Option<[Duration; 2]>>> = vec![Vec::new(); NAMES.len()];
    for delay in DELAYS_MS {
        let far = Far::new(lab, fixture, delay);
        // Opens the connection; its master stays for the commands after it.
        far.run(&["hosts", "check", "far", "--quiet"]);
        let mut samples: [Sample; NAMES.len()] = Default::default();
        for round in 0..RUNS {
            for (sample, took) in samples.iter_mut().zip(far.round(round)) {
                if let Some(took) = took {
                    sample.push(took);
                }
            }
        }
        for (of, sample) in found.iter_mut().zip(&samples) {
            of.push((!sample.is_empty()).then(|| [sample.median(), sample.least()]));
        }
    }
    println!(
        "\n{:<30} {:>10} {:>10} {:>10} {:>12}",
        "connection open; delay", "0 ms", "25 ms", "150 ms", "round trips"
    );
    for (name, row) in NAMES.iter().zip(&found) {
        let cells = row.iter().fold(String::new(), |mut text, cell| {
            let cell = cell.map_or("-".to_owned(), |[median, _]| {
                format!("{:.0} ms", median.as_secs_f64() * 1000.0)
            });
            let _ = write!(text, " {cell:>10}");
            text
        });
        let trips = match (row[0], row[2]) {
            (Some([_, near]), Some([_, far])) => {
                let trip = 2.0 * f64::from(DELAYS_MS[2]) / 1000.0;
                format!("{:.1}", far.saturating_sub(near).as_secs_f64() / trip)
            }
            _ => "not there".to_owned(),
        };
        println!("{name:<30}{cells} {trips:>12}");
    }
}

/// The lab's Docker host behind a relay.
struct Far<'a> {
    fixture: &'a Fixture,
    folder: tempfile::TempDir,
    relay: Child,
    has_exec: bool,
    has_label: bool,
}

impl<'a> Far<'a> {
    fn new(lab: &Path, fixture: &'a Fixture, delay: u32) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let config = std::fs::read_to_string(lab.join("ssh_config")).expect("the lab's ssh_config");
        let target = port_of(&config, "sandboxer01");
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lab/relay");
        let mut relay = Command::new(script)
            .args(["--target", &format!("127.0.0.1:{target}"), "--delay-ms", &delay.to_string()])
            .stdout(Stdio::piped())
            .spawn()
            .expect("the relay");
        let mut port = String::new();
        std::io::BufReader::new(relay.stdout.take().expect("its output"))
            .read_line(&mut port)
            .expect("its port");
        let ssh = folder.path().join("ssh_config");
        std::fs::write(&ssh, format!("Host sandboxer01\n  Port {}\n\n{config}", port.trim()))
            .expect("ssh_config");
        let hosts = format!(
            "hosts:\n  far:\n    ssh: sandboxer01\n    ssh_config: {}\n    workspace_root: {}\n    limits: {{disk_used_pct: 100, mem_used_pct: 100, load_per_core: 1000}}\n",
            ssh.display(),
            lab.join("hosts/sandboxer01/sandboxes").display()
        );
        std::fs::write(folder.path().join("config.yaml"), hosts).expect("config.yaml");
        let mut far = Self { fixture, folder, relay, has_exec: false, has_label: false };
        far.has_exec = far.knows("exec");
        far.has_label = far.knows("label");
        far
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.fixture.sandboxer();
        command.env("SANDBOXER_DATA_DIR", self.folder.path().join("data"));
        command.env("SANDBOXER_CONFIG", self.folder.path().join("config.yaml"));
        command.args(args);
        command
    }

    fn run(&self, args: &[&str]) -> Duration {
        timed(self.command(args))
    }

    /// Whether this build has the verb.
    fn knows(&self, verb: &str) -> bool {
        self.command(&[verb, "--help"]).output().expect("help").status.success()
    }

    fn round(&self, round: usize) -> [Option<Duration>; NAMES.len()] {
        let (canary, stack) = (format!("canary-{round}"), format!("stack-{round}"));
        let input = format!("repo={}", example().display());
        let exec = |name: &str| self.has_exec.then(|| self.run(&["exec", name, "--", "true"]));
        [
            Some(self.run(&["create", "--host", "far", "--name", &canary, "--quiet"])),
            exec(&canary),
            self.has_label.then(|| self.run(&["label", &canary, "kind=bench", "--quiet"])),
            Some(self.run(&["destroy", &canary, "--quiet"])),
            Some(self.run(&[
                "create",
                "--profile",
                "compose-e2e",
                "--host",
                "far",
                "--input",
                &input,
                "--name",
                &stack,
                "--quiet",
            ])),
            exec(&stack),
            Some(self.run(&["destroy", &stack, "--quiet"])),
            Some(self.run(&["hosts", "check", "far", "--quiet"])),
        ]
    }
}

impl Drop for Far<'_> {
    fn drop(&mut self) {
        // Its own process and no other; the ssh master behind it ends with its connection.
        let _ = self.relay.kill();
        let _ = self.relay.wait();
    }
}

fn port_of(config: &str, host: &str) -> String {
    let block =
        config.split("\n\n").find(|block| block.lines().any(|line| line == format!("Host {host}")));
    let port =
        block.and_then(|block| block.lines().find_map(|line| line.trim().strip_prefix("Port ")));
    port.expect("the host's port in the lab's ssh_config").to_owned()
}
