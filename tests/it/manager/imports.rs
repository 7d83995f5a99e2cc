//! Snapshots that come from a file: whose they are, and what a file is not believed.

use std::fmt::Display;

use futures_util::stream::{self, StreamExt as _};
use sandboxer::domain::record::Record;

use sandboxer::domain::request::SnapshotImportRequest;
use sandboxer::domain::snapshot::{ArchiveManifest, SnapshotRecord, SnapshotState};
use sandboxer::domain::{Code, Error};

use super::recover::killed;
use crate::support::json_assertions::JsonAssertions as _;
use crate::test_env::script::Act;
use crate::test_env::{TestEnv, test_env, with_sandbox, with_snapshot};

impl TestEnv {
    pub(crate) async fn export(&self, id: impl Display) -> ArchiveManifest {
        let pieces: Vec<_> =
            self.manager.export_snapshot(&id.to_string()).await.unwrap().collect().await;
        serde_json::from_slice(pieces[0].as_ref().unwrap()).unwrap()
    }

    pub(crate) async fn import(
        &self,
        file: &ArchiveManifest,
        name: Option<&str>,
    ) -> Result<SnapshotRecord, Error> {
        let request =
            SnapshotImportRequest { host: "local".to_owned(), name: name.map(str::to_owned) };
        let pieces = stream::iter([Ok(serde_json::to_vec(file).unwrap())]).boxed();
        let started = self.manager.import_snapshot(&request, pieces).await?;
        self.manager.wait(&started.operation.unwrap()).await.and_then(Record::into_snapshot)
    }

    /// The number of a patch that is added.
    async fn patch(&self, snapshot: impl Display) -> u64 {
        self.add(snapshot, "true").await.sequence
    }
}

#[tokio::test]
async fn an_import_has_an_id_and_numbers_of_its_own_and_says_where_it_comes_from() {
    let (house, id) = with_sandbox().await;
    let snapshot = house.snapshot(&id, "my-env").await.unwrap();
    let (based, _) = house.restore(&snapshot.id).await;
    house.patch(snapshot.id.as_str()).await;
    let file = house.export(&snapshot.id).await;
    let found = house.import(&file, None).await.unwrap_err().code;
    assert_eq!(found, Code::Conflict, "its name is taken");
    let twin = house.import(&file, Some("twin")).await.unwrap();
    assert_eq!((&twin.imported_from, twin.next_patch_sequence), (&Some(snapshot.id.clone()), 1));
    assert!(twin.message.unwrap().contains("taken on local"));
    assert_eq!(file.snapshot.extension, snapshot.extension);
    assert_eq!(file.snapshot.extension_version.clone(), Some("1.0.0".into()));
    assert_eq!(twin.extension_version, snapshot.extension_version);

    // Also where nobody has the old one any more: what was based on that is not made again from what a file says.
    house.delete(&snapshot.id, true).await.unwrap();
    let mut forged = file.clone();
    forged.snapshot.archive.sha256 = Some("11".to_owned());
    for (file, name) in [(&file, "my-env"), (&forged, "forged")] {
        let back = house.import(file, Some(name)).await.unwrap();
        assert_eq!(back.state, SnapshotState::Ready);
        assert!(![&snapshot.id, &twin.id].contains(&&back.id));
        let view = house.manager.snapshot_view(name).await.unwrap();
        assert!(view.sandboxes.is_empty(), "{based:?}");
        assert_eq!(house.patch(back.id.as_str()).await, 1);
        assert_eq!(house.restore(&back.id).await.1, Ok(()));
    }
}

#[tokio::test]
async fn an_export_of_another_installation_is_owned_here_and_names_no_snapshots_of_there() {
    let (from, to) = (test_env(), test_env());
    let id = from.ready().await;
    let first = from.snapshot(&id, "first").await.unwrap();
    let (based, _) = from.restore(&first.id).await;
    let snapshot = from.snapshot(&based.id, "my-env").await.unwrap();
    let mut file = from.export(&snapshot.id).await;
    assert_eq!(file.snapshot.parent_snapshot, Some(first.id));
    file.snapshot.next_patch_sequence = u64::MAX;
    let imported = to.import(&file, None).await.unwrap();
    assert_ne!((&imported.id, &imported.owner), (&snapshot.id, &snapshot.owner));
    assert_eq!((imported.imported_from, imported.parent_snapshot), (Some(snapshot.id), None));
    assert!(imported.message.unwrap().contains(snapshot.owner.as_str()));
    assert_eq!(to.patch(imported.id.as_str()).await, 1);
}

#[tokio::test]
async fn a_verify_leaves_the_words_of_an_import() {
    let (house, base) = with_snapshot().await;
    let file = house.export(&base).await;
    let twin = house.import(&file, Some("twin")).await.unwrap();
    assert!(twin.message.is_some());
    for (act, sound) in [(Act::Fail(Code::HostUnreachable, "no route"), false), (Act::Well, true)] {
        house.script.shelf.verify.push(act);
        let started = house.manager.verify_snapshot(twin.id.as_str()).await.unwrap();
        assert_eq!(house.manager.wait(&started.operation.unwrap()).await.is_ok(), sound);
        let view = house.manager.snapshot_view("twin").await.unwrap();
        assert_eq!(view.record.message, twin.message);
    }
}

/// Starts an import as another process does, and is killed at a moment of it.
fn killed_at(house: &TestEnv, moment: &'static str, file: &ArchiveManifest) {
    let of = serde_json::to_vec(file).unwrap();
    killed(house, moment, |manager| async move {
        let request =
            SnapshotImportRequest { host: "local".to_owned(), name: Some("back".to_owned()) };
        manager.import_snapshot(&request, stream::iter([Ok(of)]).boxed()).await
    });
}

#[tokio::test]
async fn an_import_that_comes_to_nothing_leaves_nothing() {
    let (house, snapshot) = with_snapshot().await;
    let file = house.export(&snapshot).await;
    let there = [(format!("local/{snapshot}"), true)];
    house.script.shelf.import.push(Act::Fail(Code::InvalidInput, "a bomb"));
    house.import(&file, Some("back")).await.unwrap_err().coded(Code::InvalidInput);
    assert_eq!((house.there(), house.listed().await.len()), (there.to_vec(), 1));

    house.script.shelf.import.push(Act::Hang);
    killed_at(&house, "import", &file);
    assert_eq!(house.there().len(), 2);
    house.recover().await;
    assert_eq!(house.there(), there);
    assert_eq!(house.other.recover().await.unwrap(), []);

    // Its host goes away meanwhile: what is left is listed, and removed later.
    house.script.shelf.import.push(Act::Fail(Code::HostUnreachable, "no"));
    let away = Act::no_route();
    house.script.shelf.remove.push(away);
    let fault = house.import(&file, Some("left")).await.unwrap_err();
    assert_eq!(fault.details["unremoved"], true);
    assert_eq!(house.replicas("left").await, ["local removing"]);
    assert!(house.other.recover().await.unwrap()[0].ok);
    assert_eq!((house.there(), house.replicas("left").await), (there.to_vec(), Vec::new()));
}

#[tokio::test]
async fn an_import_that_died_over_a_whole_archive_is_a_snapshot() {
    let (house, snapshot) = with_snapshot().await;
    let file = house.export(&snapshot).await;
    house.script.shelf.copied.push(Act::Hang);
    killed_at(&house, "sealed", &file);
    house.recover().await;
    assert_eq!(house.replicas("back").await, ["local ready"]);
    let back = house.manager.snapshot_view("back").await.unwrap().record;
    assert_eq!(back.imported_from.as_ref().unwrap().as_str(), snapshot);
    assert_eq!(house.restore(&back.id).await.1, Ok(()));
}
