//! Mounts of a service: where each really points.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::domain::profile::Allowance;

use super::engine::reaches_engine;
use super::error::RenderError;
use super::merge::scalar;
use super::pass::Pass;
use super::paths::Target;
use super::shapes::Section;
use super::{anchor, keys, labels, shapes};
use crate::domain::problem::join;

/// Options of a short mount that change nothing outside the sandbox.
const MODES: &[&str] = &[
    "ro",
    "rw",
    "z",
    "Z",
    "cached",
    "delegated",
    "consistent",
    "nocopy",
    "private",
    "rprivate",
    "slave",
    "rslave",
    "noexec",
    "exec",
    "nodev",
    "nosuid",
    "bind",
    "rbind",
    "U",
];

impl Pass<'_> {
    /// A container that can write a folder can put a link in the place of what is in it, and the engine follows that
    /// link, out of the workspace, when it starts the next container. What was looked at here proves nothing then.
    pub(super) fn refuse_replaceable(&mut self) {
        let within = |inner: &str, outer: &str| {
            !inner.is_empty()
                && (outer.is_empty()
                    || inner.strip_prefix(outer).is_some_and(|rest| rest.starts_with('/')))
        };
        for (outer, path) in std::mem::take(&mut self.writable) {
            let Some(inner) = self.mounted.iter().find(|inner| within(inner, &outer)).cloned()
            else {
                continue;
            };
            let place =
                if outer.is_empty() { "the workspace".to_owned() } else { format!("`{outer}`") };
            self.guard(
                Allowance::BindMounts,
                &path,
                format!(
                    "a container that writes {place} can replace `{inner}`, which is mounted too, by a link out of the \
                     workspace; mount it read-only (`:ro`), or mount only what has to be written"
                ),
            );
        }
    }
}

/// Judges and renders `volumes` of a service; `declared` are the project's named volumes.
pub(super) fn apply(
    volumes: Vec<Value>,
    path: &str,
    declared: &BTreeSet<String>,
    pass: &mut Pass<'_>,
) -> Result<Vec<Value>, RenderError> {
    let mut rendered = Vec::new();
    for (index, volume) in volumes.into_iter().enumerate() {
        let path = format!("{path}[{index}]");
        let mount = match volume {
            Value::String(text) => match clock_of(&text) {
                Some(mount) => Some(mount),
                None => short(&text, &path, declared, pass)?.map(Value::String),
            },
            Value::Object(map) if is_clock(&map) => {
                Some(clock(&scalar(&map["source"]), &scalar(&map["target"])))
            }
            Value::Object(map) => long(map, &path, declared, pass)?.map(Value::Object),
            _ => {
                pass.findings().refuse(
                    &path,
                    None,
                    "a mount is written as `./source:/target` or as a mapping with `type:` and `target:`",
                );
                None
            }
        };
        // A refused one keeps its place, so that the paths of those behind it stay right.
        rendered.push(mount.unwrap_or_default());
    }
    Ok(rendered)
}

/// Files of the host that say which time it is there, and no more: a container may read them.
const CLOCK: [&str; 2] = ["/etc/localtime", "/etc/timezone"];

/// A mount in the short syntax that only reads a file of the host's clock. `z`, `Z` and `U` would change the file.
fn clock_of(text: &str) -> Option<Value> {
    let [source, target, "ro"] = text.split(':').collect::<Vec<_>>()[..] else { return None };
    (CLOCK.contains(&source) && target.starts_with('/')).then(|| clock(source, target))
}

/// The same in the long syntax.
fn is_clock(map: &Map<String, Value>) -> bool {
    let word = |key: &str| map.get(key).and_then(Value::as_str).unwrap_or_default();
    let plain = |(key, value): (&String, &Value)| match key.as_str() {
        "type" | "source" | "target" => true,
        "read_only" => *value == true,
        "bind" => {
            value.as_object().is_some_and(|bind| bind.keys().all(|key| key == "create_host_path"))
        }
        _ => false,
    };
    word("type") == "bind"
        && CLOCK.contains(&word("source"))
        && word("target").starts_with('/')
        && map.contains_key("read_only")
        && map.iter().all(plain)
}

/// Rendered form of either: nothing makes the file where a host has none.
fn clock(source: &str, target: &str) -> Value {
    json!({"type": "bind", "source": source, "target": target, "read_only": true, "bind": {"create_host_path": false}})
}

fn short(
    text: &str,
    path: &str,
    declared: &BTreeSet<String>,
    pass: &mut Pass<'_>,
) -> Result<Option<String>, RenderError> {
    let parts: Vec<&str> = text.split(':').collect();
    let (source, target, mode) = match parts.as_slice() {
        [target] => (None, *target, ""),
        [target, mode] if target.starts_with('/') && MODES.contains(mode) => (None, *target, *mode),
        [source, target] => (Some(*source), *target, ""),
        [source, target, mode] => (Some(*source), *target, *mode),
        _ => {
            pass.findings().refuse(
                path,
                None,
                format!("`{text}` is no mount; write `source:/target[:ro]`"),
            );
            return Ok(None);
        }
    };
    if !target.starts_with('/') {
        pass.findings().refuse(
            path,
            None,
            format!("`{target}` is no absolute path in the container; write `source:/target[:ro]`"),
        );
        return Ok(None);
    }
    let words = options(mode, path, pass);
    // `U` gives the files to the container's user.
    let writable = !words.contains(&"ro") || words.contains(&"U");
    let suffix = if mode.is_empty() { String::new() } else { format!(":{mode}") };
    let Some(source) = source else { return Ok(Some(format!("{target}{suffix}"))) };
    let source = if anchor::is_path(source) {
        match bind(source, path, writable, pass)? {
            Some(source) => source,
            None => return Ok(None),
        }
    } else {
        named(source, path, declared, pass);
        source.to_owned()
    };
    Ok(Some(format!("{source}:{target}{suffix}")))
}

/// Judges the options of a mount; those that stand once and against no other are returned.
fn options<'m>(mode: &'m str, path: &str, pass: &mut Pass<'_>) -> Vec<&'m str> {
    let options = shapes::mount_options(mode).unwrap_or_else(|message| {
        pass.findings().refuse(path, None, message);
        Vec::new()
    });
    for option in &options {
        if matches!(*option, "shared" | "rshared") {
            pass.guard(
                Allowance::Privileged,
                path,
                format!("`{option}` lets mounts of the container appear on the host; remove it"),
            );
        } else if !MODES.contains(option) {
            pass.findings().refuse(
                path,
                None,
                format!("`{option}` is no known mount option; use `ro` or `rw`"),
            );
        }
    }
    options
}

fn named(source: &str, path: &str, declared: &BTreeSet<String>, pass: &mut Pass<'_>) {
    if !declared.contains(source) {
        pass.findings().refuse(
            path,
            None,
            format!(
                "the volume `{source}` is not declared; add it under `volumes:`, or write `./{source}` for a folder"
            ),
        );
    }
}

/// Judges the source of a bind mount. `None` if it was refused.
pub(super) fn bind(
    source: &str,
    path: &str,
    writable: bool,
    pass: &mut Pass<'_>,
) -> Result<Option<String>, RenderError> {
    let (rendered, permitted) = match pass.locate(source)? {
        // The real path, so that a link that is changed later is not followed.
        Target::Inside(inside, _) | Target::Missing(inside) => {
            let absolute = pass.loader.workspace.absolute(&inside);
            if writable {
                pass.writable.push((inside.clone(), path.to_owned()));
            }
            pass.mounted.insert(inside.clone());
            pass.sources.insert(inside);
            (absolute, true)
        }
        Target::Outside(why) => {
            let permitted = pass.guard(
                Allowance::BindMounts,
                path,
                format!("`{source}` {why}; copy it into the workspace or use a named volume"),
            );
            (source.to_owned(), permitted)
        }
    };
    let harmless = !(reaches_engine(source) || reaches_engine(&rendered))
        || pass.guard(
            Allowance::Privileged,
            path,
            format!("`{source}` hands the container engine to the container; remove the mount"),
        );
    Ok(Some(rendered).filter(|_| permitted && harmless))
}

/// Labels of a volume that a mount makes must not claim that it is another project's.
fn own_labels(map: &mut Map<String, Value>, path: &str, pass: &mut Pass<'_>) {
    let Some(options) = map.get_mut("volume").and_then(Value::as_object_mut) else { return };
    let Some(written) = options.shift_remove("labels") else { return };
    let kept = labels::mapping(written, &join(path, "volume.labels"), pass.findings());
    options.insert("labels".to_owned(), Value::Object(kept));
}

fn long(
    mut map: Map<String, Value>,
    path: &str,
    declared: &BTreeSet<String>,
    pass: &mut Pass<'_>,
) -> Result<Option<Map<String, Value>>, RenderError> {
    keys::keep_known(&mut map, &Section::Mount.keys(), path, pass.findings());
    own_labels(&mut map, path, pass);
    let kind = map.get("type").map(scalar).unwrap_or_default();
    let source = map.get("source").map(scalar).unwrap_or_default();
    if !map.get("target").map(scalar).unwrap_or_default().starts_with('/') {
        pass.findings().refuse(
            path,
            None,
            "a mount needs `target:` with an absolute path in the container",
        );
        return Ok(None);
    }
    match kind.as_str() {
        "bind" => {
            let propagation = map
                .get("bind")
                .and_then(|bind| bind.get("propagation"))
                .map(scalar)
                .unwrap_or_default();
            options(&propagation, &join(path, "bind.propagation"), pass);
            // Only what every tool takes for true: text is made the one or the other before it is printed.
            let writable = map.get("read_only").is_none_or(|value| *value != true);
            let Some(source) = bind(&source, &join(path, "source"), writable, pass)? else {
                return Ok(None);
            };
            map.insert("source".to_owned(), source.into());
        }
        "volume" if source.is_empty() => {}
        "volume" if anchor::is_path(&source) => {
            pass.findings().refuse(path, None, format!("`{source}` is a path; write `type: bind`"));
        }
        "volume" => named(&source, path, declared, pass),
        "tmpfs" => {}
        "image" => pass.image(&source, &join(path, "source")),
        "cluster" => {
            pass.guard(
                Allowance::External,
                path,
                "a cluster volume is not the sandbox's own; use a named volume",
            );
        }
        _ => pass.findings().refuse(
            path,
            None,
            format!("`{kind}` is no kind of mount; write `type: bind`, `volume` or `tmpfs`"),
        ),
    }
    Ok(Some(map))
}
