//! Inventory of the account: everything that is there, of any owner, as a host's. What cannot be understood is nobody's.

use super::account::{Account, Room};
use super::files::{
    Found, StubSandbox, StubSnapshot, archive_path, fingerprint, root, sandbox, snapshot, workdir,
};
use crate::domain::error::Error;
use crate::domain::facts::{
    HostFacts, Inventory, InventoryArchive, InventoryItem, InventoryRoot, NO_ENGINE,
};
use crate::domain::name::{SandboxId, SnapshotId};
use crate::domain::text::clean_line;
use crate::domain::time::Time;

/// The longest name that is shown of what is no file of ours.
const LONGEST_NAME: usize = 100;

/// Facts of the provider. Without an account it has no id, and nothing.
///
/// Errors: why the account cannot be read to its end.
pub(super) fn facts(account: Option<&Account>, at: Time) -> Result<HostFacts, Error> {
    let mut inventory = Inventory::default();
    let mut findings = Vec::new();
    if let Some(account) = account {
        inventory.roots.push(InventoryRoot {
            path: root().to_owned(),
            there: true,
            mark: Some(account.id.clone()),
        });
        for name in account.names(Room::Sandboxes)? {
            inventory.sandboxes.push(sandbox_item(account, &name, &mut findings)?);
        }
        for name in account.names(Room::Snapshots)? {
            inventory.archives.push(archive_item(account, &name, &mut findings)?);
        }
    }
    Ok(HostFacts {
        at,
        machine_id: account.map(|account| account.id.clone()).unwrap_or_default(),
        hostname: super::files::PLACE.to_owned(),
        kernel: String::new(),
        os: None,
        user: String::new(),
        uid: 0,
        cpus: 0,
        load1: 0.0,
        mem_total_bytes: 0,
        mem_available_bytes: 0,
        disk: None,
        workspace_root: root().to_owned(),
        clock_offset_s: None,
        tools: std::collections::BTreeMap::new(),
        boot_id: None,
        engines: Vec::new(),
        runtimes: Vec::new(),
        findings,
        inventory: Some(inventory),
    })
}

fn sandbox_item(
    account: &Account,
    name: &str,
    findings: &mut Vec<String>,
) -> Result<InventoryItem, Error> {
    let id = name.strip_suffix(".json").filter(|id| SandboxId::parse(id).is_ok());
    let found = match id {
        Some(id) => sandbox(account, id)?,
        None => Found::Unreadable("its name is none that saas-stub gives".to_owned()),
    };
    let shown = clean_line(id.unwrap_or(name), LONGEST_NAME);
    let nobodys = InventoryItem {
        directory: Some(workdir(&shown)),
        fingerprint: fingerprint(name),
        sandbox_id: shown,
        owner: None,
        containers: Vec::new(),
        networks: Vec::new(),
        volumes: Vec::new(),
        profile: None,
        created_at: None,
        expires_at: None,
        bytes: None,
        name: None,
        protected: false,
        engines: Vec::new(),
        made_on: None,
    };
    Ok(match found {
        Found::There(found, fingerprint) => {
            let StubSandbox { manifest, .. } = *found;
            let record = manifest.sandbox.as_ref();
            InventoryItem {
                owner: Some(manifest.owner.to_string()).filter(|owner| !owner.is_empty()),
                profile: Some(clean_line(&manifest.profile, LONGEST_NAME)),
                created_at: Some(manifest.created_at),
                expires_at: manifest.expires_at,
                name: record
                    .and_then(|record| record.name.as_ref())
                    .map(|name| clean_line(name, LONGEST_NAME)),
                protected: manifest.is_protected(),
                made_on: Some(NO_ENGINE.to_owned()),
                fingerprint,
                ..nobodys
            }
        }
        // Gone between the listing and the look is not possible under the lock.
        Found::Absent => nobodys,
        Found::Unreadable(why) => {
            findings.push(format!("sandbox {}: {why}", nobodys.sandbox_id));
            nobodys
        }
    })
}

fn archive_item(
    account: &Account,
    name: &str,
    findings: &mut Vec<String>,
) -> Result<InventoryArchive, Error> {
    let id = name.strip_suffix(".json").filter(|id| SnapshotId::is_one(id));
    let found = match id {
        Some(id) => snapshot(account, id)?,
        None => Found::Unreadable("its name is none that saas-stub gives".to_owned()),
    };
    let shown = clean_line(id.unwrap_or(name), LONGEST_NAME);
    let nobodys = InventoryArchive {
        directory: archive_path(&SnapshotId::new(shown.as_str())),
        fingerprint: fingerprint(name),
        snapshot_id: shown,
        sandbox_id: None,
        owner: None,
        created_at: None,
        bytes: None,
        name: None,
        expires_at: None,
        protected: false,
    };
    Ok(match found {
        Found::There(found, fingerprint) if found.sealed => {
            let StubSnapshot { manifest, content, .. } = *found;
            let record = &manifest.snapshot;
            InventoryArchive {
                sandbox_id: Some(clean_line(record.sandbox_id.as_str(), LONGEST_NAME)),
                owner: Some(manifest.owner.to_string()).filter(|owner| !owner.is_empty()),
                created_at: Some(record.created_at),
                bytes: Some(content.len() as u64),
                name: record.name.as_ref().map(|name| clean_line(name, LONGEST_NAME)),
                expires_at: record.expires_at,
                protected: record.is_protected(),
                fingerprint,
                ..nobodys
            }
        }
        Found::There(_, fingerprint) => InventoryArchive { fingerprint, ..nobodys },
        Found::Absent => nobodys,
        Found::Unreadable(why) => {
            findings.push(format!("snapshot {}: {why}", nobodys.snapshot_id));
            nobodys
        }
    })
}
