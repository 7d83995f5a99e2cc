//! Adoption: records of what hosts have and no record knows (semantics 5). A host that cannot be read is an item that says so, and
//! nothing on it is looked for.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::stream::{self, StreamExt as _};

use crate::domain::adoption::{AdoptRequest, Adopted, AdoptedKind};
use crate::domain::error::Error;
use crate::domain::facts::InventoryItem;
use crate::domain::name::{HostName, OwnerId, SandboxId};
use crate::domain::sandbox::SandboxRecord;
use crate::manager::deps::Deps;
use crate::manager::stale::adopt_id::{JudgedId, judge_id};
use crate::manager::stale::adopt_item::{
    AdoptItem, foreign_words, lives, sandbox_item, sent_again, unread_item, unreadable_words,
};
use crate::manager::stale::adopt_sandbox::{
    FoundSandbox, SandboxDraft, insert_adopted, lock_unrecorded, message, read_found,
};
use crate::manager::stale::owners::{ensure_current, ensure_met, parse_owner, take_over};
use crate::manager::stale::scan::{HostScan, by_place, scan_hosts};
use crate::store::Held;

pub(super) const AT_ONCE: usize = 6;

/// Loss of a sandbox with its store.
const LOST_WITH_STORE: &str =
    "its events, prices and the output of its patches are with the store that made it";

pub(super) struct Adoption<'a> {
    pub(super) deps: &'a Deps,
    pub(super) owners: Vec<OwnerId>,
    pub(super) is_dry: bool,
}

/// Makes records of what hosts have and no record knows: an item for each thing. With an owner, that becomes one of ours first.
///
/// Errors: `conflict` in a copied or restored data directory; `not_found` for a host that is unknown, or an owner that nobody
/// has met.
pub(crate) async fn adopt(deps: &Deps, request: &AdoptRequest) -> Result<Vec<Adopted>, Error> {
    let mut owners = deps.installation.owners().await?;
    let owner = request.owner.as_deref().map(parse_owner).transpose()?;
    // New sandboxes bear that one already.
    let owner = owner.filter(|owner| owners.first() != Some(owner));
    let (scans, unread) = scan_hosts(deps, &request.hosts).await?;
    let mut items: Vec<Adopted> = unread.into_iter().map(unread_item).collect();
    if !request.dry_run {
        ensure_current(deps).await?;
    }
    if let Some(owner) = owner {
        ensure_met(&owner, &scans)?;
        if request.dry_run {
            items.extend(scans.iter().map(|scan| would_take_over(&owner, &scan.host)));
        } else {
            items.extend(take_over(deps, &owner).await?);
        }
        if !owners.contains(&owner) {
            owners.push(owner);
        }
    }
    let adoption = Adoption { deps, owners, is_dry: request.dry_run };
    // Snapshots first: a sandbox is based on one.
    items.extend(Box::pin(adoption.snapshots(&scans)).await?);
    items.extend(Box::pin(adoption.sandboxes(&scans)).await?);
    if !request.dry_run {
        let reached: BTreeSet<&HostName> = items
            .iter()
            .filter(|item| item.ok && item.kind == AdoptedKind::Sandbox)
            .map(|item| &item.host)
            .collect();
        for host in reached {
            (deps.host_reached)(deps, host).await;
        }
    }
    Ok(items)
}

fn would_take_over(owner: &OwnerId, host: &HostName) -> Adopted {
    AdoptItem::new(AdoptedKind::Owner, owner.as_str(), host)
        .of(owner.as_str())
        .done("this owner would be ours, and whoever else has it the one behind")
}

impl Adoption<'_> {
    pub(super) fn is_ours(&self, owner: Option<&String>) -> bool {
        owner.is_some_and(|owner| self.owners.iter().any(|ours| ours.as_str() == owner))
    }

    async fn sandboxes(&self, scans: &[HostScan]) -> Result<Vec<Adopted>, Error> {
        let known = self.known().await?;
        let mut items = Vec::new();
        let found = scans.iter().flat_map(|scan| {
            let with = scan.inventory.sandboxes.iter().filter(|item| item.directory.is_some());
            with.map(move |item| (scan, item))
        });
        let places =
            by_place(found, |item: &InventoryItem| item.directory.as_deref().unwrap_or_default());
        let mut by_id: BTreeMap<&str, Vec<Vec<(&HostScan, &InventoryItem)>>> = BTreeMap::new();
        for seen in places.values() {
            let Some((scan, item)) = seen.first().copied() else { continue };
            if self.is_ours(item.owner.as_ref()) {
                by_id.entry(item.sandbox_id.as_str()).or_default().push(seen.clone());
            } else {
                items.extend(self.left_sandbox(scan, item));
            }
        }
        items.extend(self.without_directory(scans, &by_id, &known));
        let mut wanted = Vec::new();
        for (id, places) in by_id {
            match judge_id(id, &places, known.get(id)) {
                JudgedId::Known => {}
                JudgedId::Refused(refused) => items.extend(refused),
                JudgedId::Wanted => wanted.extend(places.into_iter().next()),
            }
        }
        let mut reading = Vec::new();
        for seen in wanted {
            reading.push(async move { (seen.clone(), self.read(&seen).await) });
        }
        let mut read: Vec<_> = stream::iter(reading).buffered(AT_ONCE).collect().await;
        read.sort_by_key(|(_, draft)| {
            draft.as_ref().ok().map(|(draft, _)| draft.record.created_at)
        });
        let mut names = self.names().await?;
        for (seen, draft) in read {
            let Some((scan, found)) = seen.first().copied() else { continue };
            items.push(match draft {
                Err(error) => sandbox_item(scan, found).failed(error),
                Ok((draft, _lock)) => Box::pin(self.sandbox(scan, found, draft, &mut names)).await,
            });
        }
        Ok(items)
    }

    /// Reads a sandbox under its lock, on the host that its manifest names, where that is one of those that have it; else on the
    /// first. A dry run takes no lock.
    async fn read(
        &self,
        seen: &[(&HostScan, &InventoryItem)],
    ) -> Result<(SandboxDraft, Option<Box<dyn Held>>), Error> {
        let read_on = async |(scan, item): (&HostScan, &InventoryItem)| {
            let found = FoundSandbox {
                host: &scan.host,
                facts: &scan.facts,
                item,
                owners: &self.owners,
                is_dry: self.is_dry,
            };
            read_found(self.deps, found).await
        };
        let first = seen.first().copied();
        let first = first.ok_or_else(|| Error::internal("there is no sandbox to read"))?;
        let id = SandboxId::parse(&first.1.sandbox_id)?;
        let lock = if self.is_dry { None } else { Some(lock_unrecorded(self.deps, &id).await?) };
        let draft = read_on(first).await?;
        let claimed = draft.claimed_host.clone();
        let better = seen
            .iter()
            .find(|(scan, _)| claimed.as_ref().is_some_and(|host| host.same(scan.host.as_str())));
        let draft = match better {
            Some(better) if !better.0.host.same(first.0.host.as_str()) => read_on(*better).await?,
            _ => draft,
        };
        Ok((draft, lock))
    }

    async fn sandbox(
        &self,
        scan: &HostScan,
        found: &InventoryItem,
        mut draft: SandboxDraft,
        names: &mut BTreeSet<String>,
    ) -> Adopted {
        let item = AdoptItem { host: draft.record.host.clone(), ..sandbox_item(scan, found) };
        let inputs = sent_again(&draft.record);
        let written = if self.is_dry {
            if let Some(name) = draft.record.name.clone()
                && !names.insert(name.clone())
            {
                draft.record.name = None;
                draft.remarks.push(format!("it has no name: {name} is taken"));
            }
            Ok((draft.record, draft.remarks))
        } else {
            Box::pin(insert_adopted(self.deps, draft)).await
        };
        match written {
            Err(error) => item.failed(error),
            Ok((record, remarks)) => {
                let mut words = vec![record.state.to_string(), lives(&record)];
                words.push(message(&record, &remarks));
                words.extend(inputs);
                words.push(LOST_WITH_STORE.to_owned());
                AdoptItem { name: record.name, ..item }.done(words.join("; "))
            }
        }
    }

    /// Records by id, those in the history too.
    async fn known(&self) -> Result<BTreeMap<String, SandboxRecord>, Error> {
        let mut records = self.deps.sandboxes.history().await?;
        records.extend(self.deps.sandboxes.list().await?);
        let known = records.iter().map(|one| (one.id.to_string(), SandboxRecord::clone(one)));
        Ok(known.collect())
    }

    async fn names(&self) -> Result<BTreeSet<String>, Error> {
        let records = self.deps.sandboxes.list().await?;
        Ok(records.iter().filter_map(|one| one.name_in_use().map(str::to_owned)).collect())
    }

    /// Item of a directory that is left: another installation's, where somebody only looks, and one of which nobody can tell.
    fn left_sandbox(&self, scan: &HostScan, found: &InventoryItem) -> Option<Adopted> {
        let item = sandbox_item(scan, found);
        match &found.owner {
            Some(owner) => self.is_dry.then(|| item.left(&foreign_words(owner))),
            None => Some(item.left(&unreadable_words(found.directory.as_deref()))),
        }
    }

    /// Items of what has containers, networks or volumes of ours, and no directory anywhere: nothing says what it was.
    fn without_directory(
        &self,
        scans: &[HostScan],
        with: &BTreeMap<&str, Vec<Vec<(&HostScan, &InventoryItem)>>>,
        known: &BTreeMap<String, SandboxRecord>,
    ) -> Vec<Adopted> {
        let mut told: BTreeSet<&str> = BTreeSet::new();
        let mut items = Vec::new();
        for scan in scans {
            for found in &scan.inventory.sandboxes {
                let id = found.sandbox_id.as_str();
                let is_bare = found.directory.is_none() && self.is_ours(found.owner.as_ref());
                if is_bare && !with.contains_key(id) && !known.contains_key(id) && told.insert(id) {
                    let why = "it has no directory on any host that was read, and nothing else says what it was; `sandboxer inspect stale` shows it";
                    items.push(sandbox_item(scan, found).left(why));
                }
            }
        }
        items
    }
}
