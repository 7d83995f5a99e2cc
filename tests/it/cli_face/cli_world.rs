//! The world around a command in a test: what it is typed on, what it prints, and records to work on.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use futures_util::stream;
use futures_util::{FutureExt as _, StreamExt as _};
use sandboxer::cli::{self, Io, Local, Terminals, Tty};
use sandboxer::client::{Check, CheckState, Decision, Error, ExtensionView, ProfileView, Update};
use sandboxer::domain::extension::{Preview, Refusal};
use sandboxer::domain::host_view::HostView;
use sandboxer::domain::output::Source;
use sandboxer::domain::route::{CandidateVerdict, RouteCondition};
use sandboxer::domain::sandbox::{Endpoint, Failure, Reachability, Route, Service, Verdict};
use sandboxer::domain::{
    Actor, Code, Event, EventId, EventKind, HostName, OperationId, OperationKind, Progress,
    SandboxRecord, State, Usd,
};
use serde_json::{Value, json};

use super::cli_client::{FakeClient, id, now};

/// A record in this state, made two hours ago, with two hours left.
pub(crate) fn record(text: &str, state: State) -> SandboxRecord {
    let value = json!({
        "id": text, "name": null, "labels": {},
        "profile": {"id": "profile.compose-e2e", "version": "1.0.0", "hash": "00"},
        "extension": "ext.compose-ssh", "host": "coulombcore", "host_identity": null, "workdir": null,
        "state": state, "reason": null, "message": null, "since": now(), "observed_at": now(), "revision": 7,
        "operation": null, "handle": null, "reachability": null, "created_at": now().minus_seconds(7200),
        "ready_at": null, "expires_at": now().plus_seconds(7200), "max_expires_at": null,
        "based_on_snapshot": null, "patch_error": null, "undo_of": null, "quote_usd": null, "hold_usd": null,
        "cost_usd": null, "route": null, "failure": null, "telemetry": null, "certificate": null,
        "actor": {"type": "adm", "name": "tester"}, "owner": "0123456789ab", "idempotency_key": null,
    });
    serde_json::from_value(value).unwrap()
}

pub(crate) fn named(text: &str, name: &str, state: State) -> SandboxRecord {
    SandboxRecord { name: Some(name.to_owned()), ..record(text, state) }
}

pub(crate) fn ready(text: &str) -> SandboxRecord {
    let mut record = named(text, "my-env", State::Ready);
    record.workdir = Some(format!("/home/ops/sandboxes/sbx-{text}"));
    record.services = vec![Service {
        name: "web".into(),
        state: "running".into(),
        exit_code: None,
        restarts: None,
        health: None,
    }];
    record.reachability = Some(Reachability {
        host: HostName::new("coulombcore"),
        ssh: format!("ssh -t ops@coulombcore 'cd sandboxes/sbx-{text}/workspace && exec $SHELL'"),
        workdir: format!("/home/ops/sandboxes/sbx-{text}/workspace"),
        endpoints: vec![Endpoint {
            service: "web".into(),
            container_port: 80,
            host_port: 32768,
            protocol: "tcp".into(),
            url: "http://127.0.0.1:32768".into(),
            tunnel: Some("ssh -N -L 8080:127.0.0.1:32768 ops@coulombcore".into()),
        }],
        attachments: vec![],
    });
    record
}

pub(crate) fn failed(text: &str) -> SandboxRecord {
    let mut record = record(text, State::Failed);
    record.message = Some("the compose stack did not start".into());
    record.failure = Some(Failure {
        step: "start".into(),
        exit_status: Some(1),
        output: "pulling web\n\u{1b}[31mno such image\u{1b}[0m\nfailed".into(),
    });
    record
}

pub(crate) fn event(seq: u64, kind: EventKind, sandbox: &str) -> Event {
    Event {
        seq,
        sandbox_seq: Some(1),
        id: EventId::new("00000000-0000-4000-8000-000000000000"),
        time: now(),
        kind,
        sandbox_id: Some(id(sandbox)),
        actor: Actor::parse("adm:tester").unwrap(),
        data: json!({"host": "coulombcore\u{1b}[2J"}),
    }
}

pub(crate) fn host(name: &str, state: &str) -> HostView {
    let value = json!({
        "name": name, "ssh": format!("ops@{name}"), "state": state, "latency_ms": 12, "checked_at": now(),
        "message": (state == "down").then_some("ssh: connect to host: Connection refused"), "hint": null,
        "sandboxes": 2, "max_sandboxes": 30, "facts": null,
    });
    serde_json::from_value(value).unwrap()
}

pub(crate) fn profile(id: &str, error: Option<&str>) -> ProfileView {
    ProfileView {
        id: id.into(),
        version: Some("1.0.0".into()),
        summary: Some("Runs a compose stack".into()),
        extension: Some("ext.compose-ssh".into()),
        available: true,
        unavailable: None,
        source: "builtin".into(),
        path: None,
        overrides_builtin: false,
        error: error.map(str::to_owned),
        hash: Some("00".into()),
        profile: None,
    }
}

pub(crate) fn extension() -> ExtensionView {
    let manifest = json!({
        "id": "ext.compose-ssh", "version": "1.0.0", "summary": "A directory and a compose stack on a host",
        "kind": "builtin", "capabilities": ["exec", "logs"], "rates": {},
    });
    ExtensionView {
        id: "ext.compose-ssh".into(),
        version: Some("1.0.0".into()),
        available: true,
        unavailable: None,
        source: "builtin".into(),
        path: None,
        overrides_builtin: false,
        error: None,
        manifest: Some(serde_json::from_value(manifest).unwrap()),
        place: None,
    }
}

pub(crate) fn decision(refusals: usize, placed: bool) -> Decision {
    let verdict = Verdict {
        host: HostName::new("coulombcore"),
        ok: placed,
        reason: "load is 0.4 per core".into(),
    };
    let refusal = |n: usize| Refusal {
        path: format!("services.web{n}.privileged"),
        message: "a privileged container leaves the sandbox".into(),
        allow: Some("privileged".into()),
    };
    let error =
        if refusals > 0 {
            let fault = Error::new(Code::InvalidInput, format!("{refusals} things are refused"));
            Some(fault.hint(
                "change the compose file, or use a profile whose compose.allow names privileged",
            ))
        } else {
            (!placed).then(|| {
                Error::new(Code::HostUnreachable, "no host can take the sandbox")
                    .hint("try --host local")
            })
        };
    Decision {
        error,
        profile: "profile.compose-e2e".into(),
        version: "1.0.0".into(),
        extension: "ext.compose-ssh".into(),
        inputs: [("repo".to_owned(), ".".to_owned())].into(),
        route: placed.then(|| Route {
            host: HostName::new("coulombcore"),
            reason: "first of the profile's list".into(),
            verdicts: vec![verdict.clone()],
            remarks: vec![],
            candidates: Vec::new(),
        }),
        verdicts: vec![verdict],
        candidates: Vec::new(),
        quote_usd: None,
        missing_usd: None,
        ttl_s: Some(14_400),
        preview: Preview {
            bytes: 1_500_000,
            files: 42,
            rewrites: vec![],
            refusals: (0..refusals).map(refusal).collect(),
            services: vec!["web".into()],
        },
        ok: refusals == 0 && placed,
    }
}

/// Decision on a profile with two candidates, of which the second takes it or is too expensive.
pub(crate) fn routed_decision(taken: bool) -> Decision {
    let down = Verdict {
        host: HostName::new("coulombcore"),
        ok: false,
        reason: "coulombcore does not answer".into(),
    };
    let candidates = vec![
        CandidateVerdict {
            extension: "ext.compose-ssh".into(),
            ok: false,
            condition: Some(RouteCondition::HostUnreachable),
            reason: "coulombcore does not answer".into(),
            quote_usd: None,
            verdicts: vec![down.clone()],
        },
        CandidateVerdict {
            extension: "ext.saas-stub".into(),
            ok: taken,
            condition: (!taken).then_some(RouteCondition::OverBudget),
            reason: if taken { "on stub, the backend's place" } else { "it costs too much" }.into(),
            quote_usd: Some(Usd::from_micros(720_000)),
            verdicts: Vec::new(),
        },
    ];
    let message = "no candidate of profile.burst-sandbox can take the sandbox";
    let error = Error::new(Code::Conflict, message).hint("a shorter --ttl costs less");
    let causes = candidates.iter().map(CandidateVerdict::sentence).collect();
    let plain = decision(0, true);
    Decision {
        ok: taken,
        error: (!taken).then_some(Error { causes, ..error }),
        profile: "profile.burst-sandbox".into(),
        extension: "ext.saas-stub".into(),
        route: plain.route.filter(|_| taken),
        verdicts: vec![down],
        quote_usd: candidates[1].quote_usd,
        candidates,
        ..plain
    }
}

pub(crate) fn progress(step: u32, stage: &str) -> Update {
    Update::Progress(Progress {
        operation: OperationId::new("op-a1b2c3d4"),
        kind: OperationKind::Create,
        sandbox_id: Some(id("a1b2c3d4")),
        snapshot_id: None,
        stage: stage.into(),
        step,
        steps: 3,
        done: None,
        of: None,
        bytes: (step == 2).then_some(3 << 20),
        message: (step == 3).then(|| "\u{1b}[1mPulling\u{1b}[0m web".into()),
    })
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
    /// What is typed at a question, or what a script's standard input is.
    pub(crate) types: &'static str,
    /// Whether the locale is not UTF-8.
    pub(crate) plain_locale: bool,
    /// Whether nobody can be asked although standard input is a terminal.
    pub(crate) no_tty: bool,
    /// Whether stderr leads into a file on a terminal too.
    pub(crate) stderr_to_file: bool,
    pub(crate) presses: usize,
    pub(crate) width: Option<usize>,
    pub(crate) stdout: Option<io::ErrorKind>,
    pub(crate) takes: Option<fn(Source) -> bool>,
    pub(crate) reader_left: Option<fn() -> bool>,
}

pub(crate) struct Ran {
    pub(crate) status: u8,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    /// What was shown on the terminal that is asked on.
    pub(crate) tty: String,
    pub(crate) left_at_once: bool,
}

impl Ran {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{error}: {:?}", self.stdout))
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
        write!(
            f,
            "status {}\n--- stdout\n{}--- stderr\n{}",
            self.status, self.stdout, self.stderr
        )?;
        if self.tty.is_empty() { Ok(()) } else { write!(f, "--- /dev/tty\n{}", self.tty) }
    }
}

pub(crate) fn words(line: &str) -> Vec<String> {
    shlex::split(&format!("sandboxer {line}")).unwrap()
}

pub(crate) async fn run_in(world: World, fake: &FakeClient, line: &str) -> Ran {
    run_args(world, fake, words(line)).await
}

pub(crate) async fn run_args(world: World, fake: &FakeClient, args: Vec<String>) -> Ran {
    let (stdout, stderr, tty) = (Page::default(), Page::default(), Page::default());
    let (shown, types, no_tty) = (tty.clone(), world.types, world.no_tty);
    let mut io = Io {
        stdout: match world.stdout {
            Some(kind) => Box::new(Broken(kind)),
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
        interrupts: presses(world.presses),
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
        Ok(cli) => cli::run(cli, Arc::new(fake.clone()), &local, &mut io).await,
        Err(outcome) => outcome.finish(&mut io),
    };
    let left_at_once = io.leave_at_once;
    Ran { status, stdout: stdout.text(), stderr: stderr.text(), tty: tty.text(), left_at_once }
}

/// So many Ctrl-C, each after a while in which all that is there already has been heard of.
pub(crate) fn presses(count: usize) -> futures_util::stream::BoxStream<'static, ()> {
    let pressed =
        stream::iter(0..count).then(|_| tokio::time::sleep(std::time::Duration::from_millis(300)));
    pressed.chain(stream::pending()).boxed()
}

pub(crate) async fn run(fake: &FakeClient, line: &str) -> Ran {
    run_in(World::default(), fake, line).await
}

pub(crate) fn on_terminal(types: &'static str) -> World {
    World { terminal: true, types, ..World::default() }
}

pub(crate) fn fleet() -> FakeClient {
    let mut degraded = named("b0000001", "web-canary", State::Ready);
    degraded.services = vec![Service {
        name: "db".into(),
        state: "exited".into(),
        exit_code: Some(137),
        restarts: None,
        health: None,
    }];
    let mut silent = record("c0000001", State::Ready);
    silent.observed_at = Some(now().minus_seconds(9000));
    silent.expires_at = None;
    let mut over = record("d0000001", State::Sleeping);
    over.expires_at = Some(now().minus_seconds(300));
    FakeClient::with(vec![ready("a1b2c3d4"), degraded, silent, over, failed("e0000001")])
}

/// What `doctor` finds here: with `--claim` everything is well.
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
        checks.push(check(
            "terminal",
            CheckState::Warning,
            "the locale is not UTF-8",
            Some("--ascii"),
        ));
        checks.push(check(
            host,
            CheckState::Failed,
            "refuses the connection\nssh: port 22: refused",
            Some("look"),
        ));
    }
    checks
}
