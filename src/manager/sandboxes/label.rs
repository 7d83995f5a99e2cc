//! Labels: a compare-and-set of their own, beside whatever works on the sandbox. The manifest on its host has them too, so that
//! what is protected stays protected if the records are lost.

use std::sync::PoisonError;
use std::time::Duration;

use crate::domain::error::{Code, Error};
use crate::domain::event::EventKind;
use crate::domain::host_view::HostState;
use crate::domain::name::{HostName, check_label};
use crate::domain::request::LabelRequest;
use crate::domain::sandbox::{SandboxRecord, State};
use crate::manager::deps::Deps;
use crate::manager::journal::{self, Guard};
use crate::manager::sandboxes::destroy::refuse_during_removal;
use crate::manager::sandboxes::find::get_at_revision;
use crate::manager::sandboxes::manifest::{has_manifest, write_manifest};
use crate::manager::upkeep::ownership::ensure_own;

/// How long a label waits for its host, which is not asked for leave.
const HOST_LIMIT: Duration = Duration::from_secs(2);

/// Sets and removes labels. What is as it should be already is nothing to do.
pub(crate) async fn label(deps: &Deps, request: LabelRequest) -> Result<SandboxRecord, Error> {
    for (key, value) in &request.set {
        check_label(key, value)?;
    }
    if let Some(twice) = request.set.keys().find(|key| request.remove.contains(*key)) {
        return Err(Error::invalid_input(
            "label",
            format!("{twice} is to be set and to be removed"),
        ));
    }
    let record = get_at_revision(deps, &request.id, request.revision).await?;
    if record.state == State::Destroyed {
        return Err(Error::new(Code::Conflict, format!("sandbox {} is destroyed", record.id)));
    }
    let same = request.set.iter().all(|(key, value)| record.labels.get(key) == Some(value))
        && !request.remove.iter().any(|key| record.labels.contains_key(key));
    if same {
        return Ok(record);
    }
    let data = serde_json::json!({"set": request.set, "removed": request.remove});
    let guard = Guard::Revision(request.revision);
    let labelled = vec![(EventKind::SandboxLabelled, data)];
    let protects = request.set.get("protect").is_some_and(|value| value == "true");
    let change = move |record: &mut SandboxRecord| {
        if protects {
            refuse_during_removal(record, "it cannot be protected")?;
        }
        record.labels.retain(|key, _| !request.remove.contains(key));
        record.labels.extend(request.set);
        record.manifest_pending |= has_manifest(record);
        Ok(())
    };
    let labelled = journal::update(deps, &record.id, guard, labelled, change).await?;
    Ok(tell_host(deps, labelled).await)
}

/// Has the manifest on its host written, where that answers at once; else the next contact does it.
async fn tell_host(deps: &Deps, record: SandboxRecord) -> SandboxRecord {
    // An old copy has an old record, and not what the host should say.
    let may_write = has_manifest(&record) && ensure_own(deps).await.is_ok();
    if !may_write || is_known_down(deps, &record.host) {
        return record;
    }
    match tokio::time::timeout(HOST_LIMIT, Box::pin(write_manifest(deps, &record))).await {
        Ok(Ok(written)) => written,
        Ok(Err(error)) => {
            tracing::warn!(sandbox = %record.id, %error, "its labels could not be written to its host yet");
            record
        }
        Err(_) => record,
    }
}

/// Whether the host did not answer when this process asked it last.
fn is_known_down(deps: &Deps, host: &HostName) -> bool {
    let seen = deps.seen_hosts.lock().unwrap_or_else(PoisonError::into_inner);
    let view = seen.get(&host.as_str().to_ascii_lowercase());
    view.is_some_and(|view| matches!(view.state, HostState::Down | HostState::Forbidden))
}
