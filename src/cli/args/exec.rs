//! Flags of the verbs that work in a sandbox: `exec`, `shell`, `logs`.

use clap::Args;

/// Flags of `exec`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
With -i the command reads standard input, byte for byte and to its end; without it that is not \
touched. Output comes byte for byte; with --json the first 8 MiB of each stream. No shell reads the \
words: for pipes, variables and wildcards ask for one with sh -c '...'.

The status is the command's, 128+n after signal n, 125 when sandboxer itself fails, 130 after \
Ctrl-C, which ends the command, and 141 when nobody reads its output any more.")]
pub struct ExecArgs {
    /// Id, name, or beginning of an id
    #[arg(value_name = "ID")]
    pub id: String,
    /// In this service's container [default: in the workspace on the host]
    #[arg(long, value_name = "S")]
    pub service: Option<String>,
    /// Pass standard input on to the command
    #[arg(short = 'i')]
    pub stdin: bool,
    /// The program and its arguments; no option after its first word is sandboxer's
    #[arg(value_name = "CMD", required = true, trailing_var_arg = true)]
    pub command: Vec<String>,
}

/// Flags of `shell`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Needs a terminal. The status is the shell's.")]
pub struct ShellArgs {
    /// Id, name, or beginning of an id
    #[arg(value_name = "ID")]
    pub id: String,
    /// In this service's container [default: in the workspace on the host]
    #[arg(long, value_name = "S")]
    pub service: Option<String>,
}

/// Flags of `logs`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Lines of several services begin with the service's name. What could move the cursor is taken \
out, into a file or a pipe too; --json has every line exactly, one object each. Of a line above \
128 KiB the rest is left out, and that is said.")]
pub struct LogsArgs {
    /// Id, name, or beginning of an id
    #[arg(value_name = "ID")]
    pub id: String,
    /// Only this service's
    #[arg(long, value_name = "S")]
    pub service: Option<String>,
    /// Stay and print what comes
    #[arg(long)]
    pub follow: bool,
    /// Only the last N lines of each service
    #[arg(long, value_name = "N", value_parser = lines)]
    pub tail: Option<u64>,
}

fn lines(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| "write how many lines, such as 100".to_owned())
}
