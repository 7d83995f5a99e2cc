//! Snapshots of the account, as the contract's archives: metadata alone, so there is nothing to read, list or carry elsewhere.

use async_trait::async_trait;

use super::account::{Room, json};
use super::files::{
    Found, ID, StubSnapshot, archive_path, check_place, fingerprint, identity, proved, snapshot,
    unreadable,
};
use super::provider::Provider;
use crate::domain::archive::{
    ArchiveLook, ArchivePlace, Arrived, ByteStream, SnapshotArchives, TreeEntry,
};
use crate::domain::error::{Code, Error, Kind};
use crate::domain::extension::Target;
use crate::domain::name::SnapshotId;
use crate::domain::reporter::{Report, Reporter};
use crate::domain::snapshot::{ArchiveFacts, ArchiveManifest};
use crate::domain::teardown::{Resource, TeardownLine, TeardownOutcome, TeardownReport};

/// Snapshots of the provider.
pub(super) struct StubArchives {
    provider: Provider,
}

impl StubArchives {
    pub(super) fn new(provider: Provider) -> Self {
        Self { provider }
    }

    /// Snapshot that is whole, and what its record says.
    ///
    /// Errors: `not_found` and `operation_failed` of the kinds of archives that are missing and altered.
    pub(super) async fn whole(
        &self,
        place: &ArchivePlace,
        facts: &ArchiveFacts,
    ) -> Result<StubSnapshot, Error> {
        let found = self.find(place).await?;
        let id = &place.id;
        let altered = |why: &str| {
            let message = format!("the archive of snapshot {id} at saas-stub is not what it was");
            Error::new(Code::OperationFailed, message)
                .of_kind(Kind::ArchiveAltered)
                .detail("kind", "altered")
                .because(why.to_owned())
        };
        match found {
            Found::Absent => {
                let message = format!("the archive of snapshot {id} is not at saas-stub");
                Err(Error::new(Code::NotFound, message)
                    .of_kind(Kind::ArchiveMissing)
                    .detail("differs", "missing"))
            }
            Found::Unreadable(why) => Err(altered(&why)),
            Found::There(found, _) if !found.sealed => Err(altered("it is not whole")),
            Found::There(found, _) if !place.owners.contains(&found.manifest.owner) => {
                Err(altered("it is another installation's"))
            }
            Found::There(found, _) => {
                let hash = Some(fingerprint(&found.content));
                let bytes = Some(found.content.len() as u64);
                let is_it = hash == facts.sha256 && bytes == facts.bytes;
                if is_it { Ok(*found) } else { Err(altered("what was saved is another thing")) }
            }
        }
    }

    async fn find(&self, place: &ArchivePlace) -> Result<Found<StubSnapshot>, Error> {
        check_place(&place.host)?;
        let ArchivePlace { id, host_identity, .. } = place.clone();
        self.provider
            .open(move |account| match proved(account, host_identity.as_ref())? {
                Some(account) => snapshot(account, id.as_str()),
                None => Ok(Found::Absent),
            })
            .await
    }
}

fn no_files(what: &str) -> Error {
    Error::new(Code::Unsupported, format!("{ID} cannot {what}"))
        .hint("its snapshots are metadata, and have no files")
}

#[async_trait]
impl SnapshotArchives for StubArchives {
    async fn look(&self, place: &ArchivePlace) -> Result<ArchiveLook, Error> {
        check_place(&place.host)?;
        let ArchivePlace { id, host_identity, .. } = place.clone();
        self.provider
            .open(move |account| {
                let Some(account) = proved(account, host_identity.as_ref())? else {
                    return Ok(ArchiveLook::default());
                };
                let path = Some(archive_path(&id));
                let there = ArchiveLook {
                    folder: path.clone(),
                    path,
                    identity: Some(identity(account)),
                    ..ArchiveLook::default()
                };
                Ok(match snapshot(account, id.as_str())? {
                    Found::Absent => ArchiveLook { path: None, ..there },
                    Found::There(found, _) if found.sealed => ArchiveLook {
                        bytes: Some(found.content.len() as u64),
                        manifest: Some(found.manifest),
                        ..there
                    },
                    Found::There(..) => there,
                    Found::Unreadable(why) => {
                        return Err(unreadable(&format!("snapshot {id}"), &why));
                    }
                })
            })
            .await
    }

    fn check_manifest(&self, manifest: &ArchiveManifest) -> Result<(), Error> {
        let refuse = |why: String| Err(Error::invalid_input("file", why));
        let record = &manifest.snapshot;
        if record.extension.as_str() != ID {
            return refuse(format!("it was made by {}", record.extension));
        }
        if record.archive.sha256.is_none() || record.archive.bytes.is_none() {
            return refuse("it does not say what was saved".to_owned());
        }
        match manifest.profile.validate().into_iter().next() {
            Some(problem) => {
                refuse(format!("its profile is refused: {}: {}", problem.path, problem.message))
            }
            None if manifest.profile.hash() != record.profile.hash => {
                refuse("its profile is not the one that it was made with".to_owned())
            }
            None => Ok(()),
        }
    }

    async fn verify(
        &self,
        place: &ArchivePlace,
        facts: &ArchiveFacts,
        reporter: &dyn Reporter,
    ) -> Result<(), Error> {
        reporter.report(Report { stage: "verify", ..Report::default() });
        self.whole(place, facts).await.map(|_| ())
    }

    async fn remove(
        &self,
        place: &ArchivePlace,
        reporter: &dyn Reporter,
    ) -> Result<TeardownReport, Error> {
        reporter.report(Report { stage: "remove", ..Report::default() });
        check_place(&place.host)?;
        let ArchivePlace { id, owners, host_identity, .. } = place.clone();
        self.provider
            .open(move |account| {
                let Some(account) = proved(account, host_identity.as_ref())? else {
                    return Ok(line(&id, TeardownOutcome::Absent, None));
                };
                let left = |why: &str| line(&id, TeardownOutcome::Failed, Some(why.to_owned()));
                Ok(match snapshot(account, id.as_str())? {
                    Found::Absent => {
                        // With what a write that was cut off left.
                        account.remove(Room::Snapshots, id.as_str())?;
                        line(&id, TeardownOutcome::Absent, None)
                    }
                    Found::Unreadable(why) => left(&why),
                    Found::There(found, _) if !owners.contains(&found.manifest.owner) => {
                        left("it is another installation's")
                    }
                    Found::There(..) => {
                        account.remove(Room::Snapshots, id.as_str())?;
                        line(&id, TeardownOutcome::Removed, None)
                    }
                })
            })
            .await
    }

    async fn entries(
        &self,
        _place: &ArchivePlace,
        _facts: &ArchiveFacts,
    ) -> Result<Vec<TreeEntry>, Error> {
        Err(no_files("list what is in a snapshot"))
    }

    async fn copy(
        &self,
        _from: &ArchivePlace,
        _to: &ArchivePlace,
        _manifest: &ArchiveManifest,
        _reporter: &dyn Reporter,
    ) -> Result<Arrived, Error> {
        Err(no_files("copy snapshots to a host"))
    }

    async fn export(
        &self,
        _place: &ArchivePlace,
        _manifest: &ArchiveManifest,
    ) -> Result<ByteStream, Error> {
        Err(no_files("export snapshots"))
    }

    async fn open_export(
        &self,
        _source: ByteStream,
    ) -> Result<(ArchiveManifest, ByteStream), Error> {
        Err(no_files("import snapshots"))
    }

    async fn import(
        &self,
        _to: &ArchivePlace,
        _manifest: &ArchiveManifest,
        _source: ByteStream,
        _reporter: &dyn Reporter,
    ) -> Result<Arrived, Error> {
        Err(no_files("import snapshots"))
    }
}

/// Report on one snapshot.
fn line(id: &SnapshotId, outcome: TeardownOutcome, reason: Option<String>) -> TeardownReport {
    let resource = Resource { kind: "directory".to_owned(), id: archive_path(id) };
    let is_left = outcome == TeardownOutcome::Failed;
    let leftovers = if is_left { vec![resource.clone()] } else { Vec::new() };
    TeardownReport {
        lines: vec![TeardownLine { resource, outcome, reason }],
        leftovers,
        untouched: false,
    }
}

/// Content of a snapshot: what its sandbox was made from.
pub(super) fn content(target: &Target) -> Result<String, Error> {
    json(&serde_json::json!({
        "profile": target.profile.id,
        "hash": target.profile.hash(),
        "inputs": target.inputs,
    }))
}
