//! What is done with an archive that is on a host, whichever sandbox it comes from: one folder,
//! `<root>/snapshots/<snapshot-id>`, with the archive and, once it is whole, its manifest.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::domain::archive::{ArchiveLook, ArchivePlace, Arrived, ByteStream, SnapshotArchives, TreeEntry};
use crate::domain::extension::{
    ExtensionError, Report, Reporter, Resource, TeardownLine, TeardownOutcome, TeardownReport,
};
use crate::domain::facts::HostIdentity;
use crate::domain::fault::{Code, Fault};
use crate::domain::output::OutputSink;
use crate::domain::snapshot::{ArchiveFacts, ArchiveManifest};
use crate::extensions::workspace::said::Said;
use crate::extensions::workspace::{configured_root, failed, step};
use crate::transport::{Command, Transport, Transports};

/// The definitions that the scripts of archives stand on.
macro_rules! keeping {
    ($script:literal) => {
        concat!(
            include_str!("../../../transport/scripts/runtime.sh"),
            include_str!("../scripts/says.sh"),
            include_str!("../scripts/place.sh"),
            include_str!("scripts/as.sh"),
            include_str!("scripts/keep.sh"),
            include_str!(concat!("scripts/", $script))
        )
    };
}
pub(super) use keeping;

const LOOK_SH: &str = keeping!("archive_look.sh");
const REMOVE_SH: &str = keeping!("archive_remove.sh");

/// How long a removal may take: one that was cut off may have left somebody at work for some seconds.
const REMOVE_LIMIT: Duration = Duration::from_mins(2);

/// The archives on the hosts that these ways lead to.
pub(crate) struct Keeper {
    /// The ways to hosts.
    pub(super) transports: Arc<dyn Transports>,
}

impl Keeper {
    /// Over these ways to hosts.
    pub(crate) fn new(transports: Arc<dyn Transports>) -> Self {
        Self { transports }
    }

    /// The way to an archive's host.
    pub(super) async fn open(&self, place: &ArchivePlace) -> Result<Arc<dyn Transport>, Fault> {
        self.transports.open(&place.host).await
    }
}

/// A script about one archive, with what all of them begin with: the root, the id, the owners, the machine.
pub(super) fn about(script: &'static str, transport: &dyn Transport, place: &ArchivePlace) -> Command {
    let owners: Vec<&str> = place.owners.iter().map(AsRef::as_ref).collect();
    Command::script(script)
        .arg(root(transport, place))
        .arg(place.id.as_str())
        .arg(owners.join(" "))
        .arg(place.host_identity.as_ref().map_or("", |identity| identity.machine_id.as_str()))
}

/// `<root>` of `<root>/snapshots/<id>`: as recorded, else as the profile or the host says.
fn root<'a>(transport: &'a dyn Transport, place: &'a ArchivePlace) -> &'a str {
    let recorded = place.path.as_deref().and_then(|path| path.strip_suffix(place.id.as_str()));
    let recorded = recorded.and_then(|shelf| shelf.strip_suffix("/snapshots/"));
    let recorded = recorded.map(|root| if root.is_empty() { "/" } else { root });
    recorded.or_else(|| configured_root(&place.profile)).unwrap_or(&transport.spec().workspace_root)
}

/// What the host proved to be; with its engine, where that is known from before.
pub(super) fn identity(said: &Said<'_>, place: &ArchivePlace) -> Option<HostIdentity> {
    let machine_id = said.value("machine").filter(|id| !id.is_empty())?.to_owned();
    Some(place.host_identity.clone().unwrap_or(HostIdentity { machine_id, engine: None, engine_id: None }))
}

/// What the scripts of archives refuse in words of their own; anything else as for sandboxes.
pub(super) fn check(
    said: &Said<'_>,
    step: &str,
    transport: &dyn Transport,
    place: &ArchivePlace,
) -> Result<(), ExtensionError> {
    let (host, id) = (&transport.spec().name, &place.id);
    let fault = match said.value("error") {
        Some("identity") => {
            Fault::new(Code::HostChanged, format!("host {host} is not the one that snapshot {id} is on"))
                .hint("nothing was touched; check what the host's name points to")
        }
        Some("closed") => {
            Fault::new(Code::OperationFailed, format!("the folder of archives on {host} cannot be looked into"))
        }
        Some("link") => {
            Fault::new(Code::OperationFailed, format!("the folder of snapshot {id} on {host} leads elsewhere"))
                .hint("nothing was touched; find out who put a link there")
        }
        Some("absent") => Fault::new(Code::NotFound, format!("the archive of snapshot {id} is not on {host}"))
            .detail("differs", "missing"),
        Some("theirs") => {
            Fault::new(Code::Conflict, format!("what bears the name of snapshot {id} on {host} is not ours"))
        }
        Some("taken") => Fault::new(Code::Conflict, format!("{host} has something of snapshot {id} already"))
            .hint("`sandboxer recover` removes what a copy that was cut off left; else see whose it is"),
        Some("space") => Fault::new(Code::OperationFailed, format!("the disk of {host} has no room for the archive"))
            .hint("delete something there, or copy it to another host"),
        Some("altered") => altered(said.value("differs").unwrap_or("content"), transport, place),
        _ => return said.check(step, transport, root(transport, place)),
    };
    let words = said.text("words").unwrap_or_default();
    let fault = fault.detail("step", step);
    Err(if words.is_empty() { fault } else { fault.because(words) }.into())
}

/// An archive that is not what is known of it; `differs` is `truncated`, `size` or `hash`.
pub(super) fn altered(differs: &str, transport: &dyn Transport, place: &ArchivePlace) -> Fault {
    let host = &transport.spec().name;
    Fault::new(Code::OperationFailed, format!("the archive of snapshot {} on {host} is not what it was", place.id))
        .hint("do not trust it; a copy on another host can be verified by itself")
        .detail("kind", "altered")
        .detail("differs", differs)
}

#[async_trait]
impl SnapshotArchives for Keeper {
    async fn look(&self, place: &ArchivePlace) -> Result<ArchiveLook, ExtensionError> {
        let transport = self.open(place).await?;
        look(transport.as_ref(), place).await
    }

    async fn verify(
        &self,
        place: &ArchivePlace,
        facts: &ArchiveFacts,
        reporter: &dyn Reporter,
    ) -> Result<(), ExtensionError> {
        let _ = (place, facts, reporter);
        Err(unbuilt())
    }

    async fn remove(&self, place: &ArchivePlace, reporter: &dyn Reporter) -> Result<TeardownReport, ExtensionError> {
        reporter.report(Report { stage: "remove", ..Report::default() });
        let transport = self.open(place).await?;
        remove(transport.as_ref(), place).await
    }

    async fn entries(&self, place: &ArchivePlace, facts: &ArchiveFacts) -> Result<Vec<TreeEntry>, ExtensionError> {
        let _ = (place, facts);
        Err(unbuilt())
    }

    async fn read(&self, place: &ArchivePlace, sink: &mut dyn OutputSink) -> Result<(), ExtensionError> {
        let _ = (place, sink);
        Err(unbuilt())
    }

    async fn copy(
        &self,
        from: &ArchivePlace,
        to: &ArchivePlace,
        manifest: &ArchiveManifest,
        reporter: &dyn Reporter,
    ) -> Result<Arrived, ExtensionError> {
        let _ = (from, to, manifest, reporter);
        Err(unbuilt())
    }

    async fn export(&self, place: &ArchivePlace, manifest: &ArchiveManifest) -> Result<ByteStream, ExtensionError> {
        let _ = (place, manifest);
        Err(unbuilt())
    }

    async fn open_export(&self, source: ByteStream) -> Result<(ArchiveManifest, ByteStream), ExtensionError> {
        drop(source);
        Err(unbuilt())
    }

    async fn import(
        &self,
        to: &ArchivePlace,
        manifest: &ArchiveManifest,
        source: ByteStream,
        reporter: &dyn Reporter,
    ) -> Result<Arrived, ExtensionError> {
        let _ = (to, manifest, source, reporter);
        Err(unbuilt())
    }
}

fn unbuilt() -> ExtensionError {
    Fault::new(Code::Unsupported, "not there yet").into()
}

async fn look(transport: &dyn Transport, place: &ArchivePlace) -> Result<ArchiveLook, ExtensionError> {
    let output = step(transport, "look", &about(LOOK_SH, transport, place)).await?;
    let text = output.text();
    let said = Said::read(&text);
    check(&said, "look", transport, place)?;
    let there = match said.value("there") {
        Some(there) => there == "yes",
        None => return Err(failed("look", format!("{} did not say what it has", transport.spec().name), &output)),
    };
    let manifest = said.text("manifest").filter(|_| said.value("whose") == Some("ours"));
    Ok(ArchiveLook {
        path: said.text("path").filter(|_| there),
        identity: identity(&said, place),
        // One that cannot be read seals nothing.
        manifest: manifest.and_then(|text| serde_json::from_str(&text).ok()),
        bytes: said.value("size").and_then(|size| size.parse().ok()),
    })
}

async fn remove(transport: &dyn Transport, place: &ArchivePlace) -> Result<TeardownReport, ExtensionError> {
    let command = about(REMOVE_SH, transport, place);
    let output = transport.run(&command, REMOVE_LIMIT).await.map_err(|fault| fault.detail("step", "remove"))?;
    let text = output.text();
    let said = Said::read(&text);
    check(&said, "remove", transport, place)?;
    if said.value("finished") != Some("yes") {
        let message = format!("the removal on {} did not come to its end", transport.spec().name);
        return Err(failed("remove", message, &output));
    }
    let mut report = TeardownReport::default();
    for entry in said.entries() {
        let resource = |kind: &str| Resource { kind: kind.to_owned(), id: entry.text() };
        match entry.key {
            "done" => {
                let (kind, outcome) = entry.value.split_once(' ').unwrap_or((entry.value, "failed"));
                let outcome = TeardownOutcome::from_word(outcome);
                report.lines.push(TeardownLine { resource: resource(kind), outcome, reason: None });
            }
            "why" => {
                if let Some(line) = report.lines.last_mut() {
                    line.reason = Some(entry.text());
                }
            }
            "left" => report.leftovers.push(resource(entry.value)),
            _ => {}
        }
    }
    Ok(report)
}
