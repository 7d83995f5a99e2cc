//! What hosts said last: who is told of it, and what becomes of it on a bad day.

use std::fs;
use std::path::PathBuf;

use sandboxer::domain::extension::HostAnswer;
use sandboxer::domain::facts::{Flavour, HostFacts, Runtime};
use sandboxer::domain::host_report::{DetectionScope, HostReport, RuntimeDetection};
use sandboxer::domain::request::CreateRequest;
use sandboxer::domain::{Code, HostName, Time};
use sandboxer::store::HostStore;
use sandboxer::store::json::JsonStores;

use crate::support::json_assertions::JsonAssertions as _;
use crate::test_env::{TestEnv, test_env};

fn detection(fingerprint: char) -> RuntimeDetection {
    RuntimeDetection {
        at: Time::from_unix(1000),
        fingerprint: fingerprint.to_string().repeat(64),
        compose_cmd: Vec::new(),
        scope: DetectionScope::First,
        runtimes: vec![Runtime {
            flavour: Flavour::PodmanCompose,
            version: "1.0.3".into(),
            command: vec!["podman-compose".into()],
            engine: "podman".into(),
            engine_version: None,
            engine_id: None,
            rootless: false,
            chosen: "detected".into(),
            podman_behind: false,
        }],
        findings: Vec::new(),
        address_pools: None,
    }
}

fn report(machine: &str) -> HostReport {
    let facts: HostFacts = serde_json::from_value(serde_json::json!({
        "at": "2026-11-29T12:00:00Z", "machine_id": machine, "hostname": "h", "kernel": "k",
        "os": null, "user": "u", "uid": 0, "cpus": 8, "load1": 0.1, "mem_total_bytes": 2,
        "mem_available_bytes": 1, "disk": null, "workspace_root": "/s", "clock_offset_s": null,
        "inventory": {"sandboxes": [{"sandbox_id": "a1b2c3d4", "owner": null, "directory": "/s/a",
            "containers": ["one", "two"]}]},
    }))
    .unwrap();
    HostReport::of(facts, Some(detection('b')))
}

impl TestEnv {
    fn file(&self) -> PathBuf {
        self.folder.path().join("hosts.json")
    }

    async fn canary(&self) -> sandboxer::domain::sandbox::SandboxRecord {
        self.made(CreateRequest::default()).await
    }

    async fn kept(&self) -> Option<HostReport> {
        let stores = JsonStores::open(self.folder.path()).unwrap();
        let record = stores.hosts.get(&HostName::new("local")).await.unwrap();
        record.and_then(|record| record.last_report())
    }

    /// What the host says it found, each time it is asked.
    fn finds(&self, detection: Option<RuntimeDetection>) {
        let answer = HostAnswer { detection, ..HostAnswer::default() };
        self.script.hosts.lock().unwrap().insert("local".into(), Ok(answer));
    }

    fn last_known(&self) -> Option<RuntimeDetection> {
        self.script.known.lock().unwrap().last().cloned().flatten()
    }
}

#[tokio::test]
async fn what_was_found_on_a_host_goes_along_the_next_time_by_whichever_process() {
    let house = test_env();
    house.finds(Some(detection('a')));
    house.canary().await;
    assert_eq!(house.last_known(), None);
    house.finds(None);
    let request = CreateRequest { host: Some("LOCAL".into()), ..CreateRequest::default() };
    house.other.plan_create(&request).await.unwrap();
    assert_eq!(house.last_known(), Some(detection('a')));
    let written = fs::read(house.file()).unwrap();
    house.finds(Some(detection('c')));
    house.other.plan_create(&request).await.unwrap();
    assert_eq!(fs::read(house.file()).unwrap(), written, "a plan changes nothing");
    house.canary().await;
    assert_eq!(house.kept().await.unwrap().detection, Some(detection('c')));
}

#[tokio::test]
async fn a_canarys_record_has_the_facts_in_short_and_the_file_the_rest() {
    let house = test_env();
    house.script.report.set(Some(report("m")));
    let record = house.canary().await;
    let telemetry = record.telemetry.unwrap().read().unwrap();
    let counts = telemetry.inventory.unwrap();
    assert_eq!((telemetry.cpus, counts.sandboxes, counts.containers), (8, 1, 2));
    assert_eq!(house.kept().await, Some(report("m")));
    house.canary().await;
    let told = house.script.reports.get();
    assert_eq!(told, [None, Some(report("m"))], "the second one is told what the first one heard");
    let [local] = &house.other.hosts().await.unwrap()[..] else { panic!("one host") };
    assert_eq!(local.facts.as_ref().unwrap().cpus, 8, "known to a list without a connection");
    assert_eq!(local.checked_at, Some(local.facts.as_ref().unwrap().at));
}

#[tokio::test]
async fn of_another_host_behind_the_same_name_nothing_stays() {
    let house = test_env();
    house.script.report.set(Some(report("m")));
    house.canary().await;
    let other = HostReport { detection: None, ..report("another") };
    house.script.report.set(Some(other.clone()));
    house.canary().await;
    assert_eq!(house.kept().await, Some(other), "neither its detection nor its facts");
}

#[tokio::test]
async fn a_create_works_without_the_file_and_beside_one_that_cannot_be_read() {
    let house = test_env();
    house.script.report.set(Some(report("m")));
    house.canary().await;
    for name in ["hosts.json", "hosts.json.bak"] {
        fs::remove_file(house.folder.path().join(name)).unwrap();
    }
    house.canary().await;
    assert_eq!(house.last_known(), None);
    assert_eq!(house.kept().await, Some(report("m")), "it is written anew");
    fs::write(house.file(), "{\"schema\": 1, \"records\": [").unwrap();
    house.canary().await;
    assert_eq!(house.last_known(), None);
    let text = fs::read_to_string(house.file()).unwrap();
    assert_eq!(text, "{\"schema\": 1, \"records\": [", "it is left as it is");
    let stores = JsonStores::open(house.folder.path()).unwrap();
    stores.hosts.get(&HostName::new("local")).await.unwrap_err().coded(Code::StoreCorrupt);
    let [local] = &house.other.hosts().await.unwrap()[..] else { panic!("one host") };
    let message = local.message.as_deref().unwrap();
    assert!(message.contains("hosts.json") && message.contains("line 1"), "{message}");
    local.hints("hosts.json.bak");
}
