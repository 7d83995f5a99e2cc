//! Listings by a host's tar: of an archive, and of a workspace as an archive of it would be.

use std::time::Duration;

use async_trait::async_trait;

use crate::domain::archive::{ArchivePlace, TreeEntry};
use crate::domain::error::{Code, Error};
use crate::domain::extension::Target;
use crate::domain::output::{OutputSink, Source};
use crate::domain::snapshot::ArchiveFacts;
use crate::extensions::archives::archive_dir::{self, about, archive_script};
use crate::extensions::archives::entries::{GNU_LISTING, Style, entry};
use crate::extensions::archives::transfer::refused;
use crate::extensions::workspace::exec::{Went, judged};
use crate::extensions::workspace::script_output::unproved;
use crate::extensions::workspace::{expected_of, failed, workdir};
use crate::transport::{Command, Output, Transport};

const LIST_SH: &str = archive_script!("archive_list.sh");
const ENTRIES_SH: &str = concat!(
    include_str!("../../transport/scripts/runtime.sh"),
    include_str!("../workspace/scripts/says.sh"),
    include_str!("../workspace/scripts/place.sh"),
    include_str!("../workspace/scripts/bind.sh"),
    include_str!("scripts/as.sh"),
    include_str!("scripts/leave_out.sh"),
    include_str!("scripts/entries.sh")
);

/// How long a workspace may be listed.
const WORKSPACE_LIMIT: Duration = Duration::from_mins(10);
/// How many entries are listed.
const ENTRIES_LIMIT: usize = 2_000_000;
/// How long a line of a listing, or what is kept of errors, may be; bytes.
const LINE_LIMIT: usize = 64 * 1024;

pub(super) async fn entries(
    transport: &dyn Transport,
    place: &ArchivePlace,
    facts: &ArchiveFacts,
) -> Result<Vec<TreeEntry>, Error> {
    let format = archive_dir::format(facts)?;
    let command = about(LIST_SH, transport, place).arg(format.file_name()).args(GNU_LISTING);
    let (id, mut listing) = (&place.id, Listing::default());
    match judged(transport, command, None, &mut listing).await? {
        Went::Ran(Some(0)) => Ok(listing.entries),
        Went::Ran(None) => Err(too_many(&format!("snapshot {id}"))),
        Went::Ran(Some(_)) => {
            let message =
                format!("the archive of snapshot {id} on {} cannot be listed", place.host);
            let hint = format!("`sandboxer snapshots verify {id}` says what is wrong with it");
            let errors = String::from_utf8_lossy(&listing.errors).trim().to_owned();
            Err(Error::new(Code::OperationFailed, message).hint(hint).because(errors))
        }
        Went::Refused(verdict) => Err(refused(transport, place, &verdict, "")),
        Went::Silent(output) => Err(refused(transport, place, "", output.error_text().trim())),
    }
}

/// The entries of a workspace as it is now.
pub(crate) async fn workspace_entries(
    transport: &dyn Transport,
    target: &Target,
    excludes: &[String],
) -> Result<Vec<TreeEntry>, Error> {
    let (id, host) = (&target.id, transport.spec().name.as_str());
    let command = Command::script(ENTRIES_SH)
        .arg(workdir(target)?)
        .arg(target.engine())
        .arg(target.owners.first().map_or("", AsRef::as_ref))
        .arg(expected_of(target))
        .args(excludes);
    let mut listing = Listing::default();
    let listed = judged(transport, command, None, &mut listing);
    let late = |_| Error::new(Code::Timeout, format!("{host} took too long to list it"));
    let unlisted = |output: &Output| {
        failed("list", format!("the workspace of sandbox {id} cannot be listed"), output)
    };
    match tokio::time::timeout(WORKSPACE_LIMIT, listed).await.map_err(late)?? {
        // GNU tar's 1: something changed meanwhile.
        Went::Ran(Some(0 | 1)) => Ok(listing.entries),
        Went::Ran(None) => Err(too_many(&format!("the workspace of sandbox {id}"))),
        Went::Ran(Some(status)) => {
            Err(unlisted(&Output { status, stderr: listing.errors, ..Output::default() }))
        }
        Went::Refused(verdict) => Err(unproved(&verdict, host)
            .unwrap_or_else(|| unlisted(&Output { stdout: verdict.into(), ..Output::default() }))),
        Went::Silent(output) => Err(unlisted(&output)),
    }
}

fn too_many(what: &str) -> Error {
    let message = format!("{what} has more than {ENTRIES_LIMIT} entries: too many to be listed");
    Error::new(Code::Unsupported, message)
}

/// A listing as it comes: the first line says whose tar wrote it.
#[derive(Default)]
struct Listing {
    style: Option<Style>,
    line: Vec<u8>,
    errors: Vec<u8>,
    entries: Vec<TreeEntry>,
}

impl Listing {
    fn line_is_there(&mut self) {
        let line = std::mem::take(&mut self.line);
        match self.style {
            None => {
                self.style = Some(if line == b"gnu" { Style::Gnu } else { Style::Busybox });
            }
            Some(style) => self.entries.extend(entry(&line, style)),
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
