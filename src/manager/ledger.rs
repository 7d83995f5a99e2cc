//! Money around an operation: hold before, charge or release after. Today nothing costs anything; the seam is here
//! so that every operation already passes it.

use async_trait::async_trait;

use crate::domain::Usd;
use crate::domain::error::Error;
use crate::domain::extension::MeterQuote;
use crate::domain::name::SandboxId;

/// Credits, as an operation asks for them.
#[async_trait]
pub trait Ledger: Send + Sync {
    /// Holds the quoted amount for a sandbox; what was held. `insufficient_credits` when the balance is lower.
    async fn hold(
        &self,
        sandbox: &SandboxId,
        quote: Option<&MeterQuote>,
    ) -> Result<Option<Usd>, Error>;
    /// Gives a hold back.
    async fn release(&self, sandbox: &SandboxId) -> Result<(), Error>;
    /// Ends a hold with a charge: the smaller of `actual` and the hold; what was charged.
    async fn charge(&self, sandbox: &SandboxId, actual: Option<Usd>) -> Result<Option<Usd>, Error>;
}

/// The ledger of an installation without metered extensions: it holds and charges nothing.
#[derive(Debug, Default)]
pub struct NoLedger;

#[async_trait]
impl Ledger for NoLedger {
    async fn hold(&self, _: &SandboxId, _: Option<&MeterQuote>) -> Result<Option<Usd>, Error> {
        Ok(None)
    }

    async fn release(&self, _: &SandboxId) -> Result<(), Error> {
        Ok(())
    }

    async fn charge(&self, _: &SandboxId, _: Option<Usd>) -> Result<Option<Usd>, Error> {
        Ok(None)
    }
}
