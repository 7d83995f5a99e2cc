//! `exec`: a command in a sandbox. Its output is the user's program's: passed on byte for byte, nothing cleaned.

use std::io;

use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::args::ExecArgs;
use super::interrupt::{INTERRUPTED, until_interrupted};
use super::output::paced::write_paced;
use super::output::{CliError, Context, Outcome};
use crate::client::{Error, ExecRequest};
use crate::domain::Code;
use crate::domain::output::{ExecOutput, Source};

/// The status of our own failures, so that they are told from the command's.
pub(super) const OURS: u8 = 125;

/// 128 + SIGPIPE: what the command itself would have ended with. 0 would say that it had come to its end.
pub(super) const READER_LEFT: u8 = 141;

/// How many bytes of each stream `--json` keeps.
const CAPTURED: usize = 8 * 1024 * 1024;

/// How a command ended, as `exec --json` prints it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExecResult {
    /// The command's exit status; 128 + n after signal n.
    pub exit_status: i32,
    /// The first 8 MiB of its output; what is no UTF-8 is replaced by U+FFFD.
    pub stdout: String,
    /// The first 8 MiB of its error output, likewise.
    pub stderr: String,
    /// Whether either was longer.
    pub truncated: bool,
}

type Pieces = BoxStream<'static, Result<ExecOutput, Error>>;

pub(super) async fn exec(context: &mut Context<'_>, args: &ExecArgs) -> Outcome {
    let client = context.client;
    let input = args.stdin.then(|| (context.io.input)());
    let begin = async {
        let id = client.get(&args.id).await?.id.to_string();
        client
            .exec(
                ExecRequest { id, command: args.command.clone(), service: args.service.clone() },
                input,
            )
            .await
    };
    let pieces = until_interrupted(context, begin).await??;
    if context.options.json {
        collect(context, pieces).await
    } else {
        pass_on(context, pieces).await
    }
}

/// Returning early drops the pieces, which ends the command.
async fn pass_on(context: &mut Context<'_>, mut pieces: Pieces) -> Outcome {
    loop {
        let piece = tokio::select! {
            piece = pieces.next() => piece,
            Some(()) = context.io.interrupts.next() => return Ok(INTERRUPTED),
        };
        match told(piece)? {
            ExecOutput::Exit(status) => return Ok(exit_status(status)),
            ExecOutput::Output(source, bytes) => {
                match write_paced(context.io, source, &bytes).await {
                    Ok(true) => {}
                    Ok(false) => return Ok(INTERRUPTED),
                    Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                        return Ok(READER_LEFT);
                    }
                    Err(error) => return Err(error.into()),
                }
            }
        }
    }
}

async fn collect(context: &mut Context<'_>, mut pieces: Pieces) -> Outcome {
    let (mut stdout, mut stderr) = (Captured::default(), Captured::default());
    let status = loop {
        let piece = tokio::select! {
            piece = pieces.next() => piece,
            Some(()) = context.io.interrupts.next() => {
                return Err(Error::new(Code::Cancelled, "cancelled; the command was ended").into());
            }
        };
        match told(piece)? {
            ExecOutput::Output(Source::Stdout, bytes) => stdout.take(&bytes),
            ExecOutput::Output(Source::Stderr, bytes) => stderr.take(&bytes),
            ExecOutput::Exit(status) => break status,
        }
    };
    let truncated = stdout.more || stderr.more;
    let result =
        ExecResult { exit_status: status, stdout: stdout.text(), stderr: stderr.text(), truncated };
    match context.document(&result) {
        // It ended as it ended, whether or not anybody read it.
        Err(CliError::PipeClosed) => Ok(exit_status(status)),
        printed => printed.map(|()| exit_status(status)),
    }
}

fn told(piece: Option<Result<ExecOutput, Error>>) -> Result<ExecOutput, Error> {
    piece.unwrap_or_else(|| {
        Err(Error::new(Code::OperationFailed, "it is not known how the command ended"))
    })
}

fn exit_status(status: i32) -> u8 {
    u8::try_from(status).unwrap_or(u8::MAX)
}

/// The beginning of a stream.
#[derive(Default)]
struct Captured {
    bytes: Vec<u8>,
    more: bool,
}

impl Captured {
    fn take(&mut self, bytes: &[u8]) {
        let room = CAPTURED - self.bytes.len();
        self.more |= bytes.len() > room;
        self.bytes.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    fn text(mut self) -> String {
        if self.more {
            // The bound may fall inside a character, which is no invalid one.
            let half = self.bytes.utf8_chunks().last().map_or(&[][..], |chunk| chunk.invalid());
            if std::str::from_utf8(half).is_err_and(|error| error.error_len().is_none()) {
                self.bytes.truncate(self.bytes.len() - half.len());
            }
        }
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_bounded_and_ends_at_a_character() {
        let mut kept = Captured::default();
        kept.take(&vec![b'x'; CAPTURED - 1]);
        assert!(!kept.more);
        kept.take("é and more".as_bytes());
        kept.take(b"and more");
        let text = {
            assert!(kept.more);
            kept.text()
        };
        assert_eq!(text.len(), CAPTURED - 1);
        let mut broken = Captured::default();
        broken.take(b"a\xffb\xc3");
        assert_eq!(broken.text(), "a\u{fffd}b\u{fffd}");
    }

    #[test]
    fn a_status_that_no_process_has_is_no_success() {
        assert_eq!([0, 7, 255, 256, -1].map(exit_status), [0, 7, 255, 255, 255]);
    }
}
