//! Sleep and wake (semantics 1 and 7).

use crate::domain::fault::{Code, Fault};
use crate::domain::request::{SleepRequest, Started};
use crate::manager::SandboxManager;

impl SandboxManager {
    /// Starts to stop one that is ready, and returns at once.
    pub async fn sleep(&self, request: &SleepRequest) -> Result<Started, Fault> {
        Err(Fault::new(Code::Unsupported, format!("{}: not there yet", request.id)))
    }

    /// Starts to wake one that sleeps, patches and all, and returns at once.
    pub async fn wake(&self, request: &SleepRequest) -> Result<Started, Fault> {
        Err(Fault::new(Code::Unsupported, format!("{}: not there yet", request.id)))
    }
}
