//! create + destroy of the lab's example stack: sandboxer and a script by hand, in turn.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::fixture::{Fixture, timed};
use crate::reap::HOSTS;
use crate::sample::Sample;

const ROUNDS: usize = 12;
/// The shipped profile's stop grace, in seconds: the script waits as long for containers that do not end.
const GRACE: u32 = 2;

pub(crate) fn measure(fixture: &Fixture, lab: &Path) {
    let example = example();
    write_profile(fixture);
    let mut samples: [Sample; 5] = Default::default();
    for round in 0..=ROUNDS {
        // One after the other: what else the machine does meets all of them alike.
        let [create, destroy] = ours(fixture, lab, &example, round);
        let fresh = by_hand(lab, &example, round, false);
        let shared = by_hand(lab, &example, round, true);
        // The first round warms the machine up.
        if round > 0 {
            for (sample, took) in
                samples.iter_mut().zip([create, destroy, create + destroy, fresh, shared])
            {
                sample.push(took);
            }
        }
    }
    let [create, destroy, both, fresh, shared] = &samples;
    both.print("create + destroy, sandboxer");
    create.print("  create");
    destroy.print("  destroy");
    fresh.print("  by hand, a connection each");
    shared.print("  by hand, ControlMaster");
    let ratio = |other: &Sample| both.median().as_secs_f64() / other.median().as_secs_f64();
    println!(
        "sandboxer / by hand: {:.2}; / by hand with ControlMaster: {:.2}",
        ratio(fresh),
        ratio(shared)
    );
    for (host, _) in HOSTS {
        println!("requests of a create to {host}: {}", requests(fixture, lab, &example, host));
    }
}

/// Requests that a create makes to its host.
fn requests(fixture: &Fixture, lab: &Path, example: &Path, host: &str) -> usize {
    let log = fixture.join("requests.log");
    let input = format!("repo={}", example.display());
    let mut create = on_lab(fixture, lab);
    create.args(["create", "--profile", "bench", "--host", host, "--name", "counted"]);
    create.args(["--input", &input, "--quiet", "--log-file"]).arg(&log);
    create.env("SANDBOXER_LOG", "sandboxer=debug");
    timed(create);
    let mut destroy = on_lab(fixture, lab);
    destroy.args(["destroy", "counted", "--quiet"]);
    timed(destroy);
    let text = std::fs::read_to_string(&log).expect("a log");
    std::fs::remove_file(&log).expect("a log");
    text.lines().filter(|line| line.contains(" request ")).count()
}

/// The binary on the lab's hosts.
fn on_lab(fixture: &Fixture, lab: &Path) -> Command {
    let mut command = fixture.sandboxer();
    command
        .env("SANDBOXER_DATA_DIR", fixture.join("lab-data"))
        .env("SANDBOXER_CONFIG", lab.join("config.yaml"));
    command
}

/// The shipped profile without time for services to settle: the script by hand gives them none either.
fn write_profile(fixture: &Fixture) {
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("profiles/compose-e2e.yaml");
    let text = std::fs::read_to_string(shipped).expect("the shipped profile");
    let text =
        text.replace("profile.compose-e2e", "profile.bench").replace("settle: 2s", "settle: 0s");
    let folder = fixture.join("home/.config/sandboxer/profiles");
    std::fs::create_dir_all(&folder).expect("a folder for profiles");
    std::fs::write(folder.join("bench.yaml"), text).expect("a profile");
}

pub(crate) fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lab/example")
}

fn ours(fixture: &Fixture, lab: &Path, example: &Path, round: usize) -> [std::time::Duration; 2] {
    let run = |args: &[&str]| {
        let mut command = on_lab(fixture, lab);
        command.args(args);
        timed(command)
    };
    let name = format!("bench-{round}");
    let input = format!("repo={}", example.display());
    let profile = ["create", "--profile", "bench", "--host", "sandboxer01", "--quiet"];
    [
        run(&[&profile[..], &["--input", &input, "--name", &name]].concat()),
        run(&["destroy", &name, "--quiet"]),
    ]
}

/// The same by hand: make a directory, rsync, up, ask what runs, down, ask what is left, remove.
fn by_hand(lab: &Path, example: &Path, round: usize, shared: bool) -> std::time::Duration {
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
rsync -a -e "ssh -F '{config}' {options}" '{example}/' "sandboxer01:$dir/"
ssh sandboxer01 "cd '$dir' && docker compose -p hand{round} up -d" 2>/dev/null
ssh sandboxer01 "docker ps -a --filter label=com.docker.compose.project=hand{round} --format json" >/dev/null
ssh sandboxer01 "cd '$dir' && docker compose -p hand{round} down -v -t {GRACE}" 2>/dev/null
ssh sandboxer01 "rm -rf '$dir'"
{close}"#,
        config = config.display(),
        example = example.display(),
        close = if shared { "ssh -O exit sandboxer01 2>/dev/null" } else { "" },
    );
    let mut bash = Command::new("bash");
    bash.arg("-c").arg(script).stdin(Stdio::null()).stdout(Stdio::null());
    let began = Instant::now();
    assert!(bash.status().expect("bash").success(), "the script by hand failed");
    began.elapsed()
}
