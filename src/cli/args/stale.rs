//! Flags of the verbs that clean up: `inspect stale`, `reap-stale`.

use clap::Args;

use crate::cli::values::stale_classes;
use crate::domain::stale::StaleClass;

/// Flags of `inspect stale`.
#[derive(Debug, Clone, Default, Args)]
#[command(after_help = "\
Compares records with what is on the hosts, in both directions, and changes nothing. ACTION is what `sandboxer reap-stale` does \
with it; with --json, `possible` says what else a plan may do. Nothing on a host that cannot be read is judged: the status is 8 \
then, and where none could be read the one code that all have, else 5.")]
pub struct StaleArgs {
    /// Only on this host; may be repeated [default: all]
    #[arg(long = "host", value_name = "H")]
    pub hosts: Vec<String>,
}

/// Flags of `reap-stale`.
#[derive(Debug, Clone, Default, Args)]
#[allow(clippy::struct_excessive_bools, reason = "each is an independent flag of the contract")]
#[command(after_help = "\
Makes a plan, shows it, asks, and does exactly what it says, where that is still so: what changed meanwhile is skipped. Orphans \
whose time is not over are adopted, unless their class is named; archives that no record knows stay without --snapshots; foreign, \
unreadable and protected ones always stay.
Classes: expired, failed, stuck, lost, orphan_stack, orphan_dir, orphan_snapshot.
For a timer or cron: --yes --quiet, which prints nothing where nothing is to be done, else one line with the sum; one at a time. \
The status is 8 where some of it failed, or a host could not be read.")]
pub struct ReapArgs {
    /// Touch nothing; print the plan, which is kept for an hour
    #[arg(long)]
    pub dry_run: bool,
    /// Apply this plan: its id, or a file with what --dry-run --json printed
    #[arg(long, value_name = "FILE|ID", conflicts_with_all = ["dry_run", "classes", "hosts", "snapshots"])]
    pub plan: Option<String>,
    /// Only this class; may be repeated. Orphans of a class that is named are removed, whatever their deadline
    #[arg(long = "class", value_name = "C", value_parser = stale_classes(), hide_possible_values = true)]
    pub classes: Vec<StaleClass>,
    /// Only on this host; may be repeated [default: all]
    #[arg(long = "host", value_name = "H")]
    pub hosts: Vec<String>,
    /// Archives that no record knows, too
    #[arg(long)]
    pub snapshots: bool,
    /// Take no undo snapshots
    #[arg(long)]
    pub no_undo: bool,
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
}
