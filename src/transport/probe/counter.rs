//! The counter that a host has of an installation (contract 1, `owner`), written there by each prepare call.

use std::time::Duration;

use crate::domain::error::{Code, Error};
use crate::domain::extension::OwnerStamp;
use crate::domain::name::OwnerId;
use crate::transport::{Command, Transport};

const COUNTER_SH: &str = include_str!("../scripts/counter.sh");

const DEADLINE: Duration = Duration::from_secs(20);

/// The counter that a host has of this owner; `None` where it has none.
///
/// Errors: the transport's.
pub(crate) async fn counter(
    transport: &dyn Transport,
    owner: &OwnerId,
) -> Result<Option<u64>, Error> {
    let command = Command::script(COUNTER_SH).arg(owner.as_str());
    Ok(transport.run(&command, DEADLINE).await?.text().trim().parse().ok())
}

/// Makes a host count at least as much as this stamp of the installation; what it counts then.
///
/// Errors: the transport's, and `operation_failed` where nothing could be written there.
pub(crate) async fn raise_counter(
    transport: &dyn Transport,
    stamp: &OwnerStamp,
) -> Result<u64, Error> {
    let counter = stamp.counter.to_string();
    let command =
        Command::script(COUNTER_SH).arg(stamp.owner.as_str()).arg(counter).arg(&stamp.machine_id);
    let output = transport.run(&command, DEADLINE).await?;
    let counts =
        output.text().trim().parse().ok().filter(|counts| output.ok() && *counts >= stamp.counter);
    counts.ok_or_else(|| {
        let message = format!(
            "the counter of this installation could not be written on {}",
            transport.spec().name
        );
        Error::new(Code::OperationFailed, message).because(output.error_text().trim().to_owned())
    })
}
