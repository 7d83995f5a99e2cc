//! Accounts without root: what containers wrote as somebody else is removed all the same, by the means the account has.

use std::fs;

use serde_json::Value;

use crate::each_case::each_case;
use crate::lab::{Bench, DOCKER, PODMAN, http_get, on_engine, on_host, text, url_of, wait_until};

pub(crate) const DEV: &str = "sandboxer01-dev";
pub(crate) const SUDO: &str = "sandboxer01-sudo";
pub(crate) const OPS: &str = "coulombcore-ops";

/// Writes into the workspace and a volume as root and as another user, closed to everybody else.
pub(crate) const WRITER: &str = r#"services:
  writer:
    image: localhost/sbx-lab:1
    command: ["sh", "-c", "mkdir -p /w/deep/er && echo x >/w/deep/er/f && chmod 600 /w/deep/er/f && chmod 700 /w/deep /w/deep/er && chown -R 7:7 /w/deep/er && ln -s / /w/deep/root && echo x >/data/f && chmod 600 /data/f && : >/w/written && exec sleep 600"]
    stop_signal: SIGKILL
    volumes: ["./:/w", "data:/data"]
volumes:
  data: {}
"#;

/// Id of a writer on a host, which has written.
pub(crate) fn writer(bench: &Bench, host: &str) -> String {
    let id = text(&bench.create_stack(host, &bench.stack("writer", WRITER), &[])["id"]);
    wait_for_writer(bench, host, &id);
    id
}

/// Waits until the writer has written.
fn wait_for_writer(bench: &Bench, host: &str, id: &str) {
    let file = bench.directory(host, id).join("workspace/written");
    wait_until("the writer has written", || file.exists());
}

/// What the record says of the directory's removal.
pub(crate) fn removal(bench: &Bench, id: &str) -> Value {
    let record = bench.get(id);
    let lines = record["teardown"].as_array().unwrap();
    lines
        .iter()
        .find(|line| line["resource"]["kind"] == "directory")
        .unwrap_or_else(|| panic!("{record:#}"))
        .clone()
}

fn a_writer_comes_and_goes(host: &'static str, way: Option<&str>) {
    let bench = Bench::with(if host == DOCKER || host == PODMAN {
        &[]
    } else {
        std::slice::from_ref(&host)
    });
    let before = bench.snapshot(host);
    let id = writer(&bench, host);
    assert_eq!(bench.get(&id)["services"][0]["state"], "running");
    let listed = bench.ok(["list"]);
    assert_eq!(listed.as_array().unwrap().len(), 1);

    assert_eq!(bench.ok(["recreate", &id, "--yes"])["state"], "ready");
    wait_for_writer(&bench, host, &id);

    bench.ok(["destroy", &id, "--yes"]);
    let line = removal(&bench, &id);
    assert_eq!(line["outcome"], "removed");
    let by = way.map(|way| format!("files of other users were removed by {way}"));
    assert_eq!(line["reason"].as_str(), by.as_deref());
    bench.assert_unchanged(host, &before);
}

each_case! {
    a_writer_comes_and_goes {
        root_removes_what_a_container_wrote_on_docker: DOCKER, None;
        root_removes_what_a_container_wrote_on_podman: PODMAN, None;
        an_account_with_the_docker_socket_alone_removes_by_a_container: DEV, Some("a container");
        an_account_with_sudo_for_rm_removes_by_it: SUDO, Some("sudo -n");
        rootless_podman_removes_in_its_user_namespace: OPS, Some("podman unshare");
    }
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_stack_answers_for_accounts_without_root() {
    let bench = Bench::with(&[DEV, OPS]);
    for host in [DEV, OPS] {
        let before = bench.snapshot(host);
        let made = bench.create_stack(host, &bench.web_stack("hello, account"), &[]);
        let url = url_of(&made);
        assert!(http_get(&url).contains("hello, account"), "{host}");
        bench.ok(["destroy", &text(&made["id"]), "--yes"]);
        bench.assert_unchanged(host, &before);
    }
}

/// Somebody removed the containers; the image to remove with is one of our own.
#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn no_container_has_to_be_left_to_remove_by_one() {
    let bench = Bench::with(&[DEV]).and_watches(&[DEV]);
    let id = writer(&bench, DEV);
    on_host(DEV, &["docker rm -f \"$1\" >/dev/null", &format!("sbx-{id}-writer-1")]);
    bench.ok(["destroy", &id, "--yes"]);
    assert_eq!(removal(&bench, &id)["reason"], "files of other users were removed by a container");
    bench.assert_as_before();
}

/// The sandbox's only image has neither sh nor rm; nothing is pulled for it.
#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn an_image_without_rm_gets_the_hosts() {
    let bench = Bench::with(&[DEV]).and_watches(&[DEV]);
    let repo = bench.repository(
        "bare",
        &[
            ("Dockerfile", "FROM scratch\nCOPY busybox /here/busybox\n"),
            ("docker-compose.yml", "services:\n  bare:\n    build: .\n    command: [\"/here/busybox\", \"sh\", \"-c\", \"/here/busybox mkdir /w/d && echo x >/w/d/f && /here/busybox chmod 700 /w/d && : >/w/written && exec /here/busybox sleep 600\"]\n    stop_signal: SIGKILL\n    volumes: [\"./out:/w\"]\n"),
            ("out/here", ""),
        ],
    );
    fs::copy("/bin/busybox", repo.join("busybox")).unwrap();
    let made = bench.create_stack(DEV, &repo, &[]);
    let id = text(&made["id"]);
    let file = bench.directory(DEV, &id).join("workspace/out/written");
    wait_until("it has written", || file.exists());
    assert!(on_engine(DEV, &["\"$1\" images"]).contains(&format!("sbx-{id}-built")));
    bench.ok(["destroy", &id, "--yes"]);
    let reason = text(&removal(&bench, &id)["reason"]);
    assert!(reason.ends_with("a container"), "{reason}");
    bench.assert_as_before();
}
