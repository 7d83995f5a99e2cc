//! Next run of a sandbox that is made again: its price is held beside what is held for the one that is there, of which nobody knows
//! yet what it will have cost.

use std::collections::BTreeMap;

use crate::domain::error::Error;
use crate::domain::operation::OperationKind;
use crate::domain::profile::Profile;
use crate::domain::sandbox::SandboxRecord;
use crate::manager::credits::hold::{give_back, hold_for};
use crate::manager::credits::quote::quote_run;
use crate::manager::deps::Deps;
use crate::manager::operation::Op;
use crate::manager::operation::start::start_with;
use crate::store::Held;

/// Starts a recreate whose run has been paid for.
///
/// Errors: `insufficient_credits`, and why it may not start; nothing is held then.
pub(crate) async fn start_next_run(
    deps: &Deps,
    (record, lock): (SandboxRecord, Box<dyn Held>),
    (profile, inputs): (&Profile, &BTreeMap<String, String>),
) -> Result<Op<SandboxRecord>, Error> {
    let quote = quote_run(deps, &record.extension, profile, inputs, record.ttl_s).await?;
    let hold = hold_for(deps, &record.id, quote.as_ref()).await?;
    let started = start_with(deps, OperationKind::Recreate, (record, lock), |record| {
        if let Some(hold) = &hold {
            hold.note_next_on(record);
        }
    });
    match Box::pin(started).await {
        Ok(op) => Ok(op),
        Err(error) => Err(give_back(deps, hold, error).await),
    }
}
