//! `owner`: who this installation is on the hosts, which machine it is on, and how often it wrote there.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::domain::error::Error;
use crate::domain::extension::OwnerStamp;
use crate::domain::name::{HostName, OwnerId};
use crate::store::corruption::{self, Foreign, Position, START};
use crate::store::document::utf8;
use crate::store::files::{self, DataDir, blocking};
use crate::store::lock::FileLock;
use crate::store::{Installation, Ownership};

const SCHEMA: u64 = 1;

/// Step by which a claim or an adoption raises a counter: no other copy comes by it in what it makes before it asks.
const CLAIM_STEP: u64 = 1000;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Owner {
    schema: u64,
    owners: Vec<OwnerId>,
    machine_id: String,
    counter: u64,
    /// Counters of the owner ids that were adopted.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    adopted: BTreeMap<OwnerId, u64>,
    /// Host that had seen a later state than this, and its counter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    behind: Option<Behind>,
    /// Keys that a newer version wrote beside it.
    #[serde(flatten)]
    extra: Map<String, Value>,
}

/// A host that had seen more of this installation than the installation itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Behind {
    host: HostName,
    counter: u64,
}

/// The installation, in a file.
pub struct OwnerFile {
    dir: DataDir,
    path: Arc<Path>,
    lock: FileLock,
    machine_id: Arc<str>,
}

impl OwnerFile {
    pub(super) fn new(dir: &DataDir, machine_id: &str) -> Self {
        let path: Arc<Path> = dir.join("owner").into();
        Self {
            dir: dir.clone(),
            path,
            lock: FileLock::new(dir, "owner"),
            machine_id: machine_id.into(),
        }
    }

    /// Changes the file under its lock, making it first if there is none.
    async fn change<T: Send + 'static>(
        &self,
        change: impl FnOnce(&mut Owner) -> T + Send + 'static,
    ) -> Result<(Owner, T), Error> {
        let guard = self.lock.acquire().await?;
        let (dir, path, machine_id) =
            (self.dir.clone(), Arc::clone(&self.path), Arc::clone(&self.machine_id));
        blocking(move || {
            let before = read(&path)?;
            let mut owner = before.clone().unwrap_or_else(|| Owner {
                schema: SCHEMA,
                owners: vec![OwnerId::new(uuid::Uuid::new_v4().simple().to_string())],
                machine_id: machine_id.to_string(),
                counter: 0,
                adopted: BTreeMap::new(),
                behind: None,
                extra: Map::new(),
            });
            let result = change(&mut owner);
            if before.as_ref() != Some(&owner) {
                dir.prepare(None)?;
                files::remove_leftovers(&path);
                let mut text = serde_json::to_vec(&owner).map_err(|error| {
                    Error::internal("the owner file cannot be written as JSON").because(error)
                })?;
                text.push(b'\n');
                files::replace(&path, &text, true)?;
            }
            drop(guard);
            Ok((owner, result))
        })
        .await
    }

    fn stamp_of(&self, owner: Owner) -> Result<OwnerStamp, Error> {
        let first = owner.owners.into_iter().next();
        let id = first.ok_or_else(|| Error::internal("the owner file names nobody"))?;
        Ok(OwnerStamp {
            owner: id,
            machine_id: self.machine_id.to_string(),
            counter: owner.counter,
        })
    }

    fn judge(&self, owner: &Owner) -> Ownership {
        match &owner.behind {
            _ if owner.machine_id != *self.machine_id => Ownership::Copied,
            Some(Behind { host, counter }) => {
                Ownership::Behind { host: host.clone(), counter: *counter }
            }
            None => Ownership::Own,
        }
    }

    async fn read(&self) -> Result<Option<Owner>, Error> {
        let path = Arc::clone(&self.path);
        blocking(move || read(&path)).await
    }
}

/// Reads the file. A backup without it is an error: a new owner id would make everything on the hosts a stranger's.
fn read(path: &Path) -> Result<Option<Owner>, Error> {
    let Some((bytes, _)) = files::read_whole(path)? else {
        return if files::backup_of(path).exists() {
            Err(corruption::missing(path))
        } else {
            Ok(None)
        };
    };
    let text = utf8(path, &bytes)?;
    let value: Value = serde_json::from_str(text).map_err(|error| {
        corruption::corrupt(
            path,
            "the file",
            Position::of_json(&error, START),
            corruption::words(&error),
        )
    })?;
    match value.get("schema").map(Value::as_u64) {
        Some(Some(SCHEMA)) => {}
        Some(Some(newer)) if newer > SCHEMA => {
            return Err(corruption::foreign(path, Foreign::Newer(newer)));
        }
        _ => return Err(corruption::foreign(path, Foreign::Unknown)),
    }
    let owner: Owner = serde_json::from_str(text).map_err(|error| {
        corruption::corrupt(
            path,
            "the file",
            Position::of_json(&error, START),
            corruption::words(&error),
        )
    })?;
    if owner.owners.is_empty() {
        return Err(corruption::corrupt(path, "`owners`", START, "it names nobody"));
    }
    Ok(Some(owner))
}

#[async_trait]
impl Installation for OwnerFile {
    fn machine_id(&self) -> &str {
        &self.machine_id
    }

    async fn next_stamp(&self) -> Result<OwnerStamp, Error> {
        let (owner, ()) =
            self.change(|owner| owner.counter = owner.counter.saturating_add(1)).await?;
        self.stamp_of(owner)
    }

    async fn owners(&self) -> Result<Vec<OwnerId>, Error> {
        if let Some(owner) = self.read().await? {
            return Ok(owner.owners);
        }
        Ok(self.change(|_| ()).await?.0.owners)
    }

    async fn stamp(&self) -> Result<OwnerStamp, Error> {
        match self.read().await? {
            Some(owner) => self.stamp_of(owner),
            None => self.stamp_of(self.change(|_| ()).await?.0),
        }
    }

    async fn ownership(&self) -> Result<Ownership, Error> {
        Ok(self.read().await?.map_or(Ownership::Own, |owner| self.judge(&owner)))
    }

    async fn seen_on(&self, host: &HostName, counter: u64) -> Result<Ownership, Error> {
        let host = host.clone();
        // Compared under the lock: another process may have raised the counter and told the host a moment ago.
        let (owner, ()) = self
            .change(move |owner| {
                if counter > owner.counter && owner.behind.is_none() {
                    owner.behind = Some(Behind { host, counter });
                }
            })
            .await?;
        Ok(self.judge(&owner))
    }

    async fn claim(&self, counters_seen: u64) -> Result<OwnerStamp, Error> {
        let machine_id = self.machine_id.to_string();
        let claim = move |owner: &mut Owner| {
            let seen = owner.behind.take().map_or(0, |behind| behind.counter).max(counters_seen);
            owner.machine_id = machine_id;
            owner.counter = owner.counter.max(seen).saturating_add(CLAIM_STEP);
            for counter in owner.adopted.values_mut() {
                *counter = (*counter).max(seen).saturating_add(CLAIM_STEP);
            }
        };
        let (owner, ()) = self.change(claim).await?;
        self.stamp_of(owner)
    }

    async fn owner_counters(&self) -> Result<BTreeMap<OwnerId, u64>, Error> {
        let owner = match self.read().await? {
            Some(owner) => owner,
            None => self.change(|_| ()).await?.0,
        };
        let counter_of = |at: usize, id: &OwnerId| match at {
            0 => owner.counter,
            _ => owner.adopted.get(id).copied().unwrap_or(0),
        };
        Ok(owner
            .owners
            .iter()
            .enumerate()
            .map(|(at, id)| (id.clone(), counter_of(at, id)))
            .collect())
    }

    async fn adopt_owner(&self, owner: &OwnerId, counter_seen: u64) -> Result<OwnerStamp, Error> {
        let id = owner.clone();
        let adopt = move |owner: &mut Owner| {
            if owner.owners.first() == Some(&id) {
                return owner.counter;
            }
            if !owner.owners.contains(&id) {
                owner.owners.push(id.clone());
            }
            let counter = owner.adopted.entry(id).or_default();
            *counter = (*counter).max(counter_seen).saturating_add(CLAIM_STEP);
            *counter
        };
        let (_, counter) = self.change(adopt).await?;
        Ok(OwnerStamp { owner: owner.clone(), machine_id: self.machine_id.to_string(), counter })
    }
}

/// Id of this machine: systemd's or D-Bus's machine id, else its name.
pub(super) fn this_machine() -> String {
    ["/etc/machine-id", "/var/lib/dbus/machine-id"]
        .map(PathBuf::from)
        .iter()
        .filter_map(|path| std::fs::read_to_string(path).ok())
        .map(|text| text.trim().to_owned())
        // An image's placeholder is no id.
        .find(|text| !text.is_empty() && text != "uninitialized")
        .unwrap_or_else(|| format!("host:{}", rustix::system::uname().nodename().to_string_lossy()))
}
