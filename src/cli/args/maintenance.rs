//! Flags of the verbs that look after the installation: `operations`, `doctor`, `completions`, `man`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Verbs of `operations`.
#[derive(Debug, Clone, Subcommand)]
pub enum OperationsCommand {
    /// List those that run and the last day's, oldest first
    List,
    /// Show one
    Get {
        /// Its id, or the beginning of it
        #[arg(value_name = "OP")]
        id: String,
    },
    /// Ask a running one to end; says what that leaves, and does not wait for it
    Cancel {
        /// Its id, or the beginning of it
        #[arg(value_name = "OP")]
        id: String,
    },
}

/// Flags of `doctor`.
#[derive(Debug, Clone, Default, Args)]
#[command(
    after_help = "Mends nothing; without --claim it writes only what it saw: the states that hosts told. The status is 1 when a check failed; a warning is none."
)]
pub struct DoctorArgs {
    /// This data directory was copied or restored, and is the one to be used from now on
    #[arg(long)]
    pub claim: bool,
}

/// Flags of `adopt`.
#[derive(Debug, Clone, Default, Args)]
#[command(after_help = "\
Makes records of the sandboxes and snapshots that hosts have with an owner id of this installation, and that no record knows: \
from the manifests beside them, which are judged, and from what their hosts say now. Adopted sandboxes live for an hour at \
least. A host that cannot be read ends nothing but its own part.
With --owner an installation that was lost is taken over: its id counts as this one's from then on, and each host is told so.")]
pub struct AdoptArgs {
    /// Take this owner's id over first
    #[arg(long, value_name = "ID")]
    pub owner: Option<String>,
    /// Only on this host; may be repeated
    #[arg(long = "host", value_name = "H")]
    pub hosts: Vec<String>,
    /// Change nothing; print what would be adopted, and what other owners have
    #[arg(long)]
    pub dry_run: bool,
    /// Agree to the take-over of an owner's id
    #[arg(long)]
    pub yes: bool,
}

/// Flags of `import`.
#[derive(Debug, Clone, Default, Args)]
#[command(after_help = "\
Renames sandboxes.json and snapshots.json of the earlier Python tool to *.python, and makes records of what is in them. They bear \
no label and no manifest of sandboxer's, so nothing on a host proves them its own: they are listed, and nothing touches them. What \
is left of one is removed on its host by hand; `destroy ID --forget` closes its record then.")]
pub struct ImportEarlierArgs {
    /// Change nothing; print what would be imported
    #[arg(long)]
    pub dry_run: bool,
}

/// Flags of `completions`.
#[derive(Debug, Clone, Args)]
pub struct CompletionsArgs {
    /// Whose
    #[arg(value_name = "SHELL", value_enum)]
    pub shell: clap_complete::Shell,
}

/// Flags of `man`.
#[derive(Debug, Clone, Default, Args)]
pub struct ManArgs {
    /// Write every page there: sandboxer.1, and one for each command
    #[arg(long, value_name = "D")]
    pub dir: Option<PathBuf>,
}
