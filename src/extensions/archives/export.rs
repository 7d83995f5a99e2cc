//! A snapshot as one file: its manifest, and its archive as the host gives it, judged as it passes by.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::stream;
use tokio::sync::mpsc;

use crate::domain::archive::{ArchivePlace, ByteStream};
use crate::domain::error::{Error, Kind};
use crate::domain::output::{OutputSink, Source, driven};
use crate::domain::snapshot::ArchiveManifest;
use crate::extensions::archives::archive_dir::{self, altered};
use crate::extensions::archives::export_format::{BLOCK, MANIFEST, header};
use crate::extensions::archives::stream::{Inlet, pipe};
use crate::extensions::archives::{transfer, verify};
use crate::transport::Transport;

/// Pieces that wait for a slow reader.
const BETWEEN: usize = 8;

/// Writes an export; the archive is read from its host as the stream is, and judged as it passes by.
pub(super) fn write(
    transport: Arc<dyn Transport>,
    place: ArchivePlace,
    manifest: &ArchiveManifest,
) -> Result<ByteStream, Error> {
    let format = archive_dir::format(&manifest.snapshot.archive)?;
    let bytes = manifest.snapshot.archive.bytes.unwrap_or_default();
    let text = serde_json::to_string_pretty(manifest)
        .map_err(|error| Error::internal("the manifest cannot be written").because(error))?;
    let time = manifest.snapshot.created_at.unix().max(0) as u64;
    let mut head = header(MANIFEST, text.len() as u64, time)?.as_bytes().to_vec();
    head.extend_from_slice(text.as_bytes());
    head.resize(head.len().next_multiple_of(BLOCK), 0);
    head.extend_from_slice(header(&format.file_name(), bytes, time)?.as_bytes());
    let padding = bytes.next_multiple_of(BLOCK as u64) - bytes;
    let end = vec![0; padding as usize + 2 * BLOCK];
    let facts = manifest.snapshot.archive.clone();
    let (sender, mut receiver) = mpsc::channel(BETWEEN);
    let work = async move {
        if sender.send(Ok(head)).await.is_err() {
            return;
        }
        let (judged, passing) = pipe();
        let mut sink = Pieces { sender: sender.clone(), judged, left: bytes, more: false };
        let reading = async {
            let read = transfer::read(transport.as_ref(), &place, &format, &mut sink).await;
            let Pieces { judged, left, more, .. } = sink;
            if read.is_ok() {
                judged.close();
            }
            (read, left, more)
        };
        let ((read, left, more), unlike) =
            tokio::join!(reading, verify::judge(passing, &format, &facts));
        let altered = |differs| altered(differs, transport.as_ref(), &place);
        let outcome = match (read, unlike) {
            _ if more => Err(altered("size")),
            // Who stopped it knows why.
            (Err(error), _) if error.kind != Kind::NobodyReads => Err(error),
            (Ok(()), _) if left > 0 => Err(altered("truncated")),
            (_, Some((differs, why))) => Err(altered(differs).because(why)),
            (Err(error), None) => Err(error),
            (Ok(()), None) => Ok(end),
        };
        // Nobody listens any more: then nobody hears the end either.
        let _ = sender.send(outcome).await;
    };
    Ok(driven(work, stream::poll_fn(move |context| receiver.poll_recv(context))))
}

/// The archive's bytes as they come from the host.
struct Pieces {
    sender: mpsc::Sender<Result<Vec<u8>, Error>>,
    judged: Inlet,
    left: u64,
    more: bool,
}

#[async_trait]
impl OutputSink for Pieces {
    async fn take(&mut self, source: Source, bytes: &[u8]) -> bool {
        if source == Source::Stderr {
            return true;
        }
        let Some(left) = self.left.checked_sub(bytes.len() as u64) else {
            self.more = true;
            return false;
        };
        self.left = left;
        self.judged.put(bytes).await && self.sender.send(Ok(bytes.to_vec())).await.is_ok()
    }
}
