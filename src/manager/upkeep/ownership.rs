//! Ownership: whether this data directory may act for what its records name (contract 1, `owner`).

use std::collections::BTreeSet;

use crate::domain::error::{Code, Error};
use crate::domain::name::{HostName, OwnerId};
use crate::manager::deps::Deps;
use crate::manager::hosts::places::raise_owner_counter;
use crate::store::Ownership;

/// Hint at how to make a copy one's own.
pub(crate) const CLAIM_HINT: &str = "if the original is not used any more, `sandboxer doctor --claim` makes this data directory the one that counts";

/// Refuses what removes things on hosts while the data directory may be an old or somebody else's copy: its
/// records may call a stranger's sandbox ours, and a living one half-made.
pub(crate) async fn ensure_own(deps: &Deps) -> Result<(), Error> {
    let ownership = ownership(deps).await?;
    let standing = match &ownership {
        Ownership::Own => return Ok(()),
        Ownership::Copied => "copied",
        Ownership::Behind { .. } => "behind",
        Ownership::Unnamed { .. } => "unnamed",
    };
    let message = format!("nothing was removed: {}", ownership_words(&ownership));
    Err(Error::new(Code::Conflict, message).hint(CLAIM_HINT).detail("standing", standing))
}

/// Whether the data directory may act for what its records name, by its file `owner` and by these.
pub(crate) async fn ownership(deps: &Deps) -> Result<Ownership, Error> {
    let by_file = deps.installation.ownership().await?;
    if by_file != Ownership::Own {
        return Ok(by_file);
    }
    let unnamed = unnamed_owners(deps).await?.pop_first();
    Ok(unnamed.map_or(Ownership::Own, |owner| Ownership::Unnamed { owner }))
}

/// Owners of records that the file `owner` does not name: it was lost, or a copy came without it. Who made one anew counts nothing
/// of what the original did since.
pub(crate) async fn unnamed_owners(deps: &Deps) -> Result<BTreeSet<OwnerId>, Error> {
    let (sandboxes, snapshots) = tokio::join!(deps.sandboxes.list(), deps.snapshots.list());
    // A broken snapshots.json keeps no sandbox from being removed: whoever removes an archive reads its record first.
    let (sandboxes, snapshots) = (sandboxes?, snapshots.unwrap_or_default());
    let sandboxes = sandboxes.iter().filter(|record| !record.state.is_over());
    let mut owners: BTreeSet<&OwnerId> = sandboxes.map(|record| &record.owner).collect();
    owners.extend(snapshots.iter().map(|record| &record.owner));
    if owners.is_empty() {
        return Ok(BTreeSet::new());
    }
    let ours = deps.installation.owners().await?;
    Ok(owners.into_iter().filter(|owner| !ours.contains(owner)).cloned().collect())
}

/// Notes that a host had so much of us before a call that was `given` a number of its own. The very number that the call was given is
/// another copy's, which raised it to that first.
pub(crate) async fn note_counter(
    deps: &Deps,
    host: &HostName,
    had: u64,
    given: u64,
) -> Result<(), Error> {
    let had =
        if had == given { deps.installation.stamp().await?.counter.max(had) + 1 } else { had };
    deps.installation.seen_on(host, had).await.map(|_| ())
}

/// Counts a change on a host that is no create: a copy of our records from before it knows less than the host does from here on. What
/// fails is logged, and fails nothing.
pub(crate) async fn count_change(deps: &Deps, host: &HostName) {
    let counted = async {
        let stamp = deps.installation.next_stamp().await?;
        let counts = raise_owner_counter(deps, host, &stamp).await?;
        deps.installation.seen_on(host, counts).await
    };
    if let Err(error) = counted.await {
        tracing::warn!(%host, %error, "a change could not be counted there");
    }
}

pub(crate) fn ownership_words(ownership: &Ownership) -> String {
    match ownership {
        Ownership::Own => "this data directory is this machine's own".to_owned(),
        Ownership::Copied => {
            "this data directory was made on another machine, which may still work with the original".to_owned()
        }
        Ownership::Unnamed { owner } => format!(
            "its records are of the installation {owner}, which its file `owner` does not name: that was lost, or this is a copy without it"
        ),
        Ownership::Behind { host, counter } => format!(
            "this data directory is an old copy: {host} counts {counter} changes by this installation, more than are known here"
        ),
    }
}
