//! Adoption of a stack that its host has and no record knows. Its engine is the one that has its containers, its runtime one that
//! was found on the host; of the handle in its manifest only what says which services should run is taken.

use std::collections::BTreeMap;

use crate::domain::error::{Code, Error};
use crate::domain::extension::{AdoptClaim, AdoptLook, Inspection, Target};
use crate::domain::facts::{Engine, HostIdentity, Runtime};
use crate::domain::name::SandboxId;
use crate::domain::text::{clean_line, plural};
use crate::extensions::compose_ssh::deps::{Deps, workspace_only};
use crate::extensions::compose_ssh::handle::{Expected, Stack};
use crate::extensions::compose_ssh::inspect as inspecting;
use crate::extensions::compose_ssh::runtime::Container;
use crate::extensions::workspace::inspect::{self, Found};

/// The most services, and containers of one, that a claim may name.
const MOST: usize = 1000;

pub(super) async fn adopt(
    deps: &Deps,
    target: &Target,
    claim: AdoptClaim<'_>,
) -> Result<AdoptLook, Error> {
    let transport = deps.open(&target.host).await?;
    let identity = |engine: Option<&Engine>| HostIdentity {
        machine_id: claim.machine_id.to_owned(),
        engine: engine.map(|engine| engine.program.clone()),
        engine_id: engine.and_then(|engine| engine.id.clone()),
    };
    let at = |engine| Target { host_identity: Some(identity(engine)), ..target.clone() };
    let claimed = Stack::from_handle(claim.handle);
    let mut remarks = Vec::new();
    let (engine, stack) = if workspace_only(&target.profile) {
        (None, Some(Stack::default()))
    } else {
        let mut having = Vec::new();
        for engine in claim.engines {
            let found = inspect::inspect_one(transport.as_ref(), &at(Some(engine))).await?;
            if found.resources.iter().any(|resource| resource.kind != "directory") {
                having.push((engine, found));
            }
        }
        let wanted = claimed.as_ref().and_then(|stack| stack.runtime.clone());
        let wanted = wanted.as_ref();
        let (engine, found) = chosen(having, wanted, claim, target)?;
        let services = match claimed {
            Some(stack) => believed(stack, &target.id, &mut remarks),
            None => Stack { services: running(&found, target)?, ..Stack::default() },
        };
        let runtime = runtime_of(engine, wanted, claim.runtimes, target)?;
        let is_anything = claim.handle.is_some() || !services.services.is_empty();
        let stack = is_anything.then_some(Stack { runtime: Some(runtime), ..services });
        (Some(engine), stack)
    };
    let handle = stack.map(|stack| stack.to_handle()).transpose()?;
    let target = Target { handle: handle.clone(), ..at(engine) };
    let seen: Inspection = inspecting::inspect(deps, &target).await?;
    Ok(AdoptLook { handle, identity: identity(engine), seen, remarks })
}

/// The engine that has something of the sandbox. Where none has, the one that the manifest names, else the first.
///
/// Errors: `conflict` where several have, and none of them is another one's second name; `operation_failed` where none has, and
/// the one that may have it does not answer.
fn chosen<'a>(
    mut having: Vec<(&'a Engine, Found)>,
    wanted: Option<&Runtime>,
    claim: AdoptClaim<'a>,
    target: &Target,
) -> Result<(&'a Engine, Found), Error> {
    let is_wanted =
        |engine: &Engine| wanted.is_some_and(|runtime| runtime.engine == engine.program);
    let is_one = having.iter().any(|(engine, _)| engine.podman_behind);
    if having.len() > 1 && !is_one {
        let names: Vec<&str> = having.iter().map(|(engine, _)| engine.program.as_str()).collect();
        let message = format!(
            "{} on {} both have something of sandbox {}",
            names.join(" and "),
            target.host,
            target.id
        );
        return Err(Error::new(Code::Conflict, message)
            .hint("nobody can tell which of the two it is; look at them there"));
    }
    having.sort_by_key(|(engine, _)| !is_wanted(engine));
    if let Some(found) = having.into_iter().next() {
        return Ok(found);
    }
    let engine = match (wanted, claim.silent) {
        (Some(wanted), _) => {
            let named = claim.engines.iter().find(|engine| is_wanted(engine));
            named.ok_or_else(|| unanswered(&wanted.engine, "which its manifest names", target))?
        }
        (None, [silent, ..]) => {
            return Err(unanswered(silent, "which is installed there", target));
        }
        (None, []) => claim.engines.first().ok_or_else(|| no_engine(target))?,
    };
    Ok((engine, Found::default()))
}

fn unanswered(engine: &str, which: &str, target: &Target) -> Error {
    let engine = clean_line(engine, 40);
    let message = format!(
        "no engine that answers on {} has anything of sandbox {}, and {engine}, {which}, does not answer",
        target.host, target.id
    );
    Error::new(Code::OperationFailed, message)
        .hint("what it is made of may be there: start that engine on the host, then adopt again")
}

/// A compose runtime of the host for this engine: the one that the manifest names, where it was found there, else the first.
fn runtime_of(
    engine: &Engine,
    wanted: Option<&Runtime>,
    runtimes: &[Runtime],
    target: &Target,
) -> Result<Runtime, Error> {
    let of_engine = || runtimes.iter().filter(|runtime| runtime.engine == engine.program);
    let same = |runtime: &&Runtime| {
        wanted.is_some_and(|wanted| {
            (&wanted.flavour, &wanted.command) == (&runtime.flavour, &runtime.command)
        })
    };
    of_engine().find(same).or_else(|| of_engine().next()).cloned().ok_or_else(|| no_engine(target))
}

fn no_engine(target: &Target) -> Error {
    let message = format!(
        "{} has no compose runtime that answers for the containers of sandbox {}",
        target.host, target.id
    );
    Error::new(Code::MissingDependency, message).hint(format!(
        "`sandboxer hosts check {}` says what is wrong with its runtimes; adopt again then",
        target.host
    ))
}

/// Believed part of a claimed stack: services by names that compose gives, and images by the name that only what was built
/// for this sandbox has.
fn believed(claimed: Stack, id: &SandboxId, remarks: &mut Vec<String>) -> Stack {
    let count = claimed.services.len();
    let mut services: Vec<Expected> =
        claimed.services.into_iter().filter(is_service).take(MOST).collect();
    for service in &mut services {
        service.needs.retain(|name, _| is_name(name));
    }
    let refused = count - services.len();
    if refused > 0 {
        let what = plural(refused as u64, "service", "services");
        remarks.push(format!("{what} in its manifest are none that compose knows: left out"));
    }
    let prefix = format!("{}-built:", id.project());
    let is_own = |image: &String| {
        let name = image.strip_prefix("localhost/").unwrap_or(image);
        name.strip_prefix(&prefix).is_some_and(is_name)
    };
    let count = claimed.built.len();
    let built: Vec<String> = claimed.built.into_iter().filter(is_own).take(MOST).collect();
    let refused = count - built.len();
    if refused > 0 {
        let what = plural(refused as u64, "image", "images");
        remarks.push(format!(
            "{what} in its manifest have no name of this sandbox: not removed with it"
        ));
    }
    Stack { runtime: None, services, built }
}

/// Services that its containers are of, for a manifest that does not say what should run.
fn running(found: &Found, target: &Target) -> Result<Vec<Expected>, Error> {
    let containers =
        inspecting::read(found.inspected.as_deref().unwrap_or_default(), &target.host)?;
    let mut replicas: BTreeMap<String, u32> = BTreeMap::new();
    for Container { service, .. } in containers {
        if is_name(&service) {
            *replicas.entry(service).or_default() += 1;
        }
    }
    let expected = |(name, replicas)| Expected {
        name,
        replicas,
        restart: "no".to_owned(),
        one_shot: false,
        needs: BTreeMap::new(),
    };
    Ok(replicas.into_iter().map(expected).collect())
}

fn is_service(service: &Expected) -> bool {
    let restart = service.restart.split(':').next().unwrap_or_default();
    let restarts = matches!(restart, "no" | "always" | "unless-stopped" | "on-failure");
    is_name(&service.name) && restarts && service.replicas as usize <= MOST
}

/// Whether a text is a name that compose takes for a service.
fn is_name(text: &str) -> bool {
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    !text.is_empty()
        && text.len() <= 128
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.chars().all(legal)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::facts::Flavour;

    fn engine(program: &str) -> Engine {
        Engine {
            program: program.to_owned(),
            version: None,
            id: None,
            rootless: false,
            podman_behind: false,
        }
    }

    fn runtime(engine: &str, command: &str) -> Runtime {
        Runtime {
            flavour: Flavour::DockerComposeV2,
            version: "2".to_owned(),
            command: command.split(' ').map(str::to_owned).collect(),
            engine: engine.to_owned(),
            engine_version: None,
            engine_id: None,
            rootless: false,
            chosen: "detected".to_owned(),
            podman_behind: false,
        }
    }

    fn service(name: &str, restart: &str) -> Expected {
        Expected {
            name: name.to_owned(),
            replicas: 1,
            restart: restart.to_owned(),
            one_shot: false,
            needs: BTreeMap::from([("db".to_owned(), true), ("$(x)".to_owned(), true)]),
        }
    }

    #[test]
    fn a_claimed_stack_names_nothing_but_its_own() {
        let claimed = Stack {
            runtime: Some(runtime("docker", "/tmp/evil --")),
            services: vec![
                service("web", "on-failure:3"),
                service("--rm", "no"),
                service("a b", "no"),
                service("db", "sometimes"),
            ],
            built: [
                "sbx-a1-built:web",
                "localhost/sbx-a1-built:db",
                "sbx-a1-built-2:web",
                "sbx-a12-built:web",
                "postgres:16",
                "sbx-a1-built:web --force",
                "evil/sbx-a1-built:web",
            ]
            .map(str::to_owned)
            .to_vec(),
        };
        let mut remarks = Vec::new();
        let stack = believed(claimed, &"a1".into(), &mut remarks);
        assert_eq!(stack.runtime, None);
        let names: Vec<&str> = stack.services.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["web"]);
        assert_eq!(stack.services[0].needs.len(), 1);
        assert_eq!(stack.built, ["sbx-a1-built:web", "localhost/sbx-a1-built:db"]);
        assert_eq!(remarks.len(), 2, "{remarks:?}");
    }

    #[test]
    fn a_runtime_is_one_that_the_host_has() {
        let (docker, podman) = (engine("docker"), engine("podman"));
        let found = [runtime("docker", "docker compose"), runtime("docker", "docker-compose")];
        let target = target();
        let of = |wanted: Option<&Runtime>| {
            runtime_of(&docker, wanted, &found, &target).unwrap().command.join(" ")
        };
        assert_eq!(of(None), "docker compose");
        assert_eq!(of(Some(&runtime("docker", "docker-compose"))), "docker-compose");
        assert_eq!(of(Some(&runtime("docker", "/tmp/evil"))), "docker compose");
        let lacking = runtime_of(&podman, None, &found, &target).unwrap_err();
        assert_eq!(lacking.code, Code::MissingDependency);
    }

    #[test]
    fn two_engines_that_have_it_are_no_answer_but_one_under_two_names_is() {
        let (docker, podman) = (engine("docker"), engine("podman"));
        let behind = Engine { podman_behind: true, ..engine("docker") };
        let has = |engine| (engine, Found::default());
        let target = target();
        let both =
            chosen(vec![has(&docker), has(&podman)], None, claim(&[], &[]), &target).unwrap_err();
        assert_eq!(both.code, Code::Conflict);
        let wanted = runtime("podman", "podman-compose");
        let having = vec![has(&behind), has(&podman)];
        let one = chosen(having, Some(&wanted), claim(&[], &[]), &target).unwrap();
        assert_eq!(one.0.program, "podman");
        let engines = [docker.clone(), podman.clone()];
        let none = chosen(Vec::new(), Some(&wanted), claim(&engines, &[]), &target).unwrap();
        assert_eq!(none.0.program, "podman");
        let nothing = chosen(Vec::new(), None, claim(&[], &[]), &target).unwrap_err();
        assert_eq!(nothing.code, Code::MissingDependency);
    }

    #[test]
    fn an_engine_that_does_not_answer_may_have_what_no_other_has() {
        let engines = [engine("podman")];
        let target = target();
        let docker = runtime("docker", "docker compose");
        let of = |having, wanted, silent| {
            chosen(having, wanted, claim(&engines, silent), &target)
                .map(|(engine, _)| engine.program.clone())
                .map_err(|error| error.message)
        };
        for (wanted, silent) in
            [(Some(&docker), &["docker"][..]), (Some(&docker), &[]), (None, &["docker"])]
        {
            let why = of(Vec::new(), wanted, silent).unwrap_err();
            assert!(why.contains("docker, which") && why.contains("does not answer"), "{why}");
        }
        let podman = runtime("podman", "podman-compose");
        assert_eq!(of(Vec::new(), Some(&podman), &["docker"]), Ok("podman".to_owned()));
        let there = vec![(&engines[0], Found::default())];
        assert_eq!(of(there, None, &["docker"]), Ok("podman".to_owned()));
    }

    fn claim<'a>(engines: &'a [Engine], silent: &'a [&'a str]) -> AdoptClaim<'a> {
        AdoptClaim { handle: None, machine_id: "m", engines, silent, runtimes: &[] }
    }

    fn target() -> Target {
        let profile = crate::domain::profile::Profile::unknown(
            "profile.x".into(),
            "1.0.0",
            "ext.compose-ssh".into(),
        );
        Target {
            id: "a1".into(),
            owners: Vec::new(),
            host: "h".into(),
            profile,
            inputs: BTreeMap::new(),
            handle: None,
            workdir: None,
            host_identity: None,
            stamp: None,
            roots: crate::domain::root::KnownRoots::default(),
            start_output: None,
        }
    }
}
