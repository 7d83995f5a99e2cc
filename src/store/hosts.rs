//! `hosts.json`: what each host said last.

use std::sync::Arc;

use async_trait::async_trait;

use crate::domain::error::Error;
use crate::domain::name::HostName;
use crate::domain::root::HostRecord;
use crate::store::document::Document;
use crate::store::document_entry::Record;
use crate::store::files::DataDir;
use crate::store::{Change, HostStore};

impl Record for HostRecord {
    fn key(&self) -> &str {
        &self.id
    }
}

/// The hosts, in a file.
pub struct HostFile {
    document: Document<HostRecord>,
}

impl HostFile {
    pub(super) fn new(dir: &DataDir) -> Self {
        Self { document: Document::new(dir, "hosts") }
    }
}

#[async_trait]
impl HostStore for HostFile {
    async fn get(&self, host: &HostName) -> Result<Option<HostRecord>, Error> {
        let content = self.document.read().await?;
        Ok(content.find(&HostRecord::key(host))?.map(|(_, record)| HostRecord::clone(record)))
    }

    async fn update(
        &self,
        host: &HostName,
        change: Change<'_, HostRecord>,
    ) -> Result<HostRecord, Error> {
        let mut writing = self.document.write().await?;
        let content = Arc::clone(&writing.content);
        let found = content.find(&HostRecord::key(host))?;
        let old = found
            .map_or_else(|| HostRecord::unknown(host), |(_, record)| HostRecord::clone(record));
        let mut new = old.clone();
        change(&mut new)?;
        if new == old {
            return Ok(new);
        }
        new.revision = old.revision + 1;
        match found {
            Some((index, _)) => writing.replace(index, new.clone())?,
            None => writing.add(new.clone())?,
        };
        self.document.commit(writing).await?;
        Ok(new)
    }
}
