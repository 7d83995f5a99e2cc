//! The counter that a host has of an installation (contract 1, `owner`), written there by each prepare call.

use std::time::Duration;

use crate::domain::fault::Fault;
use crate::domain::name::OwnerId;
use crate::transport::{Command, Transport};

const COUNTER_SH: &str = include_str!("../scripts/counter.sh");

const DEADLINE: Duration = Duration::from_secs(20);

/// The counter that a host has of this owner; `None` where it has none.
///
/// Errors: the transport's.
pub async fn counter(transport: &dyn Transport, owner: &OwnerId) -> Result<Option<u64>, Fault> {
    let command = Command::script(COUNTER_SH).arg(owner.as_str());
    Ok(transport.run(&command, DEADLINE).await?.text().trim().parse().ok())
}
