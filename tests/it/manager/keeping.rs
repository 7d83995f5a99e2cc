//! What goes by itself, what does not, and what is told of it; and names that would mean two things.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::time::Duration;

use sandboxer::domain::event::EventKind;
use sandboxer::domain::request::{CreateRequest, PruneItem, PruneRequest, SnapshotDeleteRequest};
use sandboxer::domain::retention::RetentionRule;
use sandboxer::domain::{Code, Error};

use crate::support::json_assertions::JsonAssertions as _;
use crate::test_env::script::Act;
use crate::test_env::{TestEnv, named, of, test_env, with_sandbox, with_snapshot};

/// A house whose profile `profile.few` keeps one snapshot, and a sandbox of it.
async fn few(labels: &[(&str, &str)]) -> (TestEnv, String) {
    let house = test_env();
    let folder = house.folder.path().join("profiles");
    std::fs::create_dir(&folder).unwrap();
    let text = include_str!("../../../profiles/sandbox-canary.yaml")
        .replace("profile.sandbox-canary", "profile.few");
    std::fs::write(folder.join("few.yaml"), text.replace("{mode: live}", "{mode: live, keep: 1}"))
        .unwrap();
    let labels: BTreeMap<_, _> =
        labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let request =
        CreateRequest { profile: Some("few".to_owned()), labels, ..CreateRequest::default() };
    let id = house.made(request).await.id.to_string();
    (house, id)
}

impl TestEnv {
    /// A moment later than the one before.
    async fn later(
        &self,
        sandbox: impl Display,
        name: &str,
    ) -> sandboxer::domain::snapshot::SnapshotRecord {
        tokio::time::sleep(Duration::from_millis(20)).await;
        self.snapshot(sandbox, name).await.unwrap()
    }

    pub(crate) async fn names(&self) -> Vec<String> {
        self.listed().await.into_iter().map(|(name, _)| name).collect()
    }

    async fn told(&self, kind: EventKind) -> Vec<serde_json::Value> {
        self.events(&[kind]).await.into_iter().map(|event| event.data).collect()
    }
}

#[tokio::test]
async fn keep_deletes_the_oldest_and_says_so_and_leaves_what_was_imported() {
    let (house, id) = few(&[]).await;
    let first = house.later(&id, "first").await;
    let file = house.export(&first.id).await;
    let second = house.later(&id, "second").await;
    assert_eq!(house.names().await, ["second"]);
    let said = second.message.unwrap();
    assert!(said.contains("keeps 1") && said.contains("first"), "{said}");
    assert_eq!(house.told(EventKind::SnapshotDeleted).await.len(), 1);

    let back = house.import(&file, None).await.unwrap();
    assert!(back.imported_at.unwrap() > back.created_at);
    let third = house.later(&id, "third").await;
    assert!(third.message.unwrap().contains("second"));
    assert_eq!(house.names().await, ["first", "third"], "somebody brought it here on purpose");
    assert_eq!(house.later(&id, "fourth").await.imported_at, None);
}

/// As if everything so far had been taken at this moment, by a clock that somebody set since.
fn taken_in(house: &TestEnv, year: u16) {
    house.edit("snapshots.json", |stored| {
        for record in stored["records"].as_array_mut().unwrap() {
            record["created_at"] = format!("{year}-01-01T00:00:00Z").into();
        }
    });
}

#[tokio::test]
async fn what_was_just_made_is_the_newest_whatever_the_clock_says() {
    let (house, id) = few(&[]).await;
    house.later(&id, "first").await;
    taken_in(&house, 2099);
    let second = house.later(&id, "second").await;
    assert_eq!(house.names().await, vec!["second".to_owned()]);
    assert!(second.message.unwrap().contains("first"));

    let (house, id) = with_sandbox().await;
    house.later(&id, "first").await;
    taken_in(&house, 2099);
    house.later(&id, "second").await;
    let prune = PruneRequest { keep: Some(1), ..PruneRequest::default() };
    let items = house.manager.prune_snapshots(&prune).await.unwrap();
    assert_eq!(
        (items.len(), items[0].name.as_deref(), house.names().await),
        (1, Some("first"), vec!["second".to_owned()])
    );

    // Nor is a failure forgotten at once for it.
    for name in ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "last"] {
        house.script.shelf.capture.push(Act::full());
        if name == "last" {
            taken_in(&house, 2099);
        }
        house.snapshot(&id, name).await.unwrap_err();
    }
    let names = house.names().await;
    assert!(names.contains(&"last".to_owned()) && !names.contains(&"a".to_owned()), "{names:?}");
}

#[tokio::test]
async fn a_plan_that_is_not_true_any_more_deletes_nothing() {
    let (house, id) = with_sandbox().await;
    house.later(&id, "one").await;
    house.later(&id, "two").await;
    let plan = PruneRequest { keep: Some(1), dry_run: true, ..PruneRequest::default() };
    let one = house.manager.prune_snapshots(&plan).await.unwrap().remove(0).id;
    let rule = RetentionRule { keep: Some(1), ..RetentionRule::default() };
    let go = async |revision| {
        let request = SnapshotDeleteRequest { revision, rule: Some(rule), ..of(&one) };
        let fault = house.manager.delete_snapshot(&request).await.err().unwrap();
        fault.details["skipped"].as_str().unwrap().to_owned()
    };
    // What was shown is not what is there.
    let revision = house.manager.snapshot_view(one.as_str()).await.unwrap().record.revision;
    assert!(go(Some(revision + 1)).await.contains("changed since it was looked at"));
    // Somebody uses it.
    let based = house.restore(&one).await.0.id;
    assert_eq!(go(None).await, format!("kept, in use by sandbox {based}"));
    house.destroy(&based).await.1.unwrap();
    // The newer one is gone.
    house.other.settle().await.unwrap();
    let two = house.other.snapshot_view("two").await.unwrap().record.id;
    house.delete(&two, false).await.unwrap();
    assert_eq!(go(None).await, format!("kept, it is the newest of sandbox {id}"));
    assert_eq!(house.names().await, ["one"], "the last one stays");
    let operations = house.manager.operations().await.unwrap();
    assert!(
        operations.iter().all(|operation| operation.error.is_none()),
        "what is skipped is no failure"
    );
    // So is the whole plan.
    house.delete(&one, false).await.unwrap();
    assert_eq!(go(None).await, PruneItem::GONE);
}

#[tokio::test]
async fn what_a_prune_deleted_it_tells_with_the_reason_of_that_moment() {
    let (house, id) = with_sandbox().await;
    for name in ["one", "two", "three"] {
        house.later(&id, name).await;
    }
    let prune = PruneRequest { keep: Some(1), ..PruneRequest::default() };
    let items = house.manager.prune_snapshots(&prune).await.unwrap();
    let told: Vec<_> = items
        .iter()
        .map(|item| (item.name.as_deref().unwrap(), item.ok, item.reason.as_str()))
        .collect();
    let two = format!("2 newer ones of sandbox {id} are there");
    let one = format!("1 newer one of sandbox {id} is there");
    assert_eq!(told, [("one", true, two.as_str()), ("two", true, one.as_str())]);
}

#[tokio::test]
async fn what_is_protected_goes_only_by_name_and_with_its_flag() {
    let (house, id) = few(&[("protect", "true")]).await;
    for name in ["one", "two", "three"] {
        house.later(&id, name).await;
    }
    assert_eq!(house.names().await, ["one", "two", "three"], "`keep` leaves them");
    let prune = PruneRequest { keep: Some(0), ..PruneRequest::default() };
    let items = house.manager.prune_snapshots(&prune).await.unwrap();
    assert!(
        items
            .iter()
            .all(|item| !item.ok && item.error.is_none() && item.reason.contains("protect=true")),
        "{items:?}"
    );
    assert_eq!((items.len(), house.names().await.len()), (3, 3));

    let one = house.manager.snapshot_view("one").await.unwrap().record.id.to_string();
    let fault = house.delete(&one, true).await.unwrap_err();
    assert_eq!((&fault.code, house.names().await.len()), (&Code::Conflict, 3), "{fault}");
    fault.hints("--force-protected");
    let request = SnapshotDeleteRequest { force_protected: true, ..of(one) };
    house.delete_as(&request).await.unwrap();
    assert_eq!(house.names().await, ["two", "three"]);
}

#[tokio::test]
async fn a_deletion_tells_of_the_patches_it_takes() {
    let (house, snapshot) = with_snapshot().await;
    let mut patches = Vec::new();
    for script in ["one", "two"] {
        patches.push(house.add(&snapshot, script).await.id);
    }
    house.delete(&snapshot, true).await.unwrap();
    let told = house.told(EventKind::PatchRemoved).await;
    let ids: Vec<_> = told.iter().map(|data| data["patch_id"].as_str().unwrap()).collect();
    assert_eq!(ids, patches.iter().map(sandboxer::domain::PatchId::as_str).collect::<Vec<_>>());
    assert!(
        told.iter()
            .all(|data| data["snapshot_id"] == snapshot.as_str()
                && data["snapshot_name"] == "my-env")
    );
    assert_eq!(house.kinds().await.last().unwrap(), "snapshot.deleted");
}

#[tokio::test]
async fn a_name_is_never_an_id_nor_an_id_a_name() {
    let house = test_env();
    let chosen = |id: &str| CreateRequest { id: Some(id.to_owned()), ..CreateRequest::default() };
    let taken = |fault: &Error, field: &str| {
        assert_eq!((&fault.code, fault.field()), (&Code::Conflict, Some(field)), "{fault}");
    };
    house.made(chosen("shop")).await;
    taken(&house.manager.snapshot(&named("shop", "shop")).await.unwrap_err(), "name");
    assert!(house.names().await.is_empty() && house.there().is_empty());

    let env = house.snapshot("shop", "env").await.unwrap();
    taken(&house.manager.create(chosen("env")).await.unwrap_err(), "id");
    taken(&house.manager.plan_create(&chosen("env")).await.unwrap().error.unwrap(), "id");
    let read_as_a_snapshots = house.manager.create(chosen(env.id.as_str())).await.unwrap_err();
    assert_eq!(
        (&read_as_a_snapshots.code, read_as_a_snapshots.field()),
        (&Code::InvalidInput, Some("id"))
    );
    let file = house.export(&env.id).await;
    house.import(&file, Some("shop")).await.unwrap_err().coded(Code::Conflict);
    house.delete(&env.id, false).await.unwrap();
    house.made(chosen("env")).await;
}

#[tokio::test]
async fn old_snapshots_that_came_to_nothing_go_whoever_comes_by() {
    let (house, id) = with_sandbox().await;
    // As if they had failed 31 days ago; something of the second may still be on its host.
    let fail = async || {
        house.script.shelf.remove.push(Act::Well);
        house.script.shelf.remove.push(Act::no_route());
        for name in ["old", "left"] {
            house.script.shelf.capture.push(Act::full());
            house.snapshot(&id, name).await.unwrap_err();
        }
        taken_in(&house, 2020);
        assert!(house.names().await.contains(&"old".to_owned()));
    };
    fail().await;
    // A dashboard that starts.
    house.other.settle().await.unwrap();
    assert_eq!(house.names().await, ["left"]);
    fail().await;
    house.create(CreateRequest::default()).await.1.unwrap();
    assert_eq!(house.names().await, ["left", "left"], "they name what is left on a host");
    // The event tells of them still.
    assert_eq!(house.count_told("snapshot.failed").await, 4);
}
