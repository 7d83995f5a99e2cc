//! `extensions list` and `show`.

use super::output::{Context, Outcome};
use super::profiles::{remark, source, tone};
use super::table::Line;
use super::{record, table};
use crate::client::ExtensionView;

pub(super) async fn list(context: &mut Context<'_>) -> Outcome {
    let views = context.client.extensions().await?;
    if context.options.json {
        context.document(&views)?;
    } else {
        let rows: Vec<_> = views.iter().map(row).collect();
        table::print(context, &["ID", "VERSION", "KIND", "SOURCE", "SUMMARY"], &rows)?;
    }
    Ok(0)
}

fn row(view: &ExtensionView) -> Line {
    let manifest = view.manifest.as_ref();
    let cells = vec![
        view.id.clone(),
        view.version.clone().unwrap_or_else(|| "-".to_owned()),
        manifest.map_or_else(|| "-".to_owned(), |manifest| manifest.kind.to_string()),
        source(&view.source, view.overrides_builtin),
        remark(
            view.error.as_deref(),
            view.available,
            manifest.map(|manifest| manifest.summary.as_str()),
        ),
    ];
    Line { tone: tone(view.error.is_some(), view.available), cells }
}

pub(super) async fn show(context: &mut Context<'_>, id: &str) -> Outcome {
    let view = context.client.extension(id).await?;
    if context.options.json {
        context.document(&view)?;
        return Ok(0);
    }
    let mut fields = vec![("id", view.id.clone())];
    let mut add =
        |key: &'static str, value: Option<String>| fields.extend(value.map(|value| (key, value)));
    add("version", view.version.clone());
    add("source", Some(source(&view.source, view.overrides_builtin)));
    add("file", view.path.clone());
    add("broken", view.error.clone());
    if view.error.is_none() && !view.available {
        add(
            "available",
            Some(format!("no: {}", view.unavailable.as_deref().unwrap_or("not in this build"))),
        );
    }
    if let Some(manifest) = &view.manifest {
        add("summary", Some(manifest.summary.clone()).filter(|summary| !summary.is_empty()));
        add("kind", Some(manifest.kind.to_string()));
        add("command", Some(manifest.command.join(" ")).filter(|command| !command.is_empty()));
        let words: Vec<_> = manifest.capabilities.iter().map(ToString::to_string).collect();
        add("can", Some(words.join(", ")).filter(|words| !words.is_empty()));
        add("gets", Some(manifest.env.join(", ")).filter(|names| !names.is_empty()));
        add("per second", manifest.rates.per_second_usd.map(|usd| usd.to_string()));
        add("per GB", manifest.rates.per_gb_usd.map(|usd| usd.to_string()));
        add("at least", manifest.rates.minimum_usd.map(|usd| usd.to_string()));
    }
    record::block(context, &fields)?;
    Ok(0)
}
