//! The transport against real sshd: `tests/lab/up` first, then `cargo test --test lab_transport -- --ignored`.

use std::collections::BTreeSet;
use std::fs;
use std::net::TcpListener;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command as Program, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use sandboxer::domain::fault::{Code, Fault};
use sandboxer::domain::host::HostSpec;
use sandboxer::domain::name::HostName;
use sandboxer::transport::pool::Pool;
use sandboxer::transport::{Command, Source, Transport, Transports};

const HOST: &str = "sandboxer01";
const SOON: Duration = Duration::from_secs(20);
/// TERM at once, KILL after 5 s, and the machine may be busy.
const GONE: Duration = Duration::from_secs(15);

/// One test's own control folder and client configuration; what it connected ends with it.
struct Bench {
    dir: tempfile::TempDir,
}

impl Bench {
    fn new() -> Self {
        Self { dir: tempfile::Builder::new().prefix("sbxt").tempdir_in("/tmp").unwrap() }
    }

    fn control(&self) -> PathBuf {
        self.dir.path().join("c")
    }

    /// The lab's client configuration below lines of the test's own, which win.
    fn config(&self, lines: &str) -> PathBuf {
        let file = self.dir.path().join("config");
        let lab = fs::read_to_string(lab().join("ssh_config")).expect("the lab is up (tests/lab/up)");
        fs::write(&file, format!("{lines}\nHost *\n{lab}")).unwrap();
        file
    }

    fn pool(&self, lines: &str) -> Pool {
        pool(&self.config(lines), &self.control())
    }

    async fn open(&self) -> (Pool, Arc<dyn Transport>) {
        let pool = self.pool("");
        let way = pool.open(&HostName::new(HOST)).await.unwrap();
        (pool, way)
    }

    /// The process ids of the masters that hold a socket of this bench.
    fn masters(&self) -> BTreeSet<i32> {
        let control = self.control();
        processes(|line| line.starts_with("ssh") && line.contains("-M") && line.contains(&*control.to_string_lossy()))
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
    std::env::var_os("LAB_DIR").map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join(".lab"), PathBuf::from)
}

fn pool(config: &Path, control: &Path) -> Pool {
    let host = HostSpec {
        ssh: Some(HOST.to_owned()),
        ssh_config: Some(config.to_owned()),
        login_hint: Some("run renew".to_owned()),
        ..HostSpec::named(HOST)
    };
    Pool::new(vec![host], control.to_owned(), None)
}

fn processes(wanted: impl Fn(&str) -> bool) -> BTreeSet<i32> {
    let entries = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter(|pid| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        wanted(&String::from_utf8_lossy(&line).replace('\0', " "))
    })
    .collect()
}

/// Whether a `sleep` of exactly this many seconds runs; each test has a number of its own.
fn sleeps(seconds: &str) -> bool {
    !processes(|line| line.trim_end() == format!("sleep {seconds}")).is_empty()
}

fn signal(which: &str, pid: i32) {
    Program::new("kill").args([which, &pid.to_string()]).stdin(Stdio::null()).stderr(Stdio::null()).status().unwrap();
}

async fn until(limit: Duration, mut done: impl FnMut() -> bool) -> bool {
    let started = Instant::now();
    while !done() {
        if started.elapsed() > limit {
            return false;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    true
}

fn kind(fault: &Fault) -> String {
    fault.details.get("kind").and_then(|kind| kind.as_str()).unwrap_or_default().to_owned()
}

async fn refusal(bench: &Bench, lines: &str) -> Fault {
    match bench.pool(lines).open(&HostName::new(HOST)).await {
        Ok(_) => panic!("connected with:\n{lines}"),
        Err(fault) => fault,
    }
}

/// A new private key that nobody knows.
fn stranger(bench: &Bench) -> PathBuf {
    let key = bench.dir.path().join("stranger");
    let made = Program::new("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", "", "-f"])
        .arg(&key)
        .stdin(Stdio::null())
        .status();
    assert!(made.unwrap().success());
    key
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the lab (tests/lab/up)"]
async fn hostile_arguments_arrive_byte_for_byte() {
    let bench = Bench::new();
    let (pool, ssh) = bench.open().await;
    let local = pool.open(&HostName::new("local")).await.unwrap();
    let words: Vec<Vec<u8>> = vec![
        (1..=255).collect(),
        b"".to_vec(),
        b"$(reboot) `id` \\ \" ' ! * ~ ; & | < > # x".to_vec(),
        b"'; exit 9; '".to_vec(),
        b"\n\n-n\n".to_vec(),
        b"\xff\xfe \xc3\x28".to_vec(),
        "ünï→😀\u{202e}".into(),
    ];
    let expected: Vec<u8> = words.iter().flat_map(|word| [word.as_slice(), b"\n=\n"].concat()).collect();
    let words: Vec<_> = words.into_iter().map(std::ffi::OsString::from_vec).collect();
    for way in [&ssh, &local] {
        let script = way.run(&Command::script("printf '%s\\n=\\n' \"$@\"").args(&words), SOON).await.unwrap();
        assert_eq!(script.stdout, expected);
        let program = way.run(&Command::new("printf").arg("%s\\n=\\n").args(&words), SOON).await.unwrap();
        assert_eq!(program.stdout, expected);
        let fed = Command::script("printf '%s\\n=\\n' \"$@\"; cat >&2").args(&words);
        let fed = way.feed(&fed, &mut &b"in\0put"[..], SOON).await.unwrap();
        assert_eq!((fed.stdout, fed.stderr), (expected.clone(), b"in\0put".to_vec()));
        let nul = way.run(&Command::new("echo").arg(std::ffi::OsStr::from_bytes(b"a\0b")), SOON).await.unwrap_err();
        assert_eq!(nul.code, Code::InvalidInput);
        let large = "x".repeat(1 << 20);
        let counted = way.run(&Command::script("printf %s \"$1\" | wc -c").arg(&large), SOON).await.unwrap();
        assert_eq!(counted.text().trim(), "1048576");
    }
    pool.close().await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the lab (tests/lab/up)"]
async fn every_exit_status_comes_back() {
    let bench = Bench::new();
    let (pool, ssh) = bench.open().await;
    let local = pool.open(&HostName::new("local")).await.unwrap();
    for way in [&ssh, &local] {
        for status in [0, 1, 126, 127, 255] {
            let command = Command::script("echo out; echo err >&2; exit \"$1\"").arg(status.to_string());
            let ran = way.run(&command, SOON).await.unwrap();
            assert_eq!((ran.status, ran.text().as_str(), ran.error_text().as_str()), (status, "out\n", "err\n"));
            let streamed = way.stream(&command, SOON, &mut |_, _| {}).await.unwrap();
            assert_eq!((streamed.status, streamed.text().as_str()), (status, "out\n"));
            let fed = way.feed(&command, &mut &b""[..], SOON).await.unwrap();
            assert_eq!((fed.status, fed.error_text().as_str()), (status, "err\n"));
        }
        let killed = way.run(&Command::script("sh -c 'kill -KILL $$'"), SOON).await.unwrap();
        assert_eq!(killed.status, 128 + 9);
        assert_eq!(way.run(&Command::new("no-such-program"), SOON).await.unwrap().status, 127);
        // The command ends its own shell: no status, but the connection is well and so is the next command.
        let suicide = way.run(&Command::script("kill -KILL $$; sleep 1"), SOON).await.unwrap_err();
        assert_eq!(suicide.code, Code::OperationFailed);
        assert_eq!(way.run(&Command::new("true"), SOON).await.unwrap().status, 0);
    }
    pool.close().await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the lab (tests/lab/up)"]
async fn thirty_at_once_are_served_by_ten_sessions() {
    let bench = Bench::new();
    let (pool, way) = bench.open().await;
    let work = (0..30).map(|n: i32| {
        let way = way.clone();
        tokio::spawn(async move {
            let command = Command::script("sleep 0.1; echo $1").arg(n.to_string());
            match n % 3 {
                0 => way.run(&command, SOON).await.unwrap().text(),
                1 => way.stream(&command, SOON, &mut |_, _| {}).await.unwrap().text(),
                _ => way.feed(&command, &mut &b"x"[..], SOON).await.unwrap().text(),
            }
        })
    });
    for (n, done) in work.collect::<Vec<_>>().into_iter().enumerate() {
        assert_eq!(done.await.unwrap().trim(), n.to_string());
    }
    // Two pools stand for two processes: more sessions are wanted than sshd gives.
    let other = bench.pool("");
    let second = other.open(&HostName::new(HOST)).await.unwrap();
    let work = (0..30).map(|n: usize| {
        let way = if n % 2 == 0 { way.clone() } else { second.clone() };
        tokio::spawn(
            async move { way.stream(&Command::script("sleep 0.1"), SOON, &mut |_, _| {}).await.unwrap().status },
        )
    });
    for done in work.collect::<Vec<_>>() {
        assert_eq!(done.await.unwrap(), 0);
    }
    assert_eq!(bench.masters().len(), 1);
    pool.close().await;
    other.close().await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the lab (tests/lab/up)"]
async fn a_small_command_costs_one_round_trip_and_waits_for_no_slow_one() {
    let bench = Bench::new();
    let (pool, way) = bench.open().await;
    way.run(&Command::new("true"), SOON).await.unwrap();
    let shell = way.run(&Command::script("echo $$"), SOON).await.unwrap().text();
    let before = way.round_trips();
    for _ in 0..20 {
        assert_eq!(way.run(&Command::script("echo $$"), SOON).await.unwrap().text(), shell, "the same shell");
    }
    assert_eq!(way.round_trips() - before, 20);
    assert!(way.latency().unwrap() < Duration::from_millis(200));

    let slow = {
        let way = way.clone();
        tokio::spawn(async move { way.run(&Command::script("sleep 3"), SOON).await })
    };
    tokio::time::sleep(Duration::from_millis(100)).await;
    let started = Instant::now();
    way.run(&Command::new("true"), SOON).await.unwrap();
    assert!(started.elapsed() < Duration::from_millis(1500), "{:?}", started.elapsed());
    slow.await.unwrap().unwrap();
    pool.close().await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the lab (tests/lab/up)"]
async fn lines_come_as_they_are_written() {
    let bench = Bench::new();
    let (pool, ssh) = bench.open().await;
    let local = pool.open(&HostName::new("local")).await.unwrap();
    for way in [&ssh, &local] {
        let started = Instant::now();
        let mut seen = Vec::new();
        let command = Command::script("for i in 1 2 3; do echo line $i; sleep 0.2; done; echo err >&2; printf last");
        let mut sink = |source: Source, line: &[u8]| {
            seen.push((source, String::from_utf8_lossy(line).into_owned(), started.elapsed()))
        };
        way.stream(&command, SOON, &mut sink).await.unwrap();
        let texts: Vec<_> =
            seen.iter().filter(|(source, ..)| *source == Source::Stdout).map(|(_, text, _)| text.as_str()).collect();
        assert_eq!(texts, ["line 1", "line 2", "line 3", "last"]);
        assert!(seen.iter().any(|(source, text, _)| (*source, text.as_str()) == (Source::Stderr, "err")));
        assert!(seen[2].2 - seen[0].2 > Duration::from_millis(250), "{seen:?}");

        let mut lengths = Vec::new();
        let flood = "head -c 9000000 /dev/zero; echo; echo end";
        let kept =
            way.stream(&Command::script(flood), SOON, &mut |_, line: &[u8]| lengths.push(line.len())).await.unwrap();
        assert_eq!(lengths, [64 * 1024, 3]);
        assert!(kept.truncated && kept.stdout.len() >= 64 * 1024 && kept.stdout.ends_with(b"end\n"));
        let head = way.run(&Command::script(flood), SOON).await.unwrap();
        assert!(head.truncated && head.stdout.len() == sandboxer::transport::OUTPUT_LIMIT);
    }
    pool.close().await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the lab (tests/lab/up)"]
async fn a_fed_command_that_gives_up_is_heard() {
    let bench = Bench::new();
    let (pool, ssh) = bench.open().await;
    let local = pool.open(&HostName::new("local")).await.unwrap();
    for (way, nap) in [(&ssh, "310.001"), (&local, "310.002")] {
        let data = vec![7; 20_000_000];
        let counted = way.feed(&Command::script("wc -c"), &mut &data[..], SOON).await.unwrap();
        assert_eq!(counted.text().trim(), "20000000");
        let full = Command::script("head -c 10 >/dev/null; echo 'No space left on device' >&2; exit 1");
        let full = way.feed(&full, &mut &data[..], SOON).await.unwrap();
        assert_eq!((full.status, full.error_text().trim()), (1, "No space left on device"));
        let idle = Duration::from_millis(500);
        let stuck = way.feed(&Command::script("cat >/dev/null; sleep $1").arg(nap), &mut &data[..10], idle).await;
        assert_eq!(stuck.unwrap_err().code, Code::Timeout);
        assert!(until(GONE, || !sleeps(nap)).await, "a stalled command is ended");
    }
    pool.close().await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the lab (tests/lab/up)"]
async fn each_way_not_to_connect_has_its_kind() {
    let bench = Bench::new();
    let closed = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().port()
    };
    let started = Instant::now();
    let fault = refusal(&bench, &format!("Host {HOST}\n Port {closed}\n")).await;
    assert_eq!((fault.code.clone(), kind(&fault).as_str(), fault.retryable), (Code::HostUnreachable, "refused", true));
    assert!(
        fault.causes()[0].contains("Connection refused") && started.elapsed() < Duration::from_secs(5),
        "{fault:?}"
    );

    let fault = refusal(&bench, &format!("Host {HOST}\n HostName nosuch.invalid\n")).await;
    assert_eq!(kind(&fault), "resolve", "{fault:?} {:?}", fault.causes());
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the lab (tests/lab/up)"]
async fn keys_that_are_wrong_unknown_or_changed_are_told_apart() {
    let bench = Bench::new();
    let key = stranger(&bench);
    let config = bench.config("");
    let text = fs::read_to_string(&config).unwrap();
    let with = |from: &str, to: &str| {
        let lines = text.lines().map(|line| if line.trim_start().starts_with(from) { to } else { line });
        fs::write(&config, lines.collect::<Vec<_>>().join("\n")).unwrap();
        pool(&config, &bench.control())
    };
    let fails = async |pool: Pool| match pool.open(&HostName::new(HOST)).await {
        Ok(_) => panic!("connected"),
        Err(fault) => fault,
    };

    let fault = fails(with("IdentityFile ", &format!("IdentityFile {}", key.display()))).await;
    assert_eq!(
        (kind(&fault).as_str(), fault.hint.as_deref(), fault.retryable),
        ("credentials", Some("run renew"), false)
    );
    assert!(fault.causes()[0].contains("Permission denied"), "{:?}", fault.causes());

    for strict in ["", "StrictHostKeyChecking ask"] {
        let none = format!("UserKnownHostsFile /dev/null\n{strict}");
        let fault = fails(with("UserKnownHostsFile ", &none)).await;
        assert_eq!(kind(&fault), "unknown_host_key", "{:?}", fault.causes());
        let hint = fault.hint.unwrap();
        assert!(
            hint.contains(&format!("ssh -F {} -o StrictHostKeyChecking=ask {HOST} true", config.display())),
            "{hint}"
        );
    }

    let known = bench.dir.path().join("known");
    let public = fs::read_to_string(key.with_extension("pub")).unwrap();
    fs::write(&known, format!("{HOST} {public}")).unwrap();
    let fault = fails(with("UserKnownHostsFile ", &format!("UserKnownHostsFile {}", known.display()))).await;
    assert_eq!(fault.code, Code::HostChanged, "{:?}", fault.causes());
    assert!(fault.hint.unwrap().contains(&format!("ssh-keygen -R {HOST} -f {}", known.display())));
    assert!(bench.masters().is_empty(), "no attempt leaves a process behind");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the lab (tests/lab/up)"]
async fn a_silent_peer_is_given_up_once_for_all_who_wait() {
    let bench = Bench::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let pool = Arc::new(bench.pool(&format!("Host {HOST}\n Port {port}\n")));
    let started = Instant::now();
    let waiting: Vec<_> = (0..5)
        .map(|_| {
            let pool = pool.clone();
            tokio::spawn(async move { pool.open(&HostName::new(HOST)).await.map(drop).unwrap_err() })
        })
        .collect();
    for fault in waiting {
        let fault = fault.await.unwrap();
        assert_eq!(
            (fault.code.clone(), kind(&fault).as_str()),
            (Code::HostUnreachable, "timeout"),
            "{:?}",
            fault.causes()
        );
    }
    assert!(started.elapsed() < Duration::from_secs(12), "{:?}", started.elapsed());

    // Dropped half-way, the attempt leaves nothing that goes on connecting.
    let dropped = tokio::time::timeout(Duration::from_millis(500), pool.open(&HostName::new(HOST))).await;
    assert!(dropped.is_err());
    assert!(until(Duration::from_secs(2), || bench.masters().is_empty()).await);
    assert!(
        fs::read_dir(bench.control()).unwrap().all(|entry| entry
            .unwrap()
            .path()
            .extension()
            .is_some_and(|e| e == "lock"))
    );
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the lab (tests/lab/up)"]
async fn a_connection_that_is_cut_is_lost_and_made_again() {
    let bench = Bench::new();
    let (pool, way) = bench.open().await;
    // The shell's parent is the sshd of our own connection.
    let sshd: i32 = way.run(&Command::script("echo $PPID"), SOON).await.unwrap().text().trim().parse().unwrap();
    let busy = {
        let way = way.clone();
        tokio::spawn(async move { way.run(&Command::script("sleep 311.001"), SOON).await })
    };
    assert!(until(SOON, || sleeps("311.001")).await);
    signal("-KILL", sshd);
    let fault = busy.await.unwrap().unwrap_err();
    assert_eq!(
        (fault.code.clone(), kind(&fault).as_str(), fault.retryable),
        (Code::HostUnreachable, "lost", true),
        "{fault:?}"
    );
    assert_eq!(way.run(&Command::new("true"), SOON).await.unwrap().status, 0, "connected again");
    assert!(until(GONE, || !sleeps("311.001")).await, "what ran is ended by its watchdog");

    // A master that is killed between two commands.
    for master in bench.masters() {
        signal("-KILL", master);
    }
    assert!(until(SOON, || bench.masters().is_empty()).await);
    assert_eq!(way.run(&Command::new("true"), SOON).await.unwrap().status, 0);
    for master in bench.masters() {
        signal("-KILL", master);
    }
    assert!(until(SOON, || bench.masters().is_empty()).await);
    let again = pool.open(&HostName::new(HOST)).await.unwrap();
    assert!(Arc::ptr_eq(&way, &again));
    assert_eq!(again.stream(&Command::new("true"), SOON, &mut |_, _| {}).await.unwrap().status, 0);
    pool.close().await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the lab (tests/lab/up)"]
async fn cancelled_and_late_commands_leave_no_process() {
    let bench = Bench::new();
    let (pool, ssh) = bench.open().await;
    let local = pool.open(&HostName::new("local")).await.unwrap();
    for (way, base) in [(&ssh, 312), (&local, 313)] {
        let naps: Vec<String> = (1..=5).map(|n| format!("{base}.00{n}")).collect();
        let short = Duration::from_secs(1);
        let late = way.run(&Command::script("sleep $1").arg(&naps[0]), short).await.unwrap_err();
        assert_eq!(late.code, Code::Timeout);
        let late = way.stream(&Command::new("sleep").arg(&naps[1]), short, &mut |_, _| {}).await.unwrap_err();
        assert_eq!(late.code, Code::Timeout);
        // Dropped, and deaf to TERM.
        let stubborn = Command::script("trap '' TERM; sleep $1").arg(&naps[2]);
        let mut sink = |_: Source, _: &[u8]| {};
        assert!(tokio::time::timeout(short, way.stream(&stubborn, SOON, &mut sink)).await.is_err());
        assert!(sleeps(&naps[2]));
        let fed = Command::script("trap '' TERM; cat >/dev/null; sleep $1").arg(&naps[3]);
        assert!(tokio::time::timeout(short, way.feed(&fed, &mut &b"x"[..], SOON)).await.is_err());
        if way.spec().name.is_local() {
            assert!(until(GONE, || naps.iter().all(|nap| !sleeps(nap))).await);
        } else {
            // A process group of its own, which only the session betrays.
            let hidden = Command::script("timeout 320 sleep $1").arg(&naps[4]);
            assert_eq!(way.run(&hidden, short).await.unwrap_err().code, Code::Timeout);
            assert!(until(GONE, || naps.iter().all(|nap| !sleeps(nap))).await);
        }
    }
    pool.close().await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the lab (tests/lab/up)"]
async fn a_normal_end_leaves_nothing_behind() {
    let bench = Bench::new();
    let (pool, way) = bench.open().await;
    let session = |text: String| text.trim().to_owned();
    let mut shells = Vec::new();
    shells.push(session(way.stream(&Command::script("echo $$"), SOON, &mut |_, _| {}).await.unwrap().text()));
    shells.push(session(way.feed(&Command::script("echo $$"), &mut &b""[..], SOON).await.unwrap().text()));
    shells.push(session(way.run(&Command::script("echo $$"), SOON).await.unwrap().text()));
    pool.close().await;
    let left = || {
        let entries = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
        let stats = entries.filter_map(|entry| fs::read_to_string(entry.path().join("stat")).ok());
        let sessions = stats.filter_map(|stat| stat.rsplit_once(") ")?.1.split(' ').nth(3).map(str::to_owned));
        sessions.filter(|id| shells.contains(id)).count()
    };
    assert!(until(Duration::from_secs(2), || left() == 0).await, "{shells:?}");
}

/// Not a test of its own: what the two tests below start as another process.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "started by other tests"]
async fn as_another_process() {
    let (Some(dir), Some(nap)) = (std::env::var_os("SBX_BENCH"), std::env::var_os("SBX_NAP")) else { return };
    let dir = PathBuf::from(dir);
    let pool = pool(&dir.join("config"), &dir.join("c"));
    let host = HostName::new(std::env::var("SBX_HOST").unwrap());
    let way = pool.open(&host).await.unwrap();
    let (first, second) = (Command::script("trap '' TERM; sleep $1").arg(&nap), Command::new("sleep").arg(&nap));
    let mut sink = |_: Source, _: &[u8]| {};
    let (ran, streamed) = tokio::join!(way.run(&first, SOON), way.stream(&second, SOON, &mut sink));
    assert!(ran.unwrap().ok() && streamed.unwrap().ok());
    pool.close().await;
}

fn another_process(bench: &Bench, host: &str, nap: &str) -> Child {
    let mut program = Program::new(std::env::current_exe().unwrap());
    program.args(["--ignored", "--exact", "as_another_process"]);
    program.env("SBX_BENCH", bench.dir.path()).env("SBX_NAP", nap).env("SBX_HOST", host);
    program.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the lab (tests/lab/up)"]
async fn a_killed_console_leaves_no_process() {
    let bench = Bench::new();
    bench.config("");
    for (host, nap) in [(HOST, "314.001"), ("local", "314.002")] {
        let mut console = another_process(&bench, host, nap);
        assert!(until(SOON, || processes(|line| line.trim_end() == format!("sleep {nap}")).len() == 2).await);
        console.kill().unwrap();
        console.wait().unwrap();
        assert!(until(GONE, || !sleeps(nap)).await);
    }
    let mut console = another_process(&bench, HOST, "314.003");
    assert!(until(SOON, || sleeps("314.003")).await);
    for master in bench.masters() {
        signal("-KILL", master);
    }
    assert!(until(GONE, || !sleeps("314.003")).await, "the shared connection was killed");
    assert!(!console.wait().unwrap().success());
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the lab (tests/lab/up)"]
async fn processes_share_one_connection() {
    let bench = Bench::new();
    bench.config("");
    let consoles: Vec<_> = (0..4).map(|_| another_process(&bench, HOST, "1")).collect();
    for mut console in consoles {
        assert!(console.wait().unwrap().success());
    }
    assert_eq!(bench.masters().len(), 1);

    // A socket that nobody listens on any more is no obstacle.
    for master in bench.masters() {
        signal("-KILL", master);
    }
    assert!(until(SOON, || bench.masters().is_empty()).await);
    let sockets =
        || fs::read_dir(bench.control()).unwrap().filter(|e| e.as_ref().unwrap().path().extension().is_none()).count();
    assert_eq!(sockets(), 1);
    assert!(another_process(&bench, HOST, "0.1").wait().unwrap().success());
    assert_eq!((sockets(), bench.masters().len()), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the lab (tests/lab/up)"]
async fn another_program_uses_our_connection_or_none() {
    let bench = Bench::new();
    let (pool, way) = bench.open().await;
    let shell = way.remote_shell();
    let ssh = || {
        Program::new(&shell.command[0])
            .args(&shell.command[1..])
            .arg(&shell.target)
            .arg("echo over")
            .stdin(Stdio::null())
            .output()
    };
    assert_eq!(ssh().unwrap().stdout, b"over\n");
    for master in bench.masters() {
        signal("-KILL", master);
    }
    assert!(until(SOON, || bench.masters().is_empty()).await);
    let dead = ssh().unwrap();
    assert_eq!((dead.status.code(), dead.stdout.len()), (Some(255), 0));
    pool.close().await;
}
