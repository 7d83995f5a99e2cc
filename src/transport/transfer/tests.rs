use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::domain::error::Code;

use super::*;

fn touch(root: &Path, name: impl AsRef<OsStr>, content: &str) -> PathBuf {
    let path = root.join(name.as_ref());
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, content).unwrap();
    path
}

async fn planned(root: &Path, excludes: &[&str]) -> Plan {
    let excludes: Vec<String> = excludes.iter().map(|&text| text.to_owned()).collect();
    plan(root, &excludes, Limits::contract()).await.unwrap()
}

fn listed(plan: &Plan) -> Vec<String> {
    let mut bytes = Vec::new();
    plan.list().unwrap().read_to_end(&mut bytes).unwrap();
    assert!(bytes.is_empty() || bytes.ends_with(&[0]));
    bytes
        .split(|&b| b == 0)
        .filter(|name| !name.is_empty())
        .map(|name| String::from_utf8_lossy(name.strip_prefix(b"./").unwrap()).into_owned())
        .collect()
}

#[tokio::test]
async fn what_is_left_out() {
    let files = [
        "a.log",
        "keep.log",
        "src/a.log",
        "src/main.rs",
        "node_modules/x/y",
        "src/node_modules/z",
        ".env",
        ".git/HEAD",
        "build/out",
        "src/build/out",
    ];
    for (excludes, ignore_files, expected) in [
        (
            vec![],
            vec![],
            vec![
                ".env",
                ".git/HEAD",
                "a.log",
                "build/out",
                "keep.log",
                "node_modules/x/y",
                "src/a.log",
                "src/build/out",
                "src/main.rs",
                "src/node_modules/z",
            ],
        ),
        (
            vec![".git", "node_modules", "*.log"],
            vec![],
            vec![".env", "build/out", "src/build/out", "src/main.rs"],
        ),
        // A slash anchors at the root; a trailing one means directories.
        (
            vec![".*", "node_modules/", "/build", "*.log", "!keep.log"],
            vec![],
            vec!["keep.log", "src/build/out", "src/main.rs"],
        ),
        (
            vec!["src/**"],
            vec![],
            vec![".env", ".git/HEAD", "a.log", "build/out", "keep.log", "node_modules/x/y"],
        ),
        // In any directory, relative to it; the file itself goes along.
        (
            vec![".git", "node_modules", "build"],
            vec![("src/.sandboxerignore", "*.log\n# comment\n/main.rs\n")],
            vec![".env", "a.log", "keep.log", "src/.sandboxerignore"],
        ),
        // A pattern cannot bring back what the profile excludes.
        (
            vec!["*.log", ".*", "build", "node_modules"],
            vec![(".sandboxerignore", "!keep.log\n")],
            vec!["src/main.rs"],
        ),
        // Other tools' ignore files mean nothing here.
        (
            vec![".git", "node_modules", "build", "src"],
            vec![
                (".gitignore", "*"),
                (".ignore", "*"),
                (".rgignore", "*"),
                (".git/info/exclude", "*"),
            ],
            vec![".env", ".gitignore", ".ignore", ".rgignore", "a.log", "keep.log"],
        ),
    ] {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().join("repo");
        for file in files {
            touch(&root, file, "x");
        }
        // A rule outside of the tree is not its.
        touch(temp.path(), ".sandboxerignore", "*");
        for (name, text) in &ignore_files {
            touch(&root, name, text);
        }
        let plan = planned(&root, &excludes).await;
        let mut found = listed(&plan);
        found.retain(|name| !root.join(name).is_dir());
        found.sort();
        assert_eq!(found, expected, "{excludes:?} {ignore_files:?}");
    }
}

#[tokio::test]
async fn oddities_are_counted_or_kept() {
    let temp = tempfile::tempdir().unwrap();
    let root = temp.path();
    for name in ["-rf", "#hash", "a b", "quote'\"", "line\nbreak", " blank"] {
        touch(root, name, "12");
    }
    touch(root, OsStr::from_bytes(b"bad\xff\xfe"), "12");
    touch(root, "x".repeat(200), "12");
    fs::create_dir_all(root.join("empty/deep")).unwrap();
    let first = touch(root, "hard/1", "1234567890");
    fs::hard_link(first, root.join("hard/2")).unwrap();
    symlink("/etc", root.join("out")).unwrap();
    symlink("loop", root.join("loop")).unwrap();
    symlink("nowhere", root.join("dangling")).unwrap();
    let _socket = UnixListener::bind(root.join("socket")).unwrap();
    assert!(
        std::process::Command::new("mkfifo").arg(root.join("fifo")).status().unwrap().success()
    );
    let plan = planned(root, &[]).await;
    assert_eq!(
        (plan.files, plan.directories, plan.left_out, plan.bytes),
        (8 + 2 + 3, 3, 2, 8 * 2 + 10)
    );
    let names = listed(&plan);
    assert!(
        names.contains(&"#hash".to_owned())
            && names.contains(&"line\nbreak".to_owned())
            && names.contains(&"out".to_owned())
    );
    assert!(
        !names.iter().any(|name| name.starts_with("out/") || name == "fifo" || name == "socket")
    );
    // Children before their directories.
    let at = |name: &str| names.iter().position(|known| known == name).unwrap();
    assert!(at("empty/deep") < at("empty") && at("hard/2") < at("hard"));
    assert_eq!(listed(&plan), names, "a list can be read again");
}

#[tokio::test]
async fn trees_that_are_refused() {
    let temp = tempfile::tempdir().unwrap();
    let root = temp.path();
    for n in 0..10 {
        touch(root, format!("f{n}"), "1234567890");
    }
    for (limits, allowed) in [
        (Limits { files: 9, bytes: 1000, allow_large: false }, false),
        (Limits { files: 10, bytes: 99, allow_large: false }, false),
        (Limits { files: 10, bytes: 100, allow_large: false }, true),
        (Limits { files: 1, bytes: 1, allow_large: true }, true),
    ] {
        match plan(root, &[], limits).await {
            Ok(plan) => assert!(allowed && plan.files == 10, "{limits:?}"),
            Err(error) => {
                assert!(!allowed, "{limits:?}");
                assert_eq!(
                    (error.code, error.details["field"].as_str()),
                    (Code::InvalidInput, Some("repo"))
                );
                assert!(error.hint.unwrap().contains("--yes"));
            }
        }
    }
    for source in [root.join("f1"), root.join("none")] {
        assert_eq!(
            plan(&source, &[], Limits::contract()).await.unwrap_err().code,
            Code::InvalidInput
        );
    }
    let error =
        plan(root, &["a{b".to_owned(), "[z-a]".to_owned()], Limits::contract()).await.unwrap_err();
    assert_eq!(error.code, Code::InvalidProfile);
}

#[tokio::test]
async fn an_ignore_file_that_would_hang_is_refused() {
    for deep in [false, true] {
        let temp = tempfile::tempdir().unwrap();
        let folder = if deep { temp.path().join("a/b") } else { temp.path().to_owned() };
        fs::create_dir_all(&folder).unwrap();
        assert!(
            std::process::Command::new("mkfifo")
                .arg(folder.join(plan::IGNORE_FILE))
                .status()
                .unwrap()
                .success()
        );
        let walk = plan(temp.path(), &[], Limits::contract());
        let error = tokio::time::timeout(Duration::from_secs(30), walk).await.unwrap().unwrap_err();
        assert_eq!(error.code, Code::InvalidInput, "deep: {deep}");
    }
}

#[tokio::test]
async fn unreadable_files_are_named() {
    if rustix::process::geteuid().is_root() {
        // Root can read everything: the same test, by somebody who cannot.
        let test = std::env::current_exe().unwrap();
        let name = "transport::transfer::tests::unreadable_files_are_named";
        let status = std::process::Command::new("setpriv")
            .args(["--reuid=65534", "--clear-groups"])
            .arg(test)
            .args(["--exact", name])
            .env("TMPDIR", "/tmp")
            .status();
        assert!(status.unwrap().success());
        return;
    }
    let temp = tempfile::tempdir().unwrap();
    for n in 0..7 {
        let path = touch(temp.path(), format!("f{n}"), "x");
        fs::set_permissions(path, fs::Permissions::from_mode(0o000)).unwrap();
    }
    let error = plan(temp.path(), &[], Limits::contract()).await.unwrap_err();
    assert_eq!(error.details["count"], 7);
    assert_eq!(error.details["paths"].as_array().unwrap().len(), 5);
}
