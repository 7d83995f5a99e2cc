//! Bytes on their way from one host to another through this process: a small pipe, so that the slower end sets the pace and
//! nothing piles up here, and a change of compression on the way.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use async_compression::Level;
use async_compression::tokio::bufread::{GzipDecoder, GzipEncoder, ZstdDecoder, ZstdEncoder};
use async_compression::zstd::DParameter;
use async_trait::async_trait;
use tokio::io::{
    AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, ReadBuf,
};
use tokio::runtime::Handle;

use crate::domain::output::{OutputSink, Source};
use crate::domain::reporter::{Report, Reporter};
use crate::domain::snapshot::ArchiveFormat;

/// Capacity of the pipe; bytes.
const PIPE: usize = 512 * 1024;
/// Piece that is read at once of what is unpacked or packed; bytes.
const PIECE: usize = 64 * 1024;
/// The largest window of a zstd stream, as a power of two: the memory that an archive may make us take. It is what
/// `zstd -19` uses.
const WINDOW: u32 = 23;
/// How often progress is told, at most.
const REPORT_EVERY: Duration = Duration::from_millis(100);

/// A stream of bytes that somebody reads.
pub(super) type Stream<'a> = Box<dyn AsyncRead + Send + Unpin + 'a>;

/// Where a pipe is filled.
pub(super) struct Inlet {
    pipe: DuplexStream,
    whole: Arc<AtomicBool>,
}

/// Where it is emptied. It ends well only after the inlet was closed: what was cut off must not pass for an end.
pub(super) struct Outlet {
    pipe: DuplexStream,
    whole: Arc<AtomicBool>,
}

pub(super) fn pipe() -> (Inlet, Outlet) {
    let (near, far) = tokio::io::duplex(PIPE);
    let whole = Arc::new(AtomicBool::new(false));
    (Inlet { pipe: near, whole: Arc::clone(&whole) }, Outlet { pipe: far, whole })
}

impl Inlet {
    /// Puts bytes in, as soon as there is room; whether anybody still wants them.
    pub(super) async fn put(&mut self, bytes: &[u8]) -> bool {
        self.pipe.write_all(bytes).await.is_ok()
    }

    pub(super) fn close(self) {
        self.whole.store(true, Ordering::Release);
    }
}

impl AsyncRead for Outlet {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.pipe).poll_read(cx, buffer);
        match polled {
            Poll::Ready(Ok(()))
                if buffer.filled().len() == before && !self.whole.load(Ordering::Acquire) =>
            {
                Poll::Ready(Err(io::Error::new(
                    io::ErrorKind::UnexpectedEof,
                    "it ended before all of it was there",
                )))
            }
            other => other,
        }
    }
}

/// Content of an archive of this format.
pub(super) fn unpacked<'a>(
    packed: impl AsyncRead + Send + Unpin + 'a,
    format: &ArchiveFormat,
) -> Stream<'a> {
    let packed = BufReader::with_capacity(PIECE, packed);
    // Both programs take several streams in a row for one.
    if *format == ArchiveFormat::TarGz {
        let mut decoder = GzipDecoder::new(packed);
        decoder.multiple_members(true);
        Box::new(decoder)
    } else {
        let mut decoder = ZstdDecoder::with_params(packed, &[DParameter::window_log_max(WINDOW)]);
        decoder.multiple_members(true);
        Box::new(decoder)
    }
}

/// An archive as the other host can read it.
pub(super) fn repacked<'a>(
    packed: impl AsyncRead + Send + Unpin + 'a,
    from: &ArchiveFormat,
    to: &ArchiveFormat,
) -> Stream<'a> {
    if from == to {
        return Box::new(packed);
    }
    self::packed(unpacked(packed, from), to)
}

/// A tar as an archive of this format.
pub(super) fn packed<'a>(
    content: impl AsyncRead + Send + Unpin + 'a,
    format: &ArchiveFormat,
) -> Stream<'a> {
    let content = BufReader::with_capacity(PIECE, content);
    if *format == ArchiveFormat::TarGz {
        Box::new(GzipEncoder::with_quality(content, Level::Fastest))
    } else {
        Box::new(ZstdEncoder::new(content))
    }
}

/// A stream that fails at its first byte too many.
pub(super) struct AtMost<R> {
    source: R,
    most: u64,
    bytes: u64,
}

impl<R> AtMost<R> {
    /// No more than `most` bytes of it.
    pub(super) fn new(source: R, most: u64) -> Self {
        Self { source, most, bytes: 0 }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for AtMost<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.source).poll_read(cx, buffer);
        self.bytes += (buffer.filled().len() - before) as u64;
        if self.bytes > self.most {
            buffer.set_filled(before);
            let most = self.most;
            return Poll::Ready(Err(io::Error::other(format!(
                "packed anew it has more than it was to have at most ({most} bytes)"
            ))));
        }
        polled
    }
}

/// An inlet, with the progress of what is put into it.
pub(super) struct Told<'a> {
    inlet: Inlet,
    reporter: &'a dyn Reporter,
    report: Report,
    last_report: Option<Instant>,
    bytes: u64,
}

impl<'a> Told<'a> {
    /// Tells how much of `of` bytes was put in.
    pub(super) fn new(
        inlet: Inlet,
        reporter: &'a dyn Reporter,
        stage: &'static str,
        of: Option<u64>,
    ) -> Self {
        let report = Report { stage, of, ..Report::default() };
        Self { inlet, reporter, report, last_report: None, bytes: 0 }
    }

    /// [`Inlet::put`], with a report now and then.
    pub(super) async fn put(&mut self, bytes: &[u8]) -> bool {
        self.bytes += bytes.len() as u64;
        if self.last_report.is_none_or(|last| last.elapsed() >= REPORT_EVERY) {
            self.last_report = Some(Instant::now());
            let bytes = Some(self.bytes);
            self.reporter.report(Report { done: bytes, bytes, ..self.report.clone() });
        }
        self.inlet.put(bytes).await
    }

    /// [`Inlet::close`].
    pub(super) fn close(self) {
        self.inlet.close();
    }
}

#[async_trait]
impl OutputSink for Told<'_> {
    async fn take(&mut self, source: Source, bytes: &[u8]) -> bool {
        source == Source::Stderr || self.put(bytes).await
    }
}

/// End of a stream for a thread that may wait.
pub(super) struct Waiting<T>(pub(super) T);

impl io::Read for Waiting<Stream<'static>> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        Handle::current().block_on(self.0.read(buffer))
    }
}

impl io::Write for Waiting<Inlet> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if Handle::current().block_on(self.0.put(bytes)) {
            Ok(bytes.len())
        } else {
            Err(io::ErrorKind::BrokenPipe.into())
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_stream_of_too_much_fails_at_its_first_byte_too_many() {
        let content = vec![7; 100_000];
        for (most, whole) in [(0, false), (99_999, false), (100_000, true)] {
            let mut stream = AtMost::new(&content[..], most);
            let mut read = Vec::new();
            let told = stream.read_to_end(&mut read).await.map_err(|error| error.to_string());
            assert_eq!(told.is_ok(), whole, "{most}: {told:?}");
            assert!(whole || told.unwrap_err().contains("than it was to have"), "{most}");
        }
    }
}
