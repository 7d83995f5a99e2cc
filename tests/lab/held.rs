//! A command that stands still at a point of its work until the test has done what it wants to meanwhile.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::lab::{Bench, Started, wait_until};

/// What lets it go on.
#[must_use]
pub(crate) struct Gate(PathBuf);

impl Gate {
    pub(crate) fn open(self) {
        fs::write(self.0, "").unwrap();
    }
}

/// Starts the command, and comes back when it stands at the failpoint.
pub(crate) fn held(bench: &Bench, point: &str, args: &[&str]) -> (Started, Gate) {
    held_and(bench, point, "", bench.command(args))
}

/// As `held`, with further failpoints, as in `;snapshot.cleared=return`.
pub(crate) fn held_and(
    bench: &Bench,
    point: &str,
    more: &str,
    mut command: Command,
) -> (Started, Gate) {
    let gate = (0..99)
        .map(|n| bench.path(format!("gate-{n}")))
        .find(|gate| !reached(gate).exists())
        .unwrap();
    command.env("FAILPOINTS", format!("{point}=return({}){more}", gate.display()));
    let started = Started::spawn(command);
    wait_until(&format!("it stands at {point}"), || reached(&gate).exists());
    (started, Gate(gate))
}

fn reached(gate: &std::path::Path) -> PathBuf {
    gate.with_extension("reached")
}
