//! Transfer of an archive to a host. What is in its folder there already is inspected first: it may be the archive, it may be
//! another host's under another name, and only what is neither is replaced. `copying_to` is written once nothing is there:
//! what is there later was brought by the copy that the record names.

use crate::domain::archive::{ArchiveLook, ArchivePlace, Arrived, SnapshotArchives};
use crate::domain::error::{Code, Error, Kind};
use crate::domain::name::HostName;
use crate::domain::reporter::Reporter;
use crate::domain::snapshot::{ArchiveFacts, SnapshotRecord, SnapshotState};
use crate::manager::deps::Deps;
use crate::manager::hosts::roots::roots_for_new;
use crate::manager::journal::{self, Guard};
use crate::manager::snapshots::archive_facts::archives_of;
use crate::manager::snapshots::archives::{manifest_of, whole_archive};
use crate::manager::snapshots::integrity::{
    clear_damage, damage_proven_by, note_damage, verify_sender,
};
use crate::manager::snapshots::pinned_profile::archive_place;

/// Hosts of a snapshot that have their archive in the same folder as another place.
#[derive(Default)]
struct SameArchives {
    same: Vec<HostName>,
    /// Hosts that could not be compared.
    unknown: Vec<HostName>,
}

/// Transfer of a snapshot's archive to a place.
#[derive(Clone, Copy)]
struct Transfer<'a> {
    deps: &'a Deps,
    record: &'a SnapshotRecord,
    archives: &'a dyn SnapshotArchives,
    to: &'a ArchivePlace,
    progress: &'a dyn Reporter,
}

/// Brings a snapshot's archive to a host from wherever it is whole. One that is there already, sealed and sound, is taken
/// as it is.
///
/// Errors: `invalid_input` for another name of a host that has it.
pub(crate) async fn transfer_archive(
    deps: &Deps,
    record: &SnapshotRecord,
    host: &HostName,
    progress: &dyn Reporter,
) -> Result<Arrived, Error> {
    let extension = deps.extension(&record.extension)?;
    let archives = archives_of(extension.as_ref())?;
    let roots = roots_for_new(deps, host).await?;
    let to = ArchivePlace { roots, ..archive_place(deps, record, host).await? };
    let transfer = Transfer { deps, record, archives, to: &to, progress };
    let seen = archives.look(&to).await?;
    let mut skipped = vec![host.clone()];
    if seen.path.is_some() {
        let SameArchives { same, unknown } = same_archives(deps, record, archives, &to).await?;
        // Copies that are not: they are taken off the record when this one is written.
        let is_listed = record.hosts().any(|known| known.same(host.as_str()));
        if let Some(other) =
            same.iter().find(|other| !is_listed || record.host.same(other.as_str()))
        {
            return Err(refuse_other_name(deps, record, host, other).await?);
        }
        skipped.extend(same);
        if let Some(arrived) =
            verify_found_archive(deps, record, archives, &to, &seen, progress).await?
        {
            return Ok(arrived);
        }
        transfer.remove_replaced(&seen, &[skipped.as_slice(), unknown.as_slice()].concat()).await?;
    }
    let record = begin_copying(deps, record, &skipped).await?;
    Transfer { record: &record, ..transfer }.copy_from_sound(skipped).await
}

/// The host on this record whose archive this host has under another name, and where that is.
pub(crate) async fn other_name(
    deps: &Deps,
    record: &SnapshotRecord,
    host: &HostName,
) -> Result<Option<(HostName, ArchivePlace)>, Error> {
    let extension = deps.extension(&record.extension)?;
    let archives = archives_of(extension.as_ref())?;
    let place = archive_place(deps, record, host).await?;
    let seen = archives.look(&place).await?;
    if seen.path.is_none() {
        return Ok(None);
    }
    let same = same_archives(deps, record, archives, &place).await?.same.into_iter().next();
    Ok(same.map(|other| (other, ArchivePlace { path: seen.path, ..place })))
}

async fn same_archives(
    deps: &Deps,
    record: &SnapshotRecord,
    archives: &dyn SnapshotArchives,
    place: &ArchivePlace,
) -> Result<SameArchives, Error> {
    let mut alike = SameArchives::default();
    for other in record.hosts().filter(|other| !other.same(place.host.as_str())) {
        let there = archive_place(deps, record, other).await?;
        match archives.is_one_folder(place, &there).await {
            Ok(true) => alike.same.push(other.clone()),
            Ok(false) => {}
            // It is this place that cannot be used.
            Err(error) if error.code == Code::Conflict => return Err(error),
            Err(_) => alike.unknown.push(other.clone()),
        }
    }
    Ok(alike)
}

/// Error of a host that is another one by another name, which is taken off the list of copies.
async fn refuse_other_name(
    deps: &Deps,
    record: &SnapshotRecord,
    host: &HostName,
    other: &HostName,
) -> Result<Error, Error> {
    if record.replicas.iter().any(|replica| replica.host.same(host.as_str())) {
        let at = host.clone();
        journal::update(
            deps,
            &record.id,
            Guard::Any,
            Vec::new(),
            move |record: &mut SnapshotRecord| {
                record.replicas.retain(|replica| !replica.host.same(at.as_str()));
                clear_damage(record, &at);
                Ok(())
            },
        )
        .await?;
    }
    let message =
        format!("{host} is another name of {other}, where snapshot {} is", record.title());
    let hint = format!("`sandboxer restore {} --host {host}` uses it where it is", record.id);
    Ok(Error::invalid_input("host", message).hint(hint))
}

/// The archive that was inspected, if it is the snapshot's: it is read whole.
///
/// Errors: whatever keeps it from being read, which proves nothing.
pub(crate) async fn verify_found_archive(
    deps: &Deps,
    record: &SnapshotRecord,
    archives: &dyn SnapshotArchives,
    place: &ArchivePlace,
    seen: &ArchiveLook,
    progress: &dyn Reporter,
) -> Result<Option<Arrived>, Error> {
    let Some(arrived) = sealed_arrival(record, seen) else { return Ok(None) };
    match archives.verify(place, &arrived.archive, progress).await {
        Ok(()) => Ok(Some(arrived)),
        Err(error) if damage_proven_by(&place.host, &error, deps.now()).is_some() => {
            note_damage(deps, &record.id, &place.host, &error).await;
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

impl Transfer<'_> {
    /// Removes what is where an archive is to come and is not what it should be; not before there is a better one elsewhere
    /// than on `skipped`.
    async fn remove_replaced(&self, seen: &ArchiveLook, skipped: &[HostName]) -> Result<(), Error> {
        let Self { deps, record, archives, to, progress } = *self;
        whole_archive(deps, record, archives, skipped).await?;
        let report = archives.remove(to, progress).await?;
        if report.is_clean() {
            return Ok(());
        }
        let (host, id) = (&to.host, &record.id);
        let error = if seen.manifest.is_some() {
            let message =
                format!("what {host} has of snapshot {id} is not sound and cannot be removed");
            Error::new(Code::OperationFailed, message)
        } else {
            Error::new(
                Code::Conflict,
                format!("{host} has something of snapshot {id} that is not known to be ours"),
            )
            .hint("it is never removed; look at it there, and move it away")
        };
        let why: Vec<String> = report.lines.iter().filter_map(|line| line.reason.clone()).collect();
        Err(if why.is_empty() { error } else { error.because(why.join("; ")) })
    }

    /// Streams it from the first host that has it whole, but none of `skipped`. Where what came is not what is recorded, the
    /// archive that was sent is read where it is; if that is altered, the next host's is taken.
    async fn copy_from_sound(&self, mut skipped: Vec<HostName>) -> Result<Arrived, Error> {
        let Self { deps, record, archives, to, progress } = *self;
        let mut altered: Option<Error> = None;
        loop {
            let from = match whole_archive(deps, record, archives, &skipped).await {
                Ok(from) => from,
                Err(error) => return Err(altered.unwrap_or(error)),
            };
            let manifest = manifest_of(deps, record, &from.host).await?;
            match archives.copy(&from, to, &manifest, progress).await {
                Err(error) if error.kind == Kind::ArrivedOtherwise => {
                    altered =
                        Some(verify_sender(deps, record, archives, &from, error, progress).await?);
                    skipped.push(from.host);
                }
                outcome => return outcome,
            }
        }
    }
}

/// Writes down that from now on something may be on the first of these hosts, where nothing is. What the record lists
/// there and on the others is no copy.
async fn begin_copying(
    deps: &Deps,
    record: &SnapshotRecord,
    hosts: &[HostName],
) -> Result<SnapshotRecord, Error> {
    let hosts = hosts.to_vec();
    journal::update(deps, &record.id, Guard::Any, Vec::new(), move |record: &mut SnapshotRecord| {
        for host in hosts
            .iter()
            .filter(|host| !record.host.same(host.as_str()))
            .cloned()
            .collect::<Vec<_>>()
        {
            record.replicas.retain(|replica| !replica.host.same(host.as_str()));
            clear_damage(record, &host);
        }
        record.copying_to = hosts.into_iter().next();
        Ok(())
    })
    .await
}

/// Removes what an unfinished copy left on a host. A sealed archive was finished: it was verified before.
///
/// Errors: something of it may be left.
pub(crate) async fn cleanup_partial_copy(
    deps: &Deps,
    record: &SnapshotRecord,
    host: &HostName,
    progress: &dyn Reporter,
) -> Result<Option<Arrived>, Error> {
    let extension = deps.extension(&record.extension)?;
    let archives = archives_of(extension.as_ref())?;
    let place = archive_place(deps, record, host).await?;
    let report = archives.clear(&place, progress).await?;
    // After that: whoever was sealing it may have come to his end meanwhile.
    let arrived = sealed_arrival(record, &archives.look(&place).await?);
    if arrived.is_none() && !report.is_clean() {
        let message =
            format!("snapshot {}: what was copied to {host} could not be removed", record.id);
        return Err(Error::new(Code::OperationFailed, message));
    }
    Ok(arrived)
}

/// Archive that was inspected, if it is sealed and its manifest says what is known of the snapshot's archive. It may be
/// compressed in another way.
fn sealed_arrival(record: &SnapshotRecord, seen: &ArchiveLook) -> Option<Arrived> {
    let manifest = seen.manifest.as_ref().filter(|manifest| manifest.id == record.id)?;
    let archive = manifest.snapshot.archive.clone();
    let is_it = if record.state == SnapshotState::Creating {
        // All that is known is what a file says of it, and some of that is found out anew when it comes.
        let of = |facts: &ArchiveFacts| (facts.sha256.clone(), facts.content_bytes);
        archive.sha256.is_some() && of(&archive) == of(&record.archive)
    } else {
        let (bytes, format) = (archive.bytes, archive.format.clone());
        archive == ArchiveFacts { bytes, format, ..record.archive.clone() }
    };
    if !is_it || archive.bytes.is_none() || archive.bytes != seen.bytes {
        return None;
    }
    Some(Arrived { path: seen.path.clone()?, identity: seen.identity.clone()?, archive })
}
