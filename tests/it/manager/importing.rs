//! `import` of what the earlier Python tool kept: its files are set aside and never lost, and what was in them is touched by
//! nothing.

use std::fs;
use std::path::Path;

use sandboxer::domain::Code;
use sandboxer::domain::adoption::{Adopted, AdoptedKind, ImportRequest};
use sandboxer::domain::request::{DestroyRequest, ListQuery};
use sandboxer::domain::sandbox::State;
use sandboxer::domain::sweep::SweepRequest;
use sandboxer::manager::SandboxManager;

use crate::support::json_assertions::JsonAssertions as _;
use crate::test_env::{TestEnv, of, test_env};

const SANDBOXES: &str = include_str!("../stores/fixtures/earlier-sandboxes.json");
const SNAPSHOTS: &str = include_str!("../stores/fixtures/earlier-snapshots.json");

fn with_its_files() -> TestEnv {
    let house = test_env();
    fs::write(house.folder.path().join("sandboxes.json"), SANDBOXES).unwrap();
    fs::write(house.folder.path().join("snapshots.json"), SNAPSHOTS).unwrap();
    house
}

async fn import(manager: &SandboxManager, dry_run: bool) -> Vec<Adopted> {
    manager.import(&ImportRequest { dry_run }).await.unwrap()
}

fn verdicts(items: &[Adopted]) -> Vec<(&str, bool, Option<Code>)> {
    let code = |item: &Adopted| item.error.as_ref().map(|error| error.code.clone());
    items.iter().map(|item| (item.id.as_str(), item.ok, code(item))).collect()
}

fn files(data: &Path) -> Vec<String> {
    let entries = fs::read_dir(data).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = entries.map(|name| name.into_string().unwrap()).collect();
    names.retain(|name| name.starts_with("sandboxes") || name.starts_with("snapshots"));
    names.sort();
    names
}

#[tokio::test]
async fn a_dry_run_says_all_of_it_and_changes_nothing() {
    let house = with_its_files();
    house.manager.list(&ListQuery::default()).await.unwrap_err().coded(Code::StoreForeign);
    let items = import(&house.manager, true).await;
    let count = |ok: bool| items.iter().filter(|item| item.ok == ok).count();
    assert_eq!((count(true), count(false)), (5, 2), "{items:?}");
    assert_eq!(files(house.folder.path()), ["sandboxes.json", "snapshots.json"]);
    assert_eq!(fs::read_to_string(house.folder.path().join("sandboxes.json")).unwrap(), SANDBOXES);
}

#[tokio::test]
async fn each_entry_becomes_a_record_or_says_why_not_and_a_second_run_is_nothing_to_do() {
    let house = with_its_files();
    let planned = import(&house.manager, true).await;
    let items = import(&house.manager, false).await;
    assert_eq!(verdicts(&items), verdicts(&planned));
    let refused: Vec<_> = items.iter().filter(|item| !item.ok).collect();
    let messages: Vec<_> =
        refused.iter().map(|item| &item.error.as_ref().unwrap().message).collect();
    assert!(messages.iter().any(|text| text.contains("twice")), "{messages:?}");
    assert!(
        messages.iter().any(|text| text.contains("broken of the earlier tool: it is no object")),
        "{messages:?}"
    );
    let data = house.folder.path();
    assert_eq!(fs::read_to_string(data.join("sandboxes.json.python")).unwrap(), SANDBOXES);
    assert_eq!(fs::read_to_string(data.join("snapshots.json.python")).unwrap(), SNAPSHOTS);
    let records =
        house.manager.list(&ListQuery { all: true, ..ListQuery::default() }).await.unwrap();
    let states: Vec<&str> = records.iter().map(|record| record.state.as_str()).collect();
    assert_eq!(states.iter().filter(|state| **state == "imported").count(), 2, "{states:?}");
    let one = house.manager.get("0a1b2c3d").await.unwrap();
    assert_eq!((one.ttl_s, one.expires_at), (Some(14_400), None));
    assert_eq!(one.imported.as_ref().unwrap()["handle"]["project"], "sandbox-0a1b2c3d");
    assert_eq!(house.manager.get("4711").await.unwrap().state, State::Destroyed);
    let snapshot = house.manager.snapshot_view("base").await.unwrap().record;
    assert_eq!((snapshot.id.as_str(), snapshot.state.as_str()), ("snap-00c0ffee", "imported"));
    assert_eq!(verdicts(&import(&house.manager, false).await), []);
}

#[tokio::test]
async fn what_was_imported_is_touched_by_nothing_until_it_is_forgotten() {
    let house = with_its_files();
    import(&house.manager, false).await;
    let destroy = |forget| DestroyRequest { forget, ..of("0a1b2c3d") };
    let fault = house.manager.destroy(&destroy(false)).await.unwrap_err();
    fault.coded(Code::Unsupported).hints("--forget");
    let report = house.manager.sweep(&SweepRequest::default()).await.unwrap();
    assert_eq!(report.items, []);
    house.manager.check_host("local").await.unwrap();
    assert_eq!(house.manager.recover().await.unwrap(), []);
    assert_eq!(house.manager.get("0a1b2c3d").await.unwrap().state.as_str(), "imported");
    assert!(house.script.count("teardown") == 0);
    house.finished(house.manager.destroy(&destroy(true)).await).await;
    assert_eq!(house.manager.get("0a1b2c3d").await.unwrap().state, State::Forgotten);
    let started = house.manager.delete_snapshot(&of("snap-00c0ffee")).await.unwrap();
    let (operation, _) = house.manager.finish(&started.operation.unwrap()).await.unwrap();
    assert_eq!(operation.error, None);
    assert!(house.manager.snapshot_view("snap-00c0ffee").await.is_err());
    let again = import(&house.manager, false).await;
    assert_eq!(verdicts(&again), [], "what was deleted does not come back");
}

#[tokio::test]
async fn an_import_that_died_behind_the_rename_is_gone_on_with() {
    let house = with_its_files();
    let data = house.folder.path();
    fs::rename(data.join("sandboxes.json"), data.join("sandboxes.json.python")).unwrap();
    // And one that died between the two names.
    fs::hard_link(data.join("snapshots.json"), data.join("snapshots.json.python")).unwrap();
    let items = import(&house.manager, false).await;
    assert_eq!(items.iter().filter(|item| item.ok).count(), 5, "{items:?}");
    assert!(house.manager.get("0a1b2c3d").await.unwrap().imported.is_some());
    assert_eq!(fs::read_to_string(data.join("snapshots.json.python")).unwrap(), SNAPSHOTS);
    assert_eq!(verdicts(&import(&house.manager, false).await), []);
}

#[tokio::test]
async fn a_file_that_was_set_aside_before_is_not_overwritten() {
    let house = with_its_files();
    let data = house.folder.path();
    fs::write(data.join("sandboxes.json.python"), "{}").unwrap();
    // A snapshot's id and name are looked for among sandboxes too: nothing can be written before those can be read.
    for (dry_run, ok) in [(true, 2), (false, 0)] {
        let items = import(&house.manager, dry_run).await;
        assert_eq!(items[0].kind.clone(), AdoptedKind::File);
        assert_eq!(items[0].id.as_str(), "sandboxes.json");
        assert_eq!(items[0].error.as_ref().map(|error| error.code.clone()), Some(Code::Conflict));
        assert_eq!(items.iter().filter(|item| item.ok).count(), ok, "its snapshots: {items:?}");
    }
    assert_eq!(fs::read_to_string(data.join("sandboxes.json.python")).unwrap(), "{}");
    assert_eq!(fs::read_to_string(data.join("sandboxes.json")).unwrap(), SANDBOXES);
    fs::remove_file(data.join("sandboxes.json.python")).unwrap();
    let items = import(&house.manager, false).await;
    assert_eq!(items.iter().filter(|item| item.ok).count(), 5, "{items:?}");
    assert_eq!(verdicts(&import(&house.manager, false).await), []);
}

#[tokio::test]
async fn ours_anothers_and_garbage_are_left_alone() {
    let house = test_env();
    house.create(sandboxer::domain::request::CreateRequest::default()).await.1.unwrap();
    assert_eq!(verdicts(&import(&house.manager, false).await), [], "ours");
    let data = house.folder.path();
    fs::write(data.join("snapshots.json"), "{\"title\": 1}").unwrap();
    assert_eq!(verdicts(&import(&house.manager, false).await), [], "nobody's we know");
    fs::write(data.join("snapshots.json"), "{\"a\": ").unwrap();
    let items = import(&house.manager, false).await;
    assert_eq!(verdicts(&items), [("snapshots.json", false, Some(Code::StoreCorrupt))]);
    assert_eq!(fs::read_to_string(data.join("snapshots.json")).unwrap(), "{\"a\": ");
}
