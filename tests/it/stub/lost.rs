//! The provider's account and the data directory: one without the other, another owner's, an old copy.

use serde_json::json;

use super::{World, copy, text};

#[test]
fn what_the_account_has_outlives_the_data_directory() {
    let world = World::new();
    let made = world.create("--name one --label a=b");
    let (id, owner) = (text(&made, "id"), text(&made, "owner"));
    world.create("--name two");
    world.ok("sleep two");
    world.ok("snapshot one --name s1");
    let data = world.path(".local/share/sandboxer");
    std::fs::rename(&data, world.path("old")).unwrap();
    world.grant();

    // Its owner is a stranger here, whose things nobody touches.
    assert!(world.stale().iter().all(|(_, class, action)| class == "foreign" && action == "keep"));
    world.ok("reap-stale --yes --snapshots --host saas-stub");
    assert!(world.ok("adopt --host saas-stub").as_array().unwrap().is_empty());
    assert_eq!(world.files("sandboxes").len(), 2);

    let dry = world.ok(&format!("adopt --owner {owner} --dry-run"));
    assert!(dry.as_array().unwrap().iter().all(|item| item["ok"] == json!(true)), "{dry}");
    assert!(world.ok("list").as_array().unwrap().is_empty());
    world.ok(&format!("adopt --owner {owner} --yes"));
    let adopted = world.get("one");
    assert_eq!((text(&adopted, "id"), text(&adopted, "state")), (id, "ready"));
    assert_eq!(text(&adopted, "extension"), "ext.saas-stub");
    assert_eq!(adopted["labels"], json!({"a": "b"}));
    assert_eq!(text(&world.get("two"), "state"), "sleeping");
    assert_eq!(text(&world.ok("snapshots get s1"), "state"), "ready");
    assert!(world.stale().is_empty(), "{:?}", world.stale());

    // Whoever has the old directory is the one behind.
    let refused =
        world.fails(&format!("destroy {id} --data-dir {}", world.path("old").display()), 4);
    assert_eq!(refused["code"], "conflict");
    assert_eq!(world.files("sandboxes").len(), 2);
    world.ok("restore s1");
    world.ok("wake two");
    world.ok("recreate one --yes --no-undo");
    world.ok("destroy one two --no-undo");
    assert_eq!(world.files("sandboxes").len(), 1);
}

#[test]
fn another_owners_sandbox_is_never_touched() {
    let world = World::new();
    world.create("--name mine --id aaaaaaaa");
    let other = format!("--data-dir {}", world.path("other").display());
    world.ok(&format!("credits grant 100 {other}"));
    let create = format!("create --profile saas-stub --input startup_s=0 {other}");
    let before = std::fs::read(world.account("sandboxes/aaaaaaaa.json")).unwrap();
    world.fails(&format!("{create} --id aaaaaaaa --name same"), 4);
    world.ok(&format!("{create} --name theirs"));
    world.run(&format!("destroy aaaaaaaa {other}"));
    for line in
        ["reap-stale --yes --snapshots --host saas-stub", "recover", "adopt --host saas-stub"]
    {
        world.ok(&format!("{line} {other}"));
    }
    assert_eq!(std::fs::read(world.account("sandboxes/aaaaaaaa.json")).unwrap(), before);
    assert_eq!(world.files("owners").len(), 2);
    assert_eq!(text(&world.get("mine"), "state"), "ready");
    world.ok("destroy mine --no-undo");
    assert_eq!(world.files("sandboxes").len(), 1);
}

#[test]
fn an_old_copy_of_the_data_directory_removes_nothing_until_it_is_claimed() {
    let world = World::new();
    world.create("--name one");
    copy(&world.path(".local/share/sandboxer"), &world.path("copy"));
    world.create("--name two");
    let old = format!("--data-dir {}", world.path("copy").display());
    let refused = world.fails(&format!("destroy one --no-undo {old}"), 4);
    assert!(text(&refused, "message").contains("old copy"), "{refused}");
    assert_eq!(text(&world.ok(&format!("get one {old}")), "state"), "ready");
    assert_eq!(world.files("sandboxes").len(), 2);
    world.run(&format!("doctor --claim {old}"));
    world.ok(&format!("destroy one --no-undo {old}"));
    assert_eq!(world.files("sandboxes").len(), 1);
    world.fails("destroy two --no-undo", 4);
}

#[test]
fn each_class_is_found_and_reaped_by_its_rule() {
    let world = World::new();
    let class_of = |id: &str| {
        let found = world.stale().into_iter().find(|(known, ..)| known == id);
        found.map(|(_, class, action)| format!("{class} {action}"))
    };
    world.create("--id expired --ttl 1s");
    world.create("--id lost");
    world.create("--id orphan");
    world.create("--id ended");
    let snapshot = world.ok("snapshot orphan --name s1");
    let snapshot = text(&snapshot, "id");
    let file = |id: &str| world.account(&format!("sandboxes/{id}.json"));
    std::fs::remove_file(file("lost")).unwrap();
    let ended = std::fs::read(file("ended")).unwrap();
    world.ok("destroy ended --no-undo");
    std::fs::write(file("ended"), ended).unwrap();
    // A record of it is gone, and of the snapshot.
    let data = world.path(".local/share/sandboxer");
    for (name, id) in [("sandboxes.json", "orphan"), ("snapshots.json", snapshot)] {
        let path = data.join(name);
        let mut store: serde_json::Value =
            serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        store["records"].as_array_mut().unwrap().retain(|record| record["id"] != id);
        std::fs::write(&path, serde_json::to_vec(&store).unwrap()).unwrap();
    }
    super::until("its time is over", || class_of("expired").is_some());
    let of = |id: &str| class_of(id).unwrap_or_default();
    assert_eq!(of("expired"), "expired destroy");
    assert_eq!(of("lost"), "lost close");
    assert_eq!(of("orphan"), "orphan_dir adopt");
    assert_eq!(of("ended"), "orphan_dir remove");
    assert_eq!(of(snapshot), "orphan_snapshot keep");
    world.ok("reap-stale --yes --no-undo --host saas-stub");
    assert_eq!(text(&world.get("orphan"), "state"), "ready");
    assert_eq!(world.files("sandboxes"), ["orphan.json"]);
    world.ok("reap-stale --yes --snapshots --host saas-stub");
    assert!(world.files("snapshots").is_empty());
    assert!(world.stale().is_empty());
}
