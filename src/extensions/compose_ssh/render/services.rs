//! Service of the project as the rendered file says it, and what is to be expected of it.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::declared::Declared;
use super::dialect::Dialect;
use super::error::RenderError;
use super::keys::{self, is_on};
use super::merge::{list, scalar};
use super::pass::Pass;
use super::ports::ContainerPort;
use super::shapes::Section;
use super::{adapt, attachments, builds, environment, mounts, policy, ports};
use crate::domain::problem::join;

/// Most containers one service is scaled to.
const MAX_REPLICAS: u32 = 64;

/// Switches that may come out of a variable as text.
const SWITCHES: &[&str] = &[
    "attach",
    "init",
    "oom_kill_disable",
    "privileged",
    "read_only",
    "stdin_open",
    "tty",
    "use_api_socket",
];

/// Lists that may be written as the one word that is in them.
const LISTS: &[&str] = &[
    "cap_add",
    "cap_drop",
    "configs",
    "device_cgroup_rules",
    "devices",
    "dns",
    "dns_opt",
    "dns_search",
    "env_file",
    "expose",
    "external_links",
    "extra_hosts",
    "group_add",
    "links",
    "secrets",
    "security_opt",
    "sysctls",
    "tmpfs",
    "volumes_from",
];

/// Containers that the engine is expected to run for a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServicePlan {
    pub name: String,
    /// The image that runs, also where it is built.
    pub image: String,
    /// Is the image built on the host?
    pub built: bool,
    /// How many containers; 0 is possible.
    pub replicas: u32,
    /// Published ports of the container, sorted.
    pub ports: Vec<ContainerPort>,
    /// Does the file define a health check? (An image can bring its own.)
    pub has_healthcheck: bool,
    /// The restart policy; `no` where none is given.
    pub restart: String,
    /// Does another service wait for this one to end successfully? Then it is not expected to keep running.
    pub one_shot: bool,
    /// The services that are started before it, and whether it waits until they are healthy.
    pub needs: BTreeMap<String, bool>,
}

/// A rendered service, what to expect of it, and the networks it uses.
pub(super) type Outcome = (Map<String, Value>, ServicePlan, Vec<String>);

pub(super) fn render(
    name: &str,
    mut service: Map<String, Value>,
    declared: &Declared,
    pass: &mut Pass<'_>,
) -> Result<Outcome, RenderError> {
    let path = format!("services.{name}");
    keys::keep_known(&mut service, &Section::Service.keys(), &path, pass.findings());
    policy::judge(&mut service, &path, &declared.services, pass);
    let alias = container_name(&mut service, &path, pass);
    if service.shift_remove("develop").is_some() {
        pass.findings()
            .rewrite(&join(&path, "develop"), "is left out: nothing is watched in a sandbox");
    }
    service.shift_remove("profiles");
    environment::inline(&mut service, &path, &mut pass.loader, &pass.variables)?;
    hooks(&mut service, &path, pass);
    let mut labels = environment::labels(&mut service, &path, &mut pass.loader, &pass.variables)?;
    labels.extend(pass.labels());
    if matches!(pass.input.host.dialect, Dialect::Podman | Dialect::Narrow) {
        // Docker's compose says it of each container. Where nobody does, an image's own label would.
        labels.insert("com.docker.compose.oneoff".to_owned(), "False".into());
    }
    if let Some(deploy) = service.get_mut("deploy").and_then(Value::as_object_mut)
        && let Some(written) = deploy.shift_remove("labels")
    {
        let kept = super::labels::mapping(written, &join(&path, "deploy.labels"), pass.findings());
        deploy.insert("labels".to_owned(), Value::Object(kept));
    }
    service.insert("labels".to_owned(), Value::Object(labels));
    let container_ports = publish(&mut service, &path, pass);
    if let Some(volumes) = service.shift_remove("volumes") {
        let mounted =
            mounts::apply(list(volumes), &join(&path, "volumes"), &declared.volumes, pass)?;
        service.insert("volumes".to_owned(), Value::Array(mounted));
    }
    let built = build(name, &mut service, &path, declared, pass)?;
    let image = image(&mut service, &path, built.as_deref(), declared, pass);
    let networks =
        attachments::render(&mut service, &path, alias.as_deref(), &declared.networks, pass);
    depends_on(&mut service, &path, declared, pass);
    references(&service, &path, declared, pass);
    let replicas = replicas(&mut service, &path, pass);
    for key in SWITCHES {
        if let Some(switch) = service.get_mut(*key).filter(|value| value.is_string()) {
            *switch = Value::Bool(is_on(switch));
        }
    }
    uniform(&mut service);
    adapt::adapt(&mut service, &path, pass);
    let restart = service.get("restart").map_or_else(|| "no".to_owned(), scalar);
    let plan = ServicePlan {
        name: name.to_owned(),
        image,
        built: built.is_some(),
        replicas,
        ports: container_ports,
        has_healthcheck: has_healthcheck(&service),
        restart,
        one_shot: false,
        needs: needs(&service),
    };
    Ok((service, plan, networks))
}

/// Drops `container_name`, which two sandboxes on a host cannot both have, and keeps it as a name on the network.
fn container_name(
    service: &mut Map<String, Value>,
    path: &str,
    pass: &mut Pass<'_>,
) -> Option<String> {
    let name = scalar(&service.shift_remove("container_name")?);
    pass.findings().rewrite(
        &join(path, "container_name"),
        format!("`{name}` is left out: the container gets a name of the sandbox"),
    );
    Some(name).filter(|name| keys::is_name(name))
}

fn hooks(service: &mut Map<String, Value>, path: &str, pass: &mut Pass<'_>) {
    for key in ["post_start", "pre_stop"] {
        let Some(Value::Array(hooks)) = service.get_mut(key) else { continue };
        for (index, hook) in hooks.iter_mut().filter_map(Value::as_object_mut).enumerate() {
            let Some(written) = hook.shift_remove("environment") else { continue };
            let mut settled = Map::new();
            let here = format!("{path}.{key}[{index}].environment");
            environment::settle(
                super::merge::assignments(written),
                &here,
                &mut pass.loader,
                &pass.variables,
                &mut settled,
            );
            hook.insert("environment".to_owned(), Value::Object(settled));
        }
    }
}

fn publish(
    service: &mut Map<String, Value>,
    path: &str,
    pass: &mut Pass<'_>,
) -> Vec<ContainerPort> {
    let Some(written) = service.shift_remove("ports") else { return Vec::new() };
    let path = join(path, "ports");
    let (rendered, declared) =
        ports::apply(&list(written), &pass.input.compose.ports, &path, pass.findings());
    let own_network = !service.contains_key("network_mode");
    if own_network && !rendered.is_empty() {
        service.insert("ports".to_owned(), Value::Array(rendered));
        return declared;
    }
    if !rendered.is_empty() {
        pass.findings()
            .rewrite(&path, "is left out: with this `network_mode` nothing can be published");
    }
    Vec::new()
}

fn build(
    name: &str,
    service: &mut Map<String, Value>,
    path: &str,
    declared: &Declared,
    pass: &mut Pass<'_>,
) -> Result<Option<String>, RenderError> {
    match service.shift_remove("build") {
        None => Ok(None),
        Some(Value::Object(build)) => {
            let build = builds::apply(build, &join(path, "build"), declared, pass)?;
            service.insert("build".to_owned(), Value::Object(build));
            Ok(Some(pass.image_of(name)))
        }
        Some(_) => {
            pass.findings().refuse(
                &join(path, "build"),
                None,
                "write `build: FOLDER` or a mapping with `context:`",
            );
            Ok(Some(pass.image_of(name)))
        }
    }
}

/// Settles the image. One that is built gets the sandbox's own name, wherever it is used: two sandboxes of one
/// repository would otherwise overwrite each other's image and wake up with the wrong one.
fn image(
    service: &mut Map<String, Value>,
    path: &str,
    built: Option<&str>,
    declared: &Declared,
    pass: &mut Pass<'_>,
) -> String {
    let policy = join(path, "pull_policy");
    let path = join(path, "image");
    let written = service.get("image").map(scalar).unwrap_or_default();
    let image = match (built, declared.built.get(&written)) {
        (Some(own), _) => own.to_owned(),
        (None, Some(own)) => own.clone(),
        (None, None) => {
            pass.image(&written, &path);
            written.clone()
        }
    };
    if !written.is_empty() && written != image {
        pass.findings().rewrite(
            &path,
            format!("`{written}` is built here and called `{image}` in the sandbox"),
        );
    }
    service.insert("image".to_owned(), image.clone().into());
    // Nobody but this sandbox has it: whoever looked for it elsewhere could be given something else.
    let pulled = match (built, declared.built.contains_key(&written)) {
        (Some(_), _) => "build",
        (None, true) => "never",
        (None, false) => return image,
    };
    let asked = service.insert("pull_policy".to_owned(), pulled.into()).map(|asked| scalar(&asked));
    if let Some(asked) = asked.filter(|asked| asked != pulled) {
        let here = format!("`{asked}` became `{pulled}`: the image is built here");
        pass.findings().rewrite(&policy, here);
    }
    image
}

fn depends_on(
    service: &mut Map<String, Value>,
    path: &str,
    declared: &Declared,
    pass: &mut Pass<'_>,
) {
    let path = join(path, "depends_on");
    let missing = |name: &str| !declared.services.contains(name);
    let sentence = |name: &str| {
        format!(
            "there is no service `{name}` that is started; define it, or enable its profile with COMPOSE_PROFILES in .env"
        )
    };
    match service.get_mut("depends_on") {
        Some(Value::Object(map)) => map.retain(|name, settings| {
            if !missing(name) {
                return true;
            }
            if settings.get("required").is_some_and(|required| !is_on(required)) {
                pass.findings().rewrite(&path, format!("`{name}` is left out: it is not started"));
            } else {
                pass.findings().refuse(&path, None, sentence(name));
            }
            false
        }),
        Some(Value::Array(names)) => {
            for name in names.iter().map(scalar).filter(|name| missing(name)) {
                pass.findings().refuse(&path, None, sentence(&name));
            }
        }
        Some(_) => pass.findings().refuse(&path, None, "write it as a list of services"),
        None => {}
    }
}

/// Services that `depends_on` names, in either form.
fn needs(service: &Map<String, Value>) -> BTreeMap<String, bool> {
    match service.get("depends_on") {
        Some(Value::Object(map)) => {
            let healthy =
                |on: &Value| on.get("condition").and_then(Value::as_str) == Some("service_healthy");
            map.iter().map(|(name, on)| (name.clone(), healthy(on))).collect()
        }
        Some(Value::Array(names)) => names.iter().map(|name| (scalar(name), false)).collect(),
        _ => BTreeMap::new(),
    }
}

fn references(service: &Map<String, Value>, path: &str, declared: &Declared, pass: &mut Pass<'_>) {
    for (key, known) in [("secrets", &declared.secrets), ("configs", &declared.configs)] {
        let items = list(service.get(key).cloned().unwrap_or_default());
        for (index, item) in items.iter().enumerate() {
            let name = item
                .as_str()
                .map_or_else(|| item.get("source").map(scalar).unwrap_or_default(), str::to_owned);
            if !known.contains(&name) {
                pass.findings().refuse(
                    &format!("{path}.{key}[{index}]"),
                    None,
                    format!("`{name}` is not declared; add it under `{key}:`"),
                );
            }
        }
    }
    for (index, link) in
        list(service.get("links").cloned().unwrap_or_default()).iter().map(scalar).enumerate()
    {
        let name = link.split(':').next().unwrap_or_default();
        if !declared.services.contains(name) {
            pass.findings().refuse(
                &format!("{path}.links[{index}]"),
                None,
                format!("there is no service `{name}` that is started; correct the name"),
            );
        }
    }
}

/// Settles `scale` and `deploy.replicas`, which not every compose reads both of.
fn replicas(service: &mut Map<String, Value>, path: &str, pass: &mut Pass<'_>) -> u32 {
    let in_deploy = service
        .get("deploy")
        .and_then(|deploy| deploy.get("replicas"))
        .filter(|count| !count.is_null());
    let Some(written) = service.get("scale").or(in_deploy).cloned() else { return 1 };
    let count = scalar(&written).trim().parse::<u32>().ok().filter(|count| *count <= MAX_REPLICAS);
    let Some(count) = count else {
        pass.findings().refuse(
            &join(path, "deploy.replicas"),
            None,
            format!("`{}` is no number of containers from 0 to {MAX_REPLICAS}", scalar(&written)),
        );
        return 1;
    };
    service.insert("scale".to_owned(), json!(count));
    let deploy = service.entry("deploy").or_insert_with(|| json!({}));
    if let Some(deploy) = deploy.as_object_mut() {
        deploy.insert("replicas".to_owned(), json!(count));
    }
    count
}

/// Spells values the way that every compose reads alike; podman-compose 1.0.3 takes keys only from some mappings.
fn uniform(service: &mut Map<String, Value>) {
    for (key, separator) in [("sysctls", '='), ("extra_hosts", ':')] {
        if let Some(Value::Object(map)) = service.get(key) {
            let pairs = map.iter().flat_map(|(name, value)| {
                list(value.clone())
                    .into_iter()
                    .map(move |value| format!("{name}{separator}{}", scalar(&value)))
            });
            let pairs: Value = pairs.collect();
            service.insert(key.to_owned(), pairs);
        }
    }
    // podman-compose takes a word for a list of its letters.
    for key in LISTS {
        if let Some(value) =
            service.get_mut(*key).filter(|value| !value.is_array() && !value.is_object())
        {
            *value = Value::Array(list(value.take()));
        }
    }
    for key in
        ["command", "entrypoint", "expose", "cap_add", "cap_drop", "dns", "dns_search", "group_add"]
    {
        match service.get_mut(key) {
            Some(Value::Array(items)) => items.iter_mut().for_each(spell),
            Some(value @ (Value::Number(_) | Value::Bool(_))) => spell(value),
            _ => {}
        }
    }
    for key in ["user", "working_dir", "hostname", "restart", "stop_grace_period"] {
        if let Some(value) = service.get_mut(key) {
            if key == "restart" && *value == Value::Bool(false) {
                *value = "no".into();
            }
            spell(value);
        }
    }
}

fn spell(value: &mut Value) {
    if matches!(value, Value::Number(_) | Value::Bool(_)) {
        *value = scalar(value).into();
    }
}

fn has_healthcheck(service: &Map<String, Value>) -> bool {
    let Some(check) = service.get("healthcheck") else { return false };
    let test = check.get("test").cloned().unwrap_or_default();
    is_on(&test)
        && !check.get("disable").is_some_and(is_on)
        && list(test).first().map(scalar).as_deref() != Some("NONE")
}
