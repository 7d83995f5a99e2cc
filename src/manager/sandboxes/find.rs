//! Sandboxes: listing them, and the one that a reference means.

use std::sync::Arc;

use serde::Serialize;

use crate::domain::error::{Code, Error, Kind};
use crate::domain::name::{SandboxId, is_hex8};
use crate::domain::request::ListQuery;
use crate::domain::sandbox::{SandboxRecord, State};
use crate::domain::text::nearest;
use crate::manager::deps::Deps;

/// The sandbox with exactly this id, at this revision.
///
/// Errors: `not_found`, and `conflict` where it changed since somebody looked at it.
pub(crate) async fn get_at_revision(
    deps: &Deps,
    id: &str,
    revision: Option<u64>,
) -> Result<SandboxRecord, Error> {
    let record = find_sandbox(deps, id).await?;
    if record.id.as_str() != id {
        return Err(Error::new(Code::NotFound, format!("there is no sandbox with the id {id}")));
    }
    match revision.filter(|seen| *seen != record.revision) {
        Some(seen) => Err(changed_error(&format!("sandbox {id}"), seen, &record)),
        None => Ok(record),
    }
}

/// Error of whoever looked at a record as it is not any more.
pub(crate) fn changed_error(what: &str, seen: u64, current: &impl Serialize) -> Error {
    Error::new(Code::Conflict, format!("{what} changed since it was looked at"))
        .of_kind(Kind::Stale)
        .hint("look again, then decide")
        .detail("expected", seen)
        .detail("current", serde_json::to_value(current).unwrap_or_default())
}

/// Error of a beginning of several ids; `what` they are of.
pub(crate) fn several_error(what: &str, ids: Vec<&str>) -> Error {
    let message = format!("several {what} begin with that: {}", ids.join(", "));
    Error::new(Code::Conflict, message).hint("write more of the id").detail("matches", ids)
}

/// Sandboxes that pass, oldest first. Those that are over only with `all` or when such a state is named.
pub(crate) async fn list_sandboxes(
    deps: &Deps,
    query: &ListQuery,
) -> Result<Vec<Arc<SandboxRecord>>, Error> {
    refuse_unknown_states(query)?;
    let mut records = if with_over(query) { deps.sandboxes.history().await? } else { Vec::new() };
    records.extend(deps.sandboxes.list().await?);
    records.retain(|record| passes(query, record));
    records.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
    Ok(records)
}

/// The sandbox a reference means: exact id, exact name, unique prefix of an id (4 or more), in this order.
pub(crate) async fn find_sandbox(deps: &Deps, reference: &str) -> Result<SandboxRecord, Error> {
    if let Ok(id) = SandboxId::parse(reference)
        && let Some(found) = deps.sandboxes.get(&id).await?
    {
        return Ok(found);
    }
    let live = deps.sandboxes.list().await?;
    if let Some(found) = exact(&live, reference) {
        return Ok(SandboxRecord::clone(found));
    }
    let history = deps.sandboxes.history().await?;
    if let Some(found) = exact(&history, reference) {
        return Ok(SandboxRecord::clone(found));
    }
    for records in [&live, &history] {
        if let Some(found) = by_prefix(records, reference)? {
            return Ok(SandboxRecord::clone(found));
        }
    }
    Err(not_found(reference, &live))
}

/// Whether a list also shows sandboxes that are over.
fn with_over(query: &ListQuery) -> bool {
    query.all || query.states.iter().any(State::is_over)
}

fn passes(query: &ListQuery, record: &SandboxRecord) -> bool {
    let profile = query.profile.as_deref().map(|id| id.strip_prefix("profile.").unwrap_or(id));
    (with_over(query) || !record.state.is_over())
        && (query.states.is_empty() || query.states.contains(&record.state))
        && query.host.as_deref().is_none_or(|host| record.host.same(host))
        && profile.is_none_or(|id| record.profile.id.as_str().trim_start_matches("profile.") == id)
        && query.labels.iter().all(|(key, value)| record.labels.get(key) == Some(value))
}

fn refuse_unknown_states(query: &ListQuery) -> Result<(), Error> {
    match query.states.iter().find(|state| matches!(state, State::Other(_))) {
        Some(state) => Err(unknown_state(state)),
        None => Ok(()),
    }
}

/// The record with exactly this id or, if there is none, this name.
pub(crate) fn exact<'a>(
    records: &'a [Arc<SandboxRecord>],
    reference: &str,
) -> Option<&'a Arc<SandboxRecord>> {
    if let Some(record) = records.iter().find(|record| record.id.as_str() == reference) {
        return Some(record);
    }
    // A name may have been used again after its first bearer was destroyed, or came to nothing: the living one is meant.
    let named = || records.iter().rev().filter(|record| record.name.as_deref() == Some(reference));
    let living = named().find(|record| record.name_in_use().is_some());
    living.or_else(|| named().find(|record| !record.state.is_over())).or_else(|| named().next())
}

fn by_prefix<'a>(
    records: &'a [Arc<SandboxRecord>],
    reference: &str,
) -> Result<Option<&'a Arc<SandboxRecord>>, Error> {
    if reference.len() < 4 {
        return Ok(None);
    }
    let matches: Vec<&Arc<SandboxRecord>> =
        records.iter().filter(|record| record.id.as_str().starts_with(reference)).collect();
    match matches.as_slice() {
        [] => Ok(None),
        [one] => Ok(Some(one)),
        several => {
            let ids = several.iter().map(|record| record.id.as_str()).collect();
            Err(several_error("sandboxes", ids))
        }
    }
}

fn not_found(reference: &str, live: &[Arc<SandboxRecord>]) -> Error {
    let shown: String = reference.chars().take(80).collect();
    let error = Error::new(Code::NotFound, format!("there is no sandbox {shown:?}"));
    let there = live.iter().filter(|record| !record.state.is_over());
    let known =
        there.flat_map(|record| record.name.as_deref().into_iter().chain([record.id.as_str()]));
    match nearest(&shown, known) {
        Some(near) => error.hint(format!("did you mean {near}?")),
        None if reference.len() < 4 && !reference.is_empty() && !is_hex8(reference) => error.hint(
            "a prefix of an id needs 4 characters or more; `sandboxer list` shows what there is",
        ),
        None => error.hint("`sandboxer list --all` shows what there is and was"),
    }
}

fn unknown_state(state: &State) -> Error {
    let known: Vec<&str> = State::ALL.iter().map(State::as_str).collect();
    let error = Error::invalid_input("state", format!("there is no state {:?}", state.as_str()));
    match nearest(state.as_str(), known.iter().copied()) {
        Some(near) => error.hint(format!("did you mean {near}?")),
        None => error.hint(format!("states are {}", known.join(", "))),
    }
}
