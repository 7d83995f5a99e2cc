//! The way back: what a sandbox that is brought back has, and which one that is.

use std::collections::BTreeMap;

use sandboxer::domain::event::EventKind;
use sandboxer::domain::patch::PatchState;
use sandboxer::domain::request::{EventQuery, LabelRequest};
use sandboxer::domain::{Code, SandboxRecord, State};

use super::{TestEnv, keeping, of};
use crate::test_env::script::Act;

impl TestEnv {
    async fn labelled(&self, record: &SandboxRecord, key: &str, value: &str) {
        let set = BTreeMap::from([(key.to_owned(), value.to_owned())]);
        let id = record.id.to_string();
        self.manager.label(LabelRequest { id, set, ..LabelRequest::default() }).await.unwrap();
    }

    /// Level of patches, and the state of each.
    async fn level(&self, id: &str) -> (u64, Vec<(u64, PatchState)>) {
        let record = self.manager.get(id).await.unwrap();
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
    let mut request = of(&record);
    request.force_protected = true;
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
    let query = EventQuery { kinds: vec![EventKind::SandboxRestored], ..EventQuery::default() };
    let told = house.manager.events(&query).await.unwrap();
    assert_eq!(told[0].data["undo_of"], record.id.as_str());
    assert_eq!(told[0].data["snapshot_id"], undo.id.as_str());
    // A label of the sandbox keeps nobody from deleting what was kept of it.
    house.delete(undo.id.as_str(), false).await.unwrap();
}

#[tokio::test]
async fn patches_come_back_with_their_base_and_newer_ones_are_applied() {
    let house = keeping();
    let source = house.keep_one(None).await;
    let base = house.snapshot(source.id.as_str(), "base").await.unwrap();
    house.add(base.id.as_str(), "one").await;
    let based = house.restored(base.id.as_str()).await;
    house.removed(of(&based)).await.unwrap();
    house.add(base.id.as_str(), "two").await;
    let from = house.script.asked().len();
    let back = house.undo(None).await.unwrap();
    assert_eq!(back.based_on_snapshot.as_ref(), Some(&base.id));
    let applied = PatchState::Applied;
    let both = vec![(1, applied.clone()), (2, applied.clone())];
    assert_eq!(house.level(back.id.as_str()).await, (2, both));
    let patches: Vec<_> = house.script.asked()[from..]
        .iter()
        .filter(|asked| asked.starts_with("patch "))
        .cloned()
        .collect();
    assert_eq!(patches, [format!("patch 2 on {}", back.id)], "the first one's effects are in it");
    assert_eq!(back.message, None);

    // The base is gone by force: it is still what it was, and that is said.
    house.removed(of(&back)).await.unwrap();
    house.delete(base.id.as_str(), true).await.unwrap();
    let again = house.undo(None).await.unwrap();
    assert_eq!(house.level(again.id.as_str()).await.0, 2);
    assert!(again.message.unwrap().contains("not there any more"));
    let error = house.remade(again.id.as_str()).await.unwrap_err();
    assert_eq!(error.code, Code::NotFound, "it is not made of something else");
}

#[tokio::test]
async fn a_patch_that_failed_is_failed_still() {
    let house = keeping();
    let source = house.keep_one(None).await;
    let base = house.snapshot(source.id.as_str(), "base").await.unwrap();
    house.add(base.id.as_str(), "one").await;
    house.script.patch.lock().unwrap().push_back(crate::test_env::script::Script::Exits(3));
    let based = house.restored(base.id.as_str()).await;
    assert_eq!(based.patch_state, PatchState::Failed);
    house.removed(of(&based)).await.unwrap();
    let back = house.undo(None).await.unwrap();
    assert_eq!((&back.state, &back.patch_state), (&State::Ready, &PatchState::Failed));
    assert!(back.patch_error.unwrap().contains("exit status 3"));
}

#[tokio::test]
async fn a_recreate_is_taken_back_beside_what_was_made() {
    let house = keeping();
    let record = house.keep_one(Some("shop")).await;
    let made = house.remade(record.id.as_str()).await.unwrap();
    assert_eq!((&made.id, &made.state), (&record.id, &State::Ready));
    assert!(made.message.unwrap().contains("sandboxer undo"));
    let back = house.undo(Some("shop")).await.unwrap();
    assert_eq!(back.name.as_deref(), Some("shop-undo"));
    assert_eq!(back.undo_of.as_ref(), Some(&record.id));
    // Each time is a removal of its own.
    house.remade(record.id.as_str()).await.unwrap();
    assert_eq!(house.undo(None).await.unwrap().name.as_deref(), Some("shop-undo-2"));
    let none = house.undo(None).await.unwrap_err();
    assert!(none.message.contains("already"), "{none:?}");
}

#[tokio::test]
async fn a_name_that_is_taken_gets_a_suffix_and_two_at_once_get_two_names() {
    let house = keeping();
    let record = house.keep_one(Some("shop")).await;
    house.removed(of(&record)).await.unwrap();
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
    let none = house.undo(None).await.unwrap_err();
    assert_eq!(none.code, Code::NotFound);
    assert!(none.hint.unwrap().contains("undo: true"));
    let (first, second) =
        (house.keep_one(Some("first")).await, house.keep_one(Some("second")).await);
    for record in [&first, &second] {
        house.removed(of(record)).await.unwrap();
    }
    assert_eq!(house.undo(None).await.unwrap().undo_of, Some(second.id.clone()));
    assert_eq!(house.undo(None).await.unwrap().undo_of, Some(first.id));
    let all = house.undo(None).await.unwrap_err();
    assert_eq!(all.code, Code::NotFound);
    assert!(all.hint.unwrap().contains(&format!("sandboxer undo {}", second.id)));
    // One that came to nothing did not come back.
    let third = house.keep_one(None).await;
    house.removed(of(&third)).await.unwrap();
    house.script(&[Act::Fail(Code::OperationFailed, "no room")], &[], &[]);
    house.undo(None).await.unwrap_err();
    assert_eq!(house.undo(None).await.unwrap().undo_of, Some(third.id));
}

#[tokio::test]
async fn an_undo_of_what_is_there_or_never_was_says_so() {
    let house = keeping();
    let record = house.keep_one(None).await;
    let there = house.undo(Some(record.id.as_str())).await.unwrap_err();
    assert_eq!((there.code, there.details["state"].as_str()), (Code::Conflict, Some("ready")));
    let never = house.undo(Some("nobody")).await.unwrap_err();
    assert_eq!(never.code, Code::NotFound);
    let (plain, _) = house.create(sandboxer::domain::request::CreateRequest::default()).await;
    house.removed(of(&plain)).await.unwrap();
    let plain = house.undo(Some(plain.id.as_str())).await.unwrap_err();
    assert!(plain.causes[0].contains("undo: false"), "{plain:?}");
}

#[tokio::test]
async fn what_is_brought_back_is_not_deleted_meanwhile() {
    let house = keeping();
    let record = house.keep_one(None).await;
    house.removed(of(&record)).await.unwrap();
    let undo = house.undos().await.remove(0);
    house.script.shelf.restore.lock().unwrap().push_back(Act::Slow);
    let deletion = async {
        while !house.script.asked().iter().any(|asked| asked.starts_with("restore")) {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        house.delete(undo.id.as_str(), true).await
    };
    let (back, deleted) = tokio::join!(house.undo(None), deletion);
    assert_eq!(back.unwrap().state, State::Ready);
    assert_eq!(deleted.unwrap_err().code, Code::Busy);
    assert_eq!(house.undos().await.len(), 1);
}
