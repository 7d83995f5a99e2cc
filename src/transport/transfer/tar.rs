//! Transfer by a tar stream, for hosts without rsync. The far end may be busybox.

use std::ffi::OsString;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncReadExt as _, ReadBuf};

use crate::domain::error::Error;
use crate::domain::text::clean_line;
use crate::transport::{Command, LineSink, Output, Transport};

use super::child::{Running, tail_of};
use super::plan::Plan;
use super::sent::{IDLE, Method, Progress, Sent, failed};

/// Extracts stdin into `$1`.
const EXTRACT_SH: &str = include_str!("../scripts/extract.sh");

pub(super) async fn send(
    transport: &dyn Transport,
    plan: &Plan,
    source: &Path,
    dest: &str,
    progress: &mut Progress<'_>,
) -> Result<Sent, Error> {
    let extract = Command::script(EXTRACT_SH).arg(dest);
    feed(transport, plan, source, (&extract, &[]), progress, &mut |_, _| {}).await?.1
}

/// Feeds a command that extracts what comes behind `head`; what it said, also to `sink`, and what came of the sending.
pub(super) async fn feed(
    transport: &dyn Transport,
    plan: &Plan,
    source: &Path,
    (command, head): (&Command, &[u8]),
    progress: &mut Progress<'_>,
    sink: LineSink<'_>,
) -> Result<(Output, Result<Sent, Error>), Error> {
    let list = plan.list()?;
    // GNU's format for names above 100 bytes: busybox reads it, and skips what the POSIX one says of them.
    let args =
        ["--create", "--format=gnu", "--null", "--no-recursion", "--files-from=-", "--file=-"]
            .map(OsString::from);
    let (group, stdout, stderr) = Running::start("tar", &args, source, list)?.split();
    let mut counted =
        Counted { source: stdout, bytes: 0, stream: plan.stream_bytes.max(1), progress };
    let sending = async {
        let far = transport.feed_telling(command, &mut head.chain(&mut counted), IDLE, sink).await;
        let bytes = counted.bytes;
        // Nobody reads any more: a tar that still writes ends now, and its stderr with it.
        drop(counted);
        (far, bytes)
    };
    let ((far, bytes), stderr) = tokio::join!(sending, tail_of(stderr));
    let far = far?;
    let status = group.wait().await?;
    let sent = verdict(status, &stderr, &far);
    Ok((far, sent.map(|()| Sent { method: Method::Tar, bytes })))
}

/// Refuses what did not end well, by the end that failed.
fn verdict(status: i32, stderr: &str, far: &Output) -> Result<(), Error> {
    let (changes, errors) = sort_lines(stderr);
    let here = match status {
        // 141 is SIGPIPE: the far end stopped reading, and knows why.
        0 | 1 | 141 => false,
        // Vanished files were in the list, and tar calls that an error.
        2 => !errors.is_empty() || changes.is_empty(),
        _ => true,
    };
    // "Broken pipe" is SIGPIPE in words.
    let piped = errors.iter().any(|line| line.contains("Broken pipe"));
    if here && (far.ok() || !piped) {
        return Err(failed(
            "this machine's tar could not read the repository",
            status,
            &errors.join("\n"),
        ));
    }
    if !far.ok() {
        return Err(failed(
            "the host's tar could not write what was sent",
            far.status,
            &far.error_text(),
        ));
    }
    if status == 141 {
        return Err(failed("the host stopped reading before the end", status, &far.error_text()));
    }
    Ok(())
}

/// Lines of GNU tar: changes under it, and errors.
fn sort_lines(stderr: &str) -> (Vec<String>, Vec<String>) {
    let lines = stderr.lines().filter(|line| {
        !line.is_empty() && !line.contains("Exiting with failure status due to previous")
    });
    lines.map(|line| clean_line(line, 400)).partition(|line| {
        [
            ": file changed as we read it",
            ": File removed before we read it",
            ": Cannot stat: No such file or directory",
            ": Cannot open: No such file or directory",
            "padding with zeros",
            ": socket ignored",
        ]
        .iter()
        .any(|known| line.ends_with(known))
    })
}

/// A stream whose bytes are counted; progress is told in bytes of content.
struct Counted<'a, 'p, R> {
    source: R,
    bytes: u64,
    stream: u64,
    progress: &'a mut Progress<'p>,
}

impl<R: AsyncRead + Unpin> AsyncRead for Counted<'_, '_, R> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        let polled = Pin::new(&mut this.source).poll_read(cx, buffer);
        let read = buffer.filled().len() - before;
        if read > 0 {
            this.bytes += read as u64;
            // Headers are a good part of a stream of small files, and no content.
            let done =
                u128::from(this.bytes) * u128::from(this.progress.of()) / u128::from(this.stream);
            this.progress.at(u64::try_from(done).unwrap_or(u64::MAX));
        }
        polled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn which_end_failed() {
        let ok = Output::default();
        let full = Output {
            status: 2,
            stderr: b"tar: ./a: Cannot write: No space left on device\n".to_vec(),
            ..Output::default()
        };
        let cut = Output {
            status: 2,
            stderr: b"tar: Unexpected EOF in archive\n".to_vec(),
            ..Output::default()
        };
        let vanished = "tar: ./a: Cannot stat: No such file or directory\ntar: Exiting with failure status due to previous errors\n";
        for (status, stderr, far, expected) in [
            (0, "", &ok, "sent"),
            (1, "tar: ./a: file changed as we read it\n", &ok, "sent"),
            (2, vanished, &ok, "sent"),
            (
                2,
                "tar: ./a: Cannot open: Permission denied\n",
                &ok,
                "tar: ./a: Cannot open: Permission denied",
            ),
            (2, "", &ok, "it ended with status 2 and said nothing"),
            (141, "", &full, "tar: ./a: Cannot write: No space left on device"),
            (
                2,
                "tar: -: Cannot write: Broken pipe\ntar: Error is not recoverable: exiting now\n",
                &full,
                "tar: ./a: Cannot write: No space left on device",
            ),
            (137, "", &cut, "it ended with status 137 and said nothing"),
            (0, "", &cut, "tar: Unexpected EOF in archive"),
            (141, "", &ok, "it ended with status 141 and said nothing"),
        ] {
            let told = match verdict(status, stderr, far) {
                Ok(()) => "sent".to_owned(),
                Err(error) => error.causes[0].clone(),
            };
            assert_eq!(told, expected, "{status} {stderr:?}");
        }
    }
}
