//! Entries of the ledger and the events that tell of them: their keys, and how a record's write gets them.

use crate::domain::Time;
use crate::domain::actor::Actor;
use crate::domain::name::EventId;
use crate::domain::sandbox::SandboxRecord;
use crate::domain::settlement::CreditEvent;
use crate::manager::deps::Deps;
use crate::manager::journal::JournalRecord as _;

/// Adds events to what a record's write causes, inside of the change.
pub(crate) fn add_events(
    record: &mut SandboxRecord,
    events: Vec<CreditEvent>,
    actor: &Actor,
    now: Time,
) {
    for event in events {
        let event = record.event(event, actor, now);
        record.pending.push(event);
    }
}

/// Key of an entry that no record's write causes.
pub(crate) fn random_entry_id(deps: &Deps) -> EventId {
    let bits = || u128::from((deps.random_u32)());
    let id = bits() << 96 | bits() << 64 | bits() << 32 | bits();
    EventId::new(uuid::Builder::from_random_bytes(id.to_be_bytes()).into_uuid().to_string())
}
