//! The look at all archives of a snapshot before a deletion removes the first: while a host cannot be looked at, nothing is
//! removed, and the snapshot is what it was. What is on a host that nothing configures any more, or that is another one by now,
//! can be given up.

use serde::Serialize;

use crate::domain::error::{Code, Error};
use crate::domain::extension::ExtensionError;
use crate::domain::name::HostName;
use crate::domain::snapshot::{SnapshotRecord, SnapshotState};
use crate::manager::SandboxManager;
use crate::manager::archives::{facts_on, is_sealed, not_whole};
use crate::manager::recipe::is_lost;

/// An archive that nobody removes: its host is not configured and does not answer, or is another one by now.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct GivenUp {
    pub(super) host: HostName,
    /// Its folder, where that is known.
    pub(super) path: Option<String>,
}

/// Why a deletion does not begin.
pub(super) struct Kept {
    pub(super) fault: Error,
    /// Whether an archive that was looked at is there as it is recorded.
    whole: bool,
    /// Those that are not.
    unlike: Vec<(HostName, Error)>,
}

impl From<Error> for Kept {
    fn from(fault: Error) -> Self {
        Self { fault, whole: false, unlike: Vec::new() }
    }
}

impl SandboxManager {
    /// Looks at every host that has or may have something of a snapshot: what is given up, if `by_force` says so.
    pub(super) async fn survey(
        &self,
        record: &SnapshotRecord,
        by_force: bool,
    ) -> Result<Vec<GivenUp>, Kept> {
        let extension = self.extension(&record.extension)?;
        let Some(archives) = extension.archives() else { return Ok(Vec::new()) };
        let (mut given_up, mut unlike, mut kept, mut whole) = (Vec::new(), Vec::new(), None, false);
        for host in record.hosts().chain(&record.copying_to) {
            let place = match self.archive_place(record, host).await {
                // As for the removal.
                Err(fault) if is_lost(&fault) && !record.unremoved => continue,
                place => place?,
            };
            match archives.look(&place).await {
                Ok(seen) if is_sealed(&seen, &facts_on(record, host)) => whole = true,
                Ok(seen) => unlike.push((host.clone(), not_whole(record, host, seen.bytes))),
                Err(error)
                    if by_force
                        && (self.is_vanished(host, &error)
                            || error.fault.code == Code::HostChanged) =>
                {
                    given_up.push(GivenUp { host: host.clone(), path: place.path });
                }
                Err(error) => {
                    kept.get_or_insert_with(|| self.way_out(record, host, error.fault));
                }
            }
        }
        match kept {
            Some(fault) => Err(Kept { fault, whole, unlike }),
            None => Ok(given_up),
        }
    }

    /// Whether a host does not answer and is in no configuration: then nobody says that it will be back.
    pub(super) fn is_vanished(&self, host: &HostName, error: &ExtensionError) -> bool {
        matches!(error.fault.code, Code::HostUnreachable | Code::Timeout)
            && self.parts.transports.spec(host).is_none()
    }

    fn way_out(&self, record: &SnapshotRecord, host: &HostName, fault: Error) -> Error {
        let id = &record.id;
        let forced = format!("`sandboxer snapshots delete {id} --force` gives up what is there");
        let hint = match (&fault.code, self.parts.transports.spec(host)) {
            (Code::HostUnreachable | Code::Timeout, Some(_)) => format!(
                "nothing was removed; try again when {host} is back, or, if it never will be, take it out of the \
                 configuration: then {forced}"
            ),
            (Code::HostUnreachable | Code::Timeout, None) => {
                format!(
                    "nothing was removed; {host} is not configured: if it never will be back, {forced}"
                )
            }
            _ => "nothing was removed".to_owned(),
        };
        let hint = match fault.hint.clone() {
            Some(first) => format!("{first}; {hint}"),
            None => hint,
        };
        fault.hint(hint)
    }

    /// A deletion that removed nothing: the snapshot is what it was `before`. Where a dead one may have removed something, it is
    /// ready only if an archive was seen to be whole.
    pub(super) async fn keep_all(
        &self,
        record: &SnapshotRecord,
        before: &SnapshotRecord,
        kept: Kept,
    ) -> Result<Error, Error> {
        if before.state != SnapshotState::Deleting {
            self.put_back_snapshot(before).await?;
            return Ok(kept.fault);
        }
        // Only what was ready once has a folder.
        if !kept.whole || record.path.is_none() {
            return self.stay_deleting(&record.id, kept.fault).await;
        }
        for (host, fault) in &kept.unlike {
            self.note_damage(&record.id, host, fault).await;
        }
        let message = format!("not deleted: {}", kept.fault.message);
        self.free_snapshot(&record.id, move |record| {
            record.state = SnapshotState::Ready;
            record.message = Some(message);
        })
        .await?;
        Ok(kept.fault)
    }

    /// After a deletion that was refused: the snapshot is what it was before.
    pub(super) async fn put_back_snapshot(&self, before: &SnapshotRecord) -> Result<(), Error> {
        let SnapshotRecord { id, state, name, message, operation, .. } = before.clone();
        self.free_snapshot(&id, move |record| {
            (record.state, record.name, record.message, record.operation) =
                (state, name, message, operation);
        })
        .await
        .map(|_| ())
    }
}

/// What is said of archives that were given up.
pub(super) fn in_words(given_up: &[GivenUp]) -> Option<String> {
    let words = given_up.iter().map(|gone| match &gone.path {
        Some(path) => format!("{path} on {}", gone.host),
        None => format!("whatever is there of it on {}", gone.host),
    });
    let words: Vec<String> = words.collect();
    (!words.is_empty())
        .then(|| format!("given up, and not looked at: {} stays there", words.join(", ")))
}
