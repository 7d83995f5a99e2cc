//! Export of a snapshot: the bytes of a file that an import takes.

use crate::domain::archive::ByteStream;
use crate::domain::error::Error;
use crate::manager::deps::Deps;
use crate::manager::snapshots::archives::{READABLE, find_archive, manifest_of, ready_snapshot};

/// The bytes of a file that an import takes. They come from the first of its hosts that has it whole.
///
/// Errors, in the stream too: `operation_failed` with `details.kind` = `altered` where they are not what is recorded.
pub(crate) async fn export_snapshot(deps: &Deps, id: &str) -> Result<ByteStream, Error> {
    let record = ready_snapshot(deps, id, None, READABLE).await?;
    let found = find_archive(deps, &record, |_| true, None).await?;
    let manifest = manifest_of(deps, &record, &found.place.host).await?;
    found.archives.export(&found.place, &manifest).await
}
