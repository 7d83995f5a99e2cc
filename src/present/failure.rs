//! Failure of a sandbox or a snapshot: the line that says why first, then the end of what its step wrote.

use super::count::many;
use super::document::Document;
use super::role::Role;
use crate::domain::sandbox::Failure;
use crate::domain::telling::{folded, last_telling_line};

/// Lines of the output's end that are shown.
const END: usize = 12;

/// `, exit 125`; nothing where it had no status.
pub(crate) fn exit(status: Option<i32>) -> String {
    status.map(|status| format!(", exit {status}")).unwrap_or_default()
}

/// Adds why it failed, the step and how it ended, and the last lines that it wrote, with their argument lists folded. Sentences
/// that the face has told, or tells next, are not repeated at the end.
pub(crate) fn section(document: &mut Document, failure: &Failure, told: &[&str]) {
    document.heading("Failure");
    let untold = untold(&failure.output, told);
    let telling = last_telling_line(untold);
    if let Some(line) = telling {
        document.text(Role::Bad, 2, line);
    }
    document.pair("step", Role::Bad, format!("{}{}", failure.step, exit(failure.exit_status)));
    if untold.is_empty() && !failure.output.is_empty() {
        return;
    }
    let output = folded(untold);
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

/// Output without those of the sentences that end it: a step without a program's own output ends in its error.
fn untold<'a>(output: &'a str, told: &[&str]) -> &'a str {
    let mut rest = output.trim_end();
    while let Some(shorter) = told.iter().find_map(|words| before(rest, words.trim())) {
        rest = shorter.trim_end();
    }
    rest
}

/// Lines before the sentence that ends them, where it begins a line.
fn before<'a>(lines: &'a str, sentence: &str) -> Option<&'a str> {
    let rest = lines.strip_suffix(sentence).filter(|_| !sentence.is_empty())?;
    (rest.is_empty() || rest.ends_with('\n')).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_that_were_told_are_not_repeated_at_the_end() {
        let told = ["disk full", "tar: write error\nexit 2"];
        for (output, rest) in [
            ("disk full", ""),
            ("disk full\ntar: write error\nexit 2", ""),
            ("tar: x\ndisk full\ntar: write error\nexit 2\n", "tar: x"),
            ("disk full\ntar: x", "disk full\ntar: x"),
            ("the disk full", "the disk full"),
            ("", ""),
        ] {
            assert_eq!(untold(output, &told), rest, "{output:?}");
        }
        assert_eq!(untold("tar: x", &[""]), "tar: x");
    }
}
