//! Services as they are now: one that died after `ready` is a mark on its sandbox, not a state.

use std::collections::BTreeMap;

use crate::domain::event::Update;
use crate::domain::extension::{SandboxExtension, Target};
use crate::domain::fault::Fault;
use crate::domain::name::{ExtensionId, HostName};
use crate::domain::sandbox::State;
use crate::manager::SandboxManager;
use crate::manager::record::Guard;

impl SandboxManager {
    /// Asks a host for the services of all its sandboxes that are ready, and writes down what changed.
    pub async fn refresh_services(&self, host: &str) -> Result<(), Fault> {
        let host = HostName::new(host);
        let mut by_extension: BTreeMap<ExtensionId, Vec<Target>> = BTreeMap::new();
        for record in self.parts.sandboxes.list().await? {
            if record.state == State::Ready && record.operation.is_none() && record.host.same(host.as_str()) {
                let target = self.target(&record).await?;
                by_extension.entry(record.extension.clone()).or_default().push(target);
            }
        }
        for (id, targets) in by_extension {
            let extension = self.extension(&id)?;
            self.note_services(extension.as_ref(), &host, &targets).await?;
        }
        Ok(())
    }

    async fn note_services(
        &self,
        extension: &dyn SandboxExtension,
        host: &HostName,
        targets: &[Target],
    ) -> Result<(), Fault> {
        let seen = extension.services(host, targets).await.map_err(|error| error.fault)?;
        for (id, services) in seen {
            let Some(record) = self.parts.sandboxes.get(&id).await? else { continue };
            // Only what changed is written; whoever works on it meanwhile knows better.
            if record.services == services || record.state != State::Ready || record.operation.is_some() {
                continue;
            }
            let now = self.now();
            let write = self.transition(&id, Guard::Revision(Some(record.revision)), Vec::new(), move |record| {
                record.services = services;
                record.observed_at = Some(now);
            });
            match write.await {
                Ok(record) => self.jobs.publish(Update::Record(Box::new(record))),
                Err(fault) => tracing::debug!(sandbox = %id, %fault, "its services were not written down"),
            }
        }
        Ok(())
    }
}
