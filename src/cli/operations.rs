//! `operations list`, `get` and `cancel`.

use super::output::{Context, Outcome};
use super::{document, table};
use crate::domain::OperationState;
use crate::present::operation;

pub(super) async fn list(context: &mut Context<'_>) -> Outcome {
    let operations = context.client.operations().await?;
    let nothing = "no operations in the last day";
    table::reply(context, &operations, nothing, operation::COLUMNS, operation::role)
}

pub(super) async fn get(context: &mut Context<'_>, reference: &str) -> Outcome {
    let found = context.client.operation(reference).await?;
    document::reply(context, &found, |document, present| {
        operation::record(document, &found, present);
    })
}

/// Asks, and returns at once. One that has ended is nothing to do.
pub(super) async fn cancel(context: &mut Context<'_>, reference: &str) -> Outcome {
    let mut found = context.client.operation(reference).await?;
    if found.state == OperationState::Running {
        let asked = context.client.cancel(&found.id).await;
        found = context.client.operation(found.id.as_str()).await?;
        // It may have ended while it was asked; then there is nothing to complain about.
        if found.state == OperationState::Running {
            asked?;
        }
    }
    if context.options.json {
        context.document(&found)?;
        return Ok(0);
    }
    let id = &found.id;
    if found.state == OperationState::Running {
        context.say(&format!("asked {id} to end: {}", found.kind.cancel_leaves()))?;
        context.remark(&format!(
            "process {} on {} does it; `sandboxer operations get {id}` shows whether it was undone, stopped or done \
             anyway",
            found.pid, found.host
        ));
        context.remark("if that process is dead: sandboxer recover");
    } else {
        let state = operation::state_words(&found);
        context.say(&format!("{id} has ended already ({state}): nothing to do"))?;
    }
    Ok(0)
}
