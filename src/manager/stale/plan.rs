//! Plan of a reap.

use crate::domain::error::{Code, Error};
use crate::domain::stale::{PlanRequest, ReapPlan};
use crate::manager::deps::Deps;

/// Makes a plan and keeps it.
pub(crate) async fn plan_reap(_deps: &Deps, _request: &PlanRequest) -> Result<ReapPlan, Error> {
    Err(Error::new(Code::Unsupported, "not there yet"))
}
