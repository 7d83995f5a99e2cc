//! Integrity of archives, as their readers prove it: an archive that was altered or is gone is not listed as if nothing were
//! known.

use crate::domain::archive::{ArchivePlace, SnapshotArchives};
use crate::domain::error::{Error, Kind};
use crate::domain::name::{HostName, SnapshotId};
use crate::domain::reporter::Reporter;
use crate::domain::snapshot::{Damage, DamageKind, SnapshotRecord};
use crate::domain::time::Time;
use crate::manager::deps::Deps;
use crate::manager::journal::{self, Guard, free_snapshot};
use crate::manager::snapshots::archive_facts::facts_on;

/// Writes down what a reading of all of a snapshot's archives found: on which hosts they are sound, and what is wrong on
/// the others. The snapshot is nobody's again.
pub(crate) async fn record_verification(
    deps: &Deps,
    id: &SnapshotId,
    sound: &[HostName],
    wrong: &[(HostName, Error)],
) -> Result<(), Error> {
    let now = deps.now();
    let (mut found, mut unsaid) = (Vec::new(), Vec::new());
    for (host, error) in wrong {
        match damage_proven_by(host, error, now) {
            Some(damage) => found.push(damage),
            // Of a host that is away nothing is known: that is in words only.
            None => unsaid.push(error.message.as_str()),
        }
    }
    let message = (!unsaid.is_empty()).then(|| unsaid.join("; "));
    let (all, sound) = (wrong.is_empty(), sound.to_vec());
    free_snapshot(deps, id, move |record| {
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

/// Writes down what an error proves of a snapshot's archive on a host, if it proves anything.
pub(crate) async fn note_damage(deps: &Deps, id: &SnapshotId, host: &HostName, error: &Error) {
    let Some(damage) = damage_proven_by(host, error, deps.now()) else { return };
    let noting =
        journal::update(deps, id, Guard::Any, Vec::new(), move |record: &mut SnapshotRecord| {
            // A copy may be taken off the record meanwhile.
            if record.hosts().any(|known| known.same(damage.host.as_str())) {
                set_damage(record, damage);
            }
            Ok(())
        });
    // Boxed: it is large, seldom needed, and a part of every restore.
    if let Err(error) = Box::pin(noting).await {
        tracing::warn!(snapshot = %id, %host, %error, "a damaged archive could not be written down");
    }
}

/// An archive did not arrive as it was sent, or was sent as it should not be: it is read where it was sent from.
///
/// What is wrong with it there, which is noted. Errors: the arrival's own, where nothing is.
pub(crate) async fn verify_sender(
    deps: &Deps,
    record: &SnapshotRecord,
    archives: &dyn SnapshotArchives,
    from: &ArchivePlace,
    arrival: Error,
    progress: &dyn Reporter,
) -> Result<Error, Error> {
    let (id, host) = (&record.id, &from.host);
    let hint = match archives.verify(from, &facts_on(record, host), progress).await {
        Err(found) if damage_proven_by(host, &found, deps.now()).is_some() => {
            note_damage(deps, id, host, &found).await;
            let found = found.hint(format!(
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
    Err(arrival.hint(hint))
}

/// Damage of an archive that an error proves: it was altered, or is not there. Of a host that does not answer it proves
/// nothing.
pub(crate) fn damage_proven_by(host: &HostName, error: &Error, now: Time) -> Option<Damage> {
    let kind = match error.kind {
        Kind::ArchiveAltered => DamageKind::Altered,
        Kind::ArchiveMissing => DamageKind::Missing,
        _ => return None,
    };
    Some(Damage { host: host.clone(), kind, message: error.message.clone(), found_at: now })
}

/// Puts it in place of what was known of that host.
fn set_damage(record: &mut SnapshotRecord, damage: Damage) {
    clear_damage(record, &damage.host);
    record.damage.push(damage);
}

/// Notes that the archive is not where the snapshot was made: a copy back to there was removed again.
pub(crate) fn note_missing(record: &mut SnapshotRecord, host: &HostName, now: Time) {
    if record.host.same(host.as_str()) {
        let message = format!("the archive of snapshot {} is not on {host}", record.id);
        set_damage(
            record,
            Damage { host: record.host.clone(), kind: DamageKind::Missing, message, found_at: now },
        );
    }
}

/// The archive on this host is sound, or no longer counted.
pub(crate) fn clear_damage(record: &mut SnapshotRecord, host: &HostName) {
    record.damage.retain(|damage| !damage.host.same(host.as_str()));
}
