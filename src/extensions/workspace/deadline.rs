//! The deadline in the host's manifest.

use crate::domain::error::Error;
use crate::domain::extension::{ExtensionError, Target};
use crate::domain::time::Time;
use crate::extensions::workspace::{manifest, step, workdir};
use crate::transport::{Command, Transport};

const DATE_SH: &str = concat!(
    include_str!("scripts/says.sh"),
    include_str!("scripts/place.sh"),
    include_str!("scripts/date.sh")
);

/// Writes a new deadline into it, and the target's stamp, if it has one, where the host keeps our counter.
pub(crate) async fn set_deadline(
    transport: &dyn Transport,
    target: &Target,
    expires_at: Option<Time>,
) -> Result<(), ExtensionError> {
    let owner = target.owners.last().ok_or_else(|| Error::internal("the sandbox has no owner"))?;
    let text = manifest::text(
        &target.id,
        owner,
        target.profile.id.as_str(),
        target.created_at,
        expires_at,
    )?;
    let stamp = target.stamp.as_ref();
    let command = Command::script(DATE_SH)
        .arg(workdir(target)?)
        .arg(text)
        .arg(stamp.map_or_else(String::new, |ours| format!("{} {}", ours.owner, ours.counter)))
        .arg(stamp.map_or("", |ours| ours.machine_id.as_str()));
    step(transport, "deadline", &command).await.map(|_| ())
}
