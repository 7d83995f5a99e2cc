//! Take-over of an owner id: it becomes one of ours, and each host counts more of it than whoever had it knows of.

use futures_util::future::join_all;

use crate::domain::adoption::{Adopted, AdoptedKind};
use crate::domain::error::{Code, Error};
use crate::domain::name::{HostName, OwnerId};
use crate::manager::deps::Deps;
use crate::manager::hosts::places::{counting_hosts, owner_counter, raise_owner_counter};
use crate::manager::stale::adopt_item::AdoptItem;
use crate::manager::stale::scan::HostScan;
use crate::manager::upkeep::ownership::{CLAIM_HINT, ownership_words};
use crate::store::Ownership;

/// An owner id as somebody typed it. It becomes a file's name on hosts.
///
/// Errors: `invalid_input` for what is none.
pub(crate) fn parse_owner(text: &str) -> Result<OwnerId, Error> {
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if text.is_empty() || text.len() > 64 || !text.chars().all(legal) {
        return Err(Error::invalid_input("owner", "an owner's id is letters, digits, '-' and '_'")
            .hint("`sandboxer inspect stale` shows whose the things on hosts are"));
    }
    Ok(OwnerId::new(text))
}

/// Refuses an owner of which no host that was read has anything: it may be a slip of the pen.
pub(crate) fn ensure_met(owner: &OwnerId, scans: &[HostScan]) -> Result<(), Error> {
    let is_it = |of: &Option<String>| of.as_deref() == Some(owner.as_str());
    let met = scans.iter().any(|scan| {
        scan.inventory.sandboxes.iter().any(|item| is_it(&item.owner))
            || scan.inventory.archives.iter().any(|item| is_it(&item.owner))
    });
    if met {
        return Ok(());
    }
    let message = format!("no host that could be read has anything of the owner {owner}");
    Err(Error::new(Code::NotFound, message)
        .hint("`sandboxer adopt --dry-run` lists the owners that hosts have something of"))
}

/// Refuses an adoption by a data directory that may be an old or somebody else's copy, as far as the hosts that were read know:
/// what it does not know may be what the original made since.
pub(crate) async fn ensure_current(deps: &Deps) -> Result<(), Error> {
    match deps.installation.ownership().await? {
        Ownership::Own => Ok(()),
        ownership => {
            let message = format!("nothing was adopted: {}", ownership_words(&ownership));
            Err(Error::new(Code::Conflict, message).hint(CLAIM_HINT))
        }
    }
}

/// Makes an owner one of ours, and tells every host that may be asked: an item for each.
pub(crate) async fn take_over(deps: &Deps, owner: &OwnerId) -> Result<Vec<Adopted>, Error> {
    let hosts = counting_hosts(deps).await;
    let asked = join_all(hosts.iter().map(|host| owner_counter(deps, host, owner))).await;
    let highest = asked.iter().flatten().flatten().copied().max().unwrap_or(0);
    let stamp = deps.installation.adopt_owner(owner, highest).await?;
    let told = join_all(hosts.iter().map(|host| raise_owner_counter(deps, host, &stamp))).await;
    Ok(hosts.iter().zip(told).map(|(host, told)| item(host, owner, told)).collect())
}

fn item(host: &HostName, owner: &OwnerId, told: Result<u64, Error>) -> Adopted {
    let item = AdoptItem::new(AdoptedKind::Owner, owner.as_str(), host).of(owner.as_str());
    match told {
        Ok(counter) => item.done(format!(
            "this owner is ours: {host} counts {counter} changes of it, and whoever else has it is behind"
        )),
        Err(error) => item.not_done(
            format!("this owner is ours, but {host} does not know it: whoever else has it may still remove things there"),
            error.hint(format!("adopt it again when {host} answers: `sandboxer adopt --owner {owner}`")),
        ),
    }
}
