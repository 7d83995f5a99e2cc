//! Credits: the entries of the ledger as a table, and what a sandbox costs.

use super::document::Document;
use super::role::Role;
use super::table::{Column, or_nothing};
use crate::client::{Credits, HistoryEntry};
use crate::domain::Usd;
use crate::domain::credit::EntryKind;
use crate::domain::figures::{age, age_of, usd};
use crate::domain::sandbox::SandboxRecord;

/// How long ago.
pub(crate) const AGE: Column<HistoryEntry> =
    Column::whole("AGE", |entry, now| age_of(entry.entry.time, now));
/// Moment, as records have it.
pub(crate) const TIME: Column<HistoryEntry> =
    Column::new("TIME", |entry, _| entry.entry.time.to_string());
pub(crate) const KIND: Column<HistoryEntry> =
    Column::whole("KIND", |entry, _| entry.entry.kind.to_string());
/// Amount, with what it does to the balance: a charge takes of what was held.
pub(crate) const AMOUNT: Column<HistoryEntry> = Column::whole("USD", |entry, _| {
    let sign = match entry.entry.kind {
        EntryKind::Grant | EntryKind::Release => "+",
        EntryKind::Hold => "-",
        EntryKind::Charge | EntryKind::Shortfall | EntryKind::Other(_) => "",
    };
    format!("{sign}{}", usd(entry.entry.usd))
});
/// Balance after it.
pub(crate) const BALANCE: Column<HistoryEntry> =
    Column::whole("BALANCE", |entry, _| usd(entry.balance_usd));
pub(crate) const SANDBOX: Column<HistoryEntry> =
    Column::whole("SANDBOX", |entry, _| or_nothing(entry.entry.sandbox_id.as_ref()));
/// Actor who caused it.
pub(crate) const BY: Column<HistoryEntry> =
    Column::new("BY", |entry, _| entry.entry.actor.to_string());
pub(crate) const NOTE: Column<HistoryEntry> =
    Column::new("NOTE", |entry, _| or_nothing(entry.entry.note.as_ref()));

/// How an entry's amount is meant.
pub(crate) fn entry_role(entry: &HistoryEntry) -> Role {
    match entry.entry.kind {
        EntryKind::Grant => Role::Good,
        EntryKind::Charge => Role::Accent,
        EntryKind::Release => Role::Dim,
        EntryKind::Shortfall => Role::Warn,
        EntryKind::Hold | EntryKind::Other(_) => Role::Plain,
    }
}

/// Adds the sums of the ledger.
pub(crate) fn sums(document: &mut Document, credits: &Credits) {
    document.plain("balance", credits.balance_usd);
    document.plain("held", credits.held_usd);
    document.plain("burn", format!("{}/h", credits.burn_usd_per_h));
    document.maybe("lasts", Role::Plain, credits.lasts().map(|lasts| age(lasts.as_secs())));
}

pub(crate) fn has_price(record: &SandboxRecord) -> bool {
    record.quote_usd.is_some() || record.cost_usd.is_some()
}

/// Cost of a sandbox's hour by its quote, while it counts.
pub(crate) fn hourly(record: &SandboxRecord) -> Option<Usd> {
    let burn = record.meter.as_ref()?.burn(record.quote_usd?);
    (burn > Usd::ZERO).then_some(burn)
}
