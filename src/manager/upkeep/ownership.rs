//! Ownership: whether this data directory may act for what its records name (contract 1, `owner`).

use crate::domain::error::{Code, Error};
use crate::domain::name::HostName;
use crate::manager::deps::Deps;
use crate::manager::hosts::places::raise_owner_counter;
use crate::store::Ownership;

/// Hint at how to make a copy one's own.
pub(crate) const CLAIM_HINT: &str = "if the original is not used any more, `sandboxer doctor --claim` makes this data directory the one that counts";

/// Refuses what removes things on hosts while the data directory may be an old or somebody else's copy: its
/// records may call a stranger's sandbox ours, and a living one half-made.
pub(crate) async fn ensure_own(deps: &Deps) -> Result<(), Error> {
    match deps.installation.ownership().await? {
        Ownership::Own => Ok(()),
        ownership => Err(Error::new(
            Code::Conflict,
            format!("nothing was removed: {}", ownership_words(&ownership)),
        )
        .hint(CLAIM_HINT)
        .detail("standing", if ownership == Ownership::Copied { "copied" } else { "behind" })),
    }
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
        Ownership::Behind { host, counter } => format!(
            "this data directory is an old copy: {host} counts {counter} changes by this installation, more than are known here"
        ),
    }
}
