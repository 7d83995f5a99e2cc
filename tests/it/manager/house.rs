//! A manager over the real files and a scripted extension, and a second one as another process would have it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, LazyLock};

use async_trait::async_trait;
use sandboxer::domain::actor::Actor;
use sandboxer::domain::clock::MonotonicTime;
use sandboxer::domain::extension::SandboxExtension;
use sandboxer::domain::host::HostSpec;
use sandboxer::domain::name::{EventId, PatchId};
use sandboxer::domain::request::{CreateRequest, DestroyRequest, EventQuery};
use sandboxer::domain::sandbox::SandboxRecord;
use sandboxer::domain::{Code, Error, ExtensionId, HostName, Patch, SandboxId, SnapshotId, Time};
use sandboxer::manager::{Dependencies, Hub, SandboxManager, Settings};
use sandboxer::store::catalogue::Catalogue;
use sandboxer::store::json::JsonStores;
use sandboxer::store::{Held, Locks, PatchStore};
use sandboxer::transport::hub::HttpHub;
use sandboxer::transport::pool::Pool;
use sandboxer::transport::{Transport, Transports};

use super::scripted::{Act, Scripted, Shared};

pub(crate) fn now() -> Time {
    Time::new(jiff::Timestamp::now())
}

pub(crate) fn manager(data: &Path, script: &Arc<Scripted>) -> SandboxManager {
    manager_with(data, script, "local")
}

/// A manager with this `default_host`.
pub(crate) fn manager_with(
    data: &Path,
    script: &Arc<Scripted>,
    default_host: &str,
) -> SandboxManager {
    manager_on(data, script, default_host, Vec::new())
}

/// A manager with these hosts in its configuration.
pub(crate) fn manager_on(
    data: &Path,
    script: &Arc<Scripted>,
    default_host: &str,
    hosts: Vec<HostSpec>,
) -> SandboxManager {
    let stores = JsonStores::open(data).unwrap();
    let id: ExtensionId = "ext.compose-ssh".into();
    let mut extensions: BTreeMap<ExtensionId, Arc<dyn SandboxExtension>> = BTreeMap::new();
    extensions.insert(id.clone(), Arc::new(Shared::new(script, id)));
    let mut available = BTreeSet::from(["ext.compose-ssh"]);
    if let Some(paid) = &*script.paid.lock().unwrap() {
        let id: ExtensionId = "ext.saas-stub".into();
        extensions.insert(id.clone(), Arc::new(Shared::new(paid, id)));
        available.insert("ext.saas-stub");
    }
    let profiles = data.join("profiles");
    SandboxManager::new(Dependencies {
        sandboxes: stores.sandboxes,
        snapshots: stores.snapshots,
        patches: Arc::new(Patches { kept: stores.patches, script: Arc::clone(script) }),
        operations: stores.operations,
        hosts: stores.hosts,
        sweeps: stores.sweeps,
        plans: stores.plans,
        hub: script.hub.lock().unwrap().clone().map(|(url, token, format)| {
            stores.events.keep_for_delivery();
            Hub { endpoint: Arc::new(HttpHub::new(&url, token)), format }
        }),
        events: stores.events,
        outbox: stores.outbox,
        locks: Arc::new(SlowLocks { kept: stores.locks, script: Arc::clone(script) }),
        installation: stores.installation,
        earlier: stores.earlier,
        pinned_profiles: stores.pinned_profiles,
        catalogue: Arc::new(LazyLock::new(Box::new(move || {
            Catalogue::load(Some(&profiles), None, &available)
        }))),
        extensions,
        transports: Arc::new(Ways {
            pool: Pool::new(hosts.clone(), data.join("ctl"), None),
            hosts,
            script: Arc::clone(script),
        }),
        credits: stores.credits,
        clock: {
            let script = Arc::clone(script);
            Arc::new(move || {
                let ahead = script.wall_ahead.load(Ordering::SeqCst);
                Time::new(jiff::Timestamp::now() + jiff::SignedDuration::from_millis(ahead))
            })
        },
        monotonic: {
            let script = Arc::clone(script);
            Arc::new(move || {
                let ran = jiff::Timestamp::now().as_millisecond() - 1_700_000_000_000;
                let elapsed = ran + script.monotonic_ahead.load(Ordering::SeqCst);
                MonotonicTime { boot: "boot".into(), elapsed_ms: elapsed.try_into().unwrap() }
            })
        },
        random_u32: Arc::new(|| uuid::Uuid::new_v4().as_fields().0),
        alive: {
            let script = Arc::clone(script);
            Arc::new(move |_, _| *script.lives.lock().unwrap())
        },
        settings: Settings {
            default_profile: "profile.sandbox-canary".into(),
            default_host: HostName::new(default_host),
            environment_host: None,
            compose_cmd: None,
            home: None,
            machine: "here".into(),
            actor: Actor::parse("adm:test").unwrap(),
            config_file: "config.yaml".into(),
            temporary: data.join("tmp"),
            stale: sandboxer::domain::stale::StaleSettings::default(),
            undo: script.undo.lock().unwrap().clone(),
        },
    })
}

/// The locks of the files; something may happen right before one is asked for.
struct SlowLocks {
    kept: Arc<dyn Locks>,
    script: Arc<Scripted>,
}

#[async_trait]
impl Locks for SlowLocks {
    async fn try_lock(&self, id: &SandboxId) -> Result<Option<Box<dyn Held>>, Error> {
        let before = self.script.before_lock.lock().unwrap().pop_front();
        if let Some(before) = before {
            before.await;
        }
        self.kept.try_lock(id).await
    }

    async fn try_lock_snapshot(&self, id: &SnapshotId) -> Result<Option<Box<dyn Held>>, Error> {
        self.kept.try_lock_snapshot(id).await
    }

    async fn tidy(&self, live: BTreeSet<SandboxId>) -> Result<(), Error> {
        self.kept.tidy(live).await
    }
}

/// The patches of the files; somebody who reads them may be slow to go on.
struct Patches {
    kept: Arc<dyn PatchStore>,
    script: Arc<Scripted>,
}

#[async_trait]
impl PatchStore for Patches {
    async fn insert(&self, patch: Patch) -> Result<Patch, Error> {
        self.kept.insert(patch).await
    }

    async fn list(&self) -> Result<Vec<Patch>, Error> {
        let read = self.kept.list().await;
        let act = self.script.list.lock().unwrap().pop_front();
        if let Some(act) = act {
            self.script.note("patches read");
            Scripted::act(act).await?;
        }
        read
    }

    async fn clear_pending(&self, events: &BTreeSet<EventId>) -> Result<(), Error> {
        self.kept.clear_pending(events).await
    }

    async fn remove(&self, id: &PatchId) -> Result<Option<Patch>, Error> {
        self.kept.remove(id).await
    }

    async fn version(&self) -> Result<u64, Error> {
        self.kept.version().await
    }
}

/// The ways to hosts; `second`, `third` and `gone` are other names of this machine, on which the script has other archives. Nothing
/// configures `gone`. What is configured is this machine as well.
struct Ways {
    pool: Pool,
    hosts: Vec<HostSpec>,
    script: Arc<Scripted>,
}

#[async_trait]
impl Transports for Ways {
    async fn open(&self, host: &HostName) -> Result<Arc<dyn Transport>, Error> {
        let here = matches!(host.as_str(), "second" | "third" | "gone")
            || self.hosts.iter().any(|spec| spec.name.same(host.as_str()));
        self.pool.open(if here { &LOCAL } else { host }).await
    }

    fn spec(&self, host: &HostName) -> Option<HostSpec> {
        let here = matches!(host.as_str(), "local" | "second" | "third");
        if host.as_str() == "third" && self.script.third_is_forbidden.load(Ordering::SeqCst) {
            let forbid = Some("production".to_owned());
            return Some(HostSpec { forbid, ..HostSpec::named("third") });
        }
        let configured = self.hosts.iter().find(|spec| spec.name.same(host.as_str()));
        match configured {
            Some(spec) => Some(spec.clone()),
            None if here => Some(HostSpec::named(host.as_str())),
            None => self.pool.spec(host),
        }
    }

    fn hosts(&self) -> Vec<HostSpec> {
        self.pool.hosts()
    }

    async fn close(&self) {
        self.pool.close().await;
    }
}

static LOCAL: LazyLock<HostName> = LazyLock::new(|| HostName::new("local"));

pub(crate) struct House {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) script: Arc<Scripted>,
    pub(crate) manager: SandboxManager,
    pub(crate) other: SandboxManager,
}

/// A manager, and a second one on the same data directory, as another process would have it.
pub(crate) fn house() -> House {
    let folder = tempfile::tempdir().unwrap();
    let script = Arc::new(Scripted::default());
    let manager = manager(folder.path(), &script);
    let other = self::manager(folder.path(), &script);
    House { folder, script, manager, other }
}

impl House {
    pub(crate) fn script(&self, provision: &[Act], ready: &[Act], teardown: &[Act]) -> &Self {
        self.script.provision.lock().unwrap().extend(provision.iter().cloned());
        self.script.ready.lock().unwrap().extend(ready.iter().cloned());
        self.script.teardown.lock().unwrap().extend(teardown.iter().cloned());
        self
    }

    pub(crate) async fn create(&self, request: CreateRequest) -> (SandboxRecord, Result<(), Code>) {
        let started = self.manager.create(request).await.unwrap();
        let (operation, record) = self.manager.finish(&started.operation.unwrap()).await.unwrap();
        (record.unwrap(), operation.error.map_or(Ok(()), |error| Err(error.code)))
    }

    pub(crate) async fn destroy(&self, id: &str) -> (SandboxRecord, Result<(), Code>) {
        let request = DestroyRequest { id: id.to_owned(), ..DestroyRequest::default() };
        let started = self.manager.destroy(&request).await.unwrap();
        let (operation, record) = self.manager.finish(&started.operation.unwrap()).await.unwrap();
        (record.unwrap(), operation.error.map_or(Ok(()), |error| Err(error.code)))
    }

    pub(crate) async fn kinds(&self) -> Vec<String> {
        let events = self.manager.events(&EventQuery::default()).await.unwrap();
        assert!(
            events.windows(2).all(|pair| pair[0].seq + 1 == pair[1].seq),
            "numbers have gaps: {events:?}"
        );
        events.iter().map(|event| event.kind.to_string()).collect()
    }
}
