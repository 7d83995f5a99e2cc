//! Claim: makes a data directory that was copied or restored the one that counts (contract 1, `owner`).

use std::collections::BTreeSet;

use futures_util::future::join_all;

use crate::domain::error::Error;
use crate::domain::extension::OwnerStamp;
use crate::domain::name::{HostName, OwnerId};
use crate::manager::deps::Deps;
use crate::manager::hosts::places::{counting_hosts, owner_counter, raise_owner_counter};
use crate::manager::upkeep::ownership::unnamed_owners;

/// Makes the data directory this machine's, and writes a counter to every host that answers which is above all that they
/// have: whoever has another copy of it is the one behind. Those that nobody could tell.
///
/// Errors: a claim that cannot be written.
pub(crate) async fn claim(deps: &Deps) -> Result<Vec<HostName>, Error> {
    // Records that cannot be read hinder no claim: their owners stay unnamed, and nothing of theirs is removed.
    let unnamed = unnamed_owners(deps).await.unwrap_or_else(|error| {
        tracing::warn!(%error, "whose the records are could not be read");
        BTreeSet::new()
    });
    for owner in unnamed {
        deps.installation.adopt_owner(&owner, 0).await?;
    }
    let owners = deps.installation.owners().await?;
    let hosts = counting_hosts(deps).await;
    let asked = join_all(hosts.iter().map(|host| highest_counter(deps, host, &owners))).await;
    let highest = asked.iter().flatten().copied().max().unwrap_or(0);
    let mut stamp = deps.installation.claim(highest).await?;
    let mut counters = raise_counters(deps, &hosts, &stamp).await;
    // Somebody worked with the other copy meanwhile.
    if let Some(counts) =
        counters.iter().flatten().copied().max().filter(|counts| *counts > stamp.counter)
    {
        stamp = deps.installation.claim(counts).await?;
        counters = raise_counters(deps, &hosts, &stamp).await;
    }
    let untold = hosts.into_iter().zip(counters).filter(|(_, counts)| counts.is_none());
    Ok(untold.map(|(host, _)| host).collect())
}

/// The highest counter that a host has of these owners; `None` where it could not be asked.
async fn highest_counter(deps: &Deps, host: &HostName, owners: &[OwnerId]) -> Option<u64> {
    let asked = async {
        let mut highest = 0;
        for owner in owners {
            highest = highest.max(owner_counter(deps, host, owner).await?.unwrap_or(0));
        }
        Ok::<u64, Error>(highest)
    };
    asked
        .await
        .inspect_err(|error| tracing::warn!(%host, %error, "its counter could not be read"))
        .ok()
}

/// Writes our counter to these hosts; what each one counts then, `None` where nobody could tell it.
async fn raise_counters(deps: &Deps, hosts: &[HostName], stamp: &OwnerStamp) -> Vec<Option<u64>> {
    let tell = |host: &HostName| {
        let host = host.clone();
        async move {
            let raised = async {
                for (owner, counter) in deps.installation.owner_counters().await? {
                    if owner != stamp.owner && counter > 0 {
                        let stamp = OwnerStamp { owner, counter, ..stamp.clone() };
                        raise_owner_counter(deps, &host, &stamp).await?;
                    }
                }
                raise_owner_counter(deps, &host, stamp).await
            };
            raised
                .await
                .inspect_err(
                    |error| tracing::warn!(%host, %error, "its counter could not be raised"),
                )
                .ok()
        }
    };
    join_all(hosts.iter().map(tell)).await
}
