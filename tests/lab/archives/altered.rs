//! Archives that are not what they were, and what is in their place.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::{Value, json};

use crate::archives::source::{archive, folder, replicas, sha256_inside, snapshot};
use crate::lab::{Bench, DOCKER, PODMAN, text};
use crate::support::json_assertions::JsonAssertions as _;

/// What `verify` says is different.
fn differs(bench: &Bench) -> Value {
    let error = bench.refused(["snapshots", "verify", "base"], "operation_failed");
    assert_eq!(error["details"]["kind"], "altered", "{error:#}");
    error["details"]["differs"].clone()
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn verify_says_what_became_of_an_archive() {
    let bench = Bench::watching(&[DOCKER]);
    let record = snapshot(&bench, DOCKER, "alter-source");
    assert_eq!(record["verified_at"], Value::Null);
    let sound = bench.ok(["snapshots", "verify", "base"]);
    assert_ne!(sound["verified_at"], Value::Null, "{sound:#}");
    assert_eq!(sound["operation"], Value::Null);

    let file = archive(&bench, DOCKER, &record);
    let whole = fs::read(&file).unwrap();
    let mut flipped = whole.clone();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 1;
    fs::write(&file, &flipped).unwrap();
    assert!(["content", "hash"].contains(&differs(&bench).as_str().unwrap()));
    fs::write(&file, &whole[..whole.len() - 1]).unwrap();
    assert_eq!(differs(&bench), "truncated");
    fs::write(&file, [&whole[..], b"x"].concat()).unwrap();
    assert_eq!(differs(&bench), "size");
    fs::remove_file(&file).unwrap();
    bench.refused(["snapshots", "verify", "base"], "not_found");
    fs::write(&file, &whole).unwrap();
    bench.ok(["snapshots", "verify", "base"]);

    // Nothing is made of what is not what it was.
    fs::write(&file, &flipped).unwrap();
    bench.run(["restore", "base"]).error("operation_failed");
    bench.clear();
    bench.assert_as_before();
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn verify_and_restore_name_a_manifest_that_is_none() {
    let bench = Bench::watching(&[DOCKER]);
    let record = snapshot(&bench, DOCKER, "manifest-source");
    let file = folder(&bench, DOCKER, &text(&record["id"])).join("manifest.json");
    let whole = fs::read_to_string(&file).unwrap();
    let wrong = [
        ("gone", None, "there is no manifest.json"),
        ("none", Some("{}\n".to_owned()), "is no manifest"),
        ("cut short", Some(whole[..whole.len() / 2].to_owned()), "is no manifest"),
        (
            "too long",
            Some(whole.replacen('{', &format!("{{\"more\": \"{}\",", "r".repeat(1 << 20)), 1)),
            "is longer than a manifest may be",
        ),
        (
            "another's",
            Some(whole.replace(&text(&record["id"]), "snap-00000000")),
            "names another snapshot",
        ),
        (
            "another one",
            Some(whole.replace(&text(&record["sha256"]), &"0".repeat(64))),
            "says something else",
        ),
    ];
    for (what, manifest, why) in wrong {
        match manifest {
            Some(manifest) => fs::write(&file, manifest).unwrap(),
            None => fs::remove_file(&file).unwrap(),
        }
        let error = bench.refused(["snapshots", "verify", "base"], "operation_failed");
        assert_eq!(error["details"]["kind"], json!("altered"), "{what}: {error:#}");
        assert_eq!(error["details"]["differs"], json!("manifest"), "{what}: {error:#}");
        assert!(error["message"].as_str().unwrap().contains("manifest"), "{what}: {error:#}");
        assert!(error["causes"].to_string().contains(why), "{what}: {error:#}");
        bench
            .run(["snapshots", "export", "base", bench.path("out").to_str().unwrap()])
            .error("operation_failed");
    }
    fs::write(&file, "{}\n").unwrap();
    bench.refused(["restore", "base"], "operation_failed").says("the manifest beside the archive");

    fs::write(&file, &whole).unwrap();
    bench.ok(["snapshots", "verify", "base"]);
    bench.clear();
    bench.assert_as_before();
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_deletion_follows_no_link_and_touches_nothing_of_others() {
    let bench = Bench::watching(&[DOCKER]);
    let record = snapshot(&bench, DOCKER, "delete-source");
    let id = text(&record["id"]);
    let shelf = folder(&bench, DOCKER, &id);
    let precious = bench.path("precious");
    fs::create_dir(&precious).unwrap();
    fs::write(precious.join("archive.tar.zst"), "precious").unwrap();

    // Something of somebody's lies in it: nothing of it goes.
    fs::write(shelf.join("notes.txt"), "mine").unwrap();
    let error = bench.refused(["snapshots", "delete", &id], "operation_failed");
    assert!(error["causes"].to_string().contains("notes.txt"), "{error:#}");
    assert!(archive(&bench, DOCKER, &record).exists() && shelf.join("manifest.json").exists());
    // A refusal changes nothing.
    let is_ready = || assert_eq!(bench.ok(["snapshots", "get", &id])["state"], "ready");
    is_ready();
    fs::remove_file(shelf.join("notes.txt")).unwrap();

    // The folder is a link to somewhere else.
    let aside = bench.path("aside");
    fs::rename(&shelf, &aside).unwrap();
    symlink(&precious, &shelf).unwrap();
    bench.run(["snapshots", "delete", &id]).error("operation_failed");
    is_ready();
    assert_eq!(fs::read_to_string(precious.join("archive.tar.zst")).unwrap(), "precious");
    fs::remove_file(&shelf).unwrap();
    fs::rename(&aside, &shelf).unwrap();

    // It is somebody else's by now.
    let manifest = fs::read_to_string(shelf.join("manifest.json")).unwrap();
    let owner = text(&record["owner"]);
    fs::write(shelf.join("manifest.json"), manifest.replace(&owner, "somebody-else")).unwrap();
    bench.run(["snapshots", "delete", &id]).error("operation_failed");
    is_ready();
    assert!(archive(&bench, DOCKER, &record).exists());
    fs::write(shelf.join("manifest.json"), &manifest).unwrap();

    // A part of it is a link: the link goes, and what it points to stays.
    fs::remove_file(archive(&bench, DOCKER, &record)).unwrap();
    symlink(precious.join("archive.tar.zst"), archive(&bench, DOCKER, &record)).unwrap();
    bench.ok(["snapshots", "delete", &id]);
    assert_eq!(fs::read_to_string(precious.join("archive.tar.zst")).unwrap(), "precious");
    bench.run(["snapshots", "delete", &id]).error("not_found");
    assert_eq!(bench.ok(["snapshots", "list", "--all"]), json!([]));
    bench.clear();
    bench.assert_as_before();
}

/// Zeros in the middle of a file, over more than one block of what is compressed.
fn damage(file: &Path) {
    let mut bytes = fs::read(file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle - 200_000..middle + 200_000].fill(0);
    fs::write(file, bytes).unwrap();
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn nothing_is_made_of_a_damaged_archive_and_only_a_verify_notes_it() {
    const DEV: &str = "sandboxer01-dev";
    let bench = Bench::with(&[DEV]);
    let before = [DOCKER, PODMAN, DEV].map(|host| bench.snapshot(host));
    let record = snapshot(&bench, DOCKER, "damaged-source");
    let file = archive(&bench, DOCKER, &record);
    let whole = fs::read(&file).unwrap();
    let out = bench.path("out.tar");
    // Sound again, and known to be; then damaged, and nobody knows.
    let damaged_anew = || {
        fs::write(&file, &whole).unwrap();
        let sound = bench.ok(["snapshots", "verify", "base"]);
        assert!(replicas(&sound).iter().all(|it| it.ends_with(" ready")), "{sound:#}");
        damage(&file);
    };
    let listed = || replicas(&bench.ok(["snapshots", "get", "base"]));
    let export = ["snapshots", "export", "base", out.to_str().unwrap()];

    for words in [
        &["snapshots", "copy", "base", "--to", DEV][..],
        // Compressed anew on the way.
        &["snapshots", "copy", "base", "--to", PODMAN],
        &["restore", "base", "--host", PODMAN],
        &export,
    ] {
        damaged_anew();
        let error = bench.refused(words, "operation_failed");
        let whole_error = error.to_string();
        assert!(text(&error["message"]).contains(&text(&record["id"])), "{words:?}: {error:#}");
        assert!(whole_error.contains(DOCKER), "{words:?}: {error:#}");
        let kind = text(&error["details"]["kind"]);
        assert!(["altered", "arrived_otherwise"].contains(&kind.as_str()), "{words:?}: {error:#}");
        assert_eq!(listed(), [format!("{DOCKER} ready")], "{words:?}");
    }
    assert!(!out.exists() && !bench.path("out.tar.partial").exists());

    // A verify notes it, and says where it is whole; from then on that one is exported and copied.
    fs::write(&file, &whole).unwrap();
    bench.ok(["snapshots", "copy", "base", "--to", DEV]);
    damaged_anew();
    bench.refused(["snapshots", "verify", "base"], "operation_failed").hints(DEV);
    let both = [format!("{DOCKER} damaged"), format!("{DEV} ready")];
    assert_eq!(listed(), both);
    bench.ok(export);
    let copied = bench.ok(["snapshots", "copy", "base", "--to", PODMAN]);
    assert_eq!(replicas(&copied)[..2], both, "{copied:#}");
    let there = folder(&bench, PODMAN, &text(&record["id"])).join("archive.tar.gz");
    assert_eq!(sha256_inside(&there), text(&record["sha256"]));

    bench.clear();
    for (host, before) in [DOCKER, PODMAN, DEV].iter().zip(&before) {
        bench.assert_unchanged(host, before);
    }
}
