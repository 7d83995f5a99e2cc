//! What of ours, or of another installation, is on a host: read from what `scripts/probe.sh` printed.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::domain::facts::{Inventory, InventoryItem};

use super::lines::Entry;

/// An inventory, and what does not fit into one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Found {
    /// One item per sandbox id, ordered by it.
    pub(super) inventory: Inventory,
    /// Names of podman's pods by sandbox id; each has an item, which may be empty otherwise.
    pub(super) pods: BTreeMap<String, Vec<String>>,
    /// What could not be read, a sentence each. When there are any, the inventory must not be taken for the whole.
    pub(super) failed: Vec<String>,
}

/// What is known of one sandbox while reading.
#[derive(Default)]
struct Draft {
    directory: Option<String>,
    owners: BTreeSet<String>,
    /// A manifest that is not this directory's, or cannot be read: nobody's, whatever the labels say.
    unidentified: bool,
    // Sets: `docker` may be a second way to the same podman.
    containers: BTreeSet<String>,
    networks: BTreeSet<String>,
    volumes: BTreeSet<String>,
    pods: BTreeSet<String>,
}

/// What stands in a label, a manifest or a name of something an engine has.
#[derive(Default)]
struct Marks {
    name: String,
    id: Option<String>,
    owner: Option<String>,
    project: Option<String>,
}

/// Reads the inventory's lines.
pub(super) fn parse(entries: &[Entry<'_>]) -> Found {
    let mut drafts: BTreeMap<String, Draft> = BTreeMap::new();
    let mut found = Found::default();
    let mut root = String::new();
    let mut current: Option<String> = None;
    for entry in entries {
        match entry.key {
            "inventory" => entry.value.clone_into(&mut root),
            "dir" => current = directory(&mut drafts, &root, entry),
            "manifest" => {
                if let Some((id, draft)) =
                    current.as_ref().and_then(|id| Some((id, drafts.get_mut(id)?)))
                {
                    manifest(draft, id, &entry.text());
                }
            }
            "list" => list(&mut drafts, entry),
            "failed" => {
                let words: Vec<&str> =
                    entry.body.iter().copied().filter(|line| !line.trim().is_empty()).collect();
                let line = format!("{} {}", entry.value, words.join(" "));
                found.failed.push(crate::domain::text::clean_line(line.trim(), 400));
            }
            _ => {}
        }
    }
    for (id, draft) in drafts {
        if !draft.pods.is_empty() {
            found.pods.insert(id.clone(), draft.pods.iter().cloned().collect());
        }
        found.inventory.sandboxes.push(item(id, draft));
    }
    found
}

/// Two owners for one id are none: what cannot be told whose it is must not be reaped.
fn item(sandbox_id: String, draft: Draft) -> InventoryItem {
    let mut owners = draft.owners.into_iter();
    let owner = owners.next().filter(|_| owners.next().is_none() && !draft.unidentified);
    InventoryItem {
        sandbox_id,
        owner,
        directory: draft.directory,
        containers: draft.containers.into_iter().collect(),
        networks: draft.networks.into_iter().collect(),
        volumes: draft.volumes.into_iter().collect(),
        profile: None,
        created_at: None,
        expires_at: None,
        bytes: None,
    }
}

fn directory(
    drafts: &mut BTreeMap<String, Draft>,
    root: &str,
    entry: &Entry<'_>,
) -> Option<String> {
    let name = if entry.value.is_empty() { entry.text() } else { entry.value.to_owned() };
    let id = name.strip_prefix("sbx-").filter(|id| !id.is_empty())?.to_owned();
    let draft = drafts.entry(id.clone()).or_default();
    let path = format!("{}/{name}", root.trim_end_matches('/'));
    if draft.directory.is_some() {
        // The same id under two roots: one of them is a copy, and which one is not ours to guess.
        draft.unidentified = true;
    } else {
        draft.directory = Some(path);
    }
    Some(id)
}

fn manifest(draft: &mut Draft, id: &str, text: &str) {
    let parsed: Option<Value> = serde_json::from_str(text).ok();
    let field =
        |name: &str| parsed.as_ref().and_then(|value| value.get(name)).and_then(Value::as_str);
    match (field("id"), field("owner")) {
        (Some(named), Some(owner)) if named == id && !owner.is_empty() => {
            draft.owners.insert(owner.to_owned());
        }
        _ => draft.unidentified = true,
    }
}

/// One engine's containers, networks, volumes or pods.
fn list(drafts: &mut BTreeMap<String, Draft>, entry: &Entry<'_>) {
    let kind = entry.value.split(' ').next().unwrap_or_default();
    for marks in rows(entry) {
        let Some(id) = sandbox_of(kind, &marks) else { continue };
        let draft = drafts.entry(id).or_default();
        draft.owners.extend(marks.owner);
        let names = match kind {
            "container" => &mut draft.containers,
            "network" => &mut draft.networks,
            "volume" => &mut draft.volumes,
            _ => &mut draft.pods,
        };
        names.insert(marks.name);
    }
}

/// The id from our label; where that is missing from compose's project, or from a name that only a project gives.
fn sandbox_of(kind: &str, marks: &Marks) -> Option<String> {
    let of_project =
        |project: &str| project.strip_prefix("sbx-").filter(|id| is_id(id)).map(str::to_owned);
    if let Some(id) = &marks.id {
        return Some(id.clone());
    }
    if let Some(id) = marks.project.as_deref().and_then(of_project) {
        return Some(id);
    }
    if kind == "pod" {
        return marks.name.strip_prefix("pod_").and_then(of_project);
    }
    // `sbx-<id>_default`: no `_` is in an id. `sbx-a-b-1` could be of `a` or of `a-b`, and counts for nobody.
    marks.name.split_once('_').and_then(|(project, _)| of_project(project))
}

fn is_id(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 31
        && !text.starts_with('-')
        && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

/// The rows of a list: a JSON array a line, or (podman's networks) one array of objects.
fn rows(entry: &Entry<'_>) -> Vec<Marks> {
    if let Ok(Value::Array(objects)) = serde_json::from_str::<Value>(&entry.text())
        && objects.iter().all(Value::is_object)
    {
        return objects.iter().filter_map(of_object).collect();
    }
    entry.body.iter().filter_map(|line| of_array(&serde_json::from_str(line).ok()?)).collect()
}

/// `{"name": .., "labels": {..}}`, with capitals in some versions.
fn of_object(object: &Value) -> Option<Marks> {
    let get = |lower: &str, upper: &str| object.get(lower).or_else(|| object.get(upper));
    let name = get("name", "Name")?.as_str()?.to_owned();
    Some(labelled(name, get("labels", "Labels")))
}

/// `[name, {labels}]`, or `[name, id, owner, project]` with empty texts for labels that are missing.
fn of_array(array: &Value) -> Option<Marks> {
    let name = array.get(0)?.as_str()?.to_owned();
    if !array.get(1)?.is_string() {
        return Some(labelled(name, array.get(1)));
    }
    let text = |index: usize| {
        array.get(index).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
    };
    Some(Marks { name, id: text(1), owner: text(2), project: text(3) })
}

fn labelled(name: String, labels: Option<&Value>) -> Marks {
    let label = |key: &str| {
        labels
            .and_then(|labels| labels.get(key))
            .and_then(Value::as_str)
            .filter(|text| !text.is_empty())
            .map(str::to_owned)
    };
    Marks {
        name,
        id: label("sandboxer.id"),
        owner: label("sandboxer.owner"),
        project: label("com.docker.compose.project").or_else(|| label("io.podman.compose.project")),
    }
}

#[cfg(test)]
mod tests;
