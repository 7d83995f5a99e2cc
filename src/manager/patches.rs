//! The patches of a snapshot: adding and removing them, and which sandbox has which (semantics 7). Running them is
//! `patch_pass`'s.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::domain::error::{Code, Error, Kind};
use crate::domain::event::{EventKind, PendingEvent, Update, derived_event_id};
use crate::domain::extension::{Capability, SandboxExtension};
use crate::domain::name::{PatchId, SnapshotId};
use crate::domain::patch::{
    AppliedPatch, MAX_SEQUENCE, Patch, PatchState, PatchStrategy, RUN_IN_WORKSPACE, check, find,
    owed,
};
use crate::domain::request::{PatchRequest, PatchStanding, PatchStatus};
use crate::domain::sandbox::SandboxRecord;
use crate::domain::snapshot::{SnapshotRecord, SnapshotState};
use crate::domain::text::nearest;
use crate::failpoint;
use crate::manager::SandboxManager;
use crate::store::Held;

/// Tries to find a random id that no patch has.
const ID_TRIES: u32 = 16;

/// How long somebody who changes a snapshot's patches waits for another who does.
const LOCK_WAIT: Duration = Duration::from_secs(3);

/// How often it is looked at.
const LOCK_LOOK: Duration = Duration::from_millis(50);

impl SandboxManager {
    /// Adds a patch to a snapshot; runs nothing.
    ///
    /// Errors: `invalid_input` with the field, `conflict` for a snapshot that is not ready or an undo snapshot.
    pub async fn add_patch(&self, request: &PatchRequest) -> Result<Patch, Error> {
        let run_in = request.run_in.as_deref().unwrap_or(RUN_IN_WORKSPACE);
        check(&request.script, run_in, request.description.as_deref())?;
        let snapshot = self.exact_snapshot(&request.snapshot, None).await?;
        let extension = self.extension(&snapshot.extension)?;
        extension.ensure(&Capability::Patches, "apply patches")?;
        if let Err(fault) = patchable(&snapshot) {
            return Err(self.busy_or(&snapshot.id, fault).await);
        }
        if run_in != RUN_IN_WORKSPACE {
            self.ensure_service(extension.as_ref(), &snapshot, run_in).await?;
        }
        let _held = self.wait_for_snapshot(&snapshot.id).await?;
        // The number first: a process that dies before the patch is written has used it up, and nobody gets it again.
        let snapshot = self
            .transition_snapshot(&snapshot.id, None, Vec::new(), |record| {
                patchable(record)?;
                record.next_patch_sequence = number_after(record)?;
                Ok(())
            })
            .await?;
        failpoint::reached("patch.numbered");
        let patch = self.insert_patch(&snapshot, request, run_in).await?;
        let told = self.told(patch.pending.clone()).await;
        if let Err(fault) = self.parts.patches.told(&patch.id, &told).await {
            tracing::warn!(patch = %patch.id, %fault, "its event stays pending");
        }
        self.note_owed(&snapshot.id).await;
        self.jobs.publish(Update::Snapshots);
        Ok(Patch { pending: Vec::new(), ..patch })
    }

    /// Refuses a service that no sandbox of this snapshot can have, where it is known which it has.
    async fn ensure_service(
        &self,
        extension: &dyn SandboxExtension,
        snapshot: &SnapshotRecord,
        service: &str,
    ) -> Result<(), Error> {
        if snapshot.archive.images.is_empty() {
            // No host is asked for a recipe that is not here: then it is not known.
            let recipe = self.recipe_here(&snapshot.profile).await?;
            if recipe.is_none_or(|recipe| extension.may_have_services(&recipe)) {
                return Ok(());
            }
            let profile = &snapshot.profile.id;
            let message = format!(
                "snapshot {} has no services: {profile} is a workspace and nothing else",
                snapshot.title()
            );
            return Err(Error::invalid_input("run_in", message)
                .hint("without --run-in a patch runs in the workspace"));
        }
        let mut known: BTreeSet<String> = snapshot.archive.images.keys().cloned().collect();
        // A service may have had no container when the snapshot was taken.
        let source = self.parts.sandboxes.get(&snapshot.sandbox_id).await?;
        let based = self.based_on(&snapshot.id).await?;
        let seen = source.iter().chain(&based).flat_map(|record| &record.services);
        known.extend(seen.map(|service| service.name.clone()));
        if known.contains(service) {
            return Ok(());
        }
        let names: Vec<&str> = known.iter().map(String::as_str).collect();
        let message = format!("snapshot {} has no service {service}", snapshot.title());
        let hint = match nearest(service, names.iter().copied()) {
            Some(near) => format!("did you mean {near}? it has {}", names.join(", ")),
            None => format!(
                "it has {}; without --run-in a patch runs in the workspace",
                names.join(", ")
            ),
        };
        Err(Error::invalid_input("run_in", message).hint(hint))
    }

    async fn insert_patch(
        &self,
        snapshot: &SnapshotRecord,
        request: &PatchRequest,
        run_in: &str,
    ) -> Result<Patch, Error> {
        let (now, actor) = (self.now(), self.actor());
        let sequence = snapshot.next_patch_sequence - 1;
        for _ in 0..ID_TRIES {
            let id = PatchId::from_random((self.parts.dice)());
            let data = serde_json::json!({
                "patch_id": id, "snapshot_id": snapshot.id, "snapshot_name": snapshot.name, "sequence": sequence,
                "run_in": run_in, "description": request.description,
            });
            let added = PendingEvent {
                id: derived_event_id(id.as_str(), 1, &EventKind::PatchAdded),
                time: now,
                kind: EventKind::PatchAdded,
                sandbox_id: Some(snapshot.sandbox_id.clone()),
                actor: actor.clone(),
                data,
            };
            let patch = Patch {
                id,
                snapshot_id: snapshot.id.clone(),
                sequence,
                script: request.script.clone(),
                description: request.description.clone(),
                run_in: run_in.to_owned(),
                strategy: PatchStrategy::OnWake,
                created_at: now,
                actor: actor.clone(),
                revision: 0,
                pending: vec![added],
            };
            match self.parts.patches.insert(patch).await {
                Err(fault) if fault.code == Code::Conflict && fault.details["field"] == "id" => {}
                outcome => return outcome,
            }
        }
        Err(Error::internal("no free patch id was found"))
    }

    /// Takes a patch away from a snapshot. Sandboxes that have it keep it.
    ///
    /// Errors: `not_found` when the snapshot has no such patch, or not any more.
    pub async fn remove_patch(&self, snapshot: &str, patch: &str) -> Result<Patch, Error> {
        let snapshot = self.exact_snapshot(snapshot, None).await?;
        let _held = self.wait_for_snapshot(&snapshot.id).await?;
        let mine = self.patches_of(&snapshot.id).await?;
        let missing = || no_such_patch(&snapshot, &mine, patch);
        let found = find(&mine, patch).ok_or_else(missing)?;
        let gone = self.take_away(found).await?.ok_or_else(missing)?;
        self.note_owed(&snapshot.id).await;
        Ok(Patch { pending: Vec::new(), ..gone })
    }

    /// Takes away all patches of a snapshot that goes.
    pub(super) async fn remove_patches_of(&self, snapshot: &SnapshotId) -> Result<(), Error> {
        let mine = self.patches_of(snapshot).await?;
        for patch in &mine {
            self.take_away(patch).await?;
        }
        if !mine.is_empty() {
            self.note_owed(snapshot).await;
        }
        Ok(())
    }

    /// Takes one away and tells of it; `None` if it is not there any more. The snapshot's lock is the caller's.
    async fn take_away(&self, patch: &Patch) -> Result<Option<Patch>, Error> {
        let told = self.told(patch.pending.clone()).await;
        let Some(gone) = self.parts.patches.remove(&patch.id).await? else { return Ok(None) };
        let data = serde_json::json!({
            "patch_id": gone.id, "sequence": gone.sequence, "run_in": gone.run_in, "description": gone.description,
        });
        // What it caused before comes before what this causes; where the log could not be told, the snapshot carries it on.
        let untold: Vec<PendingEvent> =
            gone.pending.iter().filter(|event| !told.contains(&event.id)).cloned().collect();
        let carry_on = |snapshot: &mut SnapshotRecord| {
            snapshot.pending.extend(untold);
            Ok(())
        };
        self.transition_snapshot(
            &gone.snapshot_id,
            None,
            vec![(EventKind::PatchRemoved, data)],
            carry_on,
        )
        .await?;
        Ok(Some(gone))
    }

    /// Which sandboxes have each patch of a snapshot, will get it, or failed.
    pub async fn patch_status(&self, snapshot: &str) -> Result<Vec<PatchStatus>, Error> {
        let snapshot = self.exact_snapshot(snapshot, None).await?;
        let patches = self.patches_of(&snapshot.id).await?;
        let sandboxes = self.based_on(&snapshot.id).await?;
        let standings = |patch: &Patch| {
            sandboxes.iter().map(|record| standing(record, &patches, patch)).collect()
        };
        Ok(patches
            .iter()
            .map(|patch| PatchStatus { sandboxes: standings(patch), patch: patch.clone() })
            .collect())
    }

    /// Compares the patches of a sandbox's snapshot with those that somebody was shown.
    ///
    /// Errors: `conflict` when they are others by now.
    pub(super) async fn ensure_patches_as_shown(
        &self,
        record: &SandboxRecord,
        shown: Option<&[PatchId]>,
    ) -> Result<(), Error> {
        let Some(shown) = shown else { return Ok(()) };
        let patches = match &record.based_on_snapshot {
            Some(base) => self.patches_of(base).await?,
            None => Vec::new(),
        };
        if patches.iter().map(|patch| &patch.id).eq(shown) {
            return Ok(());
        }
        let message =
            format!("the patches of sandbox {} changed since it was looked at", record.id);
        Err(Error::new(Code::Conflict, message)
            .of_kind(Kind::Stale)
            .hint("look again, then decide"))
    }

    /// A snapshot's patches, in their order.
    pub(super) async fn patches_of(&self, snapshot: &SnapshotId) -> Result<Vec<Patch>, Error> {
        let mut patches = self.parts.patches.list().await?;
        patches.retain(|patch| patch.snapshot_id == *snapshot);
        patches.sort_by_key(|patch| patch.sequence);
        Ok(patches)
    }

    /// The sandboxes that are based on a snapshot and are not over, oldest first.
    pub(super) async fn based_on(
        &self,
        snapshot: &SnapshotId,
    ) -> Result<Vec<SandboxRecord>, Error> {
        let records = self.parts.sandboxes.list().await?;
        let based = records
            .iter()
            .filter(|r| r.based_on_snapshot.as_ref() == Some(snapshot) && !r.state.is_over());
        Ok(based.map(|record| SandboxRecord::clone(record)).collect())
    }

    /// The snapshot's lock: changes of its patches take a moment, and wait for one another.
    async fn wait_for_snapshot(&self, id: &SnapshotId) -> Result<Box<dyn Held>, Error> {
        let until = tokio::time::Instant::now() + LOCK_WAIT;
        loop {
            match self.parts.locks.try_lock_snapshot(id).await? {
                Some(held) => return Ok(held),
                None if tokio::time::Instant::now() >= until => {
                    return Err(self.snapshot_busy(id).await);
                }
                None => tokio::time::sleep(LOCK_LOOK).await,
            }
        }
    }
}

/// Refuses what gets no patches: nothing is restored from it, or it is only there to take a removal back.
fn patchable(snapshot: &SnapshotRecord) -> Result<(), Error> {
    if snapshot.kind == crate::domain::snapshot::SnapshotKind::Undo {
        return Err(Error::new(Code::Conflict, format!("snapshot {} is an undo snapshot", snapshot.title()))
            .hint("patches go on snapshots that somebody took; `sandboxer undo` brings its sandbox back as it was"));
    }
    if snapshot.state == SnapshotState::Ready {
        return Ok(());
    }
    Err(Error::new(Code::Conflict, format!("snapshot {} is {}", snapshot.title(), snapshot.state))
        .hint("only a snapshot that is ready can get patches")
        .detail("state", snapshot.state.as_str()))
}

/// The number of the patch after the next one.
fn number_after(snapshot: &SnapshotRecord) -> Result<u64, Error> {
    match snapshot.next_patch_sequence.checked_add(1).filter(|after| *after <= MAX_SEQUENCE + 1) {
        Some(after) => Ok(after),
        None => Err(Error::new(
            Code::Conflict,
            format!(
                "snapshot {} has no number left for a patch; {MAX_SEQUENCE} is the last one",
                snapshot.title()
            ),
        )
        .hint("restore it and take a new snapshot, which begins with 1")),
    }
}

fn no_such_patch(snapshot: &SnapshotRecord, patches: &[Patch], reference: &str) -> Error {
    let shown: String = reference.chars().take(80).collect();
    let fault =
        Error::new(Code::NotFound, format!("snapshot {} has no patch {shown:?}", snapshot.title()));
    if patches.is_empty() {
        return fault.hint("it has no patches");
    }
    let there: Vec<String> =
        patches.iter().map(|patch| format!("{} ({})", patch.sequence, patch.id)).collect();
    fault.hint(format!("it has {}", there.join(", ")))
}

fn standing(record: &SandboxRecord, patches: &[Patch], patch: &Patch) -> PatchStanding {
    let run: Option<&AppliedPatch> =
        record.applied_patches.iter().find(|applied| applied.id == patch.id);
    PatchStanding {
        id: record.id.clone(),
        name: record.name.clone(),
        host: record.host.clone(),
        state: run.map_or(PatchState::Pending, |run| run.state.clone()),
        blocked: run.is_none() && owed(record, patches, false).blocked.is_some(),
        run: run.cloned(),
    }
}
