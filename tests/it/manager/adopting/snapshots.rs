//! Adoption of snapshots.

use sandboxer::domain::adoption::AdoptRequest;
use sandboxer::domain::request::{CreateRequest, PruneRequest};
use sandboxer::domain::root::{MarkedRoot, RootMark};

use super::{Orphaned, verdict};

#[tokio::test]
async fn a_snapshot_comes_back_with_its_name_and_its_undo_window() {
    let world = Orphaned::new();
    let sandbox = world.living(CreateRequest::default()).await;
    let before = world.taken(&sandbox, "base").await;
    let expires_at = Some(before.created_at.plus_seconds(86_400));
    world.house.script.shelf.alter(|manifest| manifest.snapshot.expires_at = expires_at);
    world.shelve(&before, &sandbox);
    let console = world.console(&["local"]);
    let items =
        console.adopt(&AdoptRequest { dry_run: true, ..AdoptRequest::default() }).await.unwrap();
    assert_eq!(items.iter().filter(|item| item.ok).count(), 2, "{items:?}");
    let items = console.adopt(&AdoptRequest::default()).await.unwrap();
    assert_eq!(items.iter().filter(|item| item.ok).count(), 2, "{items:?}");
    assert!(items[0].message.contains("patches on it"), "{}", items[0].message);
    let after = console.snapshot_view("base").await.unwrap().record;
    assert_eq!(
        (&after.id, &after.archive, &after.profile),
        (&before.id, &before.archive, &before.profile)
    );
    assert_eq!(
        (after.expires_at, &after.sandbox_id, &after.owner),
        (expires_at, &before.sandbox_id, &before.owner)
    );
    assert_eq!(verdict(&console.adopt(&AdoptRequest::default()).await.unwrap()), []);
}

/// Nothing could be made on a host that has archives alone, if its root's mark were not known.
#[tokio::test]
async fn the_root_of_an_adopted_snapshot_is_known_by_its_mark() {
    let world = Orphaned::new();
    let sandbox = world.living(CreateRequest::default()).await;
    let snapshot = world.taken(&sandbox, "base").await;
    world.shelve(&snapshot, &sandbox);
    let mark = RootMark::from_random([1, 2, 3, 4]);
    let root = MarkedRoot { mark: mark.clone(), machine_id: "m".into(), path: "/srv".into() };
    world.house.script.shelf.root.set(Some(root));
    let console = world.console(&["local"]);
    let known =
        || std::fs::read_to_string(world.lost.path().join("hosts.json")).unwrap_or_default();
    console.adopt(&AdoptRequest { dry_run: true, ..AdoptRequest::default() }).await.unwrap();
    assert!(!known().contains(mark.as_str()), "a dry run writes nothing");
    console.adopt(&AdoptRequest::default()).await.unwrap();
    assert!(known().contains(mark.as_str()), "{}", known());
}

#[tokio::test]
async fn of_adopted_snapshots_a_prune_deletes_the_oldest_whatever_their_ids_are() {
    let world = Orphaned::new();
    let sandbox = world.living(CreateRequest::default()).await;
    let mut older = world.taken(&sandbox, "s0").await;
    let mut newer = older.clone();
    for n in 1.. {
        world.house.script.pass(10);
        newer = world.taken(&sandbox, &format!("s{n}")).await;
        if newer.id < older.id {
            break;
        }
        older = newer.clone();
    }
    for snapshot in [&older, &newer] {
        world.shelve(snapshot, &sandbox);
    }
    world.adopt(false).await;
    let console = world.console(&["local"]);
    let prune = PruneRequest { keep: Some(1), ..PruneRequest::default() };
    let gone = console.prune_snapshots(&prune).await.unwrap();
    assert_eq!(gone.iter().map(|item| item.id.as_str()).collect::<Vec<_>>(), [older.id.as_str()]);
}
