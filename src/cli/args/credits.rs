//! Flags of `credits`.

use clap::{Args, Subcommand};

use crate::cli::values::amount;
use crate::domain::Usd;

/// Verbs of `credits`.
#[derive(Debug, Clone, Subcommand)]
pub enum CreditsCommand {
    /// Show what is there, what is held and what is spent per hour (also without a verb)
    Balance,
    /// Add credits
    Grant(GrantArgs),
    /// Show every entry of the ledger, oldest first
    History,
}

/// Flags of `credits grant`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
USD is an amount in US dollars: digits, and a point with at most six more. The ledger is only ever added to: a grant cannot be \
taken back.")]
pub struct GrantArgs {
    /// How much, such as 25 or 12.50
    #[arg(value_name = "USD", value_parser = amount, allow_hyphen_values = true)]
    pub usd: Usd,
    /// Purpose; shown in the history
    #[arg(long, value_name = "N")]
    pub note: Option<String>,
}
