//! A snapshot, printed: its record, its patches, and what hangs on it.

use std::sync::Arc;

use crate::cli::document;
use crate::cli::output::{CliError, Context, Outcome};
use crate::domain::lineage::SnapshotView;
use crate::domain::snapshot::SnapshotRecord;
use crate::present::{self, Document, lineage, snapshot};

/// Prints one record, whole as JSON or to be read.
pub(in crate::cli) fn show(context: &mut Context<'_>, found: &SnapshotRecord) -> Outcome {
    document::reply(context, found, |document, present| {
        snapshot::overview(document, found, present, None);
        snapshot::archive(document, found, present);
    })
}

/// Prints one snapshot, its patches, and the tree of what hangs on it.
pub(super) fn print(
    context: &mut Context<'_>,
    view: &SnapshotView,
    all: &[Arc<SnapshotView>],
) -> Result<(), CliError> {
    let present = context.present();
    let mut document = Document::default();
    snapshot::overview(&mut document, &view.record, present, None);
    document.heading("Based on it");
    lineage::below(&mut document, &present::below(all, &view.record.id), |_| None);
    snapshot::patches(&mut document, view);
    snapshot::archive(&mut document, &view.record, present);
    document::print(context, &document)
}
