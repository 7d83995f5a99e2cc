//! A host behind SSH: small commands over a long-lived shell, streams in sessions of their own, on shared connections.

pub(crate) mod connection;
pub(crate) mod control_dir;
pub(crate) mod control_master;
pub(crate) mod session_pool;
pub(crate) mod ssh_errors;

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::io::AsyncRead;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

pub(crate) use control_dir::default_control_dir;

use crate::domain::error::Error;
use crate::domain::host::HostSpec;
use crate::domain::output::OutputSink;
use crate::transport::shell::channel::{BrokenChannel, Channel};
use crate::transport::shell::disconnect::{late, stalled, unread};
use crate::transport::shell::request::{self, Answer};
use crate::transport::shell::stdin::{self, Fed};
use crate::transport::shell::{Opener, Shells};
use crate::transport::ssh::control_master::{ConnectionPurpose, SshTarget};
use crate::transport::ssh::session_pool::SessionPool;
use crate::transport::{Command, InputStream, LineSink, Output, RemoteShell, Transport, watchdog};

/// Streams of one process at a time, its two shells not counted: other processes of ours use the same connection.
const STREAMS: usize = 4;

/// A host behind multiplexed SSH connections. Connects at first use and again when a connection is lost.
pub(crate) struct SshTransport {
    target: Arc<SshTarget>,
    /// Sessions of `run`, `stream`, `feed` and rsync.
    work: SessionPool,
    /// Sessions that last as long as somebody watches; they never take one of the work's.
    followers: SessionPool,
    shells: Shells,
    streams: Semaphore,
    trips: AtomicU64,
    latency: Mutex<Option<Duration>>,
}

impl SshTransport {
    /// The way to this host; nothing is sent yet. A connection stays for `persist` once nobody uses it; `connecting` is
    /// shared by all hosts of the process.
    pub(crate) fn new(
        spec: HostSpec,
        control_dir: PathBuf,
        persist: Duration,
        connecting: &Arc<AtomicUsize>,
    ) -> Self {
        let name = spec.ssh.clone().unwrap_or_else(|| spec.name.as_str().to_owned());
        let target = Arc::new(SshTarget { spec, name, control_dir, persist });
        Self {
            work: SessionPool::new(&target, ConnectionPurpose::Work, connecting),
            followers: SessionPool::new(&target, ConnectionPurpose::Followers, connecting),
            target,
            shells: Shells::default(),
            streams: Semaphore::new(STREAMS),
            trips: AtomicU64::new(0),
            latency: Mutex::new(None),
        }
    }

    /// Counts a request to the host.
    fn count(&self, way: &'static str) {
        self.trips.fetch_add(1, Ordering::Relaxed);
        tracing::debug!(host = %self.target.spec.name, way, "request");
    }

    /// Opens a session for bulk work, when it is its turn.
    async fn open_stream(&self, line: &[u8]) -> Result<(SemaphorePermit<'_>, Channel), Error> {
        let slot = self
            .streams
            .acquire()
            .await
            .map_err(|error| Error::internal("the sessions are closed").because(error))?;
        self.count("session");
        Ok((slot, self.work.open(line, Some(&self.shells)).await?))
    }

    fn label(&self) -> String {
        label(self.target.spec.name.as_str())
    }
}

#[async_trait]
impl Opener for SshTransport {
    async fn open_shell(&self) -> Result<Channel, Error> {
        self.work.open(b"exec sh", Some(&self.shells)).await
    }

    async fn explain(&self, connection: usize, broken: BrokenChannel) -> Error {
        self.work.explain(connection, broken).await
    }
}

#[async_trait]
impl Transport for SshTransport {
    fn spec(&self) -> &HostSpec {
        &self.target.spec
    }

    async fn connect(&self) -> Result<(), Error> {
        self.work.connect().await
    }

    async fn run(&self, command: &Command, deadline: Duration) -> Result<Output, Error> {
        self.count("command");
        let Ok(ran) = timeout(deadline, self.shells.run(self, command)).await else {
            return Err(late(&self.target.spec, deadline));
        };
        let (output, round_trip) = ran?;
        if round_trip.is_some() {
            *self.latency.lock().unwrap_or_else(PoisonError::into_inner) = round_trip;
        }
        Ok(output)
    }

    async fn stream(
        &self,
        command: &Command,
        deadline: Duration,
        sink: LineSink<'_>,
    ) -> Result<Output, Error> {
        let work = async {
            let (slot, mut channel) = self.open_stream(b"exec sh").await?;
            let connection = channel.connection();
            let (answer, output) = request::stream(&mut channel, command, sink).await?;
            channel.end().await;
            drop(slot);
            match answer {
                Answer::Done { .. } => Ok(output),
                Answer::Broken(broken) => Err(self.work.explain(connection, broken).await),
            }
        };
        timeout(deadline, work).await.unwrap_or_else(|_| Err(late(&self.target.spec, deadline)))
    }

    async fn feed_telling(
        &self,
        command: &Command,
        source: &mut (dyn AsyncRead + Send + Unpin),
        idle: Duration,
        sink: LineSink<'_>,
    ) -> Result<Output, Error> {
        let nonce = watchdog::nonce();
        let line = watchdog::login_line(&watchdog::feed_words(command, &nonce, idle)?)?;
        let (_slot, mut channel) = self.open_stream(&line).await?;
        match stdin::drive(&mut channel, &nonce, (source, idle), sink).await {
            Fed::Done(output) => {
                channel.end().await;
                Ok(output)
            }
            Fed::Stalled => Err(stalled(&self.target.spec, idle)),
            Fed::Source(error) => Err(unread(error)),
            Fed::Broken(broken) => Err(self.work.explain(channel.connection(), broken).await),
        }
    }

    async fn attached(
        &self,
        command: &Command,
        input: Option<InputStream<'_>>,
        sink: &mut dyn OutputSink,
    ) -> Result<Option<i32>, Error> {
        self.count("follower");
        let mut channel = self.followers.open(b"exec sh", None).await?;
        let connection = channel.connection();
        match request::attach(&mut channel, command, input, sink).await? {
            Some(Answer::Done { status, .. }) => {
                channel.end().await;
                Ok(Some(status))
            }
            Some(Answer::Broken(broken)) => Err(self.followers.explain(connection, broken).await),
            None => Ok(None),
        }
    }

    async fn interactive(&self, command: &Command) -> Result<Vec<OsString>, Error> {
        let line = watchdog::login_line(&watchdog::bare_words(command)?)?;
        self.count("terminal");
        self.followers.make_room(None).await?;
        let mut words = over(self.followers.socket());
        // Without "Shared connection closed" at its end.
        words.extend(["-o", "LogLevel=ERROR", "-t", "--"].map(Into::into));
        words.extend([self.label().into(), OsString::from_vec(line)]);
        Ok(words)
    }

    fn remote_shell(&self) -> RemoteShell {
        RemoteShell { command: over(self.work.socket()), target: self.label() }
    }

    async fn make_room(&self) -> Result<(), Error> {
        self.count("room");
        self.work.make_room(Some(&self.shells)).await
    }

    fn round_trips(&self) -> u64 {
        self.trips.load(Ordering::Relaxed)
    }

    fn latency(&self) -> Option<Duration> {
        *self.latency.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn close(&self) {
        self.shells.close().await;
    }
}

/// The ssh that runs something over a connection of ours, and over no other.
fn over(socket: PathBuf) -> Vec<OsString> {
    let mut words: Vec<OsString> = ["ssh", "-F", "none", "-S"].map(Into::into).into();
    words.push(socket.into_os_string());
    // Over a dead socket ssh would connect by itself, past every setting: it must not be able to.
    for option in ["ControlMaster=no", "BatchMode=yes", "ProxyCommand=false"] {
        words.extend(["-o", option].map(Into::into));
    }
    words
}

/// A name that rsync takes for a host's, whatever ours is called; over the control socket it is not looked up.
fn label(name: &str) -> String {
    let plain = name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'));
    if plain { name.to_owned() } else { "host".to_owned() }
}
