//! Verbs of the catalogue: `profiles` and `extensions`.

use std::path::PathBuf;

use clap::Subcommand;

/// Verbs of `profiles`.
#[derive(Debug, Clone, Subcommand)]
pub enum ProfilesCommand {
    /// List the shipped ones and the operator's
    List,
    /// Show one
    Show {
        /// With or without "profile."
        #[arg(value_name = "P")]
        id: String,
    },
    /// Check files without installing them
    Validate {
        /// Profile files
        #[arg(value_name = "FILE", required = true)]
        files: Vec<PathBuf>,
    },
}

/// Verbs of `extensions`.
#[derive(Debug, Clone, Subcommand)]
pub enum ExtensionsCommand {
    /// List the shipped ones and the operator's
    List,
    /// Show one
    Show {
        /// With or without "ext."
        #[arg(value_name = "E")]
        id: String,
    },
}
