//! Failure of a sandbox or a snapshot, in its record.

use super::text_block::{Role, TextBlock};
use crate::domain::sandbox::Failure;
use crate::domain::telling::{folded, telling_lines};

/// The step, how it ended, and what it wrote.
pub(super) fn section(block: &mut TextBlock, failure: &Failure) {
    block.heading("Failure");
    block.pair("step", Role::Bad, &failure.step);
    block.maybe("exit status", Role::Bad, failure.exit_status.map(|status| status.to_string()));
    if failure.output.is_empty() {
        block.pair("output", Role::Dim, "none");
    }
    output(block, &failure.output);
}

/// What a step wrote: why it failed first, then all of it with its argument lists folded.
fn output(block: &mut TextBlock, text: &str) {
    let telling = telling_lines(text);
    if telling.len() < text.lines().count() {
        for line in telling {
            block.text(Role::Bad, 2, line);
        }
        block.gap();
    }
    for line in folded(text).lines() {
        block.text(Role::Code, 2, line);
    }
}
