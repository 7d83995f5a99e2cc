//! `build`: contexts inside the workspace, and nothing of the host's.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::domain::profile::Allowance;

use super::declared::Declared;
use super::dialect::Dialect;
use super::error::RenderError;
use super::keys;
use super::lexical::normalize;
use super::merge::{assignments, list, scalar};
use super::pass::Pass;
use super::paths::Target;
use super::shapes::Section;
use super::tree::Entry;
use super::{anchor, environment, labels};
use crate::domain::problem::join;

/// Folder that a service's image is built from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuildContext {
    pub service: String,
    /// Its absolute path on the host.
    pub folder: String,
    /// The Dockerfile as the file names it.
    pub dockerfile: Option<String>,
}

/// Names that podman's tools take for the Dockerfile when none is named, the first that is there.
const PODMAN_NAMES: &[&str] =
    &["Containerfile", "ContainerFile", "containerfile", "Dockerfile", "DockerFile", "dockerfile"];

/// Keys of a build that are lists, and may be written as the one word that is in them.
const LISTS: &[&str] = &[
    "cache_from",
    "cache_to",
    "entitlements",
    "extra_hosts",
    "no_cache_filter",
    "platforms",
    "secrets",
];

/// Judges and renders a `build` whose paths are anchored.
pub(super) fn apply(
    mut build: Map<String, Value>,
    path: &str,
    declared: &Declared,
    pass: &mut Pass<'_>,
) -> Result<Map<String, Value>, RenderError> {
    if let Some(why) = &pass.input.host.builds_escape {
        pass.guard(Allowance::Builds, path, format!("{why}; use an image that is built elsewhere"));
    }
    keys::keep_known(&mut build, &Section::Build.keys(), path, pass.findings());
    keys::want_mappings(&build, &["additional_contexts"], path, pass.findings());
    let context = build.get("context").map(scalar).unwrap_or_default();
    if let Some(real) = folder(&context, &join(path, "context"), pass)? {
        build.insert("context".to_owned(), real.clone().into());
        dockerfile(&build, &real, path, pass)?;
    }
    contexts(&mut build, path, &declared.services, pass)?;
    secrets(&build, path, &declared.secrets, pass);
    switches(&mut build, path, pass);
    for key in LISTS {
        if let Some(value) =
            build.get_mut(*key).filter(|value| !value.is_array() && !value.is_object())
        {
            *value = Value::Array(list(value.take()));
        }
    }
    if build.shift_remove("tags").is_some() {
        pass.findings().rewrite(
            &join(path, "tags"),
            "is left out: other sandboxes share the host's image names",
        );
    }
    if let Some(args) = build.shift_remove("args") {
        let mut settled = Map::new();
        environment::settle(
            assignments(args),
            &join(path, "args"),
            &mut pass.loader,
            &pass.variables,
            &mut settled,
        );
        build.insert("args".to_owned(), Value::Object(settled));
    }
    if let Some(written) = build.shift_remove("labels") {
        let kept = labels::mapping(written, &join(path, "labels"), pass.findings());
        build.insert("labels".to_owned(), Value::Object(kept));
    }
    Ok(build)
}

/// Folders that a rendered project builds from.
pub(super) fn folders(project: &Value) -> Vec<BuildContext> {
    let services = project.get("services").and_then(Value::as_object).into_iter().flatten();
    let folder = |(service, body): (&String, &Value)| {
        let build = body.get("build")?;
        let folder = build.get("context")?.as_str().filter(|one| !anchor::is_remote(one))?;
        Some(BuildContext {
            service: service.clone(),
            folder: folder.to_owned(),
            dockerfile: build.get("dockerfile").map(scalar),
        })
    };
    services.filter_map(folder).collect()
}

/// A context as the rendered file names it, unless it was refused.
fn folder(context: &str, path: &str, pass: &mut Pass<'_>) -> Result<Option<String>, RenderError> {
    if anchor::is_remote(context) {
        let permitted = pass.guard(
            Allowance::External,
            path,
            format!("`{context}` is fetched from elsewhere; put the sources into the workspace"),
        );
        return Ok(Some(context.to_owned()).filter(|_| permitted));
    }
    Ok(match pass.locate(context)? {
        Target::Inside(inside, Entry::Directory) => {
            let absolute = pass.loader.workspace.absolute(&inside);
            pass.sources.insert(inside);
            Some(absolute)
        }
        Target::Inside(inside, _) | Target::Missing(inside) => {
            pass.findings().refuse(path, None, format!("there is no folder `{inside}` in the workspace; correct the path, or see whether `sync.exclude` leaves it out"));
            None
        }
        Target::Outside(why) => {
            let permitted = pass.guard(
                Allowance::BindMounts,
                path,
                format!("`{context}` {why}; build from a folder of the workspace"),
            );
            Some(context.to_owned()).filter(|_| permitted)
        }
    })
}

fn dockerfile(
    build: &Map<String, Value>,
    context: &str,
    path: &str,
    pass: &mut Pass<'_>,
) -> Result<(), RenderError> {
    let path = join(path, "dockerfile");
    let written = build.get("dockerfile").map(scalar);
    let inline = build.contains_key("dockerfile_inline");
    if inline && written.is_some() {
        let message = "`dockerfile` and `dockerfile_inline` exclude each other, and tools differ in which counts; keep one";
        pass.findings().refuse(&path, None, message);
    }
    let files: Vec<String> = match written {
        Some(file) => vec![file],
        None if inline || anchor::is_remote(context) => Vec::new(),
        None if matches!(pass.input.host.dialect, Dialect::Podman | Dialect::Narrow) => {
            PODMAN_NAMES.iter().map(|name| (*name).to_owned()).collect()
        }
        None => vec!["Dockerfile".to_owned()],
    };
    for file in files {
        let here = file.starts_with(['/', '~']);
        if anchor::is_remote(context) && !here && !file.split('/').any(|part| part == "..") {
            continue;
        }
        let anchored = if here { file.clone() } else { normalize(&format!("{context}/{file}")) };
        if let Target::Outside(why) = pass.locate(&anchored)? {
            let message = format!("`{file}` {why}; copy it into the workspace");
            pass.guard(Allowance::BindMounts, &path, message);
        }
    }
    Ok(())
}

fn contexts(
    build: &mut Map<String, Value>,
    path: &str,
    declared: &BTreeSet<String>,
    pass: &mut Pass<'_>,
) -> Result<(), RenderError> {
    let Some(Value::Object(contexts)) = build.get_mut("additional_contexts") else { return Ok(()) };
    for (name, context) in contexts {
        let text = scalar(context);
        let path = format!("{path}.additional_contexts.{name}");
        if let Some(image) = text.strip_prefix("docker-image://") {
            pass.is_image(image, &path);
            continue;
        }
        if let Some(service) = text.strip_prefix("service:") {
            if !declared.contains(service) {
                pass.findings().refuse(
                    &path,
                    None,
                    format!("there is no service `{service}` that is started; correct the name"),
                );
            }
            continue;
        }
        if let Some(real) = folder(&text, &path, pass)? {
            *context = real.into();
        }
    }
    Ok(())
}

/// The type of a cache, read as the build tool does: CSV, its keys lowered and trimmed. An image has none.
fn cache_type(from: &str) -> Option<String> {
    let fields =
        from.split(',').map(|field| field.trim_matches(|c: char| c == '"' || c.is_whitespace()));
    fields
        .filter_map(|field| field.split_once('='))
        .find(|(name, _)| name.trim().eq_ignore_ascii_case("type"))
        .map(|(_, kind)| kind.trim().to_ascii_lowercase())
}

fn secrets(
    build: &Map<String, Value>,
    path: &str,
    declared: &BTreeSet<String>,
    pass: &mut Pass<'_>,
) {
    for (index, secret) in
        list(build.get("secrets").cloned().unwrap_or_default()).iter().enumerate()
    {
        let name = secret.get("source").map_or_else(|| scalar(secret), scalar);
        if !declared.contains(&name) {
            let message =
                format!("`{}` is not declared; add it under `secrets:`", name.escape_debug());
            pass.findings().refuse(&format!("{path}.secrets[{index}]"), None, message);
        }
    }
}

fn switches(build: &mut Map<String, Value>, path: &str, pass: &mut Pass<'_>) {
    for (key, allow, why) in [
        ("privileged", Allowance::Privileged, "a privileged build is root on the host; remove it"),
        (
            "entitlements",
            Allowance::Privileged,
            "entitlements free the build from its confinement; remove them",
        ),
        (
            "ssh",
            Allowance::External,
            "this uses the SSH agent of the account on the host; copy what the build needs into the workspace",
        ),
        ("cache_to", Allowance::External, "this writes the cache out of the sandbox; remove it"),
    ] {
        if keys::is_on_or_drop(build, key) {
            pass.guard(allow, &join(path, key), why);
        }
    }
    for from in list(build.get("cache_from").cloned().unwrap_or_default()).iter().map(scalar) {
        let path = join(path, "cache_from");
        match cache_type(&from).as_deref() {
            None | Some("registry") => {}
            Some("local") => {
                pass.guard(
                    Allowance::BindMounts,
                    &path,
                    "this reads a folder of the host; remove it",
                );
            }
            Some(other) => {
                let message = format!(
                    "a cache of type `{}` needs credentials of the host; name an image",
                    other.escape_debug()
                );
                pass.guard(Allowance::External, &path, message);
            }
        }
    }
    match build.get("network").map(scalar).as_deref() {
        None | Some("" | "none" | "default") => {}
        Some("host") => {
            pass.guard(
                Allowance::HostNetwork,
                &join(path, "network"),
                "this is the network of the host; remove it",
            );
        }
        Some(other) => {
            pass.guard(
                Allowance::External,
                &join(path, "network"),
                format!("`{other}` is a network that is not the sandbox's; remove it"),
            );
        }
    }
}
