//! `profiles list`, `show` and `validate`.

use std::path::PathBuf;

use super::bulk::{BulkItem, bulk};
use super::local::Local;
use super::output::{Context, Outcome};
use super::{document, table};
use crate::client::ProfileView;
use crate::present::catalogue;

pub(super) async fn list(context: &mut Context<'_>) -> Outcome {
    let views = context.client.profiles().await?;
    let role = |view: &ProfileView| catalogue::role(view.error.as_ref(), view.available);
    context.reply(&views, |context| table::print(context, catalogue::PROFILES, &views, role))
}

pub(super) async fn show(context: &mut Context<'_>, id: &str) -> Outcome {
    let view = context.client.profile(id).await?;
    document::reply(context, &view, |document, _| catalogue::profile(document, &view))
}

/// Checks files; local, so that an editor or a CI job needs no host and no records.
pub(super) fn validate(context: &mut Context<'_>, files: &[PathBuf], local: &Local<'_>) -> Outcome {
    let check = |file: &PathBuf| {
        let refused = (local.validate_profile)(file).err();
        BulkItem::new(file.to_string_lossy(), refused)
    };
    let items: Vec<_> = files.iter().map(check).collect();
    bulk(context, &items, |_| "valid:")
}
