//! A folder for sandboxes whose name has what engines and shells take for something of their own: home directories have such
//! names, too.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use crate::lab::{Bench, text};
use crate::snapshots::place::{KEEPER, Place, there};
use crate::support::json_assertions::JsonAssertions as _;

/// Characters that GNU tar, sed, printf, a line of CSV and the kernel's list of mounts each take for something of their own.
const ODD: &str = r#"sand "boxes", o'ne\two\040\n & $x"#;

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn blanks_commas_quotes_and_backslashes_in_a_root_are_in_nobodys_way() {
    there(Place::Dev);
    let bench = Place::Dev.bench();
    let host = Place::Dev.host();
    let before = bench.snapshot(host);
    let root = bench.workspace_root(host).join(ODD);
    set_root(&bench, host, root.to_str().unwrap());
    let repo = bench.repository("keeper", &[("docker-compose.yml", KEEPER), ("readme", "hello")]);
    let made = bench.create_stack(host, &repo, &["--id", "odd-root-path"]);
    let workspace = |record: &Value| PathBuf::from(text(&record["workdir"])).join("workspace");
    assert!(workspace(&made).starts_with(&root), "{made:#}");

    // What a container wrote as root, so that the account alone reads, gives and removes none of it.
    let closed = workspace(&made).join("closed");
    fs::create_dir(&closed).unwrap();
    fs::write(closed.join("roots"), "root's\n").unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
    fs::write(Place::Dev.volume("odd-root-path", "kept").join("file"), "in a volume\n").unwrap();

    bench.ok(["snapshot", "odd-root-path", "--name", "base"]).has(json!({"foreign_owners": 2}));
    bench.ok(["snapshots", "diff", "base"]).has(json!({"changes": []}));
    bench.ok(["snapshots", "verify", "base"]);

    let back = bench.ok(["restore", "base", "--name", "back", "--strict"]);
    let roots = workspace(&back).join("closed/roots");
    assert_eq!(fs::read_to_string(&roots).unwrap().as_str(), "root's\n");
    assert_eq!(fs::metadata(&roots).unwrap().uid(), 0);
    let (user, group) = Place::Dev.account();
    let readme = fs::metadata(workspace(&back).join("readme")).unwrap();
    assert_eq!(readme.uid(), user, "what was the account's is the account's");
    assert_eq!(readme.gid(), group, "what was the account's is the account's");
    let volume = Place::Dev.volume(&text(&back["id"]), "kept").join("file");
    assert_eq!(fs::read_to_string(volume).unwrap(), "in a volume\n");

    bench.ok(["destroy", "odd-root-path", "back"]);
    bench.ok(["snapshots", "delete", "base"]);
    // But for its mark it is empty.
    fs::remove_file(root.join(".sandboxer-root")).unwrap();
    fs::remove_dir(&root).unwrap();
    bench.assert_unchanged(host, &before);

    set_root(&bench, host, "/srv/sand:boxes");
    let error = bench.run(["list"]).error("invalid_config");
    assert!(error.to_string().contains("container engines"), "{error:#}");
    set_root(&bench, host, root.to_str().unwrap());
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn an_odd_root_is_in_nobodys_way_for_any_kind_of_account() {
    for place in [Place::Root, Place::Podman, Place::Rootless] {
        there(place);
        let bench = place.bench();
        let host = place.host();
        let before = bench.snapshot(host);
        let root = bench.workspace_root(host).join(ODD);
        set_root(&bench, host, root.to_str().unwrap());
        let repo =
            bench.repository("keeper", &[("docker-compose.yml", KEEPER), ("readme", "hello")]);
        let id = format!("odd-path-{}", place.id());
        let made = bench.create_stack(host, &repo, &["--id", &id]);
        let workspace = |record: &Value| PathBuf::from(text(&record["workdir"])).join("workspace");
        assert!(workspace(&made).starts_with(&root), "{made:#}");
        fs::write(place.volume(&id, "kept").join("file"), "in a volume\n").unwrap();
        bench.ok(["snapshot", &id, "--name", "base", "--mode", "live"]);
        bench.ok(["sleep", &id]);
        bench.ok(["wake", &id]);
        bench.ok(["snapshots", "diff", "base"]).has(json!({"changes": []}));
        bench.ok(["snapshots", "verify", "base"]);
        let back = bench.ok(["restore", "base", "--name", "back"]);
        assert_eq!(fs::read_to_string(workspace(&back).join("readme")).unwrap(), "hello");
        let volume = place.volume(&text(&back["id"]), "kept").join("file");
        assert_eq!(fs::read_to_string(volume).unwrap(), "in a volume\n");
        bench.ok(["destroy", &id, "back"]);
        bench.ok(["snapshots", "delete", "base"]);
        fs::remove_file(root.join(".sandboxer-root")).unwrap();
        fs::remove_dir(&root).unwrap();
        bench.assert_unchanged(host, &before);
    }
}

/// A device in a volume is told, whatever the folder is called that the volumes are filled in.
#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_device_in_a_volume_is_seen_below_an_odd_root() {
    for odd in [ODD, "a,[b", r"a\1&", "^a*$"] {
        let folder = tempfile::tempdir().unwrap();
        let (from, top) = (folder.path().join("from"), folder.path().join(odd));
        fs::create_dir_all(from.join("volumes/kept")).unwrap();
        fs::create_dir_all(top.join("volumes/kept")).unwrap();
        let device = from.join("volumes/kept/null");
        assert!(
            Command::new("mknod").arg(device).args(["c", "1", "3"]).status().unwrap().success()
        );
        let scripts = concat!(env!("CARGO_MANIFEST_DIR"), "/src/extensions/archives/scripts/as.sh");
        let script =
            ". \"$1\"; tar -C \"$2\" -cf - volumes | sh -c \"$sbx_filling\" sh \"$3\" 1 kept - tar";
        let ran = Command::new("sh")
            .args(["-c", script, "sh", scripts])
            .args([&from, &top])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&ran.stderr);
        assert_eq!(said, "status: 0\ndevice: volumes/kept/null\n", "{odd}");
    }
}

/// Gives a host another folder for its sandboxes.
fn set_root(bench: &Bench, host: &str, root: &str) {
    let file = bench.path("config.yaml");
    let whole = fs::read_to_string(&file).unwrap();
    let at = whole.find(&format!("  {host}:")).unwrap();
    let (before, own) = whole.split_at(at);
    let (head, rest) = own.split_once("workspace_root: ").unwrap();
    let rest = rest.split_once('\n').unwrap().1;
    fs::write(
        &file,
        format!("{before}{head}workspace_root: {}\n{rest}", serde_json::to_string(root).unwrap()),
    )
    .unwrap();
}
