//! What differs between a snapshot and another one, or a sandbox as it is now.

use crate::domain::archive::TreeEntry;
use crate::domain::diff::{Side, compare};
use crate::domain::error::{Code, Error};
use crate::domain::name::SnapshotId;
use crate::domain::request::{SnapshotDiff, SnapshotDiffRequest};
use crate::domain::sandbox::{SandboxRecord, State};
use crate::domain::snapshot::SnapshotRecord;
use crate::manager::SandboxManager;
use crate::manager::archives::{archives_of, facts_on};

/// What a snapshot is compared with.
enum Other {
    Snapshot(Box<SnapshotRecord>),
    Sandbox(Box<SandboxRecord>),
}

impl SandboxManager {
    /// What differs between a snapshot and another one, or a sandbox as it is now.
    ///
    /// Errors: `invalid_input` where nothing says what it is to be compared with; `conflict` for a sandbox whose files are
    /// not there to be looked at.
    pub async fn diff_snapshot(
        &self,
        request: &SnapshotDiffRequest,
    ) -> Result<SnapshotDiff, Error> {
        let a = self.ready_snapshot(&request.a).await?;
        let other = match &request.b {
            Some(b) if SnapshotId::is_one(b) => {
                Other::Snapshot(Box::new(self.ready_snapshot(b).await?))
            }
            Some(b) => Other::Sandbox(Box::new(self.exactly(b, None).await?)),
            None => self.compared_by_default(&a).await?,
        };
        match other {
            Other::Snapshot(b) => {
                let (old, new) =
                    tokio::try_join!(self.entries_of_snapshot(&a), self.entries_of_snapshot(&b))?;
                let notes = not_captured(&a).chain(not_captured(&b)).collect();
                Ok(compare(side(a.id.as_str(), &old), side(b.id.as_str(), &new), notes))
            }
            Other::Sandbox(b) => {
                let (mut old, new) = tokio::try_join!(
                    self.entries_of_snapshot(&a),
                    self.entries_of_sandbox(&b, &a)
                )?;
                old.retain(|entry| !entry.path.starts_with("volumes/") && entry.path != "volumes");
                let notes = volumes_note(&a).into_iter().collect();
                Ok(compare(side(a.id.as_str(), &old), side(b.id.as_str(), &new), notes))
            }
        }
    }

    /// The sandbox that it was taken from, or the snapshot that this one came from.
    async fn compared_by_default(&self, a: &SnapshotRecord) -> Result<Other, Error> {
        if let Ok(sandbox) = self.exactly(a.sandbox_id.as_str(), None).await
            && !sandbox.state.is_over()
        {
            return Ok(Other::Sandbox(Box::new(sandbox)));
        }
        if let Some(parent) = &a.parent_snapshot
            && let Some(parent) = self.parts.snapshots.get(parent).await?
        {
            return Ok(Other::Snapshot(Box::new(parent)));
        }
        let message = format!(
            "the sandbox that snapshot {} was taken from is gone, and there is no parent",
            a.title()
        );
        Err(Error::invalid_input("b", message)
            .hint("name a snapshot or a sandbox to compare it with"))
    }

    async fn entries_of_snapshot(&self, record: &SnapshotRecord) -> Result<Vec<TreeEntry>, Error> {
        let extension = self.extension(&record.extension)?;
        let archives = archives_of(extension.as_ref())?;
        let place = self.whole_archive(record, archives, &[]).await?;
        let facts = facts_on(record, &place.host);
        archives.entries(&place, &facts).await.map_err(|error| error.fault)
    }

    async fn entries_of_sandbox(
        &self,
        record: &SandboxRecord,
        a: &SnapshotRecord,
    ) -> Result<Vec<TreeEntry>, Error> {
        if !matches!(record.state, State::Ready | State::Sleeping) {
            return Err(Error::new(
                Code::Conflict,
                format!("sandbox {} is {}: its files cannot be compared", record.id, record.state),
            )
            .hint("it takes a sandbox that is ready or sleeping, or another snapshot")
            .detail("state", record.state.as_str()));
        }
        let extension = self.extension(&record.extension)?;
        let target = self.target_as_known(record).await?;
        extension.entries(&target, &a.archive.excludes).await.map_err(|error| error.fault)
    }
}

fn side<'a>(name: &'a str, entries: &'a [TreeEntry]) -> Side<'a> {
    Side { name, entries }
}

fn volumes_note(a: &SnapshotRecord) -> Option<String> {
    let names: Vec<&str> =
        a.archive.captured_volumes.iter().map(|volume| volume.name.as_str()).collect();
    (!names.is_empty()).then(|| {
        format!(
            "volumes are compared between two snapshots only; left out here: {}",
            names.join(", ")
        )
    })
}

fn not_captured(record: &SnapshotRecord) -> impl Iterator<Item = String> {
    record.archive.not_captured.iter().map(move |volume| {
        format!("volume {} is not in snapshot {}: {}", volume.name, record.title(), volume.reason)
    })
}
