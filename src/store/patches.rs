//! `patches.json`.

use std::collections::BTreeSet;

use async_trait::async_trait;

use crate::domain::error::{Code, Error, Unique};
use crate::domain::name::{EventId, PatchId};
use crate::domain::patch::Patch;
use crate::store::PatchStore;
use crate::store::document::Document;
use crate::store::document_entry::{DocumentEntry, Record};
use crate::store::files::DataDir;

impl Record for Patch {
    fn key(&self) -> &str {
        self.id.as_str()
    }
}

/// The patches, in a file.
pub struct PatchFile {
    document: Document<Patch>,
}

impl PatchFile {
    pub(super) fn new(dir: &DataDir) -> Self {
        Self { document: Document::new(dir, "patches") }
    }
}

#[async_trait]
impl PatchStore for PatchFile {
    async fn insert(&self, mut patch: Patch) -> Result<Patch, Error> {
        let mut writing = self.document.write().await?;
        for other in writing.content.records()? {
            if other.id == patch.id {
                return Err(Error::taken(Unique::Id, "there is a patch with this id"));
            }
            if other.snapshot_id == patch.snapshot_id && other.sequence == patch.sequence {
                let message = "there is a patch with this sequence";
                return Err(Error::new(Code::Conflict, message).detail("field", "sequence"));
            }
        }
        patch.revision = 1;
        writing.add(patch.clone())?;
        self.document.commit(writing).await?;
        Ok(patch)
    }

    async fn list(&self) -> Result<Vec<Patch>, Error> {
        let content = self.document.read().await?;
        let mut patches: Vec<Patch> =
            content.records()?.into_iter().map(|patch| Patch::clone(patch)).collect();
        patches.sort_by(|a, b| (&a.snapshot_id, a.sequence).cmp(&(&b.snapshot_id, b.sequence)));
        Ok(patches)
    }

    async fn clear_pending(&self, events: &BTreeSet<EventId>) -> Result<(), Error> {
        let without = |_: &DocumentEntry<Patch>, patch: &Patch| {
            patch.pending.iter().any(|event| events.contains(&event.id)).then(|| {
                let mut patch = Patch::clone(patch);
                patch.pending.retain(|event| !events.contains(&event.id));
                patch
            })
        };
        self.document.rewrite(without).await.map(|_| ())
    }

    async fn remove(&self, id: &PatchId) -> Result<Option<Patch>, Error> {
        let mut writing = self.document.write().await?;
        let Some((index, old)) = writing.content.find(id.as_str())? else { return Ok(None) };
        let gone = Patch::clone(old);
        writing.remove(index);
        self.document.commit(writing).await?;
        Ok(Some(gone))
    }

    async fn version(&self) -> Result<u64, Error> {
        self.document.version().await
    }
}
