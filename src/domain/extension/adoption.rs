//! Types that an extension takes and answers for an adoption.

use crate::domain::extension::types::Inspection;
use crate::domain::facts::{Engine, HostIdentity, Runtime};
use crate::domain::sandbox::Handle;

/// Claim of a manifest and an inventory on a sandbox that no record knows (`adopt`). Whoever works in a sandbox can write its
/// manifest.
#[derive(Debug, Clone, Copy)]
pub struct AdoptClaim<'a> {
    /// Handle in its manifest, if there is one.
    pub handle: Option<&'a Handle>,
    /// Machine that it was found on.
    pub machine_id: &'a str,
    /// Engines that answer there.
    pub engines: &'a [Engine],
    /// Engines that are installed there and do not answer.
    pub silent: &'a [&'a str],
    /// Compose runtimes that were found there, the preferred one first.
    pub runtimes: &'a [Runtime],
}

/// Sandbox that was looked at to be adopted.
#[derive(Debug, Clone)]
pub struct AdoptLook {
    /// Handle that can be trusted; none where it never came so far as to have one.
    pub handle: Option<Handle>,
    /// Identity that the host proved, with the engine that has its containers.
    pub identity: HostIdentity,
    /// Inspection of what is there.
    pub seen: Inspection,
    /// Remarks on what of the claim was not taken, a sentence each.
    pub remarks: Vec<String>,
}
