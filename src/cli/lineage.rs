//! Where a sandbox comes from, how far its patches have come, and what was taken of it: the end of `get`.

use schemars::JsonSchema;
use serde::Serialize;

use crate::client::{Client, Error};
use crate::domain::lineage::{Lineage, SnapshotView};
use crate::domain::{Code, SandboxRecord, SnapshotId};
use crate::present::error::hinted;
use crate::present::lineage::{Known, of_sandbox};
use crate::present::{Document, Present};

/// Document of `get --json`: the record, and where it comes from.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct SandboxDetail {
    /// The record.
    #[serde(flatten)]
    pub record: SandboxRecord,
    /// Where it comes from and what was made of it; null where that cannot be read.
    pub lineage: Option<Lineage>,
    /// Why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unread: Option<Error>,
}

/// Warning of what of a sandbox cannot be read, in a sentence.
pub(super) fn unread(problem: &Error) -> String {
    let what = "where it comes from and what was taken of it cannot be read";
    format!("warning: {what}: {}", hinted(&problem.message, problem.hint.as_ref()))
}

/// Adds where a sandbox comes from and what was taken of it.
///
/// Errors: what cannot be read of its snapshots.
pub(super) async fn tell(
    client: &dyn Client,
    document: &mut Document,
    record: &SandboxRecord,
    lineage: &Lineage,
    present: Present<'_>,
) -> Result<(), Error> {
    let ancestors = read(client, &lineage.ancestors).await?;
    let taken = read(client, &lineage.snapshots).await?;
    of_sandbox(document, record, &known(&ancestors), &known(&taken), present);
    Ok(())
}

type Read = (SnapshotId, Option<SnapshotView>);

/// Reads snapshots; one that was deleted has only its id left.
async fn read(client: &dyn Client, ids: &[SnapshotId]) -> Result<Vec<Read>, Error> {
    let mut found = Vec::new();
    for id in ids {
        let view = match client.snapshot_view(id.as_str()).await {
            Err(problem) if problem.code == Code::NotFound => None,
            view => Some(view?),
        };
        found.push((id.clone(), view));
    }
    Ok(found)
}

fn known(read: &[Read]) -> Vec<Known<'_>> {
    read.iter().map(|(id, view)| (id.clone(), view.as_ref())).collect()
}
