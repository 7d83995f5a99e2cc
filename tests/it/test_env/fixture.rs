//! Records, hosts and profiles to begin a test with, and how they come into a world.

mod credits;
mod profiles;
mod snapshots;
mod stale;
mod write;

use std::collections::BTreeMap;
use std::sync::Arc;

use sandboxer::client::{Credits, Decision, ExtensionView, HistoryEntry};
use sandboxer::domain::Time;
use sandboxer::domain::actor::{Actor, ActorType};
use sandboxer::domain::canary::CanaryTelemetry;
use sandboxer::domain::extension::Preview;
use sandboxer::domain::facts::HostFacts;
use sandboxer::domain::host_view::{HostState, HostView};
use sandboxer::domain::lineage::SnapshotView;
use sandboxer::domain::name::{ExtensionId, HostName, OperationId, OwnerId, ProfileId, SandboxId};
use sandboxer::domain::operation::{Operation, OperationKind, OperationState};
use sandboxer::domain::output::{LogLine, Source};
use sandboxer::domain::patch::Patch;
use sandboxer::domain::raw_json::RawJson;
use sandboxer::domain::sandbox::{
    Endpoint, Failure, ProfileRef, Reachability, Reason, RecordStart, Route, Running,
    SandboxRecord, Service, State, Verdict,
};
use sandboxer::domain::snapshot::SnapshotRecord;
use sandboxer::domain::stale::{ReapPlan, StaleReport};
use sandboxer::domain::teardown::{Resource, TeardownLine, TeardownOutcome};
use serde_json::json;

pub(crate) use credits::{ledger_entry, metered, metered_world};
pub(crate) use profiles::profiles;
pub(crate) use snapshots::{lineage_world, snapshot_of};
pub(crate) use stale::{done, stale_item, stale_world};

/// What there is when a test begins.
#[derive(Debug, Clone)]
pub(crate) struct Fixture {
    pub(crate) records: Vec<SandboxRecord>,
    pub(crate) hosts: Vec<HostView>,
    /// What other processes do.
    pub(crate) operations: Vec<Operation>,
    pub(crate) stale: Option<StaleReport>,
    pub(crate) plan: Option<ReapPlan>,
    pub(crate) snapshots: Vec<SnapshotRecord>,
    pub(crate) patches: Vec<Patch>,
    /// Credits, and what became of them, oldest first.
    pub(crate) credits: (Credits, Vec<HistoryEntry>),
    /// What backends there are.
    pub(crate) extensions: Vec<ExtensionView>,
}

impl Default for Fixture {
    fn default() -> Self {
        Self {
            records: Vec::new(),
            hosts: vec![host("local", HostState::Up, None)],
            operations: Vec::new(),
            stale: None,
            plan: None,
            snapshots: Vec::new(),
            patches: Vec::new(),
            credits: (Credits::default(), Vec::new()),
            extensions: Vec::new(),
        }
    }
}

impl Fixture {
    /// Its snapshots, with what hangs on each.
    pub(crate) fn snapshot_views(&self) -> Vec<Arc<SnapshotView>> {
        let mut all = self.snapshots.clone();
        all.sort_by_key(|record| (record.created_at, record.id.clone()));
        let view = |record| SnapshotView::of(record, &self.patches, self.records.iter(), &all);
        all.iter().map(|record| Arc::new(view(record))).collect()
    }
}

/// A line of a log.
pub(crate) fn log_line(service: &str, source: Source, text: &str) -> LogLine {
    LogLine { service: service.to_owned(), source, bytes: text.into(), cut: false }
}

/// What a small stack writes.
pub(crate) fn log_lines() -> Vec<LogLine> {
    let mut lines = vec![
        log_line("db", Source::Stderr, "LOG:  database system is ready to accept connections"),
        log_line("web", Source::Stdout, "\u{1b}[32mlistening\u{1b}[0m on 0.0.0.0:80"),
    ];
    for number in 0..60 {
        lines.push(log_line(
            "web",
            Source::Stdout,
            &format!("10.0.0.{number} GET /items/{number} 200"),
        ));
        if number % 20 == 7 {
            lines.push(log_line(
                "web",
                Source::Stderr,
                &format!("Error: item {number} has no price"),
            ));
            lines.push(log_line("db", Source::Stdout, "日本語のログ\tcheckpoint complete\u{7}"));
        }
    }
    lines
}

pub(crate) fn operator() -> Actor {
    Actor { kind: ActorType::Adm, name: "kim".to_owned() }
}

/// A host as it would answer.
pub(crate) fn host(name: &str, state: HostState, latency_ms: Option<u64>) -> HostView {
    let down = state == HostState::Down;
    HostView {
        name: HostName::new(name),
        ssh: (name != "local").then(|| format!("ops@{name}")),
        state,
        latency_ms,
        checked_at: None,
        message: down.then(|| format!("ssh: connect to host {name} port 22: Connection timed out")),
        hint: down.then(|| "is the machine on, and is the name right?".to_owned()),
        sandboxes: 0,
        max_sandboxes: Some(30),
        labels: BTreeMap::new(),
        limits: None,
        facts: None,
        sample: None,
        deep: None,
    }
}

/// A record that was created ten minutes ago.
pub(crate) fn record(
    id: &str,
    name: Option<&str>,
    profile: &str,
    host: &str,
    state: State,
    now: Time,
) -> SandboxRecord {
    let profile = profile.trim_start_matches("profile.");
    let start = RecordStart {
        id: SandboxId::new(id),
        profile: ProfileRef {
            id: ProfileId::new(format!("profile.{profile}")),
            version: "1.0.0".to_owned(),
            hash: "0".repeat(64),
        },
        extension: ExtensionId::new("ext.compose-ssh"),
        host: HostName::new(host),
        owner: OwnerId::new("owner-1"),
        actor: operator(),
        created_at: now,
    };
    SandboxRecord {
        name: name.map(str::to_owned),
        workdir: Some(format!("/home/ops/sandboxes/sbx-{id}")),
        state,
        observed_at: Some(now),
        revision: 3,
        ttl_s: Some(14_400),
        ..SandboxRecord::new(start)
    }
}

/// The record, ready, with everything a ready one has.
pub(crate) fn ready(mut record: SandboxRecord, now: Time) -> SandboxRecord {
    let (id, host) = (record.id.clone(), record.host.clone());
    let local = host.is_local();
    let workdir = format!("/home/ops/sandboxes/sbx-{id}/workspace");
    record.state = State::Ready;
    record.reason = None;
    record.message = None;
    record.ready_at = Some(now);
    record.expires_at = Some(now.plus_seconds(14_400));
    record.max_expires_at = Some(now.plus_seconds(86_400));
    let ssh = if local {
        format!("cd {workdir}")
    } else {
        format!("ssh -t ops@{host} 'cd {workdir} && exec $SHELL -l'")
    };
    record.reachability = Some(Reachability {
        host: host.clone(),
        ssh,
        workdir,
        endpoints: vec![Endpoint {
            service: "web".to_owned(),
            container_port: 80,
            host_port: 32_768,
            protocol: "tcp".to_owned(),
            url: "http://127.0.0.1:32768".to_owned(),
            tunnel: (!local).then(|| format!("ssh -N -L 32768:127.0.0.1:32768 ops@{host}")),
        }],
        attachments: Vec::new(),
    });
    record.services = vec![service("web", "running", None), service("db", "running", None)];
    record
}

pub(crate) fn service(name: &str, state: &str, exit_code: Option<i32>) -> Service {
    Service {
        name: name.to_owned(),
        state: state.to_owned(),
        exit_code,
        restarts: Some(0),
        health: None,
    }
}

/// A failed record with its evidence.
pub(crate) fn failed(mut record: SandboxRecord) -> SandboxRecord {
    record.state = State::Failed;
    record.reason = Some(Reason::ProvisionFailed);
    record.message = Some("the compose runtime could not start 'web'".to_owned());
    record.failure = Some(Failure {
        step: "start".to_owned(),
        exit_status: Some(1),
        output: "Creating sbx network\nweb: Error: image localhost/app:1 not known\nexit status 1"
            .to_owned(),
    });
    record.teardown = vec![
        TeardownLine {
            resource: Resource {
                kind: "network".to_owned(),
                id: format!("sbx-{}_default", record.id),
            },
            outcome: TeardownOutcome::Removed,
            reason: None,
        },
        TeardownLine {
            resource: Resource {
                kind: "directory".to_owned(),
                id: format!("/home/ops/sandboxes/sbx-{}", record.id),
            },
            outcome: TeardownOutcome::Failed,
            reason: Some("rm: cannot remove 'data': Permission denied".to_owned()),
        },
    ];
    record.leftovers = vec![Resource {
        kind: "directory".to_owned(),
        id: format!("/home/ops/sandboxes/sbx-{}", record.id),
    }];
    record
}

/// An operation that another process runs on a record.
pub(crate) fn held(mut record: SandboxRecord, kind: OperationKind, now: Time) -> SandboxRecord {
    record.operation = Some(Running {
        id: OperationId::from_random(7),
        kind,
        started_at: now.minus_seconds(40),
        pid: 4711,
        host: "desk-2".to_owned(),
        actor: Actor { kind: ActorType::Atm, name: "nightly".to_owned() },
        cancel_requested: false,
    });
    record
}

/// An ended operation.
pub(crate) fn ended(id: &OperationId, state: OperationState, now: Time) -> Operation {
    serde_json::from_value(json!({
        "id": id, "kind": OperationKind::Destroy, "state": state, "started_at": now,
        "finished_at": now, "pid": 1, "host": "here", "actor": operator(),
    }))
    .unwrap()
}

/// What a host says of itself.
pub(crate) fn facts(hostname: &str, now: Time) -> HostFacts {
    serde_json::from_value(json!({
        "at": now, "machine_id": "0123456789abcdef", "hostname": hostname, "user": "ops", "uid": 1000,
        "kernel": "Linux 6.1.0", "os": "Debian GNU/Linux 12 (bookworm)", "cpus": 8, "load1": 0.42,
        "mem_total_bytes": 32_000_000_000_u64, "mem_available_bytes": 21_000_000_000_u64,
        "workspace_root": "/home/ops/sandboxes", "clock_offset_s": 0.1,
        "tools": {"rsync": "/usr/bin/rsync", "tar": "/bin/tar"},
    }))
    .unwrap()
}

/// What a create would do: one of two hosts qualifies.
pub(crate) fn decision() -> Decision {
    let verdict =
        |host: &str, ok, reason: &str| Verdict { host: host.into(), ok, reason: reason.to_owned() };
    let verdicts = vec![
        verdict("sandboxer01", false, "disk 93% used, the limit is 90%"),
        verdict("coulombcore", true, "has room for 18 more"),
    ];
    Decision {
        profile: "profile.compose-e2e".to_owned(),
        version: "1.0.0".to_owned(),
        extension: "ext.compose-ssh".to_owned(),
        inputs: BTreeMap::new(),
        route: Some(Route {
            host: "coulombcore".into(),
            reason: "first that qualifies".to_owned(),
            verdicts: verdicts.clone(),
            remarks: Vec::new(),
            candidates: Vec::new(),
        }),
        verdicts,
        candidates: Vec::new(),
        quote_usd: None,
        missing_usd: None,
        ttl_s: Some(14_400),
        preview: Preview {
            bytes: 12_400_000,
            files: 812,
            services: vec!["web".to_owned(), "db".to_owned()],
            ..Preview::default()
        },
        ok: true,
        error: None,
    }
}

/// A small world to look at: ready, degraded, failed, on a host that is down, held by another process.
pub(crate) fn world(now: Time) -> Fixture {
    let made = |id, name, profile, host, ago: u64| {
        let mut record = record(id, name, profile, host, State::Ready, now);
        record.created_at = now.minus_seconds(ago);
        record.since = now.minus_seconds(ago.saturating_sub(8));
        record
    };
    let mut core = ready(
        made("a1b2c3d4", Some("e2e-core"), "compose-e2e", "coulombcore", 7380),
        now.minus_seconds(7380),
    );
    core.labels.insert("team".to_owned(), "core".to_owned());
    let mut sick = ready(
        made("5d20aa17", Some("checkout"), "compose-e2e", "coulombcore", 3000),
        now.minus_seconds(3000),
    );
    sick.services[1] = service("db", "exited", Some(137));
    let mut far = ready(
        made("9c0d11ee", Some("hs-build"), "vm-haskell-build", "vm-haskell", 90_000),
        now.minus_seconds(9000),
    );
    far.observed_at = Some(now.minus_seconds(140));
    let mut kept = ready(
        made("0f00ba12", Some("reference"), "compose-checkpoint", "sandboxer01", 400_000),
        now.minus_seconds(400),
    );
    kept.labels.insert("protect".to_owned(), "true".to_owned());
    kept.expires_at = None;
    let broken = failed(made("0b1c2d3e", Some("nightly"), "compose-e2e", "coulombcore", 2460));
    let busy = held(
        ready(made("77fe01aa", None, "compose-e2e", "sandboxer01", 300), now),
        OperationKind::Recreate,
        now,
    );
    let soon = {
        let mut record = ready(
            made("c0ffee00", Some("demo"), "sandbox-canary", "local", 14_200),
            now.minus_seconds(14_200),
        );
        record.telemetry = Some(
            RawJson::new(&CanaryTelemetry::from(&facts("desk-1", now.minus_seconds(14_200))))
                .unwrap(),
        );
        record.services.clear();
        record
    };
    Fixture {
        records: vec![core, sick, far, kept, broken, busy, soon],
        hosts: vec![
            host("coulombcore", HostState::Up, Some(12)),
            host("sandboxer01", HostState::Up, Some(31)),
            host("local", HostState::Up, None),
            host("vm-haskell", HostState::Down, None),
        ],
        ..Fixture::default()
    }
}

/// Many records on a few hosts.
pub(crate) fn many(count: u32, now: Time) -> Vec<SandboxRecord> {
    (0..count)
        .map(|number| {
            let id = format!("{:08x}", number.wrapping_mul(2_654_435_761));
            let name = (number % 3 == 0).then(|| format!("env-{number}"));
            let host = ["coulombcore", "sandboxer01", "local"][number as usize % 3];
            let record = record(&id, name.as_deref(), "compose-e2e", host, State::Ready, now);
            let ago = 120 + 37 * u64::from(number);
            let mut record = ready(record, now.minus_seconds(ago));
            record.created_at = now.minus_seconds(ago);
            record
        })
        .collect()
}
