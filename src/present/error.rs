//! Error: its sentence, causes and hint.

use super::document::Document;
use super::role::Role;
use crate::domain::error::Error;

/// A sentence, and what to do: `it was refused; sandboxer recover`.
pub(crate) fn hinted(message: &str, hint: Option<&String>) -> String {
    match hint {
        Some(hint) => format!("{message}; {hint}"),
        None => message.to_owned(),
    }
}

/// Adds an error in full.
pub(crate) fn section(document: &mut Document, problem: &Error) {
    document.text(Role::Bad, 0, &problem.message);
    if !problem.causes.is_empty() {
        document.heading("Because");
    }
    for cause in &problem.causes {
        document.text(Role::Plain, 2, cause);
    }
    if let Some(hint) = &problem.hint {
        document.heading("What to do");
        document.text(Role::Key, 2, hint);
    }
    document.gap();
    document.pair("code", Role::Dim, problem.code.as_str());
    if problem.retryable {
        document.pair("", Role::Dim, "the same request may succeed later");
    }
}
