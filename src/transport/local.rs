//! This machine as a host: child processes instead of sessions.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::io::AsyncRead;
use tokio::process::Command as Program;
use tokio::time::timeout;

use crate::domain::fault::{Code, Fault};
use crate::domain::host::HostSpec;
use crate::domain::output::OutputSink;
use crate::transport::shell::channel::{Channel, Process};
use crate::transport::shell::endings::{killed, late, stalled, unread};
use crate::transport::shell::exchange::{self, Answer};
use crate::transport::shell::feed::{self, Fed};
use crate::transport::{Command, LineSink, Output, RemoteShell, Transport, watchdog};

/// The machine sandboxer runs on. Each command is an `sh` in a process group of its own, under the same watchdog as on
/// any other host, so that what it started ends with us.
pub struct LocalTransport {
    spec: HostSpec,
    trips: AtomicU64,
    latency: Mutex<Option<Duration>>,
}

impl LocalTransport {
    /// The way to this machine.
    pub fn new(spec: HostSpec) -> Self {
        Self { spec, trips: AtomicU64::new(0), latency: Mutex::new(None) }
    }

    fn open(&self, words: &[Vec<u8>]) -> Result<Channel, Fault> {
        self.trips.fetch_add(1, Ordering::Relaxed);
        let mut program = Program::new("sh");
        program.args(words.iter().map(|word| OsStr::from_bytes(word)));
        program.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let mut child = program.spawn().map_err(no_shell)?;
        match (child.stdin.take(), child.stdout.take(), child.stderr.take()) {
            (Some(stdin), Some(stdout), Some(stderr)) => Ok(Channel::new(stdin, stdout, stderr, Process::Local(child))),
            _ => Err(Fault::internal("a child process has no pipes")),
        }
    }

    async fn finish(&self, channel: Channel, answer: (Answer, Output)) -> Result<Output, Fault> {
        channel.end().await;
        match answer {
            (Answer::Done { round_trip, .. }, output) => {
                *self.latency.lock().unwrap_or_else(PoisonError::into_inner) = Some(round_trip);
                Ok(output)
            }
            (Answer::Broken(broken), _) => Err(killed(&self.spec, broken)),
        }
    }
}

#[async_trait]
impl Transport for LocalTransport {
    fn spec(&self) -> &HostSpec {
        &self.spec
    }

    async fn run(&self, command: &Command, deadline: Duration) -> Result<Output, Fault> {
        let work = async {
            let mut channel = self.open(&[])?;
            let answer = exchange::run(&mut channel, command, true).await?;
            self.finish(channel, answer).await
        };
        timeout(deadline, work).await.unwrap_or_else(|_| Err(late(&self.spec, deadline)))
    }

    async fn stream(&self, command: &Command, deadline: Duration, sink: LineSink<'_>) -> Result<Output, Fault> {
        let work = async {
            let mut channel = self.open(&[])?;
            let answer = exchange::stream(&mut channel, command, sink).await?;
            self.finish(channel, answer).await
        };
        timeout(deadline, work).await.unwrap_or_else(|_| Err(late(&self.spec, deadline)))
    }

    async fn feed(
        &self,
        command: &Command,
        source: &mut (dyn AsyncRead + Send + Unpin),
        idle: Duration,
    ) -> Result<Output, Fault> {
        let nonce = watchdog::nonce();
        let mut channel = self.open(&watchdog::feed_words(command, &nonce, idle)?[1..])?;
        match feed::drive(&mut channel, &nonce, source, idle).await {
            Fed::Done(output) => {
                channel.end().await;
                Ok(output)
            }
            Fed::Stalled => Err(stalled(&self.spec, idle)),
            Fed::Source(fault) => Err(unread(fault)),
            Fed::Broken(broken) => Err(killed(&self.spec, broken)),
        }
    }

    async fn attach(&self, command: &Command, sink: &mut dyn OutputSink) -> Result<Option<i32>, Fault> {
        let mut channel = self.open(&[])?;
        match exchange::attach(&mut channel, command, sink).await? {
            Some(Answer::Done { status, .. }) => {
                channel.end().await;
                Ok(Some(status))
            }
            Some(Answer::Broken(broken)) => Err(killed(&self.spec, broken)),
            None => Ok(None),
        }
    }

    async fn interactive(&self, command: &Command) -> Result<Vec<OsString>, Fault> {
        Ok(watchdog::bare_words(command)?.into_iter().map(OsString::from_vec).collect())
    }

    async fn make_room(&self) -> Result<(), Fault> {
        Ok(())
    }

    fn remote_shell(&self) -> RemoteShell {
        RemoteShell { command: Vec::new(), target: String::new() }
    }

    fn round_trips(&self) -> u64 {
        self.trips.load(Ordering::Relaxed)
    }

    fn latency(&self) -> Option<Duration> {
        *self.latency.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn close(&self) {}
}

fn no_shell(error: io::Error) -> Fault {
    if error.kind() == io::ErrorKind::NotFound {
        return Fault::new(Code::MissingDependency, "there is no sh on this machine").because(error);
    }
    Fault::new(Code::OperationFailed, "a process could not be started on this machine").because(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_secs(20);

    fn here() -> LocalTransport {
        LocalTransport::new(HostSpec::local())
    }

    #[tokio::test]
    async fn any_status_is_an_output_and_output_is_kept_apart() {
        let way = here();
        for status in [0, 1, 126, 127, 255] {
            let command =
                Command::script("echo out; echo \"$2\" >&2; exit $1").arg(status.to_string()).arg("it's $HOME");
            let ran = way.run(&command, SOON).await.unwrap();
            assert_eq!((ran.status, ran.text().as_str(), ran.error_text().as_str()), (status, "out\n", "it's $HOME\n"));
        }
        assert_eq!(way.run(&Command::script("sh -c 'kill -TERM $$'"), SOON).await.unwrap().status, 128 + 15);
        assert_eq!(way.run(&Command::new("no-such-program"), SOON).await.unwrap().status, 127);
        assert_eq!(way.round_trips(), 7);
        assert!(way.latency().is_some());
    }

    #[tokio::test]
    async fn a_deadline_ends_what_runs() {
        let way = here();
        let mut lines = 0;
        let command = Command::script("echo begun; sleep 308.001");
        let late = way.stream(&command, Duration::from_secs(3), &mut |_, _| lines += 1).await.unwrap_err();
        assert_eq!((late.code, lines), (Code::Timeout, 1));
        let look =
            Command::script("for n in 1 2 3 4 5 6; do pgrep -fx 'sleep 308.001' || exit 0; sleep 1; done; exit 1");
        assert_eq!(way.run(&look, SOON).await.unwrap().status, 0);
    }

    #[tokio::test]
    async fn a_command_that_stops_reading_tells_why_itself() {
        let data = vec![0; 4 << 20];
        let command = Command::script("head -c 1 >/dev/null; echo 'No space left on device' >&2; exit 1");
        let ended = here().feed(&command, &mut &data[..], SOON).await.unwrap();
        assert_eq!((ended.status, ended.error_text().trim()), (1, "No space left on device"));
        let whole = here().feed(&Command::script("wc -c"), &mut &data[..], SOON).await.unwrap();
        assert_eq!(whole.text().trim(), data.len().to_string());
    }
}
