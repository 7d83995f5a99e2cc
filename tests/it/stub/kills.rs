//! Processes that are killed at each step: `recover` brings account and records into order.

use super::{World, text};

/// Whether the account has what the records say, and nothing is stale.
fn assert_in_order(world: &World, point: &str) {
    let live = world.ok("list");
    let mut recorded: Vec<String> = live
        .as_array()
        .unwrap()
        .iter()
        .map(|record| format!("{}.json", text(record, "id")))
        .collect();
    recorded.sort();
    assert_eq!(world.files("sandboxes"), recorded, "{point}");
    assert!(world.stale().is_empty(), "{point}: {:?}", world.stale());
}

#[test]
fn a_create_that_is_killed_is_taken_away_or_ready() {
    let world = World::new();
    for point in [
        "create.requested",
        "create.provisioning",
        "stub.provisioned",
        "create.provisioned",
        "create.started",
        "create.settled",
        "create.dated",
        "create.ready",
    ] {
        let ran = world.killed_at(point, "create --profile saas-stub --input startup_s=0");
        assert_eq!(ran.status, -1, "{point}: {ran:?}");
        world.ok("recover");
        assert_in_order(&world, point);
    }
}

#[test]
fn a_snapshot_that_is_killed_is_whole_or_gone() {
    let world = World::new();
    world.create("--name one");
    for point in ["snapshot.written", "stub.captured", "snapshot.made", "snapshot.ready"] {
        let ran = world.killed_at(point, "snapshot one");
        assert_eq!(ran.status, -1, "{point}: {ran:?}");
        world.run("recover");
        let ready = world.ok("snapshots list").as_array().unwrap().len();
        assert_eq!(world.files("snapshots").len(), ready, "{point}");
        assert_eq!(text(&world.get("one"), "state"), "ready", "{point}");
        assert_in_order(&world, point);
    }
}

#[test]
fn a_removal_and_a_restore_that_are_killed_come_to_their_end() {
    let world = World::new();
    world.create("--name one");
    world.ok("snapshot one --name s1");
    for (point, line) in
        [("stub.provisioned", "restore s1"), ("stub.removed", "destroy one --no-undo")]
    {
        let ran = world.killed_at(point, line);
        assert_eq!(ran.status, -1, "{point}: {ran:?}");
        world.ok("recover");
        assert_in_order(&world, point);
    }
    assert!(world.files("sandboxes").is_empty());
}
