use serde_json::json;

use super::*;
use crate::domain::name::PatchId;
use crate::domain::patch::AppliedPatch;
use crate::domain::tests::{self as examples, patch};
use crate::domain::time::Time;

fn at(n: i64) -> Time {
    Time::from_unix(1_700_000_000 + n)
}

fn snapshot(id: &str, of: &str, parent: Option<&str>, n: i64) -> SnapshotRecord {
    examples::snapshot(
        json!({"id": id, "sandbox_id": of, "parent_snapshot": parent, "created_at": at(n)}),
    )
}

fn sandbox(id: &str, base: Option<&str>, state: &str) -> SandboxRecord {
    examples::sandbox(json!({"id": id, "based_on_snapshot": base, "state": state}))
}

/// The picture of semantics 7: A with sandboxes 1 and 2, B taken of 1, sandbox 3 based on B.
fn picture() -> (Vec<SnapshotRecord>, Vec<SandboxRecord>) {
    let snapshots =
        vec![snapshot("snap-a", "source", None, 1), snapshot("snap-b", "one", Some("snap-a"), 2)];
    let sandboxes = vec![
        sandbox("source", None, "ready"),
        sandbox("one", Some("snap-a"), "ready"),
        sandbox("two", Some("snap-a"), "sleeping"),
        sandbox("three", Some("snap-b"), "ready"),
        sandbox("four", Some("snap-a"), "destroyed"),
    ];
    (snapshots, sandboxes)
}

#[test]
fn a_view_has_what_hangs_on_the_snapshot_and_nothing_deeper() {
    let (snapshots, sandboxes) = picture();
    let patches = [patch(2, "snap-a"), patch(1, "snap-a")];
    let a = SnapshotView::of(&snapshots[0], &patches, &sandboxes, &snapshots);
    let based: Vec<_> = a
        .sandboxes
        .iter()
        .map(|s| (s.id.as_str(), s.patch_state.clone(), s.owes.clone()))
        .collect();
    assert_eq!(
        based,
        [("one", PatchState::Pending, vec![1, 2]), ("two", PatchState::Pending, vec![1, 2])]
    );
    assert_eq!(a.children, ["snap-b".into()]);
    assert_eq!(a.patches.iter().map(|patch| patch.sequence).collect::<Vec<_>>(), [1, 2]);
    let b = SnapshotView::of(&snapshots[1], &patches, &sandboxes, &snapshots);
    assert!(b.patches.is_empty());
    assert_eq!(b.sandboxes[0].patch_state, PatchState::None, "one level deep");
    assert!(b.sandboxes[0].owes.is_empty());
}

#[test]
fn a_view_says_why_the_snapshot_cannot_be_deleted() {
    let (snapshots, mut sandboxes) = picture();
    sandboxes[1].name = Some("mine".into());
    let a = SnapshotView::of(&snapshots[0], &[patch(1, "snap-a")], &sandboxes, &snapshots);
    assert_eq!(a.dependants(), ["patch 1 (pat-00000001)", "sandbox mine (one)", "sandbox two"]);
    let b = SnapshotView::of(&snapshots[1], &[], &sandboxes[..3], &snapshots);
    assert!(
        b.dependants().is_empty(),
        "a snapshot taken of what is based on it does not depend on it"
    );
}

#[test]
fn a_sandboxs_line_goes_back_to_the_first_snapshot_and_ends_where_one_is_gone() {
    let (mut snapshots, sandboxes) = picture();
    let line = |snapshots: &[SnapshotRecord], at: usize| {
        let found = Lineage::of(&sandboxes[at], snapshots);
        let ids = |ids: Vec<SnapshotId>| {
            ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
        };
        (ids(found.ancestors), ids(found.snapshots))
    };
    assert_eq!(line(&snapshots, 3), ("snap-b snap-a".into(), String::new()));
    assert_eq!(line(&snapshots, 1), ("snap-a".into(), "snap-b".into()));
    assert_eq!(line(&snapshots, 0), (String::new(), "snap-a".into()));
    snapshots.remove(1);
    assert_eq!(
        line(&snapshots, 3),
        ("snap-b".into(), String::new()),
        "it is named although it is gone"
    );
    // An edited file must not turn anybody in circles.
    snapshots[0].parent_snapshot = Some("snap-a".into());
    assert_eq!(line(&snapshots, 1).0, "snap-a");
}

#[test]
fn what_was_applied_is_told_by_its_id_and_not_by_its_number() {
    let (snapshots, mut sandboxes) = picture();
    sandboxes[1].applied_patches.push(AppliedPatch {
        id: PatchId::new("pat-00000001"),
        sequence: 1,
        state: PatchState::Applied,
        started_at: None,
        took_ms: None,
        exit_status: Some(0),
        output: None,
    });
    let a = SnapshotView::of(
        &snapshots[0],
        &[patch(1, "snap-a"), patch(2, "snap-a")],
        &sandboxes,
        &snapshots,
    );
    assert_eq!(a.sandboxes[0].owes, [2]);
}
