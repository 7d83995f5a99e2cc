//! The shape of every value of a rendered file, judged last, right before it is printed.
//!
//! Compose tools hand a service on as words: podman-compose prints `--log-opt=KEY=VALUE`, `-v SOURCE:TARGET:OPTIONS`,
//! `--network=NAME:alias=ALIAS,ip=ADDRESS`, Docker's own prints `id=ID,type=file,src=FILE` for a build, and the engine takes
//! such a word apart again at `,`, `:`, `=`, quotes (it is CSV to podman) and, where it lowers keys, in its own spelling. A value that
//! holds one of these becomes options that nobody judged. So each key says here what it may hold, a key that is not here is
//! refused, and whatever is rendered has passed: there is no way around it for what is added later.
//!
//! Free text is only what travels as an argument of its own or behind the first `=` of one that is not taken apart
//! further: commands, values of variables, labels and build arguments, the content of configs.

mod mounts;
mod shape;
mod table;
mod words;

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::dialect::Dialect;
use super::findings::Findings;
use super::lexical::normalize;
use super::merge::scalar;
use crate::domain::problem::join;
use crate::domain::text::nearest;

pub(super) use mounts::{mount_options, tmpfs_options};
use shape::Shape;

/// Mapping of a compose file whose keys are in the table.
#[derive(Clone, Copy, Debug)]
pub(super) enum Section {
    Service,
    Build,
    Network,
    Volume,
    /// A secret or config.
    File,
    /// A mount in the long syntax.
    Mount,
}

impl Section {
    /// Keys that may be written: those of the table, and those that are resolved before it is asked, or dropped.
    pub(super) fn keys(self) -> Vec<&'static str> {
        let (shapes, resolved): (&'static [(&str, Shape)], &[&str]) = match self {
            Self::Service => (
                table::SERVICE,
                &["container_name", "develop", "extends", "label_file", "profiles"],
            ),
            Self::Build => (table::BUILD, &["tags"]),
            Self::Network => (table::NETWORK, &[]),
            Self::Volume => (table::VOLUME, &[]),
            Self::File => (table::FILE, &["labels"]),
            Self::Mount => (table::MOUNT, &[]),
        };
        shapes.iter().map(|(key, _)| *key).chain(resolved.iter().copied()).collect()
    }
}

/// Refuses what does not have its shape.
pub(super) fn judge(project: &mut Value, workdir: &str, dialect: Dialect, findings: &mut Findings) {
    let mut judge = Judge { workdir, dialect, findings };
    judge.value(project, &table::PROJECT, "");
    let Some(services) = project.get("services").and_then(Value::as_object) else { return };
    for (name, service) in services {
        judge.repeated(service, &format!("services.{name}"));
        judge.subpaths(service, project.get("volumes"), &format!("services.{name}.volumes"));
    }
}

struct Judge<'a> {
    workdir: &'a str,
    dialect: Dialect,
    findings: &'a mut Findings,
}

impl Judge<'_> {
    fn value(&mut self, value: &mut Value, shape: &Shape, path: &str) {
        match (shape, value) {
            // Nothing is printed for it. Keys that are taken for options never get here without a value.
            (Shape::Any, _) | (_, Value::Null) => {}
            (Shape::Texts | Shape::List(_) | Shape::Names(..), Value::Array(items)) => {
                let inner = if let Shape::List(inner) | Shape::Names(inner, _) = shape {
                    inner
                } else {
                    &Shape::Text
                };
                for (index, item) in items.iter_mut().enumerate() {
                    self.value(item, inner, &format!("{path}[{index}]"));
                }
            }
            (Shape::Keys(keys) | Shape::Long(_, keys), Value::Object(map)) => {
                self.keys(map, keys, path);
            }
            (Shape::Mount, Value::Object(map)) => self.mount(map, path),
            (Shape::Open(name, inner), Value::Object(map)) => self.open(map, name, inner, path),
            (Shape::Names(_, inner), Value::Object(map)) => {
                self.open(map, &table::NAME, inner, path);
            }
            (Shape::LogOptions, Value::Object(map)) => self.log_options(map, path),
            (Shape::Switch, value @ (Value::String(_) | Value::Number(_))) => {
                match words::switch(&scalar(value)) {
                    Some(on) => *value = Value::Bool(on),
                    None => self.refuse(path, words::sentence(&scalar(value), "`true` or `false`")),
                }
            }
            (Shape::List(_) | Shape::Names(..), _) => {
                self.refuse(path, "it is a list; write `[…]`");
            }
            (Shape::Keys(_) | Shape::Open(..) | Shape::LogOptions, _) => {
                self.refuse(path, "it is a mapping; write `KEY: VALUE`");
            }
            (_, Value::Array(_) | Value::Object(_)) => {
                self.refuse(path, "it is one word; write it without `[…]` or `{…}`");
            }
            (shape, value) => self.word(&scalar(value), shape, path),
        }
    }

    fn word(&mut self, text: &str, shape: &Shape, path: &str) {
        let message = match shape {
            Shape::Long(inner, _) => return self.word(text, inner, path),
            Shape::Line if text.contains(char::is_control) => {
                "it is one line; write it without a line break".to_owned()
            }
            Shape::Word(rule, write) if !rule(text) => words::sentence(text, write),
            Shape::OneOf(words) if !words.contains(&text) => {
                words::sentence(text, &words.join(", "))
            }
            Shape::Context if words::is_remote_context(text) => return,
            Shape::Source | Shape::Context if !words::is_path(&self.below(text)) => {
                words::sentence(&self.below(text), words::PATH)
            }
            Shape::Mount => match mounts::short_mount(&self.below(text)) {
                None => return,
                Some(message) => message,
            },
            // A switch that is text became one or was refused.
            Shape::Any
            | Shape::Text
            | Shape::Texts
            | Shape::Line
            | Shape::Switch
            | Shape::Word(..)
            | Shape::OneOf(_)
            | Shape::Source
            | Shape::Context => return,
            Shape::List(_)
            | Shape::Names(..)
            | Shape::Keys(_)
            | Shape::Open(..)
            | Shape::LogOptions => "it is no single word; write a list or mapping".to_owned(),
        };
        self.refuse(path, message);
    }

    /// A path or mount with `.` for the workspace.
    fn below(&self, text: &str) -> String {
        let rest = text
            .strip_prefix(self.workdir)
            .filter(|rest| rest.is_empty() || rest.starts_with(['/', ':']));
        rest.map_or_else(|| text.to_owned(), |rest| format!(".{rest}"))
    }

    fn keys(&mut self, map: &mut Map<String, Value>, known: &[(&str, Shape)], path: &str) {
        map.retain(|key, _| !key.starts_with("x-"));
        for (key, value) in map {
            let path = join(path, key);
            if let Some((_, shape)) = known.iter().find(|(name, _)| name == key) {
                self.value(value, shape, &path);
                continue;
            }
            let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
            let hint = nearest(key, names.iter().copied()).map_or_else(
                || format!("; known are {}", names.join(", ")),
                |name| format!(", did you mean `{name}`?"),
            );
            self.refuse(&path, format!("unknown key `{}`{hint}", words::shown(key)));
        }
    }

    fn mount(&mut self, map: &mut Map<String, Value>, path: &str) {
        self.keys(map, table::MOUNT, path);
        let source = match map.get("type").and_then(Value::as_str) {
            Some("image") => &table::IMAGE,
            Some("cluster") => &Shape::Line,
            _ => &Shape::Source,
        };
        if let Some(written) = map.get_mut("source").filter(|source| **source != "") {
            self.value(written, source, &join(path, "source"));
        }
    }

    /// An option of another driver is the driver's own text to Docker; podman takes it for a list.
    fn log_options(&mut self, map: &mut Map<String, Value>, path: &str) {
        let (mut elsewhere, mut known) = (Map::new(), Map::new());
        for (key, value) in std::mem::take(map) {
            let foreign = table::LOG_PREFIXES.iter().any(|prefix| key.starts_with(prefix))
                && words::is_option_key(&key);
            if foreign { &mut elsewhere } else { &mut known }.insert(key, value);
        }
        let podman = matches!(self.dialect, Dialect::Podman | Dialect::Narrow);
        self.open(
            &mut elsewhere,
            &Shape::Text,
            if podman { &table::VALUE } else { &Shape::Text },
            path,
        );
        self.keys(&mut known, table::LOG_OPTIONS, path);
        map.extend(known);
        map.extend(elsewhere);
    }

    fn open(&mut self, map: &mut Map<String, Value>, name: &Shape, inner: &Shape, path: &str) {
        for (key, value) in map {
            let path = join(path, key);
            self.word(key, name, &path);
            self.value(value, inner, &path);
        }
    }

    /// Repeats: of what is mounted or set twice, tools differ in which one counts.
    fn repeated(&mut self, service: &Value, path: &str) {
        let items = |key: &str| {
            service.get(key).and_then(Value::as_array).into_iter().flatten().enumerate()
        };
        let mut names = HashSet::new();
        for (index, entry) in items("sysctls").map(|(index, entry)| (index, scalar(entry))) {
            let name = entry.split('=').next().unwrap_or_default().to_owned();
            if !names.insert(name.clone()) {
                self.refuse(
                    &format!("{path}.sysctls[{index}]"),
                    format!("`{name}` is set twice; keep one"),
                );
            }
        }
        let mut targets = HashSet::new();
        for key in ["volumes", "tmpfs", "secrets", "configs"] {
            for (index, target) in
                items(key).filter_map(|(index, item)| Some((index, mount_point(key, item)?)))
            {
                let place = normalize(&target);
                if !targets.insert(place.clone()) {
                    let message =
                        format!("`{}` is mounted twice; keep one of the two", words::shown(&place));
                    self.refuse(&format!("{path}.{key}[{index}]"), message);
                }
            }
        }
    }

    /// A folder below a volume that is itself a folder of the workspace is looked up when the container starts: whoever
    /// writes the volume can put a link there.
    fn subpaths(&mut self, service: &Value, volumes: Option<&Value>, path: &str) {
        for (index, mount) in
            service.get("volumes").and_then(Value::as_array).into_iter().flatten().enumerate()
        {
            let source = mount.get("source").and_then(Value::as_str).unwrap_or_default();
            let device =
                volumes.and_then(|volumes| volumes.get(source)?.get("driver_opts")?.get("device"));
            if device.is_some()
                && mount.get("volume").and_then(|volume| volume.get("subpath")).is_some()
            {
                let message = format!(
                    "`{source}` is a folder of the workspace; mount the folder below it with `type: bind`"
                );
                self.refuse(&format!("{path}[{index}].volume.subpath"), message);
            }
        }
    }

    /// Where earlier rules have refused, one sentence is enough.
    fn refuse(&mut self, path: &str, message: impl Into<String>) {
        if !self.findings.refuses(path) {
            self.findings.refuse(path, None, message);
        }
    }
}

/// Where an entry of a service's mounts, secrets or configs appears in the container.
fn mount_point(key: &str, item: &Value) -> Option<String> {
    let target = item.get("target").map(scalar);
    match (key, item) {
        ("tmpfs", item) => scalar(item).split(':').next().map(str::to_owned),
        ("volumes", Value::String(text)) => {
            let mut parts = text.split(':');
            let first = parts.next()?;
            Some(parts.next().filter(|part| part.starts_with('/')).unwrap_or(first).to_owned())
        }
        ("volumes", _) => target,
        (_, item) => {
            let name =
                target.or_else(|| item.get("source").map(scalar)).unwrap_or_else(|| scalar(item));
            let folder = if key == "secrets" { "/run/secrets" } else { "" };
            Some(if name.starts_with('/') { name } else { format!("{folder}/{name}") })
        }
    }
}
