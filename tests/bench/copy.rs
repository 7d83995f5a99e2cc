//! A snapshot's archive from one host through this machine to another, and the same by hand: `ssh a cat | ssh b cat`, and
//! that with a hash of what is inside on arrival, which is what a copy does. To a host without zstd, too; and memory.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::fixture::Fixture;
use crate::sample::Sample;
use crate::snapshot::{Bench, FILL, HOST};

const ROUNDS: usize = 5;
/// It has zstd.
const TARGET: &str = "sandboxer01-dev";
/// It has none: what comes is compressed anew on the way.
const BARE: &str = "coulombcore";

pub(crate) fn measure(fixture: &Fixture, lab: &Path) {
    let bench = Bench { fixture, lab };
    bench.run(&["create", "--host", HOST, "--name", "source", "--ttl", "1d", "--quiet"]);
    bench.run(&["exec", "source", "--", "sh", "-c", FILL]);
    bench.run(&["snapshot", "source", "--name", "base", "--quiet"]);
    let record = get(&bench);
    let file =
        format!("{}/archive.{}", text(&record["replicas"][0]["path"]), text(&record["format"]));
    println!("the archive has {:.0} MB", record["bytes"].as_f64().unwrap_or(0.0) / 1e6);
    let mut samples: [Sample; 4] = Default::default();
    let mut most = 0;
    for round in 0..=ROUNDS {
        let (took, kib) = copy(&bench, TARGET);
        let cat = by_hand(lab, &file, "cat >hand.tar.zst");
        let proved = by_hand(lab, &file, "tee hand.tar.zst | zstd -qdc | openssl dgst -sha256 -r");
        let (anew, more) = copy(&bench, BARE);
        most = most.max(kib).max(more);
        // The first round warms the machine up.
        if round > 0 {
            for (sample, took) in samples.iter_mut().zip([took, cat, proved, anew]) {
                sample.push(took);
            }
        }
        ssh(lab, TARGET, "rm -f hand.tar.zst");
    }
    bench.run(&["destroy", "source", "--quiet"]);
    bench.run(&["snapshots", "delete", "base", "--quiet"]);
    let [copied, cat, proved, anew] = &samples;
    copied.print("copy to another host");
    cat.print("  by hand: ssh a cat | ssh b cat");
    proved.print("  by hand, and hashed on arrival");
    anew.print("copy to a host without zstd");
    let ratio =
        |one: &Sample, other: &Sample| one.median().as_secs_f64() / other.median().as_secs_f64();
    println!(
        "copy / by hand: {:.2}; copy / by hand, hashed: {:.2}",
        ratio(copied, cat),
        ratio(copied, proved)
    );
    println!("most memory of sandboxer's process: {:.1} MB", most as f64 / 1024.0);
}

fn get(bench: &Bench<'_>) -> serde_json::Value {
    let got = bench.command(&["snapshots", "get", "base", "--json"]).output().expect("get");
    serde_json::from_slice(&got.stdout).expect("a record")
}

fn text(value: &serde_json::Value) -> &str {
    value.as_str().expect("a text")
}

/// Copies, and takes the copy away behind sandboxer's back, so that it can be copied again.
fn copy(bench: &Bench<'_>, host: &str) -> (Duration, u64) {
    let measured = bench.run(&["snapshots", "copy", "base", "--to", host, "--quiet"]);
    let record = get(bench);
    let replicas = record["replicas"].as_array().expect("replicas");
    let replica = replicas.iter().find(|replica| replica["host"] == host).expect("the copy");
    ssh(bench.lab, host, &format!("rm -r '{}'", text(&replica["path"])));
    measured
}

fn command(lab: &Path, host: &str, script: &str) -> Command {
    let mut ssh = Command::new("ssh");
    ssh.arg("-F").arg(lab.join("ssh_config")).args([host, script]).stdin(Stdio::null());
    ssh
}

fn ssh(lab: &Path, host: &str, script: &str) {
    assert!(command(lab, host, script).status().expect("ssh").success(), "{script} failed");
}

fn by_hand(lab: &Path, file: &str, there: &str) -> Duration {
    let began = Instant::now();
    let mut from =
        command(lab, HOST, &format!("cat '{file}'")).stdout(Stdio::piped()).spawn().expect("ssh");
    let bytes = from.stdout.take().expect("a pipe");
    let to = command(lab, TARGET, there).stdin(bytes).stdout(Stdio::null()).status().expect("ssh");
    assert!(to.success() && from.wait().expect("its end").success(), "{there} failed");
    began.elapsed()
}
