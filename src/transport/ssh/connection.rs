//! Shared connection as this process sees it: made when first needed, made again when it was lost.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use openssh::Session;
use tokio::sync::Mutex as AsyncMutex;
use tokio::time::{sleep, timeout};

use crate::domain::error::Error;
use crate::transport::ssh::control_master::{ConnectionPlace, ControlMaster, SshTarget, jitter};

/// A connection that is or was up in this process, or not yet.
pub(crate) struct Connection {
    target: Arc<SshTarget>,
    place: ConnectionPlace,
    state: AsyncMutex<State>,
    /// Attempts that have ended; who waited for one that failed gets its failure instead of making another.
    attempts: AtomicU64,
    /// Attempts under way in this process, to all hosts.
    connecting: Arc<AtomicUsize>,
    socket: Mutex<PathBuf>,
}

#[derive(Default)]
struct State {
    session: Option<Arc<Session>>,
    failure: Option<Error>,
}

impl Connection {
    pub(crate) fn new(
        target: Arc<SshTarget>,
        place: ConnectionPlace,
        connecting: Arc<AtomicUsize>,
    ) -> Self {
        Self {
            target,
            place,
            state: AsyncMutex::default(),
            attempts: AtomicU64::new(0),
            connecting,
            socket: Mutex::default(),
        }
    }

    /// The connection; whoever comes while it is being made waits for the same attempt.
    pub(crate) async fn session(&self) -> Result<Arc<Session>, Error> {
        let before = self.attempts.load(Ordering::Acquire);
        let mut state = self.state.lock().await;
        if let Some(session) = &state.session {
            return Ok(session.clone());
        }
        if let Some(failure) =
            state.failure.as_ref().filter(|_| self.attempts.load(Ordering::Acquire) != before)
        {
            return Err(failure.clone());
        }
        let made = self.make().await;
        self.attempts.fetch_add(1, Ordering::AcqRel);
        match made {
            Ok(master) => Ok(self.keep(&mut state, master)),
            Err(error) => {
                state.failure = Some(error.clone());
                Err(error)
            }
        }
    }

    /// The connection if there is one already, made by this process or another. `first`: the socket of the first one.
    pub(crate) async fn present(&self, first: &Path) -> Option<Arc<Session>> {
        let mut state = self.state.lock().await;
        if let Some(session) = &state.session {
            return Some(session.clone());
        }
        let master = self.target.beside(first, self.place).await?;
        Some(self.keep(&mut state, master))
    }

    fn keep(
        &self,
        state: &mut State,
        ControlMaster { session, socket }: ControlMaster,
    ) -> Arc<Session> {
        *self.socket.lock().unwrap_or_else(PoisonError::into_inner) = socket;
        *state = State { session: Some(session.clone()), failure: None };
        session
    }

    async fn make(&self) -> Result<ControlMaster, Error> {
        let attempt = Attempt::take(&self.connecting);
        // Several of our hosts may be one sshd, which drops what comes all at once.
        if attempt.ahead > 0 {
            sleep(jitter(40 * u32::try_from(attempt.ahead.min(10)).unwrap_or(10))).await;
        }
        self.target.connect(self.place).await
    }

    /// Lets go of a connection that was lost.
    pub(crate) async fn forget(&self, session: &Arc<Session>) {
        let mut state = self.state.lock().await;
        if state.session.as_ref().is_some_and(|current| Arc::ptr_eq(current, session)) {
            state.session = None;
        }
    }

    /// The connection that this process has, whatever became of it.
    pub(crate) async fn current(&self) -> Option<Arc<Session>> {
        self.state.lock().await.session.clone()
    }

    /// Control socket; empty before the first connection.
    pub(crate) fn socket(&self) -> PathBuf {
        self.socket.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

pub(crate) async fn alive(session: &Session) -> bool {
    matches!(timeout(Duration::from_secs(2), session.check()).await, Ok(Ok(())))
}

struct Attempt<'a> {
    count: &'a AtomicUsize,
    ahead: usize,
}

impl<'a> Attempt<'a> {
    fn take(count: &'a AtomicUsize) -> Self {
        Self { count, ahead: count.fetch_add(1, Ordering::Relaxed) }
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::Relaxed);
    }
}
