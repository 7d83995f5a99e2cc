//! Request of a create, checked as far as that needs no host, and what it asks an extension for.

use std::collections::BTreeMap;

use crate::domain::error::Error;
use crate::domain::extension::ProvisionRequest;
use crate::domain::name::{HostName, SandboxId, check_label, check_name};
use crate::domain::profile::{Profile, Seconds};
use crate::domain::request::CreateRequest;
use crate::manager::deps::Deps;
use crate::manager::sandboxes::inputs::resolve_directories;

/// A create whose request was checked as far as that needs no host.
#[derive(Clone)]
pub(crate) struct Resolved {
    pub(crate) profile: Profile,
    pub(crate) hash: String,
    pub(crate) inputs: BTreeMap<String, String>,
    pub(crate) id: Option<SandboxId>,
    pub(crate) ttl_s: Option<u64>,
}

/// Resolves a request: profile, inputs, id, time to live.
///
/// Errors: what is wrong with it, with the field's name.
pub(crate) async fn resolve_request(
    deps: &Deps,
    request: &CreateRequest,
) -> Result<Resolved, Error> {
    let id = request.profile.as_deref().unwrap_or(&deps.settings.default_profile);
    let entry = deps.catalogue.profile(id).map_err(|error| match request.profile {
        Some(_) => error,
        None => error.hint(format!("it is the default_profile of {}", deps.settings.config_file)),
    })?;
    let profile = entry.definition()?.clone();
    entry.ensure_available()?;
    let mut given = request.inputs.clone();
    let input_id = given.remove("sandbox_id");
    let mut inputs = profile.check_inputs(&given).map_err(|problems| {
        let list: Vec<serde_json::Value> = problems
            .iter()
            .map(|p| serde_json::json!({"field": p.field, "message": p.message}))
            .collect();
        let first = problems.into_iter().next();
        let (field, message) = first.map_or_else(Default::default, |p| (p.field, p.message));
        Error::invalid_input(&field, message)
            .hint(format!("`sandboxer profiles show {}` lists its inputs", profile.id))
            .detail("problems", list)
    })?;
    resolve_directories(deps, &profile, &mut inputs).await?;
    let id = match (request.id.as_deref(), input_id.as_deref()) {
        (Some(a), Some(b)) if a != b => {
            return Err(Error::invalid_input(
                "id",
                "--id and the input sandbox_id name different ids",
            ));
        }
        (Some(id), _) | (None, Some(id)) => Some(SandboxId::choose(id)?),
        (None, None) => None,
    };
    if let Some(name) = &request.name {
        check_name(name)?;
    }
    for (key, value) in &request.labels {
        check_label(key, value)?;
    }
    if request
        .idempotency_key
        .as_ref()
        .is_some_and(|key| key.is_empty() || key.len() > 255 || key.contains(char::is_control))
    {
        return Err(Error::invalid_input(
            "idempotency_key",
            "an idempotency key is 1 to 255 bytes without control characters",
        ));
    }
    let ttl_s = profile.parse_ttl(request.ttl.as_deref())?.map(Seconds::get);
    Ok(Resolved { hash: profile.hash(), profile, inputs, id, ttl_s })
}

/// The request to the extension, but for what only the written record knows.
pub(crate) fn draft_provision(
    deps: &Deps,
    resolved: &Resolved,
    request: &CreateRequest,
    host: HostName,
) -> ProvisionRequest {
    let id = resolved.id.clone().unwrap_or_else(|| SandboxId::from_random(0));
    let Resolved { profile, inputs, .. } = resolved.clone();
    ProvisionRequest {
        allow_large: request.yes,
        ..ProvisionRequest::draft(id, None, host, profile, inputs, deps.now())
    }
}
