//! Volumes without a name. podman-compose gives each a name of the project without our labels, so that nobody could tell whose it
//! is: here it gets a name in the file. Docker's engine has them by a random name, and labels its own.

use serde_json::{Map, Value, json};

use super::dialect::Dialect;
use super::merge::scalar;
use super::pass::Pass;
use super::resources;

/// Names the mounts of `services` that have none, and declares them among `volumes`.
pub(super) fn settle(
    services: &mut Map<String, Value>,
    volumes: &mut Map<String, Value>,
    pass: &mut Pass<'_>,
) {
    if !matches!(pass.input.host.dialect, Dialect::Podman | Dialect::Narrow) {
        return;
    }
    for (service, settings) in services {
        let mounts = settings.get_mut("volumes").and_then(Value::as_array_mut);
        for (index, mount) in mounts.into_iter().flatten().enumerate() {
            let Some(target) = nameless(mount) else { continue };
            let name = free(&format!("{service}_{}", slug(&target)), volumes);
            match mount {
                Value::String(text) => text.insert_str(0, &format!("{name}:")),
                mount => mount["source"] = json!(name),
            }
            let path = format!("services.{service}.volumes[{index}]");
            let mut volume = Map::new();
            resources::own(&mut volume, &path, pass);
            volumes.insert(name.clone(), Value::Object(volume));
            let what = format!(
                "`{target}` is the volume `{name}`: podman-compose would make one that is nobody's"
            );
            pass.findings().rewrite(&path, what);
        }
    }
}

/// Where a volume without a name is mounted; none for every other mount.
fn nameless(mount: &Value) -> Option<String> {
    match mount {
        Value::String(text) => {
            let mut parts = text.split(':');
            let target = parts.next().filter(|target| target.starts_with('/'))?;
            // A path behind it: the first is a folder of the host.
            parts.next().is_none_or(|mode| !mode.starts_with('/')).then(|| target.to_owned())
        }
        Value::Object(map) => {
            let volume = map.get("type").is_none_or(|kind| kind == "volume");
            let nameless = map.get("source").map(scalar).is_none_or(|source| source.is_empty());
            (volume && nameless).then(|| map.get("target").map(scalar)).flatten()
        }
        _ => None,
    }
}

fn slug(target: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    target.trim_matches('/').chars().map(plain).collect()
}

/// The name, or with the first number that is free behind it.
fn free(name: &str, volumes: &Map<String, Value>) -> String {
    let numbered = (2..).map(|number| format!("{name}-{number}"));
    std::iter::once(name.to_owned())
        .chain(numbered)
        .find(|name| !volumes.contains_key(name))
        .unwrap_or_default()
}
