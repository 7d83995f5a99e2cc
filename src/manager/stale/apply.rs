//! Reap: exactly what the plan says, where it is still so.

use crate::domain::error::{Code, Error};
use crate::domain::stale::{ReapRequest, ReapStarted};
use crate::manager::deps::Deps;

/// Starts to apply a plan and returns at once.
pub(crate) async fn reap(_deps: &Deps, _request: ReapRequest) -> Result<ReapStarted, Error> {
    Err(Error::new(Code::Unsupported, "not there yet"))
}
