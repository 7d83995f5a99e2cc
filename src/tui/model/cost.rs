//! Cost of a sandbox, as its columns show it.

use crate::domain::Usd;
use crate::domain::sandbox::SandboxRecord;

/// Whether a sandbox has a price.
pub(super) fn has_price(record: &SandboxRecord) -> bool {
    record.quote_usd.is_some() || record.cost_usd.is_some()
}

/// What an hour of a sandbox costs by its quote, while it counts.
pub fn hourly(record: &SandboxRecord) -> Option<Usd> {
    let burn = record.meter.as_ref()?.burn(record.quote_usd?);
    (burn > Usd::ZERO).then_some(burn)
}
