//! `build`: contexts inside the workspace, and nothing of the host's.

use serde_json::{Map, Value};

use crate::domain::profile::Allowance;

use super::document::child;
use super::keys::{self, is_on};
use super::merge::{assignments, list, scalar};
use super::paths::{Target, normalize};
use super::tree::Entry;
use super::{Pass, RenderError, anchor, environment, labels};

/// Judges and renders a `build` whose paths are anchored.
pub(super) fn apply(
    mut build: Map<String, Value>,
    path: &str,
    pass: &mut Pass<'_>,
) -> Result<Map<String, Value>, RenderError> {
    if let Some(why) = &pass.input.host.builds_escape {
        pass.guard(Allowance::Builds, path, format!("{why}; use an image that is built elsewhere"));
    }
    keys::keep_known(&mut build, keys::BUILD, path, pass.findings());
    keys::want_mappings(&build, &["additional_contexts"], path, pass.findings());
    let context = build.get("context").map(scalar).unwrap_or_default();
    if let Some(real) = folder(&context, &child(path, "context"), pass)? {
        build.insert("context".to_owned(), real.clone().into());
        dockerfile(&build, &real, path, pass)?;
    }
    contexts(&mut build, path, pass)?;
    switches(&build, path, pass);
    if build.shift_remove("tags").is_some() {
        pass.findings().rewrite(&child(path, "tags"), "is left out: other sandboxes share the host's image names");
    }
    if let Some(args) = build.shift_remove("args") {
        let mut settled = Map::new();
        environment::settle(assignments(args), &child(path, "args"), &mut pass.loader, &pass.variables, &mut settled);
        build.insert("args".to_owned(), Value::Object(settled));
    }
    if let Some(written) = build.shift_remove("labels") {
        let kept = labels::mapping(written, &child(path, "labels"), pass.findings());
        build.insert("labels".to_owned(), Value::Object(kept));
    }
    Ok(build)
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

fn dockerfile(build: &Map<String, Value>, context: &str, path: &str, pass: &mut Pass<'_>) -> Result<(), RenderError> {
    if anchor::is_remote(context) || build.contains_key("dockerfile_inline") {
        return Ok(());
    }
    let file = build.get("dockerfile").map_or_else(|| "Dockerfile".to_owned(), scalar);
    let anchored = if file.starts_with(['/', '~']) { file.clone() } else { normalize(&format!("{context}/{file}")) };
    if let Target::Outside(why) = pass.locate(&anchored)? {
        pass.guard(
            Allowance::BindMounts,
            &child(path, "dockerfile"),
            format!("`{file}` {why}; copy it into the workspace"),
        );
    }
    Ok(())
}

fn contexts(build: &mut Map<String, Value>, path: &str, pass: &mut Pass<'_>) -> Result<(), RenderError> {
    let Some(Value::Object(contexts)) = build.get_mut("additional_contexts") else { return Ok(()) };
    for (name, context) in contexts {
        let text = scalar(context);
        if text.starts_with("docker-image://") || text.starts_with("service:") {
            continue;
        }
        if let Some(real) = folder(&text, &format!("{path}.additional_contexts.{name}"), pass)? {
            *context = real.into();
        }
    }
    Ok(())
}

fn switches(build: &Map<String, Value>, path: &str, pass: &mut Pass<'_>) {
    let on = |key: &str| build.get(key).is_some_and(is_on);
    for (key, allow, why) in [
        ("privileged", Allowance::Privileged, "a privileged build is root on the host; remove it"),
        ("entitlements", Allowance::Privileged, "entitlements free the build from its confinement; remove them"),
        (
            "ssh",
            Allowance::External,
            "this uses the SSH agent of the account on the host; copy what the build needs into the workspace",
        ),
        ("cache_to", Allowance::External, "this writes the cache out of the sandbox; remove it"),
    ] {
        if on(key) {
            pass.guard(allow, &child(path, key), why);
        }
    }
    if list(build.get("cache_from").cloned().unwrap_or_default()).iter().any(|from| scalar(from).contains("type=local"))
    {
        pass.guard(Allowance::BindMounts, &child(path, "cache_from"), "this reads a folder of the host; remove it");
    }
    match build.get("network").map(scalar).as_deref() {
        None | Some("" | "none" | "default") => {}
        Some("host") => {
            pass.guard(Allowance::HostNetwork, &child(path, "network"), "this is the network of the host; remove it");
        }
        Some(other) => {
            pass.guard(
                Allowance::External,
                &child(path, "network"),
                format!("`{other}` is a network that is not the sandbox's; remove it"),
            );
        }
    }
}
