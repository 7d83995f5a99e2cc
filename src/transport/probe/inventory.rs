//! Inventory of a host, ours and of another installation: read from what `scripts/probe.sh` printed.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::archives::{archive, archive_manifest};
use super::lines::{ScriptEntry, below, fingerprint};
use super::manifest::is_plain;
use crate::domain::Time;
use crate::domain::facts::{Inventory, InventoryArchive, InventoryItem, InventoryRoot, NO_ENGINE};
use crate::domain::name::SandboxId;
use crate::domain::text::clean_line;

/// An inventory, and what does not fit into one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct ReadInventory {
    /// Item per sandbox id, ordered by it; archives; no networks yet.
    pub(super) inventory: Inventory,
    /// The sandbox of each container, by the container's id.
    pub(super) containers: BTreeMap<String, SandboxId>,
    /// Parts that could not be read, a sentence each. When there are any, the inventory must not be taken for the whole.
    pub(super) failed: Vec<String>,
}

/// Owner by the manifest of a sandbox's directory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum ManifestOwner {
    /// There is none, or nothing of it was read yet.
    #[default]
    Nothing,
    /// Manifest names this sandbox, and an owner.
    Owner,
    /// Manifest is not this directory's, or cannot be read: nobody's, whatever the labels say.
    Nobody,
}

/// Sandbox of which lines are still read.
#[derive(Default)]
struct Draft {
    directory: Option<String>,
    owners: BTreeSet<String>,
    manifest: ManifestOwner,
    // Sets: `docker` may be a second way to the same podman.
    containers: BTreeSet<String>,
    container_ids: BTreeSet<String>,
    networks: BTreeSet<String>,
    volumes: BTreeSet<String>,
    profile: Option<String>,
    created_at: Option<Time>,
    /// When its oldest container was made.
    oldest: Option<Time>,
    expires_at: Option<Time>,
    name: Option<String>,
    protected: bool,
    made_on: Option<String>,
    engines: BTreeSet<String>,
    /// Everything that was read of it, a text each.
    read: BTreeSet<String>,
}

/// Marks in a label, a manifest or a name of something an engine has.
#[derive(Debug, Default)]
struct Marks {
    name: String,
    container: Option<String>,
    id: Option<String>,
    owner: Option<String>,
    project: Option<String>,
    profile: Option<String>,
    created_at: Option<Time>,
}

/// Reads the inventory's lines.
pub(super) fn parse(entries: &[ScriptEntry<'_>]) -> ReadInventory {
    let mut drafts: BTreeMap<String, Draft> = BTreeMap::new();
    let mut archives: BTreeMap<String, InventoryArchive> = BTreeMap::new();
    let mut found = ReadInventory::default();
    let mut root = String::new();
    for entry in entries {
        match entry.key {
            "inventory" => {
                entry.value.clone_into(&mut root);
                let path = root.clone();
                found.inventory.roots.push(InventoryRoot { path, there: true, mark: None });
            }
            "absent" => found
                .inventory
                .roots
                .iter_mut()
                .last()
                .into_iter()
                .for_each(|root| root.there = false),
            "mark" => {
                let mark = Some(entry.value.to_owned()).filter(|mark| mark.len() == 32);
                found
                    .inventory
                    .roots
                    .iter_mut()
                    .last()
                    .into_iter()
                    .for_each(|root| root.mark.clone_from(&mark));
            }
            "dir" => directory(&mut drafts, &root, entry),
            "archive" => archive(&mut archives, &root, entry.value),
            "manifests" => manifests(&mut drafts, &mut archives, &root, entry),
            "list" => list(&mut drafts, entry),
            "failed" => {
                let words: Vec<&str> =
                    entry.body.iter().copied().filter(|line| !line.trim().is_empty()).collect();
                let line = format!("{} {}", entry.value, words.join(" "));
                found.failed.push(clean_line(line.trim(), 400));
            }
            _ => {}
        }
    }
    for (id, draft) in drafts {
        let containers = draft.container_ids.clone();
        let item = item(id, draft);
        // A thing of unknown owner speaks for no sandbox.
        if item.owner.is_some() && is_id(&item.sandbox_id) {
            let of = SandboxId::new(item.sandbox_id.as_str());
            found.containers.extend(containers.into_iter().map(|id| (id, of.clone())));
        }
        found.inventory.sandboxes.push(item);
    }
    found.inventory.archives = archives.into_values().collect();
    found
}

/// Two owners for one id are none: what cannot be told whose it is must not be reaped.
fn item(sandbox_id: String, draft: Draft) -> InventoryItem {
    let mut owners = draft.owners.into_iter();
    // A directory that nothing identifies is nobody's, whatever the labels say.
    let identified = match draft.manifest {
        ManifestOwner::Owner => true,
        ManifestOwner::Nothing => draft.directory.is_none(),
        ManifestOwner::Nobody => false,
    };
    let owner = owners.next().filter(|_| owners.next().is_none() && identified);
    InventoryItem {
        fingerprint: fingerprint(&draft.read),
        sandbox_id,
        owner,
        directory: draft.directory,
        containers: draft.containers.into_iter().collect(),
        networks: draft.networks.into_iter().collect(),
        volumes: draft.volumes.into_iter().collect(),
        profile: draft.profile,
        created_at: draft.created_at.or(draft.oldest),
        expires_at: draft.expires_at,
        bytes: None,
        name: draft.name,
        protected: draft.protected,
        engines: draft.engines.into_iter().collect(),
        made_on: draft.made_on,
    }
}

fn directory(drafts: &mut BTreeMap<String, Draft>, root: &str, entry: &ScriptEntry<'_>) {
    let name = if entry.value.is_empty() { entry.text() } else { entry.value.to_owned() };
    let Some(id) = name.strip_prefix("sbx-").filter(|id| !id.is_empty()) else { return };
    let draft = drafts.entry(id.to_owned()).or_default();
    draft.read.insert(format!("directory {}", below(root, &name)));
    if draft.directory.is_some() {
        // The same id under two roots: one of them is a copy, and which one is not ours to guess.
        draft.manifest = ManifestOwner::Nobody;
    } else {
        draft.directory = Some(below(root, &name));
    }
}

/// Lines of manifests, each behind its file: `./sbx-aa/manifest.json:{`.
fn manifests(
    drafts: &mut BTreeMap<String, Draft>,
    archives: &mut BTreeMap<String, InventoryArchive>,
    root: &str,
    entry: &ScriptEntry<'_>,
) {
    let mut files: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for line in &entry.body {
        let parts = line.strip_prefix("./").and_then(|line| line.split_once("/manifest.json:"));
        if let Some((name, text)) = parts {
            files.entry(name).or_default().push(text);
        }
    }
    for (name, lines) in files {
        if let Some(archive) = name.strip_prefix("snapshots/").and_then(|id| archives.get_mut(id)) {
            if archive.directory == below(root, name) {
                archive_manifest(archive, &lines);
            }
        } else if let Some(id) = name.strip_prefix("sbx-")
            && let Some(draft) = drafts.get_mut(id)
        {
            manifest(draft, id, &lines.join("\n"));
        }
    }
}

fn manifest(draft: &mut Draft, id: &str, text: &str) {
    let parsed: Option<Value> = serde_json::from_str(text).ok();
    let field =
        |name: &str| parsed.as_ref().and_then(|value| value.get(name)).and_then(Value::as_str);
    let value = |name: &str| parsed.as_ref().and_then(|value| value.get(name));
    let has_time = |name: &str| match value(name) {
        None | Some(Value::Null) => true,
        Some(time) => time.as_str().is_some_and(|time| time.parse::<Time>().is_ok()),
    };
    let inner = parsed.as_ref().and_then(|value| value.pointer("/sandbox/id"));
    let is_ours = value("schema").is_none_or(|schema| *schema == 1)
        && inner.is_none_or(|inner| inner.as_str() == Some(id))
        && has_time("expires_at");
    match (field("id"), field("owner")) {
        (Some(named), Some(owner))
            if named == id && !owner.is_empty() && is_ours && is_plain(text, id, owner) =>
        {
            if draft.manifest == ManifestOwner::Nothing {
                draft.manifest = ManifestOwner::Owner;
            }
            draft.owners.insert(owner.to_owned());
            draft.profile = field("profile").map(|profile| clean_line(profile, 100));
            draft.created_at = field("created_at").and_then(|time| time.parse().ok());
            draft.expires_at = field("expires_at").and_then(|time| time.parse().ok());
            let sandbox = |path: &str| parsed.as_ref().and_then(|value| value.pointer(path));
            let text = |path: &str| sandbox(path).and_then(Value::as_str);
            draft.name = text("/sandbox/name").map(|name| clean_line(name, 100));
            // Whatever else stands there than that it is not.
            let is_set = |path: &str| match sandbox(path) {
                None | Some(Value::Null | Value::Bool(false)) => false,
                Some(Value::String(word)) => word != "false",
                Some(_) => true,
            };
            draft.protected = is_set("/sandbox/labels/protect") || is_set("/protect");
            draft.made_on =
                sandbox("/sandbox/host_identity").filter(|it| it.is_object()).map(|_| {
                    let engine = text("/sandbox/host_identity/engine").unwrap_or(NO_ENGINE);
                    clean_line(engine, 100)
                });
        }
        _ => draft.manifest = ManifestOwner::Nobody,
    }
    draft.read.insert(format!("manifest {text}"));
}

fn list(drafts: &mut BTreeMap<String, Draft>, entry: &ScriptEntry<'_>) {
    let (kind, engine) = entry.value.split_once(' ').unwrap_or((entry.value, ""));
    for marks in objects(entry).iter().filter_map(|object| marks(kind, object)) {
        let Some(id) = sandbox_of(kind, &marks) else { continue };
        let draft = drafts.entry(id).or_default();
        draft.engines.insert(engine.to_owned());
        draft.read.insert(format!("{kind} {marks:?}"));
        draft.owners.extend(marks.owner);
        draft.profile = draft.profile.take().or(marks.profile);
        draft.container_ids.extend(marks.container);
        if let Some(made) = marks.created_at {
            draft.oldest = Some(draft.oldest.map_or(made, |oldest| oldest.min(made)));
        }
        let names = match kind {
            "container" => &mut draft.containers,
            "network" => &mut draft.networks,
            "volume" => &mut draft.volumes,
            // A pod alone has an item too, which names nothing.
            _ => continue,
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

/// The objects of a list: one a line, or (podman's networks) one array of them.
pub(super) fn objects(entry: &ScriptEntry<'_>) -> Vec<Value> {
    let lines = || entry.body.iter().filter_map(|line| serde_json::from_str(line).ok());
    let all = match serde_json::from_str::<Value>(&entry.text()) {
        Ok(Value::Array(objects)) => objects,
        _ => lines().collect(),
    };
    all.into_iter().filter(Value::is_object).collect()
}

/// Marks of one thing that an engine has: labels one by one, or all of them; with capitals in some versions.
fn marks(kind: &str, object: &Value) -> Option<Marks> {
    let get = |lower: &str, upper: &str| object.get(lower).or_else(|| object.get(upper));
    let name = get("name", "Name")?.as_str()?.to_owned();
    let labels = get("labels", "Labels");
    let text = |value: Option<&Value>| {
        value.and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
    };
    let label = |short: &str, key: &str| {
        text(object.get(short)).or_else(|| text(labels.and_then(|labels| labels.get(key))))
    };
    let id = text(object.get("id")).filter(|id| super::containers::is_container_id(id));
    Some(Marks {
        name,
        container: id.filter(|_| kind == "container"),
        id: label("sandbox", "sandboxer.id"),
        owner: label("owner", "sandboxer.owner"),
        project: label("project", "com.docker.compose.project")
            .or_else(|| label("project", "io.podman.compose.project")),
        profile: label("profile", "sandboxer.profile").map(|profile| clean_line(&profile, 100)),
        created_at: object.get("created").and_then(Value::as_str).and_then(moment),
    })
}

/// A time as engines print it: as RFC 3339 has it, or `2026-11-29 15:00:00.25 +0000 UTC`.
fn moment(text: &str) -> Option<Time> {
    if let Ok(time) = text.parse() {
        return Some(time);
    }
    let mut words = text.split_whitespace();
    let (day, time, zone) = (words.next()?, words.next()?, words.next()?);
    let (hours, minutes) = zone.is_ascii().then(|| zone.split_at_checked(3))??;
    format!("{day}T{time}{hours}:{minutes}").parse().ok()
}

#[cfg(test)]
mod tests;
