//! What hosts said last, in `hosts.json`.

use std::fs;

use sandboxer::domain::error::{Code, Error};
use sandboxer::domain::facts::HostFacts;
use sandboxer::domain::host_report::HostReport;
use sandboxer::domain::root::{HostRecord, MarkedRoot, RootMark};
use sandboxer::domain::{HostName, Time};
use sandboxer::store::{Change, HostStore};

use super::stores;

fn learn<'a>(mark: u32) -> Change<'a, HostRecord> {
    Box::new(move |record: &mut HostRecord| {
        let mark = RootMark::from_random([mark, 0, 0, 0]);
        record.learn(MarkedRoot { mark, machine_id: "m".into(), path: "/srv".into() });
        Ok(())
    })
}

#[tokio::test]
async fn a_host_is_known_whatever_case_its_name_is_in() {
    let dir = tempfile::tempdir().unwrap();
    let hosts = stores(dir.path()).hosts;
    let name = HostName::new("CoulombCore");
    assert_eq!(hosts.get(&name).await.unwrap(), None);
    let first = hosts.update(&name, learn(1)).await.unwrap();
    assert_eq!((first.id.as_str(), first.revision), ("coulombcore", 1));
    let written = fs::read(dir.path().join("hosts.json")).unwrap();
    assert_eq!(hosts.update(&HostName::new("coulombcore"), learn(1)).await.unwrap(), first);
    assert_eq!(fs::read(dir.path().join("hosts.json")).unwrap(), written, "nothing changed");
    let refused: Change<'_, HostRecord> = Box::new(|_| Err(Error::new(Code::Conflict, "no")));
    hosts.update(&name, refused).await.unwrap_err();
    assert_eq!(stores(dir.path()).hosts.update(&name, learn(2)).await.unwrap().revision, 2);
    assert_eq!(hosts.get(&name).await.unwrap().unwrap().roots.len(), 1);
}

#[tokio::test]
async fn what_a_newer_version_keeps_of_a_host_stays() {
    let dir = tempfile::tempdir().unwrap();
    let name = HostName::new("box");
    stores(dir.path()).hosts.update(&name, learn(1)).await.unwrap();
    let path = dir.path().join("hosts.json");
    let text = fs::read_to_string(&path)
        .unwrap()
        .replace(r#""revision":1,"roots""#, r#""facts":{"cpus":2},"revision":1,"roots""#);
    fs::write(&path, text).unwrap();
    stores(dir.path()).hosts.update(&name, learn(2)).await.unwrap();
    assert!(fs::read_to_string(&path).unwrap().contains(r#""facts":{"cpus":2}"#));
}

fn said(machine: &str, second: i64) -> HostReport {
    HostReport::of(
        HostFacts { machine_id: machine.into(), at: Time::from_unix(second), ..facts() },
        None,
    )
}

fn facts() -> HostFacts {
    serde_json::from_value(serde_json::json!({
        "at": "2026-11-29T12:00:00Z", "machine_id": "m", "hostname": "h", "kernel": "k", "os": null,
        "user": "u", "uid": 0, "cpus": 2, "load1": 0.1, "mem_total_bytes": 2,
        "mem_available_bytes": 1, "disk": null, "workspace_root": "/s", "clock_offset_s": null,
        "inventory": {"sandboxes": [{"sandbox_id": "a1b2c3d4", "owner": null, "directory": "/s/a"}]},
    }))
    .unwrap()
}

fn renew<'a>(report: HostReport) -> Change<'a, HostRecord> {
    Box::new(move |record: &mut HostRecord| {
        record.renew_report(report);
        Ok(())
    })
}

#[tokio::test]
async fn what_a_host_said_is_kept_beside_its_roots_with_things_counted() {
    let dir = tempfile::tempdir().unwrap();
    let name = HostName::new("box");
    // A file of an earlier version knows roots only.
    stores(dir.path()).hosts.update(&name, learn(1)).await.unwrap();
    assert_eq!(stores(dir.path()).hosts.get(&name).await.unwrap().unwrap().last_report(), None);
    stores(dir.path()).hosts.update(&name, renew(said("m", 5))).await.unwrap();
    let text = fs::read_to_string(dir.path().join("hosts.json")).unwrap();
    assert!(!text.contains("a1b2c3d4"), "{text}");
    let record = stores(dir.path()).hosts.get(&name).await.unwrap().unwrap();
    let report = record.last_report().unwrap();
    assert_eq!((record.roots.len(), report.inventory.unwrap().directories), (1, 1));
    assert_eq!(report, said("m", 5));
}

#[tokio::test]
async fn a_report_that_cannot_be_understood_is_none_and_costs_the_roots_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let name = HostName::new("box");
    let hosts = stores(dir.path()).hosts;
    hosts.update(&name, learn(1)).await.unwrap();
    hosts.update(&name, renew(said("m", 5))).await.unwrap();
    let path = dir.path().join("hosts.json");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace(r#""load1":0.1"#, r#""load1":"much""#)).unwrap();
    let record = stores(dir.path()).hosts.get(&name).await.unwrap().unwrap();
    assert_eq!((record.last_report(), record.roots.len()), (None, 1));
    stores(dir.path()).hosts.update(&name, renew(said("m", 9))).await.unwrap();
    let record = stores(dir.path()).hosts.get(&name).await.unwrap().unwrap();
    assert_eq!(record.last_report(), Some(said("m", 9)));
}

#[tokio::test]
async fn two_processes_write_what_they_heard_and_nothing_is_lost() {
    let dir = tempfile::tempdir().unwrap();
    let writers = (0..8u32).map(|at| {
        let hosts = stores(dir.path()).hosts;
        async move {
            for second in 0..5 {
                let name = HostName::new(format!("host-{}", at % 4));
                if at < 4 {
                    hosts.update(&name, renew(said("m", second))).await.unwrap();
                } else {
                    hosts.update(&name, learn(at * 10 + second as u32)).await.unwrap();
                }
            }
        }
    });
    futures_util::future::join_all(writers).await;
    for at in 0..4 {
        let name = HostName::new(format!("host-{at}"));
        let record = stores(dir.path()).hosts.get(&name).await.unwrap().unwrap();
        assert_eq!((record.last_report(), record.roots.len()), (Some(said("m", 4)), 1));
        assert_eq!(record.revision, 10, "no write was lost");
    }
}
