//! `extensions list` and `show`.

use super::output::{Context, Outcome};
use super::{document, table};
use crate::present::{Document, catalogue};

pub(super) async fn list(context: &mut Context<'_>) -> Outcome {
    let views = context.client.extensions().await?;
    if context.options.json {
        context.document(&views)?;
    } else {
        table::print(context, catalogue::EXTENSIONS, &views, |view| {
            catalogue::role(view.error.as_ref(), view.available)
        })?;
    }
    Ok(0)
}

pub(super) async fn show(context: &mut Context<'_>, id: &str) -> Outcome {
    let view = context.client.extension(id).await?;
    if context.options.json {
        context.document(&view)?;
    } else {
        let mut document = Document::default();
        catalogue::extension(&mut document, &view);
        document::print(context, &document)?;
    }
    Ok(0)
}
