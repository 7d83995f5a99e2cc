//! Operation: the columns of its table, and its record to be read.

use std::time::Duration;

use super::document::Document;
use super::error;
use super::moment::Present;
use super::role::Role;
use super::table::{Column, or_nothing};
use crate::domain::figures::{age_of, bytes, took};
use crate::domain::operation::CancelOutcome;
use crate::domain::update::Progress;
use crate::domain::{Operation, OperationState, Time};

/// Columns of a list of operations.
pub(crate) const COLUMNS: &[Column<Operation>] = &[
    Column::whole("ID", |operation, _| operation.id.to_string()),
    Column::whole("KIND", |operation, _| operation.kind.to_string()),
    Column::whole("ON", |operation, _| {
        let sandbox = operation.subject.sandbox().map(ToString::to_string);
        let snapshot = || operation.subject.snapshot().map(ToString::to_string);
        or_nothing(sandbox.or_else(snapshot))
    }),
    Column::whole("STATE", |operation, _| state_words(operation)),
    Column::whole("TOOK", |operation, now| took(ran(operation, now))),
    Column::new("BEGAN", |operation, now| format!("{} ago", age_of(operation.started_at, now))),
    Column::new("BY", |operation, _| operation.actor.to_string()),
    Column::new("WHAT", |operation, _| match &operation.error {
        Some(error) => error.message.clone(),
        None => operation.stage.clone().unwrap_or_default(),
    }),
];

/// How a row is meant.
pub(crate) fn role(operation: &Operation) -> Role {
    match operation.state {
        OperationState::Running => Role::Busy,
        OperationState::Failed => Role::Bad,
        OperationState::Succeeded | OperationState::Cancelled | OperationState::Other(_) => {
            Role::Plain
        }
    }
}

/// The state, and how it was left where it was cancelled: `cancelled, undone`.
pub(crate) fn state_words(operation: &Operation) -> String {
    match &operation.cancel_outcome {
        Some(CancelOutcome::Done) => format!("{}, cancelled too late", operation.state),
        Some(outcome) => format!("{}, {outcome}", operation.state),
        None if operation.cancel_requested && operation.state == OperationState::Running => {
            format!("{}, cancelling", operation.state)
        }
        None => operation.state.to_string(),
    }
}

/// `3/6 transfer`: the step that an operation is at.
pub(crate) fn step_words(stage: &str, step: u32, steps: u32) -> String {
    format!("{step}/{steps} {stage}")
}

/// `a1b2c3d4 2/5 transfer 12M: what the program said`.
pub(crate) fn progress_words(progress: &Progress) -> String {
    let sandbox = progress.sandbox_id.as_ref().map(ToString::to_string);
    let subject = sandbox.or_else(|| progress.snapshot_id.as_ref().map(ToString::to_string));
    let mut words: Vec<String> = subject.into_iter().collect();
    words.push(match progress.steps {
        0 => progress.stage.clone(),
        steps => step_words(&progress.stage, progress.step, steps),
    });
    match (progress.bytes, progress.done, progress.of) {
        // Where bytes are told, the step's unit is bytes.
        (Some(_), Some(done), Some(of)) => words.push(format!("{} of {}", bytes(done), bytes(of))),
        (Some(moved), _, _) => words.push(bytes(moved)),
        (None, Some(done), Some(of)) => words.push(format!("{done}/{of}")),
        (None, None, _) | (None, Some(_), None) => {}
    }
    let text = words.join(" ");
    match &progress.message {
        Some(message) => format!("{text}: {message}"),
        None => text,
    }
}

fn ran(operation: &Operation, now: Time) -> Duration {
    operation.finished_at.unwrap_or(now).since(operation.started_at)
}

/// Adds its record.
pub(crate) fn record(document: &mut Document, operation: &Operation, present: Present<'_>) {
    document.plain("id", &operation.id);
    document.plain("kind", &operation.kind);
    document.maybe("name", Role::Plain, operation.name.as_deref());
    let (sandbox, snapshot) = (operation.subject.sandbox(), operation.subject.snapshot());
    document.maybe("sandbox", Role::Plain, sandbox.map(ToString::to_string));
    document.maybe("snapshot", Role::Plain, snapshot.map(ToString::to_string));
    document.pair("state", role(operation), state_words(operation));
    document.maybe(
        "cancel",
        Role::Warn,
        operation.cancel_outcome.as_ref().map(CancelOutcome::words),
    );
    document.maybe("stage", Role::Plain, operation.stage.as_deref());
    let done = operation.done.zip(operation.of);
    document.maybe("done", Role::Plain, done.map(|(done, of)| format!("{done} of {of}")));
    document.maybe("moved", Role::Plain, operation.bytes.map(bytes));
    document.plain("began", present.ago(operation.started_at));
    document.maybe("ended", Role::Plain, operation.finished_at.map(|end| present.date(end)));
    document.plain("took", took(ran(operation, present.now)));
    document.plain("process", format!("{} on {}", operation.pid, operation.host));
    document.plain("actor", &operation.actor);
    if let Some(problem) = &operation.error {
        document.heading("Error");
        error::section(document, problem);
    }
}
