//! Inspection: records against hosts, in both directions.

use crate::domain::error::{Code, Error};
use crate::domain::stale::{StaleQuery, StaleReport};
use crate::manager::deps::Deps;

/// Everything stale.
pub(crate) async fn inspect_stale(_deps: &Deps, _query: &StaleQuery) -> Result<StaleReport, Error> {
    Err(Error::new(Code::Unsupported, "not there yet"))
}
