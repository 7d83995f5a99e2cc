//! Pending entries of the ledger: those of events that stand on a record still.

use crate::domain::credit::LedgerEntry;
use crate::domain::error::Error;
use crate::domain::event::PendingEvent;
use crate::failpoint;
use crate::manager::deps::Deps;

/// Appends to the ledger what events are about credits.
pub(crate) async fn append_to_ledger(deps: &Deps, pending: &[PendingEvent]) -> Result<(), Error> {
    let entries: Vec<_> = pending.iter().filter_map(LedgerEntry::of_event).collect();
    if !entries.is_empty() {
        failpoint::reached("credits.pending");
        deps.credits.append(entries).await?;
        failpoint::reached("credits.appended");
    }
    Ok(())
}
