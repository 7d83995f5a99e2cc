//! What became of each target of a verb that has several, and the one status of them all.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::output::{Face, Outcome, Stop};
use crate::client::problem::exit_status;
use crate::domain::Code;
use crate::domain::error::Error;

/// What became of one target of a bulk verb.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BulkItem {
    /// The sandbox's or the snapshot's id; what was typed, where it names none.
    pub id: String,
    /// Whether it is done.
    pub ok: bool,
    /// Why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Error>,
}

impl BulkItem {
    pub(super) fn new(id: impl Into<String>, ended: Result<(), Error>) -> Self {
        Self { id: id.into(), ok: ended.is_ok(), error: ended.err() }
    }
}

/// Prints what became of each, and ends with the status of all: 0, the one code that all failures have when all
/// failed, else `partial`. `done` is the word for one that is done.
pub(super) fn bulk(
    face: &mut Face<'_>,
    items: &[BulkItem],
    done: impl Fn(&BulkItem) -> &'static str,
) -> Outcome {
    let printed = print(face, items, done);
    end(face, items, printed)
}

/// Ends with the status of all, after they were printed.
pub(super) fn end(face: &Face<'_>, items: &[BulkItem], printed: Result<(), Stop>) -> Outcome {
    let problem = summary(items);
    let status = problem.as_ref().map_or(0, |problem| exit_status(&problem.code));
    match printed {
        // What failed, failed, whether or not anybody read the list.
        Err(Stop::PipeClosed) => return Ok(status),
        other => other?,
    }
    match problem {
        Some(problem) if face.look.json => Err(problem.into()),
        _ => Ok(status),
    }
}

fn print(
    face: &mut Face<'_>,
    items: &[BulkItem],
    done: impl Fn(&BulkItem) -> &'static str,
) -> Result<(), Stop> {
    if face.look.json {
        return face.document(items);
    }
    for item in items {
        if item.error.is_none() {
            let id = face.look.clean(&item.id, 200);
            face.line(&format!("{} {id}", done(item)))?;
        }
        complain(face, item, items.len() == 1);
    }
    Ok(())
}

/// Shows why one is not done, and which; `alone`: it is plain which.
pub(super) fn complain(face: &mut Face<'_>, item: &BulkItem, alone: bool) {
    let Some(problem) = &item.error else { return };
    if alone || problem.message.contains(&item.id) {
        return face.error(problem);
    }
    let mut problem = problem.clone();
    problem.message = format!("{}: {}", face.look.clean(&item.id, 200), problem.message);
    face.error(&problem);
}

/// The one problem that stands for all failures.
fn summary(items: &[BulkItem]) -> Option<Error> {
    let problems: Vec<_> = items.iter().filter_map(|item| item.error.as_ref()).collect();
    let first = *problems.first()?;
    if items.len() == 1 {
        return Some(first.clone());
    }
    let same =
        problems.len() == items.len() && problems.iter().all(|problem| problem.code == first.code);
    let code = if same { first.code.clone() } else { Code::Partial };
    let mut problem = Error::new(code, format!("{} of {} failed", problems.len(), items.len()));
    problem.retryable = problems.iter().all(|problem| problem.retryable);
    Some(problem)
}
