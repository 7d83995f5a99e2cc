//! Archives on their way. From a host: its bytes to whoever takes them. To a host: a folder, the bytes into a partial file
//! while the host unpacks and hashes them, and only then its name and manifest.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncRead;

use crate::domain::archive::{ARRIVED_OTHERWISE, ArchivePlace, Arrived};
use crate::domain::error::{Code, Error, Kind};
use crate::domain::facts::HostIdentity;
use crate::domain::output::OutputSink;
use crate::domain::reporter::Reporter;
use crate::domain::snapshot::{ArchiveFacts, ArchiveFormat, ArchiveManifest, SnapshotRecord};
use crate::extensions::archives::archive_dir::{
    self, about, archive_script, expecting, missing, other_machine,
};
use crate::extensions::archives::capture::seal;
use crate::extensions::archives::verify::was_in_the_way;
use crate::extensions::workspace::exec::{Went, judged};
use crate::extensions::workspace::script_output::{ScriptOutput, other_root};
use crate::extensions::workspace::{Recorded, configured_root, expected, failed, step};
use crate::transport::{Command, Transport};

const READ_SH: &str = archive_script!("archive_read.sh");
const PREPARE_SH: &str = archive_script!("archive_prepare.sh");
const RECEIVE_SH: &str = archive_script!("archive_receive.sh");

/// How long a transfer may stand still.
const IDLE: Duration = Duration::from_mins(2);

/// Writes an archive's bytes to a sink, from beginning to end.
///
/// Errors: [`Kind::NobodyReads`] where the sink wanted no more.
pub(super) async fn read(
    transport: &dyn Transport,
    place: &ArchivePlace,
    format: &ArchiveFormat,
    sink: &mut dyn OutputSink,
) -> Result<(), Error> {
    let command = about(READ_SH, transport, place).arg(format.file_name());
    let message =
        format!("the archive of snapshot {} on {} could not be read", place.id, place.host);
    let error = Error::new(Code::OperationFailed, message.clone()).step("read");
    match judged(transport, command, None, sink).await? {
        Went::Ran(Some(0)) => Ok(()),
        Went::Ran(None) => Err(error
            .because("nobody took it any more")
            .detail("stopped", true)
            .of_kind(Kind::NobodyReads)),
        Went::Ran(Some(status)) => Err(error.because(format!("cat ended with status {status}"))),
        Went::Refused(verdict) => Err(refused(transport, place, &verdict, "")),
        Went::Silent(output) => Err(failed("read", message, &output)),
    }
}

/// Error by a script's first line, where that is no good verdict.
pub(super) fn refused(
    transport: &dyn Transport,
    place: &ArchivePlace,
    verdict: &str,
    words: &str,
) -> Error {
    let host = &transport.spec().name;
    match verdict {
        "identity" => other_machine(transport, place),
        "gone" => missing(transport, place),
        "missing" => Error::new(Code::MissingDependency, format!("host {host} lacks zstd"))
            .hint(format!("install zstd on {host}; nothing is installed there by sandboxer"))
            .detail("missing", vec!["zstd"]),
        _ => {
            if let Some(error) = other_root(verdict, host.as_str()) {
                return error;
            }
            let message =
                format!("the archive of snapshot {} on {host} could not be read", place.id);
            let why = if words.is_empty() { verdict } else { words };
            Error::new(Code::OperationFailed, message).because(why.to_owned())
        }
    }
}

/// A place that is ready for an archive.
pub(super) struct IncomingArchive<'a> {
    transport: Arc<dyn Transport>,
    pub(super) place: &'a ArchivePlace,
    manifest: &'a ArchiveManifest,
    path: String,
    identity: HostIdentity,
    /// How it will be compressed there.
    pub(super) format: ArchiveFormat,
}

/// An archive that is there and was read back, under no name yet.
pub(super) struct Received<'a> {
    incoming: IncomingArchive<'a>,
    bytes: u64,
    /// SHA-256 (hex) of the tar inside.
    sum: String,
}

impl<'a> IncomingArchive<'a> {
    /// Makes the folder, where there is room for what comes: `packed` bytes as it is, and as many as are in it where it is compressed
    /// anew.
    ///
    /// Errors: `conflict` where there is one already; `operation_failed` where there is no room. What the host refuses is
    /// `untouched`.
    pub(super) async fn prepare(
        transport: Arc<dyn Transport>,
        place: &'a ArchivePlace,
        manifest: &'a ArchiveManifest,
        packed: u64,
        reporter: &dyn Reporter,
    ) -> Result<Self, Error> {
        let facts = &manifest.snapshot.archive;
        let from = archive_dir::format(facts)?;
        let unpacked = match from {
            // Without zstd it stays as it is.
            ArchiveFormat::TarGz => packed,
            _ => facts.content_bytes.unwrap_or(packed).max(packed),
        };
        let is_given = place.profile.as_ref().and_then(configured_root).is_some();
        // A root that bears no mark gets one.
        let expected = expected(place.host_identity.as_ref(), &place.roots, Recorded::No);
        let command = expecting(PREPARE_SH, transport.as_ref(), place, &expected)
            .arg(if is_given { "given" } else { "made" })
            .arg(packed.to_string())
            .arg(unpacked.to_string());
        let output = step(transport.as_ref(), "prepare", &command).await?;
        let text = output.text();
        let said = ScriptOutput::read(&text);
        if let Some(root) = said.marked_root() {
            reporter.found_root(&root);
        }
        // It refuses before it makes anything there.
        archive_dir::check(&said, "prepare", transport.as_ref(), place)
            .map_err(Error::untouched)?;
        let identity = archive_dir::identity(&said, place);
        let path = said.text("path").filter(|_| said.value("prepared") == Some("yes"));
        let (Some(path), Some(identity)) = (path, identity) else {
            let message = format!(
                "{} could not be prepared for snapshot {}",
                transport.spec().name,
                place.id
            );
            return Err(failed("prepare", message, &output));
        };
        let format = if said.value("zstd") == Some("yes") { from } else { ArchiveFormat::TarGz };
        Ok(Self { transport, place, manifest, path, identity, format })
    }

    /// Writes what comes from `source`, compressed as `format` says, and reads it back on its way.
    pub(super) async fn receive(
        self,
        source: &mut (dyn AsyncRead + Send + Unpin),
    ) -> Result<Received<'a>, Error> {
        let transport = self.transport.as_ref();
        let command = Command::script(RECEIVE_SH).arg(&self.path).arg(self.format.file_name());
        let output =
            transport.feed(&command, source, IDLE).await.map_err(|error| error.step("receive"))?;
        let text = output.text();
        let said = ScriptOutput::read(&text);
        archive_dir::check(&said, "receive", transport, self.place)?;
        let (id, host) = (&self.manifest.id, &transport.spec().name);
        let words = said.text("words").unwrap_or_default();
        if said.value("tee").is_some() {
            let message = format!("the archive of snapshot {id} could not be written on {host}");
            return Err(Error::new(Code::OperationFailed, message).because(words).step("receive"));
        }
        let size = said.value("size").and_then(|text| text.parse().ok());
        let Some(bytes) = size.filter(|_| said.value("received") == Some("yes")) else {
            return Err(failed(
                "receive",
                format!("the archive of snapshot {id} did not come to {host}"),
                &output,
            ));
        };
        let ended = said.value("unpack");
        if ended.is_some_and(|status| !was_in_the_way(status, &words)) {
            let why = if words.is_empty() { "it cannot be unpacked".to_owned() } else { words };
            return Err(otherwise(self.place, "content", why));
        }
        // A hash that was not read is no other content.
        let Some(sum) = said.hash("sum").filter(|_| ended.is_none()) else {
            let message = format!("the archive of snapshot {id} could not be read back on {host}");
            return Err(Error::new(Code::OperationFailed, message).because(words).step("receive"));
        };
        Ok(Received { incoming: self, bytes, sum })
    }
}

impl Received<'_> {
    /// Proves that it is what `facts` say, and gives it its name and, last, its manifest, which says them: from then on it is a
    /// snapshot.
    pub(super) async fn seal(self, facts: &ArchiveFacts) -> Result<Arrived, Error> {
        let Self { incoming, bytes, sum } = self;
        let IncomingArchive { transport, place, manifest, path, identity, format } = incoming;
        if facts.sha256.as_ref() != Some(&sum) {
            let why = "the SHA-256 of the tar inside is another one".to_owned();
            return Err(otherwise(place, "hash", why));
        }
        let archive = ArchiveFacts { bytes: Some(bytes), format: Some(format), ..facts.clone() };
        let snapshot = SnapshotRecord { archive: archive.clone(), ..manifest.snapshot.clone() };
        seal(transport.as_ref(), &path, &ArchiveManifest { snapshot, ..manifest.clone() }).await?;
        Ok(Arrived { path, identity, archive })
    }
}

/// Error of bytes that came to this place and are not what is recorded; `differs` is `hash` or `content`.
pub(super) fn otherwise(to: &ArchivePlace, differs: &str, why: String) -> Error {
    Error::new(
        Code::OperationFailed,
        format!("the archive of snapshot {} did not arrive on {} as it was sent", to.id, to.host),
    )
    .because(why)
    .hint("nothing of it was kept there; try again")
    .of_kind(Kind::ArrivedOtherwise)
    .detail("kind", ARRIVED_OTHERWISE)
    .detail("differs", differs)
    .step("receive")
}
