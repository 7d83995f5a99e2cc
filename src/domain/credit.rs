//! Credits: prepaid money in micro-USD, as an append-only ledger and the sums of it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::domain::event::Actor;
use crate::domain::name::{EventId, SandboxId};
use crate::domain::words::string_enum;
use crate::domain::{Time, Usd};

string_enum! {
    /// Kind of a ledger entry.
    pub enum EntryKind {
        /// Credits were added.
        Grant = "grant",
        /// Credits were set aside for a sandbox.
        Hold = "hold",
        /// Credits of a hold were spent.
        Charge = "charge",
        /// Credits of a hold were given back.
        Release = "release",
        /// What a sandbox cost above its hold: nobody pays it.
        Shortfall = "shortfall",
    }
}

/// Ledger entry. Amounts are never negative; the kind says what they do to the balance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LedgerEntry {
    /// Key, derived from the record's write that caused it; random for a grant. An entry is appended once.
    pub id: EventId,
    /// When it was caused.
    pub time: Time,
    /// What it is.
    pub kind: EntryKind,
    /// The sandbox that it is about; null for a grant.
    pub sandbox_id: Option<SandboxId>,
    /// The amount.
    pub usd: Usd,
    /// Who caused it.
    pub actor: Actor,
    /// What whoever granted it wrote, or why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Sums of the ledger.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Credits {
    /// Grants, less charges, less what is held.
    pub balance_usd: Usd,
    /// Set aside for sandboxes that run.
    pub held_usd: Usd,
    /// Spending of the sandboxes that run now, per hour.
    pub burn_usd_per_h: Usd,
}

/// Ledger entry with the balance behind it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HistoryEntry {
    /// The entry.
    #[serde(flatten)]
    pub entry: LedgerEntry,
    /// Balance after it.
    pub balance_usd: Usd,
}

/// Grant of credits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GrantRequest {
    /// The amount; above zero.
    pub usd: Usd,
    /// For the history.
    #[serde(default)]
    pub note: Option<String>,
}
