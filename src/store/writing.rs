//! A turn to write a document.

use std::sync::Arc;

use crate::domain::error::Error;
use crate::store::content::Content;
use crate::store::document_entry::{DocumentEntry, Record};
use crate::store::lock::FileLockGuard;

/// Turn to write a document, and its records as they are to be.
pub(super) struct Writing<R> {
    /// Content of the file; nobody changes it while this lives.
    pub(super) content: Arc<Content<R>>,
    /// Its text.
    pub(super) file: Arc<String>,
    /// Entries to write: the content's, where nothing was changed yet.
    pub(super) entries: Vec<Arc<DocumentEntry<R>>>,
    _guard: FileLockGuard,
}

impl<R: Record> Writing<R> {
    pub(super) fn new(content: Arc<Content<R>>, file: Arc<String>, guard: FileLockGuard) -> Self {
        let entries = content.entries.clone();
        Self { content, file, entries, _guard: guard }
    }

    /// All records as they are to be.
    pub(super) fn records(&self) -> Result<Vec<&Arc<R>>, Error> {
        self.entries.iter().map(|entry| self.content.meaning(entry)).collect()
    }

    /// The record with this index as it is to be.
    pub(super) fn record(&self, index: usize) -> Result<&Arc<R>, Error> {
        self.content.meaning(&self.entries[index])
    }

    /// Adds a record; as it will be read.
    pub(super) fn add(&mut self, record: R) -> Result<&Arc<R>, Error> {
        self.entries.push(Arc::new(DocumentEntry::new(record, None)?));
        self.record(self.entries.len() - 1)
    }

    /// Replaces the record with this index; the new one as it will be read.
    pub(super) fn replace(&mut self, index: usize, record: R) -> Result<&Arc<R>, Error> {
        let old = &self.entries[index];
        let new = DocumentEntry::new(record, Some((old, old.text(&self.file))))?;
        self.entries[index] = Arc::new(new);
        self.record(index)
    }

    /// Removes the record with this index.
    pub(super) fn remove(&mut self, index: usize) {
        self.entries.remove(index);
    }

    /// Keeps these records, and what cannot be read.
    pub(super) fn retain(&mut self, keep: impl Fn(&R) -> bool) {
        self.entries.retain(|entry| entry.read().ok().is_none_or(|record| keep(record)));
    }
}
