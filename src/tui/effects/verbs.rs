//! The verbs that change something: each target is looked at once more just before.

use std::future::Future;
use std::sync::Arc;

use super::{Effects, NOT_BEGUN};
use crate::client::{Client, Error, Started};
use crate::domain::error::Code;
use crate::domain::name::SandboxId;
use crate::tui::message::{Effect, Frozen, Msg};
use crate::tui::model::JobId;

impl Effects {
    /// The verbs that change something.
    pub(super) fn work(&self, effect: Effect) {
        let client = Arc::clone(&self.client);
        let begun = Arc::clone(&self.begun);
        match effect {
            Effect::Create(job, request) => {
                self.task(move |problem| Msg::Started(job, Err(problem)), async move {
                    Msg::Started(job, client.create(*request).await.map(Box::new))
                });
            }
            Effect::Destroy(job, frozen, request) => {
                self.started(job, frozen, async move { client.destroy(request).await });
            }
            Effect::Recreate(job, frozen, request) => {
                self.started(job, frozen, async move { client.recreate(request).await });
            }
            Effect::Sleep(job, frozen, request) => {
                self.started(job, frozen, async move { client.sleep(request).await });
            }
            Effect::Wake(job, frozen, request) => {
                self.started(job, frozen, async move { client.wake(request).await });
            }
            Effect::Apply(job, frozen, request) => {
                self.started(job, frozen, async move { client.apply_patches(request).await });
            }
            Effect::Label(request) => {
                let (id, lost) =
                    (SandboxId::new(request.id.as_str()), SandboxId::new(request.id.as_str()));
                self.task(move |problem| Msg::Labelled(lost, Err(problem)), async move {
                    let Ok(_permit) = begun.acquire().await else {
                        return Msg::Labelled(id, Err(Error::new(Code::Cancelled, NOT_BEGUN)));
                    };
                    Msg::Labelled(id, client.label(request).await.map(Box::new))
                });
            }
            Effect::Finish(job, operation) => {
                self.task(move |problem| Msg::Ended(job, Err(problem)), async move {
                    Msg::Ended(job, client.finish(&operation).await.map(Box::new))
                });
            }
            Effect::Cancel(job, operation) => {
                self.task(move |problem| Msg::CancelAsked(job, Err(problem)), async move {
                    Msg::CancelAsked(job, client.cancel(&operation).await)
                });
            }
            verb => self.snapshot_work(verb),
        }
    }

    /// A verb on a sandbox that begins an operation, once the sandbox was found to be what the operator saw.
    fn started<F>(&self, job: JobId, frozen: Frozen, verb: F)
    where
        F: Future<Output = Result<Started, Error>> + Send + 'static,
    {
        let (client, begun) = (self.client(), Arc::clone(&self.begun));
        self.task(move |problem| Msg::Started(job, Err(problem)), async move {
            let Ok(_permit) = begun.acquire().await else {
                return Msg::Skipped(job, NOT_BEGUN.to_owned());
            };
            match changed(client.as_ref(), &frozen).await {
                Some(Changed::Unknown(problem)) => Msg::Started(job, Err(problem)),
                Some(Changed::Other(reason)) => Msg::Skipped(job, reason),
                None => Msg::Started(job, verb.await.map(Box::new)),
            }
        });
    }
}

/// Why a target may not be touched.
pub(super) enum Changed {
    /// It is not what the operator saw.
    Other(String),
    /// It could not be looked at.
    Unknown(Error),
}

/// Looks at a frozen target once more. Between this look and the act the store's compare-and-set watches.
pub(super) async fn changed(client: &dyn Client, frozen: &Frozen) -> Option<Changed> {
    match client.get(frozen.id.as_str()).await {
        Ok(record) if record.id != frozen.id => {
            Some(Changed::Other(format!("{} is another one now", frozen.id)))
        }
        Ok(record) if record.revision == frozen.revision => patches_changed(client, frozen).await,
        Ok(record) if record.state != frozen.state => Some(Changed::Other(format!(
            "it changed since you looked, from {} to {}",
            frozen.state, record.state
        ))),
        Ok(_) => Some(Changed::Other("it changed since you looked".to_owned())),
        Err(problem) if problem.code == Code::NotFound => {
            Some(Changed::Other("it is gone".to_owned()))
        }
        Err(problem) => Some(Changed::Unknown(problem)),
    }
}

/// Whether a verb that applies patches would apply others than the operator saw.
async fn patches_changed(client: &dyn Client, frozen: &Frozen) -> Option<Changed> {
    let (snapshot, seen) = frozen.patches.as_ref()?;
    match client.snapshot_view(snapshot.as_str()).await {
        Ok(view) if view.patches.iter().map(|patch| &patch.id).eq(seen) => None,
        Ok(_) => Some(Changed::Other("its patches changed since you looked".to_owned())),
        Err(problem) if problem.code == Code::NotFound => {
            Some(Changed::Other("its snapshot is gone".to_owned()))
        }
        Err(problem) => Some(Changed::Unknown(problem)),
    }
}
