//! `ext.saas-stub`: a metered stand-in for a provider that is paid, on which the console can be learnt. It opens no connection and
//! runs nothing: its sandboxes are files of an account beside this machine's state, which outlives the data directory as a
//! provider's would. They start late, fail as scripted by input, sleep, and cost by the rates of its manifest.

mod account;
mod archives;
mod files;
mod inventory;
mod provider;
mod sandboxes;
mod verbs;
mod wishes;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

pub(crate) use files::ID;

use archives::{StubArchives, content};
use files::{
    Found, PLACE, Power, StubSnapshot, archive_path, behind, check_place, counter, fingerprint,
    id_of, identity, raise, sandbox, unreadable,
};
use provider::Provider;
use sandboxes::{look, ours, reachability, remove, resource, scripted};
use wishes::{Fail, Wishes};

use crate::domain::archive::SnapshotArchives;
use crate::domain::error::{Code, Error};
use crate::domain::extension::{
    AdoptClaim, AdoptLook, Capabilities, Capability, CaptureRequest, Captured, HostAnswer,
    Inspection, MeterQuote, OwnerStamp, Preview, ProvisionRequest, Provisioned, Readiness,
    RestoreSource, Restored, SandboxExtension, Target,
};
use crate::domain::facts::{HostFacts, HostIdentity};
use crate::domain::host_report::RuntimeDetection;
use crate::domain::manifest::Rates;
use crate::domain::name::{ExtensionId, HostName, OwnerId, SandboxId};
use crate::domain::profile::{Profile, SnapshotMode};
use crate::domain::reporter::{Report, Reporter};
use crate::domain::sandbox::{SandboxRecord, Service};
use crate::domain::sandbox_manifest::SandboxManifest;
use crate::domain::snapshot::{ArchiveFacts, ArchiveFormat, Consistency};
use crate::domain::teardown::{TeardownOutcome, TeardownReport};
use crate::domain::time::Time;
use crate::domain::undo::Footprint;
use crate::domain::usd::Usd;
use crate::extensions::archives::capture;
use crate::extensions::workspace::Steps;
use crate::failpoint;

/// Room that it says to have, in bytes.
const FREE_BYTES: u64 = 1 << 40;

/// Rates of its manifest: they are read when the first price is asked for.
pub(crate) type ReadRates = Box<dyn Fn() -> Result<Rates, Error> + Send + Sync>;

/// Sandboxes at a provider that is none.
pub(crate) struct SaasStub {
    id: ExtensionId,
    place: HostName,
    provider: Provider,
    archives: Arc<StubArchives>,
    rates: ReadRates,
    clock: fn() -> Time,
}

impl SaasStub {
    /// With its account in this folder, at these rates.
    pub(crate) fn new(folder: Option<PathBuf>, rates: ReadRates, clock: fn() -> Time) -> Self {
        let provider = Provider::new(folder);
        Self {
            id: ID.into(),
            place: HostName::new(PLACE),
            archives: Arc::new(StubArchives::new(provider.clone())),
            provider,
            rates,
            clock,
        }
    }

    fn price(&self, wishes: &Wishes, duration: Duration) -> Result<(Rates, Usd), Error> {
        let rates = (self.rates)()?;
        let usd = rates.price(duration, wishes.gigabytes)?;
        Ok((rates, usd))
    }
}

#[async_trait]
impl SandboxExtension for SaasStub {
    fn id(&self) -> &ExtensionId {
        &self.id
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::from([
            Capability::Snapshots,
            Capability::Sleep,
            Capability::Adopt,
            Capability::Metered,
        ])
    }

    async fn preview(&self, request: &ProvisionRequest) -> Result<Preview, Error> {
        Wishes::of(&request.profile, &request.inputs).map(|_| Preview::default())
    }

    async fn ask_host(
        &self,
        _profile: &Profile,
        host: &HostName,
        _known: Option<&RuntimeDetection>,
    ) -> Result<HostAnswer, Error> {
        check_place(host)?;
        // One that cannot be read takes nothing.
        self.provider.open(|_| Ok(())).await?;
        Ok(HostAnswer::default())
    }

    fn place(&self) -> Option<HostName> {
        Some(self.place.clone())
    }

    async fn list_owned(&self) -> Result<HostFacts, Error> {
        let at = (self.clock)();
        self.provider.open(move |account| inventory::facts(account, at)).await
    }

    async fn owner_counter(&self, owner: &OwnerId) -> Result<Option<u64>, Error> {
        let owner = owner.clone();
        self.provider
            .open(move |account| account.map_or(Ok(None), |account| counter(account, &owner)))
            .await
    }

    async fn raise_owner_counter(&self, stamp: &OwnerStamp) -> Result<u64, Error> {
        let stamp = stamp.clone();
        self.provider
            .open(move |account| {
                // None is made for this: where one was, that is away.
                let none = || Error::new(Code::OperationFailed, format!("{PLACE} has no account"));
                Ok(raise(account.ok_or_else(none)?, &stamp)?.unwrap_or(0).max(stamp.counter))
            })
            .await
    }

    async fn manifest_text(&self, workdir: &str) -> Result<Option<String>, Error> {
        let Some(id) = id_of(workdir) else { return Ok(None) };
        self.provider
            .open(move |account| {
                let Some(account) = account else { return Ok(None) };
                match sandbox(account, id.as_str())? {
                    Found::Absent => Ok(None),
                    Found::There(found, _) => account::json(&found.manifest).map(Some),
                    Found::Unreadable(why) => Err(unreadable(&format!("sandbox {id}"), &why)),
                }
            })
            .await
    }

    async fn estimate_cost(
        &self,
        profile: &Profile,
        inputs: &BTreeMap<String, String>,
        duration: Duration,
    ) -> Result<Option<MeterQuote>, Error> {
        let wishes = Wishes::of(profile, inputs)?;
        let (rates, usd) = self.price(&wishes, duration)?;
        let rate = |rate: Option<Usd>| rate.unwrap_or(Usd::ZERO);
        let basis = format!(
            "{} s at {} and {} GB at {}, at least {}",
            duration.as_secs(),
            rate(rates.per_second_usd),
            wishes.gigabytes,
            rate(rates.per_gb_usd),
            rate(rates.minimum_usd)
        );
        Ok(Some(MeterQuote { usd, basis }))
    }

    fn may_have_services(&self, _: &Profile) -> bool {
        false
    }

    fn steps(&self, _: &ProvisionRequest, _: bool) -> u32 {
        2
    }

    async fn provision(
        &self,
        request: &ProvisionRequest,
        reporter: &dyn Reporter,
    ) -> Result<Provisioned, Error> {
        check_place(&request.host).map_err(Error::untouched)?;
        let wishes = Wishes::of(&request.profile, &request.inputs).map_err(Error::untouched)?;
        Steps::new(reporter, 2).next("provision");
        let made = verbs::make(&self.provider, request, &wishes, None, reporter).await?;
        if wishes.fail == Fail::Provision { Err(scripted("provision")) } else { Ok(made) }
    }

    async fn wait_ready(
        &self,
        target: &Target,
        limit: Duration,
        reporter: &dyn Reporter,
    ) -> Result<Readiness, Error> {
        let wishes = Wishes::of(&target.profile, &target.inputs)?;
        reporter.report(Report { stage: "ready", ..Report::default() });
        verbs::start(&self.provider, target, &wishes, limit, reporter).await
    }

    async fn write_manifest(&self, target: &Target, record: &SandboxRecord) -> Result<(), Error> {
        let manifest = SandboxManifest::of(record, &target.profile);
        verbs::change(&self.provider, target, |found| found.manifest = manifest).await
    }

    async fn teardown(
        &self,
        target: &Target,
        reporter: &dyn Reporter,
    ) -> Result<TeardownReport, Error> {
        reporter.report(Report { stage: "teardown", ..Report::default() });
        check_place(&target.host).map_err(Error::untouched)?;
        // Whatever its inputs are by now: a removal is not refused for them.
        let fail = Wishes::of(&target.profile, &target.inputs).map_or(Fail::Never, |it| it.fail);
        let sight = verbs::find(&self.provider, target).await.map_err(Error::untouched)?;
        if let (Some(stamp), Some(counts)) = (&target.stamp, sight.counter)
            && counts > stamp.counter
        {
            return Err(behind(counts));
        }
        if sight.found.is_some() {
            reporter.began();
        }
        let target = target.clone();
        self.provider.open(move |account| remove(account, &target, fail)).await
    }

    async fn meter_actual(
        &self,
        target: &Target,
        duration: Duration,
    ) -> Result<Option<Usd>, Error> {
        let wishes = Wishes::of(&target.profile, &target.inputs)?;
        self.price(&wishes, duration).map(|(_, usd)| Some(usd))
    }

    async fn inspect(&self, target: &Target) -> Result<Inspection, Error> {
        check_place(&target.host)?;
        let sight = verbs::find(&self.provider, target).await?;
        if sight.unreadable {
            let why = sight.line.reason.unwrap_or_default();
            return Err(unreadable(&format!("sandbox {}", target.id), &why));
        }
        let foreign = sight.line.outcome == TeardownOutcome::Foreign;
        let seen = Inspection {
            foreign: if foreign { vec![sight.line] } else { Vec::new() },
            counter: sight.counter,
            ..Inspection::default()
        };
        let Some(found) = sight.found else { return Ok(seen) };
        let wishes = Wishes::of(&target.profile, &target.inputs)?;
        let ready = found.power == Power::Running;
        Ok(Inspection {
            resources: vec![resource(&target.id)],
            ready,
            asleep: found.power == Power::Sleeping,
            reachability: ready.then(|| reachability(&target.id, &wishes)),
            ..seen
        })
    }

    async fn adopt(&self, target: &Target, claim: AdoptClaim<'_>) -> Result<AdoptLook, Error> {
        let identity = HostIdentity::of_machine(claim.machine_id);
        let target = Target { host_identity: Some(identity.clone()), ..target.clone() };
        let seen = self.inspect(&target).await?;
        let region = Wishes::of(&target.profile, &target.inputs)?.region;
        // One that never ran was cut off.
        let handle = (seen.ready || seen.asleep).then(|| serde_json::json!({"region": region}));
        Ok(AdoptLook { handle, identity, seen, remarks: Vec::new() })
    }

    async fn services(
        &self,
        _host: &HostName,
        targets: &[Target],
    ) -> Result<BTreeMap<SandboxId, Vec<Service>>, Error> {
        let targets = targets.to_vec();
        self.provider
            .open(move |account| {
                let mut there = BTreeMap::new();
                for target in targets {
                    let sight = look(account, &target);
                    if sight.is_ok_and(|sight| sight.found.is_some()) {
                        there.insert(target.id, Vec::new());
                    }
                }
                Ok(there)
            })
            .await
    }

    async fn snapshot(
        &self,
        target: &Target,
        request: &CaptureRequest,
        reporter: &dyn Reporter,
    ) -> Result<Captured, Error> {
        Steps::new(reporter, 1).next("snapshot");
        let wishes = Wishes::of(&target.profile, &target.inputs).map_err(Error::untouched)?;
        let content = content(target)?;
        let archive = ArchiveFacts {
            bytes: Some(content.len() as u64),
            content_bytes: Some(content.len() as u64),
            files: Some(0),
            sha256: Some(fingerprint(&content)),
            format: Some(ArchiveFormat::Other("metadata".to_owned())),
            mode: Some(SnapshotMode::Live),
            consistency: Some(Consistency::Clean),
            ..ArchiveFacts::default()
        };
        let fails = wishes.fail == Fail::Snapshot;
        let path = archive_path(&request.snapshot.id);
        let saved = archive.clone();
        let (request, target) = (request.clone(), target.clone());
        let identity = self
            .provider
            .open(move |account| {
                let (account, _) = ours(account, &target)?;
                let identity = identity(account);
                let manifest = capture::manifest(&target, &request, &saved);
                StubSnapshot::new(manifest, content, !fails).write(account)?;
                Ok(identity)
            })
            .await?;
        failpoint::reached("stub.captured");
        if fails {
            return Err(scripted("snapshot"));
        }
        Ok(Captured { path, identity, archive })
    }

    async fn restore_from_snapshot(
        &self,
        request: &ProvisionRequest,
        source: &RestoreSource,
        reporter: &dyn Reporter,
    ) -> Result<Restored, Error> {
        check_place(&request.host).map_err(Error::untouched)?;
        let wishes = Wishes::of(&request.profile, &request.inputs).map_err(Error::untouched)?;
        Steps::new(reporter, 2).next("restore");
        self.archives.whole(&source.place, &source.archive).await.map_err(Error::untouched)?;
        let made_in = source.place.host_identity.clone();
        let provisioned = verbs::make(&self.provider, request, &wishes, made_in, reporter).await?;
        if wishes.fail == Fail::Restore {
            return Err(scripted("restore"));
        }
        Ok(Restored { provisioned, not_preserved: BTreeMap::new() })
    }

    async fn measure(&self, target: &Target) -> Result<Footprint, Error> {
        let bytes = content(target)?.len() as u64;
        Ok(Footprint { bytes, free_bytes: FREE_BYTES, disk_used_pct: 0.0 })
    }

    fn archives(&self) -> Option<Arc<dyn SnapshotArchives>> {
        Some(self.archives.clone())
    }

    async fn sleep(&self, target: &Target, reporter: &dyn Reporter) -> Result<(), Error> {
        Steps::new(reporter, 1).next("sleep");
        let wishes = Wishes::of(&target.profile, &target.inputs)?;
        if wishes.fail == Fail::Sleep {
            return Err(scripted("sleep"));
        }
        verbs::change(&self.provider, target, |found| found.power = Power::Sleeping).await
    }

    async fn wake(
        &self,
        target: &Target,
        limit: Duration,
        reporter: &dyn Reporter,
    ) -> Result<Readiness, Error> {
        let wishes = Wishes::of(&target.profile, &target.inputs)?;
        if wishes.fail == Fail::Wake {
            return Err(scripted("wake"));
        }
        reporter.report(Report { stage: "ready", ..Report::default() });
        verbs::start(&self.provider, target, &wishes, limit, reporter).await
    }
}
