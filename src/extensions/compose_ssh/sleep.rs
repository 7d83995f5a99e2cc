//! Sleep and wake: what runs is stopped and written down on the host; what was written down is started again, in the order in
//! which its services need each other, and asked for as at the first start. A one-shot that had ended stays ended.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use crate::domain::error::{Code, Error};
use crate::domain::extension::{Readiness, Target, Unsettled};
use crate::domain::reporter::{Report, Reporter};
use crate::extensions::compose_ssh::deps::Deps;
use crate::extensions::compose_ssh::handle::{Expected, Stack};
use crate::extensions::compose_ssh::inspect::read;
use crate::extensions::compose_ssh::ready::{self, Asked, Wanted};
use crate::extensions::compose_ssh::runtime::Container;
use crate::extensions::workspace::script_output::ScriptOutput;
use crate::extensions::workspace::{
    Steps, exec, expected_of, failed, inspect, owners, root, workdir,
};
use crate::failpoint;
use crate::transport::Command;

/// Scripts that turn containers on and off stand behind these.
macro_rules! turn {
    () => {
        concat!(
            "sbx_letting_go='",
            include_str!("../archives/scripts/let_go.sh"),
            "'\neval \"$sbx_letting_go\"\n",
            include_str!("scripts/turn.sh")
        )
    };
}
const SLEEP_SH: &str = concat!(
    include_str!("../../transport/scripts/runtime.sh"),
    include_str!("../workspace/scripts/says.sh"),
    include_str!("../workspace/scripts/place.sh"),
    include_str!("../workspace/scripts/engine.sh"),
    include_str!("../workspace/scripts/belonging.sh"),
    include_str!("../workspace/scripts/stand.sh"),
    turn!(),
    include_str!("scripts/sleep.sh")
);
const START_SH: &str = concat!(turn!(), include_str!("scripts/start.sh"));

/// How long the containers may take to stop beyond the grace that they get, or to start.
const LIMIT: Duration = Duration::from_mins(2);

/// Stops what runs, after the host proved to be the recorded one. Where nothing runs it is only noted that it sleeps.
pub(super) async fn sleep(
    deps: &Deps,
    target: &Target,
    reporter: &dyn Reporter,
) -> Result<(), Error> {
    reporter.report(Report { stage: "stop", step: 1, steps: 1, ..Report::default() });
    let transport = deps.open(&target.host).await.map_err(Error::untouched)?;
    let transport = transport.as_ref();
    let identity = target.host_identity.as_ref();
    let runtime = Stack::from_handle(target.handle.as_ref()).and_then(|stack| stack.runtime);
    let root = root(target, &transport.spec().workspace_root);
    let grace = target.profile.stop_grace.get();
    let command = Command::script(SLEEP_SH)
        .arg(root)
        .arg(target.id.as_str())
        .arg(owners(target))
        .arg(expected_of(target))
        .arg(runtime.map_or_else(String::new, |runtime| runtime.engine))
        .arg(identity.and_then(|identity| identity.engine_id.as_deref()).unwrap_or_default())
        .arg(grace.to_string());
    let limit = LIMIT + Duration::from_secs(grace * 2);
    let output = transport
        .stream(&command, limit, &mut |_, _| {})
        .await
        .map_err(|error| error.step("stop"))?;
    let text = output.text();
    let said = ScriptOutput::read(&text);
    // Which host and engine it is, is proved before anything is stopped.
    let refused = said.value("error") == Some("identity");
    let checked = exec::stands(target, transport, root, "stop", &said);
    checked.map_err(|error| Error { untouched: refused, ..error })?;
    if said.value("slept") != Some("yes") {
        let message = format!("the containers of sandbox {} were not stopped", target.id);
        return Err(failed("stop", message, &output));
    }
    failpoint::reached("sleep.stopped");
    Ok(())
}

/// Starts what ran when it was put to sleep, and waits until all of that runs, both within `limit`. That it sleeps stays noted until it
/// has settled: what ends before is still to be started by the next wake.
pub(super) async fn wake(
    deps: &Deps,
    target: &Target,
    limit: Duration,
    reporter: &dyn Reporter,
) -> Result<Readiness, Error> {
    let until = Instant::now() + limit;
    let steps = Steps::new(reporter, 2);
    steps.next("start");
    let transport = deps.open(&target.host).await.map_err(Error::untouched)?;
    let transport = transport.as_ref();
    let looked = inspect::inspect_one(transport, target).await;
    let found = looked.map_err(Error::untouched)?;
    if !found.ours || !found.workspace {
        return Err(exec::gone(target, transport, workdir(target)?));
    }
    let stack = ready::stack(target)?;
    let containers = read(found.inspected.as_deref().unwrap_or_default(), &target.host)?;
    let asked = Asked { transport, target, stack: &stack, reporter: Some(reporter), until, limit };
    let Some(names) = found.asleep else {
        // Somebody has woken it already.
        steps.next("ready");
        return ready::until_ready(&asked, Unsettled::All, Wanted::Runs).await;
    };
    let ran = Ran::new(&stack, &containers, names).map_err(|missing| gone(target, &missing))?;
    let engine = stack.runtime.as_ref().map_or("", |runtime| runtime.engine.as_str());
    for level in ran.levels() {
        // Only Docker asks how healthy a container is without help from outside.
        if engine == "docker" {
            for service in level.iter().flat_map(|name| ran.awaited_by(name)) {
                ready::healthy(&asked, service).await?;
            }
        }
        let of = |name: &str| {
            containers.iter().find(|container| container.name == name).map(|c| c.id.as_str())
        };
        let command = start(target, engine)?.args(level.iter().filter_map(|name| of(name)));
        let output = transport.stream(&command, LIMIT, &mut |_, _| {}).await;
        let output = output.map_err(|error| error.step("start"))?;
        if !output.ok() {
            let message = format!("the containers of sandbox {} could not be started", target.id);
            return Err(failed("start", message, &output));
        }
    }
    // Nothing ran that could run again: then all that should.
    let dead = if ran.names.is_empty() { dead(&stack, &containers) } else { Vec::new() };
    for id in dead {
        let command = start(target, engine)?.arg(id);
        let started = transport.stream(&command, LIMIT, &mut |_, _| {}).await;
        started.map_err(|error| error.step("start"))?;
    }
    failpoint::reached("wake.started");
    steps.next("ready");
    let ready = ready::until_ready(&asked, Unsettled::Woken(ran.names), Wanted::Runs).await?;
    something_runs(target, &stack, &ready)?;
    if ready.unsettled == Unsettled::None {
        ready::awake(transport, target).await?;
    }
    Ok(ready)
}

/// Brings containers to run, which are still to be named by their ids.
fn start(target: &Target, engine: &str) -> Result<Command, Error> {
    Ok(Command::script(START_SH).args([
        workdir(target)?,
        engine,
        &target.profile.stop_grace.get().to_string(),
    ]))
}

/// A stack of which nothing runs is not awake, even if nothing ran when it was put to sleep.
fn something_runs(target: &Target, stack: &Stack, ready: &Readiness) -> Result<(), Error> {
    let stays =
        |name: &str| stack.services.iter().any(|service| service.name == name && !service.one_shot);
    let mut of = ready.services.iter().filter(|service| stays(&service.name)).peekable();
    if of.peek().is_none() || of.any(|service| !service.is_degraded()) {
        return Ok(());
    }
    let id = &target.id;
    Err(Error::new(
        Code::OperationFailed,
        format!("no service of sandbox {id} runs, and none can be started"),
    )
    .hint(format!(
        "`sandboxer recreate {id}` makes it again; `sandboxer logs {id}` may say why they ended"
    ))
    .step("ready")
    .detail("services", serde_json::to_value(&ready.services).unwrap_or_default()))
}

/// The ids of containers of services that should run and do not. One that ended well has done what it was for.
fn dead<'c>(stack: &Stack, containers: &'c [Container]) -> Vec<&'c str> {
    let stays =
        |name: &str| stack.services.iter().any(|service| service.name == name && !service.one_shot);
    let done =
        |container: &Container| container.state == "exited" && container.exit_code == Some(0);
    let dead = |container: &&Container| {
        stays(&container.service) && container.state != "running" && !done(container)
    };
    containers.iter().filter(dead).map(|container| container.id.as_str()).collect()
}

fn gone(target: &Target, missing: &[String]) -> Error {
    let (id, host) = (&target.id, &target.host);
    Error::new(
        Code::OperationFailed,
        format!("containers of sandbox {id} are not on {host} any more: {}", missing.join(", ")),
    )
    .hint(format!("`sandboxer recreate {id}` makes it again"))
    .step("start")
    .detail("containers", missing)
}

/// List of what ran when it was put to sleep.
struct Ran {
    /// The containers, the oldest first.
    names: Vec<String>,
    /// Their services, with as many containers as ran.
    expected: Vec<Expected>,
    /// The service of each container.
    services: BTreeMap<String, String>,
}

impl Ran {
    /// Errors: the containers that are not there any more.
    fn new(
        stack: &Stack,
        containers: &[Container],
        names: Vec<String>,
    ) -> Result<Self, Vec<String>> {
        let service_of =
            |name: &String| containers.iter().find(|container| container.name == *name);
        let missing: Vec<String> =
            names.iter().filter(|name| service_of(name).is_none()).cloned().collect();
        if !missing.is_empty() {
            return Err(missing);
        }
        let services: BTreeMap<String, String> = names
            .iter()
            .filter_map(|name| Some((name.clone(), service_of(name)?.service.clone())))
            .collect();
        let count = |service: &str| services.values().filter(|of| *of == service).count() as u32;
        let expected = stack
            .services
            .iter()
            .map(|service| Expected { replicas: count(&service.name), ..service.clone() })
            .filter(|service| service.replicas > 0)
            .collect();
        Ok(Self { names, expected, services })
    }

    fn needs(&self, service: &str) -> impl Iterator<Item = (&str, bool)> {
        let found = self.expected.iter().filter(move |expected| expected.name == service);
        found.flat_map(|expected| {
            expected.needs.iter().map(|(name, healthy)| (name.as_str(), *healthy))
        })
    }

    /// The services that must be healthy before this container starts.
    fn awaited_by(&self, name: &str) -> impl Iterator<Item = &str> {
        let service = self.services.get(name).map_or("", String::as_str);
        let ran = |service: &str| self.expected.iter().any(|expected| expected.name == service);
        self.needs(service)
            .filter(move |(service, healthy)| *healthy && ran(service))
            .map(|(service, _)| service)
    }

    /// The containers in groups of which each needs only those before it.
    fn levels(&self) -> Vec<Vec<&str>> {
        let mut levels = Vec::new();
        for name in &self.names {
            let level =
                self.depth(self.services.get(name).map_or("", String::as_str), self.expected.len());
            if levels.len() <= level {
                levels.resize(level + 1, Vec::new());
            }
            levels[level].push(name.as_str());
        }
        levels.retain(|level: &Vec<&str>| !level.is_empty());
        levels
    }

    /// How many services stand before this one; `most` ends a circle.
    fn depth(&self, service: &str, most: usize) -> usize {
        let Some(less) = most.checked_sub(1) else { return 0 };
        self.needs(service).map(|(needed, _)| 1 + self.depth(needed, less)).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests;
