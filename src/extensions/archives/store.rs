//! Archives on hosts: the verbs on one that is there, whichever sandbox it comes from, each handed to its file.

use std::sync::Arc;

use async_trait::async_trait;

use crate::domain::archive::{
    ArchiveLook, ArchivePlace, Arrived, ByteStream, SnapshotArchives, TreeEntry,
};
use crate::domain::error::{Error, Kind};
use crate::domain::reporter::{Report, Reporter};
use crate::domain::snapshot::{ArchiveFacts, ArchiveManifest};
use crate::domain::teardown::TeardownReport;
use crate::extensions::archives::archive_dir;
use crate::extensions::archives::import::import;
use crate::extensions::archives::stream::{Told, pipe, repacked};
use crate::extensions::archives::transfer::{IncomingArchive, otherwise};
use crate::extensions::archives::{export, export_format, listing, transfer, verify};
use crate::failpoint;
use crate::transport::{Transport, Transports};

/// Archives on the hosts that the transports lead to.
pub(crate) struct ArchiveStore {
    transports: Arc<dyn Transports>,
}

impl ArchiveStore {
    /// Over these ways to hosts.
    pub(crate) fn new(transports: Arc<dyn Transports>) -> Self {
        Self { transports }
    }

    /// The way to an archive's host.
    async fn open(&self, place: &ArchivePlace) -> Result<Arc<dyn Transport>, Error> {
        self.transports.open(&place.host).await
    }

    /// For who only attaches.
    async fn open_lazily(&self, place: &ArchivePlace) -> Result<Arc<dyn Transport>, Error> {
        self.transports.open_lazily(&place.host).await
    }

    /// A place for an archive of so many bytes, where nothing was.
    async fn incoming<'a>(
        &self,
        to: &'a ArchivePlace,
        manifest: &'a ArchiveManifest,
        bytes: u64,
        reporter: &dyn Reporter,
    ) -> Result<IncomingArchive<'a>, Error> {
        reporter.report(Report { stage: "prepare", ..Report::default() });
        IncomingArchive::prepare(self.open(to).await?, to, manifest, bytes, reporter).await
    }

    /// After a failure, nothing is left of what was to arrive, in a folder that was made for it; where that cannot be, the
    /// error says so.
    async fn or_nothing(
        &self,
        to: &ArchivePlace,
        outcome: Result<Arrived, Error>,
    ) -> Result<Arrived, Error> {
        let Err(error) = outcome else { return outcome };
        let removed = async { archive_dir::remove(self.open(to).await?.as_ref(), to).await };
        let clean = removed.await.is_ok_and(|report| report.is_clean());
        Err(if clean { error } else { error.detail("unremoved", true) })
    }

    /// From one host through this process to the place that was made for it on another.
    async fn carry(
        &self,
        from: &ArchivePlace,
        incoming: IncomingArchive<'_>,
        manifest: &ArchiveManifest,
        reporter: &dyn Reporter,
    ) -> Result<Arrived, Error> {
        let facts = &manifest.snapshot.archive;
        let format = archive_dir::format(facts)?;
        let source = self.open_lazily(from).await?;
        let (inlet, outlet) = pipe();
        let mut inlet = Told::new(inlet, reporter, "copy", facts.bytes);
        let sending = async {
            let read = transfer::read(source.as_ref(), from, &format, &mut inlet).await;
            if read.is_ok() {
                inlet.close();
            }
            read
        };
        let to = incoming.place;
        let mut stream = repacked(outlet, &format, &incoming.format.clone());
        let receiving = async {
            let received = incoming.receive(&mut stream).await;
            // Nobody reads any more: who still writes ends now.
            drop(stream);
            received
        };
        match tokio::join!(sending, receiving) {
            // To the other end it is an end that came too early.
            (Err(error), _) if error.kind != Kind::NobodyReads => Err(error),
            // It could not be unpacked here, to be compressed anew.
            (_, Err(error)) if error.kind == Kind::SourceUnread => {
                Err(otherwise(to, "content", error.causes.join(": ")))
            }
            (_, Err(error)) | (Err(error), Ok(_)) => Err(error),
            (Ok(()), Ok(received)) => {
                failpoint::reached("copy.received");
                let sealed = received.seal(facts).await;
                failpoint::reached("copy.sealed");
                sealed
            }
        }
    }
}

#[async_trait]
impl SnapshotArchives for ArchiveStore {
    async fn look(&self, place: &ArchivePlace) -> Result<ArchiveLook, Error> {
        archive_dir::look(self.open(place).await?.as_ref(), place).await
    }

    fn check_manifest(&self, manifest: &ArchiveManifest) -> Result<(), Error> {
        export_format::check(manifest)
    }

    async fn verify(
        &self,
        place: &ArchivePlace,
        facts: &ArchiveFacts,
        reporter: &dyn Reporter,
    ) -> Result<(), Error> {
        verify::verify(self.open(place).await?.as_ref(), place, facts, reporter).await
    }

    async fn remove(
        &self,
        place: &ArchivePlace,
        reporter: &dyn Reporter,
    ) -> Result<TeardownReport, Error> {
        reporter.report(Report { stage: "remove", ..Report::default() });
        archive_dir::remove(self.open(place).await?.as_ref(), place).await
    }

    async fn entries(
        &self,
        place: &ArchivePlace,
        facts: &ArchiveFacts,
    ) -> Result<Vec<TreeEntry>, Error> {
        listing::entries(self.open_lazily(place).await?.as_ref(), place, facts).await
    }

    async fn copy(
        &self,
        from: &ArchivePlace,
        to: &ArchivePlace,
        manifest: &ArchiveManifest,
        reporter: &dyn Reporter,
    ) -> Result<Arrived, Error> {
        let bytes = manifest.snapshot.archive.bytes.unwrap_or_default();
        let incoming = self.incoming(to, manifest, bytes, reporter).await?;
        let outcome = self.carry(from, incoming, manifest, reporter).await;
        self.or_nothing(to, outcome).await
    }

    async fn export(
        &self,
        place: &ArchivePlace,
        manifest: &ArchiveManifest,
    ) -> Result<ByteStream, Error> {
        export::write(self.open_lazily(place).await?, place.clone(), manifest)
    }

    async fn open_export(
        &self,
        source: ByteStream,
    ) -> Result<(ArchiveManifest, ByteStream), Error> {
        let opened = export_format::open(source).await?;
        export_format::check(&opened.0)?;
        Ok(opened)
    }

    async fn import(
        &self,
        to: &ArchivePlace,
        manifest: &ArchiveManifest,
        source: ByteStream,
        reporter: &dyn Reporter,
    ) -> Result<Arrived, Error> {
        export_format::check(manifest)?;
        // Packed anew, it may take as much as what is in it.
        let content = manifest.snapshot.archive.content_bytes.unwrap_or_default();
        let incoming = self.incoming(to, manifest, content, reporter).await?;
        let outcome = import(incoming, manifest, source, reporter).await;
        self.or_nothing(to, outcome).await
    }
}
