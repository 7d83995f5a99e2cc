//! The only place of the manager that spawns: an operation is a job here, with a way to cancel it, to wait for it
//! and to drain all of them. A job never dies silently: a panic is a failed operation.

use std::collections::HashMap;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::FutureExt;
use tokio::sync::{broadcast, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::domain::error::Error;
use crate::domain::name::OperationId;
use crate::domain::update::{Ended, Progress, Update};

/// Updates that a slow listener may fall behind before it has to read everything again.
const BACKLOG: usize = 4096;

/// Ended operations that are remembered for whoever waits.
const MAX_ENDED: usize = 1024;

/// Running operations of this process, and whoever listens.
pub(crate) struct Jobs {
    tracker: TaskTracker,
    running: Mutex<HashMap<OperationId, Job>>,
    updates: broadcast::Sender<Update>,
    stop: CancellationToken,
}

#[derive(Clone)]
struct Job {
    cancel: CancellationToken,
    latest: Arc<Mutex<Option<Progress>>>,
    end: watch::Receiver<Option<Ended>>,
}

impl Default for Jobs {
    fn default() -> Self {
        Self {
            tracker: TaskTracker::new(),
            running: Mutex::new(HashMap::new()),
            updates: broadcast::Sender::new(BACKLOG),
            stop: CancellationToken::new(),
        }
    }
}

impl Jobs {
    /// Starts `work` as the operation `id`; `cancel` is cancelled on request. It answers with its end; `panicked` makes that
    /// answer if it panics.
    pub(crate) fn start<F, P, Q>(
        &self,
        id: &OperationId,
        cancel: CancellationToken,
        work: F,
        panicked: P,
    ) where
        F: Future<Output = Ended> + Send + 'static,
        P: FnOnce(Error) -> Q + Send + 'static,
        Q: Future<Output = Ended> + Send + 'static,
    {
        let (done, end) = watch::channel(None);
        let job = Job { cancel, latest: Arc::default(), end };
        {
            let mut running = lock(&self.running);
            if running.len() > MAX_ENDED {
                running.retain(|_, job| job.end.borrow().is_none());
            }
            running.insert(id.clone(), job);
        }
        let updates = self.updates.clone();
        self.tracker.spawn(async move {
            let ended = match AssertUnwindSafe(work).catch_unwind().await {
                Ok(ended) => ended,
                Err(panic) => panicked(error_of_panic(panic.as_ref())).await,
            };
            let _ = updates.send(Update::Ended(Box::new(ended.clone())));
            let _ = done.send(Some(ended));
        });
    }

    /// Spawns a task that lives until the process closes: the follower of other processes' changes.
    pub(crate) fn background(&self, task: impl Future<Output = ()> + Send + 'static) {
        let stop = self.stop.clone();
        self.tracker.spawn(async move {
            tokio::select! {
                () = task => {}
                () = stop.cancelled() => {}
            }
        });
    }

    /// Tells listeners, and remembers an operation's latest progress.
    pub(crate) fn publish(&self, update: Update) {
        if let Update::Progress(progress) = &update
            && let Some(job) = lock(&self.running).get(&progress.operation)
        {
            *lock(&job.latest) = Some(progress.clone());
        }
        // Nobody has to listen.
        let _ = self.updates.send(update);
    }

    pub(crate) fn listen(&self) -> broadcast::Receiver<Update> {
        self.updates.subscribe()
    }

    /// Whether the end of an operation of this process was asked for.
    pub(crate) fn is_cancelled(&self, id: &OperationId) -> bool {
        lock(&self.running).get(id).is_some_and(|job| job.cancel.is_cancelled())
    }

    /// Asks for the end of an operation of this process; whether it is one.
    pub(crate) fn cancel(&self, id: &OperationId) -> bool {
        let job = lock(&self.running).get(id).cloned();
        job.is_some_and(|job| {
            job.cancel.cancel();
            true
        })
    }

    /// The end of an operation of this process; `None` if it is not one.
    pub(crate) async fn ended(&self, id: &OperationId) -> Option<Ended> {
        let mut end = lock(&self.running).get(id)?.end.clone();
        end.wait_for(Option::is_some).await.ok().and_then(|ended| ended.clone())
    }

    /// Latest progress of an operation of this process.
    pub(crate) fn latest(&self, id: &OperationId) -> Option<Progress> {
        let job = lock(&self.running).get(id).cloned()?;
        lock(&job.latest).clone()
    }

    /// Rolls back what still runs, waits for it, and ends the background tasks.
    pub(crate) async fn close(&self) {
        for job in lock(&self.running).values() {
            job.cancel.cancel();
        }
        self.stop.cancel();
        self.tracker.close();
        self.tracker.wait().await;
    }
}

/// A poisoned lock only means that another thread panicked while it held plain data.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn error_of_panic(panic: &(dyn std::any::Any + Send)) -> Error {
    let text = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".to_owned());
    Error::internal("the operation ended by a error in sandboxer")
        .because(text)
        .hint("the log file has the place")
}
