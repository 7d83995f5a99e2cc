//! The deadline in the host's manifest.

use crate::domain::error::Error;
use crate::domain::extension::Target;
use crate::domain::time::Time;
use crate::extensions::workspace::said::Said;
use crate::extensions::workspace::{exec, expected_of, manifest, owners, root, step};
use crate::transport::{Command, Transport};

const DATE_SH: &str = concat!(
    include_str!("../../transport/scripts/runtime.sh"),
    include_str!("scripts/says.sh"),
    include_str!("scripts/place.sh"),
    include_str!("scripts/stand.sh"),
    include_str!("scripts/date.sh")
);

/// Writes a new deadline into it, once the place is proved to be the sandbox's, and the target's stamp, if it has one, where the host keeps our counter.
pub(crate) async fn set_deadline(
    transport: &dyn Transport,
    target: &Target,
    expires_at: Option<Time>,
) -> Result<(), Error> {
    let owner = target.owners.last().ok_or_else(|| Error::internal("the sandbox has no owner"))?;
    let text = manifest::text(
        &target.id,
        owner,
        target.profile.id.as_str(),
        target.created_at,
        expires_at,
    )?;
    let stamp = target.stamp.as_ref();
    let root = root(target, &transport.spec().workspace_root);
    let command = Command::script(DATE_SH)
        .arg(root)
        .arg(target.id.as_str())
        .arg(owners(target))
        .arg(expected_of(target))
        .arg(text)
        .arg(stamp.map_or_else(String::new, |ours| format!("{} {}", ours.owner, ours.counter)))
        .arg(stamp.map_or("", |ours| ours.machine_id.as_str()));
    let output = step(transport, "deadline", &command).await?;
    exec::stands(target, transport, root, "deadline", &Said::read(&output.text()))
}
