//! Snapshot and restore of 1 GiB in 20,000 files, and `tar | zstd` by hand on the same host, in turn; and the most memory
//! that sandboxer's process had.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::console::status;
use crate::fixture::Fixture;
use crate::sample::Sample;

const ROUNDS: usize = 5;
pub(crate) const HOST: &str = "sandboxer01";

/// 200 folders of 100 files of 52 KiB; a half of each is random, a half is text.
pub(crate) const FILL: &str = r#"
head -c 6000000 /dev/urandom >../random
for folder in $(seq 200); do
  mkdir "d$folder"
  for file in $(seq 100); do
    { dd if=../random bs=26k skip=$(((folder * 100 + file) % 220)) count=1 2>/dev/null; yes "$folder $file" | head -c 26k; } >"d$folder/f$file"
  done
done
rm ../random"#;

pub(crate) fn measure(fixture: &Fixture, lab: &Path) {
    let bench = Bench { fixture, lab };
    bench.run(&["create", "--host", HOST, "--name", "source", "--ttl", "1d", "--quiet"]);
    bench.run(&["exec", "source", "--", "sh", "-c", FILL]);
    let folder = bench.workdir();
    let mut samples: [Sample; 4] = Default::default();
    let mut most = 0;
    for round in 0..=ROUNDS {
        let snapshot = format!("bench-{round}");
        let restored = format!("restored-{round}");
        let (took, kib) =
            bench.run(&["snapshot", "source", "--name", &snapshot, "--mode", "live", "--quiet"]);
        most = most.max(kib);
        let hand_out = bench
            .by_hand(&format!("cd '{folder}' && tar -cf - workspace | zstd -q >../hand.tar.zst"));
        let (back, kib) = bench.run(&["restore", &snapshot, "--name", &restored, "--quiet"]);
        most = most.max(kib);
        let hand_in = bench.by_hand(&format!(
            "mkdir '{folder}/../hand' && cd '{folder}/../hand' && zstd -qdc ../hand.tar.zst | tar -xf -"
        ));
        // The first round warms the machine up.
        if round > 0 {
            for (sample, took) in samples.iter_mut().zip([took, hand_out, back, hand_in]) {
                sample.push(took);
            }
        }
        bench.by_hand(&format!("rm -rf '{folder}/../hand' '{folder}/../hand.tar.zst'"));
        bench.run(&["destroy", &restored, "--quiet"]);
        bench.run(&["snapshots", "delete", &snapshot, "--quiet"]);
    }
    bench.run(&["destroy", "source", "--quiet"]);
    let [taken, hand_out, back, hand_in] = &samples;
    taken.print("snapshot, 1 GiB in 20,000 files");
    hand_out.print("  by hand: ssh, tar | zstd");
    back.print("restore");
    hand_in.print("  by hand: ssh, zstd -d | tar");
    let ratio =
        |one: &Sample, other: &Sample| one.median().as_secs_f64() / other.median().as_secs_f64();
    println!(
        "snapshot / by hand: {:.2}; restore / by hand: {:.2}",
        ratio(taken, hand_out),
        ratio(back, hand_in)
    );
    println!("most memory of sandboxer's process: {:.1} MB", most as f64 / 1024.0);
}

pub(crate) struct Bench<'a> {
    pub(crate) fixture: &'a Fixture,
    pub(crate) lab: &'a Path,
}

impl Bench<'_> {
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = self.fixture.sandboxer();
        command.env("SANDBOXER_DATA_DIR", self.fixture.join("snapshot"));
        command.env("SANDBOXER_CONFIG", self.lab.join("config.yaml")).args(args);
        command
    }

    /// How long it took, and the most memory it had; KiB.
    pub(crate) fn run(&self, args: &[&str]) -> (Duration, u64) {
        let mut command = self.command(args);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let began = Instant::now();
        let mut child = command.spawn().expect("sandboxer");
        let mut most = 0;
        let ended = loop {
            most = most.max(status(child.id(), "VmHWM:"));
            if let Some(status) = child.try_wait().expect("its end") {
                break status;
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        assert!(ended.success(), "{args:?} failed");
        (began.elapsed(), most)
    }

    fn workdir(&self) -> String {
        let got = self.command(&["get", "source", "--json"]).output().expect("get");
        let record: serde_json::Value = serde_json::from_slice(&got.stdout).expect("a record");
        record["workdir"].as_str().expect("a workdir").to_owned()
    }

    fn by_hand(&self, script: &str) -> Duration {
        let mut ssh = Command::new("ssh");
        ssh.arg("-F").arg(self.lab.join("ssh_config")).args([HOST, script]).stdin(Stdio::null());
        let began = Instant::now();
        assert!(ssh.status().expect("ssh").success(), "{script} failed");
        began.elapsed()
    }
}
