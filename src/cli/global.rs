//! Flags that every command takes: outputs, wrong usage and completion read them too.

#![allow(
    clippy::doc_markdown,
    reason = "the comments of fields are the help text, which is no markdown"
)]

use std::path::PathBuf;

use clap::Args;

/// Flags that every command takes.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Global options")]
#[allow(clippy::struct_excessive_bools, reason = "each is an independent flag of the contract")]
pub struct Global {
    /// Print one JSON document on stdout; progress and errors as JSON lines on stderr
    #[arg(long, global = true)]
    pub json: bool,
    /// Work against a sandboxer server: unix:PATH, http(s)://HOST or ssh://HOST
    #[arg(long, global = true, value_name = "URL")]
    pub server: Option<String>,
    /// The configuration file [env: SANDBOXER_CONFIG]
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Where records, events and locks are kept [env: SANDBOXER_DATA_DIR]
    #[arg(long, global = true, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// The operator's profiles
    #[arg(long, global = true, value_name = "DIR")]
    pub profiles_dir: Option<PathBuf>,
    /// The operator's extensions
    #[arg(long, global = true, value_name = "DIR")]
    pub extensions_dir: Option<PathBuf>,
    /// The log file [filter in env: SANDBOXER_LOG]
    #[arg(long, global = true, value_name = "FILE")]
    pub log_file: Option<PathBuf>,
    /// Who acts: adm:NAME (human), agt:NAME (agent) or atm:NAME (automation) [env: SANDBOXER_ACTOR]
    #[arg(long, global = true, value_name = "ACTOR")]
    pub actor: Option<String>,
    /// No colours [env: NO_COLOR]
    #[arg(long, global = true)]
    pub no_color: bool,
    /// No progress and no remarks on stderr; errors only
    #[arg(long, global = true)]
    pub quiet: bool,
    /// Draw with ASCII characters only
    #[arg(long, global = true)]
    pub ascii: bool,
}
