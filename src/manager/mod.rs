//! The verbs, over traits only: they decide what is legal, write the record before the host is touched, run the work as an
//! operation, and write down what came of it. [`SandboxManager`] has one line per verb; the verbs are free functions.

mod credits;
mod deps;
mod hosts;
mod hub;
mod journal;
mod operation;
mod patches;
mod sandboxes;
mod snapshots;
mod stale;
mod updates;
mod upkeep;

use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::stream::BoxStream;

use crate::domain::actor::Actor;
use crate::domain::adoption::{AdoptRequest, Adopted, ImportRequest};
use crate::domain::archive::ByteStream;
use crate::domain::credit::{Credits, GrantRequest, HistoryEntry};
use crate::domain::error::Error;
use crate::domain::event::Event;
use crate::domain::host_view::HostView;
use crate::domain::hub::{FlushReport, HubBacklog};
use crate::domain::lineage::{Lineage, SnapshotView};
use crate::domain::manifest::ExtensionManifest;
use crate::domain::name::{ExtensionId, OperationId};
use crate::domain::operation::Operation;
use crate::domain::output::{ExecOutput, Interactive, LogLine};
use crate::domain::patch::Patch;
use crate::domain::record::Record;
use crate::domain::request::{
    ApplyRequest, Check, CreateRequest, Decision, DestroyRequest, EventQuery, ExecRequest,
    ExtendRequest, Extended, ExtensionView, LabelRequest, ListQuery, LogsRequest, PatchRequest,
    PatchStatus, PruneItem, PruneRequest, Recovered, RecreateRequest, RestoreRequest, RolloutItem,
    RolloutRequest, ShellRequest, SleepRequest, SnapshotCopyRequest, SnapshotDeleteRequest,
    SnapshotDiff, SnapshotDiffRequest, SnapshotImportRequest, SnapshotQuery, SnapshotRequest,
    SnapshotStarted, Started,
};
use crate::domain::sandbox::SandboxRecord;
use crate::domain::stale::{
    PlanRequest, ReapPlan, ReapRequest, ReapStarted, StaleQuery, StaleReport,
};
use crate::domain::sweep::{SweepReport, SweepRequest};
use crate::domain::telemetry::HostSample;
use crate::domain::undo::UndoRequest;
use crate::domain::update::Update;
use crate::store::catalogue::{Catalogue, Entry};

use crate::manager::deps::{Deps, Shared};
pub(crate) use deps::LazyCatalogue;
pub use deps::{Dependencies, Hub, Settings};

/// The core: every verb, over traits only. Cheap to clone.
#[derive(Clone)]
pub struct SandboxManager {
    deps: Deps,
}

impl SandboxManager {
    /// A manager over these dependencies. Starts nothing.
    pub fn new(deps: Dependencies) -> Self {
        Self {
            deps: Shared::new(deps, |deps, host| upkeep::contact::host_reached(deps, host).boxed()),
        }
    }

    /// Actor of this process.
    pub fn actor(&self) -> Actor {
        self.deps.actor()
    }

    /// Profiles and extension manifests.
    pub fn catalogue(&self) -> &Catalogue {
        &self.deps.catalogue
    }

    /// Extensions as the catalogue has them, each with its place.
    pub fn extensions(&self) -> Vec<ExtensionView> {
        self.catalogue().extensions().iter().map(|entry| self.placed(entry)).collect()
    }

    /// An extension as the catalogue has it, with its place.
    pub fn extension(&self, id: &str) -> Result<ExtensionView, Error> {
        Ok(self.placed(self.catalogue().extension(id)?))
    }

    fn placed(&self, entry: &Entry<ExtensionManifest>) -> ExtensionView {
        let extension = self.deps.extensions.get(&ExtensionId::new(entry.id.as_str()));
        let place = extension.and_then(|extension| extension.place());
        ExtensionView { place, ..ExtensionView::from(entry) }
    }

    /// Rolls back what runs, ends followers, closes connections.
    pub async fn close(&self) {
        self.deps.jobs.close().await;
        self.deps.transports.close().await;
    }

    /// Sets and removes labels. What is as it should be already is nothing to do.
    pub async fn label(&self, request: LabelRequest) -> Result<SandboxRecord, Error> {
        sandboxes::label::label(&self.deps, request).await
    }

    /// Moves a sandbox's deadline.
    pub async fn extend(&self, request: &ExtendRequest) -> Result<Extended, Error> {
        sandboxes::extend::extend(&self.deps, request).await
    }

    /// Starts a removal and returns at once. One that is destroyed already is nothing to do.
    pub async fn destroy(&self, request: &DestroyRequest) -> Result<Started, Error> {
        sandboxes::destroy::destroy(&self.deps, request).await
    }

    /// Plan of a create; touches nothing.
    pub async fn plan_create(&self, request: &CreateRequest) -> Result<Decision, Error> {
        sandboxes::create::plan_create(&self.deps, request).await
    }

    /// Writes the record, starts the work, and returns at once.
    pub async fn create(&self, request: CreateRequest) -> Result<Started, Error> {
        sandboxes::create::create(&self.deps, request).await
    }

    /// Starts a recreate and returns at once: the same id, pinned profile and inputs.
    pub async fn recreate(&self, request: &RecreateRequest) -> Result<Started, Error> {
        sandboxes::recreate::recreate(&self.deps, request).await
    }

    /// Starts a new sandbox from a snapshot and returns at once.
    pub async fn restore(&self, request: &RestoreRequest) -> Result<Started, Error> {
        snapshots::restore::restore(&self.deps, request).await
    }

    /// Starts a snapshot and returns at once.
    pub async fn snapshot(&self, request: &SnapshotRequest) -> Result<SnapshotStarted, Error> {
        snapshots::create::take_snapshot(&self.deps, request).await
    }

    /// Snapshots with what hangs on them, oldest first. Undo snapshots and failed ones only with `all`.
    pub async fn snapshots(&self, query: &SnapshotQuery) -> Result<Vec<Arc<SnapshotView>>, Error> {
        snapshots::find::list_snapshots(&self.deps, query).await
    }

    /// The snapshot that a reference means, with what hangs on it.
    pub async fn snapshot_view(&self, reference: &str) -> Result<SnapshotView, Error> {
        snapshots::find::snapshot_view(&self.deps, reference).await
    }

    /// Lineage of a sandbox: its base, and the snapshots taken of it.
    pub async fn lineage(&self, id: &str) -> Result<Lineage, Error> {
        snapshots::find::lineage(&self.deps, id).await
    }

    /// Kept events that pass, in order.
    pub async fn events(&self, query: &EventQuery) -> Result<Vec<Event>, Error> {
        updates::read_events(&self.deps, query).await
    }

    /// Everything that happens from now on, in this process and in others.
    pub async fn subscribe(&self) -> Result<BoxStream<'static, Update>, Error> {
        updates::subscribe(&self.deps).await
    }

    /// Appends what dead processes left pending on records, and writes those of earlier versions anew.
    pub async fn settle(&self) -> Result<(), Error> {
        upkeep::flush::settle(&self.deps).await
    }

    /// [`Self::settle`] in the background. A starting dashboard or server calls it.
    pub fn settle_behind_start(&self) {
        let deps = self.deps.clone();
        self.deps.jobs.background(async move { upkeep::flush::settle_behind_start(&deps).await });
    }

    /// Delivers to the State Hub in the background. A dashboard, a server or a sweep calls it when it starts.
    pub fn deliver_in_background(&self) {
        let deps = self.deps.clone();
        self.deps.jobs.background(async move { hub::deliver::follow(&deps).await });
    }

    /// Gives the State Hub the one second that it has after a command which changed something, or `always`.
    pub async fn deliver_after_command(&self, always: bool) {
        hub::deliver::after_command(&self.deps, always).await;
    }

    /// Backlog of the State Hub; `None` where none is configured.
    pub async fn hub_backlog(&self) -> Result<Option<HubBacklog>, Error> {
        hub::backlog::backlog(&self.deps).await
    }

    /// Delivers what waits for the State Hub, now.
    pub async fn flush_events(&self) -> Result<FlushReport, Error> {
        hub::deliver::flush_events(&self.deps).await
    }

    /// Starts to delete a snapshot: its archive on every host, its patches, its name. By force an archive is given up whose
    /// host is not configured any more and does not answer.
    pub async fn delete_snapshot(
        &self,
        request: &SnapshotDeleteRequest,
    ) -> Result<SnapshotStarted, Error> {
        snapshots::delete::delete_snapshot(&self.deps, request).await
    }

    /// Deletes old snapshots on which nothing depends, or says which it would.
    pub async fn prune_snapshots(&self, request: &PruneRequest) -> Result<Vec<PruneItem>, Error> {
        snapshots::prune::prune_snapshots(&self.deps, request).await
    }

    /// Starts to copy a snapshot to another host. A copy that is there already is nothing to do.
    pub async fn copy_snapshot(
        &self,
        request: &SnapshotCopyRequest,
    ) -> Result<SnapshotStarted, Error> {
        snapshots::replicate::copy_snapshot(&self.deps, request).await
    }

    /// Starts to read a snapshot, on every host that has it, and to compare it with what is known of it.
    pub async fn verify_snapshot(&self, id: &str) -> Result<SnapshotStarted, Error> {
        snapshots::verify::verify_snapshot(&self.deps, id).await
    }

    /// The bytes of a file that an import takes. They come from the first of its hosts that has it whole.
    pub async fn export_snapshot(&self, id: &str) -> Result<ByteStream, Error> {
        snapshots::export::export_snapshot(&self.deps, id).await
    }

    /// Starts to take a snapshot from a file's bytes.
    pub async fn import_snapshot(
        &self,
        request: &SnapshotImportRequest,
        source: ByteStream,
    ) -> Result<SnapshotStarted, Error> {
        snapshots::import::import_snapshot(&self.deps, request, source).await
    }

    /// Compares a snapshot with another one, or with a sandbox as it is now.
    pub(crate) async fn diff_snapshot(
        &self,
        request: &SnapshotDiffRequest,
    ) -> Result<SnapshotDiff, Error> {
        snapshots::diff::diff_snapshot(&self.deps, request).await
    }

    /// Starts to apply a sandbox's pending patches; it stays `ready`.
    pub async fn apply_patches(&self, request: &ApplyRequest) -> Result<Started, Error> {
        patches::apply::apply_patches(&self.deps, request).await
    }

    /// Adds a patch to a snapshot; runs nothing.
    pub async fn add_patch(&self, request: &PatchRequest) -> Result<Patch, Error> {
        patches::add::add_patch(&self.deps, request).await
    }

    /// Takes a patch away from a snapshot. Sandboxes that have it keep it.
    pub async fn remove_patch(&self, snapshot: &str, patch: &str) -> Result<Patch, Error> {
        patches::remove::remove_patch(&self.deps, snapshot, patch).await
    }

    /// Status of each patch of a snapshot: the sandboxes that have it, will get it, or failed.
    pub async fn patch_status(&self, snapshot: &str) -> Result<Vec<PatchStatus>, Error> {
        patches::find::patch_status(&self.deps, snapshot).await
    }

    /// Applies a snapshot's patches to all sandboxes based on it, the oldest `canary` of them first; stops at the first
    /// failure: what runs then comes to its end, and no other is begun. One that sleeps is left to its wake. An item for
    /// each sandbox, oldest first.
    pub async fn roll_out(&self, request: &RolloutRequest) -> Result<Vec<RolloutItem>, Error> {
        patches::rollout::roll_out(&self.deps, request).await
    }

    /// Ends what dead processes began: an item for each thing that was left.
    pub async fn recover(&self) -> Result<Vec<Recovered>, Error> {
        upkeep::recover::recover(&self.deps).await
    }

    /// Tells of deadlines that are near, ends what is over, finishes removals on which nobody works, and waits for that. It may
    /// be asked again meanwhile.
    pub async fn sweep(&self, request: &SweepRequest) -> Result<SweepReport, Error> {
        upkeep::sweep::sweep(&self.deps, request).await
    }

    /// Everything stale, on hosts and in records: read from them now, or as this process saw them last.
    pub async fn stale(&self, query: &StaleQuery) -> Result<StaleReport, Error> {
        stale::inspect::inspect_stale(&self.deps, query).await
    }

    /// Makes a plan of what is stale, and keeps it for an hour.
    pub(crate) async fn plan_reap(&self, request: &PlanRequest) -> Result<ReapPlan, Error> {
        stale::plan::plan_reap(&self.deps, request).await
    }

    /// Starts to apply a plan and returns at once.
    pub async fn reap(&self, request: ReapRequest) -> Result<ReapStarted, Error> {
        stale::apply::reap(&self.deps, request).await
    }

    /// Makes records of what hosts have and no record knows: an item for each thing.
    pub async fn adopt(&self, request: &AdoptRequest) -> Result<Vec<Adopted>, Error> {
        stale::adopt::adopt(&self.deps, request).await
    }

    /// Takes over what the earlier Python tool kept in this data directory: an item for each thing.
    pub async fn import(&self, request: &ImportRequest) -> Result<Vec<Adopted>, Error> {
        upkeep::import::import_earlier(&self.deps, request).await
    }

    /// Starts to bring a removed sandbox back, as a new one, and returns at once.
    pub async fn undo(&self, request: &UndoRequest) -> Result<Started, Error> {
        snapshots::undo::undo(&self.deps, request).await
    }

    /// Asks a host for the services of all its sandboxes, and writes down what changed: many at a time, since each write is
    /// of the whole file.
    pub async fn refresh_services(&self, host: &str) -> Result<(), Error> {
        sandboxes::observe::refresh_services(&self.deps, host).await
    }

    /// Asks a sandbox's host for it and writes down what changed; the record as it is then. One that is worked on, or of which
    /// nothing is to be there, is as it is recorded.
    pub async fn observe(&self, id: &str) -> Result<SandboxRecord, Error> {
        sandboxes::observe::observe(&self.deps, id).await
    }

    /// All configured hosts as last seen; contacts none.
    pub async fn hosts(&self) -> Result<Vec<HostView>, Error> {
        hosts::check::list_hosts(&self.deps).await
    }

    /// Connects to one host, probes it, and removes what forgotten sandboxes left there.
    pub async fn check_host(&self, name: &str) -> Result<HostView, Error> {
        hosts::check::check_host(&self.deps, name).await
    }

    /// Checks one host, samples it, and waits a little for the sizes of its directories.
    pub(crate) async fn inspect_host(&self, name: &str) -> Result<HostView, Error> {
        hosts::inspect::inspect_host(&self.deps, name).await
    }

    /// Reads one host's load, memory, disk and clock, and what its sandboxes use.
    pub(crate) async fn sample_host(&self, name: &str) -> Result<HostSample, Error> {
        hosts::sample::sample_host(&self.deps, name).await
    }

    /// Looks at everything; with `claim` makes this data directory this machine's first. A host that is down is a
    /// check that failed, not an error.
    pub async fn doctor(&self, claim: bool) -> Result<Vec<Check>, Error> {
        upkeep::doctor::doctor(&self.deps, claim).await
    }

    /// Runs a command in a sandbox, which reads `input`; the last item is its exit status. Dropping the stream ends the
    /// command.
    pub async fn exec(
        &self,
        request: ExecRequest,
        input: Option<ByteStream>,
    ) -> Result<BoxStream<'static, Result<ExecOutput, Error>>, Error> {
        sandboxes::exec::exec(&self.deps, request, input).await
    }

    /// Logs of a sandbox's services. Dropping the stream ends it.
    pub async fn logs(
        &self,
        request: LogsRequest,
    ) -> Result<BoxStream<'static, Result<LogLine, Error>>, Error> {
        sandboxes::exec::logs(&self.deps, request).await
    }

    /// A program of this machine that opens a shell in a sandbox.
    pub async fn shell(&self, request: &ShellRequest) -> Result<Interactive, Error> {
        sandboxes::exec::shell(&self.deps, request).await
    }

    /// Starts to stop one that is ready, and returns at once. One that sleeps is nothing to do.
    pub async fn sleep(&self, request: &SleepRequest) -> Result<Started, Error> {
        Box::pin(sandboxes::power::sleep(&self.deps, request)).await
    }

    /// Starts to wake one that sleeps, patches and all, and returns at once. One that is ready is nothing to do.
    pub async fn wake(&self, request: &SleepRequest) -> Result<Started, Error> {
        Box::pin(sandboxes::power::wake(&self.deps, request)).await
    }

    /// Sandboxes that pass, oldest first. Those that are over only with `all` or when such a state is named.
    pub async fn list(&self, query: &ListQuery) -> Result<Vec<Arc<SandboxRecord>>, Error> {
        credits::cost::list_with_cost(&self.deps, query).await
    }

    /// The sandbox a reference means: exact id, exact name, unique prefix of an id (4 or more), in this order.
    pub async fn get(&self, reference: &str) -> Result<SandboxRecord, Error> {
        credits::cost::get_with_cost(&self.deps, reference).await
    }

    /// Sums of the ledger, and what is spent per hour now.
    pub async fn credits(&self) -> Result<Credits, Error> {
        credits::account::credits(&self.deps).await
    }

    /// Entries of the ledger, oldest first.
    pub async fn credit_history(&self) -> Result<Vec<HistoryEntry>, Error> {
        self.deps.credits.history().await
    }

    /// Adds credits; the sums as they are then.
    pub async fn grant_credits(&self, request: GrantRequest) -> Result<Credits, Error> {
        credits::account::grant(&self.deps, request).await
    }

    /// Operations that run and the last day's, oldest first, with what this process knows of their progress.
    pub async fn operations(&self) -> Result<Vec<Operation>, Error> {
        operation::find::list_operations(&self.deps).await
    }

    /// Operation by exact id, or a unique beginning of it (`op-` plus 4 characters or more).
    pub async fn operation(&self, reference: &str) -> Result<Operation, Error> {
        operation::find::find_operation(&self.deps, reference).await
    }

    /// Asks for an operation's end: of one of this process directly, of another's through its record.
    pub async fn cancel(&self, id: &OperationId) -> Result<(), Error> {
        operation::cancel::cancel_operation(&self.deps, id).await
    }

    /// Waits for an operation's end, whichever process runs it; what it worked on as it is then, or what went wrong.
    pub async fn wait(&self, id: &OperationId) -> Result<Record, Error> {
        operation::wait::wait(&self.deps, id).await
    }

    /// Waits for an operation's end; the record as it is then, or what went wrong.
    pub async fn finish(
        &self,
        id: &OperationId,
    ) -> Result<(Operation, Option<SandboxRecord>), Error> {
        operation::wait::wait_for_operation(&self.deps, id).await
    }

    /// Starts to try everything on one host, and returns at once. A host that is down or out of bounds is a step that
    /// failed.
    pub async fn deep_check(&self, name: &str) -> Result<(OperationId, HostView), Error> {
        hosts::deep_check::deep_check(&self.deps, name).await
    }
}
