//! Undo: what was removed is brought back, after a question.

use std::sync::Arc;

use insta::assert_snapshot;
use sandboxer::client::{DestroyRequest, Error, Request, UndoRequest};
use sandboxer::domain::error::{Code, Kind};
use sandboxer::domain::lineage::SnapshotView;
use sandboxer::domain::name::{ProfileId, SandboxId};
use sandboxer::domain::operation::OperationKind;
use sandboxer::domain::sandbox::State;
use sandboxer::domain::snapshot::{SnapshotKind, SnapshotRecord};
use sandboxer::domain::undo::UndoFacts;
use sandboxer::tui::model::{Model, Overlay, Pane};
use sandboxer::tui::update::update;
use sandboxer::tui::{Effect, Msg};

use super::drive::{model_of, now, press, refused, screen, started, toast, type_text, world_model};
use crate::test_env::fixture::{profiles, record, snapshot_of, stale_world, world};

/// An undo snapshot of a removed sandbox.
fn undo_of(id: &str, sandbox: &str, name: &str, ago: u64) -> SnapshotRecord {
    let state = State::Ready;
    let removed = record(sandbox, Some(name), "compose-checkpoint", "coulombcore", state, now());
    let mut snapshot = snapshot_of(&removed, id, None, now().minus_seconds(ago));
    snapshot.kind = SnapshotKind::Undo;
    snapshot.sandbox_name = Some(name.to_owned());
    snapshot.undo = Some(Box::new(UndoFacts {
        before: OperationKind::Destroy,
        ttl_s: Some(14_400),
        applied_patches: Vec::new(),
    }));
    snapshot.expires_at = Some(now().plus_seconds(86_400 - ago));
    snapshot
}

fn with(snapshots: Vec<SnapshotRecord>) -> Model {
    let mut model = world_model();
    take(&mut model, snapshots);
    model
}

fn take(model: &mut Model, snapshots: Vec<SnapshotRecord>) {
    let view = |record| {
        let (patches, sandboxes, children) = (Vec::new(), Vec::new(), Vec::new());
        Arc::new(SnapshotView { record, patches, sandboxes, children })
    };
    update(model, Msg::Snapshots(Ok(snapshots.into_iter().map(view).collect())));
}

fn undone(effects: &[Effect]) -> Vec<String> {
    let of = |request: &Request| match request {
        Request::Undo(UndoRequest { id }) => id.clone(),
        _ => None,
    };
    started(effects).into_iter().filter_map(of).collect()
}

#[test]
fn the_last_removed_one_comes_back_after_a_question() {
    let mut model = with(vec![
        undo_of("snap-00000001", "aaaa0001", "older", 900),
        undo_of("snap-00000002", "aaaa0002", "e2e-core", 300),
    ]);
    press(&mut model, "u");
    // Its name is another one's by now.
    assert_snapshot!("undo_question", screen(&mut model, (120, 36)));
    press(&mut model, "enter");
    assert!(model.overlays.is_empty(), "cancel has the focus");
    press(&mut model, "u");
    assert_eq!(undone(&press(&mut model, "tab enter")), ["snap-00000002"]);
    assert!(screen(&mut model, (120, 36)).contains("restore e2e-core-undo"));
}

#[test]
fn a_whole_reap_comes_back() {
    let plan = stale_world(now()).plan.unwrap();
    let mut model = model_of(stale_world(now()));
    press(&mut model, "X");
    let judged = sandboxer::tui::model::Judged::Plan(Box::new(plan.clone()));
    update(&mut model, Msg::ReapPlanned(1, Ok(judged)));
    let job = sandboxer::tui::model::JobId(77);
    model.reap.begin(job);
    for item in plan.to_do().take(2) {
        model.reap.done(crate::test_env::fixture::done(item));
    }
    model.overlays.clear();
    let records = world(now()).records;
    let kept = records.into_iter().filter(|record| record.id.as_str() != "0b1c2d3e").collect();
    super::drive::list(&mut model, kept);
    take(
        &mut model,
        vec![
            undo_of("snap-00000001", "aaaa0001", "older", 900),
            undo_of("snap-00000002", "e1e1e1e1", "shop-3", 30),
            undo_of("snap-00000003", "0b1c2d3e", "nightly", 20),
        ],
    );
    press(&mut model, "u");
    assert!(screen(&mut model, (120, 36)).contains("Bring 2 sandboxes back?"));
    assert_eq!(undone(&press(&mut model, "tab enter")), ["snap-00000002", "snap-00000003"]);
}

#[test]
fn where_there_is_nothing_to_undo_it_says_why() {
    let mut model = with(Vec::new());
    press(&mut model, "u");
    assert!(toast(&mut model).starts_with("nothing to undo"));
    let mut over = undo_of("snap-00000001", "aaaa0001", "older", 900);
    over.expires_at = Some(now());
    take(&mut model, vec![over]);
    press(&mut model, "u");
    assert!(toast(&mut model).starts_with("nothing to undo"));
    // One that was rebuilt is there: it is not what was removed last.
    take(&mut model, vec![undo_of("snap-00000001", "a1b2c3d4", "e2e-core", 900)]);
    press(&mut model, "u");
    assert!(toast(&mut model).starts_with("nothing to undo"));
    press(&mut model, "enter u");
    assert!(toast(&mut model).contains("is there as it was"));
}

#[test]
fn the_destroyed_row_under_the_cursor_is_meant() {
    let mut model = with(vec![
        undo_of("snap-00000001", "aaaa0001", "older", 900),
        undo_of("snap-00000002", "aaaa0002", "newer", 300),
    ]);
    press(&mut model, "/");
    type_text(&mut model, "state:destroyed");
    press(&mut model, "enter");
    let gone = |id: &str| {
        record(id, Some("older"), "compose-checkpoint", "coulombcore", State::Destroyed, now())
    };
    let entry = |record| Arc::new(sandboxer::tui::model::Entry::new(record));
    let rows = vec![entry(gone("aaaa0001")), entry(gone("aaaa0003"))];
    update(&mut model, Msg::ListedDestroyed(Ok(rows)));
    model.sandboxes.go(0);
    press(&mut model, "u");
    assert_eq!(undone(&press(&mut model, "tab enter")), ["snap-00000001"]);
    model.sandboxes.go(1);
    press(&mut model, "u");
    assert!(toast(&mut model).contains("nothing of it is kept"));
}

#[test]
fn an_undo_snapshot_in_its_pane_is_meant() {
    let mut model = with(vec![
        undo_of("snap-00000001", "aaaa0001", "older", 900),
        undo_of("snap-00000002", "aaaa0002", "newer", 300),
    ]);
    model.focus_on(Pane::Snapshots);
    let id = sandboxer::tui::model::NodeId::Snapshot("snap-00000001".into());
    model.snapshots.point_at(id);
    press(&mut model, "u");
    assert_eq!(undone(&press(&mut model, "tab enter")), ["snap-00000001"]);
}

#[test]
fn a_console_that_only_looks_undoes_nothing() {
    refused(&mut with(vec![undo_of("snap-00000001", "aaaa0001", "older", 900)]), "u");
}

/// The sandbox of a profile with undo under the cursor, its profiles read.
fn with_undo() -> Model {
    let mut model = world_model();
    let mut profiles = profiles();
    for view in &mut profiles {
        if let Some(profile) = &mut view.profile {
            profile.undo |= profile.id.as_str() == "profile.compose-checkpoint";
        }
    }
    update(&mut model, Msg::Profiles(Ok(profiles)));
    assert!(model.undo_profiles.contains(&ProfileId::new("profile.compose-checkpoint")));
    model.sandboxes.point_at(SandboxId::new("0f00ba12"));
    model
}

fn destroyed(effects: &[Effect]) -> Option<DestroyRequest> {
    started(effects).into_iter().find_map(|request| match request {
        Request::Destroy(request) => Some(request.clone()),
        _ => None,
    })
}

#[test]
fn a_destroy_says_that_an_undo_snapshot_is_taken_and_offers_to_go_without() {
    let mut model = with_undo();
    press(&mut model, "d");
    assert_snapshot!("destroy_with_undo", screen(&mut model, (120, 36)));
    press(&mut model, "tab");
    type_text(&mut model, "0f00ba12");
    assert!(!destroyed(&press(&mut model, "enter")).unwrap().no_undo);
    let mut model = with_undo();
    press(&mut model, "d tab tab");
    type_text(&mut model, "0f00ba12");
    assert!(destroyed(&press(&mut model, "enter")).unwrap().no_undo);
    let mut model = with_undo();
    press(&mut model, "B");
    assert!(screen(&mut model, (120, 36)).contains("Without undo"));
    // A profile without: nothing is offered.
    model.overlays.clear();
    model.sandboxes.point_at(SandboxId::new("a1b2c3d4"));
    press(&mut model, "d");
    let seen = screen(&mut model, (120, 36));
    assert!(!seen.contains("undo snapshot") && !seen.contains("Without undo"), "{seen}");
}

/// A destroy that ended so, and its error on the screen.
fn ended_with(error: Error) -> (Model, String) {
    let mut model = with_undo();
    press(&mut model, "d tab");
    type_text(&mut model, "0f00ba12");
    let effects = press(&mut model, "enter");
    let job = effects.iter().find_map(|effect| match effect {
        Effect::Start(job, _) => Some(*job),
        _ => None,
    });
    update(&mut model, Msg::Ended(job.unwrap(), Err(error.clone()), None));
    model.overlays.push(Overlay::Error(error, 0));
    let seen = screen(&mut model, (120, 36));
    (model, seen)
}

#[test]
fn the_error_of_a_destroy_offers_the_key_that_goes_on_without_undo() {
    let error =
        Error::new(Code::OperationFailed, "no undo snapshot could be taken: the disk is full")
            .of_kind(Kind::NoUndoSnapshot);
    let (mut model, seen) = ended_with(error);
    assert!(seen.contains("d again, or without undo"), "{seen}");
    press(&mut model, "d");
    assert!(screen(&mut model, (120, 36)).contains("Without undo"));
}

#[test]
fn a_destroy_that_failed_otherwise_offers_no_way_without_undo() {
    let (_, seen) = ended_with(Error::new(Code::OperationFailed, "the engine does not answer"));
    assert!(!seen.contains("without undo"), "{seen}");
}
