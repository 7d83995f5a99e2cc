//! Deadline in the manifest on a sandbox's host: written when it was moved, or at the next contact with a host that was away.

use crate::domain::error::{Code, Error};
use crate::domain::sandbox::{SandboxRecord, State};
use crate::manager::deps::Deps;
use crate::manager::journal::{self, Guard};
use crate::manager::sandboxes::resolve::resolve_as_known;

/// Times that it is written anew because somebody moved the deadline meanwhile.
const TRIES: u32 = 5;

/// Whether the manifest of a sandbox that stands is to be written.
pub(crate) fn is_manifest_pending(record: &SandboxRecord) -> bool {
    record.manifest_pending && record.operation.is_none() && has_manifest(record)
}

/// Whether a sandbox is to be on its host with a deadline that can be moved.
pub(crate) fn has_manifest(record: &SandboxRecord) -> bool {
    matches!(record.state, State::Ready | State::Sleeping | State::Lost) || record.kept_failed
}

/// Writes a record's deadline to the manifest on its host; the record as it is then. Whoever moves it meanwhile is overtaken by
/// nobody: what was written last is what the record says.
pub(crate) async fn write_manifest(
    deps: &Deps,
    record: &SandboxRecord,
) -> Result<SandboxRecord, Error> {
    let extension = deps.extension(&record.extension)?;
    let mut record = record.clone();
    for _ in 0..TRIES {
        let target = resolve_as_known(deps, &record).await?;
        let written = record.expires_at;
        extension.set_deadline(&target, written).await?;
        record = note_written(deps, &record, written).await?;
        if record.expires_at == written {
            return Ok(record);
        }
    }
    Err(Error::new(
        Code::Busy,
        format!("the deadline of sandbox {} is moved all the time", record.id),
    ))
}

/// Notes on the record which deadline its manifest has.
async fn note_written(
    deps: &Deps,
    record: &SandboxRecord,
    written: Option<crate::domain::time::Time>,
) -> Result<SandboxRecord, Error> {
    let note = move |record: &mut SandboxRecord| {
        record.manifest_pending = record.expires_at != written;
        Ok(())
    };
    journal::update(deps, &record.id, Guard::Any, Vec::new(), note).await
}
