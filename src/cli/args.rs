//! The command line: one clap tree, whose flags and verbs are the contract's (section 4).
//!
//! Environment variables and the configuration file are not read here: a flag that was not given is `None`, and
//! `config` fills it in.

#![allow(
    clippy::doc_markdown,
    reason = "the comments of fields are the help text, which is no markdown"
)]

mod catalogue;
mod credits;
mod events;
mod exec;
mod hosts;
mod maintenance;
mod patches;
mod sandboxes;
mod snapshots;
mod stale;

use clap::{Args, CommandFactory, Parser, Subcommand, ValueHint};

pub(crate) use catalogue::{ExtensionsCommand, ProfilesCommand};
pub(crate) use credits::{CreditsCommand, GrantArgs};
pub(crate) use events::{EventsArgs, EventsCommand};
pub(crate) use exec::{ExecArgs, LogsArgs, ShellArgs};
pub(crate) use hosts::{HostsCommand, InspectCommand};
pub(crate) use maintenance::{
    AdoptArgs, CompletionsArgs, DoctorArgs, ImportEarlierArgs, ManArgs, OperationsCommand,
};
pub(crate) use patches::{AddArgs, ApplyArgs, PatchesCommand, RemoveArgs};
pub(crate) use sandboxes::{
    CreateArgs, DestroyArgs, ExtendArgs, GetArgs, LabelArgs, ListArgs, RecreateArgs, WaitArgs,
    WaitFor,
};
pub(crate) use snapshots::{
    CopyArgs, DeleteArgs, DiffArgs, ExportArgs, ImportArgs, PruneArgs, RestoreArgs, SleepArgs,
    SnapshotArgs, SnapshotRef, SnapshotsCommand, UndoArgs,
};

pub(crate) use stale::{ReapArgs, StaleArgs};

use super::complete::Typed;
use super::examples;
use super::global::Global;
use crate::domain::Code;
use crate::domain::error::Error;

/// Establishes isolated places to run things, watches them and cleans them up
#[derive(Debug, Clone, Parser)]
#[command(name = "sandboxer", version, max_term_width = 100, after_help = AFTER_HELP)]
pub struct Cli {
    /// Flags that every command takes.
    #[command(flatten)]
    pub global: Global,
    /// Flags of the dashboard, which is what runs without a command.
    #[command(flatten)]
    pub dashboard: DashboardArgs,
    /// What to do; none means the dashboard.
    #[command(subcommand)]
    pub command: Option<Command>,
}

const AFTER_HELP: &str = "\
An ID is a sandbox's id, its name, or the beginning of its id (4 characters or more).
Without a command and on a terminal the dashboard starts.";

/// Flags of the dashboard.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Dashboard options")]
pub struct DashboardArgs {
    /// The dashboard changes nothing
    #[arg(long)]
    pub read_only: bool,
    /// The dashboard's colours
    #[arg(long, value_name = "T")]
    pub theme: Option<String>,
}

/// What to do.
#[derive(Debug, Clone, Subcommand)]
pub enum Command {
    /// Watch and steer everything on one screen (also without a command)
    Dashboard(DashboardArgs),
    /// Establish a sandbox and wait until it is ready
    Create(CreateArgs),
    /// List sandboxes, oldest first
    List(ListArgs),
    /// Show one sandbox
    Get(GetArgs),
    /// Remove sandboxes and everything of theirs on their hosts
    Destroy(DestroyArgs),
    /// Remove a sandbox and make it again under the same id
    Recreate(RecreateArgs),
    /// Stop a sandbox's services and keep everything else
    Sleep(SleepArgs),
    /// Start a sandbox that sleeps, and apply the patches it owes
    Wake(SleepArgs),
    /// Wait until a sandbox is ready, destroyed or patched
    Wait(WaitArgs),
    /// Move a sandbox's deadline to a later time
    #[command(alias = "extend-ttl")]
    Extend(ExtendArgs),
    /// Set labels, or take them away
    Label(LabelArgs),
    /// Run a command in a sandbox
    Exec(ExecArgs),
    /// Open a shell in a sandbox
    Shell(ShellArgs),
    /// Print what a sandbox's services write
    Logs(LogsArgs),
    /// Take a snapshot of a sandbox: its workspace and its named volumes
    Snapshot(SnapshotArgs),
    /// Make a new sandbox from a snapshot
    Restore(RestoreArgs),
    /// Bring back a sandbox that was destroyed, recreated, swept or reaped
    Undo(UndoArgs),
    /// The snapshots, and what hangs on them
    #[command(subcommand, arg_required_else_help = false)]
    Snapshots(SnapshotsCommand),
    /// Scripts that bring what was made from a snapshot up to date
    #[command(subcommand, arg_required_else_help = false)]
    Patches(PatchesCommand),
    /// The profiles that sandboxes are made from
    #[command(subcommand, arg_required_else_help = false)]
    Profiles(ProfilesCommand),
    /// The backends that make sandboxes
    #[command(subcommand, arg_required_else_help = false)]
    Extensions(ExtensionsCommand),
    /// Look at hosts closely
    #[command(subcommand, arg_required_else_help = false)]
    Inspect(InspectCommand),
    /// The places that sandboxes are put
    #[command(subcommand, arg_required_else_help = false)]
    Hosts(HostsCommand),
    /// What is being done, by which process, and how it ended
    #[command(subcommand, arg_required_else_help = false)]
    Operations(OperationsCommand),
    /// The prepaid money that metered sandboxes are paid from
    #[command(args_conflicts_with_subcommands = true)]
    Credits {
        /// Verb; none: the balance.
        #[command(subcommand)]
        command: Option<CreditsCommand>,
    },
    /// What happened, and with --follow what happens
    Events(EventsArgs),
    /// Make records of what hosts have and no record knows
    Adopt(AdoptArgs),
    /// Take over what the earlier Python tool kept in this data directory
    Import(ImportEarlierArgs),
    /// Bring into order what killed processes left
    Recover,
    /// End what has expired, once, as an open dashboard does all the time
    #[command(after_help = "\
Ends sandboxes whose deadline has passed, except those labelled protect=true, finishes removals on which nobody works any \
more, removes what forgotten sandboxes left, tells of deadlines that are near, and renews the hold of metered sandboxes without one, \
of which those end that credits are missing for. Nothing else, and without asking.
For a timer or cron: quiet where nothing is due, and one at a time.")]
    Sweep,
    /// Clean up what is stale on hosts and in records: by a plan, exactly
    ReapStale(ReapArgs),
    /// Check this installation: configuration, files, programs, records
    Doctor(DoctorArgs),
    /// Print a shell's completion script
    Completions(CompletionsArgs),
    /// Print the manual page
    Man(ManArgs),
    /// Completion script's question, which is no verb: reading the arguments makes it.
    #[command(skip)]
    Complete(Typed),
}

/// The tree itself, for help texts and completions.
pub fn command() -> clap::Command {
    examples::add(without_files(Cli::command()), "")
}

/// Says of every value that is no path that it is none: shells offer files without being told.
fn without_files(command: clap::Command) -> clap::Command {
    let hinted = |arg: clap::Arg| match arg.get_value_hint() {
        ValueHint::Unknown if arg.get_action().takes_values() => arg.value_hint(ValueHint::Other),
        _ => arg,
    };
    command.mut_args(hinted).mut_subcommands(without_files)
}

impl Cli {
    /// The dashboard's flags when the dashboard is what was asked for: by name, or without a command on a terminal
    /// (`interactive`: stdin and stdout are terminals).
    pub fn wants_dashboard(&self, interactive: bool) -> Option<&DashboardArgs> {
        match &self.command {
            Some(Command::Dashboard(args)) if interactive => Some(args),
            None if interactive && !self.global.json => Some(&self.dashboard),
            _ => None,
        }
    }

    /// Whether events are delivered to the State Hub while it works, and for a moment afterwards whether or not it changed
    /// something: a sweep, which runs by a timer.
    pub fn delivers_meanwhile(&self) -> bool {
        matches!(self.command, Some(Command::Sweep))
    }

    /// `sandboxer --read-only dashboard` means the same as `sandboxer dashboard --read-only`; before another verb
    /// such a flag would be silently ignored, so it is refused.
    pub(super) fn settle_dashboard(&mut self) -> Option<Error> {
        match &mut self.command {
            Some(Command::Dashboard(args)) => {
                args.read_only |= self.dashboard.read_only;
                args.theme = args.theme.take().or_else(|| self.dashboard.theme.take());
                let json = self.global.json;
                json.then(|| {
                    Error::new(Code::Usage, "the dashboard has no --json")
                        .hint("sandboxer list --json")
                })
            }
            Some(_) if self.dashboard != DashboardArgs::default() => {
                Some(Error::new(Code::Usage, "--read-only and --theme are the dashboard's"))
            }
            _ => None,
        }
    }
}
