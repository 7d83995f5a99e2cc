//! Local host: child processes instead of sessions.

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

use crate::domain::child_process::child;
use crate::domain::error::{Code, Error};
use crate::domain::host::HostSpec;
use crate::domain::output::OutputSink;
use crate::transport::shell::channel::{Channel, Process};
use crate::transport::shell::disconnect::{killed, late, stalled, unread};
use crate::transport::shell::request::{self, Answer};
use crate::transport::shell::stdin::{self, Fed};
use crate::transport::{Command, InputStream, LineSink, Output, Transport, watchdog};

/// The machine sandboxer runs on. Each command is an `sh` in a process group of its own, under the same watchdog as on
/// any other host, so that what it started ends with us.
pub(crate) struct LocalTransport {
    spec: HostSpec,
    trips: AtomicU64,
    latency: Mutex<Option<Duration>>,
}

impl LocalTransport {
    /// The way to this machine.
    pub(crate) fn new(spec: HostSpec) -> Self {
        Self { spec, trips: AtomicU64::new(0), latency: Mutex::new(None) }
    }

    fn open(&self, words: &[Vec<u8>]) -> Result<Channel, Error> {
        self.trips.fetch_add(1, Ordering::Relaxed);
        let mut program = Program::from(child("sh"));
        program.args(words.iter().map(|word| OsStr::from_bytes(word)));
        program
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        let mut shell = program.spawn().map_err(no_shell)?;
        match (shell.stdin.take(), shell.stdout.take(), shell.stderr.take()) {
            (Some(stdin), Some(stdout), Some(stderr)) => {
                Ok(Channel::new(stdin, stdout, stderr, Process::Local(shell)))
            }
            _ => Err(Error::internal("a child process has no pipes")),
        }
    }

    async fn finish(&self, channel: Channel, answer: (Answer, Output)) -> Result<Output, Error> {
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

    async fn run(&self, command: &Command, deadline: Duration) -> Result<Output, Error> {
        let work = async {
            let mut channel = self.open(&[])?;
            let answer = request::run(&mut channel, command, true).await?;
            self.finish(channel, answer).await
        };
        timeout(deadline, work).await.unwrap_or_else(|_| Err(late(&self.spec, deadline)))
    }

    async fn stream(
        &self,
        command: &Command,
        deadline: Duration,
        sink: LineSink<'_>,
    ) -> Result<Output, Error> {
        let work = async {
            let mut channel = self.open(&[])?;
            let answer = request::stream(&mut channel, command, sink).await?;
            self.finish(channel, answer).await
        };
        timeout(deadline, work).await.unwrap_or_else(|_| Err(late(&self.spec, deadline)))
    }

    async fn feed_telling(
        &self,
        command: &Command,
        source: &mut (dyn AsyncRead + Send + Unpin),
        idle: Duration,
        sink: LineSink<'_>,
    ) -> Result<Output, Error> {
        let nonce = watchdog::nonce();
        let mut channel = self.open(&watchdog::feed_words(command, &nonce, idle)?[1..])?;
        match stdin::drive(&mut channel, &nonce, (source, idle), sink).await {
            Fed::Done(output) => {
                channel.end().await;
                Ok(output)
            }
            Fed::Stalled => Err(stalled(&self.spec, idle)),
            Fed::Source(error) => Err(unread(error)),
            Fed::Broken(broken) => Err(killed(&self.spec, broken)),
        }
    }

    async fn attached(
        &self,
        command: &Command,
        input: Option<InputStream<'_>>,
        sink: &mut dyn OutputSink,
    ) -> Result<Option<i32>, Error> {
        let mut channel = self.open(&[])?;
        match request::attach(&mut channel, command, input, sink).await? {
            Some(Answer::Done { status, .. }) => {
                channel.end().await;
                Ok(Some(status))
            }
            Some(Answer::Broken(broken)) => Err(killed(&self.spec, broken)),
            None => Ok(None),
        }
    }

    async fn interactive(&self, command: &Command) -> Result<Vec<OsString>, Error> {
        Ok(watchdog::bare_words(command)?.into_iter().map(OsString::from_vec).collect())
    }

    fn round_trips(&self) -> u64 {
        self.trips.load(Ordering::Relaxed)
    }

    fn latency(&self) -> Option<Duration> {
        *self.latency.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn no_shell(error: io::Error) -> Error {
    if error.kind() == io::ErrorKind::NotFound {
        return Error::new(Code::MissingDependency, "there is no sh on this machine")
            .because(error);
    }
    Error::new(Code::OperationFailed, "a process could not be started on this machine")
        .because(error)
}

#[cfg(test)]
mod tests {
    use futures_util::stream;

    use super::*;
    use crate::transport::Source;

    const SOON: Duration = Duration::from_secs(20);

    fn here() -> LocalTransport {
        LocalTransport::new(HostSpec::local())
    }

    #[tokio::test]
    async fn any_status_is_an_output_and_output_is_kept_apart() {
        let way = here();
        for status in [0, 1, 126, 127, 255] {
            let command = Command::script("echo out; echo \"$2\" >&2; exit $1")
                .arg(status.to_string())
                .arg("it's $HOME");
            let ran = way.run(&command, SOON).await.unwrap();
            assert_eq!(
                (ran.status, ran.text().as_str(), ran.error_text().as_str()),
                (status, "out\n", "it's $HOME\n")
            );
        }
        assert_eq!(
            way.run(&Command::script("sh -c 'kill -TERM $$'"), SOON).await.unwrap().status,
            128 + 15
        );
        assert_eq!(way.run(&Command::new("no-such-program"), SOON).await.unwrap().status, 127);
        assert_eq!(way.round_trips(), 7);
        assert!(way.latency().is_some());
    }

    #[tokio::test]
    async fn a_deadline_ends_what_runs() {
        let way = here();
        let mut lines = 0;
        let command = Command::script("echo begun; sleep 308.001");
        let late =
            way.stream(&command, Duration::from_secs(3), &mut |_, _| lines += 1).await.unwrap_err();
        assert_eq!((late.code, lines), (Code::Timeout, 1));
        let look = Command::script(
            "for n in 1 2 3 4 5 6; do pgrep -fx 'sleep 308.001' || exit 0; sleep 1; done; exit 1",
        );
        assert_eq!(way.run(&look, SOON).await.unwrap().status, 0);
    }

    #[derive(Default)]
    struct Written(Vec<u8>, Vec<u8>);

    #[async_trait]
    impl OutputSink for Written {
        async fn take(&mut self, source: Source, bytes: &[u8]) -> bool {
            if source == Source::Stdout { &mut self.0 } else { &mut self.1 }
                .extend_from_slice(bytes);
            true
        }
    }

    async fn given(
        script: &'static str,
        pieces: Vec<Result<Vec<u8>, Error>>,
    ) -> (Result<Option<i32>, Error>, Written) {
        let mut written = Written::default();
        let command = Command::script(script).with_account_environment().with_input();
        let ended =
            here().attach_with_input(&command, &mut stream::iter(pieces), &mut written).await;
        (ended, written)
    }

    #[tokio::test]
    async fn an_attached_command_reads_what_it_is_given_byte_for_byte() {
        let bytes: Vec<u8> =
            (0..3_000_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        let pieces = || bytes.chunks(70_001).map(|piece| Ok(piece.to_vec())).collect::<Vec<_>>();
        let (ended, written) = given("cat; echo end >&2; exit 7", pieces()).await;
        assert_eq!(
            (ended.unwrap(), written.0 == bytes, written.1.as_slice()),
            (Some(7), true, b"end\n".as_slice())
        );
        // Longer than a watchdog's mark takes to come, and what looks like a mark is none.
        let (ended, written) =
            given("sleep 3; cat", vec![Ok(b"\x1eH\n\x1eE0 1\n".to_vec()), Ok(Vec::new())]).await;
        assert_eq!(
            (ended.unwrap(), written.0.as_slice()),
            (Some(0), b"\x1eH\n\x1eE0 1\n".as_slice())
        );
        // A command that reads no further, or not at all, ends as it ends. Input that is left is nobody's command.
        let (ended, written) = given("head -c 3", pieces()).await;
        assert_eq!((ended.unwrap(), written.0.as_slice()), (Some(0), &bytes[..3]));
        let (ended, written) = given("exit 3", vec![Ok(b"echo run\n".repeat(100_000))]).await;
        assert_eq!((ended.unwrap(), written.0.len()), (Some(3), 0));
        let (ended, written) = given("exec <&-; echo closed", pieces()).await;
        assert_eq!((ended.unwrap(), written.0.as_slice()), (Some(0), b"closed\n".as_slice()));
        let (ended, _) =
            given("cat", vec![Ok(b"x".to_vec()), Err(Error::invalid_input("stdin", "gone"))]).await;
        assert_eq!(ended.unwrap_err().message, "gone");
    }

    #[tokio::test]
    async fn nobody_is_asked_for_input_before_a_command_runs_and_a_killed_one_says_nothing() {
        let (ended, written) = given("kill -KILL $(sh -c 'echo $PPID')", Vec::new()).await;
        assert_eq!(
            (ended.unwrap(), String::from_utf8(written.1).unwrap()),
            (Some(137), String::new())
        );
        let mut written = Written::default();
        let command =
            Command::script("exec sh -c 'echo err >&2; kill -KILL $$'").with_account_environment();
        assert_eq!(here().attach(&command, &mut written).await.unwrap(), Some(137));
        assert_eq!(String::from_utf8(written.1).unwrap(), "err\n");
    }

    #[tokio::test]
    async fn a_command_with_input_is_ended_when_nobody_waits_for_it() {
        let command =
            Command::script("trap '' HUP; sleep 308.004").with_account_environment().with_input();
        let mut written = Written::default();
        let way = here();
        let mut forever = stream::pending();
        let attached = way.attach_with_input(&command, &mut forever, &mut written);
        assert!(timeout(Duration::from_secs(1), attached).await.is_err());
        let look = Command::script(
            "for n in 1 2 3 4 5 6 7 8 9; do pgrep -fx 'sleep 308.004' || exit 0; sleep 1; done; exit 1",
        );
        assert_eq!(way.run(&look, SOON).await.unwrap().status, 0);
    }

    #[tokio::test]
    async fn a_command_that_stops_reading_tells_why_itself() {
        let data = vec![0; 4 << 20];
        let command =
            Command::script("head -c 1 >/dev/null; echo 'No space left on device' >&2; exit 1");
        let ended = here().feed(&command, &mut &data[..], SOON).await.unwrap();
        assert_eq!((ended.status, ended.error_text().trim()), (1, "No space left on device"));
        let whole = here().feed(&Command::script("wc -c"), &mut &data[..], SOON).await.unwrap();
        assert_eq!(whole.text().trim(), data.len().to_string());
    }
}
