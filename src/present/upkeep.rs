//! Upkeep: the columns of what was adopted, imported and brought into order; checks of an installation; events for the State Hub.

use super::count::many;
use super::role::Role;
use super::table::{Column, or_nothing};
use crate::client::{Adopted, AdoptedKind, CheckState, FlushReport, Recovered};

/// Columns of what was adopted or imported.
pub(crate) const ADOPTED: &[Column<Adopted>] = &[
    Column::new("KIND", |thing, _| thing.kind.to_string()),
    Column::new("ID", |thing, _| match thing.kind {
        AdoptedKind::Host => String::new(),
        _ => thing.id.clone(),
    }),
    Column::new("NAME", |thing, _| or_nothing(thing.name.as_ref())),
    Column::whole("HOST", |thing, _| thing.host.to_string()),
    Column::whole("DONE", |thing, _| adopted(thing).1.to_owned()),
    Column::new("WHAT", |thing, _| thing.message.clone()),
];

/// How what was adopted is meant, and whether it was, in a word.
pub(crate) fn adopted(thing: &Adopted) -> (Role, &'static str) {
    match (thing.ok, thing.adopted) {
        (true, true) => (Role::Plain, "yes"),
        (true, false) => (Role::Dim, "left"),
        (false, _) => (Role::Bad, "no"),
    }
}

/// Columns of what was brought into order.
pub(crate) const RECOVERED: &[Column<Recovered>] = &[
    Column::new("ID", |thing, _| thing.id.clone()),
    Column::whole("STATE", |thing, _| or_nothing(thing.state.as_ref())),
    Column::new("WAS", |thing, _| thing.was.clone()),
    Column::new("DONE", |thing, _| thing.message.clone()),
];

/// How a check is meant.
pub(crate) fn check_role(state: &CheckState) -> Role {
    match state {
        CheckState::Failed => Role::Bad,
        CheckState::Warning => Role::Warn,
        CheckState::Ok | CheckState::Other(_) => Role::Plain,
    }
}

/// `3 events delivered, 1 to the dead letter, 2 still waiting`.
pub(crate) fn flush_sum(report: &FlushReport) -> String {
    let mut parts =
        vec![format!("{} delivered", many(report.delivered as usize, "event", "events"))];
    if report.dead > 0 {
        parts.push(format!("{} to the dead letter", report.dead));
    }
    if report.backlog.waiting > 0 {
        parts.push(format!("{} still waiting", report.backlog.waiting));
    }
    parts.join(", ")
}
