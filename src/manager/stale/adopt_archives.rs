//! Adoption of the archives that hosts have: those of one snapshot are read under its lock, and become one record.

use std::collections::BTreeMap;

use futures_util::stream::{self, StreamExt as _};

use crate::domain::adoption::{Adopted, AdoptedKind};
use crate::domain::error::Error;
use crate::domain::facts::InventoryArchive;
use crate::domain::name::{HostName, SnapshotId};
use crate::domain::snapshot::{Replica, SnapshotRecord};
use crate::manager::stale::adopt::{AT_ONCE, Adoption};
use crate::manager::stale::adopt_item::{AdoptItem, archive_item, foreign_words, unreadable_words};
use crate::manager::stale::adopt_snapshot::{
    FoundArchive, SnapshotDraft, add_replica, ensure_same_archive, insert_adopted_snapshot,
    lock_found, merged, read_archive,
};
use crate::manager::stale::scan::{HostScan, by_place};
use crate::store::Held;

/// Loss of a snapshot with its store.
const PATCHES_LOST: &str = "patches on it are with the store that had them";

/// Archives of one snapshot as they were read.
struct ReadSnapshot<'a> {
    /// Lock, held until it has a record; none in a dry run, or where somebody else has it.
    lock: Option<Box<dyn Held>>,
    has_record: bool,
    /// Archives, and what each says.
    archives: Vec<(&'a HostScan, &'a InventoryArchive, Result<SnapshotDraft, Error>)>,
}

impl Adoption<'_> {
    pub(super) async fn snapshots(&self, scans: &[HostScan]) -> Result<Vec<Adopted>, Error> {
        let found = scans
            .iter()
            .flat_map(|scan| scan.inventory.archives.iter().map(move |item| (scan, item)));
        let mut items = Vec::new();
        let mut wanted: BTreeMap<&str, Vec<(&HostScan, &InventoryArchive)>> = BTreeMap::new();
        for seen in by_place(found, |item: &InventoryArchive| &item.directory).into_values() {
            let Some((scan, item)) = seen.first().copied() else { continue };
            if !self.is_ours(item.owner.as_ref()) {
                items.extend(self.left_archive(scan, item));
                continue;
            }
            let id = SnapshotId::new(item.snapshot_id.as_str());
            let record = self.deps.snapshots.get(&id).await?;
            let is_known = record.as_ref().is_some_and(|record| {
                let is_seen = |replica: &Replica| {
                    seen.iter().any(|(scan, _)| replica.host.same(scan.host.as_str()))
                };
                record.replicas.iter().any(is_seen)
            });
            if !is_known {
                wanted.entry(item.snapshot_id.as_str()).or_default().push((scan, item));
            }
        }
        let mut reading = Vec::new();
        for seen in wanted.into_values() {
            reading.push(self.read_archives(seen));
        }
        let read: Vec<_> = stream::iter(reading).buffered(AT_ONCE).collect().await;
        let mut fresh = Vec::new();
        for ReadSnapshot { lock, has_record, archives } in read {
            let mut drafts = Vec::new();
            for (scan, item, draft) in archives {
                match draft {
                    Err(error) => items.push(archive_item(scan, item).failed(error)),
                    Ok(draft) if has_record => items.push(self.replica(scan, item, draft).await),
                    Ok(draft) => drafts.push(draft),
                }
            }
            if !drafts.is_empty() {
                fresh.push((lock, drafts));
            }
        }
        // Oldest first: retention goes by the order in which records are made.
        fresh.sort_by_key(|(_, drafts)| drafts.iter().map(|draft| draft.record.created_at).min());
        for (_lock, drafts) in fresh {
            items.push(self.snapshot(drafts).await);
        }
        Ok(items)
    }

    /// Reads all archives of a snapshot under its lock.
    async fn read_archives<'s>(
        &self,
        seen: Vec<(&'s HostScan, &'s InventoryArchive)>,
    ) -> ReadSnapshot<'s> {
        let found = |scan: &'s HostScan, item: &'s InventoryArchive| FoundArchive {
            host: &scan.host,
            facts: &scan.facts,
            item,
            owners: &self.owners,
            is_dry: self.is_dry,
        };
        let locked = async {
            let Some((scan, item)) = seen.first().copied() else { return Ok((None, false)) };
            let lock = lock_found(self.deps, found(scan, item)).await?;
            let id = SnapshotId::new(item.snapshot_id.as_str());
            Ok((lock, self.deps.snapshots.get(&id).await?.is_some()))
        };
        let locked: Result<_, Error> = locked.await;
        let mut archives = Vec::new();
        for (scan, item) in seen {
            let draft = match &locked {
                Ok(_) => read_archive(self.deps, found(scan, item)).await,
                Err(error) => Err(error.clone()),
            };
            archives.push((scan, item, draft));
        }
        let (lock, has_record) = locked.unwrap_or_default();
        ReadSnapshot { lock, has_record, archives }
    }

    /// Makes one record of all archives of a snapshot.
    async fn snapshot(&self, drafts: Vec<SnapshotDraft>) -> Adopted {
        let Some(first) = drafts.first() else {
            return AdoptItem::new(AdoptedKind::Snapshot, "", &HostName::new(""))
                .failed(Error::internal("there is no archive to make a record of"));
        };
        let item =
            AdoptItem::new(AdoptedKind::Snapshot, first.record.id.as_str(), &first.record.host)
                .of(first.record.owner.as_str());
        let written = async {
            let mut draft = merged(drafts)?;
            if self.is_dry {
                let taken = self.snapshot_name(&mut draft).await?;
                draft.remarks.extend(taken);
                return Ok((draft.record, draft.remarks));
            }
            insert_adopted_snapshot(self.deps, draft).await
        };
        let written: Result<_, Error> = written.await;
        match written {
            Err(error) => item.failed(error),
            Ok((record, mut remarks)) => {
                let hosts: Vec<String> = record.hosts().map(ToString::to_string).collect();
                remarks.insert(0, format!("its archive is on {}", hosts.join(", ")));
                remarks.push(PATCHES_LOST.to_owned());
                AdoptItem { host: record.host.clone(), name: record.name, ..item }
                    .done(remarks.join("; "))
            }
        }
    }

    /// Takes a name off that is another snapshot's by now; the sentence that says so.
    async fn snapshot_name(&self, draft: &mut SnapshotDraft) -> Result<Option<String>, Error> {
        let others = self.deps.snapshots.list().await?;
        let name = draft.record.name.clone();
        let taken = name
            .filter(|name| others.iter().any(|other| other.name_in_use() == Some(name.as_str())));
        Ok(taken.map(|name| {
            draft.record.name = None;
            format!("it has no name: {name} is taken")
        }))
    }

    /// Lists a further archive of a snapshot that has a record.
    async fn replica(
        &self,
        scan: &HostScan,
        found: &InventoryArchive,
        draft: SnapshotDraft,
    ) -> Adopted {
        let item = archive_item(scan, found);
        let listed = async {
            if self.is_dry {
                let record = self.deps.snapshots.get(&draft.record.id).await?;
                let record = record.ok_or_else(|| Error::internal("its record is gone"))?;
                let sha256 = draft.record.archive.sha256.as_ref();
                ensure_same_archive(&record, sha256, &scan.host)?;
                return Ok(record);
            }
            add_replica(self.deps, &draft).await
        };
        let listed: Result<SnapshotRecord, Error> = listed.await;
        match listed {
            Err(error) => item.failed(error),
            Ok(record) => {
                AdoptItem { name: record.name, ..item }.done("its record lists this archive again")
            }
        }
    }

    fn left_archive(&self, scan: &HostScan, found: &InventoryArchive) -> Option<Adopted> {
        let item = archive_item(scan, found);
        match &found.owner {
            Some(owner) => self.is_dry.then(|| item.left(&foreign_words(owner))),
            None => Some(item.left(&unreadable_words(Some(&found.directory)))),
        }
    }
}
