//! Operations: those that run and the last day's, and the one that a reference means.

use crate::domain::error::{Code, Error};
use crate::domain::operation::Operation;
use crate::manager::deps::Deps;

/// Operations that run and the last day's, oldest first, with what this process knows of their progress.
pub(crate) async fn list_operations(deps: &Deps) -> Result<Vec<Operation>, Error> {
    let mut operations = deps.operations.list().await?;
    for operation in &mut operations {
        if let Some(progress) = deps.jobs.latest(&operation.id) {
            operation.stage = Some(progress.stage);
            operation.done = progress.done;
            operation.of = progress.of;
            operation.bytes = progress.bytes;
        }
    }
    Ok(operations)
}

/// Operation by exact id, or a unique beginning of it (`op-` plus 4 characters or more).
pub(crate) async fn find_operation(deps: &Deps, reference: &str) -> Result<Operation, Error> {
    let operations = list_operations(deps).await?;
    if let Some(exact) = operations.iter().find(|operation| operation.id.as_str() == reference) {
        return Ok(exact.clone());
    }
    let long = reference.strip_prefix("op-").is_some_and(|rest| rest.len() >= 4);
    let mut matches =
        operations.iter().filter(|operation| long && operation.id.as_str().starts_with(reference));
    match (matches.next(), matches.next()) {
        (Some(one), None) => Ok(one.clone()),
        (Some(_), Some(_)) => {
            Err(Error::new(Code::Conflict, format!("several operations begin with {reference}"))
                .hint("write more of the id"))
        }
        _ => Err(Error::new(Code::NotFound, format!("there is no operation {reference:?}"))
            .hint("`sandboxer operations list` shows those that run and the last day's")),
    }
}
