//! What hosts said last, in `hosts.json`.

use std::fs;

use sandboxer::domain::HostName;
use sandboxer::domain::error::{Code, Error};
use sandboxer::domain::root::{HostRecord, MarkedRoot, RootMark};
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
