//! What somebody does in a sandbox or watches there: exec, shell, logs, on both engines; and thirty commands at once.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use portable_pty::{CommandBuilder, PtySize, native_pty_system};
use serde_json::{Value, json};

use crate::each_case::each_case;
use crate::lab::{Bench, DOCKER, PODMAN, Ran, Started, on_engine, on_host, text, wait_until};
use crate::support::json_assertions::JsonAssertions as _;

/// TERM at once, KILL after 5 s, in the container once more, and the machine may be busy.
const GONE: Duration = Duration::from_secs(30);

/// `web` tells a word of its run and counts; `once` ends, after a line that is longer than anybody wants.
const TALKERS: &str = r#"services:
  web:
    image: localhost/sbx-lab:1
    command: ["sh", "-c", "read -r run </proc/sys/kernel/random/uuid; i=0; while :; do echo $$run $$i; echo error >&2; i=$$((i+1)); sleep 0.1; done"]
    stop_signal: SIGKILL
  once:
    image: localhost/sbx-lab:1
    command: ["sh", "-c", "echo first; head -c 200000 /dev/zero | tr '\\0' x; echo; printf last"]
"#;

fn talkers(bench: &Bench) -> PathBuf {
    bench.repository("talkers", &[("docker-compose.yml", TALKERS), ("notes", "read me\n")])
}

/// The talkers on a host, once both have said what they say first and `once` has ended.
fn talking(bench: &Bench, host: &str, repo: &Path) -> Value {
    let made = bench.create_stack(host, repo, &[]);
    let of =
        "--filter label=com.docker.compose.project=$2 --filter label=com.docker.compose.service";
    let script = format!(
        r#"[ -n "$($1 ps -aq {of}=once --filter status=exited)" ] || exit 0
$1 logs "$($1 ps -q {of}=web)" 2>&1 | grep -x error || :"#
    );
    let project = format!("sbx-{}", text(&made["id"]));
    wait_until("they talk", || !on_engine(host, &[&script, &project]).is_empty());
    made
}

/// Our own failure: its code is on stderr's last line, its status is 125.
#[track_caller]
fn refused(ran: &Ran, code: &str) -> Value {
    let line: Value = serde_json::from_str(ran.stderr.lines().last().unwrap_or_default()).unwrap();
    assert_eq!((line["error"]["code"].as_str(), ran.status), (Some(code), Some(125)), "{ran:#?}");
    line["error"].clone()
}

/// How many command lines end with these words; the lab's containers are processes of this machine.
fn running_as(words: &[&str]) -> usize {
    let entries = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let lines = entries.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    let end = format!("{}\0", words.join("\0"));
    lines.filter(|line| line.ends_with(end.as_bytes())).count()
}

/// Whether a `sleep` of exactly this many seconds runs.
fn sleeps(seconds: &str) -> bool {
    running_as(&["sleep", seconds]) > 0
}

#[track_caller]
fn within(limit: Duration, mut done: impl FnMut() -> bool) {
    let until = Instant::now() + limit;
    while !done() {
        assert!(Instant::now() < until, "not within {limit:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn commands_run_in_the_workspace_and_in_services() {
    let bench = Bench::new();
    let repo = talkers(&bench);
    for host in [DOCKER, PODMAN] {
        let made = talking(&bench, host, &repo);
        let id = text(&made["id"]);
        let hostile = "it's $(id) \"x\"\n*";
        for service in [&[][..], &["--service", "web"]] {
            let script = "printf '<%s>' \"$1\"; cat; echo err >&2; exit 7";
            let args =
                [&["exec", &id], service, &["--", "sh", "-c", script, "sh", hostile]].concat();
            let ran = bench.run(args);
            let told = ran.json();
            assert_eq!((ran.status, told["exit_status"].as_i64()), (Some(7), Some(7)), "{ran:#?}");
            assert_eq!(text(&told["stdout"]), format!("<{hostile}>"));
            assert_eq!(text(&told["stderr"]), "err\n".to_owned());
            let killed =
                bench.run([&["exec", &id], service, &["--", "sh", "-c", "kill -KILL $$"]].concat());
            assert_eq!(killed.status, Some(137), "{killed:#?}");
            assert_eq!(text(&killed.json()["stderr"]).as_str(), "", "{killed:#?}");
            // A shell would take the second for an option.
            for words in [&["no-such-program"][..], &["-c", "env"]] {
                let nothing = bench.run([&["exec", &id], service, &["--"], words].concat());
                assert_eq!(nothing.status, Some(127), "{nothing:#?}");
            }
        }
        bench.ok(["exec", &id, "--", "cat", "notes"]).has(json!({"stdout": "read me\n"}));

        let unknown =
            refused(&bench.run(["exec", &id, "--service", "nosuch", "--", "true"]), "not_found");
        assert_eq!(unknown["details"]["services"], serde_json::json!(["web", "once"]));
        let over =
            refused(&bench.run(["exec", &id, "--service", "once", "--", "true"]), "conflict");
        over.says("Exited (0)");

        // The workspace is gone behind our back.
        let workspace = text(&made["reachability"]["workdir"]);
        on_host(host, &["mv \"$1\" \"$1.away\"", &workspace]);
        refused(&bench.run(["exec", &id, "--", "true"]), "conflict");
        // A link in its place leads out of the sandbox.
        on_host(host, &["ln -s \"$1.away\" \"$1\"", &workspace]);
        refused(&bench.run(["exec", &id, "--", "touch", "followed"]), "conflict");
        on_host(host, &["rm \"$1\"; mv \"$1.away\" \"$1\"; [ ! -e \"$1/followed\" ]", &workspace]);
    }
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_workspace_alone_has_no_services() {
    let bench = Bench::new();
    for host in ["local", DOCKER] {
        let made = bench.ok(["create", "--profile", "sandbox-canary", "--host", host]);
        let id = text(&made["id"]);
        let pwd = text(&bench.ok(["exec", &id, "--", "pwd"])["stdout"]);
        assert_eq!(pwd.trim_end(), text(&made["reachability"]["workdir"]));
        refused(&bench.run(["exec", &id, "--service", "web", "--", "true"]), "unsupported");
        bench.run(["logs", &id]).error("unsupported");
        bench.ok(["destroy", "--yes", &id]);
        refused(&bench.run(["exec", &id, "--", "true"]), "conflict");
    }
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_command_whose_console_dies_ends_in_its_container_too() {
    let bench = Bench::new();
    let repo = talkers(&bench);
    for (host, base) in [(DOCKER, "319.1"), (PODMAN, "319.2")] {
        let id = text(&bench.create_stack(host, &repo, &[])["id"]);
        for (number, signal) in ["KILL", "INT"].iter().enumerate() {
            let nap = format!("{base}{number}");
            // Deaf to TERM; busybox's sleep is a child of its own.
            let script = format!("trap '' TERM; sleep {nap}; true");
            let running = bench.start(["exec", &id, "--service", "web", "--", "sh", "-c", &script]);
            within(GONE, || sleeps(&nap));
            running.signal(signal);
            within(GONE, || !sleeps(&nap));
            drop(running);
            // One that writes all the time: podman's client dies of it before it hands anything on.
            let flood = bench.start(["exec", &id, "--service", "web", "--", "yes", &nap]);
            // The console, the engine's client, and in the container the command.
            within(GONE, || running_as(&["yes", &nap]) >= 3);
            flood.signal(signal);
            drop(flood);
            let gone = Instant::now();
            while running_as(&["yes", &nap]) > 0 {
                assert!(gone.elapsed() < GONE, "{host}, {signal}: the command goes on");
                std::thread::sleep(Duration::from_millis(50));
            }
        }
    }
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn what_a_command_left_behind_in_the_workspace_ends_with_the_sandbox() {
    let bench = Bench::new();
    for (host, nap) in [(DOCKER, "317.1"), (PODMAN, "317.2")] {
        let before = bench.snapshot(host);
        let id = text(&bench.ok(["create", "--host", host])["id"]);
        let script = format!(
            "mkdir deep; cd deep; sleep {nap} >/dev/null 2>&1 & (trap '' TERM; sleep {nap}) >/dev/null 2>&1 & echo on"
        );
        bench.ok(["exec", &id, "--", "sh", "-c", &script]).has(json!({"stdout": "on\n"}));
        // It outlives the command that began it; that one may end before its children have become what they run.
        within(GONE, || running_as(&["sleep", nap]) >= 2);
        bench.ok(["destroy", &id]);
        assert!(!sleeps(nap), "it does not outlive the sandbox");
        let record = bench.get(&id);
        let all = record["teardown"].as_array().unwrap().iter();
        let kinds: Vec<&Value> = all.map(|line| &line["resource"]["kind"]).collect();
        assert!(kinds.iter().any(|kind| **kind == "process"), "{kinds:?}");
        bench.assert_unchanged(host, &before);
    }
}

fn lines(ran: &Ran) -> Vec<Value> {
    ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn logs_are_exact_lines_of_every_service() {
    let bench = Bench::new();
    let repo = talkers(&bench);
    for host in [DOCKER, PODMAN] {
        let id = text(&talking(&bench, host, &repo)["id"]);
        let once = bench.run(["logs", &id, "--service", "once"]);
        assert_eq!(once.status, Some(0), "{once:#?}");
        let told: Vec<(usize, String)> = lines(&once)
            .iter()
            .map(|line| (text(&line["line"]).len(), text(&line["line"]).chars().take(5).collect()))
            .collect();
        let expected =
            [(5, "first".to_owned()), (128 * 1024, "xxxxx".to_owned()), (4, "last".to_owned())];
        assert_eq!(told, expected, "{host}");
        let all = bench.run(["logs", &id]);
        let mut seen: BTreeMap<(String, String), usize> = BTreeMap::new();
        for line in lines(&all) {
            *seen.entry((text(&line["service"]), text(&line["stream"]))).or_default() += 1;
        }
        let keys: Vec<_> =
            seen.keys().map(|(service, stream)| format!("{service} {stream}")).collect();
        assert_eq!(keys, ["once stdout", "web stderr", "web stdout"]);
        let few = bench.run(["logs", &id, "--service", "web", "--tail", "2"]);
        assert_eq!(lines(&few).len(), 2, "{few:#?}");
        bench.run(["logs", &id, "--service", "nosuch"]).error("not_found");
    }
}

/// What `web` counted in each of its runs, from the whole lines of a log.
fn runs_of(log: &str) -> Vec<(String, Vec<u32>)> {
    let mut runs: Vec<(String, Vec<u32>)> = Vec::new();
    let whole = log.split_inclusive('\n').filter(|line| line.ends_with('\n'));
    for line in whole
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|line| line["stream"] == "stdout")
    {
        let line = text(&line["line"]);
        let (run, count) = line.split_once(' ').unwrap();
        if runs.last().is_none_or(|(last, _)| last != run) {
            runs.push((run.to_owned(), Vec::new()));
        }
        runs.last_mut().unwrap().1.push(count.parse().unwrap());
    }
    runs
}

each_case! {
    a_followed_log_goes_on_after_a_restart_and_ends_with_the_sandbox = a_followed_log_goes_on {
        on_docker: DOCKER;
        on_podman: PODMAN;
    }
}

fn a_followed_log_goes_on(host: &'static str) {
    let bench = Bench::new();
    let repo = talkers(&bench);
    let made = bench.create_stack(host, &repo, &[]);
    let id = text(&made["id"]);
    let log = bench.path(format!("followed-{host}"));
    let mut command = bench.command(["logs", &id, "--service", "web", "--follow", "--tail", "1"]);
    command.stdout(fs::File::create(&log).unwrap());
    let following = Started::spawn(command);
    let told = || runs_of(&fs::read_to_string(&log).unwrap());
    let restart = "$1 restart -t 0 $($1 ps -q --filter label=com.docker.compose.project=$2 --filter label=com.docker.compose.service=web)";
    for run in 1..=3 {
        if run > 1 {
            on_engine(host, &[restart, &format!("sbx-{id}")]);
        }
        wait_until("some lines of the run", || {
            let told = told();
            told.len() == run && told[run - 1].1.len() > 10
        });
    }
    bench.ok(["destroy", "--yes", &id]);
    let ran = following.finish();
    assert_eq!(ran.status, Some(0), "{ran:#?}");
    let runs = told();
    assert_eq!(runs.len(), 3, "{host}: {runs:?}");
    for (number, (_, counts)) in runs.iter().enumerate() {
        let first = if number == 0 { counts[0] } else { 0 };
        let whole: Vec<u32> = (first..).take(counts.len()).collect();
        assert_eq!(*counts, whole, "{host}: nothing twice, nothing left out");
        assert!(counts.len() > 5, "{host}: {runs:?}");
    }
}

/// The binary on a terminal; what it wrote and its status, after these keys.
struct OnTerminal {
    child: Box<dyn portable_pty::Child + Send + Sync>,
    keyboard: Box<dyn std::io::Write + Send>,
    master: Box<dyn portable_pty::MasterPty + Send>,
}

impl OnTerminal {
    fn start(bench: &Bench, args: &[&str]) -> Self {
        let command = bench.command(args);
        let mut builder = CommandBuilder::new(command.get_program());
        builder.env_clear();
        for (name, value) in command.get_envs() {
            builder.env(name, value.unwrap_or_default());
        }
        builder.env("TERM", "xterm");
        // Not --json: a shell is no document.
        builder.args(command.get_args().filter(|arg| *arg != "--json"));
        let pty = native_pty_system()
            .openpty(PtySize { rows: 24, cols: 80, ..PtySize::default() })
            .unwrap();
        let child = pty.slave.spawn_command(builder).unwrap();
        let keyboard = pty.master.take_writer().unwrap();
        Self { child, keyboard, master: pty.master }
    }

    fn finish(mut self) -> (u32, String) {
        let mut screen = self.master.try_clone_reader().unwrap();
        let reader = std::thread::spawn(move || {
            let mut said = Vec::new();
            let _ = screen.read_to_end(&mut said);
            String::from_utf8_lossy(&said).into_owned()
        });
        let status = self.child.wait().unwrap().exit_code();
        drop((self.keyboard, self.master));
        (status, reader.join().unwrap())
    }
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn a_shell_has_the_terminal_and_ends_with_it() {
    let bench = Bench::new();
    let repo = talkers(&bench);
    for (host, nap) in [(DOCKER, "319.31"), (PODMAN, "319.32")] {
        let id = text(&bench.create_stack(host, &repo, &[])["id"]);
        for (service, wanted) in [(&[][..], "notes"), (&["--service", "web"], "in 42")] {
            let mut shell = OnTerminal::start(&bench, &[&["shell", &id], service].concat());
            // The lab's account has a profile that goes elsewhere, as some have.
            shell
                .keyboard
                .write_all(b"ls ${OLDPWD:-.}; echo in $((40+2)); test -t 0 && exit 5\r")
                .unwrap();
            let (status, said) = shell.finish();
            assert!(
                status == 5 && said.contains(wanted) && said.contains("in 42\r\n"),
                "{status} {said}"
            );
        }
        // The terminal goes away under a shell in a container, and what it started with it.
        let mut shell = OnTerminal::start(&bench, &["shell", &id, "--service", "web"]);
        shell.keyboard.write_all(format!("sleep {nap}\r").as_bytes()).unwrap();
        within(GONE, || sleeps(nap));
        let OnTerminal { mut child, keyboard, master } = shell;
        drop((keyboard, master));
        within(GONE, || !sleeps(nap));
        child.wait().unwrap();
    }
}

#[test]
#[ignore = "needs the lab (tests/lab/up)"]
fn thirty_commands_at_once_all_succeed() {
    let bench = Bench::new();
    let repo = talkers(&bench);
    let id = text(&bench.create_stack(DOCKER, &repo, &[])["id"]);
    let canary = ["create", "--profile", "sandbox-canary", "--host", DOCKER];
    let canaries: Vec<String> = (0..6).map(|_| text(&bench.ok(canary)["id"])).collect();
    let mut running: Vec<(String, Started)> = Vec::new();
    let mut start = |args: &[&str]| running.push((args.join(" "), bench.start(args)));
    for number in 0..8 {
        start(&canary);
        start(&["exec", &id, "--", "true"]);
        if let Some(canary) = canaries.get(number) {
            start(&["destroy", "--yes", canary]);
        }
        if number < 4 {
            start(&["list"]);
        }
        if number < 2 {
            start(&["exec", &id, "--service", "web", "--", "true"]);
            start(&["logs", &id, "--tail", "1"]);
        }
    }
    assert_eq!(running.len(), 30);
    for (words, started) in running {
        let ran = started.finish();
        assert_eq!(ran.status, Some(0), "{words}: {ran:#?}");
        eprintln!("{:>6} ms  {words}", ran.took.as_millis());
    }
}
