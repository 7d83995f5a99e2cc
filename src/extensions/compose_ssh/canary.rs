//! Canary: what its host says of itself, and what the compose runtime there is worth. Neither is asked for again while the host is
//! known to be as it was.

use crate::domain::error::Error;
use crate::domain::extension::ProvisionRequest;
use crate::domain::host_report::{CertifiedRuntime, HostReport};
use crate::extensions::compose_ssh::deps::Deps;
use crate::extensions::compose_ssh::{certify, host};
use crate::extensions::workspace::prepare::Prepared;
use crate::transport::Transport;
use crate::transport::probe::{self, ProbeRequest};

/// The host's report, from what it said a moment ago where it shows the same fingerprint as then.
pub(super) async fn report(
    deps: &Deps,
    request: &ProvisionRequest,
    transport: &dyn Transport,
    prepared: &Prepared,
) -> Result<HostReport, Error> {
    let now = (deps.now)();
    let known = request.report.as_deref();
    if let (Some(known), Some(fingerprint)) = (known, &prepared.fingerprint)
        && known.is_fresh(now, fingerprint)
    {
        return Ok(known.clone());
    }
    let want = ProbeRequest {
        inventory: true,
        compose_cmd: Some(host::words(deps, transport)?).filter(|words| !words.is_empty()),
        known: known.and_then(|known| known.detection.clone()),
        ..ProbeRequest::new(now)
    };
    let probed = probe::examine(transport, want).await.map_err(|error| error.step("inspect"))?;
    let fingerprint = probed.fingerprint.unwrap_or_default();
    let runtime = probed.facts.runtimes.first();
    let kept = known.and_then(|known| known.certificate_for(&fingerprint, runtime));
    let certificate = match kept.filter(|_| !fingerprint.is_empty()) {
        Some(kept) => kept.clone(),
        None => CertifiedRuntime {
            certificate: certify::certify(
                transport,
                &request.id,
                &request.owner.owner,
                &prepared.workdir,
                &probed.facts,
            )
            .await?,
            fingerprint,
        },
    };
    let report = HostReport::of(probed.facts, probed.detection);
    Ok(HostReport { certificate: Some(certificate), ..report })
}
