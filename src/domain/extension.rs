//! The contract between sandboxer and a backend adapter.
//!
//! An extension makes, asks about and removes sandboxes on a host. It returns handles and reports progress; it
//! writes no state. What every implementation promises:
//!
//! * A call **may be dropped at any await** (a cancel). What it started on the host then ends by itself, under a
//!   watchdog there; nothing is left that [`SandboxExtension::teardown`] does not find.
//! * `teardown` is idempotent and works on a half-made sandbox with nothing but its id and host: names on the host
//!   derive from the id alone.
//! * Progress may be lost; a caller never waits for it.
//! * It never blocks a thread.
//! * Errors are [`Fault`]s: `host_unreachable`, `host_changed`, `timeout`, `missing_dependency`, `invalid_input`
//!   (with the field), `unsupported`, `operation_failed` (with a [`Failure`] in [`ExtensionError`]).

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::domain::facts::{Certificate, HostFacts, HostIdentity};
use crate::domain::fault::{Code, Fault};
use crate::domain::name::{ExtensionId, HostName, OwnerId, SandboxId};
use crate::domain::output::{Interactive, LogSink, OutputSink};
use crate::domain::profile::Profile;
use crate::domain::sandbox::{Failure, Reachability, Rewrite, Service};
use crate::domain::words::string_enum;
use crate::domain::{Time, Usd};

/// What the extension needs to find a sandbox again, beyond its id. Opaque to everyone else.
pub type Handle = serde_json::Value;

string_enum! {
    /// What an extension can do beyond making and removing.
    pub enum Capability {
        /// `snapshot` and `restore_from_snapshot`.
        Snapshots = "snapshots",
        /// Patches on snapshots.
        Patches = "patches",
        /// `sleep` and `wake`.
        Sleep = "sleep",
        /// `exec` and a shell.
        Exec = "exec",
        /// `logs`.
        Logs = "logs",
        /// `list_owned`, from which a lost store is rebuilt.
        Adopt = "adopt",
        /// `estimate_cost` and `meter_actual` answer with money.
        Metered = "metered",
    }
}

/// What an extension can do: the capabilities that are there.
pub type Capabilities = std::collections::BTreeSet<Capability>;

/// Something on a host: a container, network, volume, pod, directory or tunnel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Resource {
    /// `container`, `network`, `volume`, `pod`, `directory`, `tunnel`; `process`: one that worked in the workspace.
    pub kind: String,
    /// Its name on the host, or its path.
    pub id: String,
}

string_enum! {
    /// What became of a resource in a teardown.
    pub enum TeardownOutcome {
        /// It was there and is gone.
        Removed = "removed",
        /// It was not there: only "not found" counts.
        Absent = "absent",
        /// It could not be removed.
        Failed = "failed",
    }
}

/// One line of a teardown's report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TeardownLine {
    /// What.
    pub resource: Resource,
    /// What became of it.
    pub outcome: TeardownOutcome,
    /// Why it failed, in the program's words.
    pub reason: Option<String>,
}

/// What a teardown did. `clean` only when a read-back showed that nothing is left.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TeardownReport {
    /// A line per resource.
    pub lines: Vec<TeardownLine>,
    /// What the read-back still found.
    pub leftovers: Vec<Resource>,
}

impl TeardownReport {
    /// Whether nothing is left.
    pub fn is_clean(&self) -> bool {
        self.leftovers.is_empty() && self.lines.iter().all(|line| line.outcome != TeardownOutcome::Failed)
    }
}

/// This installation as a host sees it (contract 1, `owner`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnerStamp {
    /// The id that new sandboxes carry.
    pub owner: OwnerId,
    /// The machine the installation is on.
    pub machine_id: String,
    /// Raised by each create, restore and recreate; written to the host by the prepare call.
    pub counter: u64,
}

/// Everything `provision` needs.
#[derive(Debug, Clone)]
pub struct ProvisionRequest {
    /// The sandbox's id: every name on the host derives from it.
    pub id: SandboxId,
    /// Who makes it.
    pub owner: OwnerStamp,
    /// Where.
    pub host: HostName,
    /// The recipe.
    pub profile: Profile,
    /// The inputs, checked, defaults filled in.
    pub inputs: BTreeMap<String, String>,
    /// When the record was written.
    pub created_at: Time,
    /// The deadline for the host's manifest.
    pub expires_at: Option<Time>,
    /// Whether the operator agreed to a transfer above the limits.
    pub allow_large: bool,
}

/// Which sandbox a later verb is about.
#[derive(Debug, Clone)]
pub struct Target {
    /// The sandbox's id.
    pub id: SandboxId,
    /// Owner ids that count as ours on the host; the one that made it is the last.
    pub owners: Vec<OwnerId>,
    /// The recorded host.
    pub host: HostName,
    /// The recipe, for its `stop_grace` and `config`.
    pub profile: Profile,
    /// The inputs.
    pub inputs: BTreeMap<String, String>,
    /// When the record was written, for the host's manifest.
    pub created_at: Time,
    /// What `provision` returned, if it came so far.
    pub handle: Option<Handle>,
    /// The recorded directory, if it came so far.
    pub workdir: Option<String>,
    /// What the host proved to be, if it came so far. A different one is `host_changed`.
    pub host_identity: Option<HostIdentity>,
    /// Our counter (contract 1, `owner`). A host with a higher one has seen more than our records say: a teardown
    /// then touches nothing and fails with `conflict` (`details.kind` is `behind`, `details.counter` the host's).
    /// `None`: the host is not asked, as in a rollback of what was made just now.
    pub stamp: Option<OwnerStamp>,
}

/// What `provision` made.
#[derive(Debug, Clone)]
pub struct Provisioned {
    /// To find it again.
    pub handle: Handle,
    /// `<workspace_root>/sbx-<id>`, absolute.
    pub workdir: String,
    /// What the host proved to be.
    pub identity: HostIdentity,
    /// What was changed in what the user wrote.
    pub rewrites: Vec<Rewrite>,
    /// The host's facts, where the recipe asks for them.
    pub facts: Option<HostFacts>,
    /// The runtime's certificate, where the recipe asks for it.
    pub certificate: Option<Certificate>,
    /// The counter that the host had of this installation, where it was not behind ours: then our data directory is
    /// an old copy.
    pub counter_ahead: Option<u64>,
}

/// What `wait_ready` found.
#[derive(Debug, Clone)]
pub struct Readiness {
    /// How to get there.
    pub reachability: Reachability,
    /// The services as the engine reported them.
    pub services: Vec<Service>,
}

/// What a host has of a sandbox (`inspect`).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Inspection {
    /// What is there: its directory, containers, networks, volumes.
    pub resources: Vec<Resource>,
    /// Whether all of it is there and every long-running service runs: what `wait_ready` would call ready.
    pub ready: bool,
    /// Its services as the backend reports them.
    pub services: Vec<Service>,
    /// How to get there, where it is ready.
    pub reachability: Option<Reachability>,
    /// The counter that the host has of this installation (contract 1, `owner`); `None` where it has none.
    pub counter: Option<u64>,
}

/// What a create would do, found without touching anything.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Preview {
    /// Bytes to transfer.
    pub bytes: u64,
    /// Files to transfer.
    pub files: u64,
    /// What the renderer would change.
    pub rewrites: Vec<Rewrite>,
    /// Everything that would be refused, not only the first.
    pub refusals: Vec<Refusal>,
    /// Services that would be started.
    pub services: Vec<String>,
}

/// One thing that is refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Refusal {
    /// Where, such as `services.web.privileged` or an input's name.
    pub path: String,
    /// One sentence.
    pub message: String,
    /// The word for the profile's `compose.allow` that would permit it.
    pub allow: Option<String>,
}

/// An error of an extension: what went wrong, and the evidence.
#[derive(Debug, thiserror::Error)]
#[error("{fault}")]
pub struct ExtensionError {
    /// What went wrong.
    #[source]
    pub fault: Fault,
    /// The failed step's evidence, where a program ran.
    pub failure: Option<Failure>,
    /// Whether it is certain that nothing was made on the host, or removed there. Nothing made: then there is nothing
    /// to tear down, and what has this sandbox's name there is somebody else's.
    pub untouched: bool,
}

/// What `provision` learnt of the host before it made anything that runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Learnt {
    /// The directory.
    pub workdir: String,
    /// The host's identity.
    pub identity: HostIdentity,
}

impl From<Fault> for ExtensionError {
    fn from(fault: Fault) -> Self {
        Self { fault, failure: None, untouched: false }
    }
}

/// One report of progress from an extension.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    /// The step's name.
    pub stage: &'static str,
    /// The step's number, from 1.
    pub step: u32,
    /// How many steps there are; 0: the step follows the one before it.
    pub steps: u32,
    /// How much of the step is done.
    pub done: Option<u64>,
    /// Out of how much.
    pub of: Option<u64>,
    /// Bytes moved so far.
    pub bytes: Option<u64>,
    /// A line that the step's program wrote.
    pub message: Option<String>,
}

/// Where an extension's progress goes. Never blocks; may drop reports.
pub trait Reporter: Send + Sync {
    /// Takes one report.
    fn report(&self, report: Report);

    /// Takes what `provision` learnt of the host, so that the record has it although the call is dropped or fails.
    fn learnt(&self, _learnt: &Learnt) {}
}

/// What a metered extension asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MeterQuote {
    /// The price.
    pub usd: Usd,
    /// How it was reckoned, in a sentence.
    pub basis: String,
}

/// A backend adapter. See the module's text for what every implementation promises.
#[async_trait]
pub trait SandboxExtension: Send + Sync {
    /// Its id.
    fn id(&self) -> &ExtensionId;

    /// What it can do beyond making and removing.
    fn capabilities(&self) -> Capabilities;

    /// What `provision` would do and refuse, without touching a host.
    ///
    /// Errors: `invalid_input` for an input that names nothing usable. Refusals are in the preview.
    async fn preview(&self, request: &ProvisionRequest) -> Result<Preview, ExtensionError>;

    /// The price for a duration; `None` where it costs nothing.
    async fn estimate_cost(
        &self,
        _profile: &Profile,
        _inputs: &BTreeMap<String, String>,
        _duration: Duration,
    ) -> Result<Option<MeterQuote>, ExtensionError> {
        Ok(None)
    }

    /// Makes the sandbox: prepare, transfer, start. Does not wait for readiness.
    ///
    /// Errors: any of the module's list; what was made stays for `teardown`.
    async fn provision(
        &self,
        request: &ProvisionRequest,
        reporter: &dyn Reporter,
    ) -> Result<Provisioned, ExtensionError>;

    /// Asks the backend until every long-running service runs, at most for `limit`.
    ///
    /// Errors: `timeout` with the services as they are, `operation_failed` when one ended.
    async fn wait_ready(
        &self,
        target: &Target,
        limit: Duration,
        reporter: &dyn Reporter,
    ) -> Result<Readiness, ExtensionError>;

    /// Writes a new deadline into the host's manifest, and the target's stamp, if it has one, to the host's counters.
    async fn set_deadline(&self, target: &Target, expires_at: Option<Time>) -> Result<(), ExtensionError>;

    /// Removes all of it and reads back. Idempotent; needs no handle.
    ///
    /// Errors: only when the host could not be asked (`host_unreachable`, `host_changed`, `timeout`), and `untouched`
    /// where it is certain that nothing was removed. What could not be removed is in the report.
    async fn teardown(&self, target: &Target, reporter: &dyn Reporter) -> Result<TeardownReport, ExtensionError>;

    /// What it has cost so far; `None` where it costs nothing.
    async fn meter_actual(&self, _target: &Target, _duration: Duration) -> Result<Option<Usd>, ExtensionError> {
        Ok(None)
    }

    /// What the recorded host has of it now, its identity proved first.
    ///
    /// Errors: `host_changed` when the host is another one, and whatever keeps it from being asked.
    async fn inspect(&self, _target: &Target) -> Result<Inspection, ExtensionError> {
        Err(self.unsupported("inspect").into())
    }

    /// The services of these sandboxes, all of which are on `host`, as the backend reports them now: one question
    /// for all. A sandbox that the backend knows nothing of is not in the answer.
    async fn services(
        &self,
        _host: &HostName,
        _targets: &[Target],
    ) -> Result<BTreeMap<SandboxId, Vec<Service>>, ExtensionError> {
        Ok(BTreeMap::new())
    }

    /// Runs a command in the workspace, or in a service's container (`exec`). Its output goes to the sink.
    ///
    /// Answers the command's exit status (128 + n after signal n), or `None` when the sink wanted no more. Errors:
    /// `not_found` for a service that is not there, `conflict` for one that does not run.
    async fn exec(
        &self,
        _target: &Target,
        _command: &[String],
        _service: Option<&str>,
        _sink: &mut dyn OutputSink,
    ) -> Result<Option<i32>, ExtensionError> {
        Err(self.unsupported("run commands (exec)").into())
    }

    /// A program of this machine that opens a shell in the workspace, or in a service's container.
    async fn shell(&self, _target: &Target, _service: Option<&str>) -> Result<Interactive, ExtensionError> {
        Err(self.unsupported("open a shell").into())
    }

    /// What its services write (`logs`): the last `tail` lines of each (`None`: all), and with `follow` whatever
    /// comes. Lines of several services come as they are read.
    ///
    /// Errors: `not_found` for a service that is not there.
    async fn logs(
        &self,
        _target: &Target,
        _service: Option<&str>,
        _tail: Option<u64>,
        _follow: bool,
        _sink: &mut dyn LogSink,
    ) -> Result<(), ExtensionError> {
        Err(self.unsupported("show logs").into())
    }

    /// The fault for a verb this extension lacks.
    fn unsupported(&self, verb: &str) -> Fault {
        Fault::new(Code::Unsupported, format!("{} cannot {verb}", self.id()))
    }
}
