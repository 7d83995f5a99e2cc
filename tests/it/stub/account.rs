//! The account's folder after somebody put things there.

use super::{World, link, text};

#[test]
fn what_cannot_be_understood_is_shown_and_never_touched() {
    let world = World::new();
    world.create("--name one");
    let room = world.account("sandboxes");
    let odd = |name: &str, content: &[u8]| std::fs::write(room.join(name), content).unwrap();
    odd("aaaaaaa1.json", b"garbage");
    odd("aaaaaaa2.json", &vec![b'x'; 3_000_000]);
    odd("aaaaaaa3.json", b"{\"schema\": 1}");
    odd("od\x1b[31md\n.json", b"{}");
    odd(&"x".repeat(200), b"");
    link(&world.path("none"), &room.join("aaaaaaa4.json"));
    std::fs::create_dir(room.join("aaaaaaa5.json")).unwrap();
    // Another's file under a name of its own.
    let id = world.get("one")["id"].as_str().unwrap().to_owned();
    std::fs::copy(room.join(format!("{id}.json")), room.join("aaaaaaa6.json")).unwrap();
    link(&world.path("none"), &world.account("snapshots").join("snap-aaaaaaaa.json"));
    let before = (world.files("sandboxes"), world.files("snapshots"));

    let stale = world.stale();
    assert_eq!(stale.len(), 9, "{stale:?}");
    assert!(stale.iter().all(|(_, class, action)| class == "unreadable" && action == "keep"));
    let shown = world.shown("inspect stale --host saas-stub");
    assert!(!shown.stdout.contains('\u{1b}'), "{shown:?}");
    world.ok("reap-stale --yes --snapshots --host saas-stub");
    world.run("adopt --host saas-stub");
    world.ok("recover");
    assert_eq!((world.files("sandboxes"), world.files("snapshots")), before);
    // And it keeps nobody from work on what is in order.
    world.create("--name two");
    world.ok("destroy one two --no-undo");
    let doctor = world.run("doctor").json();
    let check = doctor.as_array().unwrap().iter().find(|check| check["name"] == "place saas-stub");
    assert_eq!(check.unwrap()["state"], "warning");
}

#[test]
fn what_a_write_that_was_cut_off_left_goes_with_its_sandbox() {
    let world = World::new();
    for is_there in [true, false] {
        world.create("--id aaaaaaa1 --name one");
        std::fs::write(world.account("sandboxes/.aaaaaaa1.json.new"), "{").unwrap();
        if !is_there {
            std::fs::remove_file(world.account("sandboxes/aaaaaaa1.json")).unwrap();
        }
        world.ok("destroy one --no-undo");
        assert!(world.files("sandboxes").is_empty(), "{is_there}");
        std::fs::remove_dir_all(world.path(".local/share/sandboxer")).unwrap();
        world.grant();
    }
}

#[test]
fn a_manifest_that_names_another_extension_is_adopted_by_nobody() {
    let world = World::new();
    let id = text(&world.create("--name one"), "id").to_owned();
    let file = world.account(&format!("sandboxes/{id}.json"));
    let mut forged: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let manifest = forged["manifest"].as_object_mut().unwrap();
    manifest.insert("id".to_owned(), "forged".into());
    manifest.insert("profile".to_owned(), "profile.sandbox-canary".into());
    manifest.retain(|key, _| key != "sandbox" && key != "recipe");
    std::fs::write(world.account("sandboxes/forged.json"), forged.to_string()).unwrap();
    let ran = world.run("adopt --host saas-stub");
    let items = ran.json();
    assert_eq!(items[0]["error"]["code"], "invalid_input", "{ran:?}");
    assert_eq!(world.ok("list").as_array().unwrap().len(), 1);
    // Whose it is is plain: it is removed when somebody names its class.
    world.ok("reap-stale --yes --class orphan_dir --host saas-stub");
    assert_eq!(world.files("sandboxes"), [format!("{id}.json")]);
}

#[test]
fn an_account_that_cannot_be_read_is_an_error_and_never_nothing() {
    let world = World::new();
    world.create("--name one");
    let account = world.account("account.json");
    let good = std::fs::read(&account).unwrap();
    let strange = b"{\"schema\": 1, \"account\": \"00000000000000000000000000000000\"}";
    for (what, content, status) in
        [("garbage", Some(&b"{"[..]), 1), ("another", Some(&strange[..]), 5), ("gone", None, 1)]
    {
        match content {
            Some(content) => std::fs::write(&account, content).unwrap(),
            None => std::fs::remove_file(&account).unwrap(),
        }
        let ran = world.run("inspect stale --host saas-stub");
        assert_ne!(ran.status, 0, "{what}: {ran:?}");
        world.fails("destroy one --no-undo", status);
        assert_eq!(text(&world.get("one"), "state"), "ready", "{what}");
        world.run("reap-stale --yes --host saas-stub");
        world.run("recover");
        assert_eq!(world.files("sandboxes").len(), 1, "{what}");
        if what != "another" {
            let ran = world.run("create --profile saas-stub --input startup_s=0");
            assert_eq!(ran.status, 1, "{what}: {ran:?}");
        }
        std::fs::write(&account, &good).unwrap();
    }
    // The whole of it, as after a disk that is not mounted.
    std::fs::rename(world.account(""), world.path("away")).unwrap();
    let error = world.fails("destroy one --no-undo", 5);
    assert_eq!(error["code"], "host_changed");
    assert_eq!(text(&world.get("one"), "state"), "ready");
    let create = "create --profile saas-stub --input startup_s=0";
    assert_eq!(world.fails(create, 5)["code"], "host_changed");
    assert!(!world.account("").exists(), "no account is made in its stead");
    std::fs::rename(world.path("away"), world.account("")).unwrap();
    world.ok("destroy one --no-undo");
}

#[test]
fn a_snapshot_that_was_changed_is_restored_by_nobody() {
    let world = World::new();
    world.create("--name one");
    let snapshot = world.ok("snapshot one --name s1");
    let file = world.account(&format!("snapshots/{}.json", text(&snapshot, "id")));
    let changed = std::fs::read_to_string(&file).unwrap().replace("\\\"eu\\\"", "\\\"us\\\"");
    std::fs::write(&file, changed).unwrap();
    world.fails("restore s1 --name two", 1);
    world.fails("snapshots verify s1", 1);
    assert_eq!(world.files("sandboxes").len(), 1);
    std::fs::remove_file(&file).unwrap();
    world.fails("restore s1", 3);
}
