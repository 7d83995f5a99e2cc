//! Scan of hosts for an adoption: what each has, as far as all of it could be read; and which of it is the same thing seen twice.

use std::collections::BTreeMap;

use futures_util::future::join_all;

use crate::domain::adoption::{Adopted, AdoptedKind};
use crate::domain::error::{Code, Error};
use crate::domain::facts::{HostFacts, HostState, Inventory};
use crate::domain::name::HostName;
use crate::domain::profile::Profile;
use crate::domain::root::KnownRoots;
use crate::manager::deps::Deps;
use crate::manager::hosts::check::{host_spec, probe_host};
use crate::manager::hosts::roots::known_roots;
use crate::manager::snapshots::pinned_profile::beyond_catalogue;

/// Host of which all was read.
pub(crate) struct Scan {
    /// The host.
    pub(crate) host: HostName,
    /// What it said.
    pub(crate) facts: HostFacts,
    /// What it has.
    pub(crate) inventory: Inventory,
}

/// A folder, whatever its hosts are called: the machine, or the host where that has no id, and the path.
pub(crate) type Place = (String, String);

impl Scan {
    /// Place of a folder on it.
    pub(crate) fn place(&self, directory: &str) -> Place {
        let machine = Some(self.facts.machine_id.clone()).filter(|id| !id.is_empty());
        (machine.unwrap_or_else(|| format!("host {}", self.host)), directory.to_owned())
    }
}

/// Scans these hosts, or all that may be asked; what of them could not be read is an item each.
///
/// Errors: `not_found` for a host that is named and unknown.
pub(crate) async fn scan_hosts(
    deps: &Deps,
    named: &[String],
) -> Result<(Vec<Scan>, Vec<Adopted>), Error> {
    let mut hosts: Vec<HostName> = Vec::new();
    for name in named {
        let host = host_spec(deps, name)?.name;
        if !hosts.contains(&host) {
            hosts.push(host);
        }
    }
    if named.is_empty() {
        let specs = deps.transports.hosts().into_iter();
        hosts.extend(specs.filter(|spec| spec.forbid.is_none()).map(|spec| spec.name));
    }
    let read = join_all(hosts.iter().map(|host| scan_host(deps, host))).await;
    let (mut scans, mut unread) = (Vec::new(), Vec::new());
    for (host, read) in hosts.iter().zip(read) {
        match read {
            Ok(scan) => scans.push(scan),
            Err(error) => unread.push(unread_item(host, error)),
        }
    }
    Ok((scans, unread))
}

fn unread_item(host: &HostName, error: Error) -> Adopted {
    Adopted {
        id: host.to_string(),
        kind: AdoptedKind::Host,
        ok: false,
        host: host.clone(),
        name: None,
        owner: None,
        message: "it could not be read: nothing on it was looked for".to_owned(),
        error: Some(error),
    }
}

async fn scan_host(deps: &Deps, host: &HostName) -> Result<Scan, Error> {
    let view = probe_host(deps, host.as_str()).await?;
    let why = |code, words: &str| {
        let said = view.message.clone().unwrap_or_default();
        let error = Error::new(code, format!("{host} {words}")).because(said);
        match &view.hint {
            Some(hint) => error.hint(hint.clone()),
            None => error,
        }
    };
    match view.state {
        HostState::Up | HostState::Slow => {}
        HostState::Forbidden => return Err(why(Code::Forbidden, "is not asked")),
        HostState::Unknown | HostState::Connecting | HostState::Down | HostState::Other(_) => {
            return Err(why(Code::HostUnreachable, "does not answer"));
        }
    }
    let mut facts = view.facts.clone();
    let inventory = facts.as_mut().and_then(|facts| facts.inventory.take());
    match (facts, inventory) {
        (Some(facts), Some(inventory)) => Ok(Scan { host: view.name.clone(), facts, inventory }),
        _ => Err(why(Code::OperationFailed, "could not be read whole")),
    }
}

/// Things of hosts by where they are: those that are one thing under several names of a host are one, with the scans that saw
/// it.
pub(crate) fn by_place<'a, T>(
    found: impl IntoIterator<Item = (&'a Scan, &'a T)>,
    directory: impl Fn(&T) -> &str,
) -> BTreeMap<Place, Vec<(&'a Scan, &'a T)>> {
    let mut places: BTreeMap<Place, Vec<(&Scan, &T)>> = BTreeMap::new();
    for (scan, thing) in found {
        places.entry(scan.place(directory(thing))).or_default().push((scan, thing));
    }
    places
}

/// Roots of a host for a look: a dry run writes none down, and marks none.
pub(crate) async fn roots_to_look(deps: &Deps, host: &HostName, is_dry: bool) -> KnownRoots {
    if !is_dry {
        return known_roots(deps, host).await;
    }
    let known = deps.hosts.get(host).await.ok().flatten();
    KnownRoots {
        marked: known.map(|known| known.roots).unwrap_or_default(),
        ..KnownRoots::default()
    }
}

/// Recipe of something that is adopted: the one beside it, where that asks for no more than the catalogue's of its name; else
/// the catalogue's, with a sentence that says so.
///
/// Errors: `invalid_input` where neither will do.
pub(crate) fn trusted_recipe(
    deps: &Deps,
    claimed: Option<&Profile>,
    id: &str,
) -> Result<(Profile, Option<String>), Error> {
    let why = match claimed {
        None => "it is not beside it".to_owned(),
        Some(claimed) if claimed.id.as_str() != id => "it is one of another name".to_owned(),
        Some(claimed) => match claimed.validate().into_iter().next() {
            Some(problem) => format!("{}: {}", problem.path, problem.message),
            None => match beyond_catalogue(deps, claimed) {
                more if more.is_empty() => return Ok((claimed.clone(), None)),
                more => format!("it {}, and the catalogue's does not", more.join(", ")),
            },
        },
    };
    match deps.catalogue.recipe(id) {
        Ok(known) => Ok((known.clone(), Some(format!("its recipe is the catalogue's: {why}")))),
        Err(error) => {
            let message = format!("its recipe {id} is not taken: {why}");
            Err(Error::invalid_input("profile", message)
                .hint("look at it in the manifest on the host; if you want it, make it a profile of yours first")
                .because(error))
        }
    }
}
