//! Credits around the verbs (semantics 10): a quote, a hold before anything is touched, a meter, a charge when it is confirmed that
//! nothing is there any more. Holds are in the ledger before they are on a record; how they end is on the record first.

pub(super) mod account;
pub(super) mod charge;
pub(super) mod cost;
pub(super) mod cover;
pub(super) mod entries;
pub(super) mod hold;
pub(super) mod next_run;
pub(super) mod pending;
pub(super) mod quote;
pub(super) mod renew;
pub(super) mod unclaimed;
