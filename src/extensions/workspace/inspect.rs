//! Look at what a host has of sandboxes: one script, one round trip.

use std::collections::BTreeSet;

use crate::domain::error::{Code, Error};
use crate::domain::extension::{Inspection, Target};
use crate::domain::profile::Bytes;
use crate::domain::root::MarkedRoot;
use crate::domain::teardown::{Resource, TeardownLine, TeardownOutcome};
use crate::extensions::workspace::script_output::ScriptOutput;
use crate::extensions::workspace::{expected_of, failed, owners, root, step};
use crate::transport::{Command, Transport};

const LOOK_SH: &str = concat!(
    include_str!("../../transport/scripts/runtime.sh"),
    include_str!("scripts/says.sh"),
    include_str!("scripts/place.sh"),
    include_str!("scripts/engine.sh"),
    include_str!("scripts/belonging.sh"),
    include_str!("scripts/look.sh")
);
const SERVICES_SH: &str = concat!(
    include_str!("../../transport/scripts/runtime.sh"),
    include_str!("scripts/says.sh"),
    include_str!("scripts/engine.sh"),
    include_str!("scripts/belonging.sh"),
    include_str!("scripts/services.sh")
);

/// Findings on one sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Found {
    /// Its directory, unless somebody else's manifest is in it; and what the engine has of it.
    pub(crate) resources: Vec<Resource>,
    /// Resources that only look like its own.
    pub(crate) foreign: Vec<TeardownLine>,
    /// Whether the directory's manifest names this sandbox and one of our owners.
    pub(crate) ours: bool,
    /// Whether the workspace is a directory in it.
    pub(crate) workspace: bool,
    /// Whether the account can write there.
    pub(crate) writable: bool,
    /// The containers that ran when it was put to sleep, where it was and nobody has woken it since.
    pub(crate) asleep: Option<Vec<String>>,
    /// Room that is free on its file system, where that can be told.
    pub(crate) free: Option<Bytes>,
    /// The counter that the host has of this installation.
    pub(crate) counter: Option<u64>,
    /// Containers of it as the engine tells them, a JSON object a line; `None`: no engine was asked.
    pub(crate) inspected: Option<String>,
    /// The root that it is in, where its mark was not known.
    pub(crate) root: Option<MarkedRoot>,
}

impl Found {
    /// The answer of `inspect` for what is not ready; the caller adds what it knows of services.
    pub(crate) fn inspection(&self) -> Inspection {
        Inspection {
            resources: self.resources.clone(),
            foreign: self.foreign.clone(),
            counter: self.counter,
            root: self.root.clone(),
            ..Inspection::default()
        }
    }
}

/// Looks at one sandbox, after the host proved to be the recorded one.
///
/// Errors: `host_changed`; `operation_failed` where engine or root cannot be asked.
pub(crate) async fn inspect_one(
    transport: &dyn Transport,
    target: &Target,
) -> Result<Found, Error> {
    let identity = target.host_identity.as_ref();
    let root = root(target, &transport.spec().workspace_root);
    let command = Command::script(LOOK_SH)
        .arg(root)
        .arg(target.id.as_str())
        .arg(owners(target))
        .arg(target.stamp.as_ref().map_or("", |ours| ours.owner.as_str()))
        .arg(expected_of(target))
        .arg(identity.and_then(|identity| identity.engine.as_deref()).unwrap_or_default())
        .arg(identity.and_then(|identity| identity.engine_id.as_deref()).unwrap_or_default());
    let output = step(transport, "inspect", &command).await?;
    let text = output.text();
    let said = ScriptOutput::read(&text);
    said.check("inspect", transport, root)?;
    if said.value("looked") != Some("yes") {
        let message = format!(
            "what {} has of sandbox {} could not be read",
            transport.spec().name,
            target.id
        );
        return Err(failed("inspect", message, &output));
    }
    Ok(read(&said))
}

fn read(said: &ScriptOutput<'_>) -> Found {
    let mut resources: Vec<Resource> = Vec::new();
    for entry in said
        .entries()
        .filter(|e| matches!(e.key, "directory" | "container" | "network" | "volume" | "pod"))
    {
        let names = entry.text();
        let ids = names.lines().filter(|name| !name.is_empty());
        resources.extend(ids.map(|id| Resource { kind: entry.key.to_owned(), id: id.to_owned() }));
    }
    let mut foreign: Vec<TeardownLine> = Vec::new();
    for entry in said.entries() {
        match (entry.key, foreign.last_mut()) {
            ("foreign", _) => foreign.push(TeardownLine {
                resource: Resource { kind: entry.value.to_owned(), id: entry.text() },
                outcome: TeardownOutcome::Foreign,
                reason: None,
            }),
            ("why", Some(last)) => last.reason = Some(entry.text()),
            _ => {}
        }
    }
    Found {
        resources,
        foreign,
        ours: said.value("whose") == Some("ours"),
        workspace: said.value("workspace") == Some("yes"),
        writable: said.value("writable") == Some("yes"),
        asleep: said.text("asleep").map(|names| names.lines().map(str::to_owned).collect()),
        free: said
            .value("free_kib")
            .and_then(|kib| kib.parse::<u64>().ok())
            .map(|kib| Bytes(kib.saturating_mul(1024))),
        counter: said.value("counter").and_then(|counter| counter.parse().ok()),
        inspected: said.text("inspected"),
        root: said.marked_root(),
    }
}

/// An engine of a host: its program, and its id as it was recorded (empty: unknown).
pub(crate) type Engine = (String, String);

/// Findings on all sandboxes of a host.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Inspections {
    /// Identity that the host proved.
    pub(crate) machine_id: String,
    /// Directories that are there.
    pub(crate) directories: BTreeSet<String>,
    /// The engines that answered and are the recorded ones, with what they say of containers, an object a line.
    pub(crate) engines: Vec<(Engine, String)>,
}

impl Inspections {
    /// Whether this host is the one that the target was made on.
    pub(crate) fn is_of(&self, target: &Target) -> bool {
        let recorded =
            target.host_identity.as_ref().map_or("", |identity| identity.machine_id.as_str());
        recorded.is_empty() || recorded == self.machine_id
    }

    /// Whether the target's directory is there.
    pub(crate) fn has_directory(&self, target: &Target) -> bool {
        target.workdir.as_ref().is_some_and(|workdir| self.directories.contains(workdir))
    }
}

/// The engine that a target was made on, where one was recorded.
pub(crate) fn engine(target: &Target) -> Option<Engine> {
    let identity = target.host_identity.as_ref()?;
    Some((identity.engine.clone()?, identity.engine_id.clone().unwrap_or_default()))
}

/// Asks for the directories of these targets and for the containers of their engines: one question.
pub(crate) async fn inspect_all(
    transport: &dyn Transport,
    targets: &[Target],
) -> Result<Inspections, Error> {
    let directories: Vec<&str> =
        targets.iter().filter_map(|target| target.workdir.as_deref()).collect();
    let engines: BTreeSet<Engine> = targets.iter().filter_map(engine).collect();
    let ours: BTreeSet<&str> =
        targets.iter().flat_map(|target| &target.owners).map(AsRef::as_ref).collect();
    let command = Command::script(SERVICES_SH)
        .arg(ours.into_iter().collect::<Vec<_>>().join(" "))
        .arg(directories.len().to_string())
        .args(&directories)
        .args(engines.iter().flat_map(|(program, id)| [program, id]));
    let output = step(transport, "services", &command).await?;
    let text = output.text();
    let said = ScriptOutput::read(&text);
    if said.value("looked") != Some("yes") {
        let name = &transport.spec().name;
        let error = Error::new(
            Code::OperationFailed,
            format!("what {name} said of its services is not whole"),
        );
        return Err(error.step("services"));
    }
    let mut inspections = Inspections {
        machine_id: said.value("machine").unwrap_or_default().to_owned(),
        ..Inspections::default()
    };
    for entry in said.entries() {
        let text = entry.text();
        match entry.key {
            "there" => drop(inspections.directories.insert(text)),
            "engine" => {
                let (program, id) = text.split_once(' ').unwrap_or((&text, ""));
                inspections.engines.push(((program.to_owned(), id.to_owned()), String::new()));
            }
            "inspected" => {
                if let Some(last) = inspections.engines.last_mut() {
                    last.1 = text;
                }
            }
            _ => {}
        }
    }
    Ok(inspections)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_has_a_line_each() {
        let text = "machine=m\ncounter=7\nwhose=ours\ndirectory=\n /srv/sbx-1\n\nasleep=\n w\n d\nworkspace=yes\nfree_kib=4\nnetwork=\n a\n b\ninspected=\n {\"Name\":\"x=y\"}\nlooked=yes\n";
        let found = read(&ScriptOutput::read(text));
        let kinds: Vec<(&str, &str)> =
            found.resources.iter().map(|r| (r.kind.as_str(), r.id.as_str())).collect();
        assert_eq!(kinds, [("directory", "/srv/sbx-1"), ("network", "a"), ("network", "b")]);
        assert!(found.ours && found.workspace && !found.writable);
        assert_eq!(found.asleep, Some(vec!["w".to_owned(), "d".to_owned()]));
        assert_eq!((found.free, found.counter), (Some(Bytes(4096)), Some(7)));
        assert_eq!(found.inspected.as_deref(), Some("{\"Name\":\"x=y\"}"));
    }

    #[test]
    fn nothing_there_is_nothing_found() {
        assert_eq!(read(&ScriptOutput::read("machine=m\n\nlooked=yes\n")), Found::default());
    }
}
