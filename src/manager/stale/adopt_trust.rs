//! Trust in an adoption: the roots by which a host is looked at, and the profile of what is found there.

use crate::domain::error::Error;
use crate::domain::name::HostName;
use crate::domain::profile::Profile;
use crate::domain::root::KnownRoots;
use crate::manager::deps::Deps;
use crate::manager::hosts::roots::known_roots;
use crate::manager::snapshots::pinned_profile::beyond_catalogue;

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

/// Profile of something that is adopted: the one beside it, where that asks for no more than the catalogue's of its name; else
/// the catalogue's, with a sentence that says so.
///
/// Errors: `invalid_input` where neither will do.
pub(crate) fn trusted_profile(
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
    match deps.catalogue.usable_profile(id) {
        Ok(known) => Ok((known.clone(), Some(format!("its profile is the catalogue's: {why}")))),
        Err(error) => {
            let message = format!("its profile {id} is not taken: {why}");
            Err(Error::invalid_input("profile", message)
                .hint("look at it in the manifest on the host; if you want it, make it a profile of yours first")
                .because(error))
        }
    }
}
