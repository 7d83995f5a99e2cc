//! A command or a shell in a service's container.
//!
//! Never `compose exec`: flavours differ, and podman-compose 1.0 answers 0 for a command that failed. The engine is asked
//! by label, in the same session in which the command then runs.

use uuid::Uuid;

use crate::domain::error::{Code, Error};
use crate::domain::extension::{ExecRun, Target};
use crate::domain::output::{Interactive, OutputSink};
use crate::extensions::compose_ssh::deps::Deps;
use crate::extensions::compose_ssh::handle::Stack;
use crate::extensions::workspace::exec::{self, Went, ask, judged, silent};
use crate::extensions::workspace::script_output::unproved;
use crate::extensions::workspace::{expected_of, owners};
use crate::transport::{Command, watchdog};

/// The definitions that whoever looks for a container stands on.
macro_rules! proving {
    () => {
        concat!(
            include_str!("../../transport/scripts/runtime.sh"),
            include_str!("../workspace/scripts/says.sh"),
            include_str!("../workspace/scripts/place.sh"),
            include_str!("../workspace/scripts/engine.sh"),
            include_str!("../workspace/scripts/belonging.sh"),
            include_str!("../workspace/scripts/stand.sh"),
            include_str!("scripts/prove.sh")
        )
    };
}
pub(super) use proving;

const EXEC_SH: &str = concat!(
    proving!(),
    include_str!("scripts/find.sh"),
    include_str!("scripts/leave.sh"),
    include_str!("scripts/exec.sh")
);
/// Which container of a service runs.
pub(super) const RUNNING_SH: &str =
    concat!(proving!(), include_str!("scripts/find.sh"), include_str!("scripts/running.sh"));
const SHELL_SH: &str = concat!(include_str!("scripts/leave.sh"), include_str!("scripts/shell.sh"));
/// Killing an engine's client ends nothing in the container, so the watchdog goes in with the command.
const INSIDE_SH: &str = include_str!("scripts/inside.sh");
/// Says that the command runs, and becomes it. One that a shell would take for an option is none that is there.
const READING_SH: &str =
    "echo ok; case $1 in -*) echo \"$1: not found\" >&2; exit 127 ;; esac; exec \"$@\"";

/// The engine that has this sandbox's containers, and its services' names.
pub(super) struct Engine {
    pub(super) program: String,
    pub(super) services: Vec<String>,
}

/// Services by the sandbox's handle.
///
/// Errors: `unsupported` where the profile has none, `conflict` where nothing was started yet.
pub(super) fn engine(target: &Target) -> Result<Engine, Error> {
    let Some(stack) = Stack::from_handle(target.handle.as_ref()) else {
        return Err(Error::new(
            Code::Conflict,
            format!("nothing of sandbox {} was started", target.id),
        ));
    };
    let Some(runtime) = stack.runtime else {
        return Err(exec::no_services(target));
    };
    let services = stack.services.into_iter().map(|service| service.name).collect();
    Ok(Engine { program: runtime.engine, services })
}

impl Engine {
    /// Errors: `not_found`, with the services that there are.
    pub(super) fn service<'a>(&self, target: &Target, name: &'a str) -> Result<&'a str, Error> {
        if self.services.iter().any(|service| service == name) {
            return Ok(name);
        }
        let there = self.services.join(", ");
        Err(Error::new(Code::NotFound, format!("sandbox {} has no service {name}", target.id))
            .hint(format!("its services: {there}"))
            .detail("services", self.services.clone()))
    }
}

pub(super) async fn exec(
    deps: &Deps,
    target: &Target,
    mut run: ExecRun<'_>,
    sink: &mut dyn OutputSink,
) -> Result<Option<i32>, Error> {
    let Some(service) = run.service else {
        return exec::exec(deps.way(&target.host).await?.as_ref(), target, run, sink).await;
    };
    let engine = engine(target)?;
    let service = engine.service(target, service)?;
    let transport = deps.way(&target.host).await?;
    let watched = format!("{}{INSIDE_SH}", watchdog::PREAMBLE);
    // What reads our input cannot be watched by its end: exec.sh ends it then.
    let (stdin, inside) =
        if run.input.is_some() { ("input", READING_SH) } else { ("lifeline", watched.as_str()) };
    // A container without a shell gets the command without a watchdog. 126 and 127 before a verdict: it did not run.
    for inside in [inside, ""] {
        let script = of_service(EXEC_SH, target, &engine.program, service).with_lifeline();
        let script = script.args([stdin, inside, &mark()]).args(run.command);
        match judged(transport.as_ref(), script, run.input.as_mut(), sink).await? {
            Went::Ran(status) => return Ok(status),
            Went::Refused(line) => {
                let unproved = unproved(&line, transport.spec().name.as_str());
                return Err(unproved.unwrap_or_else(|| stopped(target, service, &line)));
            }
            Went::Silent(output) if !inside.is_empty() && matches!(output.status, 126 | 127) => {}
            Went::Silent(output) => return Err(silent(target, &output)),
        }
    }
    Err(Error::internal("a command ended before it began"))
}

pub(super) async fn shell(
    deps: &Deps,
    target: &Target,
    service: Option<&str>,
) -> Result<Interactive, Error> {
    let Some(service) = service else {
        return exec::shell(deps.way(&target.host).await?.as_ref(), target).await;
    };
    let engine = engine(target)?;
    let service = engine.service(target, service)?;
    let transport = deps.way(&target.host).await?;
    // Asked first, so that a refusal is told before the terminal is handed over.
    let question = of_service(RUNNING_SH, target, &engine.program, service);
    let output = ask(transport.as_ref(), &question).await?;
    let text = output.text();
    let Some(("ok", container)) = text.trim().split_once('\n') else {
        if let Some(error) = unproved(text.trim(), transport.spec().name.as_str()) {
            return Err(error);
        }
        if text.starts_with("stopped") {
            return Err(stopped(target, service, text.trim()));
        }
        return Err(silent(target, &output));
    };
    let words = transport
        .interactive(&Command::script(SHELL_SH).args([&engine.program, container, &mark()]))
        .await?;
    Ok(Interactive { words, folder: None })
}

/// A script that finds a container of a service, after host and engine proved to be the recorded ones.
pub(super) fn of_service(
    script: &'static str,
    target: &Target,
    program: &str,
    service: &str,
) -> Command {
    Command::script(script)
        .args([program, target.id.as_str(), &owners(target), service])
        .arg(expected_of(target))
        .arg(engine_id(target))
}

/// The engine's id as it was recorded; empty where none was.
pub(super) fn engine_id(target: &Target) -> &str {
    target
        .host_identity
        .as_ref()
        .and_then(|identity| identity.engine_id.as_deref())
        .unwrap_or_default()
}

/// A word by which the processes of one command are known in a container.
fn mark() -> String {
    Uuid::new_v4().simple().to_string()
}

pub(super) fn stopped(target: &Target, service: &str, line: &str) -> Error {
    let state = match line.strip_prefix("stopped").unwrap_or(line).trim() {
        "" => "it has no container".to_owned(),
        state => state.to_owned(),
    };
    Error::new(
        Code::Conflict,
        format!("service {service} of sandbox {} does not run: {state}", target.id),
    )
    .hint(format!("`sandboxer logs {} --service {service}` shows what it wrote", target.id))
}
