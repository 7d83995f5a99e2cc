//! `inspect` of one sandbox, and the services of all that a host has.

use std::collections::BTreeMap;

use crate::domain::error::{Code, Error};
use crate::domain::extension::{Inspection, Target};
use crate::domain::name::{HostName, SandboxId};
use crate::domain::sandbox::Service;
use crate::extensions::compose_ssh::deps::{Deps, workspace_only};
use crate::extensions::compose_ssh::handle::Stack;
use crate::extensions::compose_ssh::ready::reach;
use crate::extensions::compose_ssh::runtime::{self, Container, Judgement};
use crate::extensions::workspace::inspect::{self, Found};
use crate::extensions::workspace::{workdir, workspace};

pub(super) async fn inspect(deps: &Deps, target: &Target) -> Result<Inspection, Error> {
    let transport = deps.open(&target.host).await?;
    let found = inspect::inspect_one(transport.as_ref(), target).await?;
    let stack = Stack::from_handle(target.handle.as_ref());
    let containers = read(found.inspected.as_deref().unwrap_or_default(), &target.host)?;
    let mut seen = found.inspection();
    let Some(stack) = stack else { return Ok(seen) };
    seen.services = runtime::services(&stack.services, &containers);
    let rest = rest(target, &found, &containers);
    seen.ready = rest == Rest::Awake && is_ready(target, &stack, &found, &containers);
    seen.asleep = rest == Rest::Asleep;
    seen.halfway = rest == Rest::Between;
    if seen.ready {
        seen.reachability =
            Some(reach(transport.spec(), &workspace(workdir(target)?), &containers));
    }
    Ok(seen)
}

/// How far it is asleep.
#[derive(Debug, PartialEq, Eq)]
enum Rest {
    /// Awake: not put to sleep, or all that ran then runs again.
    Awake,
    /// Asleep: what ran then is there and stopped.
    Asleep,
    /// A sleep or a wake was cut off: some of it runs and some does not, or it is not known.
    Between,
    /// Nothing of it runs, and something of it is gone.
    Lacking,
}

fn rest(target: &Target, found: &Found, containers: &[Container]) -> Rest {
    let Some(names) = found.asleep.as_ref().filter(|_| found.ours && found.workspace) else {
        return Rest::Awake;
    };
    if workspace_only(&target.profile) {
        return Rest::Asleep;
    }
    let of = |name: &String| containers.iter().find(|container| container.name == *name);
    let there: Vec<&Container> = names.iter().filter_map(of).collect();
    let run = there
        .iter()
        .filter(|c| matches!(c.state.as_str(), "running" | "paused" | "restarting"))
        .count();
    let half = there.iter().any(|c| matches!(c.state.as_str(), "initialized" | "stopping"));
    match (there.len() == names.len() && found.inspected.is_some() && !half, run) {
        (true, 0) => Rest::Asleep,
        (true, run) if run == names.len() => Rest::Awake,
        (false, 0) if found.inspected.is_some() && !half => Rest::Lacking,
        _ => Rest::Between,
    }
}

/// A stack without its engine's word is not ready, nor is one that never came so far as to have a handle.
fn is_ready(target: &Target, stack: &Stack, found: &Found, containers: &[Container]) -> bool {
    let runs = if workspace_only(&target.profile) {
        true
    } else {
        found.inspected.is_some()
            && matches!(runtime::judge(&stack.services, containers), Judgement::Ready)
    };
    found.ours && found.workspace && runs
}

pub(super) async fn services(
    deps: &Deps,
    host: &HostName,
    targets: &[Target],
) -> Result<BTreeMap<SandboxId, Vec<Service>>, Error> {
    let transport = deps.open(host).await?;
    let inspections = inspect::inspect_all(transport.as_ref(), targets).await?;
    let mut engines = BTreeMap::new();
    for (engine, text) in &inspections.engines {
        engines.insert(engine.clone(), by_sandbox(read(text, host)?));
    }
    let mut answer = BTreeMap::new();
    for target in targets.iter().filter(|target| inspections.is_of(target)) {
        let stack = Stack::from_handle(target.handle.as_ref());
        let services = match (stack, inspect::engine(target)) {
            (Some(stack), Some(engine)) if !stack.services.is_empty() => {
                // An engine that did not answer says nothing; neither do we.
                let Some(engine) = engines.get(&engine) else { continue };
                let containers = engine.get(&target.id).map_or(&[][..], Vec::as_slice);
                if containers.is_empty() && !inspections.has_directory(target) {
                    continue;
                }
                runtime::services(&stack.services, containers)
            }
            _ if inspections.has_directory(target) => Vec::new(),
            _ => continue,
        };
        answer.insert(target.id.clone(), services);
    }
    Ok(answer)
}

fn by_sandbox(containers: Vec<Container>) -> BTreeMap<SandboxId, Vec<Container>> {
    let mut groups: BTreeMap<SandboxId, Vec<Container>> = BTreeMap::new();
    for container in containers {
        groups.entry(SandboxId::new(container.sandbox.clone())).or_default().push(container);
    }
    groups
}

pub(super) fn read(lines: &str, host: &HostName) -> Result<Vec<Container>, Error> {
    runtime::parse_lines(lines).ok_or_else(|| {
        Error::new(
            Code::OperationFailed,
            format!("what the engine of {host} says of its containers cannot be read"),
        )
        .step("inspect")
    })
}
