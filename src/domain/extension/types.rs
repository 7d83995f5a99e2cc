//! Types that an extension takes and answers.

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::domain::archive::{ArchivePlace, ByteStream};
use crate::domain::compose_host::ComposeHost;
use crate::domain::facts::HostIdentity;
use crate::domain::headroom::Headroom;
use crate::domain::host_report::{HostReport, RuntimeDetection};
use crate::domain::name::{HostName, OwnerId, SandboxId};
use crate::domain::patch::Patch;
use crate::domain::profile::{Profile, SnapshotMode};
use crate::domain::root::{KnownRoots, MarkedRoot};
use crate::domain::sandbox::{Handle, Reachability, Rewrite, SandboxRecord, Service};
use crate::domain::snapshot::{ArchiveFacts, SnapshotRecord};
use crate::domain::teardown::{Resource, TeardownLine};
use crate::domain::words::string_enum;
use crate::domain::{Time, Usd};

string_enum! {
    /// Verb beyond making and removing.
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

/// Verbs that an extension has.
pub type Capabilities = std::collections::BTreeSet<Capability>;

/// Installation as a host sees it (contract 1, `owner`).
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
    /// Installation that makes it.
    pub owner: OwnerStamp,
    pub host: HostName,
    pub profile: Profile,
    /// The inputs, checked, defaults filled in.
    pub inputs: BTreeMap<String, String>,
    /// When the record was written.
    pub created_at: Time,
    /// The deadline for the host's manifest.
    pub expires_at: Option<Time>,
    /// Whether the operator agreed to a transfer above the limits.
    pub allow_large: bool,
    /// The host as it was found before anything was made; none where it was not asked.
    pub compose_host: Option<ComposeHost>,
    /// Workspace roots of the host, as far as they are known. Another one where one is known, or none, is `host_changed`.
    pub roots: KnownRoots,
    /// Last report of the host; none where nobody knows one.
    pub report: Option<Box<HostReport>>,
    /// The record as it was written ahead, for the host's manifest; none where nothing is made.
    pub sandbox: Option<Box<SandboxRecord>>,
}

impl ProvisionRequest {
    /// Request but for what is known once its record is written and its host was asked. What carries the id and this `owner` on
    /// the host is the sandbox's own, and no obstacle to it; none for one that is new.
    pub(crate) fn draft(
        id: SandboxId,
        owner: Option<OwnerId>,
        host: HostName,
        profile: Profile,
        inputs: BTreeMap<String, String>,
        created_at: Time,
    ) -> Self {
        let owner = owner.unwrap_or_else(|| "".into());
        let owner = OwnerStamp { owner, machine_id: String::new(), counter: 0 };
        let (roots, report, sandbox) = Default::default();
        let (expires_at, allow_large, compose_host) = Default::default();
        Self {
            id,
            owner,
            host,
            profile,
            inputs,
            created_at,
            expires_at,
            allow_large,
            compose_host,
            roots,
            report,
            sandbox,
        }
    }

    /// Request for the sandbox of a record that is written.
    pub(crate) fn of_record(self, record: &SandboxRecord) -> Self {
        let SandboxRecord { id, host, created_at, .. } = record.clone();
        Self { id, host, created_at, ..self }
    }
}

/// Answer of a host that may take a sandbox.
#[derive(Debug, Clone, Default)]
pub struct HostAnswer {
    /// Host as a stack meets it, where there is a stack.
    pub compose: Option<ComposeHost>,
    /// Figures; none where it was not asked for them.
    pub headroom: Option<Headroom>,
    /// Newer detection, where the known one did not hold.
    pub detection: Option<RuntimeDetection>,
}

/// Sandbox that a later verb is about.
#[derive(Debug, Clone)]
pub struct Target {
    pub id: SandboxId,
    /// Owner ids that count as ours on the host; the one that made it is the last.
    pub owners: Vec<OwnerId>,
    /// The recorded host.
    pub host: HostName,
    /// The profile, for its `stop_grace` and `config`.
    pub profile: Profile,
    pub inputs: BTreeMap<String, String>,
    /// Handle that `provision` returned, if it came so far.
    pub handle: Option<Handle>,
    /// The recorded directory, if it came so far.
    pub workdir: Option<String>,
    /// Identity that the host proved, if it came so far. A different one is `host_changed`.
    pub host_identity: Option<HostIdentity>,
    /// Our counter (contract 1, `owner`). A host with a higher one has seen more than our records say: a teardown
    /// then touches nothing and fails with `conflict` (`details.kind` is `behind`, `details.counter` the host's).
    /// `None`: the host is not asked, as in a rollback of what was made just now.
    pub stamp: Option<OwnerStamp>,
    /// Workspace roots of the host, as far as they are known. What is not in a root that is not there, or is not known to be the one,
    /// is nowhere for all that anybody knows: `host_changed`.
    pub roots: KnownRoots,
    /// The last lines that its start wrote, where this process has just started it; kept on no record.
    pub start_output: Option<String>,
}

impl Target {
    /// Engine that its containers are on; empty where none is recorded.
    pub(crate) fn engine(&self) -> &str {
        let engine = self.host_identity.as_ref().and_then(|identity| identity.engine.as_deref());
        engine.unwrap_or_default()
    }
}

/// Result of `provision`.
#[derive(Debug, Clone)]
pub struct Provisioned {
    /// To find it again.
    pub handle: Handle,
    /// `<workspace_root>/sbx-<id>`, absolute.
    pub workdir: String,
    /// Identity that the host proved.
    pub identity: HostIdentity,
    /// Changes to what the user wrote.
    pub rewrites: Vec<Rewrite>,
    /// Report of the host with its runtime's certificate, where the profile asks for it.
    pub report: Option<Box<HostReport>>,
    /// The counter that the host had of this installation, where it was not behind ours: then our data directory is
    /// an old copy.
    pub counter_ahead: Option<u64>,
    /// The last lines that the start wrote, as evidence where what runs says nothing.
    pub start_output: Option<String>,
    /// Readiness, where the call that started it saw at its end that everything runs: `wait_ready` has nothing to ask then.
    pub ready: Option<Readiness>,
}

/// Result of `wait_ready`.
#[derive(Debug, Clone)]
pub struct Readiness {
    /// Access to it.
    pub reachability: Reachability,
    /// The services as the engine reported them.
    pub services: Vec<Service>,
    /// Containers that have not run for the profile's `settle` yet, for `wait_settled`.
    pub unsettled: Unsettled,
}

/// Containers that still have to show that they stay.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Unsettled {
    /// Nothing is to be shown any more.
    #[default]
    None,
    /// All that the sandbox should have.
    All,
    /// Containers of these names, which were woken.
    Woken(Vec<String>),
}

/// Resources of a sandbox that a host has (`inspect`).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Inspection {
    /// Resources: its directory, containers, networks, volumes.
    pub resources: Vec<Resource>,
    /// Resources with its id, its project's label or a name of it that are somebody else's, with what tells so.
    pub foreign: Vec<TeardownLine>,
    /// Whether all of it is there and every long-running service runs: what `wait_ready` would call ready.
    pub ready: bool,
    /// Whether it was put to sleep: what ran then is stopped and there.
    pub asleep: bool,
    /// Whether a sleep or a wake was cut off: some of what ran runs and some does not.
    pub halfway: bool,
    /// Services as the backend reports them.
    pub services: Vec<Service>,
    /// Access to it, where it is ready.
    pub reachability: Option<Reachability>,
    /// The counter that the host has of this installation (contract 1, `owner`); `None` where it has none.
    pub counter: Option<u64>,
    /// The root that it is in, where its mark was not known.
    pub root: Option<MarkedRoot>,
}

/// Price that a metered extension asks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MeterQuote {
    /// The price.
    pub usd: Usd,
    /// Reckoning, in a sentence.
    pub basis: String,
}

/// Snapshot that is to be taken.
#[derive(Debug, Clone)]
pub struct CaptureRequest {
    /// The record as it was written ahead: its id names the folder.
    pub snapshot: SnapshotRecord,
    /// Installation that makes it.
    pub owner: OwnerId,
    /// Treatment of the containers meanwhile; `None`: `pause` where the runtime can, with `stop` never by itself.
    pub mode: Option<SnapshotMode>,
    /// Patterns to leave out.
    pub excludes: Vec<String>,
}

/// A snapshot that was made and sealed.
#[derive(Debug, Clone, PartialEq)]
pub struct Captured {
    /// Folder on the host, absolute.
    pub path: String,
    /// Identity that the host proved.
    pub identity: HostIdentity,
    pub archive: ArchiveFacts,
}

/// A command to run in a sandbox.
pub struct ExecRun<'a> {
    /// The program and its arguments; no shell reads them.
    pub command: &'a [String],
    /// In this service's container; none: in the workspace.
    pub service: Option<&'a str>,
    /// Stdin; none: nothing is there.
    pub input: Option<ByteStream>,
}

/// The archive that a sandbox is made from.
#[derive(Debug, Clone)]
pub struct RestoreSource {
    /// Archive, on the same host as the sandbox.
    pub place: ArchivePlace,
    pub archive: ArchiveFacts,
    /// Whether it is an error when the host cannot set everything (`--strict`).
    pub strict: bool,
}

/// Result of a restore.
#[derive(Debug, Clone)]
pub struct Restored {
    /// Sandbox, as `provision` answers.
    pub provisioned: Provisioned,
    /// Properties that could not be set on the target, counted by kind: `owners`, `modes`, `xattrs`, `devices`, `volumes`.
    pub not_preserved: BTreeMap<String, u64>,
}

#[derive(Debug, Clone)]
pub struct PatchRun {
    pub patch: Patch,
    /// Time that it may take.
    pub limit: Duration,
}

/// End of a patch's script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatchOutcome {
    /// Exit status (128 + n after signal n).
    pub exit_status: i32,
    /// Whether it was ended because its time was over.
    pub timed_out: bool,
    /// The last `KEPT_OUTPUT` bytes that it wrote, invalid UTF-8 replaced.
    pub output: String,
    pub duration: Duration,
}
