//! Deadline of a sandbox as its host has it: a later one than is recorded was written by somebody with another copy of the records.

use std::time::Duration;

use serde::Deserialize;

use crate::domain::error::Error;
use crate::domain::name::{OwnerId, SandboxId};
use crate::domain::time::Time;
use crate::transport::{Command, Transport};

const DEADLINE_SH: &str = include_str!("../scripts/told_deadline.sh");

const LIMIT: Duration = Duration::from_secs(20);

#[derive(Deserialize)]
struct Manifest {
    id: String,
    owner: String,
    expires_at: Option<Time>,
}

/// The deadline in the manifest of a sandbox's directory, where that is this sandbox's and this owner's; none where it has none,
/// or cannot be read.
///
/// Errors: the transport's.
pub async fn deadline_of(
    transport: &dyn Transport,
    workdir: &str,
    id: &SandboxId,
    owner: &OwnerId,
) -> Result<Option<Time>, Error> {
    let output = transport.run(&Command::script(DEADLINE_SH).arg(workdir), LIMIT).await?;
    let manifest: Option<Manifest> = serde_json::from_str(&output.text()).ok();
    let ours = manifest.filter(|found| found.id == id.as_str() && found.owner == owner.as_str());
    Ok(ours.and_then(|found| found.expires_at))
}
