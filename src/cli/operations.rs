//! `operations list`, `get` and `cancel`.

use std::time::Duration;

use super::output::{CliError, Context, Outcome, Tone};
use super::table::Line;
use super::{record, table};
use crate::domain::figures::{age_of, bytes, took};
use crate::domain::operation::CancelOutcome;
use crate::domain::{Operation, OperationState, Time};

pub(super) async fn list(context: &mut Context<'_>) -> Outcome {
    let operations = context.client.operations().await?;
    if context.options.json {
        context.document(&operations)?;
    } else if operations.is_empty() {
        context.remark("no operations in the last day");
    } else {
        let now = context.now();
        let rows: Vec<_> = operations.iter().map(|operation| row(operation, now)).collect();
        table::print(
            context,
            &["ID", "KIND!", "ON!", "STATE!", "TOOK!", "BEGAN", "BY", "REMARK"],
            &rows,
        )?;
    }
    Ok(0)
}

fn row(operation: &Operation, now: Time) -> Line {
    let tone = match operation.state {
        OperationState::Running => Tone::Busy,
        OperationState::Failed => Tone::Bad,
        OperationState::Succeeded | OperationState::Cancelled | OperationState::Other(_) => {
            Tone::Plain
        }
    };
    let remark = match &operation.error {
        Some(error) => error.message.clone(),
        None => operation.stage.clone().unwrap_or_default(),
    };
    let cells = vec![
        operation.id.to_string(),
        operation.kind.to_string(),
        subject(operation).unwrap_or_else(|| "-".to_owned()),
        state(operation),
        took(ran(operation, now)),
        format!("{} ago", age_of(operation.started_at, now)),
        operation.actor.to_string(),
        remark,
    ];
    Line { tone, cells }
}

fn subject(operation: &Operation) -> Option<String> {
    let sandbox = operation.subject.sandbox().map(ToString::to_string);
    sandbox.or_else(|| operation.subject.snapshot().map(ToString::to_string))
}

fn state(operation: &Operation) -> String {
    match &operation.cancel_outcome {
        Some(CancelOutcome::Done) => format!("{}, cancelled too late", operation.state),
        Some(outcome) => format!("{}, {outcome}", operation.state),
        None if operation.cancel_requested && operation.state == OperationState::Running => {
            format!("{}, cancelling", operation.state)
        }
        None => operation.state.to_string(),
    }
}

fn ran(operation: &Operation, now: Time) -> Duration {
    operation.finished_at.unwrap_or(now).since(operation.started_at)
}

pub(super) async fn get(context: &mut Context<'_>, reference: &str) -> Outcome {
    let operation = context.client.operation(reference).await?;
    if context.options.json {
        context.document(&operation)?;
    } else {
        print(context, &operation)?;
    }
    Ok(0)
}

fn print(context: &mut Context<'_>, operation: &Operation) -> Result<(), CliError> {
    let now = context.now();
    let mut fields = vec![("id", operation.id.to_string()), ("kind", operation.kind.to_string())];
    let mut add =
        |key: &'static str, value: Option<String>| fields.extend(value.map(|value| (key, value)));
    add("name", operation.name.clone());
    add("sandbox", operation.subject.sandbox().map(ToString::to_string));
    add("snapshot", operation.subject.snapshot().map(ToString::to_string));
    add("state", Some(state(operation)));
    add("cancel", operation.cancel_outcome.as_ref().map(|outcome| outcome.words().to_owned()));
    add("stage", operation.stage.clone());
    add("done", operation.done.zip(operation.of).map(|(done, of)| format!("{done} of {of}")));
    add("moved", operation.bytes.map(bytes));
    add(
        "began",
        Some(format!("{} ({} ago)", operation.started_at, age_of(operation.started_at, now))),
    );
    add("ended", operation.finished_at.map(|end| end.to_string()));
    add("took", Some(took(ran(operation, now))));
    add("process", Some(format!("{} on {}", operation.pid, operation.host)));
    add("actor", Some(operation.actor.to_string()));
    if let Some(error) = &operation.error {
        add("error", Some(format!("{}: {}", error.code, error.message)));
        for line in error.causes.iter().flat_map(|cause| cause.lines()) {
            add("", Some(line.to_owned()));
        }
        add("hint", error.hint.clone());
    }
    record::block(context, &fields)
}

/// Asks, and returns at once. One that has ended is nothing to do.
pub(super) async fn cancel(context: &mut Context<'_>, reference: &str) -> Outcome {
    let mut operation = context.client.operation(reference).await?;
    if operation.state == OperationState::Running {
        let asked = context.client.cancel(&operation.id).await;
        operation = context.client.operation(operation.id.as_str()).await?;
        // It may have ended while it was asked; then there is nothing to complain about.
        if operation.state == OperationState::Running {
            asked?;
        }
    }
    if context.options.json {
        context.document(&operation)?;
        return Ok(0);
    }
    let id = context.options.clean(operation.id.as_str(), 200);
    if operation.state == OperationState::Running {
        context.line(&format!("asked {id} to end: {}", operation.kind.cancel_leaves()))?;
        let (pid, host) = (operation.pid, context.options.clean(&operation.host, 200));
        context.remark(&format!(
            "process {pid} on {host} does it; `sandboxer operations get {id}` shows whether it was undone, stopped or \
             done anyway\nif that process is dead: sandboxer recover"
        ));
    } else {
        context.line(&format!("{id} has ended already ({}): nothing to do", state(&operation)))?;
    }
    Ok(0)
}
