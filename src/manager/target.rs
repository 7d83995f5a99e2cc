//! What an extension is told of a sandbox.

use crate::domain::error::Error;
use crate::domain::extension::Target;
use crate::domain::profile::Profile;
use crate::domain::sandbox::SandboxRecord;
use crate::manager::SandboxManager;

impl SandboxManager {
    /// A sandbox with the recipe that it was made with: for whatever goes by that.
    ///
    /// Errors: as [`Self::sandbox_recipe`] has them.
    pub(super) async fn target(&self, record: &SandboxRecord) -> Result<Target, Error> {
        let recipe = self.sandbox_recipe(record).await?;
        self.target_with(record, recipe).await
    }

    /// A sandbox with as much of its recipe as is known: for looking at it, working in it and removing it, which a recipe that
    /// is lost keeps nobody from.
    pub(super) async fn target_as_known(&self, record: &SandboxRecord) -> Result<Target, Error> {
        let recipe = self.recipe_as_known(record).await;
        self.target_with(record, recipe).await
    }

    async fn target_with(&self, record: &SandboxRecord, profile: Profile) -> Result<Target, Error> {
        let mut owners = self.parts.installation.owners().await?;
        owners.retain(|owner| *owner != record.owner);
        owners.push(record.owner.clone());
        Ok(Target {
            id: record.id.clone(),
            owners,
            host: record.host.clone(),
            profile,
            inputs: record.inputs.clone(),
            created_at: record.created_at,
            handle: record.handle.clone(),
            workdir: record.workdir.clone(),
            host_identity: record.host_identity.clone(),
            stamp: None,
            roots: self.known_roots(&record.host).await,
        })
    }
}
