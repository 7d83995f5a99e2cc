//! Archives in memory: what a scripted host keeps of snapshots.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};

use sandboxer::domain::archive::{
    ArchiveLook, ArchivePlace, Arrived, ByteStream, SnapshotArchives, TreeEntry,
};
use sandboxer::domain::error::Kind;
use sandboxer::domain::extension::{CaptureRequest, Captured, ProvisionRequest, RestoreSource};
use sandboxer::domain::facts::HostIdentity;
use sandboxer::domain::profile::Profile;
use sandboxer::domain::reporter::Reporter;
use sandboxer::domain::root::MarkedRoot;
use sandboxer::domain::snapshot::{ArchiveFacts, ArchiveFormat, ArchiveManifest, SnapshotRecord};
use sandboxer::domain::teardown::{Resource, TeardownLine, TeardownOutcome, TeardownReport};
use sandboxer::domain::{Code, Error};

use crate::test_env::script::{Act, Locked, Queue, Scripted};

/// What a host has of a snapshot: a part of an archive, or a sealed one.
#[derive(Clone)]
enum Kept {
    Part,
    Sealed(Box<ArchiveManifest>),
}

/// The archives, and what the next calls do.
#[derive(Default)]
pub(crate) struct Shelf {
    kept: Locked<BTreeMap<(String, String), Kept>>,
    /// Hosts that are others by another name.
    also: Locked<BTreeMap<String, String>>,
    /// Hosts that do not answer.
    pub(crate) away: Locked<Vec<&'static str>>,
    /// Hosts that are others by now.
    pub(crate) changed: Locked<Vec<&'static str>>,
    /// What a capture does before it seals.
    pub(crate) capture: Queue<Act>,
    /// What a capture does after it sealed.
    pub(crate) sealed: Queue<Act>,
    /// How containers are resumed.
    pub(crate) resume: Queue<Act>,
    /// What a removal does.
    pub(crate) remove: Queue<Act>,
    /// What a restore does.
    pub(crate) restore: Queue<Act>,
    /// What a verify finds.
    pub(crate) verify: Queue<Act>,
    /// What a copy does before it is whole.
    pub(crate) copy: Queue<Act>,
    /// Root that a look at an archive tells, with its mark.
    pub(crate) root: Locked<Option<MarkedRoot>>,
    /// What an import does before it is whole.
    pub(crate) import: Queue<Act>,
    /// What either does after it is.
    pub(crate) copied: Queue<Act>,
    /// What is known of archives that are made.
    pub(crate) facts: Locked<Option<ArchiveFacts>>,
    /// What an export gives behind the manifest; without an end where that is asked for.
    pub(crate) pieces: Locked<Vec<Result<Vec<u8>, Error>>>,
    pub(crate) exports_for_ever: Locked<bool>,
    /// What came to an import behind it.
    pub(crate) imported: Locked<Vec<u8>>,
    /// What a restore could not set.
    pub(crate) not_preserved: Locked<BTreeMap<String, u64>>,
}

/// Identity of a host: `m` is `local`'s.
fn identity(host: &str) -> HostIdentity {
    let machine_id = if host == "local" { "m".to_owned() } else { format!("m-{host}") };
    HostIdentity { machine_id, engine: None, engine_id: None }
}

fn facts() -> ArchiveFacts {
    ArchiveFacts {
        bytes: Some(1234),
        content_bytes: Some(10_240),
        files: Some(3),
        sha256: Some("00".into()),
        format: Some(ArchiveFormat::TarZst),
        images: BTreeMap::from([("web".to_owned(), "sha256:00".to_owned())]),
        ..ArchiveFacts::default()
    }
}

/// Where archives are on a scripted host.
fn folder(id: &str) -> String {
    format!("/srv/snapshots/{id}")
}

impl Shelf {
    /// What hosts have, as `host/id` and whether it is whole.
    pub(crate) fn there(&self) -> Vec<(String, bool)> {
        let kept = self.kept.lock().unwrap();
        kept.iter()
            .map(|((host, id), kept)| (format!("{host}/{id}"), matches!(kept, Kept::Sealed(_))))
            .collect()
    }

    /// The archive of a snapshot is where its record says.
    pub(crate) fn seal(&self, record: &SnapshotRecord, profile: &Profile) {
        let (id, owner) = (record.id.clone(), record.owner.clone());
        let (snapshot, profile) = (record.clone(), profile.clone());
        let manifest = ArchiveManifest { schema: 1, id, owner, snapshot, profile };
        let key = (record.host.to_string(), record.id.to_string());
        self.kept.lock().unwrap().insert(key, Kept::Sealed(Box::new(manifest)));
    }

    /// Somebody changes the manifests beside the archives.
    pub(crate) fn alter(&self, change: impl Fn(&mut ArchiveManifest)) {
        for kept in self.kept.lock().unwrap().values_mut() {
            if let Kept::Sealed(manifest) = kept {
                change(manifest);
            }
        }
    }

    /// Somebody removes an archive on its host.
    pub(crate) fn lose(&self, host: &str) {
        self.kept.lock().unwrap().retain(|(at, _), _| at != host);
    }

    /// One host is the other by another name: what is on one is on both.
    pub(crate) fn name(&self, host: &str, also: &str) {
        self.also.lock().unwrap().insert(also.to_owned(), host.to_owned());
    }

    fn reach(&self, place: &ArchivePlace) -> Result<(), Error> {
        if self.away.lock().unwrap().iter().any(|away| place.host.same(away)) {
            return Err(Error::new(Code::HostUnreachable, format!("no route to {}", place.host)));
        }
        if self.changed.lock().unwrap().iter().any(|changed| place.host.same(changed)) {
            return Err(Error::new(
                Code::HostChanged,
                format!("the root on {} is away", place.host),
            ));
        }
        let known = place.host_identity.as_ref().map(|identity| identity.machine_id.as_str());
        // Sandboxes are on machines that are all called `m`, and what lies about on a real one.
        let here = identity(&self.key(place).0).machine_id;
        if known.is_some_and(|id| id.starts_with("m-") && id != here) {
            return Err(Error::new(Code::HostChanged, format!("{} is another one", place.host)));
        }
        Ok(())
    }

    fn key(&self, place: &ArchivePlace) -> (String, String) {
        let host = place.host.to_string();
        (self.also.lock().unwrap().get(&host).cloned().unwrap_or(host), place.id.to_string())
    }

    pub(crate) async fn capture(
        &self,
        profile: &Profile,
        request: &CaptureRequest,
    ) -> Result<Captured, Error> {
        let record = &request.snapshot;
        let key = (record.host.to_string(), record.id.to_string());
        let act = self.capture.next().unwrap_or(Act::Well);
        if !matches!(act, Act::Untouched(_)) {
            self.kept.lock().unwrap().insert(key.clone(), Kept::Part);
        }
        Scripted::act(act).await?;
        let (schema, id, owner) = (1, record.id.clone(), request.owner.clone());
        let mut snapshot = record.clone();
        let facts = self.facts.get().unwrap_or_else(facts);
        snapshot.archive = facts.clone();
        let manifest = ArchiveManifest { schema, id, owner, snapshot, profile: profile.clone() };
        self.kept.lock().unwrap().insert(key, Kept::Sealed(Box::new(manifest)));
        self.sealed.act().await?;
        let identity = identity(record.host.as_str());
        Ok(Captured { path: folder(record.id.as_str()), identity, archive: facts })
    }

    pub(crate) async fn restore(
        &self,
        _: &ProvisionRequest,
        source: &RestoreSource,
    ) -> Result<(), Error> {
        self.restore.act().await?;
        let key = self.key(&source.place);
        match self.kept.lock().unwrap().get(&key) {
            Some(Kept::Sealed(_)) => Ok(()),
            _ => Err(Error::new(Code::NotFound, "there is no such archive")),
        }
    }
}

/// The archives as the manager has them.
pub(crate) struct Archives(pub(crate) Arc<Scripted>);

#[async_trait]
impl SnapshotArchives for Archives {
    async fn look(&self, place: &ArchivePlace) -> Result<ArchiveLook, Error> {
        self.0.note(format!("look {}", place.id));
        self.0.shelf.reach(place)?;
        let key = self.0.shelf.key(place);
        let kept = self.0.shelf.kept.lock().unwrap().get(&key).cloned();
        let folder = Some(folder(place.id.as_str()));
        let path = folder.clone().filter(|_| kept.is_some());
        let manifest = match kept {
            Some(Kept::Sealed(manifest)) => Some(*manifest),
            _ => None,
        };
        let bytes = manifest.as_ref().and_then(|manifest| manifest.snapshot.archive.bytes);
        let root = self.0.shelf.root.get();
        Ok(ArchiveLook { folder, path, identity: Some(identity(&key.0)), manifest, bytes, root })
    }

    fn check_manifest(&self, manifest: &ArchiveManifest) -> Result<(), Error> {
        self.0.note(format!("check {}", manifest.id));
        Ok(())
    }

    async fn verify(
        &self,
        place: &ArchivePlace,
        _: &ArchiveFacts,
        _: &dyn Reporter,
    ) -> Result<(), Error> {
        self.0.note(format!("verify {}", place.id));
        self.0.shelf.reach(place)?;
        let key = self.0.shelf.key(place);
        if !matches!(self.0.shelf.kept.lock().unwrap().get(&key), Some(Kept::Sealed(_))) {
            let absent = Error::new(Code::NotFound, "there is no such archive");
            return Err(absent.of_kind(Kind::ArchiveMissing));
        }
        self.0.shelf.verify.act().await
    }

    async fn remove(
        &self,
        place: &ArchivePlace,
        _: &dyn Reporter,
    ) -> Result<TeardownReport, Error> {
        self.0.note(format!("remove {}", place.id));
        self.0.shelf.reach(place)?;
        let act = self.0.shelf.remove.next().unwrap_or(Act::Well);
        let resource = Resource { kind: "directory".into(), id: folder(place.id.as_str()) };
        if matches!(act, Act::Refuse) {
            let (outcome, reason) =
                (TeardownOutcome::Failed, Some("it is somebody else's".to_owned()));
            let line = TeardownLine { resource: resource.clone(), outcome, reason };
            return Ok(TeardownReport {
                lines: vec![line],
                leftovers: vec![resource],
                untouched: true,
            });
        }
        Scripted::act(act).await?;
        let key = self.0.shelf.key(place);
        let was = self.0.shelf.kept.lock().unwrap().remove(&key);
        let outcome =
            if was.is_some() { TeardownOutcome::Removed } else { TeardownOutcome::Absent };
        Ok(TeardownReport {
            lines: vec![TeardownLine { resource, outcome, reason: None }],
            leftovers: Vec::new(),
            untouched: false,
        })
    }

    async fn entries(&self, _: &ArchivePlace, _: &ArchiveFacts) -> Result<Vec<TreeEntry>, Error> {
        Ok(Vec::new())
    }

    async fn copy(
        &self,
        from: &ArchivePlace,
        to: &ArchivePlace,
        manifest: &ArchiveManifest,
        _: &dyn Reporter,
    ) -> Result<Arrived, Error> {
        self.0.note(format!("copy {} from {} to {}", from.id, from.host, to.host));
        let key = self.0.shelf.key(to);
        self.0.shelf.kept.lock().unwrap().insert(key.clone(), Kept::Part);
        self.0.shelf.copy.act().await?;
        let identity = identity(&key.0);
        self.0.shelf.kept.lock().unwrap().insert(key, Kept::Sealed(Box::new(manifest.clone())));
        self.0.note(format!("sealed {} on {}", to.id, to.host));
        self.0.shelf.copied.act().await?;
        Ok(Arrived { path: folder(to.id.as_str()), identity, archive: facts() })
    }

    async fn export(
        &self,
        _: &ArchivePlace,
        manifest: &ArchiveManifest,
    ) -> Result<ByteStream, Error> {
        let mut told = vec![Ok(format!("{}\n", serde_json::to_string(manifest).unwrap()).into())];
        told.extend(self.0.shelf.pieces.get());
        let told = stream::iter(told);
        let for_ever = self.0.shelf.exports_for_ever.get();
        Ok(if for_ever { told.chain(stream::pending()).boxed() } else { told.boxed() })
    }

    async fn open_export(
        &self,
        source: ByteStream,
    ) -> Result<(ArchiveManifest, ByteStream), Error> {
        let text = source.try_concat().await?;
        let (manifest, content) = match text.iter().position(|byte| *byte == b'\n') {
            Some(end) => (&text[..end], text[end + 1..].to_vec()),
            None => (&text[..], Vec::new()),
        };
        let manifest = serde_json::from_slice(manifest).unwrap();
        Ok((manifest, stream::iter([Ok(content)]).boxed()))
    }

    async fn import(
        &self,
        to: &ArchivePlace,
        manifest: &ArchiveManifest,
        content: ByteStream,
        _: &dyn Reporter,
    ) -> Result<Arrived, Error> {
        self.0.note(format!("import {} to {}", to.id, to.host));
        self.0.shelf.imported.set(content.try_concat().await?);
        let key = self.0.shelf.key(to);
        let identity = identity(&key.0);
        self.0.shelf.kept.lock().unwrap().insert(key.clone(), Kept::Part);
        self.0.shelf.import.act().await?;
        self.0.shelf.kept.lock().unwrap().insert(key, Kept::Sealed(Box::new(manifest.clone())));
        self.0.note(format!("sealed {} on {}", to.id, to.host));
        self.0.shelf.copied.act().await?;
        let archive = manifest.snapshot.archive.clone();
        Ok(Arrived { path: folder(to.id.as_str()), identity, archive })
    }
}
