//! Idempotency keys of creates (contract 4): a repeated create answers like the first call.

use std::collections::BTreeMap;

use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::domain::error::{Code, Error};
use crate::domain::name::OperationId;
use crate::domain::operation::{Operation, OperationKind};
use crate::domain::profile::{Profile, Seconds};
use crate::domain::request::{CreateRequest, Started};
use crate::domain::sandbox::{SandboxRecord, State};
use crate::domain::text::hex;
use crate::manager::deps::Deps;
use crate::manager::sandboxes::inputs::normalize_directories;

/// A request in its normal form: what makes two of them the same one. Whether a large transfer is agreed to, or a failed one
/// kept, changes nothing of what is asked for.
#[derive(Serialize)]
struct NormalForm<'a> {
    profile: String,
    inputs: BTreeMap<String, String>,
    host: Option<String>,
    ttl: Option<String>,
    id: Option<String>,
    name: Option<&'a str>,
    labels: &'a BTreeMap<String, String>,
}

/// Hash of a request, which distinguishes a repeated one from another one under the same key.
pub(crate) fn request_hash(deps: &Deps, request: &CreateRequest) -> String {
    let asked = request.profile.as_deref().unwrap_or(&deps.settings.default_profile);
    let profile = deps.catalogue.usable_profile(asked).ok();
    let mut inputs = request.inputs.clone();
    let id = request.id.clone().or(inputs.remove("sandbox_id"));
    if let Some(profile) = profile {
        normalize_directories(deps, profile, &mut inputs);
    }
    let form = NormalForm {
        profile: profile.map_or_else(|| asked.to_owned(), |profile| profile.id.to_string()),
        inputs,
        host: request.host.as_deref().map(str::to_ascii_lowercase),
        ttl: request.ttl.as_deref().map(|ttl| normal_ttl(profile, ttl)),
        id,
        name: request.name.as_deref(),
        labels: &request.labels,
    };
    let text = serde_json::to_string(&form).unwrap_or_default();
    hex(&Sha256::digest(text.as_bytes()))
}

/// Answer to a create that repeats an earlier one, by idempotency key and request: its operation while that runs, or if
/// it failed; else the sandbox as it is.
///
/// Errors: `conflict` for another request, and where its sandbox is not there any more.
pub(crate) async fn find_repeated(
    deps: &Deps,
    request: &CreateRequest,
    hash: &str,
) -> Result<Option<Started>, Error> {
    let Some(key) = &request.idempotency_key else { return Ok(None) };
    let records = deps.sandboxes.list().await?;
    let Some(record) =
        records.into_iter().find(|record| record.idempotency_key.as_ref() == Some(key))
    else {
        return Ok(None);
    };
    let id = &record.id;
    if record.request_hash.as_deref() != Some(hash) {
        let message =
            format!("the idempotency key was used for another request, which made sandbox {id}");
        return Err(Error::new(Code::Conflict, message)
            .hint("use a new key for a new request")
            .detail("id", id.as_str()));
    }
    let operation = match &record.state {
        State::Requested | State::Provisioning => Some(find_running_create(deps, &record).await?),
        State::Failed => Some(find_failed_create(deps, &record).await?),
        State::Destroying | State::Destroyed | State::Forgotten => {
            let message =
                format!("the idempotency key made sandbox {id}, which is {}", record.state);
            return Err(Error::new(Code::Conflict, message)
                .hint("use a new key for another sandbox")
                .detail("id", id.as_str())
                .detail("state", record.state.as_str()));
        }
        State::Ready | State::Sleeping | State::Lost | State::Other(_) => None,
    };
    Ok(Some(Started { operation, sandbox: SandboxRecord::clone(&record) }))
}

/// The error that a repeated create would end with by now, if it does. One that runs has none yet.
pub(crate) async fn repeated_error(deps: &Deps, started: &Started) -> Result<Option<Error>, Error> {
    let Some(id) = &started.operation else { return Ok(None) };
    let operation = deps.operations.get(id).await?;
    Ok(operation.and_then(|operation| operation.error).map(|error| *error))
}

/// The operation that makes a sandbox. Whoever waits for it hears if its process died.
async fn find_running_create(deps: &Deps, record: &SandboxRecord) -> Result<OperationId, Error> {
    if let Some(running) = &record.operation
        && deps.operations.get(&running.id).await?.is_some()
    {
        return Ok(running.id.clone());
    }
    Err(half_made_error(record))
}

/// The operation over which a sandbox failed.
///
/// Errors: its error in short, where nobody knows more of it after a day.
async fn find_failed_create(deps: &Deps, record: &SandboxRecord) -> Result<OperationId, Error> {
    let failed = |one: &&Operation| {
        one.subject.sandbox() == Some(&record.id)
            && matches!(one.kind, OperationKind::Create | OperationKind::Recreate)
            && one.error.is_some()
    };
    if let Some(operation) = deps.operations.list().await?.iter().rfind(failed) {
        return Ok(operation.id.clone());
    }
    let id = &record.id;
    let message =
        record.message.clone().unwrap_or_else(|| format!("sandbox {id} could not be made"));
    Err(Error::new(Code::OperationFailed, message)
        .hint(format!("`sandboxer get {id}` shows what was recorded"))
        .detail("id", id.as_str()))
}

fn half_made_error(record: &SandboxRecord) -> Error {
    Error::new(
        Code::OperationFailed,
        format!("sandbox {} is half-made, and nobody works on it", record.id),
    )
    .hint("`sandboxer recover` brings what is left of it into order")
    .detail("id", record.id.as_str())
    .detail("state", record.state.as_str())
}

/// A time to live in seconds; what is none is said elsewhere.
fn normal_ttl(profile: Option<&Profile>, ttl: &str) -> String {
    match profile.and_then(|profile| profile.parse_ttl(Some(ttl)).ok()) {
        Some(seconds) => {
            seconds.map_or_else(|| "none".to_owned(), |seconds: Seconds| seconds.get().to_string())
        }
        None => ttl.to_owned(),
    }
}
