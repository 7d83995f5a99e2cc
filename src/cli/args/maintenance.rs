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
