//! Like to like, what comes back is what was there: each path with its kind, mode, owner, content, links, times and xattrs.

use crate::each_case::each_case;
use crate::lab::text;
use crate::snapshots::place::{Place, odd_sandbox, there};
use crate::support::json_assertions::JsonAssertions as _;
use serde_json::json;

pub(crate) fn like_to_like(place: Place, more: &[&str]) {
    there(place);
    let bench = place.bench();
    let before = bench.snapshot(place.host());
    let source = place.id();
    odd_sandbox(&bench, place, source);
    let folder = |id: &str| bench.directory(place.host(), id).join("workspace");
    let (tree, volume) = (place.tell(&folder(source)), place.tell(&place.volume(source, "kept")));

    let taken = bench.ok([&["snapshot", source, "--name", "base"], more].concat());
    taken.has(json!({"state": "ready", "consistency": "clean"}));
    let names: Vec<String> =
        taken["captured_volumes"].as_array().unwrap().iter().map(|v| text(&v["name"])).collect();
    assert_eq!(names, ["kept", "more"], "{taken:#}");
    taken.has(json!({"not_captured": [], "not_preserved": {}}));
    // A socket and two devices, in the workspace and in the volume.
    assert_eq!(taken["left_out_count"], 6, "{taken:#}");
    place.tell(&folder(source)).assert_is(&tree, "the source is as it was");

    let back = bench.ok(["restore", "base", "--strict", "--name", "back"]);
    back.has(json!({"state": "ready", "not_preserved": {}}));
    let id = text(&back["id"]);
    place.tell(&folder(&id)).assert_is(&tree.kept(), "the workspace");
    place.tell(&place.volume(&id, "kept")).assert_is(&volume.kept(), "the volume");

    for id in [source, &id] {
        bench.ok(["destroy", id]);
    }
    bench.ok(["snapshots", "delete", "base"]);
    bench.assert_unchanged(place.host(), &before);
}

each_case! {
    like_to_like {
        root_with_docker: Place::Root, &[];
        an_account_with_docker: Place::Dev, &[];
        root_with_podman: Place::Podman, &[];
        rootless_podman: Place::Rootless, &["--mode", "stop"];
    }
}
