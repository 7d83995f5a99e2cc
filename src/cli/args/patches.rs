//! Flags of `patches`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::snapshots::SnapshotRef;

/// Verbs of `patches`.
#[derive(Debug, Clone, Subcommand)]
pub enum PatchesCommand {
    /// List a snapshot's patches in their order
    List(SnapshotRef),
    /// Add a patch to a snapshot; runs nothing
    Add(AddArgs),
    /// Take a patch away from a snapshot; sandboxes that have it keep it
    Remove(RemoveArgs),
    /// Show which sandboxes have each patch, will get it, or failed
    Status(SnapshotRef),
    /// Apply what a sandbox owes now, or a snapshot's patches to all sandboxes based on it
    Apply(ApplyArgs),
}

/// Flags of `patches add`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
The script runs once in each sandbox that is based on the snapshot, when it next wakes or is made: \
with what its #! line names, else with bash, or sh where there is no bash. It begins in the \
workspace, or in a service in its container's working directory, with SANDBOXER_ID, SANDBOXER_SNAPSHOT, \
SANDBOXER_PATCH_SEQUENCE, and SANDBOXER_WORKSPACE where the workspace can be seen. It is UTF-8 text \
of at most 96 KiB.")]
pub struct AddArgs {
    /// The snapshot: id, name, or beginning of an id
    #[arg(value_name = "S")]
    pub snapshot: String,
    /// The script, or - for standard input
    #[arg(long, value_name = "F")]
    pub script_file: PathBuf,
    /// What it is for
    #[arg(long, value_name = "D")]
    pub description: Option<String>,
    /// workspace (on the host, in the workspace), or a compose service [default: workspace]
    #[arg(long, value_name = "W")]
    pub run_in: Option<String>,
}

/// Flags of `patches remove`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Nothing is renumbered, and the number is never used again.")]
pub struct RemoveArgs {
    /// The snapshot: id, name, or beginning of an id
    #[arg(value_name = "S")]
    pub snapshot: String,
    /// The patch: its id, or its number
    #[arg(value_name = "PATCH")]
    pub patch: String,
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
}

/// Flags of `patches apply`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
The first failure ends a sandbox's pass, and a rollout: no other sandbox is begun then. With --all, \
one that sleeps is skipped, which is no failure: it gets the patches on its next wake.")]
pub struct ApplyArgs {
    /// The sandbox: id, name, or beginning of an id
    #[arg(value_name = "SANDBOX", required_unless_present = "all", conflicts_with_all = ["all", "canary"])]
    pub sandbox: Option<String>,
    /// Run again what failed, or of which nobody knows whether it ran
    #[arg(long, conflicts_with = "all")]
    pub retry: bool,
    /// All sandboxes that are based on this snapshot
    #[arg(long, value_name = "S")]
    pub all: Option<String>,
    /// So many first; the rest only when all of them went well
    #[arg(long, value_name = "N", requires = "all", value_parser = clap::value_parser!(u32).range(1..))]
    pub canary: Option<u32>,
}
