//! The world around a command in a test: what it is typed on, what it prints, and records to work on.

use std::io::{self, Write};
use std::ops::Deref;
use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream};
use futures_util::{FutureExt as _, StreamExt as _};
use sandboxer::cli::{self, Io, Local, Terminals, Tty};
use sandboxer::client::{Check, CheckState, Client, Error};
use sandboxer::domain::extension::{Inspection, Readiness, Unsettled};
use sandboxer::domain::host_view::{HostState, HostView};
use sandboxer::domain::output::Source;
use sandboxer::domain::reporter::Report;
use sandboxer::domain::teardown::Resource;
use sandboxer::domain::{Actor, Code, SandboxRecord, State, Time};
use serde_json::Value;
use tokio::sync::Notify;

use super::cli_client::Watched;
use crate::test_env::TestEnv;
use crate::test_env::fixture::{self, Fixture, host};
use crate::test_env::hosts::Machine;
use crate::test_env::script::Scripted;

/// The moment at which every test takes place.
pub(crate) fn now() -> Time {
    "2026-03-14T12:00:00Z".parse().unwrap()
}

/// How the sandbox of [`ready`] can be reached.
pub(crate) fn readiness() -> Readiness {
    let made = ready("a1b2c3d4");
    let (reachability, services) = (made.reachability.unwrap(), made.services);
    Readiness { reachability, services, unsettled: Unsettled::None }
}

/// World that a command runs in, and its client.
pub(crate) struct Console {
    env: TestEnv,
    pub(crate) client: Arc<Watched>,
}

impl Deref for Console {
    type Target = TestEnv;

    fn deref(&self) -> &TestEnv {
        &self.env
    }
}

impl Console {
    /// Calls that are more than a look, in order.
    pub(crate) fn calls(&self) -> Vec<String> {
        self.client.calls().into_iter().map(|(verb, asked)| format!("{verb} {asked}")).collect()
    }

    /// Call that came last.
    pub(crate) fn last(&self) -> (String, Value) {
        self.client.calls().pop().unwrap()
    }

    /// There is this profile, of a builtin one's text, when the catalogue is read first.
    pub(crate) fn profile(&self, name: &str, of: &str, change: impl Fn(&str) -> String) {
        let folder = self.env.folder.path().join("profiles");
        std::fs::create_dir_all(&folder).unwrap();
        let text = std::fs::read_to_string(format!("profiles/{of}.yaml")).unwrap();
        let text = text.replace(&format!("profile.{of}"), &format!("profile.{name}"));
        std::fs::write(folder.join(format!("{name}.yaml")), change(&text)).unwrap();
    }

    /// From now on this is the answer of that verb.
    pub(crate) fn answers<T: Send + 'static>(self, verb: &str, answer: T) -> Self {
        self.client.answers(verb, Ok(answer));
        self
    }
}

/// A world in which all of this is, at the moment at which every test takes place.
pub(crate) fn env_of(fixture: Fixture) -> BoxFuture<'static, Console> {
    env_with(fixture, script())
}

pub(crate) fn script() -> Scripted {
    let local = ("local".to_owned(), Machine::Says(String::new()));
    Scripted {
        seen: there().into(),
        machines: std::collections::BTreeMap::from([local]).into(),
        standing: Some(now()).into(),
        actor: Some(tester()).into(),
        counted_ids: Some(0).into(),
        ..Scripted::default()
    }
}

/// Finding of a host on a sandbox that runs.
pub(crate) fn there() -> Inspection {
    let resources = vec![Resource { kind: "directory".into(), id: "/srv/sbx".into() }];
    Inspection { resources, ready: true, ..Inspection::default() }
}

/// The same, over a script.
pub(crate) fn env_with(fixture: Fixture, script: Scripted) -> BoxFuture<'static, Console> {
    let made = async move {
        let env = TestEnv::with_script(&fixture, script).await;
        let client = Arc::new(Watched::new(Arc::clone(&env.client)));
        Console { env, client }
    };
    made.boxed()
}

/// A world with these sandboxes.
pub(crate) async fn with(records: Vec<SandboxRecord>) -> Console {
    env_of(Fixture { records, hosts: hosts(), ..Fixture::default() }).await
}

pub(crate) async fn nothing() -> Console {
    with(Vec::new()).await
}

pub(crate) fn hosts() -> Vec<HostView> {
    [("coulombcore", Some(12)), ("sandboxer01", Some(12)), ("local", None)]
        .map(|(name, latency)| host(name, HostState::Up, latency))
        .to_vec()
}

/// A record in this state, made two hours ago, with two hours left.
pub(crate) fn record(text: &str, state: State) -> SandboxRecord {
    SandboxRecord {
        created_at: now().minus_seconds(7200),
        expires_at: Some(now().plus_seconds(7200)),
        inputs: [("repo".to_owned(), "/tmp".to_owned())].into(),
        actor: tester(),
        revision: 1,
        ..fixture::record(text, None, "compose-e2e", "coulombcore", state, now())
    }
}

pub(crate) fn named(text: &str, name: &str, state: State) -> SandboxRecord {
    SandboxRecord { name: Some(name.to_owned()), ..record(text, state) }
}

pub(crate) fn ready(text: &str) -> SandboxRecord {
    let record = named(text, "my-env", State::Ready);
    let mut ready = fixture::ready(record.clone(), now().minus_seconds(7000));
    ready.services.truncate(1);
    SandboxRecord { expires_at: record.expires_at, ..ready }
}

pub(crate) fn failed(text: &str) -> SandboxRecord {
    fixture::failed(record(text, State::Failed))
}

pub(crate) fn tester() -> Actor {
    Actor::parse("adm:tester").unwrap()
}

/// Progress of an extension, of three steps.
pub(crate) fn report(step: u32, stage: &'static str, message: Option<&str>) -> Report {
    let message = message.map(str::to_owned);
    Report { stage, step, steps: 3, done: None, of: None, bytes: None, message }
}

/// Where a test writes to.
#[derive(Clone, Default)]
pub(crate) struct Page(Arc<Mutex<Vec<u8>>>);

impl Page {
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl Write for Page {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A reader that went away, or a full disk.
pub(crate) struct Broken(io::ErrorKind);

impl Write for Broken {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(self.0.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The terminal that a test's person sits at: what is shown there, and what is typed.
struct Desk {
    page: Page,
    types: &'static str,
}

impl Tty for Desk {
    fn ask(&mut self, question: &str) -> io::Result<()> {
        self.page.write_all(question.as_bytes())
    }

    fn answer(&mut self) -> io::Result<Option<String>> {
        Ok((!self.types.is_empty()).then(|| self.types.to_owned()))
    }

    fn end_line(&mut self) {
        self.page.write_all(b"\n").unwrap();
    }
}

/// How a test's world differs from a script's.
#[derive(Default)]
#[allow(clippy::struct_excessive_bools, reason = "each is an independent fact of the terminal")]
pub(crate) struct World {
    pub(crate) terminal: bool,
    /// Text that is typed at a question, or that a script's standard input is.
    pub(crate) types: &'static str,
    /// Whether the locale is not UTF-8.
    pub(crate) plain_locale: bool,
    /// Whether nobody can be asked although standard input is a terminal.
    pub(crate) no_tty: bool,
    /// Whether stderr leads into a file on a terminal too.
    pub(crate) stderr_to_file: bool,
    pub(crate) presses: usize,
    /// Event to be awaited before the first of them.
    pub(crate) after: Option<Arc<Notify>>,
    /// Verb that the extension is asked before any of them.
    pub(crate) once: Option<&'static str>,
    pub(crate) width: Option<usize>,
    pub(crate) stdout: Option<io::ErrorKind>,
    pub(crate) takes: Option<fn(Source) -> bool>,
    pub(crate) reader_left: Option<fn() -> bool>,
}

pub(crate) struct Ran {
    pub(crate) status: u8,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    /// Screen of the terminal that is asked on.
    pub(crate) tty: String,
    pub(crate) left_at_once: bool,
}

impl Ran {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{error}: {:?}", self.stdout))
    }

    /// Its status, and all that it wrote.
    pub(crate) fn all(&self) -> (u8, &str, &str) {
        (self.status, self.stdout.as_str(), self.stderr.as_str())
    }

    /// Its status, and what it wrote to its output.
    pub(crate) fn out(&self) -> (u8, &str) {
        (self.status, self.stdout.as_str())
    }

    /// Its status, and what it said beside its output.
    pub(crate) fn said(&self) -> (u8, &str) {
        (self.status, self.stderr.as_str())
    }

    /// Its status, and the code of its error.
    pub(crate) fn code(&self) -> (u8, String) {
        (self.status, self.error()["code"].as_str().unwrap().to_owned())
    }

    pub(crate) fn error(&self) -> Value {
        let last = self.stderr.lines().last().unwrap_or_default();
        serde_json::from_str::<Value>(last)
            .unwrap_or_else(|error| panic!("{error}: {:?}", self.stderr))["error"]
            .clone()
    }
}

impl std::fmt::Display for Ran {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (status, stdout, stderr) = self.all();
        write!(f, "status {status}\n--- stdout\n{stdout}--- stderr\n{stderr}")?;
        if self.tty.is_empty() { Ok(()) } else { write!(f, "--- /dev/tty\n{}", self.tty) }
    }
}

pub(crate) fn words(line: &str) -> Vec<String> {
    shlex::split(&format!("sandboxer {line}")).unwrap()
}

pub(crate) async fn run_in(world: World, console: &Console, line: &str) -> Ran {
    run_args(world, console, words(line)).await
}

pub(crate) async fn run_args(world: World, console: &Console, args: Vec<String>) -> Ran {
    let (stdout, stderr, tty) = (Page::default(), Page::default(), Page::default());
    let (shown, types, no_tty) = (tty.clone(), world.types, world.no_tty);
    let mut io = Io {
        stdout: match world.stdout {
            // As the process's own stdout: what ends without a line feed is written by the flush.
            Some(kind) => Box::new(io::LineWriter::new(Broken(kind))),
            None => Box::new(stdout.clone()),
        },
        stderr: Box::new(stderr.clone()),
        stdin: Box::new(io::Cursor::new(world.types)),
        takes: world.takes.unwrap_or(|_| true),
        reader_left: world.reader_left.unwrap_or(|| false),
        input: Box::new(move || stream::iter([Ok(types.as_bytes().to_vec())]).boxed()),
        tty: Box::new(move || {
            if no_tty {
                Err(io::Error::from_raw_os_error(6))
            } else {
                Ok(Box::new(Desk { page: shown.clone(), types }))
            }
        }),
        terminals: Terminals {
            stdin: world.terminal,
            stdout: world.terminal,
            stderr: world.terminal && !world.stderr_to_file,
        },
        width: world.width,
        color: true,
        unicode: !world.plain_locale,
        moves: true,
        interrupts: presses(world.presses, world.after, world.once, &console.script),
        now,
        leave_at_once: false,
    };
    let validate = |path: &std::path::Path| {
        if path.to_str() == Some("good.yaml") {
            return Ok(());
        }
        let mut problem =
            Error::new(Code::InvalidProfile, format!("{} is no profile", path.display()));
        problem.causes = vec!["3:1: unknown key 'tll', did you mean 'ttl'?".into()];
        Err(problem)
    };
    let doctor = |claim| async move { Ok(checks(claim)) }.boxed();
    let local = Local { validate_profile: &validate, doctor: &doctor };
    let status = match cli::parse(args) {
        Ok(cli) => {
            let client = || Some(console.client.clone() as Arc<dyn Client>);
            match cli::alone(&cli, client, &local, &mut io).await {
                Some(status) => status,
                None => cli::run(cli, console.client.clone(), &local, &mut io).await,
            }
        }
        Err(outcome) => outcome.finish(&mut io),
    };
    let left_at_once = io.leave_at_once;
    Ran { status, stdout: stdout.text(), stderr: stderr.text(), tty: tty.text(), left_at_once }
}

/// So many Ctrl-C, each after a while in which all that is there already has been heard of.
fn presses(
    count: usize,
    after: Option<Arc<Notify>>,
    once: Option<&'static str>,
    script: &Arc<Scripted>,
) -> BoxStream<'static, ()> {
    let (script, before) = (Arc::clone(script), script.asked().len());
    let pressed = stream::iter(0..count).then(move |_| {
        let (after, script) = (after.clone(), Arc::clone(&script));
        async move {
            if let Some(after) = after {
                after.notified().await;
            }
            let begun = |once| script.asked()[before..].iter().any(|asked| asked.starts_with(once));
            while !once.is_none_or(begun) {
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
            tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        }
    });
    pressed.chain(stream::pending()).boxed()
}

/// Status that a line exits with.
pub(crate) async fn exits(console: &Console, line: &str) -> u8 {
    run(console, line).await.status
}

/// Document that a line answers with.
pub(crate) async fn document(console: &Console, line: &str) -> Value {
    run(console, &format!("{line} --json")).await.json()
}

pub(crate) async fn run(console: &Console, line: &str) -> Ran {
    run_in(World::default(), console, line).await
}

/// So many Ctrl-C, once the extension was asked that.
pub(crate) fn pressed(presses: usize, once: &'static str) -> World {
    World { presses, once: Some(once), ..World::default() }
}

pub(crate) fn on_terminal(types: &'static str) -> World {
    World { terminal: true, types, ..World::default() }
}

pub(crate) async fn fleet() -> Console {
    let mut degraded = named("b0000001", "web-canary", State::Ready);
    degraded.services = vec![fixture::service("db", "exited", Some(137))];
    let mut silent = record("c0000001", State::Ready);
    silent.host = "sandboxer01".into();
    silent.observed_at = Some(now().minus_seconds(9000));
    silent.expires_at = None;
    let mut over = record("d0000001", State::Sleeping);
    over.expires_at = Some(now().minus_seconds(300));
    with(vec![ready("a1b2c3d4"), degraded, silent, over, failed("e0000001")]).await
}

/// Findings of `doctor` here: with `--claim` everything is well.
pub(crate) fn checks(claim: bool) -> Vec<Check> {
    let check = |name: &str, state, message: &str, hint: Option<&str>| Check {
        name: name.into(),
        state,
        message: message.into(),
        hint: hint.map(str::to_owned),
    };
    let mut checks = vec![check("ssh", CheckState::Ok, "OpenSSH_9.2p1", None)];
    if !claim {
        let host = "host coulombcore\u{1b}[2J";
        let (plain, refused) =
            ("the locale is not UTF-8", "refuses the connection\nssh: port 22: refused");
        checks.push(check("terminal", CheckState::Warning, plain, Some("--ascii")));
        checks.push(check(host, CheckState::Failed, refused, Some("look")));
    }
    checks
}
