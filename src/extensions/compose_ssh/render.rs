//! From a workspace's compose file to the one that is started: interpolated, self-contained, labelled, and
//! without a way out of the sandbox that the profile does not permit.
//!
//! Pure: a workspace is read through [`Tree`], nothing is written, no clock, no environment. The rendered file
//! lies beside the workspace and names every path absolutely, so no project directory has to be given to the
//! engine's compose, and the workspace's `.env` is not read a second time there.

mod anchor;
mod attachments;
mod builds;
mod choose;
mod declared;
mod dialect;
mod document;
mod dotenv;
mod engine;
mod environment;
mod error;
mod findings;
mod host;
mod images;
mod include;
mod interpolate;
mod keys;
mod labels;
mod load;
mod merge;
mod mounts;
mod nameless;
mod networks;
mod order;
mod paths;
mod policy;
mod ports;
mod project;
mod pulls;
mod rendered;
mod resources;
mod services;
mod shapes;
#[cfg(test)]
mod tests;
mod tree;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::domain::profile::{Allowance, Compose};
use crate::domain::sandbox::Rewrite;
use crate::extensions::compose_ssh::mask::Masker;

pub use dialect::Dialect;
pub use error::RenderError;
pub use findings::{Place, Refusal};
pub use host::HostContext;
pub use ports::ContainerPort;
pub use pulls::{Pull, PullPolicy};
pub use rendered::judge_rendered;
pub use services::ServicePlan;
pub use tree::{Entry, LocalTree, MemoryTree, Tree};

use findings::Findings;
use interpolate::Variables;
use load::Loader;
use paths::{Target, Workspace};

/// Most services of one sandbox.
const MAX_SERVICES: usize = 500;

/// Everything that decides what is rendered, beside the workspace.
#[derive(Clone, Copy, Debug)]
pub struct RenderInput<'a> {
    /// The sandbox's id, for labels, the project and image names.
    pub sandbox_id: &'a str,
    /// The installation's id, for the label.
    pub owner: &'a str,
    /// The profile's id, for the label.
    pub profile_id: &'a str,
    /// Absolute path of the workspace on the host.
    pub workdir: &'a str,
    /// The compose files, relative to the workspace, with commas between them; none: `COMPOSE_FILE` of `.env`, or the names that
    /// compose looks for.
    pub compose_file: Option<&'a str>,
    /// What happens to published ports, and what the profile permits by name.
    pub compose: &'a Compose,
    /// Variables of the profile; they win over `.env`.
    pub variables: &'a BTreeMap<String, String>,
    /// The host that it is rendered for.
    pub host: &'a HostContext,
}

/// A compose file ready to start, and what is known about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rendered {
    /// The file's text: JSON under a comment, which every YAML reader takes alike.
    pub yaml: String,
    /// The services that are started, in the file's order.
    pub services: Vec<ServicePlan>,
    /// What was changed.
    pub rewrites: Vec<Rewrite>,
    /// Images that are pulled, sorted; built ones are not among them.
    pub images: Vec<String>,
    /// Whether a network asks for certain addresses, so that it matters which ones lead somewhere on the host.
    pub fixed_addresses: bool,
    /// Images that must be on the host before anything can be started or built.
    pub pulls: Vec<Pull>,
    /// Named volumes, as the file calls them, sorted.
    pub volumes: Vec<String>,
    /// Workspace-relative paths that the engine mounts or builds from, sorted. Containers can replace them by
    /// links: look again on the host before each start.
    pub sources: Vec<String>,
    /// Files that lie beside it, by name: secrets that are a variable's value.
    pub secrets: BTreeMap<String, String>,
    /// Variables that it was filled in with: whoever tells what a tool said of it masks these.
    pub variables: BTreeMap<String, String>,
}

/// Variable for the folder in which compose is called: the workspace.
const FOLDER: &str = "PWD";

/// One rendering under way.
struct Pass<'a> {
    input: &'a RenderInput<'a>,
    loader: Loader<'a>,
    variables: Variables,
    images: BTreeSet<String>,
    sources: BTreeSet<String>,
    /// Files beside the rendered one, by name.
    secrets: BTreeMap<String, String>,
    /// What the engine looks up when a container starts, relative to the workspace.
    mounted: BTreeSet<String>,
    /// What a container can write, relative to the workspace, and where the file says so.
    writable: Vec<(String, String)>,
}

impl<'a> Pass<'a> {
    fn new(input: &'a RenderInput<'a>, loader: Loader<'a>, variables: Variables) -> Self {
        Self {
            input,
            loader,
            variables,
            images: BTreeSet::new(),
            sources: BTreeSet::new(),
            secrets: BTreeMap::new(),
            mounted: BTreeSet::new(),
            writable: Vec::new(),
        }
    }

    fn findings(&mut self) -> &mut Findings {
        self.loader.findings
    }

    /// Refuses at `path` unless the profile permits `allow`; is it permitted?
    fn guard(&mut self, allow: Allowance, path: &str, message: impl Into<String>) -> bool {
        let permitted = self.input.compose.allow.contains(&allow);
        if !permitted {
            self.findings().refuse(path, Some(allow), message);
        }
        permitted
    }

    fn locate(&self, anchored: &str) -> Result<Target, RenderError> {
        self.loader
            .workspace
            .locate(anchored)
            .map_err(|source| RenderError::Unreadable { file: anchored.to_owned(), source })
    }

    fn labels(&self) -> [(String, Value); 3] {
        [
            ("sandboxer.id", self.input.sandbox_id),
            ("sandboxer.owner", self.input.owner),
            ("sandboxer.profile", self.input.profile_id),
        ]
        .map(|(name, value)| (name.to_owned(), value.into()))
    }

    /// The name of an image that the sandbox builds. The service is the tag, which takes whatever a service may be called: in
    /// `sbx-a-b-c` nobody can tell where the id ends, and a repository's name has no capitals.
    fn image_of(&self, service: &str) -> String {
        format!("sbx-{}-built:{service}", self.input.sandbox_id)
    }
}

/// Renders the workspace's compose file.
///
/// # Errors
/// [`RenderError`]: the file cannot be read or understood, or it asks for what the profile does not permit.
pub fn render(tree: &dyn Tree, input: &RenderInput<'_>) -> Result<Rendered, RenderError> {
    render_telling(tree, input, &mut Vec::new())
}

/// Same as [`render`]; changes are in `rewrites` also where the file is refused.
///
/// # Errors
/// The same as of [`render`].
pub fn render_telling(
    tree: &dyn Tree,
    input: &RenderInput<'_>,
    rewrites: &mut Vec<Rewrite>,
) -> Result<Rendered, RenderError> {
    let mut findings = Findings::default();
    let workspace = Workspace::new(tree, input.workdir);
    let mut loader = Loader::new(
        &workspace,
        &mut findings,
        input.compose.allow.contains(&Allowance::BindMounts),
    );
    let outer = outer(input, &workspace);
    let mut variables = loader.environment_file(".env", &outer)?;
    variables.extend(outer.clone());
    let files = loader.choose(input.compose_file, &variables)?;
    let folder = paths::parent(&files[0]).to_owned();
    if !folder.is_empty() {
        variables.extend(loader.environment_file(&format!("{folder}/.env"), &outer)?);
        variables.extend(outer);
    }
    let sources = loader.sources(&files)?;
    let project = loader.project(&sources, &folder, &variables)?;
    settle(project, Pass::new(input, loader, variables), rewrites)
}

/// Rules over a project whose files are read: it becomes the file that is started, or is refused.
fn settle(
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
        &paths::normalize(input.workdir),
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
    let yaml = print(project);
    Ok(Rendered {
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

/// Variables that win over those of every `.env`: the profile's, and what compose sets itself.
fn outer(input: &RenderInput<'_>, workspace: &Workspace<'_>) -> Variables {
    let mut outer = input.variables.clone();
    outer.insert("COMPOSE_PROJECT_NAME".to_owned(), format!("sbx-{}", input.sandbox_id));
    outer.entry(FOLDER.to_owned()).or_insert_with(|| workspace.absolute(""));
    outer
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
    let declared = declared::Declared {
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
    declared: &declared::Declared,
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
