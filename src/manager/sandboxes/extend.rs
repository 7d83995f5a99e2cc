//! Extend: a later deadline, beside whatever works on the sandbox (semantics 4).

use crate::domain::error::{Code, Error, Kind};
use crate::domain::event::EventKind;
use crate::domain::name::SandboxId;
use crate::domain::profile::Seconds;
use crate::domain::request::{ExtendRequest, Extended};
use crate::domain::sandbox::SandboxRecord;
use crate::domain::time::Time;
use crate::manager::credits::cover::hold_until;
use crate::manager::credits::hold::{Hold, give_back};
use crate::manager::deps::Deps;
use crate::manager::hosts::status::report_host_error;
use crate::manager::journal::{self, Guard};
use crate::manager::sandboxes::destroy::refuse_during_removal;
use crate::manager::sandboxes::find::get_at_revision;
use crate::manager::sandboxes::manifest::{has_manifest, write_manifest};

/// Moves the deadline of a sandbox, and rewrites the manifest on its host. The record is what counts: a host that does not
/// answer holds up no extension.
///
/// Errors: `invalid_input` for a deadline that is over, earlier or beyond what the profile allows; `conflict` where the
/// sandbox has no deadline, or another one than was looked at; `insufficient_credits` for more than there are.
pub(crate) async fn extend(deps: &Deps, request: &ExtendRequest) -> Result<Extended, Error> {
    let record = get_at_revision(deps, &request.id, None).await?;
    let deadline = new_deadline(&record, request, deps.now())?;
    let was = record.expires_at;
    let sandbox = if was == Some(deadline) {
        record
    } else {
        let hold = hold_until(deps, &record, Some(deadline)).await?;
        match move_deadline(deps, &record.id, (was, deadline), hold.as_ref()).await {
            Ok(record) => record,
            Err(error) => return Err(give_back(deps, hold, error).await),
        }
    };
    match Box::pin(write_manifest(deps, &sandbox)).await {
        Ok(sandbox) => Ok(Extended { sandbox, unwritten: None }),
        Err(error) => {
            tracing::warn!(sandbox = %sandbox.id, %error, "its deadline could not be written to its host");
            report_host_error(deps, &sandbox.host, &error).await;
            let unwritten = Some(unwritten_error(&sandbox, deadline, error));
            Ok(Extended { sandbox, unwritten })
        }
    }
}

async fn move_deadline(
    deps: &Deps,
    id: &SandboxId,
    (was, deadline): (Option<Time>, Time),
    hold: Option<&Hold>,
) -> Result<SandboxRecord, Error> {
    let data = serde_json::json!({"expires_at": deadline, "was": was});
    let extended = vec![(EventKind::SandboxExtended, data)];
    let moved = |record: &mut SandboxRecord| {
        ensure_extendable(record)?;
        if record.expires_at != was {
            return Err(moved_meanwhile(record));
        }
        record.expires_at = Some(deadline);
        if let Some(hold) = hold {
            hold.note_on(record);
        }
        if let Some(meter) = &mut record.meter {
            (meter.renew_at, meter.unpaid_since) = (None, None);
        }
        // Until it is written there: whoever dies in between leaves it to the next contact with the host.
        record.manifest_pending = true;
        Ok(())
    };
    journal::update(deps, id, Guard::Any, extended, moved).await
}

fn unwritten_error(sandbox: &SandboxRecord, deadline: Time, error: Error) -> Error {
    let (id, host) = (&sandbox.id, &sandbox.host);
    let message =
        format!("sandbox {id} lives until {deadline}, but its manifest on {host} does not say so");
    let causes = std::iter::once(error.message).chain(error.causes).collect();
    Error { message, causes, ..error }.hint(format!(
        "it is written there when {host} is next reached, by `sandboxer hosts check {host}` say"
    ))
}

/// Deadline that a request asks for, if the sandbox may have it.
fn new_deadline(record: &SandboxRecord, request: &ExtendRequest, now: Time) -> Result<Time, Error> {
    ensure_extendable(record)?;
    if request.expires_at.is_some() && request.expires_at != record.expires_at {
        return Err(moved_meanwhile(record));
    }
    let (field, deadline) = match (request.by_s, request.to, record.expires_at) {
        (Some(0), None, _) => {
            return Err(Error::invalid_input("by", "0 seconds are no extension"));
        }
        (Some(by), None, Some(was)) => ("by", was.plus_seconds(by)),
        (Some(_), None, None) => {
            return Err(Error::new(
                Code::Conflict,
                format!("sandbox {} has no deadline that could be moved", record.id),
            )
            .hint("--to TIME --allow-shorten gives it one"));
        }
        (None, Some(to), _) => ("to", to),
        (None, None, _) | (Some(_), Some(_), _) => {
            return Err(Error::invalid_input("by", "either `by` or `to` says how far"));
        }
    };
    let latest = now.plus_seconds(Seconds::MAX.get());
    if deadline > latest {
        return Err(Error::invalid_input(
            field,
            format!("{deadline} is more than ten years ahead"),
        )
        .hint(format!("--to {latest} is the latest")));
    }
    if deadline <= now {
        return Err(Error::invalid_input(field, format!("{deadline} is over"))
            .hint(format!("`sandboxer destroy {}` ends it now", record.id)));
    }
    if !request.allow_shorten && record.expires_at.is_none_or(|was| deadline < was) {
        let was = record.expires_at.map_or_else(|| "it has none".to_owned(), |was| was.to_string());
        return Err(Error::invalid_input(field, format!("{deadline} is an earlier end: {was}"))
            .hint("--allow-shorten does it all the same"));
    }
    match record.max_expires_at {
        Some(max) if deadline > max => Err(Error::invalid_input(
            field,
            format!("{deadline} is later than its profile allows: {max}"),
        )
        .hint(format!("--to {max} is the latest"))),
        _ => Ok(deadline),
    }
}

fn ensure_extendable(record: &SandboxRecord) -> Result<(), Error> {
    let (id, state) = (&record.id, &record.state);
    refuse_during_removal(record, "its deadline cannot be moved")?;
    if has_manifest(record) {
        return Ok(());
    }
    Err(Error::new(
        Code::Conflict,
        format!("sandbox {id} is {state}; its deadline cannot be moved"),
    )
    .hint("it takes one that is ready, sleeping or lost, or a failed one that was kept")
    .detail("state", state.as_str()))
}

fn moved_meanwhile(record: &SandboxRecord) -> Error {
    let now = record.expires_at.map_or_else(|| "none".to_owned(), |at| at.to_string());
    let message =
        format!("the deadline of sandbox {} changed since it was looked at: {now}", record.id);
    Error::new(Code::Conflict, message).of_kind(Kind::Stale).hint("look again, then decide")
}
