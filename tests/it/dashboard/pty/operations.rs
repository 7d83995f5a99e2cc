//! Operations of other processes, seen on a terminal: real processes, a real data directory, and a real state file.

use std::process::{Command, Stdio};

use super::unseen::Gate;
use super::{Place, leave};

#[test]
fn what_another_process_does_is_one_row_and_is_told_of_at_the_next_start() {
    let place = Place::new();
    let gate = Gate::new(&place);
    let console = place.console(&[]);
    console.wait_for("nothing happened in the last day");
    let mut script = Command::new(env!("CARGO_BIN_EXE_sandboxer"))
        .env_clear()
        .envs(place.env())
        .env("FAILPOINTS", gate.failpoints())
        .args(["--actor", "agt:nightly", "create", "--name", "by-script", "--quiet"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    gate.wait();
    let begun = console.wait_until("its begin", |text| text.contains("◐ create by-script"));
    assert!(begun.contains("by agt:nightly"), "{begun}");
    gate.open();
    assert!(script.wait().unwrap().success());
    let ended = console.wait_until("its end", |text| text.contains("✓ create by-script"));
    let rows = ended.lines().filter(|line| {
        let words = ["requested by-script", "provisioning by-script", "ready by-script"];
        line.contains("create by-script") || words.iter().any(|word| line.contains(word))
    });
    assert_eq!(rows.count(), 1, "its events are a part of it:\n{ended}");
    assert!(!ended.contains("since you last looked"), "nobody had looked before:\n{ended}");
    leave(console);
    place.make(&["--actor", "agt:nightly", "destroy", "by-script"]);
    let mut console = place.console(&[]);
    let told = "since you last looked: 1 destroyed by agt:nightly";
    console.wait_for(told);
    console.wait_for("✓ destroy by-script");
    console.keys("5\r");
    console.wait_until("the events", |text| text.contains("destroyed by-script"));
    console.keys("\u{1b}");
    console.wait_until("no line any more", |text| !text.contains(told));
    // The record of what is gone, from its row and from the filter.
    console.keys("\r");
    console
        .wait_until("its record", |text| text.contains("destroyed") && text.contains("Timeline"));
    console.keys("\u{1b}");
    console.keys("1/state:destroyed\r");
    // Read while the filter's words are on the screen already.
    console.wait_for("○");
    leave(console);
}
