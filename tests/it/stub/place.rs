//! The place: what may be there, and where it is named.

use serde_json::json;

use super::World;

#[test]
fn a_place_takes_its_own_sandboxes_and_no_others() {
    let world = World::new();
    world.create("--host saas-stub --name one");
    world.create("--host SAAS-STUB --name two");
    for line in [
        "create --profile saas-stub --host far",
        "create --profile saas-stub --host local",
        "create --profile sandbox-canary --host saas-stub",
    ] {
        let error = world.fails(line, 2);
        assert_eq!(error["code"], json!("invalid_input"));
        assert_eq!(error["details"]["field"], json!("host"));
        assert!(error["hint"].is_string(), "{error}");
    }
    world.ok("snapshot one --name s1");
    world.fails("restore s1 --host far", 2);
    let hosts = world.ok("hosts list");
    let names: Vec<_> = hosts.as_array().unwrap().iter().map(|host| &host["name"]).collect();
    assert_eq!(names, ["local", "far"]);
    assert_eq!(world.fails("hosts check saas-stub", 3)["code"], "not_found");
}

#[test]
fn a_place_is_looked_at_only_where_something_is() {
    let world = World::new();
    let asked = |world: &World| {
        let plan = world.run("reap-stale --dry-run").json();
        plan["hosts"].as_array().unwrap().iter().any(|pass| pass["host"] == "saas-stub")
    };
    assert!(!asked(&world));
    assert!(!world.account("").exists(), "a look makes nothing");
    world.create("--name one");
    assert!(asked(&world));
    world.ok("destroy one --no-undo");
    assert!(!asked(&world));
}

#[test]
fn a_host_may_not_have_the_name_of_a_place() {
    let world = World::new();
    let text = "hosts: {Saas-Stub: {ssh: a@b}}\n";
    std::fs::write(world.path(".config/sandboxer/config.yaml"), text).unwrap();
    let error = world.fails("list", 2);
    assert_eq!(error["code"], "invalid_config");
    assert!(error.to_string().contains("ext.saas-stub"), "{error}");
}

#[test]
fn a_stacks_inputs_are_borne() {
    let world = World::new();
    let profiles = world.path(".config/sandboxer/profiles");
    std::fs::create_dir_all(&profiles).unwrap();
    std::fs::create_dir(world.path("src")).unwrap();
    let text = "id: profile.mine\nversion: 1.0.0\nsummary: A stack\nextension: ext.saas-stub\nttl: 1h\n\
                placement: {hosts: [far], strategy: least-loaded}\ninputs:\n\
                \x20 repo: {required: true, kind: directory}\n  compose_file: {kind: string}\n\
                compose: {ports: ephemeral, allow: []}\nsnapshot: {mode: pause}\n";
    std::fs::write(profiles.join("mine.yaml"), text).unwrap();
    let made =
        world.ok("create --profile mine --input repo=src --input compose_file=a.yml --name one");
    assert_eq!((&made["state"], &made["host"]), (&json!("ready"), &json!("saas-stub")));
    world.ok("snapshot one --name s1");
    world.ok("restore s1");
    world.ok("destroy one --no-undo");
}
