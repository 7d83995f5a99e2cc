//! A snapshot's whole record, as text to be read.

use std::sync::Arc;

use super::jobs::Jobs;
use super::sandboxes::Sandboxes;
use super::snapshots::Snapshots;
use super::text_block::TextBlock;
use crate::domain::lineage::SnapshotView;
use crate::present::{self, Document, Present, bytes, lineage, snapshot};

/// The overlay.
#[derive(Debug, Clone)]
pub struct SnapshotDetails {
    /// Snapshot as it was read last; it stays when the snapshot is gone.
    pub view: Arc<SnapshotView>,
    /// The first line on the screen.
    pub offset: usize,
}

impl SnapshotDetails {
    /// The record as lines of a width.
    pub fn block(
        &self,
        width: usize,
        present: Present<'_>,
        jobs: &Jobs,
        all: &Snapshots,
        sandboxes: &Sandboxes,
    ) -> TextBlock {
        let (view, record) = (self.view.as_ref(), &self.view.record);
        let mut document = Document::default();
        let work = jobs.of_snapshot(&record.id).map(|job| {
            let stage = job.stage_words().map(|stage| format!(" {stage}")).unwrap_or_default();
            let moved = job.moved().map(|moved| format!(", {}", bytes(moved))).unwrap_or_default();
            format!("{}{stage}{moved}", job.kind)
        });
        snapshot::overview(&mut document, record, present, work);
        document.heading("Based on it");
        let rows = present::below(all.all(), &record.id);
        lineage::below(&mut document, &rows, |based| {
            sandboxes.get(&based.id).map(|entry| &*entry.record)
        });
        snapshot::patches(&mut document, view);
        snapshot::archive(&mut document, record, present);
        TextBlock::of(&document, width)
    }
}
