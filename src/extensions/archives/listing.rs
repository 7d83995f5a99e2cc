//! What is in an archive, as its host's tar lists it.

use async_trait::async_trait;

use crate::domain::archive::{ArchivePlace, TreeEntry};
use crate::domain::error::{Code, Error};
use crate::domain::output::{OutputSink, Source};
use crate::domain::snapshot::ArchiveFacts;
use crate::extensions::archives::archive_dir::{self, about, archive_script};
use crate::extensions::archives::entries::{GNU_LISTING, Style, entry};
use crate::extensions::archives::transfer::refused;
use crate::transport::Transport;

const LIST_SH: &str = archive_script!("archive_list.sh");

/// How many entries of an archive are listed.
const ENTRIES_LIMIT: usize = 2_000_000;
/// How long a line of a listing, or what is kept of errors, may be; bytes.
const LINE_LIMIT: usize = 64 * 1024;

/// The entries of an archive.
pub(super) async fn entries(
    transport: &dyn Transport,
    place: &ArchivePlace,
    facts: &ArchiveFacts,
) -> Result<Vec<TreeEntry>, Error> {
    let format = archive_dir::format(facts)?;
    let command = about(LIST_SH, transport, place).arg(format.file_name()).args(GNU_LISTING);
    let mut listing = Listing::default();
    let status = transport.attach(&command, &mut listing).await?;
    let errors = String::from_utf8_lossy(&listing.errors).trim().to_owned();
    let id = &place.id;
    match (listing.verdict.as_deref(), status) {
        (Some(b"gnu" | b"busybox"), Some(0)) => Ok(listing.entries),
        (Some(b"gnu" | b"busybox"), None) => {
            let message = format!(
                "snapshot {id} has more than {ENTRIES_LIMIT} entries: too many to be listed"
            );
            Err(Error::new(Code::Unsupported, message))
        }
        (Some(b"gnu" | b"busybox"), Some(_)) => {
            let message =
                format!("the archive of snapshot {id} on {} cannot be listed", place.host);
            let hint = format!("`sandboxer snapshots verify {id}` says what is wrong with it");
            Err(Error::new(Code::OperationFailed, message).hint(hint).because(errors))
        }
        (verdict, _) => Err(refused(transport, place, verdict.unwrap_or_default(), &errors)),
    }
}

/// A listing as it comes: the first line says whose tar wrote it.
#[derive(Default)]
struct Listing {
    verdict: Option<Vec<u8>>,
    line: Vec<u8>,
    errors: Vec<u8>,
    entries: Vec<TreeEntry>,
}

impl Listing {
    fn line_is_there(&mut self) {
        let line = std::mem::take(&mut self.line);
        match self.verdict.as_deref() {
            None => self.verdict = Some(line),
            Some(b"gnu") => self.entries.extend(entry(&line, Style::Gnu)),
            Some(b"busybox") => self.entries.extend(entry(&line, Style::Busybox)),
            Some(_) => {}
        }
    }
}

#[async_trait]
impl OutputSink for Listing {
    async fn take(&mut self, source: Source, bytes: &[u8]) -> bool {
        if source == Source::Stderr {
            let room = LINE_LIMIT.saturating_sub(self.errors.len());
            self.errors.extend_from_slice(&bytes[..bytes.len().min(room)]);
            return true;
        }
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            match piece.strip_suffix(b"\n") {
                Some(end) => {
                    self.line.extend_from_slice(end);
                    self.line_is_there();
                }
                None => self.line.extend_from_slice(piece),
            }
        }
        self.line.len() <= LINE_LIMIT && self.entries.len() <= ENTRIES_LIMIT
    }
}
