//! Files that are broken, another program's, or a newer version's: named, and left as they are.

use std::fs;
use std::path::Path;

use sandboxer::domain::error::{Code, Error};
use sandboxer::store::{Installation, OperationStore, SandboxStore};

use super::{by, id, moment, record, stores};

/// Every verb that reads or writes `sandboxes.json` says the same, and none of them touches it.
async fn refused(dir: &Path) -> Error {
    let store = stores(dir).sandboxes;
    let before = fs::read(dir.join("sandboxes.json")).ok();
    let faults = [
        store.list().await.unwrap_err(),
        store.get(&id("a")).await.unwrap_err(),
        store.insert(record("new", 1)).await.unwrap_err(),
        store.update(&id("a"), None, by(|_| ())).await.unwrap_err(),
        store.archive(moment(0)).await.unwrap_err(),
        store.history().await.unwrap_err(),
    ];
    assert!(faults.iter().all(|fault| fault.code == faults[0].code), "{faults:?}");
    assert_eq!(fs::read(dir.join("sandboxes.json")).ok(), before, "untouched");
    store.version().await.unwrap();
    let [fault, ..] = faults;
    fault
}

#[tokio::test]
async fn each_kind_of_damage_has_its_code_and_place() {
    let newer = br#"{"schema":2,"revision":1,"sandboxes":{}}"#;
    let cases: &[(&str, &[u8], Code, u64, &str)] = &[
        ("empty", b"", Code::StoreCorrupt, 1, "no backup"),
        ("spaces", b"\n\n  ", Code::StoreCorrupt, 3, "no backup"),
        ("zeroes", &[0; 512], Code::StoreCorrupt, 1, "no backup"),
        ("garbage", b"\x7fELF\x02\x01", Code::StoreCorrupt, 1, "no backup"),
        (
            "half",
            b"{\"schema\":1,\"revision\":3,\"records\":[\n{\"id\":\"a\",",
            Code::StoreCorrupt,
            2,
            "no backup",
        ),
        (
            "trailing",
            b"{\"schema\":1,\"revision\":3,\"records\":[]}\n}",
            Code::StoreCorrupt,
            2,
            "no backup",
        ),
        ("not utf-8", b"{\"schema\":1,\n\"x\":\"\xff\"}", Code::StoreCorrupt, 2, "no backup"),
        ("no records", b"{\"schema\":1,\"revision\":3}", Code::StoreCorrupt, 1, "no backup"),
        (
            "twice",
            b"{\"schema\":1,\"revision\":1,\"records\":[],\"records\":[]}",
            Code::StoreCorrupt,
            1,
            "no backup",
        ),
        ("newer", newer, Code::StoreForeign, 0, "upgrade"),
        (
            "python",
            br#"{"abc12345": {"id": "abc12345", "status": "ready"}}"#,
            Code::StoreForeign,
            0,
            "sandboxer import",
        ),
        ("python, none", b"{}", Code::StoreForeign, 0, "sandboxer import"),
        ("python list", br#"[{"id": "abc12345"}]"#, Code::StoreForeign, 0, "sandboxer import"),
        ("other object", br#"{"name": "x", "version": 3}"#, Code::StoreForeign, 0, "move it away"),
        (
            "other schema",
            br#"{"schema": "https://x", "records": []}"#,
            Code::StoreForeign,
            0,
            "move it away",
        ),
        ("number", b"17", Code::StoreForeign, 0, "move it away"),
    ];
    for (name, bytes, code, line, hint) in cases {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("sandboxes.json");
        fs::write(&file, bytes).unwrap();
        let fault = refused(dir.path()).await;
        assert_eq!(fault.code, *code, "{name}: {fault}");
        assert!(fault.message.contains(file.to_str().unwrap()), "{name}: {fault}");
        assert!(fault.hint.as_ref().unwrap().contains(hint), "{name}: {:?}", fault.hint);
        if *line > 0 {
            assert_eq!(fault.details["line"], *line, "{name}: {fault}");
            assert!(!fault.causes.is_empty(), "{name}");
        }
    }
}

#[tokio::test]
async fn a_damaged_file_names_its_backup_and_the_hint_restores_it() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("sandboxes.json");
    let store = stores(dir.path()).sandboxes;
    store.insert(record("a", 1)).await.unwrap();
    store.insert(record("b", 2)).await.unwrap();
    let whole = fs::read(&file).unwrap();
    for damaged in [Some(&whole[..whole.len() / 2]), None] {
        match damaged {
            Some(bytes) => fs::write(&file, bytes).unwrap(),
            // A write of ours never leaves that behind: somebody removed it.
            None => fs::remove_file(&file).unwrap(),
        }
        let fault = refused(dir.path()).await;
        assert_eq!(fault.code, Code::StoreCorrupt);
        assert_eq!(fault.details["backup"], format!("{}.bak", file.display()));
        let command = fault.hint.unwrap().split_once("restore it: ").unwrap().1.to_owned();
        assert!(
            std::process::Command::new("sh").args(["-c", &command]).status().unwrap().success(),
            "{command}"
        );
        assert_eq!(store.list().await.unwrap().len(), 1, "the version before the last write");
    }
}

#[tokio::test]
async fn a_backup_that_is_damaged_itself_is_not_named_as_a_way_out() {
    for is_there in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("sandboxes.json");
        let store = stores(dir.path()).sandboxes;
        store.insert(record("a", 1)).await.unwrap();
        store.insert(record("b", 2)).await.unwrap();
        fs::write(&file, "{").unwrap();
        fs::write(format!("{}.bak", file.display()), "{\"schema\":1").unwrap();
        if !is_there {
            fs::remove_file(&file).unwrap();
        }
        let fault = refused(dir.path()).await;
        let command = fault.hint.unwrap().split_once("begin anew: ").unwrap().1.to_owned();
        let ran = std::process::Command::new("sh").args(["-c", &command]).output().unwrap();
        assert!(ran.status.success() && ran.stderr.is_empty(), "{command}: {ran:?}");
        assert!(store.list().await.unwrap().is_empty(), "{command}");
    }
}

#[tokio::test]
async fn one_record_that_cannot_be_read_is_named_and_kept() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("sandboxes.json");
    let store = stores(dir.path()).sandboxes;
    for text in ["a", "b", "c"] {
        store.insert(record(text, 1)).await.unwrap();
    }
    let text = fs::read_to_string(&file).unwrap();
    let bad = r#"{"id":"b","state":5,"kept":"so"}"#;
    let is_b = |line: &str| line.contains(r#""id":"b""#);
    let lines: Vec<_> =
        text.lines().map(|line| if is_b(line) { format!("{bad},") } else { line.into() }).collect();
    fs::write(&file, lines.join("\n")).unwrap();
    for fault in [store.list().await.unwrap_err(), store.get(&id("b")).await.unwrap_err()] {
        assert_eq!(fault.code, Code::StoreCorrupt);
        assert_eq!(fault.details["id"], "b", "{fault}");
        assert_eq!(fault.details["line"], 3, "{fault}");
    }
    assert_eq!(store.insert(record("d", 1)).await.unwrap_err().code, Code::StoreCorrupt);
    // The others can be worked on (destroyed, say), and its bytes stay.
    store.update(&id("c"), Some(1), by(|c| c.message = Some("x".into()))).await.unwrap();
    assert!(fs::read_to_string(&file).unwrap().contains(bad));
    assert_eq!(store.get(&id("c")).await.unwrap().unwrap().revision, 2);
    let twins = fs::read_to_string(&file).unwrap().replace(r#"{"id":"c""#, r#"{"id":"a""#);
    fs::write(&file, twins).unwrap();
    let found = store.get(&id("a")).await.unwrap_err().code;
    assert_eq!(found, Code::StoreCorrupt, "two records with one id");
}

#[tokio::test]
async fn lines_that_are_no_records_are_read_as_the_json_that_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("sandboxes.json");
    let store = stores(dir.path()).sandboxes;
    for text in ["a", "b", "c"] {
        store.insert(record(text, 1)).await.unwrap();
    }
    let text = fs::read_to_string(&file).unwrap();
    for (from, to, whole) in [
        (r#"{"id":"b","#, "{\"id\":\"b\",\n", true),
        ("},\n{\"id\":\"b\"", "},{\"id\":\"b\"", true),
        ("},\n{\"id\":\"b\"", "}\n,{\"id\":\"b\"", true),
        ("},\n{\"id\":\"b\"", "}\n{\"id\":\"b\"", false),
        ("},\n{\"id\":\"b\"", "},\n,\n{\"id\":\"b\"", false),
        ("},\n{\"id\":\"b\"", "},\n\n{\"id\":\"b\"", true),
        ("},\n{\"id\":\"b\"", "}],\n{\"id\":\"b\"", false),
        ("\n]}\n", ",\n]}\n", false),
        ("\n]}\n", "\n]}\n\n]}\n", false),
    ] {
        assert!(text.contains(from), "{from}");
        fs::write(&file, text.replace(from, to)).unwrap();
        let listed = store.list().await.map(|records| records.len());
        assert_eq!(listed.as_ref().ok(), whole.then_some(&3), "{to:?}: {listed:?}");
        assert!(whole || listed.unwrap_err().code == Code::StoreCorrupt, "{to:?}");
        if whole {
            store.update(&id("c"), None, by(|c| c.message = Some("x".into()))).await.unwrap();
            assert_eq!(store.list().await.unwrap().len(), 3, "{to:?}, written anew");
        }
    }
}

#[tokio::test]
async fn a_field_that_cannot_be_kept_is_said_to_be_in_the_way() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("sandboxes.json");
    let store = stores(dir.path()).sandboxes;
    store.insert(record("a", 1)).await.unwrap();
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace(r#"{"id":"a","#, r#"{"id":"a","newer":1e999,"#)).unwrap();
    assert_eq!(store.list().await.unwrap().len(), 1);
    let before = fs::read(&file).unwrap();
    let fault =
        store.update(&id("a"), None, by(|a| a.message = Some("x".into()))).await.unwrap_err();
    assert_eq!(
        (&fault.code, fault.details["id"].as_str()),
        (&Code::Internal, Some("a")),
        "{fault:?}"
    );
    assert!(fault.hint.is_some_and(|hint| hint.contains("mend it there")));
    assert_eq!(fs::read(&file).unwrap(), before, "untouched");
}

#[tokio::test]
async fn what_a_newer_version_wrote_survives_our_writes() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("sandboxes.json");
    let store = stores(dir.path()).sandboxes;
    for text in ["a", "b"] {
        store.insert(record(text, 1)).await.unwrap();
    }
    let text = fs::read_to_string(&file).unwrap();
    let text = text.replace(r#"{"id":"a","#, r#"{ "id":"a", "later":{"n":[1,2.50]},"#);
    let text = text.replace(r#"{"id":"b","#, r#"{ "id":"b", "later":{"n":[1,2.50]},"#);
    let text = text.replacen(r#""records""#, r#""written_by":{"version":"9"},"records""#, 1);
    fs::write(&file, text.replace(r#""hash":"00""#, r#""hash":"00","signed":true"#)).unwrap();
    store.update(&id("a"), Some(1), by(|a| a.message = Some("x".into()))).await.unwrap();
    let text = fs::read_to_string(&file).unwrap();
    assert!(
        text.contains(r#"{ "id":"b", "later":{"n":[1,2.50]},"#),
        "untouched to the byte: {text}"
    );
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["written_by"]["version"], "9");
    assert_eq!(value["records"][0]["later"]["n"][1], 2.5);
    assert_eq!(value["records"][0]["profile"]["signed"], true);
    assert_eq!(value["records"][0]["message"], "x");
}

#[tokio::test]
async fn what_another_version_wrote_is_listed_as_this_one_knows_it() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("sandboxes.json");
    let facts = serde_json::json!({"at": "2026-01-01T00:00:00Z", "later": 1});
    for text in ["a", "b", "c"] {
        stores(dir.path()).sandboxes.insert(record(text, 1)).await.unwrap();
    }
    let mut document: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    document["records"][0].as_object_mut().unwrap().remove("labels");
    document["records"][1]["later"] = 1.into();
    document["records"][2]["telemetry"] = facts.clone();
    // Laid out anew by somebody's editor, too.
    fs::write(&file, serde_json::to_string_pretty(&document).unwrap()).unwrap();
    let listed = stores(dir.path()).sandboxes.list().await.unwrap();
    let texts: Vec<_> = listed.iter().map(|it| serde_json::to_string(&**it).unwrap()).collect();
    assert!(texts.iter().all(|text| !text.contains('\n')), "{texts:?}");
    let records = texts.iter().map(|text| serde_json::from_str(text).unwrap());
    let [a, b, c]: [serde_json::Value; 3] = records.collect::<Vec<_>>().try_into().unwrap();
    assert_eq!((&a["labels"], &b["later"]), (&serde_json::json!({}), &serde_json::Value::Null));
    assert_eq!(c["telemetry"], facts, "kept as it came");
}

#[tokio::test]
async fn the_other_files_are_as_careful() {
    let dir = tempfile::tempdir().unwrap();
    let all = stores(dir.path());
    for (bytes, code) in [
        ("{", Code::StoreCorrupt),
        (r#"{"schema":7}"#, Code::StoreForeign),
        ("[]", Code::StoreForeign),
    ] {
        for name in ["operations.json", "owner"] {
            fs::write(dir.path().join(name), bytes).unwrap();
        }
        assert_eq!(all.operations.list().await.unwrap_err().code, code);
        assert_eq!(all.installation.owners().await.unwrap_err().code, code);
        assert_eq!(all.installation.next_stamp().await.unwrap_err().code, code);
        assert_eq!(fs::read_to_string(dir.path().join("owner")).unwrap(), bytes);
    }
    // A lost owner file must not make everything on the hosts a stranger's.
    fs::remove_file(dir.path().join("owner")).unwrap();
    all.installation.next_stamp().await.unwrap();
    all.installation.next_stamp().await.unwrap();
    fs::remove_file(dir.path().join("owner")).unwrap();
    assert_eq!(all.installation.owners().await.unwrap_err().code, Code::StoreCorrupt);
}
