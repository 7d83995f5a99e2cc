//! Exec, shell and logs: work inside a running sandbox. They take no lock and change no record.

use async_trait::async_trait;
use futures_util::Stream;
use futures_util::stream::{self, BoxStream};
use tokio::sync::mpsc;

use crate::domain::archive::ByteStream;
use crate::domain::error::{Code, Error};
use crate::domain::extension::{Capability, ExecRun, SandboxExtension, Target};
use crate::domain::output::{
    ExecOutput, Interactive, LogLine, LogSink, OutputSink, Source, driven,
};
use crate::domain::request::{ExecRequest, LogsRequest, ShellRequest};
use crate::domain::sandbox::{SandboxRecord, State};
use crate::manager::deps::Deps;
use crate::manager::sandboxes::find::get_at_revision;
use crate::manager::sandboxes::resolve::resolve_as_known;

/// Pieces between the host and a face: few, so that a slow face slows the host's command down.
const CHANNEL_SIZE: usize = 16;

/// Runs a command in a sandbox, which reads `input`; the last item is its exit status. Dropping the stream ends the command.
pub(crate) async fn exec(
    deps: &Deps,
    request: ExecRequest,
    input: Option<ByteStream>,
) -> Result<BoxStream<'static, Result<ExecOutput, Error>>, Error> {
    if request.command.first().is_none_or(String::is_empty) {
        return Err(Error::new(Code::Usage, "there is no command to run")
            .hint("sandboxer exec ID -- CMD..."));
    }
    let (extension, target) =
        resolve_for_exec(deps, &request.id, Capability::Exec, "run commands (exec)").await?;
    let (sender, receiver) = mpsc::channel(CHANNEL_SIZE);
    let work = async move {
        let mut sink = OutputChannel(sender);
        let run = ExecRun { command: &request.command, service: request.service.as_deref(), input };
        let ended = extension.exec(&target, run, &mut sink).await;
        // Nobody listens any more: then nobody hears the end either.
        let _ = match ended {
            Ok(Some(status)) => sink.0.send(Ok(ExecOutput::Exit(status))).await,
            Ok(None) => return,
            Err(error) => sink.0.send(Err(error)).await,
        };
    };
    Ok(driven(work, received(receiver)))
}

/// Logs of a sandbox's services. Dropping the stream ends it.
pub(crate) async fn logs(
    deps: &Deps,
    request: LogsRequest,
) -> Result<BoxStream<'static, Result<LogLine, Error>>, Error> {
    let (extension, target) =
        resolve_for_exec(deps, &request.id, Capability::Logs, "show logs").await?;
    let (sender, receiver) = mpsc::channel(CHANNEL_SIZE);
    let work = async move {
        let mut sink = LogChannel(sender);
        let LogsRequest { service, tail, follow, .. } = request;
        if let Err(error) =
            extension.logs(&target, service.as_deref(), tail, follow, &mut sink).await
        {
            let _ = sink.0.send(Err(error)).await;
        }
    };
    Ok(driven(work, received(receiver)))
}

/// A program of this machine that opens a shell in a sandbox.
pub(crate) async fn shell(deps: &Deps, request: &ShellRequest) -> Result<Interactive, Error> {
    let (extension, target) =
        resolve_for_exec(deps, &request.id, Capability::Exec, "open a shell").await?;
    extension.shell(&target, request.service.as_deref()).await
}

/// The extension and target of a sandbox that somebody wants to work in.
async fn resolve_for_exec(
    deps: &Deps,
    id: &str,
    capability: Capability,
    verb: &str,
) -> Result<(std::sync::Arc<dyn SandboxExtension>, Target), Error> {
    let record = get_at_revision(deps, id, None).await?;
    let extension = deps.extension(&record.extension)?;
    if !extension.capabilities().contains(&capability) {
        return Err(extension.unsupported(verb));
    }
    reachable(&record)?;
    let target = resolve_as_known(deps, &record).await?;
    Ok((extension, target))
}

/// Whether there is something on the host to work in. A failed one that was kept is there to be looked at.
fn reachable(record: &SandboxRecord) -> Result<(), Error> {
    let there = match record.state {
        State::Failed => record.kept_failed || !record.leftovers.is_empty(),
        State::Requested | State::Destroyed | State::Forgotten | State::Lost => false,
        State::Provisioning
        | State::Ready
        | State::Sleeping
        | State::Destroying
        | State::Other(_) => true,
    };
    if there && record.workdir.is_some() {
        return Ok(());
    }
    let error = Error::new(
        Code::Conflict,
        format!("sandbox {} is {}; nothing of it can be entered", record.id, record.state),
    );
    let hint = match record.state {
        State::Requested | State::Provisioning => {
            format!("`sandboxer wait {}` waits until it is ready", record.id)
        }
        _ => format!("`sandboxer get {}` shows what became of it", record.id),
    };
    Err(error.hint(hint).detail("state", record.state.as_str()))
}

fn received<T>(mut receiver: mpsc::Receiver<T>) -> impl Stream<Item = T> {
    stream::poll_fn(move |context| receiver.poll_recv(context))
}

struct OutputChannel(mpsc::Sender<Result<ExecOutput, Error>>);

#[async_trait]
impl OutputSink for OutputChannel {
    async fn take(&mut self, source: Source, bytes: &[u8]) -> bool {
        self.0.send(Ok(ExecOutput::Output(source, bytes.to_vec()))).await.is_ok()
    }
}

struct LogChannel(mpsc::Sender<Result<LogLine, Error>>);

#[async_trait]
impl LogSink for LogChannel {
    async fn take(&mut self, line: LogLine) -> bool {
        self.0.send(Ok(line)).await.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_util::StreamExt as _;

    use super::*;

    /// Tells when it is dropped.
    struct Work(Arc<AtomicUsize>);

    impl Drop for Work {
        fn drop(&mut self) {
            self.0.fetch_add(100, Ordering::Relaxed);
        }
    }

    fn counting(of: usize) -> (BoxStream<'static, usize>, Arc<AtomicUsize>) {
        let (sender, receiver) = mpsc::channel(CHANNEL_SIZE);
        let sent = Arc::new(AtomicUsize::new(0));
        let work = Work(sent.clone());
        let all = async move {
            for number in 0..of {
                if sender.send(number).await.is_err() {
                    return;
                }
                work.0.fetch_add(1, Ordering::Relaxed);
            }
        };
        (driven(all, received(receiver)), sent)
    }

    #[tokio::test]
    async fn what_was_sent_before_the_end_is_read_after_it() {
        for of in [0, 1, CHANNEL_SIZE - 1, CHANNEL_SIZE, CHANNEL_SIZE + 1, 10 * CHANNEL_SIZE] {
            let (stream, _) = counting(of);
            assert_eq!(stream.collect::<Vec<_>>().await, (0..of).collect::<Vec<_>>());
        }
    }

    #[tokio::test]
    async fn the_work_waits_for_a_slow_reader_and_ends_with_it() {
        let (mut stream, sent) = counting(1000);
        assert_eq!(stream.next().await, Some(0));
        tokio::task::yield_now().await;
        assert!(sent.load(Ordering::Relaxed) <= CHANNEL_SIZE + 1);
        drop(stream);
        assert!(sent.load(Ordering::Relaxed) >= 100);
    }
}
