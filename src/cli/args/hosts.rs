//! Verbs of hosts: `inspect` and `hosts`.

use clap::Subcommand;

use super::stale::StaleArgs;

/// Verbs of `inspect`.
#[derive(Debug, Clone, Subcommand)]
pub enum InspectCommand {
    /// Show what hosts are, what they have left, and what of sandboxes is on them
    Host {
        /// Hosts [default: all]
        #[arg(value_name = "HOST")]
        hosts: Vec<String>,
    },
    /// Show what is on hosts or in records and should not be
    Stale(StaleArgs),
}

/// Verbs of `hosts`.
#[derive(Debug, Clone, Subcommand)]
pub enum HostsCommand {
    /// List the configured hosts; contacts none (`check` does)
    List,
    /// Connect to hosts and probe them
    Check {
        /// Hosts [default: all]
        #[arg(value_name = "H")]
        hosts: Vec<String>,
        /// Try everything on it: canary, compose stack, snapshot, restore, destroy; nothing of it stays
        #[arg(long)]
        deep: bool,
    },
}
