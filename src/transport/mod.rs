//! Transport: how to run something somewhere. Knows hosts, not sandboxes.
//!
//! A [`Transport`] is one open way to one host: child processes on `local`, one multiplexed SSH connection
//! elsewhere. A [`Command`] is arguments, or a script that is compiled into sandboxer plus arguments, never a shell
//! string that somebody's text was spliced into.

pub mod hub;
pub(crate) mod local;
pub mod pool;
pub mod probe;
pub(crate) mod shell;
pub(crate) mod ssh;
pub(crate) mod ssh_config;
pub mod transfer;
mod tunnels;
pub(crate) mod watchdog;

use std::ffi::{OsStr, OsString};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::Stream;
use tokio::io::AsyncRead;

use crate::domain::error::Error;
use crate::domain::host::HostSpec;
use crate::domain::name::{HostName, SandboxId};
use crate::domain::output::OutputSink;
use crate::domain::sandbox::{Attachment, Reachability};

pub use crate::domain::output::Source;

/// Command: a program with arguments, or one of our scripts with positional parameters (`$1`, `$2`, ...).
#[derive(Debug, Clone)]
pub struct Command {
    script: Option<&'static str>,
    words: Vec<OsString>,
    session: Session,
    as_account: bool,
}

/// Our side's end of a session, as a command has it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Session {
    /// Nothing: our own watchdog reads it, and stdin is empty.
    #[default]
    Watched,
    /// The end that our watchdog reads, as descriptor 3: see [`Command::with_lifeline`].
    Lifeline,
    /// Stdin of the command: see [`Transport::attach_with_input`].
    Input,
}

impl Command {
    /// A program, found by the host's `PATH`.
    pub fn new(program: impl AsRef<OsStr>) -> Self {
        Self {
            script: None,
            words: vec![program.as_ref().to_owned()],
            session: Session::Watched,
            as_account: false,
        }
    }

    /// A POSIX shell script of ours. Only compiled-in text is accepted; what varies travels as parameters.
    pub fn script(text: &'static str) -> Self {
        Self { script: Some(text), words: Vec::new(), session: Session::Watched, as_account: false }
    }

    /// Adds an argument (a script's next positional parameter).
    #[must_use]
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.words.push(arg.as_ref().to_owned());
        self
    }

    /// Adds several.
    #[must_use]
    pub fn args<I: IntoIterator<Item = S>, S: AsRef<OsStr>>(mut self, args: I) -> Self {
        self.words.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    /// Gives the command our side's end of the session as descriptor 3: nothing is ever written to it, and it ends when
    /// our side is gone. For a program that passes it on to where our own watchdog does not reach, as into a container.
    #[must_use]
    pub fn with_lifeline(mut self) -> Self {
        self.session = Session::Lifeline;
        self
    }

    /// Gives the command what we send as stdin. For [`Transport::attach_with_input`] alone.
    #[must_use]
    pub(crate) fn with_input(mut self) -> Self {
        self.session = Session::Input;
        self
    }

    /// Leaves the account's environment to a script of ours that becomes a user's own command or patch. Any other script
    /// runs behind the prelude (`scripts/prelude.sh`).
    #[must_use]
    pub(crate) fn with_account_environment(mut self) -> Self {
        self.as_account = true;
        self
    }

    /// Whether the account's environment is left as it is.
    pub(crate) fn has_account_environment(&self) -> bool {
        self.as_account
    }

    pub(crate) fn session(&self) -> Session {
        self.session
    }

    /// Text of the script, where it runs one.
    pub fn script_text(&self) -> Option<&'static str> {
        self.script
    }

    /// The program and its arguments, or the script's parameters.
    pub fn words(&self) -> &[OsString] {
        &self.words
    }
}

/// Output of a command, and its end.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Output {
    /// Exit status; 128 + n after signal n. 127 means what the host's shell means by it.
    pub status: i32,
    /// Bytes of stdout.
    pub stdout: Vec<u8>,
    /// Bytes of stderr.
    pub stderr: Vec<u8>,
    /// Whether more was written than is kept ([`OUTPUT_LIMIT`]).
    pub truncated: bool,
}

impl Output {
    /// Whether it exited 0.
    pub fn ok(&self) -> bool {
        self.status == 0
    }

    /// stdout as text, invalid UTF-8 replaced.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// stderr as text, invalid UTF-8 replaced.
    pub fn error_text(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }
}

/// Longest part of a command's stdout, and of its stderr, that is kept; bytes.
pub const OUTPUT_LIMIT: usize = 8 * 1024 * 1024;

/// Where a line that a command writes is cut; bytes.
pub(crate) const LINE_LIMIT: usize = 64 * 1024;

/// Takes lines as a command writes them, without their line break.
pub type LineSink<'a> = &'a mut (dyn FnMut(Source, &[u8]) + Send);

/// Stdin of a command, in pieces as they come.
pub type InputStream<'a> = &'a mut (dyn Stream<Item = Result<Vec<u8>, Error>> + Send + Unpin);

/// Way for another program (rsync) to reach the host over our connection.
#[derive(Debug, Clone, Default)]
pub struct RemoteShell {
    /// Words behind rsync's `-e`; empty for a host that is this machine.
    pub command: Vec<OsString>,
    /// Word before `:path`; empty for a host that is this machine.
    pub target: String,
}

/// An open way to one host.
#[async_trait]
pub trait Transport: Send + Sync {
    fn spec(&self) -> &HostSpec;

    /// Connects, if that is needed.
    async fn connect(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Runs a small command over the shell that is already open: one round trip. stdin is empty.
    ///
    /// Errors: `timeout` past the deadline (the remote process is ended), `host_unreachable` when the connection
    /// is lost. Any exit status is an `Output`.
    async fn run(&self, command: &Command, deadline: Duration) -> Result<Output, Error>;

    /// Runs long work in a process group of its own, ended by a watchdog on the host when our side is gone (TERM,
    /// then KILL). Lines are given to `sink` as they come; the `Output` has the last of them too.
    async fn stream(
        &self,
        command: &Command,
        deadline: Duration,
        sink: LineSink<'_>,
    ) -> Result<Output, Error>;

    /// Runs a command that reads `source` to its end on stdin. `idle` is how long the stream may stand still. The command
    /// is ended by a watchdog, too: within 10 s when our side is gone, after `idle` and a little when the link is dead.
    async fn feed(
        &self,
        command: &Command,
        source: &mut (dyn AsyncRead + Send + Unpin),
        idle: Duration,
    ) -> Result<Output, Error> {
        self.feed_telling(command, source, idle, &mut |_, _| {}).await
    }

    /// [`Transport::feed`], whose lines are given to `sink` as they come.
    async fn feed_telling(
        &self,
        command: &Command,
        source: &mut (dyn AsyncRead + Send + Unpin),
        idle: Duration,
        sink: LineSink<'_>,
    ) -> Result<Output, Error>;

    /// Runs a command that somebody watches, for as long as it takes: `exec`, and a log that is followed. Its output
    /// goes to `sink` byte for byte and nothing is kept; a slow sink slows it down. It runs under the watchdog, like
    /// [`Transport::stream`], but in a session of the connection for followers. stdin is empty.
    ///
    /// Answers the exit status (128 + n after signal n), or `None` when the sink wanted no more.
    async fn attach(
        &self,
        command: &Command,
        sink: &mut dyn OutputSink,
    ) -> Result<Option<i32>, Error> {
        self.attached(command, None, sink).await
    }

    /// [`Transport::attach`], for a command `with_input`: it reads `input` as it comes, and its end
    /// as the end of stdin. What it leaves unread when it ends is not waited for. When our side is gone it reads an end, too,
    /// and is ended within a few seconds.
    ///
    /// Errors: the input's own, too.
    async fn attach_with_input(
        &self,
        command: &Command,
        input: InputStream<'_>,
        sink: &mut dyn OutputSink,
    ) -> Result<Option<i32>, Error> {
        self.attached(command, Some(input), sink).await
    }

    /// [`Transport::attach`], with input for a command that takes it.
    async fn attached(
        &self,
        command: &Command,
        input: Option<InputStream<'_>>,
        sink: &mut dyn OutputSink,
    ) -> Result<Option<i32>, Error>;

    /// The words of a program of this machine that runs a command on the host with the terminal it is given, over
    /// the connection for followers, which is opened if need be.
    async fn interactive(&self, command: &Command) -> Result<Vec<OsString>, Error>;

    /// Way for another program to reach the host over our connection: the one that had room for the last session.
    fn remote_shell(&self) -> RemoteShell {
        RemoteShell::default()
    }

    /// Waits until there is a connection with room for one more session, for a program that was refused one; from then
    /// on [`Transport::remote_shell`] names it.
    async fn make_room(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Count of `run`'s round trips, and of `stream`'s and `feed`'s sessions. For tests and benchmarks.
    fn round_trips(&self) -> u64;

    /// The last measured round trip.
    fn latency(&self) -> Option<Duration>;

    /// Ends the shell; the shared connection ends by itself when nobody uses it.
    async fn close(&self) {}
}

/// The ways to all hosts.
#[async_trait]
pub trait Transports: Send + Sync {
    /// An open way to a host, shared by everyone in the process; connects if needed.
    ///
    /// Errors: `host_unreachable` (with `details.kind`: `refused`, `timeout`, `resolve`, `credentials`,
    /// `unknown_host_key`, `other`), `host_changed` (its key changed), `forbidden`, `missing_dependency` (no `ssh` here).
    async fn open(&self, host: &HostName) -> Result<Arc<dyn Transport>, Error>;

    /// [`Transports::open`], for who only attaches: the connection that small commands use is not made first.
    async fn open_lazily(&self, host: &HostName) -> Result<Arc<dyn Transport>, Error> {
        self.open(host).await
    }

    /// The host's configuration; a name from the user's SSH configuration counts as one with `ssh: NAME`.
    /// `None`: neither configured nor in the SSH configuration.
    fn spec(&self, host: &HostName) -> Option<HostSpec>;

    /// Every configured host, `local` among them.
    fn hosts(&self) -> Vec<HostSpec>;

    /// Asks the host's `reach` command for tunnels to a sandbox that can be reached so; none where it has no such command.
    ///
    /// Errors: why there is no answer. The sandbox is as it was, and so are the tunnels.
    async fn attachments(&self, _: &SandboxId, _: &Reachability) -> Result<Vec<Attachment>, Error> {
        Ok(Vec::new())
    }

    /// Ends every shell.
    async fn close(&self);
}
