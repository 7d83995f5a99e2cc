//! `extensions list` and `show`.

use super::output::{Context, Outcome};
use super::{document, table};
use crate::client::ExtensionView;
use crate::present::catalogue;

pub(super) async fn list(context: &mut Context<'_>) -> Outcome {
    let views = context.client.extensions().await?;
    let role = |view: &ExtensionView| catalogue::role(view.error.as_ref(), view.available);
    context.reply(&views, |context| table::print(context, catalogue::EXTENSIONS, &views, role))
}

pub(super) async fn show(context: &mut Context<'_>, id: &str) -> Outcome {
    let view = context.client.extension(id).await?;
    document::reply(context, &view, |document, _| catalogue::extension(document, &view))
}
