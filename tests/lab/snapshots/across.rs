//! Across kinds of accounts and engines: the archive goes to the other host, everything of the tree comes along, and owners
//! are what they are for containers there. What the other account cannot set is counted.

use serde_json::json;

use crate::lab::{Bench, text};
use crate::snapshots::place::{Place, odd_sandbox, there};

/// `not_preserved`: what the other account cannot set.
fn across(from: Place, to: Place, mode: &str, not_preserved: &serde_json::Value) {
    there(from);
    there(to);
    let bench = Bench::with(&["sandboxer01-dev", "coulombcore-ops"]);
    let before = [bench.snapshot(from.host()), bench.snapshot(to.host())];
    let source = format!("{}-to-{}", from.id(), to.id());
    odd_sandbox(&bench, from, &source);
    let tree = from.tell(&bench.directory(from.host(), &source).join("workspace"));
    let volume = from.tell(&from.volume(&source, "kept"));
    bench.ok(["snapshot", &source, "--name", "base", "--mode", mode]);

    let back = bench.ok(["restore", "base", "--host", to.host()]);
    assert_eq!(back["state"], json!("ready"), "{back:#}");
    assert_eq!(&back["not_preserved"], not_preserved, "{back:#}");
    let id = text(&back["id"]);
    // root is the account on some, and a user beside the account on others.
    let root_is_self = to != Place::Dev;
    let owner = |owner: &str| {
        if owner == "0" && root_is_self { "self".to_owned() } else { owner.to_owned() }
    };
    let there = to.tell(&bench.directory(to.host(), &id).join("workspace"));
    let wanted = tree.kept().owners(owner).without_acl_users();
    there.without_acl_users().assert_is(&wanted, "the workspace");
    // In a volume nobody is the account: there are numbers only, and 0 is the account of most.
    let number = |owner: &str| if owner == "self" { "0".to_owned() } else { owner.to_owned() };
    let filled = to.tell(&to.volume(&id, "kept")).owners(number).without_acl_users();
    filled.assert_is(&volume.kept().owners(number).without_acl_users(), "the volume");

    for id in [&source, &id] {
        bench.ok(["destroy", id]);
    }
    bench.ok(["snapshots", "delete", "base"]);
    bench.assert_unchanged(from.host(), &before[0]);
    bench.assert_unchanged(to.host(), &before[1]);
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn from_docker_to_podman() {
    across(Place::Root, Place::Podman, "pause", &json!({}));
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn from_root_to_an_account_with_docker() {
    across(Place::Root, Place::Dev, "pause", &json!({}));
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn from_rootless_podman_to_docker() {
    across(Place::Rootless, Place::Root, "stop", &json!({}));
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn from_podman_to_rootless_podman() {
    across(Place::Podman, Place::Rootless, "pause", &json!({}));
}
