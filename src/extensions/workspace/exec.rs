//! Work of somebody in a workspace: a command, a shell. And how a script of ours tells, before the command that it
//! becomes, whether it got that far.

use std::time::Duration;

use async_trait::async_trait;
use futures_util::{StreamExt, future, stream};
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::domain::archive::ByteStream;
use crate::domain::error::{Code, Error};
use crate::domain::extension::{ExecRun, Target};
use crate::domain::output::{Interactive, OutputSink, Source};
use crate::extensions::workspace::script_output::{ScriptOutput, unproved};
use crate::extensions::workspace::{expected_of, owners, root, workdir, workspace};
use crate::transport::{Command, Output, Transport};

/// The definitions that a way into a sandbox stands on, and the look at it.
macro_rules! entry {
    () => {
        concat!(
            include_str!("../../transport/scripts/runtime.sh"),
            include_str!("scripts/says.sh"),
            include_str!("scripts/place.sh"),
            include_str!("scripts/stand.sh"),
            include_str!("scripts/entry.sh")
        )
    };
}
const ENTRY_SH: &str = entry!();
const ENTER_SH: &str =
    concat!("sbx_entry() (\nsbx_prelude\n", entry!(), ")\n", include_str!("scripts/enter.sh"));
const SHELL_SH: &str = "[ ! -L \"$1\" ] || { echo \"$1 is a link\" >&2; exit 1; }; cd -P -- \"$1\" && exec \"${SHELL:-/bin/sh}\" -l";

/// How long a question may take.
const ASK: Duration = Duration::from_mins(1);
/// Part of an answer that is kept, and of what a script says before its verdict; bytes.
const KEPT: usize = 4 * 1024 * 1024;

/// How a script went that says first, in a line on stdout, whether it can do what it is for.
#[derive(Debug)]
pub(crate) enum Went {
    /// Verdict `ok`: the command's exit status, or `None` when the sink wanted no more.
    Ran(Option<i32>),
    /// Another verdict: the line.
    Refused(String),
    /// No verdict: it ended before it said anything.
    Silent(Output),
}

/// Runs such a script; what comes after `ok` goes to `sink` as it is. With `input` it becomes a command that reads it, and
/// none of it is read before that `ok`: whoever did not get so far may be tried again.
pub(crate) async fn judged(
    transport: &dyn Transport,
    command: Command,
    input: Option<&mut ByteStream>,
    sink: &mut dyn OutputSink,
) -> Result<Went, Error> {
    let (began, verdict) = oneshot::channel();
    let mut after = AfterVerdict {
        sink,
        line: Vec::new(),
        errors: Vec::new(),
        state: State::Before,
        began: Some(began),
    };
    let status = match input {
        Some(input) => {
            let mut input = stream::once(verdict).filter_map(|_| future::ready(None)).chain(input);
            transport.attach_with_input(&command.with_input(), &mut input, &mut after).await?
        }
        None => transport.attach(&command, &mut after).await?,
    };
    let AfterVerdict { line, errors, state, .. } = after;
    Ok(match state {
        State::Ok => Went::Ran(status),
        State::Refused => Went::Refused(String::from_utf8_lossy(&line).trim().to_owned()),
        State::Before => Went::Silent(Output {
            status: status.unwrap_or(255),
            stdout: line,
            stderr: errors,
            truncated: false,
        }),
    })
}

/// Asks a small question over the connection for followers; for who does not need the other one.
pub(crate) async fn ask(transport: &dyn Transport, command: &Command) -> Result<Output, Error> {
    let mut answer = Answer(Output::default());
    let asked = timeout(ASK, transport.attach(command, &mut answer)).await;
    let late = || {
        Error::new(
            Code::Timeout,
            format!("{} did not answer within {ASK:?}", transport.spec().name),
        )
    };
    answer.0.status = asked.unwrap_or_else(|_| Err(late()))?.unwrap_or(255);
    Ok(answer.0)
}

/// Runs a command in the workspace.
pub(crate) async fn exec(
    transport: &dyn Transport,
    target: &Target,
    mut run: ExecRun<'_>,
    sink: &mut dyn OutputSink,
) -> Result<Option<i32>, Error> {
    let script = proving(ENTER_SH, transport, target).with_account_environment().args(run.command);
    match judged(transport, script, run.input.as_mut(), sink).await? {
        Went::Ran(status) => Ok(status),
        Went::Refused(verdict) => Err(no_entry(target, transport, &verdict)?),
        Went::Silent(output) => Err(silent(target, &output)),
    }
}

/// A login shell in the workspace.
pub(crate) async fn shell(
    transport: &dyn Transport,
    target: &Target,
) -> Result<Interactive, Error> {
    let folder = workspace(workdir(target)?);
    // Asked first, so that a refusal is told before the terminal is handed over.
    let output = ask(transport, &proving(ENTRY_SH, transport, target)).await?;
    if !output.ok() {
        return Err(no_entry(target, transport, output.text().trim())?);
    }
    let words = transport.interactive(&Command::script(SHELL_SH).arg(folder)).await?;
    Ok(Interactive { words, folder: None })
}

/// A script with the parameters of entry.sh.
fn proving(script: &'static str, transport: &dyn Transport, target: &Target) -> Command {
    Command::script(script)
        .arg(root(target, &transport.spec().workspace_root))
        .arg(target.id.as_str())
        .arg(owners(target))
        .arg(expected_of(target))
}

/// Why nobody gets in: the host is another one, or the workspace is not there any more.
fn no_entry(target: &Target, transport: &dyn Transport, verdict: &str) -> Result<Error, Error> {
    match unproved(verdict, transport.spec().name.as_str()) {
        Some(error) => Ok(error.detail("path", workdir(target)?)),
        None => Ok(gone(target, transport, &workspace(workdir(target)?))),
    }
}

/// A service was named where there are none.
pub(crate) fn no_services(target: &Target) -> Error {
    let profile = &target.profile.id;
    Error::new(
        Code::Unsupported,
        format!("sandbox {} has no services: {profile} makes a workspace only", target.id),
    )
}

/// Refusal of a script that proves the place and the engine (stand.sh) before it does its work.
///
/// Errors: `conflict` where the sandbox is not there any more, and whatever else the script named.
pub(crate) fn stands(
    target: &Target,
    transport: &dyn Transport,
    root: &str,
    step: &str,
    said: &ScriptOutput<'_>,
) -> Result<(), Error> {
    if said.value("error") == Some("gone") {
        let words = said.text("words").unwrap_or_default();
        return Err(gone(target, transport, workdir(target)?).because(words));
    }
    said.check(step, transport, root)
}

/// The workspace is not there any more.
pub(crate) fn gone(target: &Target, transport: &dyn Transport, folder: &str) -> Error {
    let host = &transport.spec().name;
    Error::new(
        Code::Conflict,
        format!("the workspace of sandbox {} is not on {host} any more", target.id),
    )
    .detail("path", folder)
    .hint(format!("`sandboxer get {}` shows what became of it", target.id))
}

/// A script that ended before it came to the command.
pub(crate) fn silent(target: &Target, output: &Output) -> Error {
    let error = Error::new(
        Code::OperationFailed,
        format!("the command was not started in sandbox {}: status {}", target.id, output.status),
    );
    match output.error_text().trim() {
        "" => error,
        words => error.because(words.to_owned()),
    }
}

enum State {
    Before,
    Ok,
    Refused,
}

/// Gives on what comes after the verdict.
struct AfterVerdict<'a> {
    sink: &'a mut dyn OutputSink,
    line: Vec<u8>,
    /// Words of an engine before the command runs: they belong to the command only when that runs.
    errors: Vec<u8>,
    state: State,
    /// Told once the command runs.
    began: Option<oneshot::Sender<()>>,
}

#[async_trait]
impl OutputSink for AfterVerdict<'_> {
    async fn take(&mut self, source: Source, bytes: &[u8]) -> bool {
        match (&self.state, source) {
            (State::Ok, _) => return self.sink.take(source, bytes).await,
            (State::Refused, _) => return true,
            (State::Before, Source::Stderr) => return keep(&mut self.errors, bytes),
            (State::Before, Source::Stdout) => {}
        }
        keep(&mut self.line, bytes);
        let Some(end) = self.line.iter().position(|byte| *byte == b'\n') else { return true };
        let rest = self.line.split_off(end + 1);
        self.line.truncate(end);
        if self.line != b"ok" {
            self.state = State::Refused;
            return true;
        }
        self.state = State::Ok;
        if let Some(began) = self.began.take() {
            // Nobody waits for it where the command reads nothing.
            let _ = began.send(());
        }
        let errors = std::mem::take(&mut self.errors);
        (errors.is_empty() || self.sink.take(Source::Stderr, &errors).await)
            && (rest.is_empty() || self.sink.take(Source::Stdout, &rest).await)
    }
}

struct Answer(Output);

#[async_trait]
impl OutputSink for Answer {
    async fn take(&mut self, source: Source, bytes: &[u8]) -> bool {
        match source {
            Source::Stdout => keep(&mut self.0.stdout, bytes),
            Source::Stderr => keep(&mut self.0.stderr, bytes),
        }
    }
}

fn keep(kept: &mut Vec<u8>, bytes: &[u8]) -> bool {
    let room = KEPT - kept.len();
    kept.extend_from_slice(&bytes[..bytes.len().min(room)]);
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::host::HostSpec;
    use crate::transport::local::LocalTransport;

    #[derive(Default)]
    struct OutputBuffer(Vec<u8>, Vec<u8>);

    #[async_trait]
    impl OutputSink for OutputBuffer {
        async fn take(&mut self, source: Source, bytes: &[u8]) -> bool {
            if source == Source::Stdout { &mut self.0 } else { &mut self.1 }
                .extend_from_slice(bytes);
            true
        }
    }

    async fn run(script: &'static str) -> (Went, OutputBuffer) {
        let mut kept = OutputBuffer::default();
        let went = judged(
            &LocalTransport::new(HostSpec::local()),
            Command::script(script),
            None,
            &mut kept,
        )
        .await
        .unwrap();
        (went, kept)
    }

    #[tokio::test]
    async fn what_comes_after_the_verdict_is_the_commands_own() {
        let (went, kept) =
            run("echo early >&2; printf 'ok\\n\\0ok\\nlast'; echo late >&2; exit 3").await;
        assert!(matches!(went, Went::Ran(Some(3))), "{went:?}");
        assert_eq!(
            (kept.0.as_slice(), kept.1.as_slice()),
            (b"\0ok\nlast".as_slice(), b"early\nlate\n".as_slice())
        );
        let (went, kept) = run("echo stopped Exited; echo ok; echo words >&2").await;
        assert!(matches!(went, Went::Refused(line) if line == "stopped Exited"));
        assert!(kept.0.is_empty() && kept.1.is_empty());
        let (went, _) = run("echo 'no such program' >&2; exit 127").await;
        let Went::Silent(output) = went else { panic!("{went:?}") };
        assert_eq!((output.status, output.error_text().as_str()), (127, "no such program\n"));
    }
}
