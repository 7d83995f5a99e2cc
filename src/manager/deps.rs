//! Dependencies of the verbs: what the composition root gives, and what this process remembers.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex, Once};

use futures_util::future::BoxFuture;

use crate::domain::actor::Actor;
use crate::domain::clock::{ClockReading, MonotonicTime};
use crate::domain::error::{Code, Error};
use crate::domain::extension::SandboxExtension;
use crate::domain::host_view::HostView;
use crate::domain::hub::{HubEndpoint, HubFormat};
use crate::domain::name::{ExtensionId, HostName, OperationId, SnapshotId};
use crate::domain::snapshot::SnapshotRecord;
use crate::domain::stale::{ReapReport, StaleSettings};
use crate::domain::time::Time;
use crate::domain::undo::UndoSettings;
use crate::manager::hosts::status_log::HostStatusLog;
use crate::manager::hosts::telemetry::Telemetry;
use crate::manager::operation::jobs::Jobs;
use crate::manager::upkeep::sweep_memory::SweepMemory;
use crate::store::catalogue::Catalogue;
use crate::store::{
    CreditStore, EarlierStore, EventLog, HostStore, Installation, Locks, OperationStore,
    OutboxStore, PatchStore, PinnedProfileStore, PlanStore, SandboxStore, SnapshotStore,
    SweepStore,
};
use crate::transport::Transports;

/// The present moment. The manager asks it; the domain gets it.
pub(crate) type Clock = Arc<dyn Fn() -> Time + Send + Sync>;

/// The monotonic clock beside it.
pub(crate) type MonotonicClock = Arc<dyn Fn() -> MonotonicTime + Send + Sync>;

/// The catalogue, read when it is first asked for.
pub(crate) type LazyCatalogue = Arc<LazyLock<Catalogue, Box<dyn FnOnce() -> Catalogue + Send>>>;

/// 32 random bits, for ids.
pub(crate) type Random32 = Arc<dyn Fn() -> u32 + Send + Sync>;

/// Whether a process of this machine is there, by its number, and was at that time: a number is used again.
pub(crate) type Alive = Arc<dyn Fn(u32, Time) -> bool + Send + Sync>;

/// Settings that the manager takes from the configuration and the environment.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The profile of a create without one.
    pub default_profile: String,
    /// The host behind the profile's list.
    pub default_host: HostName,
    /// `SANDBOXER_HOST`.
    pub environment_host: Option<String>,
    /// `SANDBOXER_COMPOSE_CMD`.
    pub compose_cmd: Option<String>,
    /// The operator's home directory, refused as a `directory` input.
    pub home: Option<PathBuf>,
    /// Name of this machine, for who holds an operation.
    pub machine: String,
    /// Actor of this process.
    pub actor: Actor,
    /// The configuration file, for hints.
    pub config_file: String,
    /// Folder for temporary files.
    pub temporary: PathBuf,
    /// When something is stale.
    pub stale: StaleSettings,
    /// Settings of undo snapshots.
    pub undo: UndoSettings,
}

/// Dependencies of the manager: stores, ways to hosts, extensions, clock. `app.rs` fills them in.
pub struct Dependencies {
    pub sandboxes: Arc<dyn SandboxStore>,
    pub snapshots: Arc<dyn SnapshotStore>,
    pub patches: Arc<dyn PatchStore>,
    pub operations: Arc<dyn OperationStore>,
    /// The hosts, as they said last.
    pub hosts: Arc<dyn HostStore>,
    /// The last sweep.
    pub sweeps: Arc<dyn SweepStore>,
    /// Plans of reaps.
    pub plans: Arc<dyn PlanStore>,
    pub events: Arc<dyn EventLog>,
    /// The outbox, a cursor into it.
    pub outbox: Arc<dyn OutboxStore>,
    /// The State Hub, where one is configured.
    pub hub: Option<Hub>,
    /// Locks across processes.
    pub locks: Arc<dyn Locks>,
    /// Owner ids and counter.
    pub installation: Arc<dyn Installation>,
    /// Records of the earlier tool.
    pub earlier: Arc<dyn EarlierStore>,
    /// Pinned profiles by their hash.
    pub pinned_profiles: Arc<dyn PinnedProfileStore>,
    /// Profiles and extension manifests.
    pub catalogue: LazyCatalogue,
    /// The extensions this build has.
    pub extensions: BTreeMap<ExtensionId, Arc<dyn SandboxExtension>>,
    /// The ways to hosts.
    pub transports: Arc<dyn Transports>,
    /// The ledger of credits.
    pub credits: Arc<dyn CreditStore>,
    /// The present moment.
    pub clock: Clock,
    /// The monotonic clock, which shows that the other one jumped.
    pub monotonic: MonotonicClock,
    /// Random bits.
    pub random_u32: Random32,
    /// Whether a process of this machine is there.
    pub alive: Alive,
    /// From configuration and environment.
    pub settings: Settings,
}

/// State Hub: the way to it, and what it gets.
pub struct Hub {
    /// The way.
    pub endpoint: Arc<dyn HubEndpoint>,
    /// Format of events.
    pub format: HubFormat,
}

/// Callback after an operation that went well on a host: the verbs' own upkeep, which operations know nothing of.
pub(crate) type HostReached = for<'a> fn(&'a Deps, &'a HostName) -> BoxFuture<'a, ()>;

/// Dependencies, with what this process remembers. Cheap to clone.
pub(crate) type Deps = Arc<Shared>;

pub(crate) struct Shared {
    given: Dependencies,
    /// Upkeep of a host that was just reached.
    pub(crate) host_reached: HostReached,
    pub(crate) jobs: Arc<Jobs>,
    /// Snapshots that this process deleted, as they were, until the deletion's outcome is made.
    pub(crate) deleted: Mutex<BTreeMap<SnapshotId, SnapshotRecord>>,
    /// Hosts as this process saw them last, by name.
    pub(crate) seen_hosts: Mutex<BTreeMap<String, HostView>>,
    /// Telemetry of hosts, from one probe to the next.
    pub(crate) telemetry: Telemetry,
    /// Wakes who waits for sizes of directories.
    pub(crate) measured: tokio::sync::Notify,
    /// Deep checks that ended and whose findings nobody has fetched yet.
    pub(crate) deeply_checked: Mutex<BTreeMap<OperationId, HostView>>,
    /// Reaps that run, or ended and whose report nobody has fetched yet.
    pub(crate) reaps: Mutex<BTreeMap<OperationId, ReapReport>>,
    /// Status of hosts, as the event log has it.
    pub(crate) host_status_log: tokio::sync::Mutex<HostStatusLog>,
    pub(crate) sweep: SweepMemory,
    /// Wakes the follower of the event log.
    pub(crate) log_grew: tokio::sync::Notify,
    /// When delivery to the State Hub ends, once a command is done.
    pub(crate) delivery_end: tokio::sync::watch::Sender<Option<tokio::time::Instant>>,
    /// Whether this process appended to the event log.
    has_appended: AtomicBool,
    /// The follower of the event log is started once.
    pub(crate) following: Once,
}

impl Shared {
    pub(crate) fn new(given: Dependencies, host_reached: HostReached) -> Deps {
        Arc::new(Self {
            given,
            host_reached,
            jobs: Arc::default(),
            deleted: Mutex::default(),
            seen_hosts: Mutex::default(),
            telemetry: Telemetry::default(),
            measured: tokio::sync::Notify::new(),
            deeply_checked: Mutex::default(),
            reaps: Mutex::default(),
            host_status_log: tokio::sync::Mutex::default(),
            sweep: SweepMemory::default(),
            log_grew: tokio::sync::Notify::new(),
            delivery_end: tokio::sync::watch::Sender::new(None),
            has_appended: AtomicBool::new(false),
            following: Once::new(),
        })
    }

    /// Notes that this process appended to the event log, and wakes who follows it.
    pub(crate) fn appended(&self) {
        self.has_appended.store(true, Ordering::Relaxed);
        self.log_grew.notify_one();
    }

    /// Whether this process changed something that has an event.
    pub(crate) fn has_changed_something(&self) -> bool {
        self.has_appended.load(Ordering::Relaxed)
    }

    pub(crate) fn now(&self) -> Time {
        (self.clock)()
    }

    pub(crate) fn read_clocks(&self) -> ClockReading {
        ClockReading { wall: self.now(), monotonic: (self.monotonic)() }
    }

    pub(crate) fn actor(&self) -> Actor {
        self.settings.actor.clone()
    }

    /// The extension of this name.
    ///
    /// Errors: `unsupported` where this build has none.
    pub(crate) fn extension(&self, id: &ExtensionId) -> Result<Arc<dyn SandboxExtension>, Error> {
        self.extensions.get(id.as_str()).cloned().ok_or_else(|| {
            Error::new(Code::Unsupported, format!("this version of sandboxer has no {id}"))
                .hint("`sandboxer extensions list` shows what is available")
        })
    }

    /// The version in the manifest of an extension.
    pub(crate) fn extension_version(&self, id: &ExtensionId) -> Option<String> {
        let manifest = self.catalogue.extension(id.as_str()).and_then(|entry| entry.definition());
        manifest.ok().map(|manifest| manifest.version.to_string())
    }
}

impl Deref for Shared {
    type Target = Dependencies;

    fn deref(&self) -> &Dependencies {
        &self.given
    }
}
