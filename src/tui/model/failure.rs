//! Failure of a sandbox or a snapshot, in its record: the line that says why first, then the end of what its step wrote.

use super::text_block::{Role, TextBlock};
use crate::domain::sandbox::Failure;
use crate::domain::telling::{folded, last_telling_line};
use crate::domain::text::plural;

/// Lines of the output's end that are shown.
const END: usize = 12;

/// Why it failed, the step and how it ended, and the last lines that it wrote, with their argument lists folded.
pub(super) fn section(block: &mut TextBlock, failure: &Failure) {
    block.heading("Failure");
    if let Some(line) = last_telling_line(&failure.output) {
        block.text(Role::Bad, 2, line);
    }
    let exit = failure.exit_status.map(|status| format!(", exit {status}")).unwrap_or_default();
    block.pair("step", Role::Bad, &format!("{}{exit}", failure.step));
    let output = folded(&failure.output);
    let lines: Vec<&str> = output.lines().filter(|line| !line.trim().is_empty()).collect();
    if lines.is_empty() {
        return block.pair("output", Role::Dim, "none");
    }
    if lines.len() == 1
        && last_telling_line(&failure.output).is_some_and(|line| line == lines[0].trim())
    {
        return;
    }
    let earlier = lines.len().saturating_sub(END);
    block.gap();
    if earlier > 0 {
        let lines = plural(earlier as u64, "earlier line", "earlier lines");
        block.text(Role::Dim, 2, &format!("{lines}: in its output, or in the raw record"));
    }
    for line in &lines[earlier..] {
        block.text(Role::Code, 2, line);
    }
}
