//! `profiles list`, `show` and `validate`.

use std::path::PathBuf;

use super::bulk::{BulkItem, bulk};
use super::output::{CliError, Context, Outcome, Tone};
use super::table::Line;
use super::{Local, record, table};
use crate::client::ProfileView;
use crate::domain::profile::{InputSpec, Profile, Seconds};

pub(super) async fn list(context: &mut Context<'_>) -> Outcome {
    let views = context.client.profiles().await?;
    if context.options.json {
        context.document(&views)?;
    } else {
        let rows: Vec<_> = views.iter().map(row).collect();
        table::print(context, &["ID", "VERSION", "EXTENSION", "SOURCE", "SUMMARY"], &rows)?;
    }
    Ok(0)
}

fn row(view: &ProfileView) -> Line {
    let dash = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".to_owned());
    let cells = vec![
        view.id.clone(),
        dash(&view.version),
        dash(&view.extension),
        source(&view.source, view.overrides_builtin),
        remark(view.error.as_deref(), view.available, view.summary.as_deref()),
    ];
    Line { tone: tone(view.error.is_some(), view.available), cells }
}

/// Where a definition comes from; an operator's file in a shipped one's place says so.
pub(super) fn source(source: &str, overrides: bool) -> String {
    if overrides { format!("{source}, replaces builtin") } else { source.to_owned() }
}

/// The last cell: what is wrong, else what it is for.
pub(super) fn remark(error: Option<&str>, available: bool, summary: Option<&str>) -> String {
    match error {
        Some(error) => format!("broken: {error}"),
        None if !available => format!("not in this build: {}", summary.unwrap_or_default()),
        None => summary.unwrap_or_default().to_owned(),
    }
}

pub(super) fn tone(broken: bool, available: bool) -> Tone {
    match (broken, available) {
        (true, _) => Tone::Bad,
        (false, false) => Tone::Faint,
        (false, true) => Tone::Plain,
    }
}

pub(super) async fn show(context: &mut Context<'_>, id: &str) -> Outcome {
    let view = context.client.profile(id).await?;
    if context.options.json {
        context.document(&view)?;
    } else {
        print(context, &view)?;
    }
    Ok(0)
}

fn print(context: &mut Context<'_>, view: &ProfileView) -> Result<(), CliError> {
    let mut fields = vec![("id", view.id.clone())];
    let mut add =
        |key: &'static str, value: Option<String>| fields.extend(value.map(|value| (key, value)));
    add("version", view.version.clone());
    add("summary", view.summary.clone());
    add("extension", view.extension.clone());
    add("source", Some(source(&view.source, view.overrides_builtin)));
    add("file", view.path.clone());
    add("broken", view.error.clone());
    if view.error.is_none() && !view.available {
        add(
            "available",
            Some(format!("no: {}", view.unavailable.as_deref().unwrap_or("not in this build"))),
        );
    }
    add("hash", view.hash.clone());
    if let Some(profile) = &view.profile {
        recipe(profile, &mut add);
    }
    record::block(context, &fields)
}

fn recipe(profile: &Profile, add: &mut impl FnMut(&'static str, Option<String>)) {
    let time =
        |limit: Option<Seconds>| limit.map_or_else(|| "none".to_owned(), |limit| limit.to_string());
    add("ttl", Some(format!("{} (at most {})", time(profile.ttl), time(profile.max_ttl))));
    add("ready", Some(format!("within {}", profile.ready_timeout)));
    let hosts: Vec<_> = profile.placement.hosts.iter().map(ToString::to_string).collect();
    if !hosts.is_empty() {
        add("hosts", Some(format!("{} ({})", hosts.join(", "), profile.placement.strategy)));
    }
    add("undo", Some(if profile.undo { "yes" } else { "no" }.to_owned()));
    for (name, spec) in profile.inputs.iter() {
        add("input", Some(input(name, spec)));
    }
}

fn input(name: &str, spec: &InputSpec) -> String {
    let default = match (&spec.default, spec.required) {
        (_, true) => ", required".to_owned(),
        (Some(default), false) => format!(", default {default}"),
        (None, false) => String::new(),
    };
    let choices = if spec.choices.is_empty() {
        String::new()
    } else {
        format!(" of {}", spec.choices.join(", "))
    };
    let help = spec.help.as_ref().map(|help| format!(": {help}")).unwrap_or_default();
    format!("{name} ({}{choices}{default}){help}", spec.kind)
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
