//! Snapshots and patches: reading them, and the verbs on them.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::verbs::{Changed, changed};
use super::{Effects, NOT_BEGUN};
use crate::client::{Client, Error, PatchRequest, RolloutRequest, SnapshotQuery};
use crate::domain::error::Code;
use crate::domain::name::OperationId;
use crate::domain::operation::CancelOutcome;
use crate::domain::patch::MAX_SCRIPT_BYTES;
use crate::tui::message::{Effect, FrozenSnapshot, Msg};
use crate::tui::model::JobId;

impl Effects {
    /// Looks that change nothing.
    pub(super) fn look(&self, effect: Effect) {
        let client = self.client();
        match effect {
            Effect::Snapshots => self.task(|problem| Msg::Snapshots(Err(problem)), async move {
                Msg::Snapshots(client.snapshots(SnapshotQuery { all: true }).await)
            }),
            Effect::Extensions => {
                self.task(|problem| Msg::Extensions(Err(problem)), async move {
                    Msg::Extensions(client.extensions().await)
                });
            }
            Effect::Compare(number, request) => {
                self.task(move |problem| Msg::Compared(number, Err(problem)), async move {
                    Msg::Compared(number, client.diff_snapshot(request).await.map(Box::new))
                });
            }
            Effect::PatchStatus(id) => {
                let lost = id.clone();
                self.task(|problem| Msg::PatchStatus(lost, Err(problem)), async move {
                    let answer = client.patch_status(id.as_str()).await;
                    Msg::PatchStatus(id, answer)
                });
            }
            _ => {}
        }
    }

    /// The verbs that change something.
    pub(super) fn snapshot_work(&self, effect: Effect) {
        let client = self.client();
        let begun = Arc::clone(&self.begun);
        match effect {
            Effect::Snapshot(job, frozen, request) => {
                self.task(move |problem| Msg::SnapshotStarted(job, Err(problem)), async move {
                    let Ok(_permit) = begun.acquire().await else {
                        return Msg::Skipped(job, NOT_BEGUN.to_owned());
                    };
                    match changed(client.as_ref(), &frozen).await {
                        Some(Changed::Other(reason)) => Msg::Skipped(job, reason),
                        Some(Changed::Unknown(problem)) => Msg::SnapshotStarted(job, Err(problem)),
                        None => {
                            Msg::SnapshotStarted(job, client.snapshot(request).await.map(Box::new))
                        }
                    }
                });
            }
            Effect::DeleteSnapshot(job, frozen, request) => {
                self.task(move |problem| Msg::SnapshotStarted(job, Err(problem)), async move {
                    let Ok(_permit) = begun.acquire().await else {
                        return Msg::Skipped(job, NOT_BEGUN.to_owned());
                    };
                    match snapshot_changed(client.as_ref(), &frozen).await {
                        Some(Changed::Other(reason)) => Msg::Skipped(job, reason),
                        Some(Changed::Unknown(problem)) => Msg::SnapshotStarted(job, Err(problem)),
                        None => Msg::SnapshotStarted(
                            job,
                            client.delete_snapshot(request).await.map(Box::new),
                        ),
                    }
                });
            }
            Effect::Restore(job, frozen, request) => {
                self.task(move |problem| Msg::Started(job, Err(problem)), async move {
                    match snapshot_changed(client.as_ref(), &frozen).await {
                        Some(Changed::Other(reason)) => {
                            let problem = Error::new(
                                Code::Conflict,
                                format!("nothing was restored: {reason}"),
                            );
                            Msg::Started(job, Err(problem.hint("look at it again, then decide")))
                        }
                        Some(Changed::Unknown(problem)) => Msg::Started(job, Err(problem)),
                        None => Msg::Started(job, client.restore(request).await.map(Box::new)),
                    }
                });
            }
            Effect::FinishSnapshot(job, operation) => {
                self.task(move |problem| Msg::SnapshotEnded(job, None, Err(problem)), async move {
                    let answer = client.finish_snapshot(&operation).await;
                    let took = took(client.as_ref(), &operation).await;
                    Msg::SnapshotEnded(job, took, answer.map(Box::new))
                });
            }
            Effect::AddPatch(number, request, file) => {
                self.task(move |problem| Msg::PatchAdded(number, Err(problem)), async move {
                    Msg::PatchAdded(number, add_patch(client.as_ref(), request, file).await)
                });
            }
            Effect::RemovePatch(snapshot, patch) => {
                let lost = snapshot.clone();
                self.task(|problem| Msg::PatchRemoved(lost, Err(problem)), async move {
                    let answer = client.remove_patch(snapshot.as_str(), patch.as_str()).await;
                    Msg::PatchRemoved(snapshot, answer.map(Box::new))
                });
            }
            Effect::RollOut(job, request) => self.roll_out(job, request),
            Effect::StopRollout(job) => {
                if let Some(token) =
                    self.rollouts.lock().unwrap_or_else(PoisonError::into_inner).remove(&job)
                {
                    token.cancel();
                }
            }
            _ => {}
        }
    }

    /// A rollout is many operations and none of its own: it is stopped by waiting no longer.
    fn roll_out(&self, job: JobId, request: RolloutRequest) {
        let client = self.client();
        let token = CancellationToken::new();
        self.rollouts.lock().unwrap_or_else(PoisonError::into_inner).insert(job, token.clone());
        self.task(move |problem| Msg::RolledOut(job, Err(problem)), async move {
            tokio::select! {
                answer = client.roll_out(request) => Msg::RolledOut(job, answer),
                () = token.cancelled() => {
                    let message = "no further sandbox is begun; those that run go on to their end";
                    Msg::RolledOut(job, Err(CancelOutcome::Stopped.fault(message).into()))
                }
            }
        });
    }
}

/// How long an operation took.
async fn took(client: &dyn Client, operation: &OperationId) -> Option<Duration> {
    let operation = client.operation(operation.as_str()).await.ok()?;
    Some(operation.finished_at?.since(operation.started_at))
}

/// Looks at a frozen snapshot once more. Between this look and the act the store's compare-and-set watches.
async fn snapshot_changed(client: &dyn Client, frozen: &FrozenSnapshot) -> Option<Changed> {
    match client.snapshot_view(frozen.id.as_str()).await {
        Ok(view) if view.record.id != frozen.id => {
            Some(Changed::Other(format!("{} is another one now", frozen.id)))
        }
        Ok(view) if view.record.revision != frozen.revision => {
            Some(Changed::Other("it changed since you looked".to_owned()))
        }
        Ok(view) if frozen.dependants.as_ref().is_some_and(|seen| *seen != view.dependants()) => {
            Some(Changed::Other("what depends on it changed since you looked".to_owned()))
        }
        Ok(_) => None,
        Err(problem) if problem.code == Code::NotFound => {
            Some(Changed::Other("it is gone".to_owned()))
        }
        Err(problem) => Some(Changed::Unknown(problem)),
    }
}

async fn add_patch(
    client: &dyn Client,
    mut request: PatchRequest,
    file: Option<PathBuf>,
) -> Result<Box<crate::domain::Patch>, Error> {
    if let Some(path) = file {
        let read = tokio::task::spawn_blocking(move || read_script(&path)).await;
        request.script = read.map_err(|error| Error::new(Code::Internal, error.to_string()))??;
    }
    client.add_patch(request).await.map(Box::new)
}

/// Reads a script; of one that is too large only so much that it can be refused.
fn read_script(path: &Path) -> Result<String, Error> {
    let refused = |message: String, cause: Option<String>| {
        let mut problem = Error::new(Code::InvalidInput, message);
        problem.causes.extend(cause);
        problem.details = serde_json::json!({"field": "script"});
        problem
    };
    let shown = path.display();
    let unreadable =
        |error: std::io::Error| refused(format!("{shown} cannot be read: {error}"), None);
    let file = std::fs::File::open(path).map_err(unreadable)?;
    if !file.metadata().map_err(unreadable)?.is_file() {
        return Err(refused(format!("{shown} is not a file"), None));
    }
    let mut bytes = Vec::new();
    let most = u64::try_from(MAX_SCRIPT_BYTES).unwrap_or(u64::MAX) + 1;
    file.take(most).read_to_end(&mut bytes).map_err(unreadable)?;
    String::from_utf8(bytes)
        .map_err(|error| refused(format!("{shown} is no text"), Some(error.to_string())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_a_file_with_text_in_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("fix.sh");
        std::fs::write(&path, "echo grüße\n").unwrap();
        assert_eq!(read_script(&path).unwrap(), "echo grüße\n");
        std::fs::write(&path, [0xff, 0xfe]).unwrap();
        for (path, words) in [
            (path.as_path(), "is no text"),
            (folder.path(), "is not a file"),
            (&path.join("no"), "cannot be read"),
        ] {
            let problem = read_script(path).unwrap_err();
            assert!(problem.message.contains(words), "{}", problem.message);
            assert_eq!(problem.details["field"], "script");
        }
        std::fs::write(&path, vec![b'x'; 2 * MAX_SCRIPT_BYTES]).unwrap();
        assert_eq!(read_script(&path).unwrap().len(), MAX_SCRIPT_BYTES + 1, "enough to be refused");
    }
}
