//! Containers of our own, in which archives are read and written: of nobody's image, and with nobody's environment.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::lab::{on_host, text};
use crate::snapshots::place::{Place, there};
use crate::support::json_assertions::JsonAssertions as _;

/// A stack of an image that gives orders to tar. A name like no other test's.
const STACK: &str = r#"services:
  keeper:
    image: "sbx-orders:1"
    command: ["sh", "-c", "exec sleep 100000"]
    volumes: ["kept:/kept"]
    stop_signal: SIGKILL
volumes:
  kept: {}
"#;

/// Makes the image: the newest on the host, and the stack's own.
const IMAGE_SH: &str = r#"cd "$(mktemp -d)" && printf '%s\n' 'FROM localhost/sbx-lab:1' 'ENV TAR_OPTIONS="--exclude=*.orders" LD_LIBRARY_PATH=/nowhere' >Dockerfile &&
  DOCKER_BUILDKIT=0 docker build -q -t sbx-orders:1 . >/dev/null && rm -r "$PWD""#;

fn workspace(record: &Value) -> PathBuf {
    PathBuf::from(text(&record["workdir"])).join("workspace")
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn an_image_that_gives_orders_to_tar_is_not_asked() {
    there(Place::Dev);
    let bench = Place::Dev.bench();
    let host = Place::Dev.host();
    let before = bench.snapshot(host);
    on_host(host, &[IMAGE_SH]);
    let repo = bench.repository("keeper", &[("docker-compose.yml", STACK), ("plain", "hello")]);
    let made = bench.create_stack(host, &repo, &["--id", "neutral"]);
    // What the account cannot read, and what is in a volume: both take a container.
    let closed = workspace(&made).join("closed");
    fs::create_dir(&closed).unwrap();
    fs::write(closed.join("a.orders"), "root's\n").unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
    fs::write(Place::Dev.volume("neutral", "kept").join("b.orders"), "in a volume\n").unwrap();

    let told = bench.ok(["snapshot", "neutral", "--name", "base"]);
    told.has(json!({"state": "ready", "consistency": "clean"}));
    bench.ok(["snapshots", "diff", "base"]).has(json!({"changes": []}));
    let back = bench.ok(["restore", "base", "--name", "back", "--strict"]);
    assert_eq!(fs::read_to_string(workspace(&back).join("closed/a.orders")).unwrap(), "root's\n");
    let volume = Place::Dev.volume(&text(&back["id"]), "kept").join("b.orders");
    assert_eq!(fs::read_to_string(volume).unwrap(), "in a volume\n");

    // The image is gone, and with it what a removal could have borrowed.
    on_host(
        host,
        &[
            "docker ps -aq --filter ancestor=sbx-orders:1 | xargs docker rm -f >/dev/null; docker rmi -f sbx-orders:1 >/dev/null",
        ],
    );
    let destroyed = bench.ok(["destroy", "neutral", "back"]);
    assert!(!workspace(&made).exists() && !workspace(&back).exists(), "{destroyed:#}");
    bench.ok(["snapshots", "delete", "base"]);
    bench.assert_unchanged(host, &before);
}

/// An archive of the same tar but for one file's text: it is unpacked, and only then known not to be what it was.
const ALTER_SH: &str = r#"cd "$1" && f=$(ls archive.tar.*) && case $f in *.zst) zstd -qdc "$f" ;; *) gzip -dc "$f" ;; esac | sed 's/hello/hullo/' >t &&
  case $f in *.zst) zstd -qc t ;; *) gzip -c t ;; esac >n && cat n >"$f" && rm t n"#;

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn what_a_failed_restore_wrote_for_others_is_removed_by_an_account_without_root() {
    there(Place::Dev);
    let bench = Place::Dev.bench();
    let host = Place::Dev.host();
    let before = bench.snapshot(host);
    let repo = bench.repository(
        "built",
        &[
            (
                "docker-compose.yml",
                "services: {built: {build: ., command: [sleep, '100000'], stop_signal: SIGKILL}}\n",
            ),
            ("Dockerfile", "FROM localhost/sbx-lab:1\nCOPY . /built\n"),
            ("readme", "hello\n"),
        ],
    );
    let made = bench.create_stack(host, &repo, &["--id", "left-behind"]);
    let closed = workspace(&made).join("closed");
    fs::create_dir(&closed).unwrap();
    fs::write(closed.join("roots"), "root's\n").unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();

    // The account's client cannot read what it is to be built of any more: said now, and not when it is restored.
    let taken = bench.ok(["snapshot", "left-behind", "--name", "base"]);
    let remark = text(&taken["remarks"][0]);
    assert!(remark.contains("built again") && remark.contains("workspace/closed"), "{taken:#}");

    on_host(host, &[ALTER_SH, &text(&taken["replicas"][0]["path"])]);
    let error = bench.run(["restore", "base", "--name", "back"]).error("operation_failed");
    assert_eq!(error["details"]["kind"], "altered", "{error:#}");
    let back = bench.stored().into_iter().find(|record| record["name"] == "back").unwrap();
    let directory = bench.directory(host, &text(&back["id"]));
    assert!(!directory.exists(), "{error:#}\n{back:#}");
    bench.ok(["destroy", "left-behind", "back"]);
    bench.ok(["snapshots", "delete", "base"]);
    bench.assert_unchanged(host, &before);
}
