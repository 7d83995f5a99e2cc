//! Workspace roots as the manager knows them: what goes along to a host, what is learnt there, and what nobody can prove.

use std::fs;
use std::path::Path;

use sandboxer::domain::extension::Inspection;
use sandboxer::domain::request::CreateRequest;
use sandboxer::domain::root::{KnownRoots, MarkedRoot, RootMark};
use sandboxer::domain::sandbox::State;
use sandboxer::domain::{Code, HostName};
use sandboxer::store::HostStore;
use sandboxer::store::json::JsonStores;

use crate::support::json_assertions::JsonAssertions as _;
use crate::test_env::script::Act;
use crate::test_env::{TestEnv, of, test_env};

fn root() -> MarkedRoot {
    MarkedRoot {
        mark: RootMark::from_random([7, 0, 0, 0]),
        machine_id: "m".into(),
        path: "/srv".into(),
    }
}

/// A house whose host says which root it has.
fn marked() -> TestEnv {
    let house = test_env();
    house.script.root.set(Some(root()));
    house
}

impl TestEnv {
    fn last_told(&self) -> KnownRoots {
        self.script.told.lock().unwrap().last().cloned().unwrap()
    }

    async fn named(&self, name: &str) -> String {
        let request = CreateRequest { name: Some(name.into()), ..CreateRequest::default() };
        self.made(request).await.id.to_string()
    }
}

#[tokio::test]
async fn a_mark_is_learnt_before_anything_is_made_and_goes_along_from_then_on() {
    let house = marked();
    // Its console dies right after the host said it: a hang that is killed with the runtime.
    house.script(&[Act::fails("no")], &[], &[]);
    let (record, _) = house.create(CreateRequest::default()).await;
    assert_eq!(record.state, State::Failed);
    let first = house.script.told.lock().unwrap()[0].clone();
    assert!(first.marked.is_empty() && first.unmarked.is_empty(), "{first:?}");
    let spare = first.spare.unwrap();
    assert_eq!(house.last_told().marked, [root()], "the rollback knew it");
    let stores = JsonStores::open(house.folder.path()).unwrap();
    let known = stores.hosts.get(&HostName::new("LOCAL")).await.unwrap().unwrap();
    assert_eq!((known.roots, known.spare_mark), (vec![root()], Some(spare)));
}

#[tokio::test]
async fn another_root_may_be_where_nothing_is_recorded() {
    let house = marked();
    let id = house.named("one").await;
    house.named("two").await;
    assert_eq!(house.last_told().marked, [root()], "it must be the one that `one` is in");
    for name in [id.as_str(), "two"] {
        let id = house.record(name).await.id;
        assert_eq!(house.destroy(&id).await.1, Ok(()));
    }
    house.named("three").await;
    let provisions: Vec<KnownRoots> = house.script.told.get();
    let third = &provisions[provisions.len() - 1];
    assert!(third.marked.is_empty() && third.unmarked.is_empty(), "{third:?}");
}

#[tokio::test]
async fn a_root_of_which_only_records_know_is_told_as_such() {
    let house = marked();
    let id = house.named("one").await;
    house.snapshot(&id, "s").await.unwrap();
    fs::remove_file(house.folder.path().join("hosts.json")).unwrap();
    fs::remove_file(house.folder.path().join("hosts.json.bak")).unwrap();
    house.script.root.set(None);
    house.named("two").await;
    let told = house.last_told();
    assert_eq!((told.marked.len(), told.unmarked.len()), (0, 1), "{told:?}");
    assert_eq!(told.unmarked[0].path.as_str(), "/srv");
    assert_eq!(told.unmarked[0].machine_id.as_str(), "m");
    assert!(told.spare.is_some());
}

#[tokio::test]
async fn what_cannot_be_proved_writes_nothing_off() {
    let house = marked();
    let id = house.named("one").await;
    house.script.nothing_there.set(true);
    // No services: it is looked for, and the root is not there.
    house.script(&[], &[Act::Fail(Code::HostChanged, "the root is away")], &[]);
    house.manager.refresh_services("local").await.unwrap();
    assert_eq!(house.record(&id).await.state, State::Ready);
    house.script(&[], &[], &[Act::Untouched(Code::HostChanged)]);
    assert_eq!(house.destroy(&id).await.1, Err(Code::HostChanged));
    assert_ne!(house.record(&id).await.state, State::Destroyed);
    // A look at the proved root says that nothing is left.
    house.script.seen.set(Inspection::default());
    assert_eq!(house.destroy(&id).await.1, Ok(()));
}

#[tokio::test]
async fn an_archive_in_a_root_that_is_gone_is_given_up_by_force_only() {
    let house = marked();
    let snapshot = house.base("s").await;
    house.script.shelf.changed.lock().unwrap().push("local");
    house.delete(&snapshot, false).await.unwrap_err().coded(Code::HostChanged);
    assert!(house.manager.snapshot_view(&snapshot).await.is_ok(), "it is there as before");
    house.delete(&snapshot, true).await.unwrap();
}

/// A profile with a root of its own and a directory as input.
fn profile(data: &Path, root: &Path) {
    let text = format!(
        "id: profile.rooted\nversion: 1.0.0\nsummary: For a test\nextension: ext.compose-ssh\nttl: 1h\nmax_ttl: 2h\n\
         inputs: {{repo: {{required: true, kind: directory, help: r}}}}\nconfig: {{root: {}}}\n",
        root.display()
    );
    fs::create_dir_all(data.join("profiles")).unwrap();
    fs::write(data.join("profiles/rooted.yaml"), text).unwrap();
}

#[tokio::test]
async fn a_directory_with_sandboxes_in_it_is_no_input() {
    let house = test_env();
    let data = house.folder.path();
    let of_profile = data.join("disk/root");
    fs::create_dir_all(of_profile.join("sbx-1/workspace")).unwrap();
    fs::create_dir_all(data.join("repo")).unwrap();
    std::os::unix::fs::symlink(&of_profile, data.join("link")).unwrap();
    profile(data, &data.join("link"));
    let create = async |repo: &Path| {
        let request = CreateRequest {
            profile: Some("profile.rooted".into()),
            inputs: [("repo".to_owned(), repo.display().to_string())].into(),
            ..CreateRequest::default()
        };
        let made =
            house.manager.create(request.clone()).await.map(drop).map_err(|fault| fault.code);
        let found = house.manager.plan_create(&request).await.is_err();
        assert_eq!(found, made.is_err(), "the plan says so too");
        made
    };
    for refused in ["disk", "disk/root", "disk/root/sbx-1", "link", "."] {
        assert_eq!(create(&data.join(refused)).await, Err(Code::InvalidInput), "{refused}");
    }
    // A record's root, whatever the configuration says by now.
    house.script.workdirs.set(Some(data.join("old")));
    fs::create_dir_all(data.join("old/sbx-2")).unwrap();
    assert_eq!(create(&data.join("old")).await, Ok(()), "nobody uses it");
    let (record, _) = house.create(CreateRequest::default()).await;
    assert_eq!(record.state, State::Ready);
    for refused in ["old", "old/sbx-2"] {
        assert_eq!(create(&data.join(refused)).await, Err(Code::InvalidInput), "{refused}");
    }
    house.manager.destroy(&of(&record.id)).await.unwrap();
}
