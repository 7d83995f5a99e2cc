//! A snapshot from a file, from this installation or another.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio_util::sync::CancellationToken;

use crate::domain::archive::{ArchivePlace, Arrived, ByteStream, SnapshotArchives};
use crate::domain::error::{Code, Error};
use crate::domain::event::{EventKind, Update};
use crate::domain::extension::ExtensionError;
use crate::domain::name::{HostName, SnapshotId, check_name};
use crate::domain::operation::{CancelOutcome, Operation, OperationKind};
use crate::domain::profile::Profile;
use crate::domain::request::{SnapshotImportRequest, SnapshotStarted};
use crate::domain::snapshot::{ArchiveManifest, SnapshotKind, SnapshotRecord, SnapshotState};
use crate::manager::SandboxManager;
use crate::manager::archives::{CLEAR_LIMIT, archives_of};
use crate::manager::copy::CARRY_STEPS;
use crate::manager::record::running;
use crate::manager::reporter::JobReporter;
use crate::store::Held;

/// Tries to find a random id that nothing has.
const ID_TRIES: u32 = 16;

impl SandboxManager {
    /// Starts to take a snapshot from a file's bytes.
    ///
    /// Errors: `invalid_input` for what is no export, or has a recipe that asks for more than the catalogue's; `conflict`
    /// for a name that is taken.
    pub async fn import_snapshot(
        &self,
        request: &SnapshotImportRequest,
        source: ByteStream,
    ) -> Result<SnapshotStarted, Error> {
        if let Some(name) = &request.name {
            check_name(name)?;
        }
        let host = self.open_host(&request.host).await?;
        let reader =
            self.parts.extensions.values().find(|extension| extension.archives().is_some());
        let reader =
            reader.ok_or_else(|| Error::new(Code::Unsupported, "this build keeps no snapshots"))?;
        let opened = archives_of(reader.as_ref())?.open_export(source).await;
        let (manifest, archive) = opened.map_err(|error| error.fault)?;
        archives_of(self.extension(&manifest.snapshot.extension)?.as_ref())?;
        self.trust(&manifest.recipe)?;
        self.parts.recipes.put(&manifest.recipe).await?;
        let draft = self.draft_import(request, &manifest, &host).await?;
        let (snapshot, operation, held) = self.write_import_ahead(draft).await?;
        let manifest = ArchiveManifest {
            id: snapshot.id.clone(),
            owner: snapshot.owner.clone(),
            ..self.manifest_of(&snapshot, &host).await?
        };
        self.run_held(
            operation.clone(),
            held,
            Some(host),
            move |manager, operation, cancel| async move {
                manager.import_held(&operation, &manifest, archive, &cancel).await
            },
        );
        Ok(SnapshotStarted { operation: Some(operation.id), snapshot })
    }

    /// A recipe from outside may not ask for more than the catalogue's of its name: what it allows and where it puts things
    /// is the operator's to say.
    fn trust(&self, recipe: &Profile) -> Result<(), Error> {
        let known = self.parts.catalogue.recipe(recipe.id.as_str()).ok();
        if known.is_some_and(|known| known.hash() == recipe.hash()) {
            return Ok(());
        }
        let more = recipe.widens(known);
        if more.is_empty() {
            return Ok(());
        }
        let message = format!(
            "the snapshot's recipe, {} {}, {}, and the catalogue's does not",
            recipe.id,
            recipe.version,
            more.join(", ")
        );
        Err(Error::invalid_input("file", message)
            .hint("look at the recipe in the file's manifest.json; if you want it, make it a profile of yours first")
            .detail("kind", "recipe"))
    }

    /// The record, as far as no host has been asked.
    async fn draft_import(
        &self,
        request: &SnapshotImportRequest,
        manifest: &ArchiveManifest,
        host: &HostName,
    ) -> Result<SnapshotRecord, Error> {
        let owners = self.parts.installation.owners().await?;
        let ours = owners.contains(&manifest.owner);
        let owner = match owners.into_iter().next() {
            Some(first) if !ours => first,
            Some(_) => manifest.owner.clone(),
            None => return Err(Error::internal("the installation has no id")),
        };
        let now = self.now();
        let from = &manifest.snapshot;
        let claim = self.weigh_claim(manifest, ours).await?;
        let fresh = claim.refused.is_some();
        Ok(SnapshotRecord {
            id: if fresh {
                SnapshotId::from_random((self.parts.dice)())
            } else {
                manifest.id.clone()
            },
            name: request.name.clone().or_else(|| from.name.clone()),
            kind: SnapshotKind::User,
            host: host.clone(),
            host_identity: None,
            path: None,
            state: SnapshotState::Creating,
            message: claim
                .refused
                .map(|why| format!("it has an id of its own here: {} is not kept, {why}", from.id)),
            failure: None,
            unremoved: false,
            created_at: from.created_at.min(now),
            imported_at: Some(now),
            expires_at: None,
            // Another installation's ids mean nothing here.
            parent_snapshot: from.parent_snapshot.clone().filter(|_| ours),
            patch_level: if ours { from.patch_level } else { 0 },
            next_patch_sequence: claim.next_patch_sequence,
            replicas: Vec::new(),
            copying_to: None,
            verified_at: None,
            damage: Vec::new(),
            operation: None,
            actor: self.actor(),
            owner,
            revision: claim.revision,
            pending: Vec::new(),
            ..from.clone()
        })
    }

    /// Writes the record before anything is done on the host.
    async fn write_import_ahead(
        &self,
        mut draft: SnapshotRecord,
    ) -> Result<(SnapshotRecord, Operation, Box<dyn Held>), Error> {
        for _ in 0..ID_TRIES {
            let fresh = SnapshotId::from_random((self.parts.dice)());
            let Some(held) = self.parts.locks.try_lock_snapshot(&draft.id).await? else {
                renew(&mut draft, fresh);
                continue;
            };
            let operation = self.new_snapshot_operation(OperationKind::Import, &draft.id);
            draft.operation = Some(running(&operation));
            self.parts.operations.put(operation.clone()).await?;
            match self.parts.snapshots.insert(draft.clone()).await {
                Ok(record) => {
                    self.jobs.publish(Update::Snapshots);
                    return Ok((record, operation, held));
                }
                Err(fault) => {
                    let told = Error::new(fault.code.clone(), fault.message.clone());
                    self.end_operation(operation, Err(told)).await;
                    match fault.details["field"].as_str() {
                        Some("id") => renew(&mut draft, fresh),
                        Some("name") => return Err(fault.hint("give it another one with --name")),
                        _ => return Err(fault),
                    }
                }
            }
        }
        Err(Error::internal("no free snapshot id was found"))
    }

    async fn import_held(
        &self,
        operation: &Operation,
        manifest: &ArchiveManifest,
        archive: ByteStream,
        cancel: &CancellationToken,
    ) -> Result<(), Error> {
        let reporter = JobReporter::new(&self.jobs, operation);
        reporter.announce(CARRY_STEPS, 0);
        let record = &manifest.snapshot;
        let begun = AtomicBool::new(false);
        let work = async {
            let extension = self.extension(&record.extension)?;
            let archives = archives_of(extension.as_ref())?;
            let roots = self.roots_for_new(&record.host).await?;
            let place = ArchivePlace { roots, ..self.archive_place(record, &record.host).await? };
            if let Some(arrived) =
                self.imported_before(manifest, archives, &place, &reporter).await?
            {
                return Ok(arrived);
            }
            begun.store(true, Ordering::Relaxed);
            archives.import(&place, manifest, archive, &reporter).await
        };
        // Boxed: it is large, and waits for long.
        let work = Box::pin(self.learning_roots(&record.host, &reporter, Box::pin(work)));
        match self.or_called_off(operation, cancel, work).await {
            Ok(arrived) => self.write_imported(record, arrived).await,
            // What is there was there before.
            Err(error) if error.untouched || !begun.into_inner() => {
                self.end_import(record, &reporter, &error.fault, true).await?;
                Err(CancelOutcome::Undone.noted_on(error.fault))
            }
            Err(error) => self.clear_import(record, &reporter, error).await,
        }
    }

    /// The archive that an import is to bring, where the host has it already, sealed and sound: whoever lost his records lists
    /// it again.
    ///
    /// Errors: `conflict` for anything else that is there.
    async fn imported_before(
        &self,
        manifest: &ArchiveManifest,
        archives: &dyn SnapshotArchives,
        place: &ArchivePlace,
        reporter: &JobReporter,
    ) -> Result<Option<Arrived>, ExtensionError> {
        let record = &manifest.snapshot;
        let seen = archives.look(place).await?;
        let Some(path) = &seen.path else { return Ok(None) };
        let beside = seen.manifest.as_ref();
        if beside.is_some_and(|beside| {
            beside.owner == manifest.owner && beside.recipe.hash() == manifest.recipe.hash()
        }) && let Some(arrived) =
            self.found_sound(record, archives, place, &seen, reporter).await?
        {
            return Ok(Some(arrived));
        }
        let message = format!(
            "{} has something of snapshot {} already, and not what is in the file",
            place.host, record.id
        );
        Err(Error::new(Code::Conflict, message)
            .hint(format!("nothing was touched; look at {path} there, and move it away, or import to another host"))
            .into())
    }

    async fn write_imported(&self, record: &SnapshotRecord, arrived: Arrived) -> Result<(), Error> {
        let data = serde_json::json!({"bytes": arrived.archive.bytes, "host": record.host, "reason": "imported"});
        let now = self.now();
        self.transition_snapshot(
            &record.id,
            None,
            vec![(EventKind::SnapshotReady, data)],
            move |record| {
                record.state = SnapshotState::Ready;
                record.path = Some(arrived.path);
                record.host_identity = Some(arrived.identity);
                record.archive = arrived.archive;
                record.verified_at = Some(now);
                record.operation = None;
                Ok(())
            },
        )
        .await
        .map(|_| ())
    }

    /// After an import that came to nothing, nothing is left: no archive and no record. Where the host cannot say so, the
    /// record stays, as failed. One that was whole before it was called off is listed.
    async fn clear_import(
        &self,
        record: &SnapshotRecord,
        reporter: &JobReporter,
        error: ExtensionError,
    ) -> Result<(), Error> {
        let clearing =
            tokio::time::timeout(CLEAR_LIMIT, self.clear_remains(record, &record.host, reporter))
                .await;
        let clean = match clearing {
            Ok(Ok(Some(arrived))) => return self.write_imported(record, arrived).await,
            Ok(Ok(None)) => true,
            Ok(Err(_)) | Err(_) => false,
        };
        let fault = error.fault;
        self.end_import(record, reporter, &fault, clean).await?;
        if clean {
            return Err(CancelOutcome::Undone.noted_on(fault));
        }
        let host = &record.host;
        let hint = format!(
            "something of it may still be on {host}; `sandboxer recover` removes it when that host is back"
        );
        Err(fault.hint(hint).detail("unremoved", true))
    }

    /// Tells why an import came to nothing, and takes its record out if it left nothing on the host.
    async fn end_import(
        &self,
        record: &SnapshotRecord,
        reporter: &JobReporter,
        fault: &Error,
        clean: bool,
    ) -> Result<(), Error> {
        let message = fault.message.clone();
        let data =
            serde_json::json!({"code": fault.code, "step": reporter.stage(), "message": message});
        let news = vec![(EventKind::SnapshotFailed, data)];
        let failed = self
            .transition_snapshot(&record.id, None, news, move |record| {
                record.state = SnapshotState::Failed;
                record.message = Some(message);
                record.operation = None;
                record.unremoved = !clean;
                Ok(())
            })
            .await?;
        // What the log could not be told is told by the record, for a while.
        if clean && self.tell(&failed.pending).await.is_ok() {
            self.parts.snapshots.remove(&record.id, None).await?;
            self.jobs.publish(Update::Snapshots);
        }
        Ok(())
    }
}

/// Gives it another id: somebody has this one by now. Patches and their numbers are that one's.
fn renew(draft: &mut SnapshotRecord, id: SnapshotId) {
    (draft.next_patch_sequence, draft.revision) = (1, 0);
    draft.message.get_or_insert_with(|| {
        format!("it has an id of its own here: {} was taken meanwhile", draft.id)
    });
    draft.id = id;
}
