use futures_util::TryStreamExt;

use super::*;
use crate::domain::archive::ByteStream;

const ARCHIVE: &[u8] = b"what would be an archive";

fn manifest() -> serde_json::Value {
    let profile = serde_json::json!({
        "id": "profile.x", "version": "1.0.0", "summary": "x", "extension": "ext.compose-ssh", "ttl_s": 60, "max_ttl_s": null,
        "ready_timeout_s": 60, "stop_grace_s": 2,
    });
    let profile: crate::domain::profile::Profile = serde_json::from_value(profile).unwrap();
    serde_json::json!({
        "schema": 1, "id": "snap-0badcafe", "owner": "0123456789abcdef0123456789abcdef", "recipe": profile,
        "snapshot": {
            "id": "snap-0badcafe", "name": "env", "kind": "user", "sandbox_id": "a1b2c3d4",
            "profile": {"id": "profile.x", "version": "1.0.0", "hash": profile.hash()},
            "extension": "ext.compose-ssh", "host": "h", "state": "ready", "created_at": "2026-11-28T07:00:00Z",
            "expires_at": null, "bytes": ARCHIVE.len(), "content_bytes": 10240, "sha256": "a".repeat(64), "format": "tar.gz",
            "captured_volumes": [{"name": "data"}], "parent_snapshot": null, "patch_level": 0, "next_patch_sequence": 1,
            "actor": {"type": "adm", "name": "me"}, "owner": "0123456789abcdef0123456789abcdef", "revision": 1,
            "labels": {"a": "b"}, "inputs": {"repo": "/x"},
        },
    })
}

fn read(value: &serde_json::Value) -> ArchiveManifest {
    serde_json::from_value(value.clone()).unwrap()
}

/// A bundle by hand.
fn bundle(text: &[u8], name: &str, archive: &[u8]) -> Vec<u8> {
    let mut tar = Vec::new();
    for (name, data) in [(MANIFEST, text), (name, archive)] {
        tar.extend_from_slice(header(name, data.len() as u64, 0).unwrap().as_bytes());
        tar.extend_from_slice(data);
        tar.resize(tar.len().next_multiple_of(BLOCK), 0);
    }
    tar.resize(tar.len() + 2 * BLOCK, 0);
    tar
}

fn stream(bytes: &[u8], piece: usize) -> ByteStream {
    let pieces: Vec<_> = bytes.chunks(piece).map(|piece| Ok(piece.to_vec())).collect();
    stream::iter(pieces).boxed()
}

async fn opened(bytes: &[u8], piece: usize) -> Result<(ArchiveManifest, Vec<u8>), Error> {
    let (manifest, archive) = open(stream(bytes, piece)).await?;
    let pieces: Vec<Vec<u8>> = archive.try_collect().await?;
    Ok((manifest, pieces.concat()))
}

fn causes(error: &Error) -> String {
    error.causes.join(": ")
}

#[tokio::test]
async fn a_bundle_is_read_in_whatever_pieces_it_comes() {
    let text = serde_json::to_vec_pretty(&manifest()).unwrap();
    let whole = bundle(&text, "archive.tar.gz", ARCHIVE);
    for piece in [1, 7, 512, 1000, whole.len()] {
        let (manifest, archive) = opened(&whole, piece).await.unwrap();
        assert_eq!((manifest.id.as_str(), archive.as_slice()), ("snap-0badcafe", ARCHIVE));
    }
    // GNU tar fills a record.
    let mut padded = whole.clone();
    padded.resize(whole.len() + 8000, 0);
    assert!(opened(&padded, 4096).await.is_ok());
    // Without the end it is whole too.
    assert!(opened(&whole[..whole.len() - 2 * BLOCK], 4096).await.is_ok());
}

#[tokio::test]
async fn what_is_no_bundle_is_refused_in_words() {
    let text = serde_json::to_vec_pretty(&manifest()).unwrap();
    let whole = bundle(&text, "archive.tar.gz", ARCHIVE);
    let end = whole.len() - 3 * BLOCK;
    for (bytes, why) in [
        (b"".to_vec(), "it ends too early"),
        (b"<html>".repeat(200), "manifest.json is not where it should be"),
        (bundle(b"{}", "archive.tar.gz", ARCHIVE), "its manifest cannot be read"),
        (
            bundle(&text, "elsewhere/archive.tar.gz", ARCHIVE),
            "archive.tar.gz is not where it should be",
        ),
        (bundle(&text, "archive.tar.zst", ARCHIVE), "archive.tar.gz is not where it should be"),
        (bundle(&text, "archive.tar.gz", b"short"), "not as long as its manifest says"),
        (whole[..1000].to_vec(), "it ends too early"),
        (whole[..end + 3].to_vec(), "it ends 21 bytes too early"),
        ([whole.clone(), b"more".to_vec()].concat(), "something follows the archive"),
        ([whole.clone(), vec![0; 20_000]].concat(), "something follows the archive"),
    ] {
        let error = opened(&bytes, 700).await.unwrap_err();
        assert_eq!(
            (error.code.as_str(), error.details["field"].as_str()),
            ("invalid_input", Some("file"))
        );
        assert!(causes(&error).contains(why), "{why}: {}", causes(&error));
    }
}

#[tokio::test]
async fn an_archive_that_is_said_to_have_no_end_is_refused() {
    let mut manifest = manifest();
    manifest["snapshot"]["bytes"] = serde_json::json!(u64::MAX);
    let text = serde_json::to_vec_pretty(&manifest).unwrap();
    let mut whole = bundle(&text, "archive.tar.gz", ARCHIVE);
    let at = BLOCK + text.len().next_multiple_of(BLOCK);
    let mut header = Header::from_byte_slice(&whole[at..at + BLOCK]).clone();
    // GNU's way to say what octal digits cannot.
    header.as_old_mut().size = [0x80, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];
    header.set_cksum();
    whole[at..at + BLOCK].copy_from_slice(header.as_bytes());
    let error = opened(&whole, 4096).await.unwrap_err();
    assert!(
        causes(&error).contains("archive.tar.gz has 18446744073709551615 bytes"),
        "{}",
        causes(&error)
    );
}

#[test]
fn a_profile_from_outside_lives_no_longer_than_one_that_is_written() {
    let mut value = manifest();
    for key in ["ttl_s", "max_ttl_s"] {
        let mut written = value["recipe"].clone();
        written["max_ttl_s"] = serde_json::json!(10_u64.pow(17));
        written[key] = serde_json::json!(10_u64.pow(17));
        let profile: crate::domain::profile::Profile =
            serde_json::from_value(written.clone()).unwrap();
        value["snapshot"]["profile"]["hash"] = serde_json::json!(profile.hash());
        value["recipe"] = written;
        let error = check(&read(&value)).unwrap_err();
        assert!(causes(&error).contains("is longer than ten years"), "{}", causes(&error));
    }
}

#[test]
fn a_manifest_from_outside_names_nothing_that_could_be_a_path() {
    assert!(check(&read(&manifest())).is_ok());
    for (place, value) in [
        ("/id", serde_json::json!("snap-../../etc")),
        ("/id", serde_json::json!("snap-00000000")),
        ("/owner", serde_json::json!("../x")),
        ("/owner", serde_json::json!("")),
        ("/schema", serde_json::json!(2)),
        ("/snapshot/id", serde_json::json!("snap-00000000")),
        ("/snapshot/sandbox_id", serde_json::json!("../x")),
        ("/snapshot/name", serde_json::json!("a/b")),
        ("/snapshot/name", serde_json::json!("\u{1b}[31m")),
        ("/snapshot/parent_snapshot", serde_json::json!("..")),
        ("/snapshot/host", serde_json::json!("a\nb")),
        ("/snapshot/labels", serde_json::json!({"sandboxer.id": "x"})),
        ("/snapshot/extension_version", serde_json::json!("one")),
        ("/snapshot/inputs", serde_json::json!({"a b": "x"})),
        ("/snapshot/inputs", serde_json::json!({"repo": "x".repeat(5000)})),
        ("/snapshot/captured_volumes", serde_json::json!([{"name": "../x"}])),
        ("/snapshot/captured_volumes", serde_json::json!([{"name": ".."}])),
        ("/snapshot/format", serde_json::json!("../../x")),
        ("/snapshot/format", serde_json::Value::Null),
        ("/snapshot/sha256", serde_json::json!("A".repeat(64))),
        ("/snapshot/sha256", serde_json::Value::Null),
        ("/snapshot/content_bytes", serde_json::Value::Null),
        ("/snapshot/volumes_bytes", serde_json::json!(20_000)),
        ("/snapshot/bytes", serde_json::json!(0)),
        ("/snapshot/content_bytes", serde_json::json!(u64::MAX)),
        ("/snapshot/foreign_owners", serde_json::json!(u64::MAX)),
        ("/snapshot/next_patch_sequence", serde_json::json!(u64::MAX)),
        ("/snapshot/next_patch_sequence", serde_json::json!(1_000_002)),
        ("/snapshot/patch_level", serde_json::json!(u64::MAX)),
        ("/snapshot/captured_volumes", serde_json::json!([{"name": "data"}, {"name": "data"}])),
        ("/snapshot/profile/hash", serde_json::json!("x")),
        ("/snapshot/extension", serde_json::json!("ext.other")),
        ("/recipe/id", serde_json::json!("profile.../x")),
        ("/recipe/summary", serde_json::json!("another")),
        ("/recipe/config", serde_json::json!({"root": "/etc"})),
    ] {
        let mut changed = manifest();
        if let Some(there) = changed.pointer_mut(place) {
            *there = value.clone();
        } else {
            changed["snapshot"][place.trim_start_matches("/snapshot/")] = value.clone();
        }
        let error = check(&read(&changed)).expect_err(&format!("{place} = {value}"));
        assert_eq!(
            (error.code.as_str(), error.details["field"].as_str()),
            ("invalid_input", Some("file")),
            "{place}"
        );
    }
}
