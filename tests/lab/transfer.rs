//! A tree with everything odd in it, sent to the lab's hosts: by rsync to sandboxer01, as tar to coulombcore.
//!
//! Needs `tests/lab/up` and `LAB_DIR`.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs::{self, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use sandboxer::domain::error::{Code, Error};
use sandboxer::domain::host::HostSpec;
use sandboxer::domain::name::HostName;
use sandboxer::domain::time::Time;
use sandboxer::transport::pool::Pool;
use sandboxer::transport::probe::{ProbeRequest, examine};
use sandboxer::transport::transfer::{Limits, Method, Sent, plan, send};
use sandboxer::transport::{Transport, Transports};
use sha2::{Digest, Sha256};

/// A way to one of the lab's hosts, and a folder on it; the hosts are this machine, so it can be looked at from here.
struct Host {
    transport: Arc<dyn Transport>,
    pool: Pool,
    folder: tempfile::TempDir,
    _control: tempfile::TempDir,
}

async fn host(name: &str) -> Host {
    let lab =
        PathBuf::from(std::env::var_os("LAB_DIR").expect("LAB_DIR: source the lab's env file"));
    let root = lab.join("hosts").join(name).join("sandboxes");
    let spec = HostSpec {
        ssh: Some(name.to_owned()),
        ssh_config: Some(lab.join("ssh_config")),
        workspace_root: root.display().to_string(),
        ..HostSpec::named(name)
    };
    let control = tempfile::Builder::new()
        .prefix("sbx")
        .permissions(Permissions::from_mode(0o700))
        .tempdir_in("/tmp")
        .unwrap();
    let pool = Pool::new(vec![spec], control.path().to_owned(), None);
    let transport = pool.open(&HostName::new(name)).await.unwrap();
    let folder = tempfile::Builder::new().prefix("transfer test ").tempdir_in(root).unwrap();
    Host { transport, pool, folder, _control: control }
}

/// Makes the tree and says how many files of it may go.
fn odd_tree(root: &Path) {
    let put = |name: &OsStr, content: &[u8], mode: u32| {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
    };
    let (long, folder) = ("x".repeat(200), "y".repeat(200));
    for name in [
        "-rf",
        "--delete",
        "#hash",
        ";semi",
        "a b",
        "quote'\"$`",
        "line\nbreak",
        " blank ",
        "*",
        "\u{1b}[31m",
        "ünï",
        &long,
    ] {
        put(OsStr::new(name), name.as_bytes(), 0o644);
    }
    put(OsStr::from_bytes(b"bad\xff\xfe"), b"bytes", 0o640);
    put(OsStr::new(&format!("{folder}/{long}/deep")), b"deep", 0o644);
    put(OsStr::new("secret"), b"s", 0o600);
    put(OsStr::new("setuid"), b"#!/bin/sh\n", 0o4755);
    put(OsStr::new("none"), b"n", 0o000);
    put(OsStr::new("empty file"), b"", 0o644);
    put(OsStr::new("big"), &vec![7; 9_000_000], 0o755);
    put(OsStr::new("readonly/inside"), b"r", 0o444);
    put(OsStr::new("hard/1"), b"linked", 0o644);
    fs::hard_link(root.join("hard/1"), root.join("hard/2")).unwrap();
    for n in 0..5000 {
        put(OsStr::new(&format!("many/{}/{n}", n % 50)), format!("file {n}").as_bytes(), 0o644);
    }
    fs::create_dir_all(root.join("empty/deep")).unwrap();
    for (target, name) in [
        ("/etc/passwd", "out"),
        ("../..", "up"),
        ("loop", "loop"),
        ("nowhere", "dangling"),
        ("many", "inside"),
    ] {
        symlink(target, root.join(name)).unwrap();
    }
    assert!(
        std::process::Command::new("mkfifo").arg(root.join("fifo")).status().unwrap().success()
    );
    put(OsStr::new("node_modules/left/out"), b"x", 0o644);
    // Last: what is inside has been written.
    fs::set_permissions(root.join("readonly"), Permissions::from_mode(0o555)).unwrap();
    for name in ["readonly", "empty", "secret", "hard/1"] {
        set_time(&root.join(name));
    }
}

fn set_time(path: &Path) {
    let at = std::time::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    fs::File::open(path).unwrap().set_modified(at).unwrap();
}

/// Path to type, mode, size, mtime, owner and content or target; hard links by what they share.
fn told(root: &Path) -> BTreeMap<Vec<u8>, String> {
    let mut found = BTreeMap::new();
    let mut inodes: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
    let mut left = vec![root.to_owned()];
    while let Some(folder) = left.pop() {
        let mut entries: Vec<PathBuf> =
            fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        entries.sort();
        for path in entries {
            let name = path.strip_prefix(root).unwrap().as_os_str().as_bytes().to_vec();
            if matches!(name.as_slice(), b"fifo" | b"node_modules") {
                continue;
            }
            let metadata = path.symlink_metadata().unwrap();
            let mut line = format!("{:o} {}", metadata.mode(), metadata.uid());
            if metadata.is_symlink() {
                let target = fs::read_link(&path).unwrap();
                write!(line, " -> {}", target.as_os_str().as_bytes().escape_ascii()).unwrap();
            } else {
                write!(line, " {}", metadata.mtime()).unwrap();
            }
            if metadata.is_file() {
                let content = fs::read(&path).unwrap();
                write!(line, " {} {:?}", content.len(), Sha256::digest(&content)).unwrap();
                if metadata.nlink() > 1 {
                    let first = inodes.entry(metadata.ino()).or_insert_with(|| name.clone());
                    write!(line, " = {first:?}").unwrap();
                }
            }
            if metadata.is_dir() {
                left.push(path);
            }
            found.insert(name, line);
        }
    }
    found
}

async fn transfer(
    host: &Host,
    source: &Path,
    dest: &Path,
    rsync: bool,
) -> Result<(Sent, Vec<(u64, u64)>), Error> {
    let excludes = ["node_modules".to_owned()];
    let plan = plan(source, &excludes, Limits::contract()).await.unwrap();
    assert!(plan.left_out <= 1);
    let figures = Mutex::new(Vec::new());
    let on_bytes = |done: u64, of: u64| figures.lock().unwrap().push((done, of));
    let began = Instant::now();
    let sent =
        send(host.transport.as_ref(), &plan, source, dest.to_str().unwrap(), rsync, &on_bytes)
            .await?;
    eprintln!(
        "{}: {} bytes, {} files in {:?}",
        sent.method.as_str(),
        sent.bytes,
        plan.files,
        began.elapsed()
    );
    Ok((sent, figures.into_inner().unwrap()))
}

async fn arrives_equal(name: &str, rsync: bool, method: Method) {
    let host = host(name).await;
    let source = tempfile::tempdir().unwrap();
    odd_tree(source.path());
    let dest = host.folder.path().join("work space");
    fs::create_dir(&dest).unwrap();
    let (sent, figures) = transfer(&host, source.path(), &dest, rsync).await.unwrap();
    assert_eq!(sent.method, method);
    let (expected, arrived) = (told(source.path()), told(&dest));
    for (name, line) in &expected {
        assert_eq!(arrived.get(name), Some(line), "{}", String::from_utf8_lossy(name));
    }
    assert_eq!(arrived.len(), expected.len());
    assert!(!dest.join("fifo").exists() && !dest.join("node_modules").exists());
    let (last, of) = *figures.last().unwrap();
    assert!(last == of && of > 9_000_000, "{last} {of}");
    assert!(figures.windows(2).all(|pair| pair[0].0 <= pair[1].0), "{figures:?}");
    host.pool.close().await;
}

#[tokio::test]
#[ignore = "needs the lab (tests/lab/up)"]
async fn by_rsync() {
    arrives_equal("sandboxer01", true, Method::Rsync).await;
}

#[tokio::test]
#[ignore = "needs the lab (tests/lab/up)"]
async fn as_tar() {
    arrives_equal("coulombcore", false, Method::Tar).await;
}

#[tokio::test]
#[ignore = "needs the lab (tests/lab/up)"]
async fn a_full_disk_is_told_in_the_far_ends_words() {
    for (name, rsync) in [("sandboxer01", true), ("coulombcore", false)] {
        let host = host(name).await;
        let source = tempfile::tempdir().unwrap();
        fs::write(source.path().join("a"), vec![1; 8_000_000]).unwrap();
        let dest = host.folder.path().join("small");
        fs::create_dir(&dest).unwrap();
        let mount = |args: &[&str]| {
            std::process::Command::new(args[0])
                .args(&args[1..])
                .arg(&dest)
                .status()
                .unwrap()
                .success()
        };
        assert!(mount(&["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs"]));
        let fault = transfer(&host, source.path(), &dest, rsync).await;
        assert!(mount(&["umount"]));
        let fault = fault.unwrap_err();
        assert_eq!(fault.code, Code::OperationFailed, "{fault:?}");
        assert_eq!(fault.details["step"], "transfer");
        assert!(fault.causes[0].contains("No space left on device"), "{name}: {fault:?}");
        host.pool.close().await;
    }
}

#[tokio::test]
#[ignore = "needs the lab (tests/lab/up)"]
async fn dropping_it_ends_the_programs_of_both_ends() {
    for (name, rsync) in [("sandboxer01", true), ("coulombcore", false)] {
        let host = host(name).await;
        let source = tempfile::tempdir().unwrap();
        for n in 0..20_u8 {
            fs::write(source.path().join(format!("f{n}")), vec![n; 20_000_000]).unwrap();
        }
        let dest = host.folder.path().join("dropped");
        fs::create_dir(&dest).unwrap();
        let sending = transfer(&host, source.path(), &dest, rsync);
        assert!(
            tokio::time::timeout(Duration::from_millis(300), sending).await.is_err(),
            "it was too fast to be cancelled"
        );
        // TERM at once, KILL after 5 s, and the machine may be busy.
        let until = Instant::now() + Duration::from_secs(30);
        while mentions(&dest) || mentions(source.path()) {
            assert!(Instant::now() < until, "{name}: something still runs");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        host.pool.close().await;
    }
}

/// Whether a process that runs has this path in its arguments or as its folder.
fn mentions(path: &Path) -> bool {
    fs::read_dir("/proc").unwrap().flatten().any(|process| {
        let words = fs::read(process.path().join("cmdline")).unwrap_or_default();
        let named =
            words.windows(path.as_os_str().len()).any(|part| part == path.as_os_str().as_bytes());
        named || fs::read_link(process.path().join("cwd")).is_ok_and(|folder| folder == path)
    })
}

#[tokio::test]
#[ignore = "needs the lab (tests/lab/up)"]
async fn a_probe_is_one_round_trip_and_finds_the_engine() {
    for (name, engine, flavour) in [
        ("sandboxer01", "docker", "docker-compose-v2"),
        ("coulombcore", "podman", "podman-compose"),
    ] {
        let host = host(name).await;
        let before = host.transport.round_trips();
        let began = Instant::now();
        let now = Time::new(jiff::Timestamp::now());
        let probed = examine(
            host.transport.as_ref(),
            ProbeRequest { inventory: true, ..ProbeRequest::new(now) },
        )
        .await
        .unwrap();
        let first = began.elapsed();
        assert_eq!(host.transport.round_trips() - before, 1);
        let facts = probed.facts;
        let runtime = facts.runtimes[0].clone();
        assert_eq!(runtime.engine.as_str(), engine);
        assert_eq!(runtime.flavour.to_string().as_str(), flavour);
        assert!(runtime.engine_id.is_some() && runtime.engine_version.is_some());
        assert_eq!(facts.tools.contains_key("rsync"), name == "sandboxer01");
        assert!(facts.clock_offset_s.unwrap().abs() < 5.0, "{:?}", facts.clock_offset_s);
        assert_eq!(facts.workspace_root, host.transport.spec().workspace_root);
        let again = ProbeRequest {
            inventory: true,
            known: probed.detection.clone(),
            ..ProbeRequest::new(Time::new(jiff::Timestamp::now()))
        };
        let began = Instant::now();
        let known = examine(host.transport.as_ref(), again).await.unwrap();
        eprintln!(
            "{name}: first {first:?}, known {:?}, offset {:?}",
            began.elapsed(),
            facts.clock_offset_s
        );
        assert!(probed.detection.is_some() && known.detection.is_none(), "they held");
        assert_eq!(known.facts.runtimes, facts.runtimes);
        host.pool.close().await;
    }
}
