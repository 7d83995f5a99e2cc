//! Archives on hosts: the verbs on one that is there, whichever sandbox it comes from, each handed to its file.

use std::sync::{Arc, OnceLock};

use async_trait::async_trait;

use crate::domain::archive::{
    ArchiveLook, ArchivePlace, Arrived, ByteStream, SnapshotArchives, TreeEntry,
};
use crate::domain::error::{Error, Kind};
use crate::domain::reporter::{Report, Reporter};
use crate::domain::snapshot::{ArchiveFacts, ArchiveManifest};
use crate::domain::teardown::TeardownReport;
use crate::extensions::archives::archive_dir::{self, altered};
use crate::extensions::archives::import::import;
use crate::extensions::archives::stream::{Told, Watched, pipe, repacked};
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

    /// Whether the archive that `manifest` is of is sealed there; it is not read.
    async fn ensure_whole(
        &self,
        place: &ArchivePlace,
        manifest: &ArchiveManifest,
    ) -> Result<(), Error> {
        let transport = self.open(place).await?;
        let facts = &manifest.snapshot.archive;
        let seen = archive_dir::ensure_sealed(transport.as_ref(), place, facts).await?;
        let (Some(bytes), Some(was)) = (seen.bytes, facts.bytes) else { return Ok(()) };
        if bytes == was {
            return Ok(());
        }
        let differs = if bytes < was { "truncated" } else { "size" };
        let why = format!("it has {bytes} bytes and had {was}");
        Err(altered(differs, transport.as_ref(), place).because(why))
    }

    /// A place for an archive, where nothing was.
    async fn incoming<'a>(
        &self,
        to: &'a ArchivePlace,
        manifest: &'a ArchiveManifest,
        reporter: &dyn Reporter,
    ) -> Result<IncomingArchive<'a>, Error> {
        reporter.report(Report { stage: "prepare", ..Report::default() });
        IncomingArchive::prepare(self.open(to).await?, to, manifest, reporter).await
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
        let target = incoming.format.clone();
        let (to, wrong) = (incoming.place, Arc::new(OnceLock::new()));
        let mut stream = Watched::new(repacked(outlet, &format, &target), &wrong);
        let receiving = async {
            let received = incoming.receive(&mut stream).await;
            // Nobody reads any more: who still writes ends now.
            drop(stream);
            received
        };
        match tokio::join!(sending, receiving) {
            // To the other end it is an end that came too early.
            (Err(error), _) if error.kind != Kind::NobodyReads => Err(error),
            (_, Err(error)) => match wrong.get() {
                // It could not be unpacked here, to be compressed anew.
                Some(why) => Err(otherwise(to, "content", why.clone())),
                None => Err(error),
            },
            (Err(error), Ok(_)) => Err(error),
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
        if from.host.same(to.host.as_str()) {
            return Err(Error::invalid_input(
                "host",
                format!("the archive is on {} already", to.host),
            ));
        }
        self.ensure_whole(from, manifest).await?;
        let incoming = self.incoming(to, manifest, reporter).await?;
        let outcome = self.carry(from, incoming, manifest, reporter).await;
        self.or_nothing(to, outcome).await
    }

    async fn export(
        &self,
        place: &ArchivePlace,
        manifest: &ArchiveManifest,
    ) -> Result<ByteStream, Error> {
        self.ensure_whole(place, manifest).await?;
        export::write(self.open_lazily(place).await?, place.clone(), manifest)
    }

    async fn open_export(
        &self,
        source: ByteStream,
    ) -> Result<(ArchiveManifest, ByteStream), Error> {
        let (manifest, archive) = export_format::open(source).await?;
        export_format::check(&manifest)?;
        Ok((manifest, archive))
    }

    async fn import(
        &self,
        to: &ArchivePlace,
        manifest: &ArchiveManifest,
        source: ByteStream,
        reporter: &dyn Reporter,
    ) -> Result<Arrived, Error> {
        export_format::check(manifest)?;
        let incoming = self.incoming(to, manifest, reporter).await?;
        let outcome = import(incoming, manifest, source, reporter).await;
        self.or_nothing(to, outcome).await
    }
}
