//! Failures that the input `fail` scripts.

use super::{World, text};

#[test]
fn a_create_that_fails_leaves_its_evidence_and_nothing_else() {
    let world = World::new();
    for fail in ["provision", "ready"] {
        let error = world.fails(
            &format!(
                "create --profile saas-stub --input startup_s=0 --input fail={fail} --name {fail}"
            ),
            1,
        );
        assert_eq!(error["code"], "operation_failed");
        let record = world.get(fail);
        assert_eq!((text(&record, "state"), text(&record["failure"], "step")), ("failed", fail));
        assert!(text(&record["failure"], "output").contains("503"), "{record}");
        assert!(world.files("sandboxes").is_empty(), "{fail}");
    }
    world.fails("create --profile saas-stub --input fail=ready --keep-failed --name kept", 1);
    assert_eq!(world.files("sandboxes").len(), 1);
    world.ok("destroy kept");
    assert!(world.files("sandboxes").is_empty());
}

#[test]
fn a_removal_that_fails_once_is_done_by_the_next_one() {
    let world = World::new();
    world.create("--input fail=teardown --name one");
    world.fails("destroy one --no-undo", 1);
    let record = world.get("one");
    assert_eq!(text(&record, "state"), "destroying");
    assert_eq!(record["leftovers"].as_array().unwrap().len(), 1);
    assert_eq!(world.files("sandboxes").len(), 1);
    world.ok("recover");
    assert!(world.files("sandboxes").is_empty());
}

#[test]
fn a_removal_that_always_fails_is_never_called_destroyed() {
    let world = World::new();
    world.create("--input fail=teardown-always --name one");
    for _ in 0..2 {
        world.fails("destroy one --no-undo", 1);
        assert_eq!(text(&world.get("one"), "state"), "destroying");
    }
    // Somebody removes it at the provider.
    for file in world.files("sandboxes") {
        std::fs::remove_file(world.account("sandboxes").join(file)).unwrap();
    }
    world.ok("destroy one --no-undo");
    assert!(world.ok("list").as_array().unwrap().is_empty());
}

#[test]
fn a_snapshot_and_a_restore_that_fail_leave_their_source_as_it_was() {
    let world = World::new();
    world.create("--input fail=snapshot --name one");
    world.fails("snapshot one", 1);
    assert!(world.files("snapshots").is_empty());
    assert_eq!(text(&world.get("one"), "state"), "ready");

    world.create("--input fail=restore --name two");
    world.ok("snapshot two --name s2");
    world.fails("restore s2 --name three", 1);
    assert_eq!(text(&world.get("three"), "state"), "failed");
    assert_eq!(world.files("sandboxes").len(), 2);
    assert_eq!(text(&world.ok("snapshots get s2"), "state"), "ready");
}

#[test]
fn a_sleep_and_a_wake_that_fail_leave_what_is_observed() {
    let world = World::new();
    world.create("--input fail=sleep --name one");
    world.fails("sleep one", 1);
    assert_eq!(text(&world.get("one"), "state"), "ready");
    world.create("--input fail=wake --name two");
    world.ok("sleep two");
    world.fails("wake two", 1);
    assert_eq!(text(&world.get("two"), "state"), "sleeping");
}
