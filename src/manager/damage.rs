//! What readers of archives prove: an archive that was altered or is gone is not listed as if nothing were known.

use std::sync::Arc;

use futures_util::StreamExt as _;

use crate::domain::archive::{ArchivePlace, ByteStream, SnapshotArchives};
use crate::domain::error::{Code, Error};
use crate::domain::extension::{ExtensionError, Reporter};
use crate::domain::name::{HostName, SnapshotId};
use crate::domain::snapshot::{Damage, DamageKind, SnapshotRecord};
use crate::domain::time::Time;
use crate::manager::SandboxManager;
use crate::manager::archives::facts_on;

impl SandboxManager {
    /// Writes down what a reading of all of a snapshot's archives found: on which hosts they are sound, and what is wrong on
    /// the others. The snapshot is nobody's again.
    pub(super) async fn note_reading(
        &self,
        id: &SnapshotId,
        sound: &[HostName],
        wrong: &[(HostName, Error)],
    ) -> Result<(), Error> {
        let now = self.now();
        let (mut found, mut unsaid) = (Vec::new(), Vec::new());
        for (host, fault) in wrong {
            match proven(host, fault, now) {
                Some(damage) => found.push(damage),
                // Of a host that is away nothing is known: that is in words only.
                None => unsaid.push(fault.message.as_str()),
            }
        }
        let message = (!unsaid.is_empty()).then(|| unsaid.join("; "));
        let (all, sound) = (wrong.is_empty(), sound.to_vec());
        self.free_snapshot(id, move |record| {
            for host in &sound {
                clear_damage(record, host);
            }
            for damage in found {
                set_damage(record, damage);
            }
            if all {
                record.verified_at = Some(now);
            }
            record.message = message;
        })
        .await
        .map(|_| ())
    }

    /// Writes down what a fault proves of a snapshot's archive on a host, if it proves anything.
    pub(super) async fn note_damage(&self, id: &SnapshotId, host: &HostName, fault: &Error) {
        let Some(damage) = proven(host, fault, self.now()) else { return };
        let noting = self.transition_snapshot(id, None, Vec::new(), move |record| {
            // A copy may be taken off the record meanwhile.
            if record.hosts().any(|known| known.same(damage.host.as_str())) {
                set_damage(record, damage);
            }
            Ok(())
        });
        // Boxed: it is large, seldom needed, and a part of every restore.
        if let Err(fault) = Box::pin(noting).await {
            tracing::warn!(snapshot = %id, %host, %fault, "a damaged archive could not be written down");
        }
    }

    /// An archive did not arrive as it was sent, or was sent as it should not be: it is read where it was sent from.
    ///
    /// What is wrong with it there, which is noted. Errors: the arrival's own, where nothing is.
    pub(super) async fn judge_sent(
        &self,
        record: &SnapshotRecord,
        archives: &dyn SnapshotArchives,
        from: &ArchivePlace,
        mut arrival: ExtensionError,
        reporter: &dyn Reporter,
    ) -> Result<ExtensionError, ExtensionError> {
        let (id, host) = (&record.id, &from.host);
        let hint = match archives.verify(from, &facts_on(record, host), reporter).await {
            Err(mut found) if proven(host, &found.fault, self.now()).is_some() => {
                self.note_damage(id, host, &found.fault).await;
                found.fault = found.fault.hint(format!(
                    "nothing was copied; `sandboxer snapshots verify {id}` reads what every host has of it"
                ));
                return Ok(found);
            }
            Ok(()) => {
                format!("the archive on {host} is what it was: nothing was copied, try again")
            }
            Err(_) => {
                format!(
                    "whether it is sound on {host} could not be told; `sandboxer snapshots verify {id}` does"
                )
            }
        };
        arrival.fault = arrival.fault.hint(hint);
        Err(arrival)
    }

    /// An export's bytes. What ends them is written down, if it proves that the archive on `host` is not what it was.
    pub(super) fn noting(
        &self,
        pieces: ByteStream,
        record: SnapshotRecord,
        host: HostName,
    ) -> ByteStream {
        let known = Arc::new((self.clone(), record, host));
        let noted = pieces.then(move |piece| {
            let known = Arc::clone(&known);
            async move {
                let (manager, record, host) = known.as_ref();
                match piece {
                    Ok(piece) => Ok(piece),
                    Err(fault) => Err(manager.unlike_on_export(record, host, fault).await),
                }
            }
        });
        noted.boxed()
    }

    /// Notes what an export's fault proves, and says where else the snapshot is.
    pub(super) async fn unlike_on_export(
        &self,
        record: &SnapshotRecord,
        host: &HostName,
        fault: Error,
    ) -> Error {
        if proven(host, &fault, self.now()).is_none() {
            return fault;
        }
        self.note_damage(&record.id, host, &fault).await;
        let other = record
            .hosts()
            .find(|other| !other.same(host.as_str()) && record.damage_on(other).is_none());
        fault.hint(match other {
            Some(other) => format!("there is a copy on {other}: the next export takes that one"),
            None => {
                format!("do not trust what was written; `sandboxer snapshots verify {}` says what is wrong", record.id)
            }
        })
    }
}

/// What a fault proves of an archive: that it was altered, or is not there. Of a host that does not answer it proves nothing.
pub(super) fn proven(host: &HostName, fault: &Error, now: Time) -> Option<Damage> {
    let kind = match fault.details["kind"].as_str() {
        Some("altered" | "hostile") => DamageKind::Altered,
        Some("absent") => DamageKind::Missing,
        _ if fault.code == Code::NotFound && fault.details["differs"] == "missing" => {
            DamageKind::Missing
        }
        _ => return None,
    };
    Some(Damage { host: host.clone(), kind, message: fault.message.clone(), found_at: now })
}

/// Puts it in place of what was known of that host.
pub(super) fn set_damage(record: &mut SnapshotRecord, damage: Damage) {
    clear_damage(record, &damage.host);
    record.damage.push(damage);
}

/// What was to be brought back to where the snapshot was made was taken away again: nothing is there.
pub(super) fn note_gone(record: &mut SnapshotRecord, host: &HostName, now: Time) {
    if record.host.same(host.as_str()) {
        let message = format!("the archive of snapshot {} is not on {host}", record.id);
        set_damage(
            record,
            Damage { host: record.host.clone(), kind: DamageKind::Missing, message, found_at: now },
        );
    }
}

/// The archive on this host is sound, or no longer counted.
pub(super) fn clear_damage(record: &mut SnapshotRecord, host: &HostName) {
    record.damage.retain(|damage| !damage.host.same(host.as_str()));
}
