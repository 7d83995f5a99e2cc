//! Export of a snapshot: the bytes of a file that an import takes.

use crate::domain::archive::ByteStream;
use crate::domain::error::Error;
use crate::manager::deps::Deps;
use crate::manager::snapshots::archives::{
    archives_of, manifest_of, ready_snapshot, whole_archive,
};

/// The bytes of a file that an import takes. They come from the first of its hosts that has it whole.
///
/// Errors, in the stream too: `operation_failed` with `details.kind` = `altered` where they are not what is recorded.
pub(crate) async fn export_snapshot(deps: &Deps, id: &str) -> Result<ByteStream, Error> {
    let record = ready_snapshot(deps, id).await?;
    let extension = deps.extension(&record.extension)?;
    let archives = archives_of(extension.as_ref())?;
    let place = whole_archive(deps, &record, archives, |_| true).await?;
    let manifest = manifest_of(deps, &record, &place.host).await?;
    archives.export(&place, &manifest).await
}
