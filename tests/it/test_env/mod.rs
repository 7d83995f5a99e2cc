//! One world for all tests: the real manager behind a real [`LocalClient`], over the real files in a temporary folder, a scripted
//! extension, scripted archives and scripted hosts; and a second manager, as another process would have it.

pub(crate) mod archives;
mod extension;
pub(crate) mod fixture;
pub(crate) mod hosts;
pub(crate) mod script;
mod stores;
mod verbs;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, LazyLock};

use sandboxer::client::local::LocalClient;
use sandboxer::domain::actor::Actor;
use sandboxer::domain::clock::MonotonicTime;
use sandboxer::domain::extension::SandboxExtension;
use sandboxer::domain::host::HostSpec;
use sandboxer::domain::{ExtensionId, HostName, Time};
use sandboxer::manager::{Dependencies, Hub, SandboxManager, Settings};
use sandboxer::store::catalogue::Catalogue;
use sandboxer::store::json::JsonStores;
use sandboxer::transport::hub::HttpHub;
use sandboxer::transport::pool::Pool;

use extension::Shared;
use hosts::Ways;
use script::{Act, Scripted};
use stores::{Patches, SlowLocks};
pub(crate) use verbs::{
    finished, from_snapshot, named, of, there, with_restored, with_sandbox, with_snapshot,
};

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
    if let Some(paid) = &script.paid.get() {
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
        hub: script.hub.get().map(|(url, token, format)| {
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
        transports: Arc::new(Ways::new(
            Pool::new(hosts.clone(), data.join("ctl"), None),
            hosts,
            Arc::clone(script),
        )),
        credits: stores.credits,
        clock: {
            let script = Arc::clone(script);
            Arc::new(move || script.wall())
        },
        monotonic: {
            let script = Arc::clone(script);
            Arc::new(move || {
                let now = script.standing.get().map_or_else(jiff::Timestamp::now, Time::timestamp);
                let ran = now.as_millisecond() - 1_700_000_000_000;
                let elapsed = ran + script.monotonic_ahead.load(Ordering::SeqCst);
                MonotonicTime { boot: "boot".into(), elapsed_ms: elapsed.try_into().unwrap() }
            })
        },
        random_u32: {
            let script = Arc::clone(script);
            Arc::new(move || script.random_u32())
        },
        alive: {
            let script = Arc::clone(script);
            Arc::new(move |_, _| script.lives.get())
        },
        settings: Settings {
            default_profile: "profile.sandbox-canary".into(),
            default_host: HostName::new(default_host),
            environment_host: None,
            compose_cmd: None,
            home: None,
            machine: "here".into(),
            actor: {
                let actor = script.actor.get();
                actor.unwrap_or_else(|| Actor::parse("adm:test").unwrap())
            },
            config_file: "config.yaml".into(),
            temporary: data.join("tmp"),
            stale: sandboxer::domain::stale::StaleSettings::default(),
            undo: script.undo.get(),
        },
    })
}

/// The world: a console, and a second one on the same data directory.
pub(crate) struct TestEnv {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) script: Arc<Scripted>,
    pub(crate) manager: SandboxManager,
    /// The manager's client.
    pub(crate) client: Arc<LocalClient>,
    /// Manager of another process.
    pub(crate) other: SandboxManager,
}

/// A world in which nothing is yet.
pub(crate) fn test_env() -> TestEnv {
    TestEnv::scripted(Scripted::default(), Vec::new())
}

impl TestEnv {
    /// A world over a script, with these hosts in its configuration.
    pub(crate) fn scripted(script: Scripted, hosts: Vec<HostSpec>) -> Self {
        Self::in_folder(tempfile::tempdir().unwrap(), Arc::new(script), hosts)
    }

    /// A world in a folder in which something may be.
    pub(crate) fn in_folder(
        folder: tempfile::TempDir,
        script: Arc<Scripted>,
        hosts: Vec<HostSpec>,
    ) -> Self {
        let manager = manager_on(folder.path(), &script, "local", hosts.clone());
        let client = Arc::new(LocalClient::new(manager.clone()));
        let other = manager_on(folder.path(), &script, "local", hosts);
        Self { folder, script, manager, client, other }
    }

    /// The stores, as any process opens them.
    pub(crate) fn stores(&self) -> JsonStores {
        JsonStores::open(self.folder.path()).unwrap()
    }

    pub(crate) fn script(&self, provision: &[Act], ready: &[Act], teardown: &[Act]) -> &Self {
        self.script.provision.extend(provision.to_vec());
        self.script.ready.extend(ready.to_vec());
        self.script.teardown.extend(teardown.to_vec());
        self
    }
}
