//! Sandboxes beside each other.

use serde_json::json;

use crate::lab::{Bench, PODMAN, Started, http_get, stack_args, text, url_of};

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn two_sandboxes_of_one_repository_do_not_touch_each_other() {
    let bench = Bench::watching(&[PODMAN]);
    let repo = bench.web_stack("still here");
    // Both have the fixed container name and port of the file; podman-compose's own `down` of one would end the other.
    let start =
        || Started::spawn(bench.command(stack_args("profile.compose-e2e", PODMAN, &repo, &[])));
    let both = [start(), start()].map(|started| started.finish().ok());
    let urls = both.clone().map(|record| url_of(&record));
    assert_ne!(urls[0], urls[1]);
    for url in &urls {
        assert!(http_get(url).contains("still here"));
    }
    bench.ok(["destroy", &text(&both[0]["id"])]);
    assert!(http_get(&urls[1]).contains("still here"), "the other one answers");
    assert_eq!(bench.get(&text(&both[1]["id"]))["state"], json!("ready"));
    bench.ok(["destroy", &text(&both[1]["id"])]);
    bench.assert_as_before();
}
