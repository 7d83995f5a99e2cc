//! The recipe that a sandbox was made from, which its snapshots have too, and where archives are.

use crate::domain::archive::ArchivePlace;
use crate::domain::error::{Code, Error};
use crate::domain::name::HostName;
use crate::domain::profile::Profile;
use crate::domain::sandbox::{ProfileRef, SandboxRecord};
use crate::domain::snapshot::SnapshotRecord;
use crate::manager::SandboxManager;
use crate::manager::archives::archives_of;

/// `details.kind` of a recipe that is lost.
const LOST: &str = "recipe_lost";

impl SandboxManager {
    /// The recipe of a sandbox that is recorded, by its hash: found as [`Self::snapshot_recipe`] finds it, beside the archive of
    /// any snapshot that has the same. Never another one.
    ///
    /// Errors: `not_found` when it is lost; why a host that may have it could not be asked.
    pub(super) async fn sandbox_recipe(&self, record: &SandboxRecord) -> Result<Profile, Error> {
        if let Some(here) = self.recipe_here(&record.profile).await? {
            return Ok(here);
        }
        let mut unasked = None;
        let snapshots = self.parts.snapshots.list().await?;
        for snapshot in
            snapshots.iter().filter(|snapshot| snapshot.profile.hash == record.profile.hash)
        {
            match self.snapshot_recipe(snapshot).await {
                Ok(recipe) => return Ok(recipe),
                Err(fault) if is_lost(&fault) => {}
                Err(fault) => {
                    unasked.get_or_insert(fault);
                }
            }
        }
        let fault =
            unasked.unwrap_or_else(|| lost(&format!("sandbox {}", record.id), &record.profile));
        Err(fault.detail("id", record.id.as_str()))
    }

    /// What is known of a sandbox's recipe: if it is lost, today's profile of its id has its root and its grace at least, as
    /// far as anybody can tell.
    pub(super) async fn recipe_as_known(&self, record: &SandboxRecord) -> Profile {
        let ProfileRef { id, version, .. } = &record.profile;
        match self.recipe_here(&record.profile).await {
            Ok(Some(recipe)) => return recipe,
            Ok(None) => tracing::warn!(sandbox = %record.id, %id, version, "its recipe is lost"),
            Err(fault) => tracing::warn!(sandbox = %record.id, %fault, "its recipe cannot be read"),
        }
        match self.parts.catalogue.profile(id.as_str()).and_then(|entry| entry.definition()) {
            Ok(today) => today.clone(),
            Err(_) => Profile::unknown(id.clone(), version, record.extension.clone()),
        }
    }

    /// The recipe that is recorded, from `recipes/`, or the catalogue's where that is the same.
    pub(super) async fn recipe_here(
        &self,
        recorded: &ProfileRef,
    ) -> Result<Option<Profile>, Error> {
        if let Some(kept) = self.parts.recipes.get(&recorded.hash).await? {
            return Ok(Some(kept));
        }
        let today =
            self.parts.catalogue.profile(recorded.id.as_str()).and_then(|entry| entry.definition());
        Ok(today.ok().filter(|today| today.hash() == recorded.hash).cloned())
    }

    /// The recipe that is recorded, by its hash: from `recipes/`, else the catalogue's where that is the same, else from what
    /// lies beside an archive. Never another one.
    ///
    /// Errors: `not_found` when it is lost; why a host that may have it could not be asked.
    pub(super) async fn snapshot_recipe(&self, record: &SnapshotRecord) -> Result<Profile, Error> {
        if let Some(here) = self.recipe_here(&record.profile).await? {
            return Ok(here);
        }
        let mut unasked = None;
        for host in record.hosts() {
            match self.recipe_beside(record, host).await {
                Ok(None) => {}
                Ok(Some(recipe)) => {
                    if let Err(fault) = self.parts.recipes.put(&recipe).await {
                        tracing::warn!(snapshot = %record.id, %fault, "its recipe could not be kept");
                    }
                    return Ok(recipe);
                }
                Err(fault) => {
                    unasked.get_or_insert(fault);
                }
            }
        }
        Err(match unasked {
            Some(fault) => fault
                .hint(format!("the recipe of snapshot {} is beside its archive only", record.id)),
            None => lost(&format!("snapshot {}", record.title()), &record.profile),
        })
    }

    /// The recipe in the manifest of an archive, if it is the one that is recorded.
    async fn recipe_beside(
        &self,
        record: &SnapshotRecord,
        host: &HostName,
    ) -> Result<Option<Profile>, Error> {
        let place = self.place_without_recipe(record, host).await?;
        if place.path.is_none() {
            return Ok(None);
        }
        let extension = self.extension(&record.extension)?;
        let seen =
            archives_of(extension.as_ref())?.look(&place).await.map_err(|error| error.fault)?;
        let recipe = seen.manifest.map(|manifest| manifest.recipe);
        Ok(recipe.filter(|recipe| recipe.hash() == record.profile.hash))
    }

    /// The place of a snapshot's archive: on its own host, or a replica's. It takes the recipe only where the folder is not
    /// known.
    pub(super) async fn archive_place(
        &self,
        record: &SnapshotRecord,
        host: &HostName,
    ) -> Result<ArchivePlace, Error> {
        let mut place = self.place_without_recipe(record, host).await?;
        if place.path.is_none() {
            place.profile = Some(self.snapshot_recipe(record).await?);
        }
        Ok(place)
    }

    async fn place_without_recipe(
        &self,
        record: &SnapshotRecord,
        host: &HostName,
    ) -> Result<ArchivePlace, Error> {
        let mut owners = self.parts.installation.owners().await?;
        owners.retain(|owner| *owner != record.owner);
        owners.push(record.owner.clone());
        let replica = record.replicas.iter().find(|replica| replica.host.same(host.as_str()));
        let own = record.host.same(host.as_str());
        let (path, host_identity) = match replica {
            Some(replica) => (Some(replica.path.clone()), replica.host_identity.clone()),
            None if own => (record.path.clone(), record.host_identity.clone()),
            None => (None, None),
        };
        let roots = self.known_roots(host).await;
        Ok(ArchivePlace {
            id: record.id.clone(),
            owners,
            host: host.clone(),
            profile: None,
            path,
            host_identity,
            roots,
        })
    }
}

/// Whether a fault says that a recipe is lost.
pub(super) fn is_lost(fault: &Error) -> bool {
    fault.details["kind"] == LOST
}

fn lost(whose: &str, recipe: &ProfileRef) -> Error {
    let message = format!("the recipe of {whose}, {} {}, is lost", recipe.id, recipe.version);
    let why = "it is neither in the data directory nor beside an archive, and the catalogue has it no more";
    Error::new(Code::NotFound, message)
        .because(why)
        .hint(format!("put recipes/{}.json back into the data directory", recipe.hash))
        .detail("kind", LOST)
        .detail("hash", recipe.hash.as_str())
}
