//! A deep check: everything once, in order, and nothing of it stays, however it ends.

use sandboxer::domain::record::Record;

use sandboxer::domain::deep_check::{DeepCheck, DeepOutcome, DeepStage};
use sandboxer::domain::name::OperationId;
use sandboxer::domain::operation::OperationKind;
use sandboxer::domain::request::{CreateRequest, ListQuery, SnapshotQuery};
use sandboxer::domain::{Code, OperationState};
use serde_json::json;

use super::recover::killed;
use crate::support::json_assertions::JsonAssertions as _;
use crate::test_env::script::{Act, Scripted};
use crate::test_env::{TestEnv, test_env};

impl TestEnv {
    async fn deep(&self) -> DeepCheck {
        let (started, _) = self.manager.deep_check("local").await.unwrap();
        self.deep_end(&started).await
    }

    async fn deep_end(&self, started: &OperationId) -> DeepCheck {
        *self.manager.wait(started).await.and_then(Record::into_host).unwrap().deep.unwrap()
    }

    /// Nothing of the check is there any more, and nobody works on anything.
    async fn assert_nothing_left(&self) {
        let everything = ListQuery { all: true, ..ListQuery::default() };
        for record in self.manager.list(&everything).await.unwrap() {
            record.has(json!({"state": "destroyed", "operation": null}));
        }
        assert_eq!(self.manager.snapshots(&SnapshotQuery { all: true }).await.unwrap(), []);
        assert_eq!(self.there(), [], "archives");
        self.assert_nothing_runs().await;
        let folder = self.folder.path().join("tmp");
        assert_eq!(folder.read_dir().map_or(0, Iterator::count), 0, "the compose file's folder");
    }
}

fn outcomes(check: &DeepCheck) -> Vec<(DeepStage, DeepOutcome)> {
    check.steps.iter().map(|step| (step.stage.clone(), step.outcome.clone())).collect()
}

/// Whether this machine has an engine with images is its own business.
fn failed_step(check: &DeepCheck) -> Option<(DeepStage, Code)> {
    let stages: Vec<_> = check.steps.iter().map(|step| step.stage.clone()).collect();
    assert_eq!(stages, DeepStage::ALL, "every step, in order");
    let at = check.steps.iter().position(|step| step.outcome == DeepOutcome::Failed)?;
    for step in check.steps[at + 1..]
        .iter()
        .filter(|step| !matches!(step.stage, DeepStage::Destroy | DeepStage::Host))
    {
        let why = format!("the step {} failed", check.steps[at].stage);
        assert_eq!(step.outcome, DeepOutcome::Skipped, "{step:?}");
        assert_eq!(step.message.as_ref(), Some(&why), "{step:?}");
    }
    let step = &check.steps[at];
    Some((step.stage.clone(), step.error.as_ref().unwrap().code.clone()))
}

#[tokio::test]
async fn everything_is_tried_and_nothing_stays() {
    let house = test_env();
    let check = house.deep().await;
    assert_eq!((failed_step(&check), check.ok), (None, true), "{check:#?}");
    assert!(outcomes(&check).contains(&(DeepStage::Compare, DeepOutcome::Ok)));
    assert_eq!((check.snapshots.len(), check.left.as_slice()), (1, [].as_slice()));
    assert!(check.sandboxes.len() >= 2, "{check:#?}");
    house.assert_nothing_left().await;
    for id in &check.sandboxes {
        let record = house.other.get(id.as_str()).await.unwrap();
        assert_eq!(record.labels["sandboxer.check"], check.operation.as_str());
        assert_eq!(record.ttl_s, Some(1800));
    }
    let operation = house.other.operation(check.operation.as_str()).await.unwrap();
    assert_eq!(operation.kind, OperationKind::Check);
    assert_eq!(operation.state, OperationState::Succeeded);
    // Its end is kept, as every operation's is.
    let again = house.manager.wait(&check.operation).await.and_then(Record::into_host).unwrap();
    assert_eq!(again.deep.unwrap().operation, check.operation);
}

#[tokio::test]
async fn the_label_is_nobody_elses_to_give() {
    let house = test_env();
    let mut request = CreateRequest::default();
    request.labels.insert("sandboxer.check".into(), "op-00000000".into());
    house.manager.create(request).await.unwrap_err().coded(Code::InvalidInput);
    house.manager.deep_check("nowhere").await.unwrap_err().coded(Code::NotFound);
    assert!(house.manager.operations().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_step_that_fails_ends_it_and_everything_is_taken_away() {
    type Break = fn(&Scripted, Act);
    let broken = || Act::fails("it broke");
    let breaks: [(DeepStage, Break); 5] = [
        (DeepStage::Canary, |script, act| script.provision.push(act)),
        (DeepStage::Write, |script, _| script.says.push("something else")),
        (DeepStage::Snapshot, |script, act| script.shelf.capture.push(act)),
        (DeepStage::Restore, |script, act| script.shelf.restore.push(act)),
        (DeepStage::Restore, |script, _| script.shelf.restore.push(Act::Altered)),
    ];
    let each = breaks.map(|(stage, breaks)| async move {
        let house = test_env();
        breaks(&house.script, broken());
        let check = house.deep().await;
        assert_eq!(failed_step(&check), Some((stage, Code::OperationFailed)), "{check:#?}");
        assert!(!check.ok);
        house.assert_nothing_left().await;
        let operation = house.other.operation(check.operation.as_str()).await.unwrap();
        assert_eq!(operation.state, OperationState::Failed);
        operation.error.unwrap().coded(Code::OperationFailed);
    });
    futures_util::future::join_all(each).await;
}

#[tokio::test]
async fn where_pausing_is_not_to_be_had_it_stops() {
    let house = test_env();
    house.script.shelf.capture.push(Act::Untouched(Code::Unsupported));
    house.script.has_containers.set(true);
    let check = house.deep().await;
    assert_eq!(failed_step(&check), None, "{check:#?}");
    house.assert_nothing_left().await;
}

/// What the removal leaves is told, and stays on record.
#[tokio::test]
async fn what_cannot_be_removed_is_told() {
    let house = test_env();
    house.script(&[], &[], &[Act::LeaveNetwork]);
    let check = house.deep().await;
    let found = failed_step(&check);
    assert_eq!(found, Some((DeepStage::Destroy, Code::OperationFailed)), "{check:#?}");
    let living = house.manager.list(&ListQuery::default()).await.unwrap();
    assert_eq!(living.len(), 1, "one is left, the others are gone: {living:#?}");
    assert_eq!(house.there(), []);
    house.destroy(&living[0].id).await.1.unwrap();
    house.assert_nothing_left().await;
}

/// Called off here, and through its operation by another process; the removal is not.
#[tokio::test]
async fn one_that_is_called_off_leaves_nothing() {
    for elsewhere in [false, true] {
        let house = test_env();
        house.script.shelf.capture.push(Act::Hang);
        let (started, _) = house.manager.deep_check("local").await.unwrap();
        house.script.until_asked("snapshot").await;
        let who = if elsewhere { &house.other } else { &house.manager };
        who.cancel(&started).await.unwrap();
        let check = house.deep_end(&started).await;
        assert_eq!(failed_step(&check), Some((DeepStage::Snapshot, Code::Cancelled)), "{check:#?}");
        house.assert_nothing_left().await;
        let operation = house.other.operation(started.as_str()).await.unwrap();
        assert_eq!(operation.state, OperationState::Cancelled, "elsewhere: {elsewhere}");
    }
}

/// A world in which a deep check died over its restore.
fn with_killed() -> TestEnv {
    let house = test_env();
    house.script.shelf.restore.push(Act::Hang);
    killed(&house, "restore", |manager| async move { manager.deep_check("local").await });
    house
}

#[tokio::test]
async fn what_a_killed_one_made_is_taken_away_by_recover() {
    let house = with_killed();
    let living = house.manager.list(&ListQuery::default()).await.unwrap();
    assert!(living.len() >= 2, "{living:#?}");
    // It is there as long as its process is.
    house.script.lives.set(true);
    let items = house.manager.recover().await.unwrap();
    assert!(items.iter().all(|item| !item.id.starts_with("op-")), "{items:#?}");
    house.script.lives.set(false);
    let items = house.manager.recover().await.unwrap();
    let check = items.iter().find(|item| item.id.starts_with("op-")).unwrap();
    assert!(check.ok, "{check:#?}");
    assert!(check.message.starts_with("ended; removed what it had made: "), "{check:#?}");
    house.assert_nothing_left().await;
    assert_eq!(house.manager.recover().await.unwrap(), []);
}

#[tokio::test]
async fn a_killed_one_whose_things_cannot_be_removed_is_not_over() {
    let house = with_killed();
    house.script.shelf.remove.push(Act::fails("read-only"));
    let items = house.manager.recover().await.unwrap();
    let check = items.iter().find(|item| item.id.starts_with("op-")).unwrap();
    assert!(!check.ok && check.error.is_some(), "{check:#?}");
    let items = house.manager.recover().await.unwrap();
    assert!(items.iter().any(|item| item.id.starts_with("op-") && item.ok), "{items:#?}");
    house.assert_nothing_left().await;
}
