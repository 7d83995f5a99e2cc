//! The connections to one host for one purpose: one, and further ones while sshd gives no more sessions on it.
//!
//! sshd allows `MaxSessions` (10) on a connection, and all our processes share it. Each of them holds a session for its
//! shell, so ten dashboards would lock everybody else out, and ten commands that each want a second session would wait
//! for each other for ever. Who is refused for a moment opens the next connection, which all processes find by its
//! socket's name, and closes itself a minute after the last session on it.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use openssh::{Session, Stdio};
use tokio::time::{Instant, sleep, timeout};

use crate::domain::error::Error;
use crate::transport::shell::Shells;
use crate::transport::shell::channel::{BrokenChannel, Channel, Process};
use crate::transport::shell::disconnect::killed;
use crate::transport::ssh::connection::{Connection, alive};
use crate::transport::ssh::control_master::{
    ConnectionPlace, ConnectionPurpose, MOST, SshTarget, jitter,
};
use crate::transport::ssh::ssh_errors::unreachable;

/// Time for which a session is asked for where every connection refuses.
const REFUSED_FOR: Duration = Duration::from_mins(1);
/// Time for which every connection that is there must have refused before one more is made. sshd frees a slot late.
const WIDEN_AFTER: Duration = Duration::from_millis(150);
/// Time that a session may take to open on a connection that is up.
const OPEN: Duration = Duration::from_secs(20);

/// The connections to one host for one purpose.
pub(crate) struct SessionPool {
    target: Arc<SshTarget>,
    connections: [Connection; MOST],
    /// The one that had room for the last session.
    last: AtomicUsize,
}

/// Answer of one connection that was asked for a session.
enum Asked {
    Opened(Box<Channel>),
    Refused,
    /// A further connection that has ended since.
    Gone,
}

impl SessionPool {
    pub(crate) fn new(
        target: &Arc<SshTarget>,
        purpose: ConnectionPurpose,
        connecting: &Arc<AtomicUsize>,
    ) -> Self {
        let connection = |index| {
            Connection::new(target.clone(), ConnectionPlace { purpose, index }, connecting.clone())
        };
        Self {
            target: target.clone(),
            connections: std::array::from_fn(connection),
            last: AtomicUsize::new(0),
        }
    }

    /// Makes sure that the first connection is up.
    pub(crate) async fn connect(&self) -> Result<(), Error> {
        let session = self.connections[0].session().await?;
        if alive(&session).await {
            return Ok(());
        }
        self.connections[0].forget(&session).await;
        self.connections[0].session().await.map(drop)
    }

    /// Opens a session that runs `line` by the account's login shell.
    ///
    /// A session that was refused ran nothing, and neither did one on a connection that is gone: both are tried again.
    /// `shells`: idle ones of ours, which are given up before we wait for a session that they occupy.
    pub(crate) async fn open(
        &self,
        line: &[u8],
        shells: Option<&Shells>,
    ) -> Result<Channel, Error> {
        let started = Instant::now();
        let (mut pause, mut widened) = (10, started);
        loop {
            let mut there = 0;
            for (index, connection) in self.connections.iter().enumerate() {
                // Always from the first: the further ones empty themselves when they are not needed any more.
                let session = match index {
                    0 => Some(connection.session().await?),
                    _ => connection.present(&self.connections[0].socket()).await,
                };
                let Some(session) = session else { continue };
                match self.ask(index, session, line).await? {
                    Asked::Opened(channel) => {
                        self.last.store(index, Ordering::Relaxed);
                        return Ok(*channel);
                    }
                    Asked::Refused => there += 1,
                    Asked::Gone => {}
                }
            }
            if there < MOST && widened.elapsed() >= WIDEN_AFTER {
                self.widen().await;
                widened = Instant::now();
                continue;
            }
            if there == MOST
                && let Some(shells) = shells
            {
                shells.close().await;
            }
            if started.elapsed() >= REFUSED_FOR {
                return Err(self.error("other", "gives no session").hint(
                    "sshd allows MaxSessions on one connection; other programs of this account hold all of them",
                ));
            }
            sleep(jitter(pause)).await;
            pause = (pause * 2).min(300);
        }
    }

    /// Makes the first connection that is not there. That one cannot be made is no reason to give up waiting.
    async fn widen(&self) {
        for connection in &self.connections[1..] {
            if connection.present(&self.connections[0].socket()).await.is_none() {
                if let Err(error) = connection.session().await {
                    tracing::debug!(host = %self.target.spec.name, %error, "no further connection");
                }
                return;
            }
        }
    }

    async fn ask(&self, index: usize, session: Arc<Session>, line: &[u8]) -> Result<Asked, Error> {
        let mut session = session;
        let mut again = true;
        loop {
            let mut command = session.clone().arc_raw_command(OsStr::from_bytes(line));
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
            match timeout(OPEN, command.spawn()).await {
                Ok(Ok(child)) => return Ok(Asked::Opened(Box::new(channel(child, index)?))),
                Ok(Err(error)) if refused(&error) => return Ok(Asked::Refused),
                Ok(Err(_)) if again && !alive(&session).await => {
                    self.connections[index].forget(&session).await;
                    if index > 0 {
                        return Ok(Asked::Gone);
                    }
                    again = false;
                    session = self.connections[0].session().await?;
                }
                Ok(Err(error)) => {
                    return Err(self.error("other", "gives no session").because(error));
                }
                Err(_) => return Err(self.error("timeout", "does not answer")),
            }
        }
    }

    /// Meaning of the early end of a session on this connection.
    pub(crate) async fn explain(&self, connection: usize, broken: BrokenChannel) -> Error {
        let connection = &self.connections[connection];
        if let Some(session) = connection.current().await {
            // A master whose connection was cut closes its sessions first and itself a moment later.
            let alive = alive(&session).await && {
                sleep(Duration::from_millis(100)).await;
                alive(&session).await
            };
            if alive {
                return killed(&self.target.spec, broken);
            }
            connection.forget(&session).await;
        }
        let failure = self.error("lost", "lost the connection");
        match broken.error {
            Some(error) => failure.because(error),
            None => failure,
        }
    }

    /// The control socket of the connection that had room for the last session; empty before there was one.
    pub(crate) fn socket(&self) -> PathBuf {
        self.connections[self.last.load(Ordering::Relaxed)].socket()
    }

    /// Waits for a connection with room; [`SessionPool::socket`] is its from then on.
    pub(crate) async fn make_room(&self, shells: Option<&Shells>) -> Result<(), Error> {
        self.open(b"exit 0", shells).await?.end().await;
        Ok(())
    }

    fn error(&self, kind: &str, what: &str) -> Error {
        unreachable(self.target.spec.name.as_str(), kind, what)
    }
}

fn channel(mut child: openssh::Child<Arc<Session>>, connection: usize) -> Result<Channel, Error> {
    match (child.stdin().take(), child.stdout().take(), child.stderr().take()) {
        (Some(stdin), Some(stdout), Some(stderr)) => {
            Ok(Channel::new(stdin, stdout, stderr, Process::Remote { child, connection }))
        }
        _ => Err(Error::internal("a session has no pipes")),
    }
}

/// Whether sshd had no slot for the session (`MaxSessions`).
fn refused(error: &openssh::Error) -> bool {
    matches!(error, openssh::Error::SshMux(cause) if cause.to_string().contains("refused"))
}
