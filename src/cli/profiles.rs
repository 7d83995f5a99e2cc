//! `profiles list`, `show` and `validate`.

use std::path::PathBuf;

use super::bulk::{BulkItem, bulk};
use super::local::Local;
use super::output::{Context, Outcome};
use super::{document, table};
use crate::present::{Document, catalogue};

pub(super) async fn list(context: &mut Context<'_>) -> Outcome {
    let views = context.client.profiles().await?;
    if context.options.json {
        context.document(&views)?;
    } else {
        table::print(context, catalogue::PROFILES, &views, |view| {
            catalogue::role(view.error.as_ref(), view.available)
        })?;
    }
    Ok(0)
}

pub(super) async fn show(context: &mut Context<'_>, id: &str) -> Outcome {
    let view = context.client.profile(id).await?;
    if context.options.json {
        context.document(&view)?;
    } else {
        let mut document = Document::default();
        catalogue::profile(&mut document, &view);
        document::print(context, &document)?;
    }
    Ok(0)
}

/// Checks files; local, so that an editor or a CI job needs no host and no records.
pub(super) fn validate(context: &mut Context<'_>, files: &[PathBuf], local: &Local<'_>) -> Outcome {
    let check = |file: &PathBuf| {
        let ended = (local.validate_profile)(file);
        BulkItem::new(file.to_string_lossy(), ended)
    };
    let items: Vec<_> = files.iter().map(check).collect();
    bulk(context, &items, |_| "valid:")
}
