//! Places of extensions: backends that no transport reaches. What a host is asked for over its transport, a place's extension is asked
//! for instead.

use std::sync::Arc;

use futures_util::future::join_all;

use crate::domain::error::Error;
use crate::domain::extension::{OwnerStamp, SandboxExtension};
use crate::domain::facts::HostFacts;
use crate::domain::name::{HostName, OwnerId, SandboxId};
use crate::manager::deps::Deps;
use crate::transport::probe::{self, HostManifest};

/// Place of an extension, as it was read.
pub(crate) struct PlaceReading {
    pub(crate) place: HostName,
    /// Facts of what it has, or why it cannot be read.
    pub(crate) facts: Result<HostFacts, Error>,
}

impl PlaceReading {
    pub(crate) fn has_something(&self) -> bool {
        self.facts.as_ref().map_or(true, |facts| {
            let inventory = facts.inventory.as_ref();
            inventory.is_none_or(|it| !it.sandboxes.is_empty() || !it.archives.is_empty())
        })
    }

    /// Whether anything was ever made there, or may have been.
    fn was_used(&self) -> bool {
        self.facts.as_ref().map_or(true, |facts| !facts.machine_id.is_empty())
    }
}

/// Extension of the place of this name; none for a host.
pub(crate) fn extension_at(deps: &Deps, name: &HostName) -> Option<Arc<dyn SandboxExtension>> {
    let is_there = |extension: &&Arc<dyn SandboxExtension>| {
        extension.place().is_some_and(|place| place.same(name.as_str()))
    };
    deps.extensions.values().find(is_there).cloned()
}

/// Refuses an extension that works elsewhere: one with a place of its own on a host, and any other at a place.
///
/// Errors: `invalid_input`.
pub(crate) fn check_works_at(
    deps: &Deps,
    extension: &dyn SandboxExtension,
    name: &HostName,
) -> Result<(), Error> {
    let id = extension.id();
    let (message, hint) = match (extension.place(), extension_at(deps, name)) {
        (Some(place), _) if place.same(name.as_str()) => return Ok(()),
        (None, None) => return Ok(()),
        (Some(place), _) => (
            format!("{id} makes its sandboxes at {place}, and on no host: not on {name}"),
            format!("leave --host out, or name {place}"),
        ),
        (None, Some(other)) => (
            format!("{name} is the place of {}, which {id} does not reach", other.id()),
            "name a host; `sandboxer hosts list` shows them".to_owned(),
        ),
    };
    Err(Error::invalid_input("host", message).hint(hint))
}

/// Refuses a place where a host is wanted, to which an archive is to be brought.
///
/// Errors: `invalid_input`.
pub(crate) fn check_is_host(deps: &Deps, name: &HostName) -> Result<(), Error> {
    let Some(extension) = extension_at(deps, name) else { return Ok(()) };
    let message =
        format!("{name} is the place of {}, to which nothing can be brought", extension.id());
    Err(Error::invalid_input("host", message)
        .hint("name a host; `sandboxer hosts list` shows them"))
}

/// Places in which something was made, or that cannot be read.
pub(crate) async fn used_places(deps: &Deps) -> Vec<PlaceReading> {
    let read = deps.extensions.values().filter_map(|extension| {
        let place = extension.place()?;
        Some(async { PlaceReading { place, facts: extension.list_owned().await } })
    });
    let mut places = join_all(read).await;
    places.retain(PlaceReading::was_used);
    places
}

/// Hosts and places that may be asked what they count of an owner.
pub(crate) async fn counting_hosts(deps: &Deps) -> Vec<HostName> {
    let hosts = deps.transports.hosts().into_iter().filter(|spec| spec.forbid.is_none());
    let places = used_places(deps).await.into_iter().map(|reading| reading.place);
    hosts.map(|spec| spec.name).chain(places).collect()
}

/// Counter that a host or a place has of an owner; none where it has none.
pub(crate) async fn owner_counter(
    deps: &Deps,
    host: &HostName,
    owner: &OwnerId,
) -> Result<Option<u64>, Error> {
    match extension_at(deps, host) {
        Some(extension) => extension.owner_counter(owner).await,
        None => probe::counter(deps.transports.open(host).await?.as_ref(), owner).await,
    }
}

/// Makes a host or a place count at least as much as a stamp; what it counts then.
pub(crate) async fn raise_owner_counter(
    deps: &Deps,
    host: &HostName,
    stamp: &OwnerStamp,
) -> Result<u64, Error> {
    match extension_at(deps, host) {
        Some(extension) => extension.raise_owner_counter(stamp).await,
        None => probe::raise_counter(deps.transports.open(host).await?.as_ref(), stamp).await,
    }
}

/// Text of a sandbox's manifest on a host or at a place; none where there is none.
pub(crate) async fn manifest_text(
    deps: &Deps,
    host: &HostName,
    workdir: &str,
) -> Result<Option<String>, Error> {
    match extension_at(deps, host) {
        Some(extension) => extension.manifest_text(workdir).await,
        None => probe::manifest_text(deps.transports.open(host).await?.as_ref(), workdir).await,
    }
}

/// Words of a sandbox's manifest on a host or at a place against its end; none where it is not this sandbox's and this owner's.
pub(crate) async fn read_manifest(
    deps: &Deps,
    host: &HostName,
    workdir: &str,
    (id, owner): (&SandboxId, &OwnerId),
) -> Result<Option<HostManifest>, Error> {
    let Some(extension) = extension_at(deps, host) else {
        let transport = deps.transports.open(host).await?;
        return probe::read_manifest(transport.as_ref(), workdir, id, owner).await;
    };
    let text = extension.manifest_text(workdir).await?;
    Ok(text.and_then(|text| HostManifest::of(&text, id, owner)))
}
