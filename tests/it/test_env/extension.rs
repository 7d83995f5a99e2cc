//! An extension that does as its script says and writes down what it was asked.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::TryStreamExt;
use futures_util::future::OptionFuture;
use sandboxer::domain::archive::SnapshotArchives;
use sandboxer::domain::error::Kind;
use sandboxer::domain::extension::{
    AdoptClaim, AdoptLook, Capabilities, Capability, CaptureRequest, Captured, ExecRun, HostAnswer,
    Inspection, MeterQuote, PatchOutcome, PatchRun, Preview, ProvisionRequest, Provisioned,
    Readiness, Refusal, RestoreSource, Restored, SandboxExtension, Target, Unsettled,
};
use sandboxer::domain::facts::HostIdentity;
use sandboxer::domain::host_report::RuntimeDetection;
use sandboxer::domain::name::SnapshotId;
use sandboxer::domain::output::{ExecOutput, Interactive, LogLine, LogSink, OutputSink, Source};
use sandboxer::domain::profile::Profile;
use sandboxer::domain::reporter::{Learnt, Reporter};
use sandboxer::domain::sandbox::{Reachability, Rewrite, SandboxRecord, Service};
use sandboxer::domain::teardown::{Resource, TeardownLine, TeardownOutcome, TeardownReport};
use sandboxer::domain::undo::Footprint;
use sandboxer::domain::{Code, Error, ExtensionId, HostName, SandboxId, Usd};

use super::archives::Archives;
use super::script::{Act, LogScript, Script, Scripted};

/// A log that is followed.
struct OpenLog<'a>(&'a Scripted);

impl<'a> OpenLog<'a> {
    fn new(script: &'a Scripted) -> Self {
        script.open_logs.fetch_add(1, Ordering::SeqCst);
        Self(script)
    }

    /// Hands lines over; whether more are wanted.
    async fn hand(&self, lines: &[LogLine], service: Option<&str>, sink: &mut dyn LogSink) -> bool {
        for line in lines.iter().filter(|line| service.is_none_or(|of| line.service == of)) {
            self.0.log_lines.fetch_add(1, Ordering::Relaxed);
            if !sink.take(line.clone()).await {
                return false;
            }
        }
        true
    }
}

impl Drop for OpenLog<'_> {
    fn drop(&mut self) {
        self.0.open_logs.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The script as the manager holds it.
pub(crate) struct Shared {
    script: Arc<Scripted>,
    id: ExtensionId,
    archives: Arc<Archives>,
}

impl Shared {
    pub(crate) fn new(script: &Arc<Scripted>, id: ExtensionId) -> Self {
        Self { script: Arc::clone(script), id, archives: Arc::new(Archives(Arc::clone(script))) }
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
            Capability::Logs,
            Capability::Adopt,
        ])
    }

    fn place(&self) -> Option<HostName> {
        self.script.place.get()
    }

    fn may_have_services(&self, profile: &Profile) -> bool {
        self.script.has_containers.get() || profile.config["workspace_only"] != true
    }

    async fn preview(&self, _: &ProvisionRequest) -> Result<Preview, Error> {
        let mut preview = self.script.previewed.get();
        if matches!(self.script.preview.next().unwrap_or(Act::Well), Act::Refuse) {
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
        let price = self.script.price.get();
        let by_price = price.map(|micros| MeterQuote {
            usd: Usd::from_micros(micros).part(time.as_millis().try_into().unwrap(), 1000),
            basis: format!("{micros} micro-dollars per second"),
        });
        Ok(self.script.quote.get().or(by_price))
    }

    async fn meter_actual(&self, _: &Target, time: Duration) -> Result<Option<Usd>, Error> {
        self.script.metered.act().await?;
        let cost = self.script.cost.get();
        let price = self.script.price.get();
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
        let root = self.script.workdirs.get().unwrap_or_else(|| "/srv".into());
        let workdir = root.join(request.id.project()).display().to_string();
        let rewrites =
            vec![Rewrite { path: "services.web.container_name".into(), what: "dropped".into() }];
        r.learnt(&Learnt {
            workdir: workdir.clone(),
            identity: identity.clone(),
            rewrites: rewrites.clone(),
        });
        self.script.tell(r);
        self.script.provision.act().await?;
        self.script.reports.lock().unwrap().push(request.report.as_deref().cloned());
        let report = self.script.report.get().map(Box::new);
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
        self.script.ready.act().await?;
        let reachability = Reachability {
            host: target.host.clone(),
            ssh: String::new(),
            workdir: target.workdir.clone().unwrap_or_default(),
            endpoints: Vec::new(),
            attachments: Vec::new(),
        };
        let unsettled = self.script.unsettled.get();
        let found = Readiness { reachability, services: Vec::new(), unsettled };
        Ok(self.script.readiness.get().unwrap_or(found))
    }

    async fn wait_settled(
        &self,
        _: &Target,
        found: Readiness,
        _: Duration,
    ) -> Result<Readiness, Error> {
        self.script.note("wait_settled");
        self.script.settled.act().await?;
        Ok(Readiness { unsettled: Unsettled::None, ..found })
    }

    async fn write_manifest(&self, target: &Target, record: &SandboxRecord) -> Result<(), Error> {
        self.script.note("write_manifest");
        self.script.check_up(target)?;
        self.script.manifests.lock().unwrap().insert(target.id.clone(), record.clone());
        self.script.dated.act().await
    }

    async fn teardown(&self, target: &Target, r: &dyn Reporter) -> Result<TeardownReport, Error> {
        self.script.find_root(&target.roots, r);
        let host = self.script.host_counter.get();
        if target.stamp.as_ref().is_some_and(|ours| host > ours.counter) {
            let fault = Error::new(Code::Conflict, "an old copy")
                .of_kind(Kind::Behind(host))
                .detail("kind", "behind")
                .detail("counter", host);
            return Err(fault.untouched());
        }
        self.script.note(format!("teardown {}", target.workdir.as_deref().unwrap_or("-")));
        self.script.check_up(target)?;
        let act = self.script.teardown.next().unwrap_or(Act::Well);
        let resource =
            Resource { kind: "network".into(), id: format!("{}_default", target.id.project()) };
        let left = matches!(act, Act::LeaveNetwork);
        if !matches!(act, Act::Untouched(_) | Act::InLine) {
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

    async fn inspect(&self, target: &Target) -> Result<Inspection, Error> {
        self.script.note("inspect");
        self.script.ready.act().await?;
        if self.script.gone.lock().unwrap().contains(&target.id) {
            return Ok(Inspection::default());
        }
        let seen = self.script.seen.get();
        let look = self.script.looks.next();
        let known = look.or_else(|| self.script.services.lock().unwrap().get(&target.id).cloned());
        Ok(Inspection {
            counter: Some(self.script.host_counter.get()),
            services: known.unwrap_or(seen.services),
            ..seen
        })
    }

    async fn adopt(&self, target: &Target, claim: AdoptClaim<'_>) -> Result<AdoptLook, Error> {
        self.script.note(format!("adopt {}", target.id));
        self.script.check_up(target)?;
        let mut seen = self.script.seen.get();
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
        r: &dyn Reporter,
    ) -> Result<Captured, Error> {
        self.script.note(format!("snapshot {}", request.snapshot.id));
        self.script.tell(r);
        self.script.shelf.capture(&target.profile, request).await
    }

    async fn measure(&self, target: &Target) -> Result<Footprint, Error> {
        self.script.note(format!("measure {}", target.id));
        self.script.check_up(target)?;
        self.script.measure.act().await?;
        Ok(self.script.footprint.get())
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
        let not_preserved = self.script.shelf.not_preserved.get();
        Ok(Restored { provisioned, not_preserved })
    }

    async fn sleep(&self, _: &Target, _: &dyn Reporter) -> Result<(), Error> {
        self.script.note("sleep");
        self.script.sleep.act().await
    }

    async fn wake(
        &self,
        target: &Target,
        limit: Duration,
        r: &dyn Reporter,
    ) -> Result<Readiness, Error> {
        self.script.note("wake");
        self.script.wake.act().await?;
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
        let script = self.script.patch.next().unwrap_or(Script::Exits(0));
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
        let act = self.script.shelf.resume.next();
        Scripted::act(act.unwrap_or(Act::Well)).await
    }

    /// What the script says; or `sh -c SCRIPT sh FILE [TEXT]`, as a deep check has it: with a text it is a write.
    async fn exec(
        &self,
        _: &Target,
        run: ExecRun<'_>,
        sink: &mut dyn OutputSink,
    ) -> Result<Option<i32>, Error> {
        let told = self.script.exec.get();
        if let Some(told) = told {
            self.script.note("exec");
            let read = OptionFuture::from(run.input.map(TryStreamExt::try_concat)).await;
            *self.script.read.lock().unwrap() = read.transpose()?;
            for piece in told {
                match piece? {
                    ExecOutput::Output(source, bytes) if !sink.take(source, &bytes).await => {
                        return Ok(None);
                    }
                    ExecOutput::Output(..) => {}
                    ExecOutput::Exit(status) => return Ok(Some(status)),
                }
            }
            std::future::pending::<()>().await;
        }
        self.script.note(format!("exec {}", run.command[4]));
        if let Some(text) = run.command.get(5) {
            text.clone_into(&mut self.script.written.lock().unwrap());
        }
        let says = self.script.says.next().map(str::to_owned);
        let says = says.unwrap_or_else(|| self.script.written.get());
        sink.take(Source::Stdout, says.as_bytes()).await;
        Ok(Some(0))
    }

    async fn shell(&self, _: &Target, _: Option<&str>) -> Result<Interactive, Error> {
        let words = self.script.shell.lock().unwrap().iter().map(Into::into).collect();
        Ok(Interactive { words, folder: None })
    }

    async fn logs(
        &self,
        target: &Target,
        service: Option<&str>,
        tail: Option<u64>,
        follow: bool,
        sink: &mut dyn LogSink,
    ) -> Result<(), Error> {
        let last = tail.filter(|_| !follow).map(|tail| format!(" last {tail}")).unwrap_or_default();
        self.script.note(format!("logs {} {}{last}", target.id, service.unwrap_or("all")));
        let open = OpenLog::new(&self.script);
        let script = self.script.log.get();
        match script {
            LogScript::Nothing => Ok(()),
            LogScript::Refused(error) => Err(error),
            LogScript::Ended(lines) => {
                open.hand(&lines, service, sink).await;
                Ok(())
            }
            LogScript::Open(lines) => {
                if open.hand(&lines, service, sink).await && follow {
                    std::future::pending::<()>().await;
                }
                Ok(())
            }
            LogScript::Broken(lines, error) => {
                open.hand(&lines, service, sink).await;
                Err(error)
            }
            LogScript::Flood(line) => {
                let line = [line];
                while open.hand(&line, service, sink).await {}
                Ok(())
            }
        }
    }

    fn archives(&self) -> Option<Arc<dyn SnapshotArchives>> {
        Some(self.archives.clone())
    }

    async fn services(
        &self,
        host: &HostName,
        targets: &[Target],
    ) -> Result<BTreeMap<SandboxId, Vec<Service>>, Error> {
        self.script.note(format!("services {} on {host}", targets.len()));
        let seen = self.script.seen.lock().unwrap().services.clone();
        if self.script.nothing_there.get() {
            return Ok(BTreeMap::new());
        }
        let known = self.script.services.lock().unwrap();
        let of = |target: &Target| known.get(&target.id).unwrap_or(&seen).clone();
        Ok(targets.iter().map(|target| (target.id.clone(), of(target))).collect())
    }
}
