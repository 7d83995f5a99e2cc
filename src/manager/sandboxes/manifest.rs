//! Manifest on a sandbox's host: written anew when the record has something else to say there, or at the next contact with a host
//! that was away.

use crate::domain::error::{Code, Error};
use crate::domain::sandbox::{SandboxRecord, State};
use crate::domain::sandbox_manifest::is_same_manifest;
use crate::manager::deps::Deps;
use crate::manager::journal;
use crate::manager::sandboxes::resolve::resolve_as_known;

/// Times that it is written anew because somebody moved the deadline meanwhile.
const TRIES: u32 = 5;

/// Whether the manifest of a sandbox that stands is to be written.
pub(crate) fn is_manifest_pending(record: &SandboxRecord) -> bool {
    record.manifest_pending && record.operation.is_none() && has_manifest(record)
}

/// Whether a sandbox is to be on its host with a manifest that is kept up.
pub(crate) fn has_manifest(record: &SandboxRecord) -> bool {
    matches!(record.state, State::Ready | State::Sleeping | State::Lost) || record.kept_failed
}

/// Writes the manifest on a record's host anew; the record as it is then. Whoever changes it meanwhile is overtaken by nobody: what
/// was written last is what the record says.
pub(crate) async fn write_manifest(
    deps: &Deps,
    record: &SandboxRecord,
) -> Result<SandboxRecord, Error> {
    let extension = deps.extension(&record.extension)?;
    let mut record = record.clone();
    for _ in 0..TRIES {
        let target = resolve_as_known(deps, &record).await?;
        extension.write_manifest(&target, &record).await?;
        record = note_written(deps, record).await?;
        if !record.manifest_pending {
            return Ok(record);
        }
    }
    Err(Error::new(Code::Busy, format!("sandbox {} is changed all the time", record.id)))
}

/// Notes on the record that its manifest says what it said when that was written.
async fn note_written(deps: &Deps, written: SandboxRecord) -> Result<SandboxRecord, Error> {
    let note = |record: &mut SandboxRecord| {
        record.manifest_pending = !is_same_manifest(record, &written);
    };
    journal::change(deps, &written.id, note).await
}
