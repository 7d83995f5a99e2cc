//! Failure of a sandbox or a snapshot: the line that says why first, then the end of what its step wrote.

use super::count::many;
use super::document::Document;
use super::role::Role;
use crate::domain::sandbox::Failure;
use crate::domain::telling::{folded, last_telling_line};

/// Lines of the output's end that are shown.
const END: usize = 12;

/// `, exit 125`; nothing where it had no status.
pub fn exit(status: Option<i32>) -> String {
    status.map(|status| format!(", exit {status}")).unwrap_or_default()
}

/// Adds why it failed, the step and how it ended, and the last lines that it wrote, with their argument lists folded.
pub fn section(document: &mut Document, failure: &Failure) {
    document.heading("Failure");
    let telling = last_telling_line(&failure.output);
    if let Some(line) = telling {
        document.text(Role::Bad, 2, line);
    }
    document.pair("step", Role::Bad, format!("{}{}", failure.step, exit(failure.exit_status)));
    let output = folded(&failure.output);
    let lines: Vec<&str> = output.lines().filter(|line| !line.trim().is_empty()).collect();
    if lines.is_empty() {
        return document.pair("output", Role::Dim, "none");
    }
    // It was told already.
    if lines.len() == 1 && telling == Some(lines[0].trim()) {
        return;
    }
    let earlier = lines.len().saturating_sub(END);
    document.gap();
    if earlier > 0 {
        let lines = many(earlier, "earlier line", "earlier lines");
        document.text(Role::Dim, 2, format!("{lines}: in its output, or in the raw record"));
    }
    for line in &lines[earlier..] {
        document.text(Role::Code, 2, *line);
    }
}
