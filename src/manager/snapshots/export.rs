//! Export of a snapshot: the bytes of a file that an import takes.

use std::sync::Arc;

use futures_util::StreamExt as _;

use crate::domain::archive::ByteStream;
use crate::domain::error::Error;
use crate::domain::name::HostName;
use crate::domain::snapshot::SnapshotRecord;
use crate::manager::deps::Deps;
use crate::manager::snapshots::archive_facts::archives_of;
use crate::manager::snapshots::archives::{manifest_of, ready_snapshot, whole_archive};
use crate::manager::snapshots::integrity::{damage_proven_by, note_damage};

/// The bytes of a file that an import takes. They come from the first of its hosts that has it whole.
///
/// Errors, in the stream too: `operation_failed` with `details.kind` = `altered` where they are not what is recorded.
pub(crate) async fn export_snapshot(deps: &Deps, id: &str) -> Result<ByteStream, Error> {
    let record = ready_snapshot(deps, id).await?;
    let extension = deps.extension(&record.extension)?;
    let archives = archives_of(extension.as_ref())?;
    let place = whole_archive(deps, &record, archives, &[]).await?;
    let manifest = manifest_of(deps, &record, &place.host).await?;
    match archives.export(&place, &manifest).await {
        Ok(pieces) => Ok(watch_export(deps, pieces, record, place.host)),
        Err(error) => Err(note_export_error(deps, &record, &place.host, error).await),
    }
}

/// An export's bytes. What ends them is written down, if it proves that the archive on `host` is not what it was.
fn watch_export(
    deps: &Deps,
    pieces: ByteStream,
    record: SnapshotRecord,
    host: HostName,
) -> ByteStream {
    let known = Arc::new((deps.clone(), record, host));
    let noted = pieces.then(move |piece| {
        let known = Arc::clone(&known);
        async move {
            let (deps, record, host) = known.as_ref();
            match piece {
                Ok(piece) => Ok(piece),
                Err(error) => Err(note_export_error(deps, record, host, error).await),
            }
        }
    });
    noted.boxed()
}

/// Notes what an export's error proves, and says where else the snapshot is.
async fn note_export_error(
    deps: &Deps,
    record: &SnapshotRecord,
    host: &HostName,
    error: Error,
) -> Error {
    if damage_proven_by(host, &error, deps.now()).is_none() {
        return error;
    }
    note_damage(deps, &record.id, host, &error).await;
    let other = record
        .hosts()
        .find(|other| !other.same(host.as_str()) && record.damage_on(other).is_none());
    error.hint(match other {
        Some(other) => format!("there is a copy on {other}: the next export takes that one"),
        None => {
            format!(
                "do not trust what was written; `sandboxer snapshots verify {}` says what is wrong",
                record.id
            )
        }
    })
}
