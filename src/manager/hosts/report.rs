//! Reports of hosts: what each said last (`hosts.json`), for whoever asks it next and for lists, which ask nobody.

use crate::domain::error::Error;
use crate::domain::extension::{HostAnswer, SandboxExtension};
use crate::domain::host_report::HostReport;
use crate::domain::name::HostName;
use crate::domain::profile::Profile;
use crate::domain::root::HostRecord;
use crate::manager::deps::Deps;

/// Last report of a host. Where it cannot be read nothing is known, and the host is asked anew.
pub(crate) async fn last_report(deps: &Deps, host: &HostName) -> Option<HostReport> {
    match deps.hosts.get(host).await {
        Ok(known) => known.and_then(|known| known.last_report()),
        Err(error) => {
            tracing::warn!(%host, %error, "what it said last cannot be read");
            None
        }
    }
}

/// Writes down what a host said. It is asked again where that fails.
pub(crate) async fn note_report(deps: &Deps, host: &HostName, report: HostReport) {
    let change = move |record: &mut HostRecord| {
        record.renew_report(report);
        Ok(())
    };
    if let Err(error) = deps.hosts.update(host, Box::new(change)).await {
        tracing::warn!(%host, %error, "what it said could not be written down");
    }
}

/// Asks a host what a sandbox of this profile meets there, with what is known of it. What is found anew is in the answer.
///
/// Errors: whatever the extension says of the host.
pub(crate) async fn ask_host(
    deps: &Deps,
    extension: &dyn SandboxExtension,
    profile: &Profile,
    host: &HostName,
) -> Result<HostAnswer, Error> {
    let known = last_report(deps, host).await.and_then(|report| report.detection);
    extension.ask_host(profile, host, known.as_ref()).await
}

/// [`ask_host`], and what is found anew is written down.
pub(crate) async fn ask_host_noting(
    deps: &Deps,
    extension: &dyn SandboxExtension,
    profile: &Profile,
    host: &HostName,
) -> Result<HostAnswer, Error> {
    let mut answer = ask_host(deps, extension, profile, host).await?;
    if let Some(detection) = answer.detection.take() {
        let report = HostReport { detection: Some(detection), ..HostReport::default() };
        note_report(deps, host, report).await;
    }
    Ok(answer)
}
