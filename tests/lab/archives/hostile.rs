//! Files that are made to do harm: each is refused, and nothing of it is on the host.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use tar::{EntryType, Header};

use crate::archives::source::{archive, folder as shelf, snapshot, through};
use crate::each_case::each_case;
use crate::lab::{Bench, DOCKER, PODMAN, rooms, text};
use crate::support::json_assertions::JsonAssertions as _;

/// A member of a tar.
struct Entry {
    name: &'static str,
    kind: EntryType,
    target: &'static str,
    content: Vec<u8>,
}

fn file(name: &'static str) -> Entry {
    Entry { name, kind: EntryType::Regular, target: "", content: b"x".to_vec() }
}

fn folder(name: &'static str) -> Entry {
    Entry { name, kind: EntryType::Directory, target: "", content: Vec::new() }
}

fn link(name: &'static str, kind: EntryType, target: &'static str) -> Entry {
    Entry { name, kind, target, content: Vec::new() }
}

/// What comes next is called otherwise by who knows pax.
fn pax(key: &str, value: &str) -> Entry {
    let mut length = key.len() + value.len() + 3;
    while length.to_string().len() + key.len() + value.len() + 3 != length {
        length += 1;
    }
    let content = format!("{length} {key}={value}\n").into_bytes();
    Entry { name: "PaxHeaders/x", kind: EntryType::XHeader, target: "", content }
}

fn block(entry: &Entry) -> Vec<u8> {
    let mut header = Header::new_gnu();
    {
        // As it stands: the crate refuses what is to be refused here.
        let old = header.as_old_mut();
        old.name[..entry.name.len()].copy_from_slice(entry.name.as_bytes());
        old.linkname[..entry.target.len()].copy_from_slice(entry.target.as_bytes());
    }
    header.set_entry_type(entry.kind);
    header.set_size(entry.content.len() as u64);
    header.set_mode(0o755);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(1_700_000_000);
    header.set_cksum();
    let mut bytes = header.as_bytes().to_vec();
    bytes.extend(&entry.content);
    bytes.resize(bytes.len().next_multiple_of(512), 0);
    bytes
}

fn tar(entries: &[Entry]) -> Vec<u8> {
    let mut bytes: Vec<u8> = entries.iter().flat_map(block).collect();
    bytes.resize(bytes.len() + 1024, 0);
    bytes
}

fn sha256(bytes: &[u8]) -> String {
    String::from_utf8(through(&["sha256sum"], bytes)).unwrap()[..64].to_owned()
}

/// A file as an export would be, of this tar.
fn export(manifest: &Value, content: &[u8], change: impl FnOnce(&mut Value)) -> Vec<u8> {
    let packed = through(&["gzip", "-c"], content);
    let mut manifest = manifest.clone();
    let snapshot = &mut manifest["snapshot"];
    snapshot["format"] = json!("tar.gz");
    snapshot["bytes"] = json!(packed.len());
    snapshot["content_bytes"] = json!(content.len());
    snapshot["files"] = Value::Null;
    snapshot["volumes_bytes"] = json!(0);
    snapshot["sha256"] = json!(sha256(content));
    change(&mut manifest);
    let text = serde_json::to_vec_pretty(&manifest).unwrap();
    tar(&[
        Entry { name: "manifest.json", kind: EntryType::Regular, target: "", content: text },
        Entry { name: "archive.tar.gz", kind: EntryType::Regular, target: "", content: packed },
    ])
}

/// Makes the manifest's hash of its profile right.
fn vouch(manifest: &mut Value) {
    let profile: sandboxer::domain::profile::Profile =
        serde_json::from_value(manifest["recipe"].clone()).unwrap();
    manifest["snapshot"]["profile"]["hash"] = json!(profile.hash());
}

/// The manifest of a real export.
fn manifest(bench: &Bench) -> Value {
    let path = bench.path("real.tar");
    bench.ok(["snapshots", "export", "base", path.to_str().unwrap()]);
    serde_json::from_slice(&through(&["tar", "-xOf", path.to_str().unwrap(), "manifest.json"], b""))
        .unwrap()
}

fn import(bench: &Bench, path: &Path, bytes: &[u8]) -> crate::lab::Ran {
    fs::write(path, bytes).unwrap();
    bench.run([
        "snapshots",
        "import",
        path.to_str().unwrap(),
        "--host",
        PODMAN,
        "--name",
        "hostile",
    ])
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn whatever_reaches_out_of_an_archive_is_refused() {
    let bench = Bench::new();
    snapshot(&bench, DOCKER, "hostile-source");
    let manifest = manifest(&bench);
    let before = bench.snapshot(PODMAN);
    let listed = bench.ok(["snapshots", "list", "--all"]);
    let path = bench.path("hostile.tar");
    let (top, kept) = (|| folder("workspace/"), || folder("volumes/kept/"));

    // A good one is taken, so that what follows is refused for its own sake.
    let good = [
        kept(),
        file("volumes/kept/a"),
        top(),
        file("workspace/a"),
        link("workspace/b", EntryType::Link, "workspace/a"),
        link("workspace/c", EntryType::Symlink, "/etc/passwd"),
        // Upwards for who knows no pax: written anew, it is so for nobody.
        pax("path", "workspace/d"),
        file("../d"),
    ];
    let taken = import(&bench, &path, &export(&manifest, &tar(&good), |_| {})).ok();
    taken.has(json!({"files": 7, "state": "ready"}));
    bench.ok(["snapshots", "verify", "hostile"]);
    let written = bench.path("written.tar");
    let written = written.to_str().unwrap();
    bench.ok(["snapshots", "export", "hostile", written]);
    let format = text(&taken["format"]);
    let anew = through(&["tar", "-xOf", written, &format!("archive.{format}")], b"");
    let unpack = if format == "tar.zst" { "zstd" } else { "gzip" };
    let anew = through(&[unpack, "-dc"], &anew);
    assert_eq!(taken["sha256"], json!(sha256(&anew)));
    let names = String::from_utf8(through(&["busybox", "tar", "-tf", "-"], &anew)).unwrap();
    assert_eq!(
        names,
        "volumes/kept/\nvolumes/kept/a\nworkspace/\nworkspace/a\nworkspace/b\nworkspace/c\nworkspace/d\n"
    );
    bench.ok(["snapshots", "delete", "hostile"]);

    let long: &str = Box::leak(format!("workspace/{}", "x".repeat(256)).into_boxed_str());
    let hostile: [(&str, &str, Vec<Entry>); 18] = [
        (
            "longer than a name",
            "longer than a name on a host",
            vec![top(), pax("path", long), file("workspace/a")],
        ),
        ("absolute", "is absolute", vec![top(), file("/workspace/a")]),
        ("upwards", "leads upwards", vec![top(), file("workspace/../../a")]),
        ("outside", "neither in workspace/", vec![top(), file("elsewhere/a")]),
        (
            "upwards in pax",
            "leads upwards",
            vec![top(), pax("path", "workspace/../../a"), file("workspace/a")],
        ),
        ("a volume that is none", "in no volume", vec![folder("volumes/other/"), top()]),
        ("a volume called ..", "leads upwards", vec![folder("volumes/../"), top()]),
        (
            "a volume behind",
            "comes after the workspace",
            vec![top(), kept(), file("volumes/kept/a")],
        ),
        (
            "a hard link out",
            "outside",
            vec![top(), link("workspace/a", EntryType::Link, "/etc/shadow")],
        ),
        (
            "a hard link upwards",
            "outside",
            vec![top(), link("workspace/a", EntryType::Link, "workspace/../../a")],
        ),
        (
            "a hard link into a volume",
            "outside",
            vec![
                kept(),
                file("volumes/kept/a"),
                top(),
                link("workspace/a", EntryType::Link, "volumes/kept/a"),
            ],
        ),
        (
            "through a link",
            "leads through a link",
            vec![
                top(),
                link("workspace/l", EntryType::Symlink, "/etc"),
                file("workspace/l/passwd"),
            ],
        ),
        (
            "through a link to a link",
            "leads through a link",
            vec![
                top(),
                link("workspace/l", EntryType::Symlink, "/etc"),
                link("workspace/m", EntryType::Link, "workspace/l"),
                file("workspace/m/passwd"),
            ],
        ),
        (
            "onto a link",
            "after it was a link",
            vec![
                top(),
                link("workspace/l", EntryType::Symlink, "/etc/passwd"),
                file("workspace/l"),
            ],
        ),
        (
            "a workspace that is a link",
            "no folder",
            vec![link("workspace", EntryType::Symlink, "/etc"), file("workspace/passwd")],
        ),
        ("a device", "is a device", vec![top(), link("workspace/sda", EntryType::Block, "")]),
        (
            "a character device",
            "is a device",
            vec![top(), link("workspace/null", EntryType::Char, "")],
        ),
        ("no workspace", "no workspace", vec![kept()]),
    ];
    for (what, why, entries) in hostile {
        let error = import(&bench, &path, &export(&manifest, &tar(&entries), |_| {}))
            .error("invalid_input");
        assert!(error["causes"].to_string().contains(why), "{what}: {error:#}");
        assert!(rooms(&bench.workspace_root(PODMAN)).is_empty(), "{what}");
        assert_eq!(bench.ok(["snapshots", "list", "--all"]), listed, "{what}");
    }
    bench.assert_unchanged(PODMAN, &before);
    bench.clear();
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_file_that_is_not_what_its_manifest_says_is_refused() {
    let bench = Bench::new();
    snapshot(&bench, DOCKER, "liar-source");
    let manifest = manifest(&bench);
    let before = bench.snapshot(PODMAN);
    let listed = bench.ok(["snapshots", "list", "--all"]);
    let path = bench.path("liar.tar");
    let content = tar(&[folder("volumes/kept/"), folder("workspace/"), file("workspace/a")]);
    let mut files: Vec<(&str, &str, Vec<u8>)> = Vec::new();
    let mut lie = |what, why, change: fn(&mut Value)| {
        files.push((what, why, export(&manifest, &content, change)));
    };
    lie("another hash", "its SHA-256 is", |manifest| {
        manifest["snapshot"]["sha256"] = json!("0".repeat(64));
    });
    lie("fewer bytes", "there is more in it", |manifest| {
        manifest["snapshot"]["content_bytes"] = json!(512);
    });
    lie("more bytes", "it ends after", |manifest| {
        manifest["snapshot"]["content_bytes"] = json!(1 << 20);
    });
    lie("more entries", "it has 3 entries", |manifest| manifest["snapshot"]["files"] = json!(100));
    lie("another size", "not as long as", |manifest| manifest["snapshot"]["bytes"] = json!(1));
    lie("a schema of tomorrow", "of the schema 2", |manifest| manifest["schema"] = json!(2));
    lie("an id that is a path", "its id is none", |manifest| {
        manifest["id"] = json!("../../x");
        manifest["snapshot"]["id"] = json!("../../x");
    });
    lie("two ids", "its id is none", |manifest| manifest["id"] = json!("snap-00000000"));
    lie("a volume that is a path", "one of its volumes", |manifest| {
        manifest["snapshot"]["captured_volumes"] = json!([{"name": "../x"}]);
    });
    lie("a volume that is not in it", "the volume more is not in it", |manifest| {
        manifest["snapshot"]["captured_volumes"] = json!([{"name": "kept"}, {"name": "more"}]);
    });
    lie("patches without end", "more patches than there can be", |manifest| {
        manifest["snapshot"]["next_patch_sequence"] = json!(u64::MAX);
    });
    lie("a name that is none", "its name is none", |manifest| {
        manifest["snapshot"]["name"] = json!("$(reboot)");
    });
    lie("a profile that puts things elsewhere", "has the config", |manifest| {
        manifest["recipe"]["config"] = json!({"root": "/root/.ssh"});
        vouch(manifest);
    });
    lie("a profile that allows more", "allows ", |manifest| {
        manifest["recipe"]["compose"]["allow"] = json!(["privileged"]);
        vouch(manifest);
    });
    lie("a profile that opens its ports", "has the ports public", |manifest| {
        manifest["recipe"]["compose"]["ports"] = json!("public");
        vouch(manifest);
    });
    lie("a profile that lives for ever", "is longer than ten years", |manifest| {
        manifest["recipe"]["ttl_s"] = json!(10_u64.pow(17));
        manifest["recipe"]["max_ttl_s"] = Value::Null;
        vouch(manifest);
    });
    lie("a profile that nobody vouches for", "its profile is not the one", |manifest| {
        manifest["recipe"]["compose"]["allow"] = json!(["privileged"]);
    });
    lie("a format that is a path", "not where it should be", |manifest| {
        manifest["snapshot"]["format"] = json!("/../x");
    });
    files.push(("no manifest", "not where it should be", content.clone()));
    files.push(("nothing", "ends too early", Vec::new()));
    files.push(("noise", "not where it should be", b"noise ".repeat(1000)));
    let mut behind = export(&manifest, &content, |_| {});
    behind.extend(tar(&[file("workspace/b")]));
    files.push(("something behind it", "follows the archive", behind));
    files.push((
        "something behind the tar",
        "follows its end",
        export(&manifest, &[&content[..], b"x", &[0; 511]].concat(), |_| {}),
    ));
    for (what, why, bytes) in &files {
        let ran = import(&bench, &path, bytes);
        assert_eq!(ran.status, Some(2), "{what}: {ran:#?}");
        let error = ran.error("invalid_input");
        assert!(error.to_string().contains(why), "{what}: {error:#}");
        assert!(rooms(&bench.workspace_root(PODMAN)).is_empty(), "{what}");
        assert_eq!(bench.ok(["snapshots", "list", "--all"]), listed, "{what}");
    }
    bench.assert_unchanged(PODMAN, &before);
    bench.clear();
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_bomb_stops_at_the_bytes_that_were_promised() {
    let bench = Bench::new();
    snapshot(&bench, DOCKER, "bomb-source");
    let manifest = manifest(&bench);
    let before = bench.snapshot(PODMAN);
    // 4 GB of zeros in 18 MB: a block of deflate that needs nothing of what stands before it, over and over.
    let packed = bench.path("zeros.gz");
    let script = "import sys, zlib; c = zlib.compressobj(1, zlib.DEFLATED, -15); b = c.compress(bytes(10**8)) + c.flush(zlib.Z_FULL_FLUSH); open(sys.argv[1], 'wb').write(b'\\x1f\\x8b\\x08' + bytes(6) + b'\\xff' + b * 40)";
    let made = std::process::Command::new("python3").args(["-c", script]).arg(&packed).status();
    assert!(made.unwrap().success());
    let packed = fs::read(packed).unwrap();
    let mut manifest = manifest;
    manifest["snapshot"]["format"] = json!("tar.gz");
    manifest["snapshot"]["bytes"] = json!(packed.len());
    manifest["snapshot"]["content_bytes"] = json!(10_240);
    manifest["snapshot"]["volumes_bytes"] = json!(0);
    manifest["snapshot"]["files"] = Value::Null;
    let text = serde_json::to_vec_pretty(&manifest).unwrap();
    let bytes = tar(&[
        Entry { name: "manifest.json", kind: EntryType::Regular, target: "", content: text },
        Entry { name: "archive.tar.gz", kind: EntryType::Regular, target: "", content: packed },
    ]);
    let ran = import(&bench, &bench.path("bomb.tar"), &bytes);
    let error = ran.error("invalid_input");
    assert!(error["causes"].to_string().contains("more"), "{error:#}");
    assert!(ran.took.as_secs() < 30, "{:?}", ran.took);
    bench.assert_unchanged(PODMAN, &before);
    bench.clear();
}

/// An archive that was altered on its host together with its manifest, which a console without records believes: what the
/// account cannot make there, root in a container of ours can, where owners are to be kept.
fn devices_of_an_altered_archive_are_refused(host: &str) {
    let bench = Bench::watching(&[host]);
    let record = snapshot(&bench, host, "device-source");
    let (file_there, id) = (archive(&bench, host, &record), text(&record["id"]));
    let manifest = shelf(&bench, host, &id).join("manifest.json");
    let content = tar(&[
        folder("workspace/"),
        file("workspace/a"),
        link("workspace/deep", EntryType::Char, ""),
    ]);
    let pack = if record["format"] == "tar.zst" { "zstd" } else { "gzip" };
    let packed = through(&[pack, "-c"], &content);
    let mut altered: Value = serde_json::from_slice(&fs::read(&manifest).unwrap()).unwrap();
    let snapshot = &mut altered["snapshot"];
    snapshot["bytes"] = json!(packed.len());
    snapshot["content_bytes"] = json!(content.len());
    snapshot["sha256"] = json!(sha256(&content));
    snapshot["files"] = json!(3);
    snapshot["foreign_owners"] = json!(3);
    snapshot["volumes_bytes"] = json!(0);
    snapshot["captured_volumes"] = json!([]);
    let mut text_of_it = serde_json::to_vec_pretty(&altered).unwrap();
    text_of_it.push(b'\n');
    fs::write(&file_there, packed).unwrap();
    fs::write(&manifest, text_of_it).unwrap();

    fs::rename(bench.data(), bench.path("lost")).unwrap();
    bench.ok(["adopt", "--owner", &text(&record["owner"]), "--yes"]);
    bench.ok(["snapshots", "verify", "base"]);
    let error = bench.refused(["restore", "base"], "operation_failed");
    assert_eq!(error["details"]["kind"], "hostile", "{error:#}");
    assert!(error["causes"].to_string().contains("it has device nodes"), "{error:#}");
    bench.clear();
    bench.assert_as_before();
}

each_case! {
    devices_of_an_altered_archive_are_refused {
        by_docker: DOCKER;
        by_podman: PODMAN;
    }
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn no_more_is_taken_than_its_host_has_room_for_or_its_manifest_may_say() {
    let bench = Bench::new();
    snapshot(&bench, DOCKER, "room-source");
    let manifest = manifest(&bench);
    let before = bench.snapshot(PODMAN);
    let listed = bench.ok(["snapshots", "list", "--all"]);
    let path = bench.path("room.tar");
    let content = tar(&[folder("volumes/kept/"), folder("workspace/"), file("workspace/a")]);
    let large = export(&manifest, &content, |manifest| {
        manifest["snapshot"]["content_bytes"] = json!(1_u64 << 60);
    });
    let error = import(&bench, &path, &large).error_with_hint("operation_failed");
    error.says("has no room for the archive");
    let causes = error["causes"].to_string();
    assert!(causes.contains(" KiB are free in "), "{error:#}");
    assert!(causes.contains("1238489897526950 KiB are needed"), "{error:#}");
    for remarks in [1500, 5000] {
        let long = export(&manifest, &content, |manifest| {
            manifest["snapshot"]["remarks"] = json!(vec!["r".repeat(1000); remarks]);
        });
        let error = import(&bench, &path, &long).error("invalid_input");
        assert!(error.to_string().contains("1048576 are the most"), "{error:#}");
    }
    bench.assert_unchanged(PODMAN, &before);
    assert_eq!(bench.ok(["snapshots", "list", "--all"]), listed);
    bench.clear();
}

#[test]
fn what_is_made_here_is_what_tar_reads() {
    let listed = through(
        &["tar", "-tf", "-"],
        &tar(&[folder("workspace/"), pax("path", "workspace/b"), file("workspace/a")]),
    );
    let found = text(&Value::String(String::from_utf8(listed).unwrap()));
    assert_eq!(found, "workspace/\nworkspace/b\n");
}
