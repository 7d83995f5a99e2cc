//! An archive that comes from a file: read, judged and written anew here while what is written goes to its host; nothing is
//! sealed before all of the file is proved and all of what was written arrived.

mod header_extensions;
mod judge;
mod rewrite;
mod sparse;

use std::io::{self, BufReader, BufWriter};

use futures_util::StreamExt;
use tokio::task::spawn_blocking;

use crate::domain::archive::{Arrived, ByteStream};
use crate::domain::error::{Error, Kind};
use crate::domain::reporter::Reporter;
use crate::domain::snapshot::{ArchiveFacts, ArchiveManifest};
use crate::domain::text::clean_line;
use crate::extensions::archives::archive_dir;
use crate::extensions::archives::import::rewrite::{Promise, Written, rewrite};
use crate::extensions::archives::restore::room;
use crate::extensions::archives::stream::{AtMost, Told, Waiting, packed, pipe, unpacked};
use crate::extensions::archives::transfer::IncomingArchive;
use crate::failpoint;

/// Piece that is read and written at once; bytes.
const PIECE: usize = 256 * 1024;
/// Room that a small archive may take beyond what is in it; bytes. The check for room adds as much.
const SLACK: u64 = 64 * 1024;
/// How long a refusal may be; columns.
const REFUSAL_LIMIT: usize = 500;

/// Takes an archive from a file to the place that was made for it.
pub(super) async fn import(
    incoming: IncomingArchive<'_>,
    manifest: &ArchiveManifest,
    source: ByteStream,
    reporter: &dyn Reporter,
) -> Result<Arrived, Error> {
    let facts = &manifest.snapshot.archive;
    let ((from_file, at_console), (written, at_host)) = (pipe(), pipe());
    let content = unpacked(at_console, &archive_dir::format(facts)?);
    let most = room(facts).get() + SLACK;
    let mut stream = AtMost::new(packed(at_host, &incoming.format), most);
    let promised = Promise {
        content_bytes: facts.content_bytes.unwrap_or_default(),
        files: facts.files,
        sha256: facts.sha256.clone().unwrap_or_default(),
        volumes: facts.captured_volumes.iter().map(|volume| volume.name.clone()).collect(),
    };
    let rewriting = spawn_blocking(move || {
        let content = BufReader::with_capacity(PIECE, Waiting(content));
        let mut out = BufWriter::with_capacity(PIECE, Waiting(written));
        let written = rewrite(content, &mut out, &promised)?;
        out.into_inner()?.0.close();
        Ok::<_, io::Error>(written)
    });
    let receiving = async {
        let received = incoming.receive(&mut stream).await;
        // Nobody reads any more: who still writes ends now.
        drop(stream);
        received
    };
    let feeding = feed(source, Told::new(from_file, reporter, "import", facts.bytes));
    let (fed, rewritten, received) = tokio::join!(feeding, rewriting, receiving);
    fed?;
    let rewritten = rewritten
        .map_err(|error| Error::internal("the archive could not be written anew").because(error))?;
    // Who stopped first knows why; to the others it is an end that came too early.
    match (rewritten, received) {
        (Err(error), _) if error.kind() != io::ErrorKind::BrokenPipe => Err(refusal(&error)),
        (_, Err(error)) if error.kind == Kind::SourceUnread => {
            Err(refusal(&error.causes.join(": ")))
        }
        (_, Err(error)) => Err(error),
        (Err(error), Ok(_)) => Err(refusal(&error)),
        (Ok(written), Ok(received)) => {
            failpoint::reached("import.received");
            let sealed = received.seal(&rewritten_facts(facts, written)).await;
            failpoint::reached("import.sealed");
            sealed
        }
    }
}

/// Facts from outside, with those of what was written in their place.
fn rewritten_facts(facts: &ArchiveFacts, written: Written) -> ArchiveFacts {
    ArchiveFacts {
        content_bytes: Some(written.content_bytes),
        files: Some(written.files),
        sha256: Some(written.sha256),
        volumes_bytes: written.volumes_bytes,
        needs_gnu_tar: facts.needs_gnu_tar || written.needs_gnu_tar,
        ..facts.clone()
    }
}

/// Puts what comes into a pipe, to its end or until nobody wants more.
async fn feed(mut source: ByteStream, mut into: Told<'_>) -> Result<(), Error> {
    while let Some(piece) = source.next().await {
        if !into.put(&piece?).await {
            return Ok(());
        }
    }
    into.close();
    Ok(())
}

fn refusal(why: &impl ToString) -> Error {
    Error::invalid_input("file", "the archive in the file is refused")
        .because(clean_line(&why.to_string(), REFUSAL_LIMIT))
        .detail("kind", "hostile")
}
