//! The one door for every face: a trait with every verb, its requests and replies.
//!
//! [`local::LocalClient`] works on the manager of this process. Errors are [`Error`]s; what a face prints and
//! which status it ends with follows from them alone.

pub mod local;
pub mod problem;
mod request;

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::stream::BoxStream;

pub use request::{Request, Started};

pub use crate::domain::adoption::{AdoptRequest, Adopted, AdoptedKind, ImportRequest};
pub use crate::domain::credit::{Credits, GrantRequest, HistoryEntry};
pub use crate::domain::error::Error;
pub use crate::domain::hub::{FlushReport, HubBacklog};
pub use crate::domain::record::Record;
pub use crate::domain::request::{
    ApplyRequest, Check, CheckState, CreateRequest, Decision, DestroyRequest, EventQuery,
    ExecRequest, ExtendRequest, Extended, ExtensionView, HostCheckRequest, LabelRequest, ListQuery,
    LogsRequest, PatchRequest, PatchStanding, PatchStatus, ProfileView, PruneItem, PruneRequest,
    Recovered, RecreateRequest, RestoreRequest, RolloutItem, RolloutRequest, ShellRequest,
    SleepRequest, SnapshotCopyRequest, SnapshotDeleteRequest, SnapshotDiff, SnapshotDiffRequest,
    SnapshotImportRequest, SnapshotQuery, SnapshotRequest, SnapshotVerifyRequest,
};
pub use crate::domain::stale::{
    PlanRequest, PlanSource, ReapItem, ReapPlan, ReapReport, ReapRequest, StaleItem, StaleQuery,
    StaleReport,
};
pub use crate::domain::sweep::{SweepReport, SweepRequest};
pub use crate::domain::undo::UndoRequest;
pub use crate::domain::update::Update;

use crate::domain::actor::Actor;
use crate::domain::error::Code;
use crate::domain::event::Event;
use crate::domain::host_view::HostView;
use crate::domain::lineage::{Lineage, SnapshotView};
use crate::domain::name::OperationId;
use crate::domain::operation::Operation;
use crate::domain::output::{ExecOutput, Interactive, LogLine};
use crate::domain::patch::Patch;
use crate::domain::sandbox::SandboxRecord;
use crate::domain::telemetry::HostSample;

/// Every verb of the contract that is there yet. Object-safe; a server's and this process's are twins.
#[async_trait]
pub trait Client: Send + Sync {
    /// Writes the record, starts the work, and returns at once.
    async fn start(&self, request: Request) -> Result<Started, Error>;
    /// Waits until an operation has ended, whichever process runs it; what it worked on as it is then, or its error.
    async fn wait(&self, operation: &OperationId) -> Result<Record, Error>;
    /// Decision of a create; touches nothing.
    async fn plan_create(&self, request: CreateRequest) -> Result<Decision, Error>;
    /// Sandboxes, oldest first.
    async fn list(&self, query: ListQuery) -> Result<Vec<Arc<SandboxRecord>>, Error>;
    /// The sandbox that an exact id, an exact name or a unique prefix of an id (4 or more) means, destroyed ones
    /// and the history included. `not_found`, or `conflict` for an ambiguous prefix, naming the matches.
    async fn get(&self, reference: &str) -> Result<SandboxRecord, Error>;
    /// Snapshots with what hangs on them, oldest first.
    async fn snapshots(&self, query: SnapshotQuery) -> Result<Vec<Arc<SnapshotView>>, Error>;
    /// The snapshot that an exact id, an exact name or a unique beginning of an id (`snap-` plus 4 or more) means.
    async fn snapshot_view(&self, reference: &str) -> Result<SnapshotView, Error>;
    /// The bytes of a file that [`Client::import_snapshot`] takes.
    async fn export_snapshot(
        &self,
        id: &str,
    ) -> Result<BoxStream<'static, Result<Vec<u8>, Error>>, Error>;
    /// Starts to take a snapshot from a file's bytes. Not a [`Request`]: a stream is no document.
    async fn import_snapshot(
        &self,
        request: SnapshotImportRequest,
        source: BoxStream<'static, Result<Vec<u8>, Error>>,
    ) -> Result<Started, Error>;
    /// Differences between a snapshot and another one, or a sandbox as it is now.
    async fn diff_snapshot(&self, request: SnapshotDiffRequest) -> Result<SnapshotDiff, Error>;
    /// Deletes old snapshots on which nothing depends, or says which it would.
    async fn prune_snapshots(&self, request: PruneRequest) -> Result<Vec<PruneItem>, Error>;
    /// Adds a patch to a snapshot; runs nothing.
    async fn add_patch(&self, request: PatchRequest) -> Result<Patch, Error>;
    /// Takes a patch away from a snapshot: by its id or sequence. Sandboxes that have it keep it.
    async fn remove_patch(&self, snapshot: &str, patch: &str) -> Result<Patch, Error>;
    /// Status of each patch of a snapshot: the sandboxes that have it, will get it, or failed.
    async fn patch_status(&self, snapshot: &str) -> Result<Vec<PatchStatus>, Error>;
    /// Applies a snapshot's patches to all sandboxes based on it, some first; stops at the first failure.
    async fn roll_out(&self, request: RolloutRequest) -> Result<Vec<RolloutItem>, Error>;
    /// Where a sandbox (exact id) comes from, and the snapshots taken of it.
    async fn lineage(&self, id: &str) -> Result<Lineage, Error>;
    /// Asks an operation to roll back. Returns at once; [`Self::wait`] tells the end.
    async fn cancel(&self, operation: &OperationId) -> Result<(), Error>;
    /// Operations that run and the last day's, oldest first.
    async fn operations(&self) -> Result<Vec<Operation>, Error>;
    /// Operation: exact id, or a unique beginning of it (`op-` plus 4 characters or more).
    async fn operation(&self, reference: &str) -> Result<Operation, Error>;
    /// Runs a command in a sandbox, which reads `input`; the last item is `Exit`. Takes no lock. Dropping the stream ends the
    /// command.
    async fn exec(
        &self,
        request: ExecRequest,
        input: Option<BoxStream<'static, Result<Vec<u8>, Error>>>,
    ) -> Result<BoxStream<'static, Result<ExecOutput, Error>>, Error>;
    /// Lines that a sandbox's services write. Takes no lock. Dropping the stream ends it.
    async fn logs(
        &self,
        request: LogsRequest,
    ) -> Result<BoxStream<'static, Result<LogLine, Error>>, Error>;
    /// Shell in a sandbox, for the face's own terminal. Takes no lock.
    async fn shell(&self, request: ShellRequest) -> Result<Interactive, Error>;
    /// Moves a deadline; the record as it is then. Takes no lock.
    async fn extend(&self, request: ExtendRequest) -> Result<Extended, Error>;
    /// Changes labels; the record as it is then. Takes no lock.
    async fn label(&self, request: LabelRequest) -> Result<SandboxRecord, Error>;
    /// Brings into order what killed processes left: an item for each thing, none when there was nothing.
    async fn recover(&self) -> Result<Vec<Recovered>, Error>;
    /// Tells of deadlines that are near, ends what is over, finishes removals on which nobody works, and waits for that. It may
    /// be asked again meanwhile.
    async fn sweep(&self, request: SweepRequest) -> Result<SweepReport, Error>;
    /// Everything stale, on hosts and in records. A host that cannot be read is a pass that says so, and nothing on it is judged.
    async fn stale(&self, query: StaleQuery) -> Result<StaleReport, Error>;
    /// Makes a plan of what is stale, which is kept for an hour; [`Request::Reap`] applies it.
    async fn plan_reap(&self, request: PlanRequest) -> Result<ReapPlan, Error>;
    /// Makes records of what hosts have and no record knows: an item for each thing.
    async fn adopt(&self, request: AdoptRequest) -> Result<Vec<Adopted>, Error>;
    /// Takes over what the earlier Python tool kept in this data directory: an item for each thing.
    async fn import(&self, request: ImportRequest) -> Result<Vec<Adopted>, Error>;
    /// Asks its host for one sandbox; the record as it is then. What changed is written.
    async fn observe(&self, id: &str) -> Result<SandboxRecord, Error>;
    /// Asks a host for the services of all its sandboxes. What changed is written and comes as `Update::Record`.
    async fn refresh_services(&self, host: &str) -> Result<(), Error>;
    async fn profiles(&self) -> Result<Vec<ProfileView>, Error>;
    /// Profile (with or without `profile.`).
    async fn profile(&self, id: &str) -> Result<ProfileView, Error>;
    async fn extensions(&self) -> Result<Vec<ExtensionView>, Error>;
    /// Extension (with or without `ext.`).
    async fn extension(&self, id: &str) -> Result<ExtensionView, Error>;
    /// All configured hosts as last seen; contacts none.
    async fn hosts(&self) -> Result<Vec<HostView>, Error>;
    /// Connects to one host and probes it. A host that is down is a view that says so, not an error; only an
    /// unknown name is `not_found`.
    async fn check_host(&self, name: &str) -> Result<HostView, Error>;
    /// Checks a host and samples it: everything that is known of it. As [`Client::check_host`], a host that is down is a view.
    async fn inspect_host(&self, name: &str) -> Result<HostView, Error>;
    /// Reads one host's load, memory, disk and clock, and what its sandboxes use: one round trip, cheap enough for every two
    /// seconds.
    ///
    /// Errors: why the host does not answer.
    async fn sample_host(&self, name: &str) -> Result<HostSample, Error>;
    /// Kept events that pass, in order.
    async fn events(&self, query: EventQuery) -> Result<Vec<Event>, Error>;
    /// Sums of the ledger.
    async fn credits(&self) -> Result<Credits, Error> {
        Err(Error::new(Code::Unsupported, "credits cannot be asked for here"))
    }
    /// Entries of the ledger, oldest first.
    async fn credit_history(&self) -> Result<Vec<HistoryEntry>, Error> {
        Err(Error::new(Code::Unsupported, "credits cannot be asked for here"))
    }
    /// Adds credits; the sums as they are then.
    async fn grant_credits(&self, _request: GrantRequest) -> Result<Credits, Error> {
        Err(Error::new(Code::Unsupported, "credits cannot be granted here"))
    }
    /// Backlog of the State Hub; `None` where none is configured.
    async fn hub_backlog(&self) -> Result<Option<HubBacklog>, Error> {
        Ok(None)
    }
    /// Delivers what waits for the State Hub, now.
    ///
    /// Errors: `invalid_config` where none is configured, `busy` where another process delivers.
    async fn flush_events(&self) -> Result<FlushReport, Error> {
        Err(Error::new(Code::Unsupported, "events cannot be delivered here"))
    }
    /// Everything that happens from now on, in this process and in others.
    async fn subscribe(&self) -> Result<BoxStream<'static, Update>, Error>;
    /// The actor that this client acts as.
    fn actor(&self) -> Actor;
    /// Ends background work: waits for running operations (or rolls them back), closes connections.
    async fn close(&self);
}
