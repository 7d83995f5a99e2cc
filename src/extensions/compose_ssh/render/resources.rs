//! Top-level volumes, secrets and configs, and what networks have in common with them.

use serde_json::{Map, Value, json};

use crate::domain::profile::Allowance;

use super::error::RenderError;
use super::keys::{self, is_on};
use super::lexical::normalize;
use super::merge::scalar;
use super::pass::Pass;
use super::shapes::Section;
use super::{anchor, dialect, labels, mounts, shapes};
use crate::domain::problem::join;

/// Beginning of the names of files in the sandbox's folder that hold a secret each.
const SECRET: &str = "secret.";

/// Renders the named volumes.
pub(super) fn volumes(
    declared: Map<String, Value>,
    pass: &mut Pass<'_>,
) -> Result<Map<String, Value>, RenderError> {
    let mut rendered = Map::new();
    for (name, volume) in declared {
        let path = format!("volumes.{name}");
        let Some(mut volume) = definition(&name, volume, &Section::Volume.keys(), &path, pass)
        else {
            continue;
        };
        if !external(&mut volume, &name, &path, "volume", pass) {
            own(&mut volume, &path, pass);
            let driver = volume.get("driver").map(scalar).unwrap_or_default();
            if !matches!(driver.as_str(), "" | "local" | "default") {
                pass.guard(
                    Allowance::External,
                    &join(&path, "driver"),
                    format!("`{driver}` keeps data outside the sandbox; remove it"),
                );
            }
            driver_options(&mut volume, &join(&path, "driver_opts"), pass)?;
            dialect::volume(&mut volume, &path, pass);
        }
        rendered.insert(name, Value::Object(volume));
    }
    Ok(rendered)
}

/// The local driver mounts whatever its options say: a folder of the host, a disk, a share.
fn driver_options(
    volume: &mut Map<String, Value>,
    path: &str,
    pass: &mut Pass<'_>,
) -> Result<(), RenderError> {
    let local = volume
        .get("driver")
        .map(scalar)
        .is_none_or(|driver| matches!(driver.as_str(), "" | "local" | "default"));
    let Some(Value::Object(options)) = volume.get_mut("driver_opts") else { return Ok(()) };
    let text = |key: &str| options.get(key).map(scalar).unwrap_or_default();
    let (kind, device, words) = (text("type"), text("device"), text("o"));
    for key in options.keys().filter(|key| local && !LOCAL_OPTIONS.contains(&key.as_str())) {
        let message = format!(
            "unknown option `{}`; the local driver knows {}",
            key.escape_debug(),
            LOCAL_OPTIONS.join(", ")
        );
        pass.findings().refuse(&join(path, key), None, message);
    }
    let memory = kind == "tmpfs" || (kind.is_empty() && device.is_empty());
    if anchor::is_bind(options) {
        if let Err(message) = bind_options(&words) {
            pass.findings().refuse(&join(path, "o"), None, message);
        }
        if let Some(source) = mounts::bind(&device, &join(path, "device"), true, pass)? {
            options.insert("device".to_owned(), source.into());
        }
    } else if memory && local {
        // A plain volume takes what a file system in memory does: who owns it, and how large it is.
        if let Err(message) = shapes::tmpfs_options(&words) {
            pass.findings().refuse(&join(path, "o"), None, message);
        }
        if !matches!(device.as_str(), "" | "tmpfs" | "none") {
            let message = format!(
                "`{}` is no device of memory; write `device: tmpfs`",
                device.escape_debug()
            );
            pass.findings().refuse(&join(path, "device"), None, message);
        }
    } else if device.starts_with("/dev/") {
        pass.guard(
            Allowance::Devices,
            &join(path, "device"),
            format!("`{device}` is a disk of the host; use a plain volume"),
        );
    } else {
        pass.guard(
            Allowance::External,
            path,
            format!("`{kind}` mounts something that is not the sandbox's; use a plain volume"),
        );
    }
    Ok(())
}

/// Options that podman's and Docker's local driver read alike.
const LOCAL_OPTIONS: &[&str] = &["type", "device", "o"];

/// Words that a volume which is a folder of the workspace may have in `o`.
fn bind_options(words: &str) -> Result<(), String> {
    const KNOWN: &[&str] = &[
        "bind", "rbind", "ro", "rw", "exec", "noexec", "dev", "nodev", "suid", "nosuid", "private",
        "rprivate", "slave", "rslave", "noatime", "relatime", "defaults",
    ];
    let unknown = shapes::mount_options(words)?.into_iter().find(|word| !KNOWN.contains(word));
    unknown.map_or(Ok(()), |word| {
        Err(format!(
            "`{}` is no option of a folder that is a volume; write `o: bind`",
            word.escape_debug()
        ))
    })
}

/// Renders secrets or configs.
pub(super) fn files(
    section: &str,
    declared: Map<String, Value>,
    pass: &mut Pass<'_>,
) -> Result<Map<String, Value>, RenderError> {
    let mut rendered = Map::new();
    for (name, file) in declared {
        let path = format!("{section}.{name}");
        let Some(mut file) = definition(&name, file, &Section::File.keys(), &path, pass) else {
            continue;
        };
        if external(&mut file, &name, &path, section.trim_end_matches('s'), pass) {
            rendered.insert(name, Value::Object(file));
            continue;
        }
        if file.shift_remove("name").is_some() {
            pass.findings()
                .rewrite(&join(&path, "name"), "is left out: names belong to the sandbox");
        }
        file.shift_remove("labels");
        for key in ["driver", "template_driver", "driver_opts"] {
            if file.contains_key(key) {
                pass.guard(
                    Allowance::External,
                    &join(&path, key),
                    "a driver keeps this outside the sandbox; use `file:` in the workspace",
                );
            }
        }
        let sources = ["file", "content", "environment"]
            .into_iter()
            .filter(|key| file.contains_key(*key))
            .count();
        if sources > 1 {
            let message = "`file`, `content` and `environment` exclude each other; keep one, or write `!override` before what replaces it";
            pass.findings().refuse(&path, None, message);
            continue;
        }
        if let Some(variable) = file.shift_remove("environment").map(|variable| scalar(&variable)) {
            match pass.variables.get(&variable).cloned() {
                Some(value) if pass.loader.fits(value.len(), &path) => {
                    pass.fill(section, &name, value, &mut file);
                }
                Some(_) => {}
                None => pass.findings().refuse(
                    &join(&path, "environment"),
                    None,
                    format!(
                        "`{}` has no value, in .env and the profile neither; set it there",
                        variable.escape_debug()
                    ),
                ),
            }
        } else if let Some(source) = file.get("file").map(scalar) {
            // A file that was rendered before names it so.
            if section == "secrets" && source == pass.secret_path(&name) {
                rendered.insert(name, Value::Object(file));
                continue;
            }
            match mounts::bind(&source, &join(&path, "file"), false, pass)? {
                Some(real) => drop(file.insert("file".to_owned(), real.into())),
                None => continue,
            }
        } else if !file.contains_key("content") {
            pass.findings().refuse(
                &path,
                None,
                "it has no source; add `file:` with a file of the workspace",
            );
        }
        rendered.insert(name, Value::Object(file));
    }
    Ok(rendered)
}

impl Pass<'_> {
    /// Where a secret lies that is a variable's value: beside the rendered file. No tool takes its value in that file.
    fn secret_path(&self, name: &str) -> String {
        normalize(&format!("{}/../{SECRET}{name}", self.input.workdir))
    }

    /// Gives a secret or config a variable's value, as it is in the workspace and the profile: the tool on the host would take
    /// its account's.
    fn fill(&mut self, section: &str, name: &str, value: String, file: &mut Map<String, Value>) {
        if section == "configs" {
            file.insert("content".to_owned(), value.into());
        } else {
            file.insert("file".to_owned(), self.secret_path(name).into());
            self.secrets.insert(format!("{SECRET}{name}"), value);
        }
    }
}

pub(super) fn definition(
    name: &str,
    value: Value,
    known: &[&str],
    path: &str,
    pass: &mut Pass<'_>,
) -> Option<Map<String, Value>> {
    if !keys::is_name(name) {
        pass.findings().refuse(
            path,
            None,
            "a name has letters, digits, `.`, `_` and `-`, and starts with a letter or digit",
        );
        return None;
    }
    match value {
        Value::Null => Some(Map::new()),
        Value::Object(mut map) => {
            keys::keep_known(&mut map, known, path, pass.findings());
            keys::want_mappings(&map, &["driver_opts", "ipam"], path, pass.findings());
            Some(map)
        }
        _ => {
            pass.findings().refuse(path, None, "it is a mapping; write `{}` for the defaults");
            None
        }
    }
}

/// Settles `external`. An external one is named outright: podman-compose 1.0.3 would add the project to its name.
pub(super) fn external(
    map: &mut Map<String, Value>,
    name: &str,
    path: &str,
    what: &str,
    pass: &mut Pass<'_>,
) -> bool {
    let Some(external) = map.shift_remove("external").filter(is_on) else { return false };
    let real =
        external.get("name").or_else(|| map.get("name")).map_or_else(|| name.to_owned(), scalar);
    pass.guard(
        Allowance::External,
        &join(path, "external"),
        format!("the {what} `{real}` is not the sandbox's own; remove `external:`"),
    );
    *map = Map::from_iter([("external".to_owned(), json!(true)), ("name".to_owned(), real.into())]);
    true
}

/// Makes a network or volume the sandbox's own: no fixed name, our labels.
pub(super) fn own(map: &mut Map<String, Value>, path: &str, pass: &mut Pass<'_>) {
    if let Some(name) = map.shift_remove("name") {
        pass.findings().rewrite(
            &join(path, "name"),
            format!("`{}` is left out: names belong to the sandbox", scalar(&name)),
        );
    }
    let mut kept = labels::mapping(
        map.shift_remove("labels").unwrap_or_default(),
        &join(path, "labels"),
        pass.findings(),
    );
    kept.extend(pass.labels());
    map.insert("labels".to_owned(), Value::Object(kept));
}
