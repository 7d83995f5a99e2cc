//! Snapshots that come from a file: whose they are, and what a file is not believed.

use futures_util::stream::{self, StreamExt as _};
use sandboxer::domain::record::Record;

use sandboxer::domain::event::EventKind;
use sandboxer::domain::request::{EventQuery, PatchRequest, SnapshotImportRequest};
use sandboxer::domain::snapshot::{ArchiveManifest, SnapshotRecord, SnapshotState};
use sandboxer::domain::{Code, Error};

use super::recover::killed;
use super::snapshots::source;
use crate::test_env::script::Act;
use crate::test_env::{TestEnv, test_env};

impl TestEnv {
    pub(crate) async fn export(&self, id: &str) -> ArchiveManifest {
        let pieces: Vec<_> = self.manager.export_snapshot(id).await.unwrap().collect().await;
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

    async fn patch(&self, snapshot: &str) -> u64 {
        let request = PatchRequest {
            snapshot: snapshot.to_owned(),
            script: "true".to_owned(),
            ..PatchRequest::default()
        };
        self.manager.add_patch(&request).await.unwrap().sequence
    }
}

/// The same file with another content.
fn forged(file: &ArchiveManifest) -> ArchiveManifest {
    let mut file = file.clone();
    file.snapshot.archive.sha256 = Some("11".to_owned());
    file
}

#[tokio::test]
async fn a_changed_export_is_not_taken_for_the_snapshot_that_it_names() {
    let house = test_env();
    let id = source(&house).await;
    let snapshot = house.snapshot(&id, "my-env").await.unwrap();
    let (based, _) = house.restore(snapshot.id.as_str()).await;
    let file = house.export(snapshot.id.as_str()).await;
    house.delete(snapshot.id.as_str(), true).await.unwrap();

    let foreign = house.import(&forged(&file), Some("foreign")).await.unwrap();
    assert_ne!(foreign.id, snapshot.id);
    let said = foreign.message.unwrap();
    assert!(said.contains(snapshot.id.as_str()) && said.contains(based.id.as_str()), "{said}");
    let view = house.manager.snapshot_view("foreign").await.unwrap();
    assert_eq!((view.sandboxes, view.record.next_patch_sequence), (Vec::new(), 1));
    // Another recipe is another content, too.
    let mut other = file.clone();
    other.recipe.summary.push_str(", and more");
    other.snapshot.profile.hash = other.recipe.hash();
    assert_ne!(house.import(&other, Some("other")).await.unwrap().id, snapshot.id);

    // What was deleted comes back to those that are based on it.
    let back = house.import(&file, None).await.unwrap();
    assert_eq!((&back.id, back.message), (&snapshot.id, None));
    assert_eq!(
        (&file.snapshot.extension, file.snapshot.extension_version),
        (&snapshot.extension, Some("1.0.0".into()))
    );
    assert_eq!(back.extension_version, snapshot.extension_version);
    let view = house.manager.snapshot_view("my-env").await.unwrap();
    assert_eq!(view.sandboxes.iter().map(|s| &s.id).collect::<Vec<_>>(), [&based.id]);
}

#[tokio::test]
async fn an_id_that_a_child_names_is_not_given_to_a_changed_export() {
    let house = test_env();
    let id = source(&house).await;
    let snapshot = house.snapshot(&id, "a").await.unwrap();
    let (based, _) = house.restore(snapshot.id.as_str()).await;
    let child = house.snapshot(based.id.as_str(), "b").await.unwrap();
    let file = house.export(snapshot.id.as_str()).await;
    house.destroy(based.id.as_str()).await.1.unwrap();
    house.delete(snapshot.id.as_str(), false).await.unwrap();
    let foreign = house.import(&forged(&file), None).await.unwrap();
    assert_ne!(foreign.id, snapshot.id);
    assert!(foreign.message.unwrap().contains(child.id.as_str()));
}

#[tokio::test]
async fn an_export_that_nothing_refers_to_comes_back_and_uses_no_patchs_number_again() {
    let house = test_env();
    let id = source(&house).await;
    let snapshot = house.snapshot(&id, "my-env").await.unwrap();
    let file = house.export(snapshot.id.as_str()).await;
    let twin = house.import(&file, Some("twin")).await.unwrap();
    assert_ne!(twin.id, snapshot.id);
    assert!(twin.message.unwrap().contains("is here"));
    assert_eq!(
        (house.patch(snapshot.id.as_str()).await, house.patch(snapshot.id.as_str()).await),
        (1, 2)
    );
    house.delete(snapshot.id.as_str(), true).await.unwrap();
    let back = house.import(&file, None).await.unwrap();
    assert_eq!(
        (back.id.clone(), back.state, back.message),
        (snapshot.id, SnapshotState::Ready, None)
    );
    assert_eq!(house.patch(back.id.as_str()).await, 3, "1 and 2 are used up");
    assert_eq!(
        house.import(&file, None).await.unwrap_err().code,
        Code::Conflict,
        "its name is taken"
    );
}

#[tokio::test]
async fn each_life_of_an_id_is_told_and_none_uses_a_patchs_number_again() {
    let house = test_env();
    let id = source(&house).await;
    let snapshot = house.snapshot(&id, "my-env").await.unwrap();
    let file = house.export(snapshot.id.as_str()).await;
    let mut last = snapshot.revision;
    for life in 1..=3 {
        assert_eq!(house.patch(snapshot.id.as_str()).await, life);
        house.delete(snapshot.id.as_str(), true).await.unwrap();
        let back = house.import(&file, None).await.unwrap();
        assert_eq!(back.id, snapshot.id);
        assert!(back.revision > last, "{} after {last}", back.revision);
        last = back.revision;
    }
    let kinds = vec![EventKind::SnapshotReady, EventKind::SnapshotDeleted];
    let told = house.manager.events(&EventQuery { kinds, ..EventQuery::default() }).await.unwrap();
    let told: Vec<&str> = told.iter().map(|event| event.kind.as_str()).collect();
    assert_eq!(
        told,
        ["snapshot.ready", "snapshot.deleted"]
            .repeat(3)
            .into_iter()
            .chain(["snapshot.ready"])
            .collect::<Vec<_>>()
    );
}

#[tokio::test]
async fn an_export_of_another_installation_has_an_id_and_numbers_of_its_own() {
    let (from, to) = (test_env(), test_env());
    let id = source(&from).await;
    let snapshot = from.snapshot(&id, "my-env").await.unwrap();
    from.patch(snapshot.id.as_str()).await;
    let mut file = from.export(snapshot.id.as_str()).await;
    file.snapshot.next_patch_sequence = u64::MAX;
    let imported = to.import(&file, None).await.unwrap();
    assert_ne!((&imported.id, &imported.owner), (&snapshot.id, &snapshot.owner));
    assert!(imported.message.unwrap().contains("another installation"));
    assert_eq!(to.patch(imported.id.as_str()).await, 1);
}

impl TestEnv {
    /// An export of a snapshot whose archive is on its host, and of which no record is left.
    async fn unrecorded(&self) -> ArchiveManifest {
        let id = source(self).await;
        let snapshot = self.snapshot(&id, "my-env").await.unwrap();
        let file = self.export(snapshot.id.as_str()).await;
        let path = self.folder.path().join("snapshots.json");
        let mut stored: serde_json::Value =
            serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        stored["records"] = serde_json::json!([]);
        std::fs::write(&path, stored.to_string()).unwrap();
        file
    }

    fn imports(&self) -> usize {
        self.script.asked().iter().filter(|asked| asked.starts_with("import")).count()
    }
}

#[tokio::test]
async fn an_import_of_what_is_on_the_host_lists_it_again() {
    let house = test_env();
    let file = house.unrecorded().await;
    let there = [(format!("local/{}", file.id), true)];
    // Whoever is called off or dies over it takes nothing away.
    house.script.shelf.verify.lock().unwrap().push_back(Act::Hang);
    let request = SnapshotImportRequest { host: "local".to_owned(), name: None };
    let pieces = stream::iter([Ok(serde_json::to_vec(&file).unwrap())]).boxed();
    let operation =
        house.manager.import_snapshot(&request, pieces).await.unwrap().operation.unwrap();
    while !house.script.asked().iter().any(|asked| asked.starts_with("verify")) {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    house.manager.cancel(&operation).await.unwrap();
    assert_eq!(
        house.manager.wait(&operation).await.and_then(Record::into_snapshot).unwrap_err().code,
        Code::Cancelled
    );
    assert_eq!((house.script.shelf.there(), house.listed().await), (there.to_vec(), Vec::new()));

    let back = house.import(&file, None).await.unwrap();
    assert_eq!((&back.id, &back.state, house.imports()), (&file.id, &SnapshotState::Ready, 0));
    assert_eq!(back.path.unwrap(), format!("/srv/snapshots/{}", file.id));
    assert_eq!(house.restore(back.id.as_str()).await.1, Ok(()));
}

#[tokio::test]
async fn an_import_that_died_over_what_is_on_the_host_is_whole() {
    let house = test_env();
    let file = house.unrecorded().await;
    house.script.shelf.verify.lock().unwrap().push_back(Act::Hang);
    let of = serde_json::to_vec(&file).unwrap();
    killed(&house, "verify", |manager| async move {
        let request = SnapshotImportRequest { host: "local".to_owned(), name: None };
        manager.import_snapshot(&request, stream::iter([Ok(of)]).boxed()).await.map(|_| ())
    });
    assert!(house.other.recover().await.unwrap().iter().all(|item| item.ok));
    assert_eq!(house.script.shelf.there(), [(format!("local/{}", file.id), true)]);
    assert_eq!(house.listed().await, [("my-env".to_owned(), SnapshotState::Ready)]);
}

#[tokio::test]
async fn an_import_that_is_refused_for_what_is_on_the_host_leaves_that_alone() {
    let house = test_env();
    let file = house.unrecorded().await;
    let there = [(format!("local/{}", file.id), true)];
    let mut other = file.clone();
    other.recipe.summary.push_str(", and more");
    other.snapshot.profile.hash = other.recipe.hash();
    for (what, file, reading) in [
        ("content", forged(&file), Act::Well),
        ("recipe", other, Act::Well),
        ("reading", file.clone(), Act::Altered),
    ] {
        house.script.shelf.verify.lock().unwrap().clear();
        house.script.shelf.verify.lock().unwrap().push_back(reading);
        let fault = house.import(&file, None).await.unwrap_err();
        assert_eq!((fault.code, fault.hint.is_some()), (Code::Conflict, true), "{what}");
        assert_eq!(
            (house.script.shelf.there(), house.listed().await),
            (there.to_vec(), Vec::new()),
            "{what}"
        );
    }
    // A part of one, which somebody is about to bring.
    house.script.shelf.part("local", file.id.as_str());
    assert_eq!(house.import(&file, None).await.unwrap_err().code, Code::Conflict);
    assert_eq!(house.script.shelf.there(), [(format!("local/{}", file.id), false)]);
    assert_eq!(house.other.recover().await.unwrap(), []);
}
