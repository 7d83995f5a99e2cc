//! From a project whose files are read to the file that is started, or to all that is refused in it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::declared::Declared;
use super::error::RenderError;
use super::load::{self, Loader};
use super::output::Rendered;
use super::pass::Pass;
use super::services::{self, ServicePlan};
use super::{
    attachments, builds, interpolate, keys, lexical, merge, nameless, networks, order, pulls,
    resources, shapes,
};
use crate::domain::profile::Allowance;
use crate::domain::sandbox::Rewrite;
use crate::extensions::compose_ssh::mask::Masker;

/// Variable for the folder in which compose is called: the workspace.
pub(super) const FOLDER: &str = "PWD";

/// Most services of one sandbox.
const MAX_SERVICES: usize = 500;

/// Rules over a project whose files are read: it becomes the file that is started, or is refused.
pub(super) fn settle(
    project: Map<String, Value>,
    mut pass: Pass<'_>,
    rewrites: &mut Vec<Rewrite>,
) -> Result<Rendered, RenderError> {
    let (mut project, services) = assemble(project, &mut pass)?;
    pass.refuse_replaceable();
    let Pass { input, loader, images, sources, secrets, mut variables, .. } = pass;
    // A path is no secret.
    variables.remove(FOLDER);
    let Loader { workspace, documents, findings, .. } = loader;
    let mut findings = std::mem::take(findings);
    shapes::judge(
        &mut project,
        &lexical::normalize(input.workdir),
        input.host.dialect,
        &mut findings,
    );
    findings.tell_unset();
    findings.locate(&documents);
    findings.mask(&Masker::of_variables(&variables));
    rewrites.clone_from(&findings.rewrites);
    if !findings.refusals.is_empty() {
        return Err(RenderError::Refused(findings.refusals));
    }
    let mut volumes: Vec<String> = project
        .get("volumes")
        .and_then(Value::as_object)
        .map(|map| map.keys().cloned().collect())
        .unwrap_or_default();
    volumes.sort();
    let fixed_addresses = networks::fixed(&project);
    let pulls = pulls::of(&project, workspace)?;
    let contexts = builds::folders(&project);
    let yaml = print(project);
    Ok(Rendered {
        contexts,
        fixed_addresses,
        pulls,
        volumes,
        yaml,
        services,
        rewrites: findings.rewrites,
        images: images.into_iter().collect(),
        sources: sources.into_iter().collect(),
        secrets,
        variables,
    })
}

fn assemble(
    mut project: Map<String, Value>,
    pass: &mut Pass<'_>,
) -> Result<(Value, Vec<ServicePlan>), RenderError> {
    if !project.get("services").is_some_and(keys::is_on) {
        pass.findings().refuse(
            "services",
            None,
            "no service is defined; a compose file starts with `services:`",
        );
    }
    keys::keep_known(&mut project, keys::PROJECT, "", pass.findings());
    project.shift_remove("version");
    if project.shift_remove("name").is_some() {
        let id = pass.input.sandbox_id;
        pass.findings().rewrite("name", format!("is left out: the project is called `sbx-{id}`"));
    }
    if project.contains_key("models") {
        pass.guard(Allowance::External, "models", "models run outside the sandbox; use an image");
    }
    let mut take = |name: &str| load::section(&mut project, name, pass.loader.findings);
    let (services, networks, volumes) = (take("services"), take("networks"), take("volumes"));
    let (secrets, configs) = (take("secrets"), take("configs"));
    let services = started(services, pass);
    let names = |map: &Map<String, Value>| map.keys().cloned().collect::<BTreeSet<_>>();
    let declared = Declared {
        services: names(&services),
        volumes: names(&volumes),
        networks: names(&networks),
        secrets: names(&secrets),
        configs: names(&configs),
        built: built(&services, pass),
    };
    let (mut services, plans, used) = services_of(services, &declared, pass)?;
    order::judge(&services, pass);
    let networks = networks::render(networks, &used, pass);
    attachments::judge(&services, &networks, pass);
    let mut volumes = resources::volumes(volumes, pass)?;
    nameless::settle(&mut services, &mut volumes, pass);
    let sections = [
        ("services", services),
        ("networks", networks),
        ("volumes", volumes),
        ("secrets", resources::files("secrets", secrets, pass)?),
        ("configs", resources::files("configs", configs, pass)?),
    ];
    let kept = sections.into_iter().filter(|(_, content)| !content.is_empty());
    project.extend(kept.map(|(name, content)| (name.to_owned(), Value::Object(content))));
    Ok((Value::Object(project), plans))
}

/// The services without a profile, or with one that `COMPOSE_PROFILES` enables. podman-compose 1.0.3 would start
/// the others too, so they leave the file.
fn started(services: Map<String, Value>, pass: &mut Pass<'_>) -> Map<String, Value> {
    let enabled = pass.variables.get("COMPOSE_PROFILES").cloned().unwrap_or_default();
    let enabled: BTreeSet<&str> = enabled.split(',').map(str::trim).collect();
    if services.len() > MAX_SERVICES {
        pass.findings().refuse(
            "services",
            None,
            format!("a sandbox has at most {MAX_SERVICES} services; start fewer"),
        );
        return Map::new();
    }
    let (mut kept, mut left_out) = (Map::new(), BTreeSet::new());
    for (name, service) in services {
        let profiles: Vec<String> =
            merge::list(service.get("profiles").cloned().unwrap_or_default())
                .iter()
                .map(merge::scalar)
                .collect();
        let path = format!("services.{name}");
        if !keys::is_name(&name) {
            pass.findings().refuse(
                &path,
                None,
                "a service's name has letters, digits, `.`, `_` and `-`, and starts with a letter or digit",
            );
        } else if profiles.is_empty()
            || enabled.contains("*")
            || profiles.iter().any(|profile| enabled.contains(profile.as_str()))
        {
            kept.insert(name, service);
        } else {
            pass.findings().rewrite(
                &path,
                format!(
                    "is left out: it starts only with the profile `{}`",
                    profiles.join("` or `")
                ),
            );
            left_out.extend(profiles);
        }
    }
    if kept.is_empty() && !left_out.is_empty() {
        let profiles: Vec<String> = left_out.into_iter().collect();
        let message = format!(
            "no service is started: each waits for a profile; set COMPOSE_PROFILES in .env, to one of {}",
            profiles.join(", ")
        );
        pass.findings().refuse("services", None, message);
    }
    kept
}

/// Image names that the project builds itself, and what they are called in the sandbox.
fn built(services: &Map<String, Value>, pass: &Pass<'_>) -> BTreeMap<String, String> {
    let building = services
        .iter()
        .filter(|(_, service)| service.get("build").is_some_and(|build| !build.is_null()));
    building
        .filter_map(|(name, service)| {
            Some((merge::scalar(service.get("image")?), pass.image_of(name)))
        })
        .collect()
}

type Assembled = (Map<String, Value>, Vec<ServicePlan>, BTreeSet<String>);

fn services_of(
    services: Map<String, Value>,
    declared: &Declared,
    pass: &mut Pass<'_>,
) -> Result<Assembled, RenderError> {
    let mut rendered = Map::new();
    let mut plans: Vec<ServicePlan> = Vec::new();
    let mut used = BTreeSet::new();
    let mut awaited = BTreeSet::new();
    for (name, service) in services {
        let Value::Object(service) = service else { continue };
        let (service, plan, networks) = services::render(&name, service, declared, pass)?;
        if let Some(Value::Object(dependencies)) = service.get("depends_on") {
            let ended = dependencies.iter().filter(|(_, on)| {
                on.get("condition").and_then(Value::as_str)
                    == Some("service_completed_successfully")
            });
            awaited.extend(ended.map(|(name, _)| name.clone()));
        }
        used.extend(networks);
        plans.push(plan);
        rendered.insert(name, Value::Object(service));
    }
    for plan in &mut plans {
        plan.one_shot = awaited.contains(&plan.name);
    }
    Ok((rendered, plans, used))
}

/// JSON, because it leaves no reader a guess about types: every string is quoted. What `PyYAML` refuses to see
/// raw is escaped.
fn print(mut project: Value) -> String {
    interpolate::escape(&mut project);
    let json = format!("{project:#}");
    let mut text = String::from(
        "# Written by sandboxer from the workspace's compose file. Changes here are lost.\n",
    );
    for c in json.chars() {
        match c {
            '\u{7f}'..='\u{9f}'
            | '\u{2028}'
            | '\u{2029}'
            | '\u{feff}'
            | '\u{fffe}'
            | '\u{ffff}' => {
                let code = format!("\\u{:04x}", u32::from(c));
                text.push_str(&code);
            }
            _ => text.push(c),
        }
    }
    text.push('\n');
    text
}
