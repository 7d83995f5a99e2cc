//! Manifest of a sandbox on its host (contract, section 6): enough to list it again with no other record of it. Whoever works in
//! the sandbox can rewrite it, so it is believed only as far as it is judged.

use serde::{Deserialize, Serialize};

use crate::domain::name::{OwnerId, SandboxId};
use crate::domain::profile::Profile;
use crate::domain::sandbox::SandboxRecord;
use crate::domain::time::Time;

pub(crate) const SCHEMA: u64 = 1;

/// Manifest in a sandbox's directory. The keys before `sandbox` come first and on lines of their own, so that a shell script can
/// tell whose it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SandboxManifest {
    /// 1.
    pub schema: u64,
    pub id: SandboxId,
    /// The installation that made it.
    pub owner: OwnerId,
    /// Id of its profile.
    pub profile: String,
    /// When its record was written.
    pub created_at: Time,
    /// Deadline; null means none.
    pub expires_at: Option<Time>,
    /// Name on the host.
    pub project: String,
    /// Whether it is labelled `protect=true`: with the head, since that is there in a manifest that is too long for its record too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub protect: bool,
    /// The record as it was then, without what the host or the store says better; none in manifests of an earlier sandboxer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<Box<SandboxRecord>>,
    /// Pinned profile; none in manifests of an earlier sandboxer.
    #[serde(default, rename = "recipe", skip_serializing_if = "Option::is_none")]
    pub pinned_profile: Option<Box<Profile>>,
}

impl SandboxManifest {
    pub fn of(record: &SandboxRecord, profile: &Profile) -> Self {
        Self {
            schema: SCHEMA,
            id: record.id.clone(),
            owner: record.owner.clone(),
            profile: profile.id.to_string(),
            created_at: record.created_at,
            expires_at: record.expires_at,
            project: record.id.project(),
            protect: record.is_protected(),
            sandbox: Some(Box::new(slim(record))),
            pinned_profile: Some(Box::new(profile.as_written().clone())),
        }
    }

    /// Whether it is labelled `protect=true`.
    pub fn is_protected(&self) -> bool {
        self.protect || self.sandbox.as_ref().is_some_and(|record| record.is_protected())
    }
}

/// Record without what the host says better, what only the store can prove, and what is as large as it likes.
fn slim(record: &SandboxRecord) -> SandboxRecord {
    let mut slim = SandboxRecord {
        message: None,
        operation: None,
        reachability: None,
        services: Vec::new(),
        expiring_told: None,
        manifest_pending: false,
        quote_usd: None,
        hold_usd: None,
        cost_usd: None,
        meter: None,
        route: None,
        attempts: Vec::new(),
        rewrites: Vec::new(),
        failure: None,
        teardown: Vec::new(),
        leftovers: Vec::new(),
        telemetry: None,
        certificate: None,
        idempotency_key: None,
        request_hash: None,
        imported: None,
        pending: Vec::new(),
        ..record.clone()
    };
    for patch in &mut slim.applied_patches {
        patch.output = None;
    }
    slim
}

/// Whether both records have the same manifest: whatever differs between them stands nowhere in it.
pub(crate) fn is_same_manifest(one: &SandboxRecord, other: &SandboxRecord) -> bool {
    let told = |record: &SandboxRecord| SandboxRecord {
        state: crate::domain::sandbox::State::Ready,
        reason: None,
        since: record.created_at,
        observed_at: None,
        revision: 0,
        ..slim(record)
    };
    told(one) == told(other)
}
