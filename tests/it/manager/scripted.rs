//! An extension that does as it is told and writes down what it was asked.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use tokio::sync::Notify;

use sandboxer::domain::archive::ARRIVED_OTHERWISE;
use sandboxer::domain::archive::SnapshotArchives;
use sandboxer::domain::error::Kind;
use sandboxer::domain::extension::{
    AdoptClaim, AdoptLook, Capabilities, Capability, CaptureRequest, Captured, ExecRun, HostAnswer,
    Inspection, MeterQuote, PatchOutcome, PatchRun, Preview, ProvisionRequest, Provisioned,
    Readiness, Refusal, RestoreSource, Restored, SandboxExtension, Target, Unsettled,
};
use sandboxer::domain::facts::HostIdentity;
use sandboxer::domain::host_report::{HostReport, RuntimeDetection};
use sandboxer::domain::hub::HubFormat;
use sandboxer::domain::name::SnapshotId;
use sandboxer::domain::output::{OutputSink, Source};
use sandboxer::domain::profile::Profile;
use sandboxer::domain::reporter::{Learnt, Reporter};
use sandboxer::domain::root::{KnownRoots, MarkedRoot};
use sandboxer::domain::sandbox::{Reachability, Rewrite, SandboxRecord, Service};
use sandboxer::domain::teardown::{Resource, TeardownLine, TeardownOutcome, TeardownReport};
use sandboxer::domain::undo::{Footprint, UndoSettings};
use sandboxer::domain::{Code, Error, ExtensionId, HostName, SandboxId, Usd};
use sandboxer::transport::hub::HubToken;

use super::shelf::{Archives, Shelf};

/// What the scripted extension does at a step.
#[derive(Clone)]
pub(crate) enum Act {
    Well,
    Fail(Code, &'static str),
    Untouched(Code),
    Panic,
    Hang,
    Slow,
    LeaveNetwork,
    Refuse,
    /// The archive is proved to be another one.
    Altered,
    /// What was copied did not arrive as it was sent.
    Otherwise,
}

/// How a patch's script ends.
#[derive(Clone)]
pub(crate) enum Script {
    Exits(i32),
    /// Its time is over.
    TimedOut,
    /// Nobody knows how.
    LinkBreaks,
    /// It is not even begun.
    NotBegun,
    Hangs,
    /// It takes so long, and exits 0.
    Takes(Duration),
    /// It takes until it is let go, and exits 0.
    Until(Arc<Notify>),
    /// It takes so long, and is ended when its time is over, as a host does it.
    Works(Duration),
}

/// An extension that does as it is told and writes down what it was asked.
#[derive(Default)]
pub(crate) struct Scripted {
    pub(crate) provision: Mutex<VecDeque<Act>>,
    pub(crate) ready: Mutex<VecDeque<Act>>,
    /// What is to be waited for beyond that, and how that goes.
    pub(crate) unsettled: Mutex<Unsettled>,
    pub(crate) settled: Mutex<VecDeque<Act>>,
    pub(crate) dated: Mutex<VecDeque<Act>>,
    pub(crate) teardown: Mutex<VecDeque<Act>>,
    /// Hosts on which nothing is torn down or dated: they do not answer.
    pub(crate) down: Mutex<BTreeSet<&'static str>>,
    /// Milliseconds by which the wall clock and the monotonic one are ahead of this machine's.
    pub(crate) wall_ahead: AtomicI64,
    pub(crate) monotonic_ahead: AtomicI64,
    /// Whether the configuration forbids `third`.
    pub(crate) third_is_forbidden: AtomicBool,
    /// What happens right before the next locks of sandboxes are asked for.
    pub(crate) before_lock: Mutex<VecDeque<BoxFuture<'static, ()>>>,
    pub(crate) preview: Mutex<VecDeque<Act>>,
    /// How the next scripts of patches end, and what the next sleeps and wakes do.
    pub(crate) patch: Mutex<VecDeque<Script>>,
    /// The time that each of them was given.
    pub(crate) limits: Mutex<Vec<Duration>>,
    pub(crate) sleep: Mutex<VecDeque<Act>>,
    pub(crate) wake: Mutex<VecDeque<Act>>,
    /// What the next to read the patches do before they go on.
    pub(crate) list: Mutex<VecDeque<Act>>,
    /// What the next commands in sandboxes print; then, what was written last is there to be read.
    pub(crate) says: Mutex<VecDeque<&'static str>>,
    written: Mutex<String>,
    /// What `inspect` finds, and what `services` reports of each sandbox that it is asked about.
    pub(crate) seen: Mutex<Inspection>,
    /// Whether the host has nothing of any sandbox.
    pub(crate) nothing_there: Mutex<bool>,
    /// Whether what has a workspace only has containers all the same.
    pub(crate) has_containers: Mutex<bool>,
    /// Whether the process that an operation names lives.
    pub(crate) lives: Mutex<bool>,
    /// The counter that the host has of the installation.
    pub(crate) host_counter: Mutex<u64>,
    /// The root that the host says it has, where that is not known to who asks.
    pub(crate) root: Mutex<Option<MarkedRoot>>,
    /// What makers and removers were told of roots.
    pub(crate) told: Mutex<Vec<KnownRoots>>,
    /// Where sandboxes are instead of `/srv`.
    pub(crate) workdirs: Mutex<Option<PathBuf>>,
    /// What hosts answer before anything is made, by name.
    pub(crate) hosts: Mutex<BTreeMap<String, Result<HostAnswer, Error>>>,
    /// Hosts that were asked so, in order.
    pub(crate) examined: Mutex<Vec<String>>,
    /// What it was told of detections when it asked hosts.
    pub(crate) known: Mutex<Vec<Option<RuntimeDetection>>>,
    /// What a host says of itself when something is made there, and what makers were told that it said last.
    pub(crate) report: Mutex<Option<HostReport>>,
    pub(crate) reports: Mutex<Vec<Option<HostReport>>>,
    /// The State Hub of managers that are made from then on.
    pub(crate) hub: Mutex<Option<(String, HubToken, HubFormat)>>,
    /// What undo snapshots may take, in managers that are made from then on.
    pub(crate) undo: Mutex<UndoSettings>,
    /// Micro-dollars per second that sandboxes cost; none: nothing.
    pub(crate) price: Mutex<Option<i64>>,
    /// Micro-dollars that each cost in all, where that is not by the price, and how the next questions for it go.
    pub(crate) cost: Mutex<Option<i64>>,
    pub(crate) metered: Mutex<VecDeque<Act>>,
    /// How large sandboxes are, and what their host has room for.
    pub(crate) footprint: Mutex<Footprint>,
    /// How the next questions for that go.
    pub(crate) measure: Mutex<VecDeque<Act>>,
    /// What its host keeps of snapshots.
    pub(crate) shelf: Shelf,
    pub(crate) asked: Mutex<Vec<String>>,
    /// Records as the manifests on hosts have them.
    pub(crate) manifests: Mutex<BTreeMap<SandboxId, SandboxRecord>>,
    /// Script of a second extension, `ext.saas-stub`, in managers that are made from then on.
    pub(crate) paid: Mutex<Option<Arc<Scripted>>>,
    /// Place of its own.
    pub(crate) place: Mutex<Option<HostName>>,
    /// Price of a sandbox, where that is not by the second.
    pub(crate) quote: Mutex<Option<MeterQuote>>,
    /// `config` that it was given with each that it made.
    pub(crate) configs: Mutex<Vec<String>>,
}

impl Scripted {
    fn next(queue: &Mutex<VecDeque<Act>>) -> Act {
        queue.lock().unwrap().pop_front().unwrap_or(Act::Well)
    }

    pub(crate) fn note(&self, what: impl Into<String>) {
        self.asked.lock().unwrap().push(what.into());
    }

    fn find_root(&self, known: &KnownRoots, reporter: &dyn Reporter) {
        self.told.lock().unwrap().push(known.clone());
        let found = self.root.lock().unwrap().clone().filter(|root| !known.marked.contains(root));
        if let Some(root) = found {
            reporter.found_root(&root);
        }
    }

    /// Time passes.
    pub(crate) fn pass(&self, seconds: i64) {
        self.wall_ahead.fetch_add(seconds * 1000, Ordering::SeqCst);
        self.monotonic_ahead.fetch_add(seconds * 1000, Ordering::SeqCst);
    }

    /// The wall clock jumps: it was set, or the machine slept.
    pub(crate) fn jump(&self, seconds: i64) {
        self.wall_ahead.fetch_add(seconds * 1000, Ordering::SeqCst);
    }

    fn check_up(&self, target: &Target) -> Result<(), Error> {
        if self.down.lock().unwrap().contains(target.host.as_str()) {
            return Err(Error::new(Code::HostUnreachable, "no route").untouched());
        }
        Ok(())
    }

    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    pub(crate) async fn act(act: Act) -> Result<(), Error> {
        match act {
            Act::Fail(code, words) => Err(Error::new(code, words)),
            Act::Untouched(code) => Err(Error::new(code, "before anything").untouched()),
            Act::Altered => {
                let fault = Error::new(Code::OperationFailed, "the archive was cut short");
                Err(fault.of_kind(Kind::ArchiveAltered).detail("kind", "altered"))
            }
            Act::Otherwise => {
                let fault = Error::new(
                    Code::OperationFailed,
                    "the archive did not arrive on second as it was sent",
                );
                Err(fault.of_kind(Kind::ArrivedOtherwise).detail("kind", ARRIVED_OTHERWISE))
            }
            Act::Panic => panic!("a scripted panic"),
            Act::Hang => {
                tokio::time::sleep(Duration::from_hours(1)).await;
                Ok(())
            }
            Act::Slow => {
                tokio::time::sleep(Duration::from_secs(2)).await;
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// The script as the manager holds it.
pub(crate) struct Shared {
    script: Arc<Scripted>,
    id: ExtensionId,
    archives: Archives,
}

impl Shared {
    pub(crate) fn new(script: &Arc<Scripted>, id: ExtensionId) -> Self {
        Self { script: Arc::clone(script), id, archives: Archives(Arc::clone(script)) }
    }
}

#[async_trait]
impl SandboxExtension for Shared {
    fn id(&self) -> &ExtensionId {
        &self.id
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::from([
            Capability::Snapshots,
            Capability::Patches,
            Capability::Sleep,
            Capability::Exec,
            Capability::Adopt,
        ])
    }

    fn place(&self) -> Option<HostName> {
        self.script.place.lock().unwrap().clone()
    }

    fn may_have_services(&self, profile: &Profile) -> bool {
        *self.script.has_containers.lock().unwrap() || profile.config["workspace_only"] != true
    }

    async fn preview(&self, _: &ProvisionRequest) -> Result<Preview, Error> {
        let mut preview = Preview::default();
        if matches!(Scripted::next(&self.script.preview), Act::Refuse) {
            let refusal = Refusal {
                path: "services.web.privileged".into(),
                message: "refused".into(),
                allow: None,
            };
            preview.refusals.push(refusal);
        }
        Ok(preview)
    }

    async fn ask_host(
        &self,
        _: &Profile,
        host: &HostName,
        known: Option<&RuntimeDetection>,
    ) -> Result<HostAnswer, Error> {
        self.script.examined.lock().unwrap().push(host.to_string());
        self.script.known.lock().unwrap().push(known.cloned());
        let answer = self.script.hosts.lock().unwrap().get(host.as_str()).cloned();
        answer.unwrap_or_else(|| Ok(HostAnswer::default()))
    }

    async fn estimate_cost(
        &self,
        _: &Profile,
        _: &BTreeMap<String, String>,
        time: Duration,
    ) -> Result<Option<MeterQuote>, Error> {
        let price = *self.script.price.lock().unwrap();
        let by_price = price.map(|micros| MeterQuote {
            usd: Usd::from_micros(micros).part(time.as_millis().try_into().unwrap(), 1000),
            basis: format!("{micros} micro-dollars per second"),
        });
        Ok(self.script.quote.lock().unwrap().clone().or(by_price))
    }

    async fn meter_actual(&self, _: &Target, time: Duration) -> Result<Option<Usd>, Error> {
        Scripted::act(Scripted::next(&self.script.metered)).await?;
        let cost = *self.script.cost.lock().unwrap();
        let price = *self.script.price.lock().unwrap();
        let by_price = price.map(|micros| {
            Usd::from_micros(micros).part(time.as_millis().try_into().unwrap(), 1000)
        });
        Ok(cost.map(Usd::from_micros).or(by_price))
    }

    async fn provision(
        &self,
        request: &ProvisionRequest,
        r: &dyn Reporter,
    ) -> Result<Provisioned, Error> {
        self.script.note(format!("provision {}", request.owner.counter));
        self.script.configs.lock().unwrap().push(request.profile.config.to_string());
        let identity = HostIdentity { machine_id: "m".into(), engine: None, engine_id: None };
        self.script.find_root(&request.roots, r);
        let root = self.script.workdirs.lock().unwrap().clone().unwrap_or_else(|| "/srv".into());
        let workdir = root.join(request.id.project()).display().to_string();
        let rewrites =
            vec![Rewrite { path: "services.web.container_name".into(), what: "dropped".into() }];
        r.learnt(&Learnt {
            workdir: workdir.clone(),
            identity: identity.clone(),
            rewrites: rewrites.clone(),
        });
        Scripted::act(Scripted::next(&self.script.provision)).await?;
        self.script.reports.lock().unwrap().push(request.report.as_deref().cloned());
        let report = self.script.report.lock().unwrap().clone().map(Box::new);
        Ok(Provisioned {
            handle: serde_json::json!({}),
            workdir,
            identity,
            rewrites,
            report,
            counter_ahead: None,
            start_output: None,
            ready: None,
        })
    }

    async fn wait_ready(
        &self,
        target: &Target,
        _: Duration,
        _: &dyn Reporter,
    ) -> Result<Readiness, Error> {
        self.script.note("wait_ready");
        Scripted::act(Scripted::next(&self.script.ready)).await?;
        let reachability = Reachability {
            host: target.host.clone(),
            ssh: String::new(),
            workdir: target.workdir.clone().unwrap_or_default(),
            endpoints: Vec::new(),
            attachments: Vec::new(),
        };
        let unsettled = self.script.unsettled.lock().unwrap().clone();
        Ok(Readiness { reachability, services: Vec::new(), unsettled })
    }

    async fn wait_settled(
        &self,
        _: &Target,
        found: Readiness,
        _: Duration,
    ) -> Result<Readiness, Error> {
        self.script.note("wait_settled");
        Scripted::act(Scripted::next(&self.script.settled)).await?;
        Ok(Readiness { unsettled: Unsettled::None, ..found })
    }

    async fn write_manifest(&self, target: &Target, record: &SandboxRecord) -> Result<(), Error> {
        self.script.note("write_manifest");
        self.script.check_up(target)?;
        self.script.manifests.lock().unwrap().insert(target.id.clone(), record.clone());
        Scripted::act(Scripted::next(&self.script.dated)).await
    }

    async fn teardown(&self, target: &Target, r: &dyn Reporter) -> Result<TeardownReport, Error> {
        self.script.find_root(&target.roots, r);
        let host = *self.script.host_counter.lock().unwrap();
        if target.stamp.as_ref().is_some_and(|ours| host > ours.counter) {
            let fault = Error::new(Code::Conflict, "an old copy")
                .of_kind(Kind::Behind(host))
                .detail("kind", "behind")
                .detail("counter", host);
            return Err(fault.untouched());
        }
        self.script.note(format!("teardown {}", target.workdir.as_deref().unwrap_or("-")));
        self.script.check_up(target)?;
        let act = Scripted::next(&self.script.teardown);
        let resource =
            Resource { kind: "network".into(), id: format!("{}_default", target.id.project()) };
        let left = matches!(act, Act::LeaveNetwork);
        if !matches!(act, Act::Untouched(_)) {
            r.began();
        }
        Scripted::act(act).await?;
        let outcome = if left { TeardownOutcome::Failed } else { TeardownOutcome::Removed };
        let reason = left.then(|| "in use".to_owned());
        let lines = vec![TeardownLine { resource: resource.clone(), outcome, reason }];
        Ok(TeardownReport {
            lines,
            leftovers: if left { vec![resource] } else { Vec::new() },
            untouched: false,
        })
    }

    async fn inspect(&self, _: &Target) -> Result<Inspection, Error> {
        self.script.note("inspect");
        Scripted::act(Scripted::next(&self.script.ready)).await?;
        Ok(Inspection {
            counter: Some(*self.script.host_counter.lock().unwrap()),
            ..self.script.seen.lock().unwrap().clone()
        })
    }

    async fn adopt(&self, target: &Target, claim: AdoptClaim<'_>) -> Result<AdoptLook, Error> {
        self.script.note(format!("adopt {}", target.id));
        self.script.check_up(target)?;
        let mut seen = self.script.seen.lock().unwrap().clone();
        let id = target.workdir.clone().unwrap_or_default();
        seen.resources.push(Resource { kind: "directory".into(), id });
        let machine_id = claim.machine_id.to_owned();
        Ok(AdoptLook {
            handle: claim.handle.cloned(),
            identity: HostIdentity { machine_id, engine: None, engine_id: None },
            seen,
            remarks: Vec::new(),
        })
    }

    async fn snapshot(
        &self,
        target: &Target,
        request: &CaptureRequest,
        _: &dyn Reporter,
    ) -> Result<Captured, Error> {
        self.script.note(format!("snapshot {}", request.snapshot.id));
        self.script.shelf.capture(&target.profile, request).await
    }

    async fn measure(&self, target: &Target) -> Result<Footprint, Error> {
        self.script.note(format!("measure {}", target.id));
        self.script.check_up(target)?;
        Scripted::act(Scripted::next(&self.script.measure)).await?;
        Ok(*self.script.footprint.lock().unwrap())
    }

    async fn restore_from_snapshot(
        &self,
        request: &ProvisionRequest,
        source: &RestoreSource,
        r: &dyn Reporter,
    ) -> Result<Restored, Error> {
        self.script.note(format!("restore {}", source.place.id));
        self.script.shelf.restore(request, source).await?;
        let provisioned = self.provision(request, r).await?;
        Ok(Restored { provisioned, not_preserved: BTreeMap::new() })
    }

    async fn sleep(&self, _: &Target, _: &dyn Reporter) -> Result<(), Error> {
        self.script.note("sleep");
        Scripted::act(Scripted::next(&self.script.sleep)).await
    }

    async fn wake(
        &self,
        target: &Target,
        limit: Duration,
        r: &dyn Reporter,
    ) -> Result<Readiness, Error> {
        self.script.note("wake");
        Scripted::act(Scripted::next(&self.script.wake)).await?;
        self.wait_ready(target, limit, r).await
    }

    async fn run_patch(
        &self,
        target: &Target,
        run: &PatchRun,
        _: &dyn Reporter,
    ) -> Result<PatchOutcome, Error> {
        self.script.note(format!("patch {} on {}", run.patch.sequence, target.id));
        self.script.limits.lock().unwrap().push(run.limit);
        let script = self.script.patch.lock().unwrap().pop_front().unwrap_or(Script::Exits(0));
        let (exit_status, timed_out) = match script {
            Script::Exits(status) => (status, false),
            Script::TimedOut => (143, true),
            Script::LinkBreaks => {
                return Err(Error::new(Code::HostUnreachable, "the link broke"));
            }
            Script::NotBegun => {
                return Err(Error::new(Code::HostUnreachable, "no route")
                    .detail("began", false)
                    .of_kind(Kind::NeverBegan));
            }
            Script::Hangs => {
                tokio::time::sleep(Duration::from_hours(1)).await;
                (0, false)
            }
            Script::Takes(time) => {
                tokio::time::sleep(time).await;
                (0, false)
            }
            Script::Until(go_on) => {
                go_on.notified().await;
                (0, false)
            }
            Script::Works(time) => {
                tokio::time::sleep(time.min(run.limit)).await;
                if time > run.limit { (143, true) } else { (0, false) }
            }
        };
        let output = format!("ran {}\n", run.patch.script);
        Ok(PatchOutcome { exit_status, timed_out, output, duration: Duration::from_secs(2) })
    }

    async fn resume(&self, _: &Target, _: Option<&SnapshotId>) -> Result<(), Error> {
        self.script.note("resume");
        let act = self.script.shelf.resume.lock().unwrap().pop_front();
        Scripted::act(act.unwrap_or(Act::Well)).await
    }

    /// `sh -c SCRIPT sh FILE [TEXT]`, as a deep check has it: with a text it is a write.
    async fn exec(
        &self,
        _: &Target,
        run: ExecRun<'_>,
        sink: &mut dyn OutputSink,
    ) -> Result<Option<i32>, Error> {
        self.script.note(format!("exec {}", run.command[4]));
        if let Some(text) = run.command.get(5) {
            text.clone_into(&mut self.script.written.lock().unwrap());
        }
        let says = self.script.says.lock().unwrap().pop_front().map(str::to_owned);
        let says = says.unwrap_or_else(|| self.script.written.lock().unwrap().clone());
        sink.take(Source::Stdout, says.as_bytes()).await;
        Ok(Some(0))
    }

    fn archives(&self) -> Option<&dyn SnapshotArchives> {
        Some(&self.archives)
    }

    async fn services(
        &self,
        _: &HostName,
        targets: &[Target],
    ) -> Result<BTreeMap<SandboxId, Vec<Service>>, Error> {
        self.script.note(format!("services {}", targets.len()));
        let seen = self.script.seen.lock().unwrap().services.clone();
        if *self.script.nothing_there.lock().unwrap() {
            return Ok(BTreeMap::new());
        }
        Ok(targets.iter().map(|target| (target.id.clone(), seen.clone())).collect())
    }
}
