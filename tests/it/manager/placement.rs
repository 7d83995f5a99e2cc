//! Which host takes a sandbox, and what is said of those that do not.

use std::collections::BTreeMap;
use std::fs;

use sandboxer::domain::extension::HostAnswer;
use sandboxer::domain::headroom::{Headroom, NetworkRoom};
use sandboxer::domain::host::{HostSpec, Limits};
use sandboxer::domain::record::Record;
use sandboxer::domain::request::{CreateRequest, SnapshotRequest};
use sandboxer::domain::sweep::SweepRequest;
use sandboxer::domain::{Code, Error};
use sandboxer::manager::SandboxManager;

use crate::support::json_assertions::JsonAssertions as _;
use crate::test_env::{TestEnv, from_snapshot, manager_on, manager_with, of, test_env};

/// A stack from a directory.
fn stack(repo: &tempfile::TempDir) -> CreateRequest {
    let inputs = BTreeMap::from([("repo".to_owned(), repo.path().to_str().unwrap().to_owned())]);
    CreateRequest { profile: Some("compose-e2e".into()), inputs, ..CreateRequest::default() }
}

#[tokio::test]
async fn where_none_of_a_profiles_hosts_is_configured_the_default_host_takes_their_place() {
    let (house, repo) = (test_env(), tempfile::tempdir().unwrap());
    house.manager.sweep(&SweepRequest::default()).await.unwrap();
    let plan = house.manager.plan_create(&stack(&repo)).await.unwrap();
    assert!(plan.ok, "{:?}", plan.error);
    let (record, ended) = house.create(stack(&repo)).await;
    assert_eq!((ended, record.host.as_str()), (Ok(()), "local"));
    let route = record.route.unwrap();
    assert_eq!(plan.route.unwrap().remarks, route.remarks);
    let [remark] = route.remarks.as_slice() else { panic!("{:?}", route.remarks) };
    assert!(remark.contains("sandboxer01, coulombcore") && remark.contains("local"), "{remark}");
    let verdicts: Vec<_> =
        record.attempts.iter().map(|verdict| (verdict.host.as_str(), verdict.ok)).collect();
    assert_eq!(verdicts, [("sandboxer01", false), ("coulombcore", false), ("local", true)]);
    let (canary, _) = house.create(CreateRequest::default()).await;
    assert_eq!(canary.route.unwrap().remarks, Vec::<String>::new(), "it has no list");
}

#[tokio::test]
async fn where_no_host_is_left_each_ones_verdict_is_told() {
    let (house, repo) = (test_env(), tempfile::tempdir().unwrap());
    let manager = manager_with(house.folder.path(), &house.script, "nosuch");
    let not = |hosts: &[&str]| {
        hosts.iter().map(|host| format!("{host}: not configured")).collect::<Vec<_>>().join("; ")
    };
    for (request, hosts) in [
        (stack(&repo), &["sandboxer01", "coulombcore", "nosuch"][..]),
        (CreateRequest::default(), &["nosuch"]),
    ] {
        let fault = manager.create(request).await.unwrap_err();
        fault.coded(Code::HostUnreachable);
        assert_eq!(fault.causes, [not(hosts)]);
        assert_eq!(fault.details["verdicts"].as_array().unwrap().len(), hosts.len());
        fault.hints("try --host local");
    }
}

fn spec(name: &str) -> HostSpec {
    let limits = Limits { disk_used_pct: 90.0, mem_used_pct: 80.0, load_per_core: 2.0 };
    HostSpec { limits, ..HostSpec::named(name) }
}

/// A manager with hosts of its own, and a profile that names them.
fn on(house: &TestEnv, specs: Vec<HostSpec>, strategy: &str) -> SandboxManager {
    let names: Vec<&str> = specs.iter().map(|spec| spec.name.as_str()).collect();
    let text = fs::read_to_string("profiles/sandbox-canary.yaml").unwrap();
    let placement =
        format!("\nplacement: {{hosts: [{}], strategy: {strategy}}}\n", names.join(", "));
    let text = text.replace("profile.sandbox-canary", "profile.mine") + &placement;
    let profiles = house.folder.path().join("profiles");
    fs::create_dir_all(&profiles).unwrap();
    fs::write(profiles.join("mine.yaml"), text).unwrap();
    manager_on(house.folder.path(), &house.script, "local", specs)
}

fn mine() -> CreateRequest {
    CreateRequest { profile: Some("mine".into()), ..CreateRequest::default() }
}

fn room(load: f64, memory: f64, disk: f64) -> Headroom {
    Headroom {
        load_per_core: Some(load),
        mem_used_pct: Some(memory),
        disk_used_pct: Some(disk),
        networks: NetworkRoom::NotNeeded,
    }
}

impl TestEnv {
    fn has_room(&self, host: &str, headroom: Headroom) {
        let answer = HostAnswer { headroom: Some(headroom), ..HostAnswer::default() };
        self.script.hosts.lock().unwrap().insert(host.into(), Ok(answer));
    }

    fn examined(&self) -> Vec<String> {
        std::mem::take(&mut *self.script.examined.lock().unwrap())
    }
}

#[tokio::test]
async fn a_host_above_its_limits_is_passed_over_with_the_figure_and_the_limit() {
    let house = test_env();
    let forbidden = HostSpec { forbid: Some("production".into()), ..spec("f") };
    let manager = on(&house, vec![forbidden, spec("a"), spec("b"), spec("c")], "first-available");
    house.has_room("f", room(0.0, 0.0, 0.0));
    house.has_room("a", room(0.1, 20.0, 93.2));
    house.has_room("b", room(0.1, 20.0, 30.0));
    house.has_room("c", room(0.1, 20.0, 30.0));
    let plan = manager.plan_create(&mine()).await.unwrap();
    let mut examined = house.examined();
    examined.sort();
    assert_eq!(examined, ["a", "b", "c"], "one that is forbidden is never contacted");
    let reasons: Vec<&str> = plan.verdicts.iter().map(|v| v.reason.as_str()).collect();
    assert!(reasons[0].contains("forbidden") && reasons[0].contains("production"), "{reasons:?}");
    assert!(
        reasons[1]
            == "disk 93 % used, limit 90 % (load 0.10 per core, memory 20 % used, disk 93 % used)",
        "{reasons:?}"
    );
    assert_eq!(plan.verdicts.iter().map(|v| v.ok).collect::<Vec<_>>(), [false, false, true, true]);
    let started = manager.create(mine()).await.unwrap();
    assert_eq!(started.sandbox.host.as_str(), "b");
    assert_eq!(house.examined(), ["a", "b"], "nobody behind the first one that can is asked");
}

#[tokio::test]
async fn where_every_host_is_above_its_limits_each_ones_figure_is_told() {
    let house = test_env();
    let full = HostSpec { max_sandboxes: Some(0), ..spec("full") };
    let manager = on(&house, vec![spec("a"), spec("b"), full], "first-available");
    house.has_room("a", room(2.5, 20.0, 10.0));
    house.has_room(
        "b",
        Headroom { networks: NetworkRoom::Left { left: 0, of: 31 }, ..room(0.1, 85.0, 1.0) },
    );
    let error = manager.create(mine()).await.unwrap_err();
    error.coded(Code::HostUnreachable);
    let causes = error.causes.join("\n");
    for words in [
        "a: load 2.50 per core, limit 2 (",
        "b: memory 85 % used, limit 80 %; no network left: all 31 address blocks of docker are in use",
        "full: full: 0 of 0 sandboxes",
    ] {
        assert!(causes.contains(words), "{causes}");
    }
    error.hints("raise its `limits`");
    // Of a host that somebody named, its own error.
    let named = CreateRequest { host: Some("A".into()), ..mine() };
    let error = manager.create(named).await.unwrap_err();
    error.coded(Code::Conflict);
    assert_eq!(error.message, "host a is above its limits: load 2.50 per core, limit 2");
    error.hints("limits");
}

#[tokio::test]
async fn what_could_not_be_read_refuses_nothing_and_is_said() {
    let house = test_env();
    let manager = on(&house, vec![spec("a"), spec("b")], "first-available");
    house.has_room("a", Headroom { networks: NetworkRoom::Unread, ..Headroom::default() });
    let started = manager.create(mine()).await.unwrap();
    let verdict = &started.sandbox.attempts[0];
    assert_eq!((verdict.host.as_str(), verdict.ok), ("a", true));
    let words = "load not read, memory not read, disk not read, networks not read";
    assert!(verdict.reason.ends_with(words), "{}", verdict.reason);
}

#[tokio::test]
async fn the_least_loaded_host_is_taken_then_the_emptier_then_the_first_by_name() {
    let house = test_env();
    let manager = on(&house, vec![spec("d"), spec("b"), spec("c"), spec("A")], "least-loaded");
    let down = Error::new(Code::HostUnreachable, "no answer");
    for (rooms, chosen) in [
        ([("d", 0.5, 50.0), ("b", 0.2, 50.0), ("c", 0.3, 1.0), ("A", 3.0, 1.0)], "b"),
        ([("d", 0.2, 10.0), ("b", 0.2, 50.0), ("c", 0.2, 20.0), ("A", 0.2, 99.0)], "d"),
        ([("d", 0.2, 10.0), ("b", 0.204, 10.0), ("c", 0.2, 10.0), ("A", 0.199, 10.0)], "A"),
    ] {
        for (host, load, memory) in rooms {
            house.has_room(host, room(load, memory, 1.0));
        }
        let plan = manager.plan_create(&mine()).await.unwrap();
        assert_eq!(plan.route.unwrap().host.as_str(), chosen, "{rooms:?}");
    }
    house.script.hosts.lock().unwrap().insert("A".into(), Err(down));
    house.has_room("b", Headroom::default());
    let route = manager.plan_create(&mine()).await.unwrap().route.unwrap();
    assert_eq!(route.host.as_str(), "c", "one that could not be read comes last");
}

#[tokio::test]
async fn a_restore_goes_to_its_host_above_the_limits_but_not_beyond_its_number_or_its_networks() {
    let house = test_env();
    let specs = vec![HostSpec { max_sandboxes: Some(2), ..spec("a") }];
    let manager = on(&house, specs, "first-available");
    house.has_room("a", room(0.1, 20.0, 10.0));
    let started = manager.create(mine()).await.unwrap();
    manager.wait(&started.operation.unwrap()).await.unwrap();
    let id = started.sandbox.id.to_string();
    let request = SnapshotRequest { name: Some("s".into()), ..of(id) };
    let taken = manager.snapshot(&request).await.unwrap();
    let wait = manager.wait(&taken.operation.unwrap()).await;
    let snapshot = wait.and_then(Record::into_snapshot).unwrap().id.to_string();
    let restore = || from_snapshot(&snapshot);
    let none = NetworkRoom::Left { left: 0, of: 31 };
    house.has_room("a", Headroom { networks: none, ..room(0.1, 20.0, 10.0) });
    manager.restore(&restore()).await.unwrap_err().says("no network left");
    house.has_room("a", room(0.1, 20.0, 99.0));
    let restored = manager.restore(&restore()).await.unwrap();
    let remarks = restored.sandbox.route.unwrap().remarks;
    assert_eq!(remarks[0], "a is above its limits: disk 99 % used, limit 90 %");
    manager.wait(&restored.operation.unwrap()).await.unwrap();
    let error = manager.restore(&restore()).await.unwrap_err();
    assert_eq!(error.message, "host a is full: 2 of 2 sandboxes");
}
