//! Ownership: whether this data directory may act for what its records name (contract 1, `owner`).

use crate::domain::error::{Code, Error};
use crate::manager::deps::Deps;
use crate::store::Standing;

/// Hint at how to make a copy one's own.
pub(crate) const CLAIM_HINT: &str = "if the original is not used any more, `sandboxer doctor --claim` makes this data directory the one that counts";

/// Refuses what removes things on hosts while the data directory may be an old or somebody else's copy: its
/// records may call a stranger's sandbox ours, and a living one half-made.
pub(crate) async fn ensure_own(deps: &Deps) -> Result<(), Error> {
    match deps.installation.standing().await? {
        Standing::Own => Ok(()),
        standing => Err(Error::new(
            Code::Conflict,
            format!("nothing was removed: {}", standing_words(&standing)),
        )
        .hint(CLAIM_HINT)
        .detail("standing", if standing == Standing::Copied { "copied" } else { "behind" })),
    }
}

/// A sentence on a directory's standing.
pub(crate) fn standing_words(standing: &Standing) -> String {
    match standing {
        Standing::Own => "this data directory is this machine's own".to_owned(),
        Standing::Copied => {
            "this data directory was made on another machine, which may still work with the original".to_owned()
        }
        Standing::Behind { host, counter } => format!(
            "this data directory is an old copy: {host} counts {counter} changes by this installation, more than are known here"
        ),
    }
}
