//! What the tests share: a control folder and client configuration of their own, and eyes on the machine's processes.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command as Program, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use sandboxer::domain::error::Error;
use sandboxer::domain::host::HostSpec;
use sandboxer::domain::name::HostName;
use sandboxer::transport::pool::{PERSIST, Pool};
use sandboxer::transport::{Transport, Transports};

pub(crate) const HOST: &str = "sandboxer01";
/// What has begun by then, or is over, however busy the machine is.
pub(crate) const SOON: Duration = Duration::from_mins(1);
/// TERM at once, KILL after 5 s, and the machine may be busy.
pub(crate) const GONE: Duration = Duration::from_secs(30);

/// One test's own control folder and client configuration; what it connected ends with it.
pub(crate) struct Bench {
    pub(crate) dir: tempfile::TempDir,
    /// How long what another process connected stays.
    persist: Duration,
}

impl Bench {
    pub(crate) fn new() -> Self {
        let dir = tempfile::Builder::new().prefix("sbxt").tempdir_in("/tmp").unwrap();
        Self { dir, persist: PERSIST }
    }

    /// A bench whose other processes' connections stay for this long.
    pub(crate) fn persisting(persist: Duration) -> Self {
        let mut bench = Self::new();
        bench.persist = persist;
        bench
    }

    pub(crate) fn control(&self) -> PathBuf {
        self.dir.path().join("c")
    }

    /// The lab's client configuration below lines of the test's own, which win.
    pub(crate) fn config(&self, lines: &str) -> PathBuf {
        let file = self.dir.path().join("config");
        let lab =
            fs::read_to_string(lab().join("ssh_config")).expect("the lab is up (tests/lab/up)");
        fs::write(&file, format!("{lines}\nHost *\n{lab}")).unwrap();
        file
    }

    pub(crate) fn pool(&self, lines: &str) -> Pool {
        pool(&self.config(lines), &self.control())
    }

    pub(crate) async fn open(&self) -> (Pool, Arc<dyn Transport>) {
        let pool = self.pool("");
        let way = pool.open(&HostName::new(HOST)).await.unwrap();
        (pool, way)
    }

    /// The process ids of the masters that hold a socket of this bench.
    pub(crate) fn masters(&self) -> BTreeSet<i32> {
        let control = self.control();
        processes(|line| {
            line.starts_with("ssh")
                && line.contains("-M")
                && line.contains(&*control.to_string_lossy())
        })
    }

    /// The control sockets that are there.
    pub(crate) fn sockets(&self) -> usize {
        let entries = fs::read_dir(self.control()).into_iter().flatten().filter_map(Result::ok);
        entries.filter(|entry| entry.path().extension().is_none()).count()
    }

    pub(crate) async fn kill_masters(&self) {
        for master in self.masters() {
            signal("-KILL", master);
        }
        assert!(until(SOON, || self.masters().is_empty()).await);
        // A process that ends has no command line a moment before its pipes are closed.
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        for master in self.masters() {
            signal("-TERM", master);
        }
    }
}

fn lab() -> PathBuf {
    std::env::var_os("LAB_DIR")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join(".lab"), PathBuf::from)
}

pub(crate) fn pool(config: &Path, control: &Path) -> Pool {
    let host = HostSpec {
        ssh: Some(HOST.to_owned()),
        ssh_config: Some(config.to_owned()),
        login_hint: Some("run renew".to_owned()),
        ..HostSpec::named(HOST)
    };
    Pool::new(vec![host], control.to_owned(), None)
}

pub(crate) fn processes(wanted: impl Fn(&str) -> bool) -> BTreeSet<i32> {
    let entries = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter(|pid| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        wanted(&String::from_utf8_lossy(&line).replace('\0', " "))
    })
    .collect()
}

/// Whether a `sleep` of exactly this many seconds runs; each test has a number of its own.
pub(crate) fn sleeps(seconds: &str) -> bool {
    !processes(|line| line.trim_end() == format!("sleep {seconds}")).is_empty()
}

pub(crate) fn signal(which: &str, pid: i32) {
    Program::new("kill")
        .args([which, &pid.to_string()])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
}

pub(crate) async fn until(limit: Duration, mut done: impl FnMut() -> bool) -> bool {
    let started = Instant::now();
    while !done() {
        if started.elapsed() > limit {
            return false;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    true
}

pub(crate) fn kind(fault: &Error) -> String {
    fault.details.get("kind").and_then(|kind| kind.as_str()).unwrap_or_default().to_owned()
}

/// A console of its own on the same control folder; [`Bench::config`] first. It sleeps twice for `nap` seconds.
pub(crate) fn another_process(bench: &Bench, host: &str, nap: &str) -> Child {
    another_process_that(bench, host, "sleeps", nap)
}

/// The same for another of the things that `as_another_process` can do.
pub(crate) fn another_process_that(bench: &Bench, host: &str, what: &str, nap: &str) -> Child {
    let mut program = Program::new(std::env::current_exe().unwrap());
    program.args(["--ignored", "--exact", "transport::as_another_process"]);
    program
        .env("SBX_BENCH", bench.dir.path())
        .env("SBX_NAP", nap)
        .env("SBX_HOST", host)
        .env("SBX_PERSIST", bench.persist.as_secs().to_string())
        .env("SBX_WHAT", what);
    program.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}
