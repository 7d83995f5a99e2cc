//! Links and mounts that appear while a sandbox is removed: nothing outside of it is.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use crate::each_case::each_case;
use crate::lab::{Bench, DOCKER, text, tree, wait_until};
use crate::sandboxes::accounts::{DEV, OPS, SUDO, writer};

/// A tree beside a bench's sandboxes that has to stay. The host's account may write it, so that only care protects it.
struct Canary {
    folder: PathBuf,
    tree: BTreeSet<String>,
}

impl Canary {
    fn beside_the_sandboxes_of(bench: &Bench, host: &str) -> Self {
        let root = bench.workspace_root(host);
        let owner = fs::metadata(root.parent().unwrap()).unwrap();
        let folder = root.join("canary");
        fs::create_dir_all(folder.join("sub")).unwrap();
        for name in ["precious", "f1", "sub/f1", "sub/precious"] {
            fs::write(folder.join(name), "kept").unwrap();
        }
        for path in [&root, &folder, &folder.join("sub")] {
            chown(path, Some(owner.uid()), Some(owner.gid())).unwrap();
            fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
        }
        let tree = tree(&folder);
        Self { folder, tree }
    }

    #[track_caller]
    fn assert_untouched(&self) {
        let now = tree(&self.folder);
        let gone: Vec<_> = self.tree.difference(&now).collect();
        assert!(gone.is_empty(), "gone: {gone:#?}");
    }
}

impl Drop for Canary {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Does one thing over and over until it is dropped.
struct Racer {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<u64>>,
}

impl Racer {
    fn start(mut step: impl FnMut() + Send + 'static) -> Self {
        let halt = Arc::new(AtomicBool::new(false));
        let end = Arc::clone(&halt);
        let thread = std::thread::spawn(move || {
            let mut rounds = 0;
            while !end.load(Ordering::Relaxed) {
                step();
                rounds += 1;
            }
            rounds
        });
        Self { stop: halt, thread: Some(thread) }
    }

    fn finish(mut self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap()
    }
}

impl Drop for Racer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// Swaps folders of the workspace for links to the canary and back, as fast as it can.
fn swapper(workspace: &Path, folders: usize, canary: &Path) -> Racer {
    let (workspace, canary) = (workspace.to_owned(), canary.to_owned());
    let mut turn = 0;
    Racer::start(move || {
        let folder = workspace.join(format!("d{turn}"));
        let aside = workspace.join(format!("aside{turn}"));
        turn = (turn + 1) % folders;
        if fs::rename(&folder, &aside).is_ok() {
            let _ = symlink(&canary, &folder);
            std::thread::yield_now();
            let _ = fs::remove_file(&folder);
            let _ = fs::rename(&aside, &folder);
        }
    })
}

fn fill(folder: &Path, files: usize) {
    fs::create_dir_all(folder).unwrap();
    for file in 0..files {
        fs::write(folder.join(format!("f{file}")), "").unwrap();
    }
}

/// Gives a folder and what is in it to the user of the container that owns `like`: not the account's, so that it needs
/// its further means.
fn give_to_the_container(like: &Path, folder: &Path) {
    let owner = fs::metadata(like).unwrap();
    let given = Command::new("chown")
        .args(["-hR", &format!("{}:{}", owner.uid(), owner.gid())])
        .arg(folder)
        .status()
        .unwrap();
    assert!(given.success());
}

fn folders_that_become_links_lead_nowhere(host: &'static str) {
    let bench =
        if host == DOCKER { Bench::new() } else { Bench::with(std::slice::from_ref(&host)) };
    let canary = Canary::beside_the_sandboxes_of(&bench, host);
    let before = bench.snapshot(host);
    let id = writer(&bench, host);
    let workspace = bench.directory(host, &id).join("workspace");
    for folder in 0..30 {
        let folder = workspace.join(format!("d{folder}"));
        fill(&folder, 100);
        give_to_the_container(&workspace.join("deep/er"), &folder);
    }
    let racer = swapper(&workspace, 30, &canary.folder);
    // While it goes on this may fail, as things come back behind its back.
    let first = bench.run(["destroy", &id, "--yes"]);
    assert!(racer.finish() > 30, "it raced: {first:#?}");
    canary.assert_untouched();
    bench.ok(["destroy", &id, "--yes"]);
    assert_eq!(bench.get(&id)["state"], "destroyed");
    canary.assert_untouched();
    bench.assert_unchanged(host, &before);
}

each_case! {
    folders_that_become_links_lead_nowhere {
        as_root: DOCKER;
        in_a_container: DEV;
        with_sudo: SUDO;
        in_a_user_namespace: OPS;
    }
}

/// A canary that looks like the sandbox: it even has its manifest.
fn double(bench: &Bench, host: &str, id: &str) -> Canary {
    let mut canary = Canary::beside_the_sandboxes_of(bench, host);
    fs::copy(bench.directory(host, id).join("manifest.json"), canary.folder.join("manifest.json"))
        .unwrap();
    fs::create_dir(canary.folder.join("workspace")).unwrap();
    fs::write(canary.folder.join("workspace/precious"), "kept").unwrap();
    canary.tree = tree(&canary.folder);
    canary
}

/// A process that exchanges two names in one step, over and over. Killed when dropped.
struct Exchanger(std::process::Child);

impl Exchanger {
    fn start(one: &Path, other: &Path) -> Self {
        let script = "import ctypes, os, sys\nexchange = ctypes.CDLL(None).renameat2\none, other = map(os.fsencode, sys.argv[1:])\nwhile True:\n    exchange(-100, one, -100, other, 2)\n";
        let child =
            Command::new("python3").args(["-c", script]).args([one, other]).spawn().unwrap();
        Self(child)
    }
}

impl Drop for Exchanger {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// `sbx-<id>` is a directory when it is looked at and a link when it is entered, or the other way round.
#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_directory_that_becomes_a_link_leads_nowhere() {
    let bench = Bench::new();
    let repo = bench.stack(
        "still",
        "services:\n  a: {image: 'localhost/sbx-lab:1', command: [sleep, '600'], stop_signal: SIGKILL}\n",
    );
    for _ in 0..3 {
        let id = text(&bench.create_stack(DOCKER, &repo, &[])["id"]);
        let canary = double(&bench, DOCKER, &id);
        let directory = bench.directory(DOCKER, &id);
        let aside = directory.with_extension("aside");
        symlink(&canary.folder, &aside).unwrap();
        let exchanger = Exchanger::start(&directory, &aside);
        for _ in 0..4 {
            let _ = bench.run(["destroy", &id, "--yes"]);
            canary.assert_untouched();
        }
        drop(exchanger);
        if fs::symlink_metadata(&directory).is_ok_and(|found| found.is_symlink()) {
            fs::remove_file(&directory).unwrap();
            let _ = fs::rename(&aside, &directory);
        }
        bench.ok(["destroy", &id, "--yes"]);
        canary.assert_untouched();
        let _ = fs::remove_file(&aside);
        let _ = fs::remove_dir_all(&aside);
    }
}

/// The engine looks the path up itself, and by then it is a link.
#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_directory_that_becomes_a_link_leads_nowhere_in_a_container() {
    let bench = Bench::with(&[DEV]);
    let id = writer(&bench, DEV);
    let canary = double(&bench, DEV, &id);
    let directory = bench.directory(DEV, &id);
    let aside = directory.with_extension("aside");
    let destroy = bench.start(["destroy", &id, "--yes"]);
    // What the teardown leaves there just before it starts the container.
    let marked = |entry: std::io::Result<fs::DirEntry>| {
        entry.unwrap().file_name().to_string_lossy().starts_with(".gone-")
    };
    wait_until("it comes to the container", || fs::read_dir(&directory).unwrap().any(marked));
    fs::rename(&directory, &aside).unwrap();
    symlink(&canary.folder, &directory).unwrap();
    let error = destroy.finish().error("operation_failed");
    assert!(error.to_string().contains("another folder"), "{error:#}");
    canary.assert_untouched();
    fs::remove_file(&directory).unwrap();
    fs::rename(&aside, &directory).unwrap();
    bench.ok(["destroy", &id, "--yes"]);
    canary.assert_untouched();
    assert!(!directory.exists());
}

/// The workspace is a link; what removes it as root takes the link and not what it points to.
#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_workspace_that_is_a_link_is_removed_as_one() {
    for host in [DEV, OPS, SUDO] {
        let bench = Bench::with(&[host]);
        let canary = Canary::beside_the_sandboxes_of(&bench, host);
        let before = bench.snapshot(host);
        let id = writer(&bench, host);
        let directory = bench.directory(host, &id);
        // What was written as root stays beneath, so that the link is met by the account's further means.
        fs::rename(directory.join("workspace"), directory.join("elsewhere")).unwrap();
        fs::create_dir(directory.join("closed")).unwrap();
        symlink(&canary.folder, directory.join("closed/link")).unwrap();
        give_to_the_container(&directory.join("elsewhere/deep/er"), &directory.join("closed"));
        symlink(&canary.folder, directory.join("workspace")).unwrap();
        bench.ok(["destroy", &id, "--yes"]);
        canary.assert_untouched();
        bench.assert_unchanged(host, &before);
    }
}

fn mount(args: &[&Path]) {
    let status = Command::new("mount").arg("--bind").args(args).status().unwrap();
    assert!(status.success(), "mount --bind {args:?}");
}

struct Mounted(PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount")
            .arg("-l")
            .arg(&self.0)
            .stderr(std::process::Stdio::null())
            .status();
    }
}

/// A mount of the same file system, which no `--one-file-system` notices.
#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_mount_beneath_is_a_failure_and_not_entered() {
    for host in [DOCKER, DEV] {
        let bench = Bench::with(&[DEV]);
        let canary = Canary::beside_the_sandboxes_of(&bench, host);
        let before = bench.snapshot(host);
        let id = writer(&bench, host);
        let directory = bench.directory(host, &id);
        let point = directory.join("workspace/a mount");
        fs::create_dir(&point).unwrap();
        mount(&[&canary.folder, &point]);
        let mounted = Mounted(point);
        let refused = bench.run(["destroy", &id, "--yes"]);
        let error = refused.error("operation_failed");
        assert!(error.to_string().contains("is a mount point"), "{error:#}");
        assert!(directory.join("workspace/written").exists(), "nothing else was begun");
        assert_eq!(bench.get(&id)["leftovers"][0]["kind"], "directory");
        canary.assert_untouched();
        drop(mounted);
        bench.ok(["destroy", &id, "--yes"]);
        canary.assert_untouched();
        bench.assert_unchanged(host, &before);
    }
}

/// The mount comes when the removal is half done: into the one of two folders that is still whole.
#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_mount_made_during_the_removal_is_not_entered() {
    let bench = Bench::new();
    let canary = Canary::beside_the_sandboxes_of(&bench, DOCKER);
    let id = writer(&bench, DOCKER);
    let directory = bench.directory(DOCKER, &id);
    let workspace = directory.join("workspace");
    let folders = [workspace.join("one"), workspace.join("two")];
    for folder in &folders {
        fill(folder, 40_000);
    }
    // A folder changes with the first of its files that goes; to count them takes longer than it takes to remove them.
    let stand = |folder: &PathBuf| fs::metadata(folder).and_then(|folder| folder.modified()).ok();
    let before: Vec<_> = folders.iter().map(stand).collect();
    let destroy = bench.start(["destroy", &id, "--yes"]);
    let mut whole = None;
    wait_until("one of the two is begun", || {
        let begun: Vec<bool> =
            folders.iter().map(stand).zip(&before).map(|(now, before)| now != *before).collect();
        whole = [(1, [true, false]), (0, [false, true])]
            .iter()
            .find(|case| begun == case.1)
            .map(|case| case.0);
        begun.contains(&true)
    });
    let mounted = whole.map(|whole| {
        mount(&[&canary.folder, &folders[whole]]);
        Mounted(folders[whole].clone())
    });
    assert!(mounted.is_some(), "the mount came in time");
    let ended = destroy.finish();
    canary.assert_untouched();
    drop(mounted);
    assert!(ended.status.is_some());
    bench.ok(["destroy", &id, "--yes"]);
    canary.assert_untouched();
    assert!(!directory.exists());
}
