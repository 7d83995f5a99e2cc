//! Makes every path of a freshly read file absolute, since files that extend or include each other have
//! different folders, and the rendered file lies in a third one.

use serde_json::{Map, Value};

use super::merge;
use super::paths::Workspace;

/// Anchors what a service names, from a file in the folder `base`.
pub(super) fn service(service: &mut Map<String, Value>, base: &str, workspace: &Workspace<'_>) {
    if let Some(volumes) = service.get_mut("volumes") {
        let mut mounts = merge::list(volumes.take());
        for volume in &mut mounts {
            mount(volume, base, workspace);
        }
        *volumes = Value::Array(mounts);
    }
    for key in ["env_file", "label_file"] {
        match service.get_mut(key) {
            Some(Value::Array(items)) => {
                for item in items {
                    file(item, base, workspace);
                }
            }
            Some(item) => file(item, base, workspace),
            None => {}
        }
    }
    if let Some(build) = service.get_mut("build") {
        anchor_build(build, base, workspace);
    }
}

/// Gives each build of a project that has no context the one that it means: the folder `base`.
pub(super) fn contexts(project: &mut Map<String, Value>, base: &str, workspace: &Workspace<'_>) {
    for service in values(project.get_mut("services")) {
        let Some(build) = service.get_mut("build").and_then(Value::as_object_mut) else { continue };
        if !build.get("context").is_some_and(Value::is_string) {
            build.insert("context".to_owned(), workspace.anchor(base, ".").into());
        }
    }
}

/// Anchors the files and devices of top-level secrets, configs and volumes.
pub(super) fn resources(project: &mut Map<String, Value>, base: &str, workspace: &Workspace<'_>) {
    for section in ["secrets", "configs"] {
        for resource in values(project.get_mut(section)) {
            if let Some(Value::String(path)) = resource.get_mut("file") {
                *path = workspace.anchor(base, path);
            }
        }
    }
    for volume in values(project.get_mut("volumes")) {
        let Some(options) = volume.get_mut("driver_opts").and_then(Value::as_object_mut) else {
            continue;
        };
        if is_bind(options)
            && let Some(Value::String(device)) = options.get_mut("device")
        {
            *device = workspace.anchor(base, device);
        }
    }
}

/// Do these options of the local volume driver make a bind mount?
pub(super) fn is_bind(options: &Map<String, Value>) -> bool {
    let text = |key: &str| {
        options.get(key).and_then(Value::as_str).unwrap_or_default().to_ascii_lowercase()
    };
    text("o").split(',').any(|word| matches!(word.trim(), "bind" | "rbind"))
        || matches!(text("type").trim(), "none" | "bind")
}

/// Is the source of a short mount a path (and not the name of a volume)?
pub(super) fn is_path(source: &str) -> bool {
    source.starts_with(['.', '/', '~', '\\']) || source.get(1..3) == Some(":\\")
}

/// Is a build context somewhere on the network?
pub(super) fn is_remote(context: &str) -> bool {
    context.contains("://") || context.starts_with("git@") || context.starts_with("github.com/")
}

fn values(section: Option<&mut Value>) -> impl Iterator<Item = &mut Value> {
    section.and_then(Value::as_object_mut).into_iter().flat_map(|map| map.values_mut())
}

fn mount(volume: &mut Value, base: &str, workspace: &Workspace<'_>) {
    match volume {
        Value::String(text) if is_path(text) => {
            if let Some((source, rest)) = text.split_once(':') {
                *text = format!("{}:{rest}", workspace.anchor(base, source));
            }
        }
        Value::Object(map) if map.get("type").and_then(Value::as_str) == Some("bind") => {
            if let Some(Value::String(source)) = map.get_mut("source") {
                *source = workspace.anchor(base, source);
            }
        }
        _ => {}
    }
}

fn file(item: &mut Value, base: &str, workspace: &Workspace<'_>) {
    let path = if item.is_object() { item.get_mut("path") } else { Some(item) };
    if let Some(Value::String(path)) = path {
        *path = workspace.anchor(base, path);
    }
}

fn anchor_build(build: &mut Value, base: &str, workspace: &Workspace<'_>) {
    if let Value::String(context) = build {
        *build = serde_json::json!({"context": context});
    }
    let Some(map) = build.as_object_mut() else { return };
    match map.get_mut("context") {
        Some(Value::String(context)) if is_remote(context) => {}
        Some(Value::String(context)) => *context = workspace.anchor(base, context),
        // A file below may have one.
        _ => {}
    }
    let Some(contexts) = map.get_mut("additional_contexts") else { return };
    *contexts = merge::assignments(contexts.take());
    for context in values(Some(contexts)) {
        if let Value::String(context) = context
            && !is_remote(context)
            && !context.starts_with("service:")
        {
            *context = workspace.anchor(base, context);
        }
    }
}
