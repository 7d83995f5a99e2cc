//! Sandboxes as their host says they are now: a service that died after `ready` is a mark; a sandbox of which the proved
//! host has nothing any more is `lost`, and what is back is ready again (semantics 1).

use std::collections::BTreeMap;

use crate::domain::event::{EventKind, Update};
use crate::domain::extension::{Inspection, Readiness, SandboxExtension, Target};
use crate::domain::fault::Fault;
use crate::domain::name::{ExtensionId, HostName, SandboxId};
use crate::domain::sandbox::{Reason, SandboxRecord, Service, State};
use crate::manager::SandboxManager;
use crate::manager::record::{Guard, News};

impl SandboxManager {
    /// Asks a host for the services of all its sandboxes, and writes down what changed.
    pub async fn refresh_services(&self, host: &str) -> Result<(), Fault> {
        let host = HostName::new(host);
        let mut by_extension: BTreeMap<ExtensionId, Vec<Target>> = BTreeMap::new();
        let mut lost = Vec::new();
        for record in self.parts.sandboxes.list().await? {
            if record.operation.is_some() || !record.host.same(host.as_str()) {
                continue;
            }
            match record.state {
                State::Ready | State::Sleeping => {
                    let target = self.target_as_known(&record).await?;
                    by_extension.entry(record.extension.clone()).or_default().push(target);
                }
                State::Lost => lost.push(record),
                _ => {}
            }
        }
        for (id, targets) in by_extension {
            let extension = self.extension(&id)?;
            let seen = extension.services(&host, &targets).await.map_err(|error| error.fault)?;
            for target in targets.iter().filter(|target| !seen.contains_key(&target.id)) {
                self.look_for(extension.as_ref(), target).await;
            }
            for (id, services) in seen {
                self.note_services(&id, services).await?;
            }
        }
        for record in lost {
            let extension = self.extension(&record.extension)?;
            self.look_for(extension.as_ref(), &self.target_as_known(&record).await?).await;
        }
        Ok(())
    }

    async fn note_services(&self, id: &SandboxId, services: Vec<Service>) -> Result<(), Fault> {
        let Some(record) = self.parts.sandboxes.get(id).await? else { return Ok(()) };
        // Only what changed is written; whoever works on it meanwhile knows better.
        let there = matches!(record.state, State::Ready | State::Sleeping);
        if record.services == services || !there || record.operation.is_some() {
            return Ok(());
        }
        self.note(&record, Vec::new(), move |record| record.services = services).await;
        Ok(())
    }

    /// Looks for one sandbox that the host did not name, or that was lost. What cannot be asked stays as it is.
    async fn look_for(&self, extension: &dyn SandboxExtension, target: &Target) {
        let seen = match self.inspect(extension, target).await {
            Ok(seen) => seen,
            Err(fault) => return tracing::debug!(sandbox = %target.id, %fault, "its host could not be asked for it"),
        };
        let Ok(Some(record)) = self.parts.sandboxes.get(&target.id).await else { return };
        if record.operation.is_some() {
            return;
        }
        let data = serde_json::json!({"host": record.host, "was": record.state});
        match record.state {
            State::Ready | State::Sleeping if seen.resources.is_empty() => {
                self.note(&record, lost_news(&record), lose).await;
            }
            State::Lost if seen.ready => {
                let news = vec![(EventKind::SandboxReady, data)];
                self.note(&record, news, move |record| be_back(record, State::Ready, seen)).await;
            }
            State::Lost if seen.asleep => {
                let news = vec![(EventKind::SandboxSleeping, data)];
                self.note(&record, news, move |record| be_back(record, State::Sleeping, seen)).await;
            }
            _ => {}
        }
    }

    /// Writes down what was seen, unless somebody changed the record meanwhile.
    async fn note(&self, record: &SandboxRecord, news: Vec<News>, change: impl FnOnce(&mut SandboxRecord) + Send) {
        let now = self.now();
        let write = self.transition(&record.id, Guard::Revision(Some(record.revision)), news, move |record| {
            change(record);
            record.observed_at = Some(now);
        });
        match write.await {
            Ok(record) => self.jobs.publish(Update::Record(Box::new(record))),
            Err(fault) => tracing::debug!(sandbox = %record.id, %fault, "what was seen of it was not written down"),
        }
    }

    /// What its host says of a sandbox now, with its tunnels; `None` when nobody could look.
    pub(super) async fn seen_now(&self, extension: &dyn SandboxExtension, target: &Target) -> Option<Inspection> {
        let mut seen = self.inspect(extension, target).await.ok()?;
        if let Some(there) = &mut seen.reachability {
            self.attach(&target.id, there).await;
        }
        Some(seen)
    }

    /// A patch may have restarted services, or ended them: what is told of them is what runs after it. Where nobody can
    /// look it stays as it was.
    pub(super) async fn look_again(&self, extension: &dyn SandboxExtension, target: &Target, ready: &mut Readiness) {
        let Some(seen) = self.seen_now(extension, target).await else { return };
        ready.services = seen.services;
        if let Some(there) = seen.reachability {
            ready.reachability = there;
        }
    }
}

/// The event of a sandbox of which its host has nothing any more.
pub(super) fn lost_news(record: &SandboxRecord) -> Vec<News> {
    vec![(EventKind::SandboxLost, serde_json::json!({"host": record.host, "was": record.state}))]
}

/// What a record says of a sandbox that is lost.
pub(super) fn lose(record: &mut SandboxRecord) {
    record.state = State::Lost;
    record.reason = Some(Reason::HostLost);
    record.message = Some(format!("{} has nothing of it any more", record.host));
    record.reachability = None;
    record.services.clear();
}

fn be_back(record: &mut SandboxRecord, state: State, seen: Inspection) {
    record.state = state;
    record.reason = Some(Reason::User);
    record.message = None;
    record.reachability = seen.reachability;
    record.services = seen.services;
}
