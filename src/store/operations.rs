//! `operations.json`: what runs, and what ended within the last day.

use async_trait::async_trait;

use crate::domain::error::Error;
use crate::domain::name::OperationId;
use crate::domain::{Operation, OperationState, Time};
use crate::store::OperationStore;
use crate::store::document::Document;
use crate::store::document_entry::Record;
use crate::store::files::DataDir;

/// Time for which an ended operation is kept, in seconds.
const KEPT_S: u64 = 24 * 3600;

impl Record for Operation {
    fn key(&self) -> &str {
        self.id.as_str()
    }
}

/// The operations, in a file.
pub struct OperationFile {
    document: Document<Operation>,
}

impl OperationFile {
    pub(super) fn new(dir: &DataDir) -> Self {
        Self { document: Document::non_durable(dir, "operations") }
    }
}

/// Whether an operation is still to be kept at this time.
fn is_kept(operation: &Operation, now: Time) -> bool {
    operation.state == OperationState::Running
        || operation.finished_at.unwrap_or(operation.started_at) >= now.minus_seconds(KEPT_S)
}

#[async_trait]
impl OperationStore for OperationFile {
    async fn put(&self, mut operation: Operation) -> Result<(), Error> {
        // The time is the caller's: the operation's latest.
        let now = operation.finished_at.unwrap_or(operation.started_at);
        // Progress lives only in the process that makes it.
        (operation.stage, operation.done, operation.of, operation.bytes) = (None, None, None, None);
        let mut writing = self.document.write().await?;
        let place = writing.content.find(operation.id.as_str())?.map(|(index, _)| index);
        match place {
            Some(index) => writing.replace(index, operation)?,
            None => writing.add(operation)?,
        };
        writing.retain(|operation| is_kept(operation, now));
        self.document.commit(writing).await
    }

    async fn request_cancel(&self, id: &OperationId) -> Result<Option<Operation>, Error> {
        let mut writing = self.document.write().await?;
        let Some((index, operation)) = writing.content.find(id.as_str())? else { return Ok(None) };
        let operation = Operation::clone(operation);
        if operation.state != OperationState::Running || operation.cancel_requested {
            return Ok(Some(operation));
        }
        let asked = Operation { cancel_requested: true, ..operation };
        writing.replace(index, asked.clone())?;
        self.document.commit(writing).await?;
        Ok(Some(asked))
    }

    async fn version(&self) -> Result<u64, Error> {
        self.document.version().await
    }

    async fn get(&self, id: &OperationId) -> Result<Option<Operation>, Error> {
        Ok(self
            .document
            .read()
            .await?
            .find(id.as_str())?
            .map(|(_, operation)| Operation::clone(operation)))
    }

    async fn list(&self) -> Result<Vec<Operation>, Error> {
        let content = self.document.read().await?;
        let mut operations: Vec<Operation> =
            content.records()?.into_iter().map(|operation| Operation::clone(operation)).collect();
        operations.sort_by(|a, b| (a.started_at, &a.id).cmp(&(b.started_at, &b.id)));
        Ok(operations)
    }
}
