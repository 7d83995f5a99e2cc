//! A host whose programs are busybox's: a snapshot has what its tar can read, says what it cannot, and can be restored.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use crate::lab::{Bench, DOCKER, stack_args, text};
use crate::sandboxes::broken::Sshd;
use crate::sandboxes::snapshot_kills::wait_for_first;
use crate::support::json_assertions::JsonAssertions as _;

const KEEPER: &str = r#"services:
  keeper:
    image: "localhost/sbx-lab:1"
    command: ["sh", "-c", "test -e /kept/first || echo made anew >/kept/first; exec sleep 100000"]
    volumes: ["kept:/kept"]
    stop_signal: SIGKILL
volumes:
  kept: {}
"#;

/// A PATH with busybox's programs, and Docker's client.
fn programs(bench: &Bench) -> PathBuf {
    let bin = bench.path("busybox-bin");
    fs::create_dir(&bin).unwrap();
    let installed = Command::new("busybox").args(["--install", "-s"]).arg(&bin).status().unwrap();
    assert!(installed.success());
    symlink("/usr/bin/docker", bin.join("docker")).unwrap();
    bin
}

fn fill(workspace: &Path) {
    fs::write(workspace.join("file"), "text\n").unwrap();
    fs::hard_link(workspace.join("file"), workspace.join("twin")).unwrap();
    symlink("../../elsewhere", workspace.join("link")).unwrap();
    fs::create_dir(workspace.join("read-only")).unwrap();
    fs::write(workspace.join("read-only/run"), "#!/bin/sh\n").unwrap();
    chown(workspace.join("read-only/run"), Some(33), Some(33)).unwrap();
    fs::set_permissions(workspace.join("read-only/run"), fs::Permissions::from_mode(0o4755))
        .unwrap();
    fs::set_permissions(workspace.join("read-only"), fs::Permissions::from_mode(0o555)).unwrap();
    assert!(Command::new("mkfifo").arg(workspace.join("pipe")).status().unwrap().success());
}

fn assert_filled(workspace: &Path) {
    let meta = |name: &str| fs::symlink_metadata(workspace.join(name)).unwrap();
    assert_eq!(fs::read_to_string(workspace.join("file")).unwrap(), "text\n");
    assert_eq!(meta("file").ino(), meta("twin").ino(), "a hard link");
    assert_eq!(fs::read_link(workspace.join("link")).unwrap(), Path::new("../../elsewhere"));
    assert_eq!(meta("read-only").mode() & 0o7777, 0o555);
    assert_eq!(meta("read-only/run").mode() & 0o7777, 0o4755);
    assert_eq!((meta("read-only/run").uid(), meta("read-only/run").gid()), (33, 33));
    assert!(std::os::unix::fs::FileTypeExt::is_fifo(&meta("pipe").file_type()));
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_snapshot_with_busybox_alone_says_what_it_lacks_and_can_be_restored() {
    let bench = Bench::watching(&[DOCKER]);
    let bin = programs(&bench);
    let _sshd = Sshd::start(&bench, "busybox", &[("PATH", bin.to_str().unwrap())]);
    let repo = bench.stack("keeper", KEEPER);
    let made = bench.create_stack("busybox", &repo, &["--id", "busy-source"]);
    fill(&PathBuf::from(text(&made["workdir"])).join("workspace"));

    let taken = bench.ok(["snapshot", "busy-source", "--name", "base"]);
    taken.has(json!({
        "state": "ready", "needs_gnu_tar": false, "captured_volumes": [], "foreign_owners": 1,
        "not_preserved": {"xattrs_unknown": 1},
    }));
    let missed = &taken["not_captured"][0];
    assert_eq!(missed["name"], "kept", "{taken:#}");
    assert!(text(&missed["reason"]).contains("GNU tar"), "{missed:#}");
    bench.ok(["snapshots", "verify", "base"]);
    // There, and where there is more.
    for (host, name) in [("busybox", "there"), (DOCKER, "elsewhere")] {
        let back = bench.ok(["restore", "base", "--host", host, "--name", name]);
        assert_eq!(back["state"], "ready", "{back:#}");
        assert_filled(&PathBuf::from(text(&back["workdir"])).join("workspace"));
        wait_for_first(&bench, name);
        let read = bench.ok(["exec", name, "--service", "keeper", "--", "cat", "/kept/first"]);
        assert_eq!(text(&read["stdout"]), "made anew\n");
    }

    // Debian's has no tar that leaves anything out.
    let lean = bench.profile("lean", "snapshot: {exclude: [cache]}");
    bench.ok(stack_args(&lean, "busybox", &repo, &["--name", "lean"]));
    let error = bench.refused(["snapshot", "lean"], "missing_dependency");
    error.has(json!({"details.missing": ["GNU tar"]}));
    bench.ok(["destroy", "lean"]);

    // Its own shell has all of it built in.
    for name in ["sh", "tar"] {
        fs::remove_file(bin.join(name)).unwrap();
    }
    symlink("/usr/bin/dash", bin.join("sh")).unwrap();
    let error = bench.refused(["snapshot", "busy-source", "--name", "none"], "missing_dependency");
    assert_eq!(error["details"]["missing"], json!(["tar"]), "{error:#}");
    symlink("/usr/bin/tar", bin.join("tar")).unwrap();

    bench.clear();
    bench.assert_as_before();
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn what_takes_gnu_tar_is_not_brought_to_busybox() {
    let bench = Bench::new();
    let bin = programs(&bench);
    let _sshd = Sshd::start(&bench, "busybox", &[("PATH", bin.to_str().unwrap())]);
    // A root of its own: on the other one the archive is there already.
    let config = fs::read_to_string(bench.path("config.yaml")).unwrap();
    let (front, own) = config.split_once("  busybox:").unwrap();
    let root = bench.path("busybox-root");
    let own = own.replace(bench.workspace_root(DOCKER).to_str().unwrap(), root.to_str().unwrap());
    fs::write(bench.path("config.yaml"), format!("{front}  busybox:{own}")).unwrap();

    bench.ok(["create", "--host", DOCKER, "--id", "gnu-source"]);
    bench.ok(["snapshot", "gnu-source", "--name", "base"]);
    let error = bench.refused(["restore", "base", "--host", "busybox"], "missing_dependency");
    assert_eq!(error["details"]["missing"], json!(["GNU tar"]), "{error:#}");
    assert!(!root.exists(), "nothing was brought there");
    bench.ok(["destroy", "gnu-source"]);
    bench.ok(["snapshots", "delete", "base"]);
}

/// In such an archive the account has a number and no name: wherever it is restored, what was its own is the account's there.
#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn what_an_account_with_busybox_had_belongs_to_the_account_elsewhere() {
    let bench = Bench::watching(&[DOCKER]);
    let bin = programs(&bench);
    let home = bench.path("busybox-home");
    fs::create_dir(&home).unwrap();
    chown(&home, Some(account("build")), None).unwrap();
    fs::set_permissions(bench.path(""), fs::Permissions::from_mode(0o711)).unwrap();
    let _sshd = Sshd::start(
        &bench,
        "busybox",
        &[("PATH", bin.to_str().unwrap()), ("HOME", home.to_str().unwrap())],
    );
    let edit = |file: &str, from: &str, to: &str| {
        let text = fs::read_to_string(bench.path(file)).unwrap();
        assert!(text.contains(from), "{text}");
        fs::write(bench.path(file), text.replace(from, to)).unwrap();
    };
    edit("ssh-busybox", "User root", "User build");
    let config = fs::read_to_string(bench.path("config.yaml")).unwrap();
    let (front, own) = config.split_once("  busybox:").unwrap();
    let own = own.replace(bench.workspace_root(DOCKER).to_str().unwrap(), home.to_str().unwrap());
    fs::write(bench.path("config.yaml"), format!("{front}  busybox:{own}")).unwrap();

    let made = bench.ok(["create", "--host", "busybox", "--name", "source"]);
    let workspace = PathBuf::from(text(&made["workdir"])).join("workspace");
    for (name, owner) in [("file", "build"), ("run", "build"), ("other", "www-data")] {
        fs::write(workspace.join(name), "text\n").unwrap();
        chown(workspace.join(name), Some(account(owner)), Some(account(owner))).unwrap();
    }
    symlink("nowhere", workspace.join("link")).unwrap();
    std::os::unix::fs::lchown(workspace.join("link"), Some(account("build")), None).unwrap();
    fs::set_permissions(workspace.join("run"), fs::Permissions::from_mode(0o4755)).unwrap();
    bench.ok(["snapshot", "source", "--name", "base"]);

    let back = bench.ok(["restore", "base", "--host", DOCKER, "--name", "back"]);
    let there = PathBuf::from(text(&back["workdir"])).join("workspace");
    let meta = |name: &str| fs::symlink_metadata(there.join(name)).unwrap();
    for name in ["", "file", "run", "link"] {
        assert_eq!(meta(name).uid(), 0, "{name:?} is the account's");
    }
    assert_eq!(meta("other").uid(), account("www-data"));
    assert_eq!(meta("other").gid(), account("www-data"));
    assert_eq!(meta("run").mode() & 0o7777, 0o4755, "with its mode");
    bench.ok(["destroy", "source", "back"]);
    bench.ok(["snapshots", "delete", "base"]);
    bench.assert_as_before();
}

/// An account's number.
fn account(name: &str) -> u32 {
    let said = Command::new("id").args(["-u", name]).output().unwrap();
    String::from_utf8(said.stdout).unwrap().trim().parse().unwrap()
}
