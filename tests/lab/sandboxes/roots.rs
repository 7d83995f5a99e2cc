//! Workspace roots that are away, or others: nothing in them is written off. And hosts that are others: nothing is done there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::lab::{Bench, DOCKER, PODMAN, Way, engine, port_of, text};
use crate::sandboxes::scripts::source;

/// A folder that is mounted in another place, as a disk is.
pub(crate) struct Disk {
    folder: PathBuf,
    at: PathBuf,
}

impl Disk {
    pub(crate) fn new(bench: &Bench) -> Self {
        let disk = Self { folder: bench.path("disk"), at: bench.path("mounted") };
        fs::create_dir_all(disk.folder.join("root")).unwrap();
        fs::create_dir(&disk.at).unwrap();
        disk.mount();
        disk
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.at.join("root")
    }

    pub(crate) fn mount(&self) {
        let mounted =
            Command::new("mount").arg("--bind").args([&self.folder, &self.at]).status().unwrap();
        assert!(mounted.success());
    }

    pub(crate) fn unmount(&self) {
        assert!(Command::new("umount").arg("-l").arg(&self.at).status().unwrap().success());
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.at).status();
    }
}

/// Nothing is written off, whoever asks.
fn writes_nothing_off(bench: &Bench, host: &str, words: &str) {
    bench.run(["hosts", "check", host]);
    for args in [
        &["snapshots", "verify", "taken"][..],
        &["snapshots", "delete", "taken"],
        &["snapshots", "copy", "taken", "--to", host],
        &["restore", "taken", "--name", "again"],
        &["recreate", "one", "--yes"],
        &["create", "--host", host],
        &["create", "--host", host, "--dry-run"],
    ] {
        let ran = bench.run(args);
        let document = ran.stdout.contains("host_changed") || ran.stderr.contains("host_changed");
        assert!(document && ran.status != Some(0), "{words}: {args:?}: {ran:#?}");
        assert!(
            ran.stdout.contains("mount") || ran.stderr.contains("mount"),
            "{words}: {args:?}: {ran:#?}"
        );
    }
    // Nothing was made of it.
    assert_eq!(bench.ok(["destroy", "again"])[0]["ok"], true, "{words}");
    let refused = bench.run(["destroy", "two"]);
    assert_eq!(refused.json()[0]["error"]["code"], "host_changed", "{words}: {refused:#?}");
    let error = bench.run(["exec", "one", "--", "true"]);
    assert_eq!(error.status, Some(125), "{words}: {error:#?}");
    assert!(error.stderr.contains("host_changed"), "{words}: {error:#?}");
    bench.run(["recover"]);
    assert_eq!(bench.get("one")["state"], "ready", "{words}");
    assert_ne!(bench.get("two")["state"], "destroyed", "{words}");
    let snapshot = bench.ok(["snapshots", "get", "taken"]);
    assert_eq!(snapshot["state"], json!("ready"), "{words}: {snapshot:#}");
    assert_eq!(snapshot["replicas"][0]["state"], json!("ready"), "{words}: {snapshot:#}");
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_disk_that_is_not_mounted_proves_nothing() {
    let bench = Bench::new();
    let disk = Disk::new(&bench);
    bench.add_host("diskful", &Way::to(DOCKER, port_of(DOCKER)), &disk.root());
    for name in ["one", "two"] {
        bench.ok(["create", "--host", "diskful", "--name", name]);
    }
    bench.ok(["snapshot", "one", "--name", "taken"]);
    let mark = fs::read_to_string(disk.root().join(".sandboxer-root")).unwrap();
    assert_eq!(mark.trim().len(), 32, "{mark}");

    disk.unmount();
    writes_nothing_off(&bench, "diskful", "no root");
    assert!(!disk.root().exists(), "and none was made");
    fs::create_dir(disk.root()).unwrap();
    writes_nothing_off(&bench, "diskful", "an empty folder");
    for (words, put) in [
        (
            "another mark",
            Box::new(|mark: &Path| fs::write(mark, "0".repeat(32)).unwrap()) as Box<dyn Fn(&Path)>,
        ),
        ("a large file", Box::new(|mark: &Path| fs::write(mark, vec![b'0'; 1 << 20]).unwrap())),
        (
            "a pipe",
            Box::new(|mark: &Path| {
                assert!(Command::new("mkfifo").arg(mark).status().unwrap().success());
            }),
        ),
        (
            "a link",
            Box::new(|mark: &Path| {
                std::os::unix::fs::symlink("../../disk/root/.sandboxer-root", mark).unwrap();
            }),
        ),
    ] {
        let mark = disk.root().join(".sandboxer-root");
        put(&mark);
        let refused = bench.run(["destroy", "two"]);
        assert_eq!(refused.json()[0]["error"]["code"], "host_changed", "{words}: {refused:#?}");
        fs::remove_file(mark).unwrap();
    }
    fs::remove_dir(disk.root()).unwrap();

    disk.mount();
    bench.ok(["snapshots", "verify", "taken"]);
    bench.ok(["snapshots", "delete", "taken"]);
    for name in ["one", "two"] {
        let ran = bench.run(["destroy", name]);
        assert_eq!(ran.ok()[0]["ok"], true, "{name}: {ran:#?}");
    }
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn records_that_are_older_than_marks_prove_nothing_by_what_is_absent() {
    let bench = Bench::new();
    let disk = Disk::new(&bench);
    bench.add_host("diskful", &Way::to(DOCKER, port_of(DOCKER)), &disk.root());
    let ids: Vec<String> = ["one", "two"]
        .map(|name| text(&bench.ok(["create", "--host", "diskful", "--name", name])["id"]))
        .into();
    let mark = disk.root().join(".sandboxer-root");
    let forget = || {
        fs::remove_file(&mark).unwrap();
        for file in ["hosts.json", "hosts.json.bak"] {
            fs::remove_file(bench.data().join(file)).unwrap();
        }
    };
    forget();
    disk.unmount();
    fs::create_dir(disk.root()).unwrap();
    assert_eq!(bench.run(["destroy", "one"]).json()[0]["error"]["code"], "host_changed");
    bench.run(["create", "--host", "diskful", "--dry-run"]).error("host_changed");
    bench.run(["create", "--host", "diskful"]).error("host_changed");
    assert!(!mark.exists(), "nothing of ours is there");
    fs::remove_dir(disk.root()).unwrap();
    disk.mount();
    // Found there with our manifest: from here on it is known.
    assert_eq!(bench.ok(["destroy", "one"])[0]["ok"], true);
    assert!(mark.exists());
    fs::remove_dir_all(disk.root().join(format!("sbx-{}", ids[1]))).unwrap();
    bench.ok(["hosts", "check", "diskful"]);
    assert_eq!(bench.get("two")["state"], "lost", "its root is proved, and it is not in it");
    assert_eq!(bench.ok(["destroy", "two"])[0]["ok"], true);
}

/// Puts another word in place of one, in a file of the bench's data.
fn swap(bench: &Bench, file: &str, from: &str, to: &str) {
    let path = bench.data().join(file);
    let stored = fs::read_to_string(&path).unwrap();
    assert!(stored.contains(from), "{from} in {file}");
    fs::write(&path, stored.replace(from, to)).unwrap();
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn nobody_works_in_or_takes_from_a_host_that_is_another_one() {
    for host in [DOCKER, PODMAN] {
        let bench = Bench::new();
        let record = bench.create_stack(host, &bench.web_stack("x"), &["--name", "one"]);
        bench.ok(["snapshot", "one", "--name", "taken", "--mode", "live"]);
        let identity = &record["host_identity"];
        let (machine, known) = (text(&identity["machine_id"]), text(&identity["engine_id"]));
        let refused = |args: &[&str]| {
            let ran = bench.run(args);
            let line: Value =
                serde_json::from_str(ran.stderr.lines().last().unwrap_or_default()).unwrap();
            assert_eq!(line["error"]["code"], "host_changed", "{host}: {args:?}: {ran:#?}");
        };
        let inside = ["exec", "one", "--service", "web", "--", "touch", "/tmp/seen"];

        let other = "0".repeat(machine.len());
        swap(&bench, "sandboxes.json", &machine, &other);
        swap(&bench, "snapshots.json", &machine, &other);
        refused(&["exec", "one", "--", "touch", "seen"]);
        refused(&inside);
        refused(&["logs", "one"]);
        refused(&["restore", "taken", "--name", "again"]);
        bench.ok(["destroy", "again"]);
        swap(&bench, "sandboxes.json", &other, &machine);
        swap(&bench, "snapshots.json", &other, &machine);

        let another = if engine(host) == "podman" { "/another:1" } else { "another" };
        swap(&bench, "sandboxes.json", &known, another);
        refused(&inside);
        refused(&["logs", "one"]);
        swap(&bench, "sandboxes.json", another, &known);

        assert!(
            !Path::new(&text(&record["workdir"])).join("workspace/seen").exists(),
            "{host}: nothing was run"
        );
        assert_eq!(
            bench
                .run(["exec", "one", "--service", "web", "--", "test", "!", "-e", "/tmp/seen"])
                .status,
            Some(0)
        );
        assert_eq!(bench.run(["exec", "one", "--", "true"]).status, Some(0), "{host}");
        bench.ok(["snapshots", "delete", "taken"]);
        bench.ok(["destroy", "one"]);
    }
}

/// A root in which another console puts its mark between the look for one and the making of ours.
#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_root_that_another_console_marks_at_the_same_moment_is_used() {
    let script = r#"
. "$1/transport/scripts/runtime.sh"; . "$1/extensions/workspace/scripts/says.sh"; . "$1/extensions/workspace/scripts/place.sh"
sbx_want_machine='' sbx_is=m sbx_recorded='' sbx_roots='' sbx_spare=$(printf %032d 1)
sbx_any_of_ours() { echo "$theirs" >.sandboxer-root; return 1; }
sbx_make_root "$2" owner made && cat .sandboxer-root"#;
    for (theirs, works) in [(format!("{:032}", 2), true), ("somebody's notes".to_owned(), false)] {
        let root = tempfile::tempdir().unwrap();
        let ran = Command::new("sh")
            .args(["-c", script, "sh"])
            .args([source().as_path(), root.path()])
            .env("theirs", &theirs)
            .output()
            .unwrap();
        let said = String::from_utf8(ran.stdout).unwrap();
        let wanted = if works { theirs.as_str() } else { "is no mark of a workspace root" };
        assert_eq!(said.contains("error=root"), !works, "{said}");
        assert!(said.contains(wanted), "{said}");
        // Nobody's mark or file is replaced.
        assert_eq!(fs::read_to_string(root.path().join(".sandboxer-root")).unwrap().trim(), theirs);
    }
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_dry_run_tells_of_a_root_that_cannot_be_used() {
    let bench = Bench::new();
    let place = bench.path("place");
    fs::create_dir(&place).unwrap();
    let way = Way::to(DOCKER, port_of(DOCKER));
    fs::write(place.join("file"), "").unwrap();
    std::os::unix::fs::symlink("nowhere", place.join("link")).unwrap();
    for (name, root) in [("filed", "file"), ("below", "file/root"), ("linked", "link/root")] {
        bench.add_host(name, &way, &place.join(root));
        let dry = bench.run(["create", "--host", name, "--dry-run"]).error("operation_failed");
        let real = bench.run(["create", "--host", name]).error("operation_failed");
        assert_eq!(dry["message"], real["message"], "{name}: {dry:#} {real:#}");
    }
    // One that is not there yet can be used, and is not made.
    bench.add_host("fresh", &way, &place.join("new/root"));
    bench.ok(["create", "--host", "fresh", "--dry-run"]);
    assert!(!place.join("new").exists());
    let id = text(&bench.ok(["create", "--host", "fresh"])["id"]);
    // A tree for which there is no room is refused before anything of it is sent, in a root that is there and in one that is not.
    let huge = bench.stack("huge", "services: {web: {image: none}}\n");
    fs::File::create(huge.join("hole")).unwrap().set_len(1 << 43).unwrap();
    let repo = format!("repo={}", huge.display());
    bench.add_host("absent", &way, &place.join("absent"));
    for host in ["fresh", "absent"] {
        let create = [
            "create",
            "--host",
            host,
            "--profile",
            "profile.compose-e2e",
            "--input",
            &repo,
            "--yes",
        ];
        let dry = [&create[..], &["--dry-run"]].concat();
        for error in [bench.run(dry), bench.run(create)].map(|ran| ran.error("operation_failed")) {
            assert!(error.to_string().contains(" KiB are needed"), "{error:#}");
        }
    }
    let mark = place.join("new/root/.sandboxer-root");
    fs::remove_file(&mark).unwrap();
    bench.run(["create", "--host", "fresh", "--dry-run"]).error("host_changed");
    assert!(!mark.exists());
    fs::remove_file(bench.data().join("hosts.json")).unwrap();
    fs::remove_file(bench.data().join("hosts.json.bak")).unwrap();
    // What is ours proves it, and a dry run puts no mark there.
    bench.ok(["create", "--host", "fresh", "--dry-run"]);
    assert!(!mark.exists());
    bench.ok(["destroy", &id]);
}
