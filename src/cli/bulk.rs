//! End of each target of a verb that has several, and the one status of them all.

use std::collections::HashSet;

use futures_util::stream::{self, StreamExt as _};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::interrupt::{Running, awaited};
use super::output::{CliError, Context, Outcome};
use crate::client::problem::exit_status;
use crate::domain::Code;
use crate::domain::error::Error;

/// Outcome for one target of a bulk verb.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BulkItem {
    /// The sandbox's or the snapshot's id; what was typed, where it names none.
    pub id: String,
    /// Whether it is done.
    pub ok: bool,
    /// Why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Error>,
    /// Remark on it: until when which undo snapshot is kept, or why there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

impl BulkItem {
    pub(super) fn new(id: impl Into<String>, error: Option<Error>) -> Self {
        Self { id: id.into(), ok: error.is_none(), error, message: None }
    }
}

/// How many are worked on at a time. A host limits its own sessions below that, and removes in one call what comes together.
const AT_ONCE: usize = 32;

/// Target: the text that was typed, and the id that it names.
pub(super) type Target<T> = (String, Result<T, Error>);

/// Finds what each reference names; the same thing twice is one target.
pub(super) async fn resolve<T, F: Future<Output = Result<T, Error>>>(
    references: &[String],
    find: impl Fn(String) -> F,
    id: impl Fn(&T) -> String,
) -> Vec<Target<T>> {
    let find = |reference: &String| {
        let (typed, found) = (reference.clone(), find(reference.clone()));
        async move { (typed, found.await) }
    };
    let mut found: Vec<Target<T>> =
        stream::iter(references).map(find).buffered(AT_ONCE).collect().await;
    let mut seen = HashSet::new();
    found.retain(|(typed, target)| match target {
        Ok(thing) => seen.insert((true, id(thing))),
        Err(_) => seen.insert((false, typed.clone())),
    });
    found
}

/// Works on each target that was found, so many at a time; what became of each, in the order in which they were typed. Of one
/// that was not found the error is what became of it.
pub(super) async fn each<T, N: Default>(
    context: &mut Context<'_>,
    targets: &[Target<T>],
    work: impl AsyncFn(&Running<'_>, &T) -> (BulkItem, N),
) -> Result<Vec<(BulkItem, N)>, CliError> {
    awaited(context, async |running| {
        let one = async |(typed, target): &Target<T>| match target {
            Ok(found) => work(running, found).await,
            Err(problem) => (BulkItem::new(typed.as_str(), Some(problem.clone())), N::default()),
        };
        stream::iter(targets).map(one).buffered(AT_ONCE).collect().await
    })
    .await
}

/// Answers with things of which each was tried: as one document, or as `show` prints them and why those failed that did. The
/// status is that of all.
pub(super) fn report<T: Serialize + ?Sized>(
    context: &mut Context<'_>,
    things: &T,
    items: &[BulkItem],
    show: impl FnOnce(&mut Context<'_>) -> Result<(), CliError>,
) -> Outcome {
    let printed = context.reply(things, |context| {
        show(context)?;
        for item in items {
            complain(context, item, false);
        }
        Ok(())
    });
    end(context, items, printed.map(drop))
}

/// Prints what became of each, and ends with the status of all: 0, the one code that all failures have when all
/// failed, else `partial`. `done` is the word for one that is done.
pub(super) fn bulk(
    context: &mut Context<'_>,
    items: &[BulkItem],
    done: impl Fn(&BulkItem) -> &'static str,
) -> Outcome {
    let printed = print(context, items, done);
    end(context, items, printed)
}

/// Ends with the status of all, after they were printed.
pub(super) fn end(
    context: &Context<'_>,
    items: &[BulkItem],
    printed: Result<(), CliError>,
) -> Outcome {
    end_with(context, summary(items), printed)
}

/// Ends with the status of the one problem that stands for all, after they were printed.
pub(super) fn end_with(
    context: &Context<'_>,
    problem: Option<Error>,
    printed: Result<(), CliError>,
) -> Outcome {
    let status = problem.as_ref().map_or(0, |problem| exit_status(&problem.code));
    match printed {
        // What failed, failed, whether or not anybody read the list.
        Err(CliError::PipeClosed) => return Ok(status),
        other => other?,
    }
    match problem {
        Some(problem) if context.options.json => Err(problem.into()),
        _ => Ok(status),
    }
}

fn print(
    context: &mut Context<'_>,
    items: &[BulkItem],
    done: impl Fn(&BulkItem) -> &'static str,
) -> Result<(), CliError> {
    if context.options.json {
        return context.document(items);
    }
    for item in items {
        if item.error.is_none() {
            context.say(&format!("{} {}", done(item), item.id))?;
        }
        complain(context, item, items.len() == 1);
    }
    Ok(())
}

/// Shows why one is not done, and which; `alone`: it is plain which.
pub(super) fn complain(context: &mut Context<'_>, item: &BulkItem, alone: bool) {
    let Some(problem) = &item.error else { return };
    if alone || problem.message.contains(&item.id) {
        return context.error(problem);
    }
    let mut problem = problem.clone();
    problem.message = format!("{}: {}", context.options.clean(&item.id, 200), problem.message);
    context.error(&problem);
}

/// The one problem that stands for all failures.
pub(super) fn summary(items: &[BulkItem]) -> Option<Error> {
    let problems: Vec<_> = items.iter().filter_map(|item| item.error.as_ref()).collect();
    let first = *problems.first()?;
    if items.len() == 1 {
        return Some(first.clone());
    }
    let code = common_code(&problems, problems.len() < items.len(), Code::Partial);
    let mut problem = Error::new(code, format!("{} of {} failed", problems.len(), items.len()));
    problem.retryable = problems.iter().all(|problem| problem.retryable);
    Some(problem)
}

/// The code that stands for all failures: `partial` where something went well, else the one that all of them have, else `mixed`.
pub(super) fn common_code(problems: &[&Error], some_went_well: bool, mixed: Code) -> Code {
    match problems.first() {
        _ if some_went_well => Code::Partial,
        Some(first) if problems.iter().all(|problem| problem.code == first.code) => {
            first.code.clone()
        }
        _ => mixed,
    }
}
