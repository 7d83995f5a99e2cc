//! The way of an archive to a host. What is in its folder there already is looked at first: it may be the archive, it may be
//! another host's under another name, and only what is neither is replaced. `copying_to` is written once nothing is there:
//! what is there later was brought by the copy that the record names.

use crate::domain::archive::{ArchiveLook, ArchivePlace, Arrived, SnapshotArchives};
use crate::domain::error::{Code, Error, Kind};
use crate::domain::extension::Reporter;
use crate::domain::name::HostName;
use crate::domain::snapshot::{ArchiveFacts, SnapshotRecord, SnapshotState};
use crate::manager::deps::Deps;
use crate::manager::hosts::roots::roots_for_new;
use crate::manager::journal::{self, Guard};
use crate::manager::snapshots::archive_facts::archives_of;
use crate::manager::snapshots::archives::{manifest_of, whole_archive};
use crate::manager::snapshots::integrity::{clear_damage, judge_sent, note_damage, proven};
use crate::manager::snapshots::pinned_profile::archive_place;

/// Which of a snapshot's hosts have their archive in the same folder as another place.
#[derive(Default)]
struct Alike {
    same: Vec<HostName>,
    /// Those of which it could not be told.
    unknown: Vec<HostName>,
}

/// Brings a snapshot's archive to a host from wherever it is whole. One that is there already, sealed and sound, is taken
/// as it is.
///
/// Errors: `invalid_input` for another name of a host that has it.
pub(crate) async fn bring_archive(
    deps: &Deps,
    record: &SnapshotRecord,
    host: &HostName,
    reporter: &dyn Reporter,
) -> Result<Arrived, Error> {
    let extension = deps.extension(&record.extension)?;
    let archives = archives_of(extension.as_ref())?;
    let roots = roots_for_new(deps, host).await?;
    let to = ArchivePlace { roots, ..archive_place(deps, record, host).await? };
    let seen = archives.look(&to).await?;
    let mut passed = vec![host.clone()];
    if seen.path.is_some() {
        let Alike { same, unknown } = same_archives(deps, record, archives, &to).await?;
        // Copies that are not: they are taken off the record when this one is written.
        let is_listed = record.hosts().any(|known| known.same(host.as_str()));
        if let Some(other) =
            same.iter().find(|other| !is_listed || record.host.same(other.as_str()))
        {
            return Err(refuse_other_name(deps, record, host, other).await?);
        }
        passed.extend(same);
        if let Some(arrived) = found_sound(deps, record, archives, &to, &seen, reporter).await? {
            return Ok(arrived);
        }
        make_room(
            deps,
            record,
            archives,
            &to,
            &seen,
            &[passed.as_slice(), unknown.as_slice()].concat(),
            reporter,
        )
        .await?;
    }
    let record = begin_copying(deps, record, &passed).await?;
    copy_from_sound(deps, &record, archives, &to, passed, reporter).await
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
) -> Result<Alike, Error> {
    let mut alike = Alike::default();
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

/// What there is to say of a host that is another one by another name. It is on no list of copies after that.
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

/// The archive that was looked at, if it is the snapshot's: it is read whole.
///
/// Errors: whatever keeps it from being read, which proves nothing.
pub(crate) async fn found_sound(
    deps: &Deps,
    record: &SnapshotRecord,
    archives: &dyn SnapshotArchives,
    place: &ArchivePlace,
    seen: &ArchiveLook,
    reporter: &dyn Reporter,
) -> Result<Option<Arrived>, Error> {
    let Some(arrived) = arrived_as(record, seen) else { return Ok(None) };
    match archives.verify(place, &arrived.archive, reporter).await {
        Ok(()) => Ok(Some(arrived)),
        Err(error) if proven(&place.host, &error, deps.now()).is_some() => {
            note_damage(deps, &record.id, &place.host, &error).await;
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Removes what is where an archive is to come and is not what it should be; not before there is a better one elsewhere
/// than on `passed`.
async fn make_room(
    deps: &Deps,
    record: &SnapshotRecord,
    archives: &dyn SnapshotArchives,
    to: &ArchivePlace,
    seen: &ArchiveLook,
    passed: &[HostName],
    reporter: &dyn Reporter,
) -> Result<(), Error> {
    whole_archive(deps, record, archives, passed).await?;
    let report = archives.remove(to, reporter).await?;
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

/// Streams it from the first host that has it whole, but none of `passed`. Where what came is not what is recorded, the
/// archive that was sent is read where it is; if that is altered, the next host's is taken.
async fn copy_from_sound(
    deps: &Deps,
    record: &SnapshotRecord,
    archives: &dyn SnapshotArchives,
    to: &ArchivePlace,
    mut passed: Vec<HostName>,
    reporter: &dyn Reporter,
) -> Result<Arrived, Error> {
    let mut altered: Option<Error> = None;
    loop {
        let from = match whole_archive(deps, record, archives, &passed).await {
            Ok(from) => from,
            Err(error) => return Err(altered.unwrap_or(error)),
        };
        let manifest = manifest_of(deps, record, &from.host).await?;
        match archives.copy(&from, to, &manifest, reporter).await {
            Err(error) if error.kind == Kind::ArrivedOtherwise => {
                altered = Some(judge_sent(deps, record, archives, &from, error, reporter).await?);
                passed.push(from.host);
            }
            outcome => return outcome,
        }
    }
}

/// Takes away what a copy left on a host that did not come to its end. One that is sealed there did: it was proved
/// before.
///
/// Errors: something of it may be left.
pub(crate) async fn clear_remains(
    deps: &Deps,
    record: &SnapshotRecord,
    host: &HostName,
    reporter: &dyn Reporter,
) -> Result<Option<Arrived>, Error> {
    let extension = deps.extension(&record.extension)?;
    let archives = archives_of(extension.as_ref())?;
    let place = archive_place(deps, record, host).await?;
    let report = archives.clear(&place, reporter).await?;
    // After that: whoever was sealing it may have come to his end meanwhile.
    let arrived = arrived_as(record, &archives.look(&place).await?);
    if arrived.is_none() && !report.is_clean() {
        let message =
            format!("snapshot {}: what was copied to {host} could not be removed", record.id);
        return Err(Error::new(Code::OperationFailed, message));
    }
    Ok(arrived)
}

/// What was looked at, if it is sealed and its manifest says what is known of the snapshot's archive. It may be compressed in
/// another way.
pub(crate) fn arrived_as(record: &SnapshotRecord, seen: &ArchiveLook) -> Option<Arrived> {
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
