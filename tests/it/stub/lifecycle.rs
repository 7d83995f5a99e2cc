//! Every verb that works, and the price of it.

use serde_json::{Value, json};

use super::{World, text, until};

#[test]
fn a_sandbox_goes_through_its_whole_life() {
    let world = World::new();
    let made = world.create("--name one --label a=b --input gb=2 --ttl 1h");
    let id = text(&made, "id");
    assert_eq!((text(&made, "state"), text(&made, "host")), ("ready", "saas-stub"));
    assert_eq!(made["quote_usd"], json!(0.4), "3600 s at 0.0001 and 2 GB at 0.02");
    let reach = &made["reachability"];
    assert_eq!(reach["endpoints"][0]["url"], format!("https://{id}.eu.saas-stub.invalid/"));
    assert_eq!(world.files("sandboxes"), [format!("{id}.json")]);
    assert_eq!(world.ok("list").as_array().unwrap().len(), 1);

    assert_eq!(text(&world.ok("sleep one"), "state"), "sleeping");
    assert_eq!(text(&world.ok("wake one"), "state"), "ready");

    // Its manifest is rewritten.
    let manifest = || -> Value {
        let file = std::fs::read(world.account(&format!("sandboxes/{id}.json"))).unwrap();
        serde_json::from_slice::<Value>(&file).unwrap()["manifest"].clone()
    };
    let extended = world.ok("extend one --by 30m");
    assert_eq!(manifest()["expires_at"], extended["expires_at"]);
    world.ok("label one c=d");
    assert_eq!(manifest()["sandbox"]["labels"], json!({"a": "b", "c": "d"}));

    let snapshot = world.ok("snapshot one --name s1");
    assert_eq!((text(&snapshot, "state"), text(&snapshot, "format")), ("ready", "metadata"));
    world.ok("snapshots verify s1");
    let restored = world.ok("restore s1 --name two");
    assert_eq!(restored["based_on_snapshot"], snapshot["id"]);
    assert_eq!(restored["inputs"], made["inputs"]);
    assert_eq!(text(&world.get("one"), "state"), "ready");
    world.ok("recreate two --yes --no-undo");

    world.ok("destroy one");
    let cost = world.get(id)["cost_usd"].as_f64().unwrap();
    assert!((0.04..0.4).contains(&cost), "2 GB, and what it lived of its time: {cost}");
    assert_eq!(world.files("sandboxes"), [format!("{}.json", text(&restored, "id"))]);
    let back = world.ok("undo");
    assert_eq!((text(&back, "undo_of"), text(&back, "name")), (id, "one"));
    assert_eq!(back["labels"], json!({"a": "b", "c": "d"}));
    world.ok("destroy one --no-undo");
    world.ok("destroy two --no-undo");
    world.ok("snapshots delete s1 --yes");
    assert!(world.files("sandboxes").is_empty());
    assert!(!world.files("snapshots").contains(&format!("{}.json", text(&snapshot, "id"))));
}

#[test]
fn what_it_lacks_is_refused_before_anything_happens() {
    let world = World::new();
    world.create("--name one");
    world.ok("snapshot one --name s1");
    std::fs::write(world.path("p.sh"), "true\n").unwrap();
    for line in [
        "patches add s1 --script-file p.sh",
        "exec one -- true",
        "logs one",
        "snapshots copy s1 --to far",
        "snapshots export s1 out.tar",
        "snapshot one --mode pause",
    ] {
        let ran = world.run(line);
        let status = if line.starts_with("exec") {
            125
        } else if line.contains("copy") {
            2
        } else {
            7
        };
        assert_eq!(ran.status, status, "{line}: {ran:?}");
        assert!(ran.stderr.contains("saas-stub") || line.contains("--mode"), "{line}: {ran:?}");
    }
    assert_eq!(text(&world.get("one"), "state"), "ready");
    assert_eq!(world.files("snapshots").len(), 1);
}

#[test]
fn a_start_takes_its_time_and_one_that_takes_too_long_is_taken_away() {
    let world = World::new();
    let profiles = world.path(".config/sandboxer/profiles");
    std::fs::create_dir_all(&profiles).unwrap();
    let text = "id: profile.slow\nversion: 1.0.0\nsummary: Slow\nextension: ext.saas-stub\nttl: 1h\n\
                ready_timeout: 1s\nconfig: {startup_s: 600}\n";
    std::fs::write(profiles.join("slow.yaml"), text).unwrap();
    let error = world.fails("create --profile slow --name slow", 5);
    assert_eq!(error["code"], "timeout");
    assert_eq!(super::text(&world.get("slow"), "state"), "failed");
    assert!(world.files("sandboxes").is_empty());
}

#[test]
fn a_create_that_is_cancelled_while_it_starts_leaves_nothing() {
    let world = World::new();
    let child = world.start("create --profile saas-stub --input startup_s=25 --name one");
    until("the sandbox at the provider", || !world.files("sandboxes").is_empty());
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(130), "{ended:?}");
    assert_eq!(text(&world.get("one"), "state"), "failed");
    assert!(world.files("sandboxes").is_empty());
}

#[test]
fn recover_takes_away_what_a_killed_create_left() {
    let world = World::new();
    let mut child = world.start("create --profile saas-stub --input startup_s=25 --name one");
    until("the sandbox at the provider", || !world.files("sandboxes").is_empty());
    child.kill().unwrap();
    child.wait().unwrap();
    let stale = world.stale();
    assert_eq!(stale.len(), 1, "{stale:?}");
    assert_eq!((stale[0].1.as_str(), stale[0].2.as_str()), ("stuck", "destroy"));
    world.ok("recover");
    assert!(world.files("sandboxes").is_empty());
    assert!(world.stale().is_empty());
}

#[test]
fn a_sweep_ends_what_has_expired() {
    let world = World::new();
    world.create("--name short --ttl 1s");
    world.create("--name long");
    until("the end of its time", || {
        world.ok("sweep");
        world.files("sandboxes").len() == 1
    });
    assert_eq!(text(&world.get("long"), "state"), "ready");
}

#[test]
fn a_price_that_cannot_be_is_refused_and_never_a_small_one() {
    let world = World::new();
    let dry = |more: &str| format!("create --profile saas-stub --dry-run {more}");
    let quote = |more: &str| world.run(&dry(more)).json()["quote_usd"].clone();
    assert_eq!(quote("--ttl 1h"), json!(0.36));
    assert_eq!(quote("--ttl 1s"), json!(0.01), "the minimum");
    assert_eq!(quote("--ttl 101s"), json!(0.0101));
    let extensions = world.path(".config/sandboxer/extensions");
    std::fs::create_dir_all(&extensions).unwrap();
    let write = |rates: &str| {
        let text = format!(
            "id: ext.saas-stub\nversion: 2.0.0\nsummary: Dear\nkind: builtin\n\
             capabilities: [snapshots, sleep, adopt, metered]\nrates: {rates}\n"
        );
        std::fs::write(extensions.join("dear.yaml"), text).unwrap();
    };
    write("{per_second_usd: 1000000}");
    assert_eq!(quote("--ttl 1s"), json!(1_000_000.0));
    let error = world.fails(&dry("--ttl 8h"), 2);
    assert_eq!(text(&error, "code"), "invalid_input");
    assert_eq!(error["details"]["field"], json!("ttl"));
    for (rates, key) in [
        ("{per_second_usd: -1}", "per_second_usd"),
        ("{per_gb_usd: .nan}", "finite"),
        ("{minimum_usd: 1e300}", "minimum_usd"),
        ("{minimum_usd: 2000000}", "minimum_usd"),
    ] {
        write(rates);
        let ran = world.run(&dry(""));
        assert_eq!(ran.status, 2, "{rates}: {ran:?}");
        assert!(ran.stderr.contains(key), "{rates}: {ran:?}");
    }
}
