//! Running shell's three streams, the same for a child process and for a session of an SSH connection.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};

/// Time that a shell which has given its answer is waited for.
const END_WAIT: Duration = Duration::from_secs(1);

pub(crate) enum Process {
    /// A child of ours.
    Local(tokio::process::Child),
    /// A session of a shared SSH connection.
    Remote { child: openssh::Child<Arc<openssh::Session>>, connection: usize },
}

/// A shell. Dropping it ends its stdin, which makes the watchdog end what runs in it.
pub(crate) struct Channel {
    /// `None` once its end was sent.
    pub(crate) stdin: Option<Box<dyn AsyncWrite + Send + Unpin>>,
    pub(crate) stdout: Box<dyn AsyncRead + Send + Unpin>,
    pub(crate) stderr: Box<dyn AsyncRead + Send + Unpin>,
    process: Process,
    /// Whether the definitions of the watchdog have been sent.
    pub(crate) prepared: bool,
}

impl Channel {
    pub(crate) fn new(
        stdin: impl AsyncWrite + Send + Unpin + 'static,
        stdout: impl AsyncRead + Send + Unpin + 'static,
        stderr: impl AsyncRead + Send + Unpin + 'static,
        process: Process,
    ) -> Self {
        Self {
            stdin: Some(Box::new(stdin)),
            stdout: Box::new(stdout),
            stderr: Box::new(stderr),
            process,
            prepared: false,
        }
    }

    pub(crate) fn connection(&self) -> usize {
        match &self.process {
            Process::Local(_) => 0,
            Process::Remote { connection, .. } => *connection,
        }
    }

    /// Whether an idle shell is still there. What it wrote meanwhile belongs to no request and is dropped.
    pub(crate) fn alive(&mut self) -> bool {
        let mut dropped = [0; 4096];
        loop {
            match self.stdout.read(&mut dropped).now_or_never() {
                None => return true,
                Some(Ok(0) | Err(_)) => return false,
                Some(Ok(_)) => {}
            }
        }
    }

    /// Ends stdin and waits a moment for the shell, so that its session is free again and its process is no zombie.
    pub(crate) async fn end(mut self) {
        self.stdin = None;
        let wait = async {
            match self.process {
                Process::Local(mut child) => drop(child.wait().await),
                Process::Remote { child, .. } => drop(child.wait().await),
            }
        };
        drop(tokio::time::timeout(END_WAIT, wait).await);
    }
}

/// A shell that ended before its answer was complete.
#[derive(Debug, Default)]
pub(crate) struct BrokenChannel {
    pub(crate) begun: bool,
    /// Whether the request could not be sent whole; a shell runs nothing of one that is not.
    pub(crate) unsent: bool,
    /// Words that the shell or the login wrote instead.
    pub(crate) words: String,
    /// The error of the stream, if there was one.
    pub(crate) error: Option<io::Error>,
}
