//! Errors of a create whose record could not be written, such as on a full disk (semantics 2.5).

use crate::domain::error::Error;
use crate::domain::name::SandboxId;
use crate::domain::teardown::TeardownReport;

/// Error of a record that could not be written in the middle: a failure like another (semantics 2).
pub(crate) fn not_written_error(id: &SandboxId, error: Error) -> Error {
    Error::new(error.code.clone(), format!("sandbox {id}: how far it came could not be written down"))
        .hint("what was made of it was taken away; mend what the cause says, such as a full disk, then create it again")
        .because(error)
        .detail("id", id.as_str())
}

/// Error of a create whose end could not be written either: its result, and how its record is brought in order.
pub(crate) fn end_not_written_error(
    id: &SandboxId,
    mut error: Error,
    left: &str,
    not_written_error: &Error,
) -> Error {
    let causes: Vec<String> = std::iter::once(not_written_error.message.clone())
        .chain(not_written_error.causes.clone())
        .collect();
    error.message =
        format!("sandbox {id} failed, and that could not be written down: {}", error.message);
    error
        .hint(format!(
            "{left}; mend what the cause says, such as a full disk: then `sandboxer recover` brings its record in order"
        ))
        .because(causes.join(": "))
        .detail("id", id.as_str())
}

/// Remains of a failed create on its host, in a sentence.
pub(crate) fn leftover_words(report: Option<&TeardownReport>, kept: bool) -> String {
    match report.map(TeardownReport::left_words).unwrap_or_default().as_slice() {
        _ if kept => "it was kept on its host".to_owned(),
        [] => "nothing of it is left on its host".to_owned(),
        left => format!("still on the host: {}", left.join(", ")),
    }
}
