//! Sandboxes as their host says they are now: a service that died after `ready` is a mark; a sandbox of which the proved
//! host has nothing any more is `lost`, and what is back is ready again (semantics 1).

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::domain::error::{Code, Error};
use crate::domain::event::{EventKind, Update};
use crate::domain::extension::{Inspection, Readiness, SandboxExtension, Target};
use crate::domain::name::{ExtensionId, HostName};
use crate::domain::sandbox::{Reason, SandboxRecord, Service, State};
use crate::manager::SandboxManager;
use crate::manager::record::{News, Seen};

/// An observation that is older than this, in seconds, is written down anew though nothing changed.
const FRESH: u64 = 60;

/// So many changed records are one write; whoever is ended meanwhile has written the others.
const NOTED_AT_ONCE: usize = 1000;

impl SandboxManager {
    /// Asks a host for the services of all its sandboxes, and writes down what changed: many at a time, since each write is
    /// of the whole file.
    pub async fn refresh_services(&self, host: &str) -> Result<(), Error> {
        let mut noted = Vec::new();
        let outcome = self.look_on(&HostName::new(host), &mut noted).await;
        self.note(&mut noted, 1).await;
        outcome
    }

    /// Asks a sandbox's host for it and writes down what changed; the record as it is then. One that is worked on, or of which
    /// nothing is to be there, is as it is recorded.
    ///
    /// Errors: why nobody could look, `host_changed` among them.
    pub async fn observe(&self, id: &str) -> Result<SandboxRecord, Error> {
        let record = Arc::new(self.get(id).await?);
        let stands = matches!(record.state, State::Ready | State::Sleeping | State::Lost);
        if record.operation.is_some() || !stands {
            return Ok(SandboxRecord::clone(&record));
        }
        let extension = self.extension(&record.extension)?;
        let target = self.target_as_known(&record).await?;
        let seen = match extension.inspect(&target).await.map_err(|error| error.fault) {
            Err(fault) if fault.code == Code::Unsupported => {
                return Ok(SandboxRecord::clone(&record));
            }
            seen => seen?,
        };
        let old = record.observed_at.is_none_or(|at| self.now().since(at).as_secs() >= FRESH);
        let same = || old.then(|| -> Seen { (Arc::clone(&record), Vec::new(), Box::new(|_| {})) });
        let mut noted: Vec<Seen> = news_of(&record, seen).or_else(same).into_iter().collect();
        self.note(&mut noted, 1).await;
        self.get(record.id.as_str()).await
    }

    async fn look_on(&self, host: &HostName, noted: &mut Vec<Seen>) -> Result<(), Error> {
        let mut by_extension: BTreeMap<ExtensionId, Vec<(Target, Arc<SandboxRecord>)>> =
            BTreeMap::new();
        let mut lost = Vec::new();
        for record in self.parts.sandboxes.list().await? {
            if record.operation.is_some() || !record.host.same(host.as_str()) {
                continue;
            }
            match record.state {
                State::Ready | State::Sleeping => {
                    let target = self.target_as_known(&record).await?;
                    by_extension
                        .entry(record.extension.clone())
                        .or_default()
                        .push((target, record));
                }
                State::Lost => lost.push(record),
                _ => {}
            }
        }
        for (id, known) in by_extension {
            let extension = self.extension(&id)?;
            let (targets, records): (Vec<Target>, Vec<Arc<SandboxRecord>>) =
                known.into_iter().unzip();
            let mut seen = extension.services(host, &targets).await.map_err(|error| error.fault)?;
            for (target, record) in targets.iter().zip(records) {
                match seen.remove(&target.id) {
                    Some(services) => noted.extend(news_of_services(record, services)),
                    None => noted.extend(self.look_for(extension.as_ref(), target, record).await),
                }
                self.note(noted, NOTED_AT_ONCE).await;
            }
        }
        for record in lost {
            let extension = self.extension(&record.extension)?;
            let target = self.target_as_known(&record).await?;
            noted.extend(self.look_for(extension.as_ref(), &target, record).await);
            self.note(noted, NOTED_AT_ONCE).await;
        }
        Ok(())
    }

    /// Looks for one sandbox that the host did not name, or that was lost. What cannot be asked stays as it is.
    async fn look_for(
        &self,
        extension: &dyn SandboxExtension,
        target: &Target,
        record: Arc<SandboxRecord>,
    ) -> Option<Seen> {
        let seen = match self.inspect(extension, target).await {
            Ok(seen) => seen,
            Err(fault) => {
                tracing::debug!(sandbox = %target.id, %fault, "its host could not be asked for it");
                return None;
            }
        };
        news_of(&record, seen)
    }

    /// Writes down what was seen, as soon as it is so much, except for what somebody changed meanwhile: he knows better.
    async fn note(&self, noted: &mut Vec<Seen>, from: usize) {
        if noted.len() < from {
            return;
        }
        let now = self.now();
        let seen = std::mem::take(noted).into_iter().map(|(record, news, change)| -> Seen {
            let change = move |record: &mut SandboxRecord| {
                change(record);
                record.observed_at = Some(now);
            };
            (record, news, Box::new(change))
        });
        match self.write_seen(seen.collect()).await {
            Ok(outcomes) => {
                for outcome in outcomes {
                    match outcome {
                        Ok(record) => self.jobs.publish(Update::Record(Box::new(record))),
                        Err(fault) => {
                            tracing::debug!(%fault, "what was seen of a sandbox was not written down");
                        }
                    }
                }
            }
            Err(fault) => {
                tracing::debug!(%fault, "what was seen of sandboxes was not written down");
            }
        }
    }

    /// What its host says of a sandbox now, with its tunnels; `None` when nobody could look.
    pub(super) async fn seen_now(
        &self,
        extension: &dyn SandboxExtension,
        target: &Target,
    ) -> Option<Inspection> {
        let mut seen = self.inspect(extension, target).await.ok()?;
        if let Some(there) = &mut seen.reachability {
            self.attach(&target.id, there).await;
        }
        Some(seen)
    }

    /// A patch may have restarted services, or ended them: what is told of them is what runs after it. Where nobody can
    /// look it stays as it was.
    pub(super) async fn look_again(
        &self,
        extension: &dyn SandboxExtension,
        target: &Target,
        ready: &mut Readiness,
    ) {
        let Some(seen) = self.seen_now(extension, target).await else { return };
        ready.services = seen.services;
        if let Some(there) = seen.reachability {
            ready.reachability = there;
        }
    }
}

/// Changes that a look at one sandbox makes in its record.
fn news_of(record: &Arc<SandboxRecord>, seen: Inspection) -> Option<Seen> {
    let data = serde_json::json!({"host": record.host, "was": record.state});
    match record.state {
        State::Ready | State::Sleeping if seen.resources.is_empty() => {
            Some((Arc::clone(record), lost_news(record), Box::new(lose)))
        }
        State::Ready | State::Sleeping => news_of_services(Arc::clone(record), seen.services),
        State::Lost if seen.ready => {
            let news = vec![(EventKind::SandboxReady, data)];
            Some((
                Arc::clone(record),
                news,
                Box::new(move |record| be_back(record, State::Ready, seen)),
            ))
        }
        State::Lost if seen.asleep => {
            let news = vec![(EventKind::SandboxSleeping, data)];
            Some((
                Arc::clone(record),
                news,
                Box::new(move |record| be_back(record, State::Sleeping, seen)),
            ))
        }
        _ => None,
    }
}

/// Only what changed is written.
fn news_of_services(record: Arc<SandboxRecord>, services: Vec<Service>) -> Option<Seen> {
    let changed = record.services != services;
    changed.then(|| -> Seen {
        (record, Vec::new(), Box::new(move |record| record.services = services))
    })
}

/// The event of a sandbox of which its host has nothing any more.
pub(super) fn lost_news(record: &SandboxRecord) -> Vec<News> {
    vec![(EventKind::SandboxLost, serde_json::json!({"host": record.host, "was": record.state}))]
}

/// What a record says of a sandbox that is lost.
pub(super) fn lose(record: &mut SandboxRecord) {
    record.state = State::Lost;
    // `host_lost` is said of a host that does not answer; this one does.
    record.reason = None;
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
