//! `extend`: moves a deadline.

use super::args::ExtendArgs;
use super::output::{Context, Outcome};
use super::sandboxes;
use crate::client::ExtendRequest;
use crate::domain::profile::Seconds;
use crate::present::error::hinted;

pub(super) async fn extend(context: &mut Context<'_>, args: &ExtendArgs) -> Outcome {
    let request = ExtendRequest {
        id: context.client.get(&args.id).await?.id.to_string(),
        expires_at: None,
        by_s: args.by.map(Seconds::get),
        to: args.to,
        allow_shorten: args.allow_shorten,
    };
    let extended = context.client.extend(request).await?;
    let shown = sandboxes::show(context, &extended.sandbox)?;
    if let Some(error) = &extended.unwritten {
        let why = error.causes.first().map(|why| format!(": {why}")).unwrap_or_default();
        let message = format!("{}{why}", error.message);
        context.remark(&hinted(&message, error.hint.as_ref()));
    }
    Ok(shown)
}
