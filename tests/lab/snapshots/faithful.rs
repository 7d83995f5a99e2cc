//! Like to like, what comes back is what was there: each path with its kind, mode, owner, content, links, times and xattrs.

use crate::lab::text;
use crate::snapshots::place::{Place, odd_sandbox, there};

pub(crate) fn like_to_like(place: Place, more: &[&str]) {
    there(place);
    let bench = place.bench();
    let before = bench.snapshot(place.host());
    let source = place.id();
    odd_sandbox(&bench, place, source);
    let folder = |id: &str| bench.directory(place.host(), id).join("workspace");
    let (tree, volume) = (place.tell(&folder(source)), place.tell(&place.volume(source, "kept")));

    let taken = bench.run([&["snapshot", source, "--name", "base"], more].concat()).ok();
    assert_eq!(
        (&taken["state"], &taken["consistency"]),
        (&"ready".into(), &"clean".into()),
        "{taken:#}"
    );
    let names: Vec<String> =
        taken["captured_volumes"].as_array().unwrap().iter().map(|v| text(&v["name"])).collect();
    assert_eq!(names, ["kept", "more"], "{taken:#}");
    assert_eq!(taken["not_captured"], serde_json::json!([]), "{taken:#}");
    assert_eq!(taken["not_preserved"], serde_json::json!({}), "{taken:#}");
    // A socket and two devices, in the workspace and in the volume.
    assert_eq!(taken["left_out_count"], 6, "{taken:#}");
    place.tell(&folder(source)).assert_is(&tree, "the source is as it was");

    let back = bench.run(["restore", "base", "--strict", "--name", "back"]).ok();
    assert_eq!(
        (&back["state"], &back["not_preserved"]),
        (&"ready".into(), &serde_json::json!({})),
        "{back:#}"
    );
    let id = text(&back["id"]);
    place.tell(&folder(&id)).assert_is(&tree.kept(), "the workspace");
    place.tell(&place.volume(&id, "kept")).assert_is(&volume.kept(), "the volume");

    for id in [source, &id] {
        bench.run(["destroy", id]).ok();
    }
    bench.run(["snapshots", "delete", "base"]).ok();
    bench.assert_unchanged(place.host(), &before);
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn root_with_docker() {
    like_to_like(Place::Root, &[]);
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn an_account_with_docker() {
    like_to_like(Place::Dev, &[]);
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn root_with_podman() {
    like_to_like(Place::Podman, &[]);
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn rootless_podman() {
    like_to_like(Place::Rootless, &["--mode", "stop"]);
}
