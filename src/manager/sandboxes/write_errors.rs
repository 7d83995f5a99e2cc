//! A create whose record could not be written, such as on a full disk: what is said of it (semantics 2.5).

use crate::domain::error::Error;
use crate::domain::extension::TeardownReport;
use crate::domain::name::SandboxId;

/// A record that cannot be written in the middle, such as on a full disk: a failure like another (semantics 2).
pub(crate) fn unwritten(id: &SandboxId, error: Error) -> Error {
    Error::new(error.code.clone(), format!("sandbox {id}: how far it came could not be written down"))
        .hint("what was made of it was taken away; mend what the cause says, such as a full disk, then create it again")
        .because(error)
        .detail("id", id.as_str())
}

/// The end of a create that could not be written down either: what became of it, and who brings its record in order.
pub(crate) fn end_unwritten(
    id: &SandboxId,
    mut error: Error,
    left: &str,
    unwritten: &Error,
) -> Error {
    let causes: Vec<String> =
        std::iter::once(unwritten.message.clone()).chain(unwritten.causes.clone()).collect();
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
pub(crate) fn left_words(report: Option<&TeardownReport>, kept: bool) -> String {
    let left = report.map(|report| report.leftovers.as_slice()).unwrap_or_default();
    let left: Vec<String> =
        left.iter().map(|resource| format!("{} {}", resource.kind, resource.id)).collect();
    match left.as_slice() {
        _ if kept => "it was kept on its host".to_owned(),
        [] => "nothing of it is left on its host".to_owned(),
        left => format!("still on the host: {}", left.join(", ")),
    }
}
