//! Flags and verbs of `events`.

use clap::{Args, Subcommand};

use crate::cli::values::{Since, event_kinds, since};
use crate::domain::EventKind;

/// Flags of `events`. Its `--actor` is the global flag: reading needs nobody who acts, so there it chooses.
#[derive(Debug, Clone, Default, Args)]
#[command(
    after_help = "Here --actor ACTOR chooses: only this actor's events.",
    args_conflicts_with_subcommands = true
)]
pub struct EventsArgs {
    /// Verb on events, instead of listing them
    #[command(subcommand)]
    pub command: Option<EventsCommand>,
    /// Stay and print what happens, one line each
    #[arg(long)]
    pub follow: bool,
    /// After this number, since this time (RFC 3339), or since this long ago (10m)
    #[arg(long, value_name = "SEQ|TIME", value_parser = since)]
    pub since: Option<Since>,
    /// Only this sandbox's
    #[arg(long, value_name = "ID")]
    pub sandbox: Option<String>,
    /// Only this kind, such as sandbox.ready; may be repeated
    #[arg(long = "kind", value_name = "K", value_parser = event_kinds(), hide_possible_values = true)]
    pub kinds: Vec<EventKind>,
}

/// Verbs of `events`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Subcommand)]
pub enum EventsCommand {
    /// Deliver what waits for the State Hub, now
    Flush,
}
