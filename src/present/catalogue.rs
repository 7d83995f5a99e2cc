//! Catalogue: the columns of profiles and extensions, and one of each to be read.

use super::document::Document;
use super::role::Role;
use super::table::{Column, or_nothing};
use crate::client::{ExtensionView, ProfileView};
use crate::domain::profile::{InputSpec, Profile, Seconds};

pub(crate) const PROFILES: &[Column<ProfileView>] = &[
    Column::new("ID", |view, _| view.id.clone()),
    Column::new("VERSION", |view, _| or_nothing(view.version.as_ref())),
    Column::new("EXTENSION", |view, _| or_nothing(view.extension.as_ref())),
    Column::new("SOURCE", |view, _| source(&view.source, view.overrides_builtin)),
    Column::new("SUMMARY", |view, _| {
        summary(view.error.as_deref(), view.available, view.summary.as_deref())
    }),
];

pub(crate) const EXTENSIONS: &[Column<ExtensionView>] = &[
    Column::new("ID", |view, _| view.id.clone()),
    Column::new("VERSION", |view, _| or_nothing(view.version.as_ref())),
    Column::new("KIND", |view, _| or_nothing(view.manifest.as_ref().map(|it| &it.kind))),
    Column::new("SOURCE", |view, _| source(&view.source, view.overrides_builtin)),
    Column::new("SUMMARY", |view, _| {
        let about = view.manifest.as_ref().map(|manifest| manifest.summary.as_str());
        summary(view.error.as_deref(), view.available, about)
    }),
];

/// How a row is meant.
pub(crate) fn role(error: Option<&String>, available: bool) -> Role {
    match (error, available) {
        (Some(_), _) => Role::Bad,
        (None, false) => Role::Dim,
        (None, true) => Role::Plain,
    }
}

/// Where a definition comes from; an operator's file in a shipped one's place says so.
fn source(source: &str, overrides: bool) -> String {
    if overrides { format!("{source}, replaces builtin") } else { source.to_owned() }
}

/// Error of its file, else its description.
fn summary(error: Option<&str>, available: bool, summary: Option<&str>) -> String {
    match error {
        Some(error) => format!("broken: {error}"),
        None if !available => format!("not in this build: {}", summary.unwrap_or_default()),
        None => summary.unwrap_or_default().to_owned(),
    }
}

/// Why one that is whole cannot be used.
fn unavailable(error: Option<&String>, available: bool, why: Option<&str>) -> Option<String> {
    (error.is_none() && !available).then(|| format!("no: {}", why.unwrap_or("not in this build")))
}

/// Adds a profile.
pub(crate) fn profile(document: &mut Document, view: &ProfileView) {
    document.plain("id", &view.id);
    document.maybe("version", Role::Plain, view.version.as_deref());
    document.maybe("summary", Role::Plain, view.summary.as_deref());
    document.maybe("extension", Role::Plain, view.extension.as_deref());
    document.plain("source", source(&view.source, view.overrides_builtin));
    document.maybe("file", Role::Plain, view.path.as_deref());
    document.maybe("broken", Role::Bad, view.error.as_deref());
    let why = unavailable(view.error.as_ref(), view.available, view.unavailable.as_deref());
    document.maybe("available", Role::Warn, why);
    document.maybe("hash", Role::Plain, view.hash.as_deref());
    if let Some(profile) = &view.profile {
        settings(document, profile);
    }
}

fn settings(document: &mut Document, profile: &Profile) {
    let time =
        |limit: Option<Seconds>| limit.map_or_else(|| "none".to_owned(), |limit| limit.to_string());
    document.plain("ttl", format!("{} (at most {})", time(profile.ttl), time(profile.max_ttl)));
    document.plain("ready", format!("within {}", profile.ready_timeout));
    let hosts: Vec<_> = profile.placement.hosts.iter().map(ToString::to_string).collect();
    if !hosts.is_empty() {
        document.plain("hosts", format!("{} ({})", hosts.join(", "), profile.placement.strategy));
    }
    document.plain("undo", if profile.undo { "yes" } else { "no" });
    for (name, spec) in profile.inputs.iter() {
        document.plain("input", input(name, spec));
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

/// Adds an extension.
pub(crate) fn extension(document: &mut Document, view: &ExtensionView) {
    document.plain("id", &view.id);
    document.maybe("version", Role::Plain, view.version.as_deref());
    document.plain("source", source(&view.source, view.overrides_builtin));
    document.maybe("file", Role::Plain, view.path.as_deref());
    document.maybe("broken", Role::Bad, view.error.as_deref());
    let why = unavailable(view.error.as_ref(), view.available, view.unavailable.as_deref());
    document.maybe("available", Role::Warn, why);
    let Some(manifest) = &view.manifest else { return };
    let some = |text: String| Some(text).filter(|text| !text.is_empty());
    document.maybe("summary", Role::Plain, some(manifest.summary.clone()));
    document.plain("kind", &manifest.kind);
    document.maybe("command", Role::Plain, some(manifest.command.join(" ")));
    let words: Vec<_> = manifest.capabilities.iter().map(ToString::to_string).collect();
    document.maybe("can", Role::Plain, some(words.join(", ")));
    document.maybe("gets", Role::Plain, some(manifest.env.join(", ")));
    let rates = &manifest.rates;
    let usd = |amount: Option<crate::domain::Usd>| amount.map(|usd| usd.to_string());
    document.maybe("per second", Role::Plain, usd(rates.per_second_usd));
    document.maybe("per GB", Role::Plain, usd(rates.per_gb_usd));
    document.maybe("at least", Role::Plain, usd(rates.minimum_usd));
}
