//! Failure of a sandbox or a snapshot, in its record.

use super::paper::{Paper, Role};
use crate::domain::sandbox::Failure;
use crate::domain::telling::{folded, telling_lines};

/// The step, how it ended, and what it wrote.
pub(super) fn section(paper: &mut Paper, failure: &Failure) {
    paper.heading("Failure");
    paper.pair("step", Role::Bad, &failure.step);
    paper.maybe("exit status", Role::Bad, failure.exit_status.map(|status| status.to_string()));
    if failure.output.is_empty() {
        paper.pair("output", Role::Dim, "none");
    }
    output(paper, &failure.output);
}

/// What a step wrote: why it failed first, then all of it with its argument lists folded.
fn output(paper: &mut Paper, text: &str) {
    let telling = telling_lines(text);
    if telling.len() < text.lines().count() {
        for line in telling {
            paper.text(Role::Bad, 2, line);
        }
        paper.gap();
    }
    for line in folded(text).lines() {
        paper.text(Role::Code, 2, line);
    }
}
