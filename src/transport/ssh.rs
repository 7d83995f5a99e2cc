//! A host behind SSH: small commands over a long-lived shell, streams in sessions of their own, one connection.

pub(crate) mod control_dir;
pub(crate) mod master;
pub(crate) mod words;

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::process::Stdio as ProcessStdio;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use openssh::{Session, Stdio};
use tokio::io::AsyncRead;
use tokio::sync::{Mutex as AsyncMutex, Semaphore};
use tokio::time::{sleep, timeout};

pub use control_dir::default_control_dir;

use crate::domain::fault::Fault;
use crate::domain::host::HostSpec;
use crate::domain::output::OutputSink;
use crate::transport::shell::channel::{Broken, Channel, Process};
use crate::transport::shell::endings::{END_GROUP, killed, late, stalled, unread};
use crate::transport::shell::exchange::{self, Answer};
use crate::transport::shell::feed::{Fed, Feed};
use crate::transport::shell::{Opener, Shells, quote};
use crate::transport::ssh::master::{Master, Target, jitter};
use crate::transport::ssh::words::unreachable;
use crate::transport::{Command, LineSink, Output, RemoteShell, Transport, watchdog};

/// Sessions of one process at a time, its two shells not counted: sshd allows 10 on a connection, frees a slot late,
/// and other processes of ours use the same connection.
const STREAMS: usize = 4;
/// How long a refused session is asked for again.
const REFUSED_FOR: Duration = Duration::from_secs(20);
/// How long a session may take to open on a connection that is up.
const OPEN: Duration = Duration::from_secs(20);

/// A host behind one multiplexed SSH connection. Connects at first use and again when the connection is lost.
pub struct SshTransport {
    target: Target,
    link: AsyncMutex<Link>,
    /// Attempts that have ended; who waited for one that failed gets its failure instead of making another.
    attempts: AtomicU64,
    /// Attempts under way in this process, to all hosts.
    connecting: Arc<AtomicUsize>,
    socket: Mutex<PathBuf>,
    shells: Shells,
    streams: Semaphore,
    trips: AtomicU64,
    latency: Mutex<Option<Duration>>,
}

#[derive(Default)]
struct Link {
    session: Option<Arc<Session>>,
    failure: Option<Fault>,
}

impl SshTransport {
    /// The way to this host; nothing is sent yet. `connecting` is shared by all hosts of the process.
    pub(crate) fn new(spec: HostSpec, control_dir: PathBuf, connecting: Arc<AtomicUsize>) -> Self {
        let name = spec.ssh.clone().unwrap_or_else(|| spec.name.as_str().to_owned());
        Self {
            target: Target { spec, name, control_dir },
            link: AsyncMutex::default(),
            attempts: AtomicU64::new(0),
            connecting,
            socket: Mutex::default(),
            shells: Shells::default(),
            streams: Semaphore::new(STREAMS),
            trips: AtomicU64::new(0),
            latency: Mutex::new(None),
        }
    }

    /// Makes sure that the connection is up.
    pub(crate) async fn connect(&self) -> Result<(), Fault> {
        let session = self.session().await?;
        if alive(&session).await {
            return Ok(());
        }
        self.forget(&session).await;
        self.session().await.map(drop)
    }

    /// The connection; whoever comes while it is being made waits for the same attempt.
    async fn session(&self) -> Result<Arc<Session>, Fault> {
        let before = self.attempts.load(Ordering::Acquire);
        let mut link = self.link.lock().await;
        if let Some(session) = &link.session {
            return Ok(session.clone());
        }
        if let Some(failure) = link.failure.as_ref().filter(|_| self.attempts.load(Ordering::Acquire) != before) {
            return Err(copy(failure));
        }
        let made = self.make().await;
        self.attempts.fetch_add(1, Ordering::AcqRel);
        match made {
            Ok(Master { session, socket }) => {
                *self.socket.lock().unwrap_or_else(PoisonError::into_inner) = socket;
                *link = Link { session: Some(session.clone()), failure: None };
                Ok(session)
            }
            Err(fault) => {
                link.failure = Some(copy(&fault));
                Err(fault)
            }
        }
    }

    async fn make(&self) -> Result<Master, Fault> {
        let turn = Turn::take(&self.connecting);
        // One sshd may be behind several of our hosts, and drops what comes all at once.
        if turn.ahead > 0 {
            sleep(jitter(40 * u32::try_from(turn.ahead.min(10)).unwrap_or(10))).await;
        }
        self.target.connect().await
    }

    async fn forget(&self, session: &Arc<Session>) {
        let mut link = self.link.lock().await;
        if link.session.as_ref().is_some_and(|current| Arc::ptr_eq(current, session)) {
            link.session = None;
        }
    }

    /// Opens a session that runs `line` by the account's login shell.
    ///
    /// A session that was refused ran nothing, and neither did one on a connection that is gone: both are tried again.
    async fn open(&self, line: &[u8]) -> Result<Channel, Fault> {
        let started = Instant::now();
        let mut pause = 10;
        let mut again = true;
        loop {
            let session = self.session().await?;
            let mut command = session.clone().arc_raw_command(OsStr::from_bytes(line));
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
            match timeout(OPEN, command.spawn()).await {
                Ok(Ok(child)) => return channel(child),
                Ok(Err(error)) if refused(&error) && started.elapsed() < REFUSED_FOR => {
                    sleep(jitter(pause)).await;
                    pause = (pause * 2).min(500);
                }
                Ok(Err(_)) if again && !alive(&session).await => {
                    again = false;
                    self.forget(&session).await;
                }
                Ok(Err(error)) => return Err(self.fault("other", "gives no session").because(error)),
                Err(_) => return Err(self.fault("timeout", "does not answer")),
            }
        }
    }

    /// Opens a session for bulk work, when it is its turn.
    async fn open_stream(&self, line: &[u8]) -> Result<(tokio::sync::SemaphorePermit<'_>, Channel), Fault> {
        let slot =
            self.streams.acquire().await.map_err(|error| Fault::internal("the sessions are closed").because(error))?;
        self.trips.fetch_add(1, Ordering::Relaxed);
        Ok((slot, self.open(line).await?))
    }

    fn fault(&self, kind: &str, what: &str) -> Fault {
        unreachable(self.target.spec.name.as_str(), kind, what)
    }
}

#[async_trait]
impl Opener for SshTransport {
    async fn open_shell(&self) -> Result<Channel, Fault> {
        self.open(b"exec sh").await
    }

    async fn explain(&self, broken: Broken) -> Fault {
        let session = self.link.lock().await.session.clone();
        if let Some(session) = session {
            // A master whose connection was cut closes its sessions first and itself a moment later.
            let alive = alive(&session).await && {
                sleep(Duration::from_millis(100)).await;
                alive(&session).await
            };
            if alive {
                return killed(&self.target.spec, broken);
            }
            self.forget(&session).await;
        }
        let fault = self.fault("lost", "lost the connection");
        match broken.error {
            Some(error) => fault.because(error),
            None => fault,
        }
    }
}

#[async_trait]
impl Transport for SshTransport {
    fn spec(&self) -> &HostSpec {
        &self.target.spec
    }

    async fn run(&self, command: &Command, deadline: Duration) -> Result<Output, Fault> {
        self.trips.fetch_add(1, Ordering::Relaxed);
        let Ok(ran) = timeout(deadline, self.shells.run(self, command)).await else {
            return Err(late(&self.target.spec, deadline));
        };
        let (output, round_trip) = ran?;
        if round_trip.is_some() {
            *self.latency.lock().unwrap_or_else(PoisonError::into_inner) = round_trip;
        }
        Ok(output)
    }

    async fn stream(&self, command: &Command, deadline: Duration, sink: LineSink<'_>) -> Result<Output, Fault> {
        let work = async {
            let (slot, mut channel) = self.open_stream(b"exec sh").await?;
            let (answer, output) = exchange::stream(&mut channel, command, sink).await?;
            channel.end().await;
            drop(slot);
            match answer {
                Answer::Done { .. } => Ok(output),
                Answer::Broken(broken) => Err(self.explain(broken).await),
            }
        };
        timeout(deadline, work).await.unwrap_or_else(|_| Err(late(&self.target.spec, deadline)))
    }

    async fn feed(
        &self,
        command: &Command,
        source: &mut (dyn AsyncRead + Send + Unpin),
        idle: Duration,
    ) -> Result<Output, Fault> {
        let nonce = watchdog::nonce();
        let line = watchdog::feed_line(command, &nonce)?;
        let (_slot, mut channel) = self.open_stream(&line).await?;
        let mut guard = GroupGuard { feed: Feed::new(&nonce), shell: self.remote_shell() };
        match guard.feed.drive(&mut channel, source, idle).await {
            Fed::Done(output) => {
                channel.end().await;
                Ok(output)
            }
            Fed::Stalled => Err(stalled(&self.target.spec, idle)),
            Fed::Source(fault) => Err(unread(fault)),
            Fed::Broken(broken) => Err(self.explain(broken).await),
        }
    }

    async fn attach(&self, _: &Command, _: &mut dyn OutputSink) -> Result<Option<i32>, Fault> {
        Err(Fault::internal("not there yet"))
    }

    async fn interactive(&self, _: &Command) -> Result<Vec<OsString>, Fault> {
        Err(Fault::internal("not there yet"))
    }

    fn remote_shell(&self) -> RemoteShell {
        let socket = self.socket.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut command: Vec<_> = ["ssh", "-F", "none", "-S"].map(Into::into).into();
        command.push(socket.into_os_string());
        // Over a dead socket ssh would connect by itself, past every setting: it must not be able to.
        for option in ["ControlMaster=no", "BatchMode=yes", "ProxyCommand=false"] {
            command.extend(["-o", option].map(Into::into));
        }
        RemoteShell { command, target: label(self.target.spec.name.as_str()) }
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

/// Ends the process group of a fed command that is abandoned, over the same connection.
struct GroupGuard {
    feed: Feed,
    shell: RemoteShell,
}

impl Drop for GroupGuard {
    fn drop(&mut self) {
        let Some(group) = self.feed.running_group() else { return };
        let mut line = b"exec sh -c ".to_vec();
        if quote::quote(END_GROUP.as_bytes(), &mut line).is_err() {
            return;
        }
        line.extend_from_slice(format!(" sbx {group}").as_bytes());
        let mut program = tokio::process::Command::new(&self.shell.command[0]);
        program.args(&self.shell.command[1..]).args(["--", &self.shell.target]).arg(OsStr::from_bytes(&line));
        program.stdin(ProcessStdio::null()).stdout(ProcessStdio::null()).stderr(ProcessStdio::null()).process_group(0);
        // Its own process, because a drop cannot wait and we may be about to exit.
        drop(program.spawn());
    }
}

/// One of the attempts under way.
struct Turn<'a> {
    count: &'a AtomicUsize,
    ahead: usize,
}

impl<'a> Turn<'a> {
    fn take(count: &'a AtomicUsize) -> Self {
        Self { count, ahead: count.fetch_add(1, Ordering::Relaxed) }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::Relaxed);
    }
}

fn channel(mut child: openssh::Child<Arc<Session>>) -> Result<Channel, Fault> {
    match (child.stdin().take(), child.stdout().take(), child.stderr().take()) {
        (Some(stdin), Some(stdout), Some(stderr)) => Ok(Channel::new(stdin, stdout, stderr, Process::Remote(child))),
        _ => Err(Fault::internal("a session has no pipes")),
    }
}

async fn alive(session: &Session) -> bool {
    matches!(timeout(Duration::from_secs(2), session.check()).await, Ok(Ok(())))
}

/// Whether sshd had no slot for the session (`MaxSessions`).
fn refused(error: &openssh::Error) -> bool {
    matches!(error, openssh::Error::SshMux(cause) if cause.to_string().contains("refused"))
}

/// A name that rsync takes for a host's, whatever ours is called; over the control socket it is not looked up.
fn label(name: &str) -> String {
    let plain = name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'));
    if plain { name.to_owned() } else { "host".to_owned() }
}

/// The same fault for somebody else who waited.
fn copy(fault: &Fault) -> Fault {
    let mut other = Fault::new(fault.code.clone(), fault.message.clone()).retryable(fault.retryable);
    other.hint.clone_from(&fault.hint);
    other.details = fault.details.clone();
    match fault.causes().join(": ") {
        causes if causes.is_empty() => other,
        causes => other.because(causes),
    }
}
