//! Every class, made for real: listed right, reaped right; what is nobody's business stays.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::json;

use super::{
    configure, drop_record, ended, expected, items, judged, owner, run_labelled, run_on, wait_past,
};
use crate::each_case::each_case;
use crate::lab::{Bench, DOCKER, PODMAN, on_engine, text};

/// What is on a host when everything that may be reaped is gone.
fn every_class_is_listed_and_reaped(host: &str, tag: &str) {
    let bench = Bench::new();
    configure(&bench, "stale: {failed_after: 1s, grace: 1s}");
    let before = bench.snapshot(host);
    let id = |word: &str| format!("{tag}-{word}");
    let canary = |word: &str, ttl: &str| {
        bench.ok(["create", "--id", &id(word), "--host", host, "--ttl", ttl])
    };
    let directory = |word: &str| bench.directory(host, &id(word));

    // Records: expired, protected, failed, stuck (never ready, and a healthy one that was being snapshotted), lost, in order.
    let expired = canary("expired", "2s");
    canary("guarded", "2s");
    bench.ok(["label", &id("guarded"), "protect=true"]);
    let failing = bench
        .stack("failing", "services: {x: {image: localhost/sbx-lab:1, command: [\"false\"]}}\n");
    bench
        .run([
            "create",
            "--profile",
            "compose-e2e",
            "--id",
            &id("failed"),
            "--host",
            host,
            "--input",
            &format!("repo={}", failing.display()),
        ])
        .error("operation_failed");
    bench.killed("create.provisioned", ["create", "--id", &id("stuck"), "--host", host]);
    canary("healthy", "1h");
    bench.killed("snapshot.made", ["snapshot", &id("healthy")]);
    canary("lost", "1h");
    fs::remove_dir_all(directory("lost")).unwrap();
    canary("fine", "1h");

    // Without records: a directory whose time is over, one that may live on, a stack with each, containers alone, an archive.
    let over = canary("dir-over", "2s");
    canary("dir-alive", "1h");
    let web = bench.web_stack("x");
    let stack_over = bench.create_stack(host, &web, &["--id", &id("stack-over"), "--ttl", "4s"]);
    bench.create_stack(host, &web, &["--id", &id("stack-alive")]);
    let archive = text(&bench.ok(["snapshot", &id("fine"), "--name", "kept"])["id"]);
    for word in ["dir-over", "dir-alive", "stack-over", "stack-alive"] {
        drop_record(&bench.data(), "sandboxes.json", &id(word));
    }
    drop_record(&bench.data(), "snapshots.json", &archive);
    let us = owner(&bench.data());
    run_labelled(host, &format!("sbx-{tag}-bare-x-1"), &id("bare"), &us);

    // Another console's, garbage, and links out.
    run_on(
        &bench,
        &bench.path("other"),
        &["create", "--id", &id("foreign"), "--host", host, "--ttl", "1s"],
    )
    .ok();
    let root = bench.workspace_root(host);
    fs::create_dir(root.join("sbx-garbage")).unwrap();
    fs::write(root.join("sbx-garbage/manifest.json"), "{\"id\": \"garbage\", \"owner\": ").unwrap();
    fs::create_dir(root.join("sbx-empty")).unwrap();
    symlink(directory("fine"), root.join("sbx-link")).unwrap();
    for made in [&expired, &over, &stack_over] {
        wait_past(&made["expires_at"]);
    }

    let ids: Vec<String> =
        ["bare", "failed", "stuck", "lost"].iter().map(|word| id(word)).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    let stuck_snapshot = bench.stored_snapshots();
    let stuck_snapshot = text(&stuck_snapshot[0]["id"]);
    let all = bench.ok(["inspect", "stale", "--host", host]);
    let found = items(&all, &bench, &ids);
    let names = "expired guarded failed stuck healthy lost dir-over dir-alive stack-over stack-alive bare foreign";
    let names: Vec<String> = names.split(' ').map(id).collect();
    let name = |word: &str| names.iter().find(|name| **name == id(word)).unwrap().as_str();
    let mut classes = expected(&[
        (name("expired"), "expired destroy"),
        (name("guarded"), "expired keep"),
        (name("failed"), "failed destroy"),
        (name("stuck"), "stuck destroy"),
        (name("healthy"), "stuck recover"),
        (name("lost"), "lost close"),
        (name("dir-over"), "orphan_dir remove"),
        (name("dir-alive"), "orphan_dir adopt"),
        (name("stack-over"), "orphan_stack remove"),
        (name("stack-alive"), "orphan_stack adopt"),
        (name("bare"), "orphan_stack keep"),
        (archive.as_str(), "orphan_snapshot keep"),
        (name("foreign"), "foreign keep"),
        ("garbage", "unreadable keep"),
        ("empty", "unreadable keep"),
        ("link", "unreadable keep"),
    ]);
    let mut listed = judged(&found);
    listed.remove(stuck_snapshot.as_str());
    assert_eq!(listed, classes, "{all:#}");
    for (id, item) in &found {
        assert!(!text(&item["why"]).is_empty(), "{id}: {item:#}");
    }

    // Nothing is touched by looking, nor by a plan.
    let plan = bench.ok(["reap-stale", "--dry-run", "--host", host]);
    let found = items(&plan["items"], &bench, &ids);
    assert_eq!(judged(&found).get(name("bare")), classes.get(name("bare")));
    bench.run(["reap-stale", "--host", host]).error("usage");
    assert!(directory("expired").exists() && directory("dir-over").exists());

    let done = bench.ok(["reap-stale", "--yes", "--host", host]);
    let mine: Vec<&str> = names.iter().map(String::as_str).collect();
    let done = items(&done, &bench, &mine);
    let mut ends = expected(&[
        (name("expired"), "expired removed"),
        (name("failed"), "failed removed"),
        (name("stuck"), "stuck removed"),
        (name("healthy"), "stuck recovered"),
        (name("lost"), "lost closed"),
        (name("dir-over"), "orphan_dir removed"),
        (name("dir-alive"), "orphan_dir adopted"),
        (name("stack-over"), "orphan_stack removed"),
        (name("stack-alive"), "orphan_stack adopted"),
    ]);
    let mut did = ended(&done);
    did.remove(stuck_snapshot.as_str());
    did.retain(|id, _| names.iter().any(|name| name == id));
    assert_eq!(did, ends, "{done:#?}");
    for word in ["guarded", "healthy", "fine", "dir-alive", "stack-alive", "foreign"] {
        assert!(directory(word).exists(), "{word} lives");
    }
    for word in ["healthy", "dir-alive", "stack-alive"] {
        assert_eq!(bench.get(&id(word))["state"], "ready", "{word}");
    }
    assert_eq!(bench.get(&id("expired"))["reason"], "reaped");

    // Named, the bare one goes, and the archive where it is asked for; a second reap has nothing to do.
    let with_archive: Vec<&str> = ids.iter().copied().chain([archive.as_str()]).collect();
    let by_class = bench.ok([
        "reap-stale",
        "--yes",
        "--host",
        host,
        "--class",
        "orphan_stack",
        "--class",
        "orphan_snapshot",
        "--snapshots",
    ]);
    ends = expected(&[
        (name("bare"), "orphan_stack removed"),
        (archive.as_str(), "orphan_snapshot removed"),
    ]);
    classes.clear();
    assert_eq!(ended(&items(&by_class, &bench, &with_archive)), ends, "{by_class:#}");
    let again = bench.ok(["reap-stale", "--yes", "--host", host, "--snapshots"]);
    assert_eq!(items(&again, &bench, &ids).len(), 0, "{again:#}");

    // What nobody may touch is there; then everything of this test goes, by hand where no verb may do it.
    assert!(root.join("sbx-garbage/manifest.json").exists());
    assert!(root.join("sbx-empty").exists());
    assert!(root.join("sbx-link").is_symlink());
    bench.ok(["destroy", &id("guarded"), "--force-protected", "--yes"]);
    for word in ["healthy", "fine", "dir-alive", "stack-alive"] {
        bench.ok(["destroy", &id(word)]);
    }
    // Its archive was whole when its console died.
    bench.ok(["snapshots", "delete", &stuck_snapshot]);
    run_on(&bench, &bench.path("other"), &["destroy", &id("foreign")]).ok();
    fs::remove_dir_all(root.join("sbx-garbage")).unwrap();
    fs::remove_dir(root.join("sbx-empty")).unwrap();
    fs::remove_file(root.join("sbx-link")).unwrap();
    let mut after = bench.snapshot(host);
    after.retain(|line| !line.ends_with("/snapshots"));
    assert_eq!(after.symmetric_difference(&before).collect::<Vec<_>>(), Vec::<&String>::new());
    let found = json!(on_engine(host, &["$1 ps -aq --filter label=sandboxer.owner=$2", &us]));
    assert_eq!(found, json!(""));
}

each_case! {
    every_class_is_listed_and_reaped {
        on_docker: DOCKER, "scd";
        on_podman: PODMAN, "scp";
    }
}
