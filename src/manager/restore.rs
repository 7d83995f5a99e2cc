//! Restore: a new sandbox from a snapshot, under the rules of a create (semantics 2 and 6).

use crate::domain::fault::{Code, Fault};
use crate::domain::request::{RestoreRequest, Started};
use crate::manager::SandboxManager;

impl SandboxManager {
    /// Starts a new sandbox from a snapshot and returns at once.
    pub async fn restore(&self, request: &RestoreRequest) -> Result<Started, Fault> {
        Err(Fault::new(Code::Unsupported, format!("{}: not there yet", request.snapshot)))
    }
}
