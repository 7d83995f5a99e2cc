//! An archive that comes from a file: sent to its host and judged here at the same time; nothing is sealed before both are
//! content.

use futures_util::StreamExt;
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::domain::archive::{Arrived, ByteStream};
use crate::domain::error::Error;
use crate::domain::reporter::Reporter;
use crate::domain::snapshot::{ArchiveFacts, ArchiveFormat, ArchiveManifest};
use crate::extensions::archives::arrival::Arrival;
use crate::extensions::archives::passage::{Counted, Inlet, pipe, repacked, unpacked};
use crate::extensions::archives::scan::{Promise, Scan, Scanned};
use crate::extensions::archives::shelf;
use crate::failpoint;

/// How much of an archive's content is judged at once; bytes.
const PIECE: usize = 64 * 1024;

/// Takes an archive from a file to the place that was made for it.
pub(super) async fn import(
    arrival: Arrival<'_>,
    manifest: &ArchiveManifest,
    source: ByteStream,
    reporter: &dyn Reporter,
) -> Result<Arrived, Error> {
    let facts = &manifest.snapshot.archive;
    let format = shelf::format(facts)?;
    let ((to_host, at_host), (to_scan, at_scan)) = (pipe(), pipe());
    let target = arrival.format.clone();
    let counted = Counted::new(at_host, reporter, "import", facts.bytes);
    let mut stream = repacked(counted, &format, &target);
    let receiving = async {
        let received = arrival.receive(&mut stream).await;
        // Nobody reads any more: who still writes ends now.
        drop(stream);
        received
    };
    let scanning = scan(at_scan, &format, promise(facts));
    match tokio::join!(split(source, to_host, to_scan), scanning, receiving) {
        // Who stopped first knows why; to the other one it is an end that came too early.
        (Ok(Some(Gone::Host)), _, Err(error)) | (Ok(_), Ok(_), Err(error)) => Err(error),
        (Err(fault), _, _) | (Ok(_), Err(fault), _) => Err(fault),
        (Ok(_), Ok(scanned), Ok(received)) => {
            failpoint::reached("import.received");
            let sealed = received.seal(&recomputed(facts, &scanned)).await;
            failpoint::reached("import.sealed");
            sealed
        }
    }
}

fn promise(facts: &ArchiveFacts) -> Promise {
    Promise {
        content_bytes: facts.content_bytes.unwrap_or_default(),
        files: facts.files,
        sha256: facts.sha256.clone().unwrap_or_default(),
        volumes: facts.captured_volumes.iter().map(|volume| volume.name.clone()).collect(),
    }
}

/// Facts from outside, with what was found out here in their place.
fn recomputed(facts: &ArchiveFacts, scanned: &Scanned) -> ArchiveFacts {
    ArchiveFacts {
        files: Some(scanned.files),
        volumes_bytes: scanned.volumes_bytes,
        needs_gnu_tar: facts.needs_gnu_tar || scanned.needs_gnu_tar,
        ..facts.clone()
    }
}

/// Who takes no more of what is split.
enum Gone {
    Host,
    Scan,
}

/// Gives what comes to both. Who wants no more ends it for the other one too: that one's pipe is not closed.
async fn split(
    mut source: ByteStream,
    mut to_host: Inlet,
    mut to_scan: Inlet,
) -> Result<Option<Gone>, Error> {
    while let Some(piece) = source.next().await {
        let piece = piece?;
        match tokio::join!(to_scan.put(&piece), to_host.put(&piece)) {
            (false, _) => return Ok(Some(Gone::Scan)),
            (_, false) => return Ok(Some(Gone::Host)),
            _ => {}
        }
    }
    to_host.close();
    to_scan.close();
    Ok(None)
}

/// Judges an archive to its end.
async fn scan(
    packed: impl AsyncRead + Send + Unpin + 'static,
    format: &ArchiveFormat,
    promise: Promise,
) -> Result<Scanned, Error> {
    let mut content = unpacked(packed, format);
    let mut scan = Scan::new(promise);
    let mut piece = vec![0; PIECE];
    let refuse = |why: Box<dyn std::error::Error + Send + Sync>| {
        Error::invalid_input("file", "the archive in the file is refused")
            .because(why)
            .detail("kind", "hostile")
    };
    loop {
        let length = content.read(&mut piece).await.map_err(|error| refuse(error.into()))?;
        if length == 0 {
            return scan.finish().map_err(|refusal| refuse(refusal.into()));
        }
        scan.push(&piece[..length]).map_err(|refusal| refuse(refusal.into()))?;
        // What unpacks into a thousand times its size would keep this thread for seconds: a cancel is heard in between.
        tokio::task::consume_budget().await;
    }
}
