//! The tree, from records alone.

use super::*;
use crate::domain::Time;
use crate::domain::patch::PatchState;
use crate::domain::sandbox::State;

/// A snapshot, with the sandboxes based on it.
fn view(id: &str, of: &str, parent: Option<&str>, based: &[&str]) -> Arc<SnapshotView> {
    let record = serde_json::json!({
        "id": id, "name": null, "kind": "user", "sandbox_id": of,
        "profile": {"id": "profile.x", "version": "1.0.0", "hash": ""}, "extension": "ext.x", "host": "local",
        "state": "ready", "created_at": Time::from_unix(0), "expires_at": null, "parent_snapshot": parent, "patch_level": 0,
        "next_patch_sequence": 1, "actor": {"type": "adm", "name": "kim"}, "owner": "o", "revision": 1
    });
    let sandboxes = based.iter().map(|id| BasedOn {
        id: SandboxId::new(*id),
        name: Some(format!("name-{id}")),
        state: State::Ready,
        patch_state: PatchState::None,
        last_patch_sequence: 0,
        owes: Vec::new(),
        patch_error: None,
    });
    Arc::new(SnapshotView {
        record: serde_json::from_value(record).unwrap(),
        patches: Vec::new(),
        sandboxes: sandboxes.collect(),
        children: Vec::new(),
    })
}

/// The rows as text: branches and ids.
fn drawn(tree: &Snapshots) -> Vec<String> {
    let title = |id: &NodeId| match id {
        NodeId::Snapshot(id) => id.to_string(),
        NodeId::Sandbox(id) => id.to_string(),
    };
    tree.rows().iter().map(|row| format!("{}{}", row.branch, title(&row.id))).collect()
}

/// The picture of semantics 7.
fn picture() -> Vec<Arc<SnapshotView>> {
    vec![view("A", "source", None, &["1", "2"]), view("B", "1", Some("A"), &["3"])]
}

fn tree(views: Vec<Arc<SnapshotView>>) -> Snapshots {
    let mut tree = Snapshots::default();
    tree.window.resize(10, tree.rows().len());
    tree.replace(views);
    tree
}

#[test]
fn a_snapshot_its_sandboxes_and_what_was_taken_of_those() {
    assert_eq!(drawn(&tree(picture())), ["A", "├ 1", "│ └ B", "│   └ 3", "└ 2"]);
}

#[test]
fn the_newest_root_is_first_and_one_whose_sandbox_is_over_hangs_on_its_parent() {
    let mut views = picture();
    views.push(view("C", "gone", Some("A"), &[]));
    views.push(view("D", "source", None, &[]));
    views.push(view("E", "1", Some("deleted"), &[]));
    assert_eq!(drawn(&tree(views)), ["E", "D", "A", "├ 1", "│ └ B", "│   └ 3", "├ 2", "└ C"]);
}

#[test]
fn records_that_name_each_other_as_parents_are_shown_once() {
    let views = vec![view("A", "1", Some("B"), &["2"]), view("B", "2", Some("A"), &["1"])];
    assert_eq!(drawn(&tree(views)), ["A", "└ 2", "  └ B", "    └ 1"]);
}

#[test]
fn a_filter_keeps_what_passes_what_leads_to_it_and_the_sandboxes_of_what_passes() {
    let mut tree = tree(picture());
    for (filter, rows) in [
        ("name-3", &["A", "└ 1", "  └ B", "    └ 3"][..]),
        ("name-2", &["A", "└ 2"]),
        ("nothing", &[]),
        ("", &["A", "├ 1", "│ └ B", "│   └ 3", "└ 2"]),
    ] {
        tree.set_filter(Filter::parse(filter));
        assert_eq!(drawn(&tree), rows, "{filter}");
    }
    tree.set_filter(Filter::parse("host:local profile:x"));
    assert_eq!(
        drawn(&tree),
        ["A", "├ 1", "│ └ B", "│   └ 3", "└ 2"],
        "the sandboxes of what passes"
    );
}

#[test]
fn cursor_and_marks_are_ids() {
    let mut tree = tree(picture());
    tree.go(2);
    assert!(tree.toggle_mark());
    tree.go(3);
    assert!(!tree.toggle_mark(), "a sandbox's row has no mark");
    let mut views = picture();
    views.push(view("C", "source", None, &[]));
    tree.replace(views.clone());
    let selected = |tree: &Snapshots| tree.selected().map(|row| row.id.clone()).unwrap();
    assert_eq!(selected(&tree), NodeId::Sandbox("3".into()));
    tree.set_filter(Filter::parse("name-2"));
    tree.set_filter(Filter::default());
    assert_eq!(selected(&tree), NodeId::Sandbox("3".into()), "hidden and back");
    assert_eq!(
        tree.targets().iter().map(|view| view.record.id.as_str()).collect::<Vec<_>>(),
        ["B"]
    );
    tree.mark_all();
    assert_eq!(tree.marks.ids().len(), 3);
    // Gone: no mark, and the cursor is near where it was.
    tree.replace(views.into_iter().filter(|view| view.record.id.as_str() != "B").collect());
    assert_eq!(tree.marks.ids().len(), 2);
    assert_eq!(selected(&tree), NodeId::Sandbox("2".into()));
}
