//! Restore: a new sandbox from a snapshot, under the rules of a create (semantics 2 and 6).

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::domain::archive::ArchivePlace;
use crate::domain::error::{Code, Error};
use crate::domain::extension::{
    Capability, ExtensionError, ProvisionRequest, Report, Reporter as _, RestoreSource, Restored,
};
use crate::domain::name::{HostName, SnapshotId, check_name};
use crate::domain::operation::Operation;
use crate::domain::profile::{Profile, Seconds};
use crate::domain::request::{CreateRequest, RestoreRequest, Started};
use crate::domain::sandbox::SandboxRecord;
use crate::domain::snapshot::{ArchiveFacts, SnapshotRecord, SnapshotState};
use crate::failpoint;
use crate::manager::SandboxManager;
use crate::manager::archives::{archives_of, facts_on};
use crate::manager::create::{Ahead, Resolved};
use crate::manager::establish::{Establishment, FromSnapshot};
use crate::manager::reporter::JobReporter;
use crate::store::Held;

/// How long a restore waits for whoever holds its snapshot: a copy of it may take that long.
const LOCK_WAIT: Duration = Duration::from_mins(30);

/// How often it looks.
const LOCK_LOOK: Duration = Duration::from_millis(300);

/// An archive on the host that it is wanted on.
struct Brought {
    of: SnapshotRecord,
    place: ArchivePlace,
    archive: ArchiveFacts,
    /// The host that the record has it on: another name of the same, maybe.
    listed: HostName,
}

impl SandboxManager {
    /// Starts a new sandbox from a snapshot and returns at once.
    ///
    /// Errors: `conflict` for a snapshot that is not ready, and whatever a create refuses.
    pub async fn restore(&self, request: &RestoreRequest) -> Result<Started, Error> {
        let snapshot = self.exact_snapshot(&request.snapshot, request.revision).await?;
        if let Err(fault) = check_ready(&snapshot) {
            return Err(self.busy_or(&snapshot.id, fault).await);
        }
        let extension = self.extension(&snapshot.extension)?;
        extension.ensure(&Capability::Snapshots, "restore snapshots")?;
        if let Some(name) = &request.name {
            check_name(name)?;
        }
        let profile = self.snapshot_recipe(&snapshot).await?;
        let resolved = Resolved {
            hash: profile.hash(),
            inputs: snapshot.inputs.clone(),
            id: None,
            ttl_s: profile.parse_ttl(request.ttl.as_deref())?.map(Seconds::get),
            profile,
        };
        let quote = self.quote(&resolved).await?;
        let host = request.host.as_deref().unwrap_or(snapshot.host.as_str());
        let (route, compose_host) = self.place(&resolved.profile, Some(host), false).await?.on?;
        if !snapshot.hosts().any(|known| known.same(route.host.as_str())) {
            // Before it is brought there for nothing.
            extension.suits(&resolved.profile, &snapshot.archive, &route.host).await?;
        }
        if let Err(fault) = self.archive().await {
            tracing::warn!(%fault, "the history could not be written");
        }
        self.parts.recipes.put(&resolved.profile).await?;
        // What the source was protected from, its copy need not be.
        let labels = snapshot.labels.iter().filter(|(key, _)| key.as_str() != "protect");
        let asked = CreateRequest {
            name: request.name.clone(),
            labels: labels
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect::<BTreeMap<_, _>>(),
            ..CreateRequest::default()
        };
        let ahead = Ahead {
            request: &asked,
            resolved: &resolved,
            route,
            quote,
            request_hash: None,
            base: Some(&snapshot),
        };
        let (record, operation, held) = self.write_ahead(ahead).await?;
        failpoint::reached("restore.requested");
        let note = self.recipe_note(&snapshot, &resolved.profile);
        let draft = self.draft(&resolved, &asked, record.host.clone());
        let work = Establishment {
            provision: ProvisionRequest {
                id: record.id.clone(),
                created_at: record.created_at,
                allow_large: true,
                compose_host,
                ..draft
            },
            ready_timeout: resolved.profile.ready_timeout.duration(),
            ttl_s: resolved.ttl_s,
            keep_failed: false,
            recreate: false,
            from: Some(FromSnapshot {
                id: snapshot.id,
                strict: request.strict,
                require_patches: request.require_patches,
                note,
            }),
        };
        self.start_establishment(operation.clone(), work, held);
        Ok(Started { operation: Some(operation.id), sandbox: record })
    }

    /// What the record says of a recipe that the catalogue has otherwise by now.
    fn recipe_note(&self, snapshot: &SnapshotRecord, recipe: &Profile) -> Option<String> {
        let recorded = format!("{} {}", recipe.id, recipe.version);
        match self.parts.catalogue.recipe(recipe.id.as_str()) {
            Ok(today) if today.hash() == snapshot.profile.hash => None,
            Ok(today) => Some(format!(
                "made with the recipe that was recorded, {recorded}; the catalogue's is {} and another one by now",
                today.version
            )),
            Err(_) => Some(format!(
                "made with the recipe that was recorded, {recorded}; the catalogue has it no more"
            )),
        }
    }

    /// What a restored sandbox starts again from; `None` for one that was made from its inputs.
    ///
    /// Errors: `not_found` when the snapshot is gone, `conflict` when it is not ready.
    pub(super) async fn base_of(
        &self,
        record: &SandboxRecord,
    ) -> Result<Option<FromSnapshot>, Error> {
        let Some(id) = &record.based_on_snapshot else { return Ok(None) };
        let snapshot = self.parts.snapshots.get(id).await?.ok_or_else(|| gone(record, id))?;
        check_ready(&snapshot)?;
        let note = self.recipe_note(&snapshot, &self.snapshot_recipe(&snapshot).await?);
        Ok(Some(FromSnapshot { id: id.clone(), strict: false, require_patches: false, note }))
    }

    /// Makes the sandbox from the archive; brings that to its host first, where it is not there.
    pub(super) async fn bring_back(
        &self,
        operation: &Operation,
        provision: &ProvisionRequest,
        from: &FromSnapshot,
        cancel: &CancellationToken,
        reporter: &JobReporter,
    ) -> Result<Restored, ExtensionError> {
        // Whoever deletes it looks for sandboxes that are made from it after having written `deleting`; this one's record
        // is written.
        let snapshot = self.exact_snapshot(from.id.as_str(), None).await?;
        check_ready(&snapshot)?;
        let host = &provision.host;
        let Brought { of, place, archive, listed } =
            self.brought_to(operation, snapshot, host, cancel, reporter).await?;
        let extension = self.extension(&of.extension)?;
        let source = RestoreSource { place, archive, strict: from.strict };
        let work = extension.restore_from_snapshot(provision, &source, reporter);
        let work = self.learning_roots(host, reporter, work);
        let restored = self.or_cancelled(&provision.id, cancel, work).await;
        if let Err(error) = &restored {
            self.note_damage(&of.id, &listed, &error.fault).await;
        }
        restored
    }

    /// Reads the archive that a sandbox is to be made from again, whole, on its host: before what is there is removed for it.
    ///
    /// Errors: `operation_failed` and `not_found` for an archive that is altered or gone, with what was not touched.
    pub(super) async fn prove_base(
        &self,
        operation: &Operation,
        sandbox: &SandboxRecord,
        from: &FromSnapshot,
        cancel: &CancellationToken,
        reporter: &JobReporter,
    ) -> Result<(), Error> {
        let host = &sandbox.host;
        let snapshot = self.exact_snapshot(from.id.as_str(), None).await?;
        check_ready(&snapshot)?;
        let Brought { of, place, archive, listed } =
            self.brought_to(operation, snapshot, host, cancel, reporter).await?;
        let extension = self.extension(&of.extension)?;
        let work = archives_of(extension.as_ref())?.verify(&place, &archive, reporter);
        let Err(error) = self.or_cancelled(&sandbox.id, cancel, work).await else { return Ok(()) };
        self.note_damage(&of.id, &listed, &error.fault).await;
        let hint = format!(
            "nothing of the sandbox was touched; `sandboxer snapshots verify {}` reads every copy",
            of.id
        );
        Err(error.fault.hint(hint))
    }
}

impl SandboxManager {
    /// A snapshot's archive on this host: it is copied there, if none is. The copy stays, for the next one and for a recreate.
    /// Where the host is another name of one that has it, that one is used.
    async fn brought_to(
        &self,
        operation: &Operation,
        snapshot: SnapshotRecord,
        host: &HostName,
        cancel: &CancellationToken,
        reporter: &JobReporter,
    ) -> Result<Brought, Error> {
        let is_there =
            |snapshot: &SnapshotRecord| snapshot.hosts().any(|known| known.same(host.as_str()));
        if is_there(&snapshot) {
            return self.listed_on(snapshot, host).await;
        }
        // Whoever holds it may be copying it to this very host.
        let turn =
            self.or_called_off(operation, cancel, self.turn_on(&snapshot.id, reporter)).await;
        let _held = turn.map_err(|error| error.fault)?;
        let snapshot = self.exact_snapshot(snapshot.id.as_str(), None).await?;
        check_ready(&snapshot)?;
        if is_there(&snapshot) {
            return self.listed_on(snapshot, host).await;
        }
        // Boxed, as what follows: it is large, and a part of every restore.
        let asked =
            self.or_called_off(operation, cancel, Box::pin(self.other_name(&snapshot, host))).await;
        if let Some((listed, place)) = asked.map_err(|error| error.fault)? {
            return Ok(Brought {
                archive: facts_on(&snapshot, &listed),
                of: snapshot,
                place,
                listed,
            });
        }
        let copied = Box::pin(self.replicate(operation, &snapshot, host, cancel, reporter)).await?;
        failpoint::reached("restore.copied");
        self.listed_on(copied, host).await
    }

    async fn listed_on(&self, snapshot: SnapshotRecord, host: &HostName) -> Result<Brought, Error> {
        let place = self.archive_place(&snapshot, host).await?;
        Ok(Brought {
            archive: facts_on(&snapshot, host),
            of: snapshot,
            place,
            listed: host.clone(),
        })
    }

    /// A snapshot's lock, once nobody else has it.
    ///
    /// Errors: `busy` after [`LOCK_WAIT`].
    async fn turn_on(
        &self,
        id: &SnapshotId,
        reporter: &JobReporter,
    ) -> Result<Box<dyn Held>, ExtensionError> {
        let until = Instant::now() + LOCK_WAIT;
        let mut told = false;
        loop {
            if let Some(held) = self.parts.locks.try_lock_snapshot(id).await? {
                return Ok(held);
            }
            if Instant::now() >= until {
                return Err(self.snapshot_busy(id).await.into());
            }
            if !std::mem::replace(&mut told, true) {
                let message =
                    Some(format!("waits for its turn: {}", self.snapshot_busy(id).await.message));
                reporter.report(Report { stage: "wait", message, ..Report::default() });
            }
            tokio::time::sleep(LOCK_LOOK).await;
        }
    }
}

fn check_ready(snapshot: &SnapshotRecord) -> Result<(), Error> {
    if snapshot.state == SnapshotState::Ready {
        return Ok(());
    }
    Err(Error::new(Code::Conflict, format!("snapshot {} is {}", snapshot.title(), snapshot.state))
        .hint("only a snapshot that is ready can be restored")
        .detail("state", snapshot.state.as_str()))
}

fn gone(record: &SandboxRecord, id: &SnapshotId) -> Error {
    Error::new(
        Code::NotFound,
        format!("sandbox {} is based on snapshot {id}, which is not there any more", record.id),
    )
    .hint("nothing was touched; take a snapshot of the sandbox as it is, and restore that")
    .detail("snapshot", id.as_str())
}
