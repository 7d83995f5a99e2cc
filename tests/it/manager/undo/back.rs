//! The way back: what a sandbox that is brought back has, and which one that is.

use std::collections::BTreeMap;
use std::fmt::Display;

use sandboxer::domain::event::EventKind;
use sandboxer::domain::patch::PatchState;
use sandboxer::domain::request::{DestroyRequest, LabelRequest};
use sandboxer::domain::{Code, SandboxRecord, State};

use super::keeping;
use crate::support::json_assertions::JsonAssertions as _;
use crate::test_env::script::Act;
use crate::test_env::{TestEnv, of};

impl TestEnv {
    async fn labelled(&self, record: &SandboxRecord, key: &str, value: &str) {
        let set = BTreeMap::from([(key.to_owned(), value.to_owned())]);
        let id = record.id.to_string();
        self.manager.label(LabelRequest { set, ..of(id) }).await.unwrap();
    }

    /// Level of patches, and the state of each.
    async fn level(&self, id: impl Display) -> (u64, Vec<(u64, PatchState)>) {
        let record = self.record(id).await;
        let runs = record.applied_patches.iter();
        let runs = runs.map(|run| (run.sequence, run.state.clone())).collect();
        (record.last_patch_sequence, runs)
    }
}

#[tokio::test]
async fn what_comes_back_has_all_that_it_had_but_its_id() {
    let house = keeping();
    let record = house.keep_one(Some("shop")).await;
    house.labelled(&record, "protect", "true").await;
    let request = DestroyRequest { force_protected: true, ..of(&record.id) };
    house.removed(request).await.unwrap();
    let undo = house.undos().await.remove(0);
    house.script.pass(60);
    let back = house.undo(None).await.unwrap();
    assert_ne!(back.id, record.id);
    assert_eq!((&back.state, back.undo_of.as_ref()), (&State::Ready, Some(&record.id)));
    assert_eq!((&back.name, &back.inputs), (&record.name, &record.inputs));
    assert_eq!((back.labels["team"].as_str(), back.labels["protect"].as_str()), ("blue", "true"));
    assert_eq!((back.based_on_snapshot.as_ref(), back.ttl_s), (None, Some(1800)));
    let left = back.expires_at.unwrap().since(back.ready_at.unwrap()).as_secs();
    assert_eq!(left, 1800, "its time begins anew");
    let told = house.events(&[EventKind::SandboxRestored]).await;
    assert_eq!(told[0].data["undo_of"], record.id.as_str());
    assert_eq!(told[0].data["snapshot_id"], undo.id.as_str());
    // A label of the sandbox keeps nobody from deleting what was kept of it.
    house.delete(&undo.id, false).await.unwrap();
}

#[tokio::test]
async fn patches_come_back_with_their_base_and_newer_ones_are_applied() {
    let house = keeping();
    let source = house.keep_one(None).await;
    let base = house.snapshot(&source.id, "base").await.unwrap();
    house.add(&base.id, "one").await;
    let based = house.restored(&base.id).await;
    house.removed(of(&based.id)).await.unwrap();
    house.add(&base.id, "two").await;
    let from = house.script.asked().len();
    let back = house.undo(None).await.unwrap();
    assert_eq!(back.based_on_snapshot.as_ref(), Some(&base.id));
    let applied = PatchState::Applied;
    let both = vec![(1, applied.clone()), (2, applied.clone())];
    assert_eq!(house.level(&back.id).await, (2, both));
    let patches: Vec<_> = house.script.asked()[from..]
        .iter()
        .filter(|asked| asked.starts_with("patch "))
        .cloned()
        .collect();
    assert_eq!(patches, [format!("patch 2 on {}", back.id)], "the first one's effects are in it");
    assert_eq!(back.message, None);

    // The base is gone by force: it is still what it was, and that is said.
    house.removed(of(&back.id)).await.unwrap();
    house.delete(&base.id, true).await.unwrap();
    let again = house.undo(None).await.unwrap();
    assert_eq!(house.level(&again.id).await.0, 2);
    assert!(again.message.unwrap().contains("not there any more"));
    let error = house.remade(&again.id).await.unwrap_err();
    assert_eq!(error.code, Code::NotFound, "it is not made of something else");
}

#[tokio::test]
async fn a_patch_that_failed_is_failed_still() {
    let house = keeping();
    let source = house.keep_one(None).await;
    let base = house.snapshot(&source.id, "base").await.unwrap();
    house.add(&base.id, "one").await;
    house.script.patch.push(crate::test_env::script::Script::Exits(3));
    let based = house.restored(&base.id).await;
    assert_eq!(based.patch_state, PatchState::Failed);
    house.removed(of(&based.id)).await.unwrap();
    let back = house.undo(None).await.unwrap();
    assert_eq!((&back.state, &back.patch_state), (&State::Ready, &PatchState::Failed));
    assert!(back.patch_error.unwrap().contains("exit status 3"));
}

#[tokio::test]
async fn a_recreate_is_taken_back_beside_what_was_made() {
    let house = keeping();
    let record = house.keep_one(Some("shop")).await;
    let made = house.remade(&record.id).await.unwrap();
    assert_eq!((&made.id, &made.state), (&record.id, &State::Ready));
    assert!(made.message.unwrap().contains("sandboxer undo"));
    let back = house.undo(Some("shop")).await.unwrap();
    assert_eq!(back.name.as_deref(), Some("shop-undo"));
    assert_eq!(back.undo_of.as_ref(), Some(&record.id));
    // Each time is a removal of its own.
    house.remade(&record.id).await.unwrap();
    assert_eq!(house.undo(None).await.unwrap().name.as_deref(), Some("shop-undo-2"));
    house.undo(None).await.unwrap_err().says("already");
}

#[tokio::test]
async fn a_name_that_is_taken_gets_a_suffix_and_two_at_once_get_two_names() {
    let house = keeping();
    let record = house.keep_one(Some("shop")).await;
    house.removed(of(&record.id)).await.unwrap();
    let names = async {
        let (one, two) =
            tokio::join!(house.undo(Some(record.id.as_str())), house.undo(Some("shop")));
        let mut names = [one.unwrap().name.unwrap(), two.unwrap().name.unwrap()];
        names.sort();
        names
    };
    assert_eq!(Box::pin(names).await, ["shop", "shop-undo"]);
    let third = house.undo(Some(record.id.as_str())).await.unwrap();
    assert_eq!(third.name.as_deref(), Some("shop-undo-2"));
}

#[tokio::test]
async fn without_a_name_it_is_the_last_removal_of_which_nothing_came_back() {
    let house = keeping();
    house.undo(None).await.unwrap_err().coded(Code::NotFound).hints("undo: true");
    let (first, second) =
        (house.keep_one(Some("first")).await, house.keep_one(Some("second")).await);
    for record in [&first, &second] {
        house.removed(of(&record.id)).await.unwrap();
    }
    assert_eq!(house.undo(None).await.unwrap().undo_of, Some(second.id.clone()));
    assert_eq!(house.undo(None).await.unwrap().undo_of, Some(first.id));
    let fault = house.undo(None).await.unwrap_err();
    fault.coded(Code::NotFound).hints(&format!("sandboxer undo {}", second.id));
    // One that came to nothing did not come back.
    let third = house.keep_one(None).await;
    house.removed(of(&third.id)).await.unwrap();
    house.script(&[Act::fails("no room")], &[], &[]);
    house.undo(None).await.unwrap_err();
    assert_eq!(house.undo(None).await.unwrap().undo_of, Some(third.id));
}

#[tokio::test]
async fn an_undo_of_what_is_there_or_never_was_says_so() {
    let house = keeping();
    let record = house.keep_one(None).await;
    let there = house.undo(Some(record.id.as_str())).await.unwrap_err();
    assert_eq!((there.code, there.details["state"].as_str()), (Code::Conflict, Some("ready")));
    house.undo(Some("nobody")).await.unwrap_err().coded(Code::NotFound);
    let (plain, _) = house.create(sandboxer::domain::request::CreateRequest::default()).await;
    house.removed(of(&plain.id)).await.unwrap();
    let plain = house.undo(Some(plain.id.as_str())).await.unwrap_err();
    assert!(plain.causes[0].contains("undo: false"), "{plain:?}");
}

#[tokio::test]
async fn what_is_brought_back_is_not_deleted_meanwhile() {
    let house = keeping();
    let record = house.keep_one(None).await;
    house.removed(of(&record.id)).await.unwrap();
    let undo = house.undos().await.remove(0);
    house.script.shelf.restore.push(Act::Slow);
    let deletion = async {
        house.script.until_asked("restore").await;
        house.delete(&undo.id, true).await
    };
    let (back, deleted) = tokio::join!(house.undo(None), deletion);
    assert_eq!(back.unwrap().state, State::Ready);
    deleted.unwrap_err().coded(Code::Busy);
    assert_eq!(house.undos().await.len(), 1);
}
