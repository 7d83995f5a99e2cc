//! The data directory: private, made by the first write, and clear about what is wrong with it.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use sandboxer::domain::error::{Code, Error};
use sandboxer::store::json::JsonStores;
use sandboxer::store::{EventLog, Installation, Locks, OperationStore, Ownership, SandboxStore};

use super::processes::event;
use super::{by, id, processes, record, stores};

fn says(fault: &Error, hint: &str) {
    // What was chosen wrong, against what befell it.
    let code = if hint == "nothing was lost" { Code::Internal } else { Code::InvalidConfig };
    assert_eq!(fault.code, code, "{fault}");
    assert!(
        fault.hint.as_ref().is_some_and(|text| text.contains(hint)),
        "{fault}: {:?}",
        fault.hint
    );
}

#[tokio::test]
async fn looking_makes_nothing_and_the_first_write_makes_it() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("a/b");
    let all = stores(&data);
    assert_eq!(all.sandboxes.list().await.unwrap(), []);
    assert_eq!(all.sandboxes.history().await.unwrap(), []);
    assert_eq!(all.sandboxes.version().await.unwrap(), 0);
    assert_eq!(all.operations.list().await.unwrap(), []);
    assert_eq!(all.events.tail(0).await.unwrap(), []);
    assert_eq!(all.installation.ownership().await.unwrap(), Ownership::Own);
    assert!(!dir.path().join("a").exists());
    all.sandboxes.insert(record("a", 1)).await.unwrap();
    assert!(data.join("sandboxes.json").is_file());
}

#[test]
fn everything_is_private_whatever_the_umask_is() {
    for umask in ["000", "777"] {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("new/data");
        assert!(processes::child("everything", &data, 1, Some(umask)).status().unwrap().success());
        let mut seen = Vec::new();
        let mut folders = vec![dir.path().join("new")];
        while let Some(folder) = folders.pop() {
            assert_eq!(
                fs::metadata(&folder).unwrap().permissions().mode() & 0o7777,
                0o700,
                "{folder:?}"
            );
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    assert_eq!(
                        fs::metadata(&path).unwrap().permissions().mode() & 0o7777,
                        0o600,
                        "{path:?}"
                    );
                    seen.push(path.file_name().unwrap().to_string_lossy().into_owned());
                }
            }
        }
        for name in [
            "sandboxes.json",
            "sandboxes.json.bak",
            "history.jsonl",
            "events.jsonl",
            "operations.json",
            "owner",
        ] {
            assert!(seen.iter().any(|file| file == name), "{name} in {seen:?}");
        }
        assert!(!seen.iter().any(|file| file.contains(".tmp")), "{seen:?}");
    }
}

#[tokio::test]
async fn one_that_was_open_to_others_is_closed_by_the_first_write() {
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    let set = |path: &Path, mode: u32| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    for other in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data");
        fs::create_dir_all(data.join("locks")).unwrap();
        for (name, mode) in [("owner.bak", 0o644), ("events.jsonl", 0o664), ("locks", 0o755)] {
            if name != "locks" {
                fs::write(data.join(name), "").unwrap();
            }
            set(&data.join(name), mode);
        }
        if other {
            fs::write(data.join("notes.txt"), "mine").unwrap();
            set(&data.join("notes.txt"), 0o644);
        }
        set(&data, 0o755);
        stores(&data).sandboxes.insert(record("a", 1)).await.unwrap();
        // A folder that somebody has for other things, too, is left to them.
        assert_eq!(mode(&data), if other { 0o755 } else { 0o700 });
        for (name, closed) in [("owner.bak", 0o600), ("events.jsonl", 0o600), ("locks", 0o700)] {
            assert_eq!(mode(&data.join(name)), closed, "{name}");
        }
        if other {
            assert_eq!(mode(&data.join("notes.txt")), 0o644);
        }
    }
}

#[tokio::test]
async fn a_path_that_cannot_be_one_is_refused_with_a_way_out() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    fs::write(at("file"), "").unwrap();
    symlink(at("nowhere"), at("dangling")).unwrap();
    symlink(at("loop"), at("loop")).unwrap();
    symlink(dir.path(), at("linked")).unwrap();
    for path in [at("file"), at("file/below"), at("dangling"), at("loop"), at("loop/below")] {
        let fault = JsonStores::open(&path).err().unwrap_or_else(|| panic!("{path:?} was taken"));
        says(&fault, "--data-dir");
        assert!(fault.details["path"].is_string(), "{path:?}");
    }
    assert!(JsonStores::open(&at("linked")).is_ok());
    // Nobody, not even root, makes a directory there.
    let all = stores(Path::new("/proc/sandboxer-data"));
    assert_eq!(all.sandboxes.list().await.unwrap(), []);
    says(&all.sandboxes.insert(record("a", 1)).await.unwrap_err(), "--data-dir");
    says(&all.installation.next_stamp().await.unwrap_err(), "--data-dir");
    says(&all.locks.try_lock(&id("a")).await.err().unwrap(), "--data-dir");
    for name in ["sandboxes.json", "events.jsonl", "owner", "history.jsonl", "operations.json"] {
        fs::create_dir_all(at("data").join(name)).unwrap();
    }
    let all = stores(&at("data"));
    says(&all.sandboxes.list().await.unwrap_err(), "move it away");
    says(&all.sandboxes.history().await.unwrap_err(), "move it away");
    says(&all.events.last_seq().await.unwrap_err(), "move it away");
    says(&all.events.append(vec![event(1)]).await.unwrap_err(), "move it away");
    says(&all.operations.list().await.unwrap_err(), "move it away");
    says(&all.installation.owners().await.unwrap_err(), "move it away");
    fs::create_dir(at("locked")).unwrap();
    fs::write(at("locked/locks"), "").unwrap();
    let all = stores(&at("locked"));
    says(&all.locks.try_lock(&id("a")).await.err().unwrap(), "move it away");
}

#[tokio::test]
async fn another_users_directory_may_be_looked_at_but_not_written() {
    let dir = tempfile::tempdir().unwrap();
    let me = fs::metadata(dir.path()).unwrap().uid();
    let theirs = if me == 0 {
        std::os::unix::fs::chown(dir.path(), Some(54_321), None).unwrap();
        dir.path()
    } else {
        Path::new("/usr")
    };
    let all = stores(theirs);
    assert_eq!(all.sandboxes.list().await.unwrap(), []);
    let fault = all.sandboxes.insert(record("a", 1)).await.unwrap_err();
    says(&fault, "run as its owner");
    assert!(fault.message.contains("belongs to user"), "{fault}");
}

#[tokio::test]
async fn what_a_killed_writer_left_is_removed_by_the_next() {
    let dir = tempfile::tempdir().unwrap();
    let left = dir.path().join(".sandboxes.json.AbCdEf.tmp");
    let step = dir.path().join(".sandboxes.json.bak.tmp");
    for path in [&left, &step] {
        fs::write(path, "half").unwrap();
    }
    stores(dir.path()).sandboxes.insert(record("a", 1)).await.unwrap();
    assert!(!left.exists() && !step.exists());
    // Killed between the backup and the rename: both names are one file.
    fs::remove_file(dir.path().join("sandboxes.json.bak")).ok();
    fs::hard_link(dir.path().join("sandboxes.json"), dir.path().join("sandboxes.json.bak"))
        .unwrap();
    stores(dir.path()).sandboxes.insert(record("b", 1)).await.unwrap();
    assert!(!step.exists());
    assert_eq!(stores(dir.path()).sandboxes.list().await.unwrap().len(), 2);
}

/// Mounts a small file system, and takes it away again.
struct Small(tempfile::TempDir);

impl Small {
    fn mount() -> Self {
        Self::mount_of("64k")
    }

    fn mount_of(size: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let options = ["-t", "tmpfs", "-o", &format!("size={size},mode=700"), "tmpfs"];
        assert!(
            Command::new("mount").args(options).arg(dir.path()).status().unwrap().success(),
            "mount"
        );
        Self(dir)
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

#[tokio::test]
#[ignore = "needs root to mount a tmpfs"]
async fn a_full_disk_loses_nothing() {
    let small = Small::mount();
    let all = stores(small.0.path());
    let store = &all.sandboxes;
    store.insert(record("a", 1)).await.unwrap();
    let event = |n| processes::event(n);
    assert_eq!(all.events.append(vec![event(1)]).await.unwrap()[0].seq, 1);
    fs::write(small.0.path().join("ballast"), vec![0; 60 * 1024]).unwrap_err();
    let before = fs::read(small.0.path().join("sandboxes.json")).unwrap();
    let fault =
        store.update(&id("a"), None, by(|a| a.message = Some("x".repeat(8192)))).await.unwrap_err();
    says(&fault, "nothing was lost");
    assert!(fault.causes[0].contains("No space left"), "{:?}", fault.causes);
    assert_eq!(fs::read(small.0.path().join("sandboxes.json")).unwrap(), before);
    let mut large = event(2);
    large.data = "x".repeat(16_384).into();
    says(&all.events.append(vec![large]).await.unwrap_err(), "nothing was lost");
    fs::remove_file(small.0.path().join("ballast")).unwrap();
    // As soon as there is space again, everything goes on.
    assert_eq!(store.get(&id("a")).await.unwrap().unwrap().revision, 1);
    store.update(&id("a"), Some(1), by(|_| ())).await.unwrap();
    assert_eq!(all.events.append(vec![event(1), event(2)]).await.unwrap()[1].seq, 2);
    assert_eq!(all.events.read(&sandboxer::store::EventFilter::default()).await.unwrap().len(), 2);
    assert_eq!(all.events.unreadable_lines().await.unwrap(), []);
}

#[tokio::test]
#[ignore = "needs root to mount a tmpfs"]
async fn what_ends_something_is_written_on_a_full_disk() {
    let small = Small::mount_of("1m");
    let all = stores(small.0.path());
    let (store, reserve) = (&all.sandboxes, small.0.path().join("reserve"));
    store.insert(record("a", 1)).await.unwrap();
    let size = fs::metadata(&reserve).unwrap().len();
    assert!(size >= 64 * 1024, "{size}");
    fs::write(small.0.path().join("ballast"), vec![0; 2 << 20]).unwrap_err();
    let grow = |n: usize| {
        by(move |a: &mut sandboxer::domain::SandboxRecord| a.message = Some("x".repeat(n)))
    };
    // Whoever begins something new takes none of it.
    says(&store.insert(record("b", 1)).await.unwrap_err(), "nothing was lost");
    says(&store.update(&id("a"), None, grow(8192)).await.unwrap_err(), "nothing was lost");
    assert_eq!(fs::metadata(&reserve).unwrap().len(), size);
    for round in 1..=5 {
        let ended = sandboxer::store::ending(async {
            assert!(all.locks.try_lock(&id(&format!("lock-{round}"))).await.unwrap().is_some());
            store.update(&id("a"), None, grow(8192)).await?;
            all.events.append(vec![processes::event(round)]).await
        });
        ended.await.unwrap();
        let left = fs::metadata(&reserve).unwrap().len();
        assert!(left >= size / 2, "made again afterwards: {left} of {size} in round {round}");
    }
    says(&store.update(&id("a"), None, grow(16_384)).await.unwrap_err(), "nothing was lost");
    fs::remove_file(small.0.path().join("ballast")).unwrap();
    store.update(&id("a"), None, grow(100_000)).await.unwrap();
    assert!(fs::metadata(&reserve).unwrap().len() >= 100_000, "it grows with the largest file");
}

#[tokio::test]
#[ignore = "needs root to mount a file system read-only"]
async fn a_read_only_directory_can_be_looked_at() {
    let small = Small::mount();
    stores(small.0.path()).sandboxes.insert(record("a", 1)).await.unwrap();
    let remount =
        || Command::new("mount").args(["-o", "remount,ro"]).arg(small.0.path()).status().unwrap();
    // Busy while another test starts a child: it has our open files until it runs its program.
    while !remount().success() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let all = stores(small.0.path());
    assert_eq!(all.sandboxes.list().await.unwrap().len(), 1);
    assert_eq!(all.events.tail(0).await.unwrap(), []);
    says(&all.sandboxes.insert(record("b", 1)).await.unwrap_err(), "make it yours");
    says(&all.locks.try_lock(&id("a")).await.err().unwrap(), "make it yours");
}

#[tokio::test]
async fn events_are_written_and_read_whatever_stands_in_the_place_of_their_numbers() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let all = stores(dir.path());
    assert_eq!(all.events.append(vec![event(1)]).await.unwrap()[0].seq, 1);
    let pipe = |path: &Path| assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    let huge = |path: &Path| fs::File::create(path).unwrap().set_len(1 << 40).unwrap();
    let folder = |path: &Path| fs::create_dir(path).unwrap();
    for (n, put) in [folder as fn(&Path), pipe, huge].into_iter().enumerate() {
        let path = at("events.numbers");
        let _ = fs::remove_dir(&path).or_else(|_| fs::remove_file(&path));
        put(&path);
        let n = n as u64 + 2;
        assert_eq!(stores(dir.path()).events.append(vec![event(n)]).await.unwrap()[0].seq, n);
    }
    fs::remove_file(at("events.jsonl")).unwrap();
    pipe(&at("events.jsonl"));
    says(&stores(dir.path()).events.last_seq().await.unwrap_err(), "move it away");
}
