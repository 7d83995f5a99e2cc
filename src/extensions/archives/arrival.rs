//! An archive that comes to a host: a folder for it, its bytes into a partial file while the host unpacks and hashes them, and
//! only then its name and manifest.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncRead;

use crate::domain::archive::{ARRIVED_OTHERWISE, ArchivePlace, Arrived};
use crate::domain::error::{Code, Error, Kind};
use crate::domain::facts::HostIdentity;
use crate::domain::reporter::Reporter;
use crate::domain::snapshot::{ArchiveFacts, ArchiveFormat, ArchiveManifest, SnapshotRecord};
use crate::extensions::archives::capture::seal;
use crate::extensions::archives::reading::was_in_the_way;
use crate::extensions::archives::shelf::{self, keeping, to_come};
use crate::extensions::workspace::said::Said;
use crate::extensions::workspace::{configured_root, failed, step};
use crate::transport::{Command, Transport};

const PREPARE_SH: &str = keeping!("archive_prepare.sh");
const RECEIVE_SH: &str = keeping!("archive_receive.sh");

/// How long a transfer may stand still.
const IDLE: Duration = Duration::from_mins(2);

/// A place that is ready for an archive.
pub(super) struct Arrival<'a> {
    transport: Arc<dyn Transport>,
    pub(super) place: &'a ArchivePlace,
    manifest: &'a ArchiveManifest,
    path: String,
    identity: HostIdentity,
    /// How it will be compressed there.
    pub(super) format: ArchiveFormat,
}

/// An archive that is there and proved to be what it should be, under no name yet.
pub(super) struct Received<'a> {
    arrival: Arrival<'a>,
    bytes: u64,
}

impl<'a> Arrival<'a> {
    /// Makes the folder.
    ///
    /// Errors: `conflict` where there is one already; `operation_failed` where there is no room. What the host refuses is
    /// `untouched`.
    pub(super) async fn prepare(
        transport: Arc<dyn Transport>,
        place: &'a ArchivePlace,
        manifest: &'a ArchiveManifest,
        reporter: &dyn Reporter,
    ) -> Result<Self, Error> {
        let facts = &manifest.snapshot.archive;
        let from = shelf::format(facts)?;
        let command = to_come(PREPARE_SH, transport.as_ref(), place)
            .arg(if place.profile.as_ref().and_then(configured_root).is_some() {
                "given"
            } else {
                "made"
            })
            .arg(facts.bytes.unwrap_or_default().to_string());
        let output = step(transport.as_ref(), "prepare", &command).await?;
        let text = output.text();
        let said = Said::read(&text);
        if let Some(root) = said.marked_root() {
            reporter.found_root(&root);
        }
        // It refuses before it makes anything there.
        shelf::check(&said, "prepare", transport.as_ref(), place).map_err(Error::untouched)?;
        let identity = shelf::identity(&said, place);
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

    /// Writes what comes from `source`, compressed as `format` says, and proves it.
    pub(super) async fn receive(
        self,
        source: &mut (dyn AsyncRead + Send + Unpin),
    ) -> Result<Received<'a>, Error> {
        let transport = self.transport.as_ref();
        let command = Command::script(RECEIVE_SH).arg(&self.path).arg(self.format.file_name());
        let output =
            transport.feed(&command, source, IDLE).await.map_err(|fault| fault.step("receive"))?;
        let text = output.text();
        let said = Said::read(&text);
        shelf::check(&said, "receive", transport, self.place)?;
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
        let unpacked = ended.is_none();
        // A hash that was not read is no other content.
        if ended.is_some_and(|status| was_in_the_way(status, &words))
            || unpacked && said.hash("sum").is_none()
        {
            let message = format!("the archive of snapshot {id} could not be read back on {host}");
            return Err(Error::new(Code::OperationFailed, message).because(words).step("receive"));
        }
        if !unpacked || said.value("sum") != self.manifest.snapshot.archive.sha256.as_deref() {
            let why = match words.as_str() {
                "" if unpacked => "the SHA-256 of the tar inside is another one",
                "" => "it cannot be unpacked",
                words => words,
            };
            let differs = if unpacked { "hash" } else { "content" };
            return Err(otherwise(self.place, differs, why.to_owned()));
        }
        Ok(Received { arrival: self, bytes })
    }
}

impl Received<'_> {
    /// Gives it its name and, last, its manifest: from then on it is a snapshot. `facts` are what that is to say.
    pub(super) async fn seal(self, facts: &ArchiveFacts) -> Result<Arrived, Error> {
        let Self { arrival: Arrival { transport, manifest, path, identity, format, .. }, bytes } =
            self;
        let archive = ArchiveFacts { bytes: Some(bytes), format: Some(format), ..facts.clone() };
        let snapshot = SnapshotRecord { archive: archive.clone(), ..manifest.snapshot.clone() };
        seal(transport.as_ref(), &path, &ArchiveManifest { snapshot, ..manifest.clone() }).await?;
        Ok(Arrived { path, identity, archive })
    }
}

/// What came to this place is not what is recorded; `differs` is `hash` or `content`.
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
