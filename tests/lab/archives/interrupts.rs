//! Ctrl-C while a snapshot becomes a file or comes from one: at once, with the status of a cancel, and nothing is left.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::archives::source::{archive, snapshot};
use crate::lab::{Bench, DOCKER, PODMAN, Started, text, wait_until};

/// Enough that nobody is through with it before he is interrupted.
const MUCH: &str = "head -c 64000000 /dev/urandom >much";
/// How long an interrupted command may still take: one that is stuck takes for ever.
const AT_ONCE: Duration = Duration::from_secs(20);

/// A snapshot called `base` that is large, and its archive's file.
fn large(bench: &Bench, id: &str) -> std::path::PathBuf {
    snapshot(bench, DOCKER, id);
    bench.ok(["exec", id, "--", "sh", "-c", MUCH]);
    bench.ok(["snapshots", "delete", "base"]);
    archive(bench, DOCKER, &bench.ok(["snapshot", id, "--name", "base"]))
}

#[track_caller]
fn wait_for_bytes(what: impl Fn() -> u64) {
    wait_until("it has begun", || what() >= 1_000_000);
}

/// The size of the part of an archive that is being received below a folder of archives.
fn received(shelf: &Path) -> u64 {
    let sizes = fs::read_dir(shelf).into_iter().flatten().flatten().filter_map(|folder| {
        let parts = fs::read_dir(folder.path()).ok()?.flatten();
        parts.filter_map(|part| Some(part.metadata().ok()?.len())).max()
    });
    sizes.max().unwrap_or(0)
}

#[track_caller]
fn interrupted(command: Started) {
    let began = Instant::now();
    command.signal("INT");
    command.finish().error("cancelled");
    assert!(began.elapsed() < AT_ONCE, "{:?}", began.elapsed());
}

/// Nobody reads a file any more.
fn let_go(file: &Path) -> bool {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let mut open = processes.flat_map(|process| {
        fs::read_dir(process.path().join("fd")).into_iter().flatten().flatten()
    });
    !open.any(|fd| fs::read_link(fd.path()).is_ok_and(|at| at == file))
}

/// A pipe that has nothing in it and room for little: whoever reads or writes it waits.
fn stuck(path: &Path) -> File {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    File::options().read(true).write(true).open(path).unwrap()
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn an_export_that_is_interrupted_leaves_no_file() {
    let bench = Bench::new();
    let source = large(&bench, "int-export");
    let file = bench.path("base.sbx");
    let partial = bench.path("base.sbx.partial");
    let words = ["snapshots", "export", "base", file.to_str().unwrap()];
    let export = bench.start(words);
    wait_for_bytes(|| fs::metadata(&partial).map_or(0, |part| part.len()));
    interrupted(export);
    assert!(!file.exists() && !partial.exists(), "nothing of it is left");

    // To a reader that does not read.
    let pipe = stuck(&bench.path("pipe"));
    let json = bench.command(["snapshots", "export", "base", "-"]);
    let mut command = Command::new(json.get_program());
    command.args(json.get_args().filter(|word| *word != "--json")).env_clear();
    command.envs(json.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command
        .stdin(Stdio::null())
        .stdout(Stdio::from(pipe.try_clone().unwrap()))
        .stderr(Stdio::piped());
    let export = Started::spawn(command);
    wait_until("it is read", || !let_go(&source));
    // It is in the middle of a write by then, and not before a read.
    std::thread::sleep(Duration::from_secs(1));
    let began = Instant::now();
    export.signal("INT");
    let ran = export.finish();
    assert!(ran.status == Some(130) && ran.stderr.contains("no whole archive"), "{ran:#?}");
    assert!(began.elapsed() < AT_ONCE, "{:?}", began.elapsed());
    let until = Instant::now() + AT_ONCE;
    while !let_go(&source) {
        assert!(Instant::now() < until, "somebody on the host still reads the archive");
        std::thread::sleep(Duration::from_millis(100));
    }
    let operations = bench.ok(["operations", "list"]);
    assert!(
        operations.as_array().unwrap().iter().all(|operation| operation["state"] != "running"),
        "{operations:#}"
    );
    assert_eq!(bench.ok(["recover"]), json!([]));
    bench.ok(words);
    bench.clear();
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn an_import_that_is_interrupted_leaves_nothing_on_the_host() {
    let bench = Bench::watching(&[PODMAN]);
    large(&bench, "int-import");
    let file = bench.path("base.sbx");
    bench.ok(["snapshots", "export", "base", file.to_str().unwrap()]);
    let listed = bench.ok(["snapshots", "list", "--all"]);
    let shelf = bench.workspace_root(PODMAN).join("snapshots");
    let words = |from| ["snapshots", "import", from, "--host", PODMAN, "--name", "again"];

    let import = bench.start(words(file.to_str().unwrap()));
    wait_for_bytes(|| received(&shelf));
    interrupted(import);
    bench.assert_as_before();
    assert_eq!(bench.ok(["snapshots", "list", "--all"]), listed);

    // From a writer that has stopped in the middle.
    let mut pipe = stuck(&bench.path("pipe"));
    let mut command = bench.command(words("-"));
    command.stdin(Stdio::from(pipe.try_clone().unwrap()));
    let import = Started::spawn(command);
    let whole = fs::read(&file).unwrap();
    pipe.write_all(&whole[..8_000_000]).unwrap();
    wait_for_bytes(|| received(&shelf));
    interrupted(import);
    drop(pipe);
    bench.assert_as_before();
    assert_eq!(bench.ok(["snapshots", "list", "--all"]), listed);

    let operations = bench.ok(["operations", "list"]);
    let all = operations.as_array().unwrap().iter();
    let cancelled = all.filter(|operation| operation["state"] == "cancelled").count();
    assert_eq!(cancelled, 2, "{operations:#}");
    assert_eq!(bench.ok(["recover"]), json!([]));
    let again = bench.ok(words(file.to_str().unwrap()));
    bench.ok(["snapshots", "verify", &text(&again["id"])]);
    bench.clear();
    bench.assert_as_before();
}
