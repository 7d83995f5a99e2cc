//! The command line: one clap tree, whose flags and verbs are the contract's (section 4).
//!
//! Environment variables and the configuration file are not read here: a flag that was not given is `None`, and
//! `config` fills it in.

#![allow(
    clippy::doc_markdown,
    reason = "the comments of fields are the help text, which is no markdown"
)]

mod credits;
mod exec;
mod maintenance;
mod patches;
mod snapshots;
mod stale;

use std::path::PathBuf;

use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum, ValueHint};

pub use credits::{CreditsCommand, GrantArgs};
pub use exec::{ExecArgs, LogsArgs, ShellArgs};
pub use maintenance::{
    AdoptArgs, CompletionsArgs, DoctorArgs, ImportEarlierArgs, ManArgs, OperationsCommand,
};
pub use patches::{AddArgs, ApplyArgs, PatchesCommand, RemoveArgs};
pub use snapshots::{
    CopyArgs, DeleteArgs, DiffArgs, ExportArgs, ImportArgs, PruneArgs, RestoreArgs, SleepArgs,
    SnapshotArgs, SnapshotRef, SnapshotsCommand, UndoArgs,
};

pub use stale::{ReapArgs, StaleArgs};

use super::complete::Typed;
use super::examples;
use super::global::Global;
use super::values::{
    LabelChange, Pair, Since, event_kinds, label_change, later_by, pair, seconds, since, states,
    time,
};
use crate::domain::error::Error;
use crate::domain::profile::Seconds;
use crate::domain::{Code, EventKind, State, Time};

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

/// Flags of `create`.
#[derive(Debug, Clone, Default, Args)]
#[allow(clippy::struct_excessive_bools, reason = "each is an independent flag of the contract")]
pub struct CreateArgs {
    /// The profile, with or without "profile." [default: the configuration's default_profile]
    #[arg(long, value_name = "P")]
    pub profile: Option<String>,
    /// An input of the profile; may be repeated
    #[arg(long = "input", value_name = "K=V", value_parser = pair)]
    pub inputs: Vec<Pair>,
    /// The host [default: SANDBOXER_HOST, the profile's list, default_host]
    #[arg(long, value_name = "H")]
    pub host: Option<String>,
    /// How long it lives once ready, such as 90m or 4h, or none [default: the profile's]
    #[arg(long, value_name = "D|none")]
    pub ttl: Option<String>,
    /// Choose the id
    #[arg(long, value_name = "ID")]
    pub id: Option<String>,
    /// Give it a name
    #[arg(long, value_name = "N")]
    pub name: Option<String>,
    /// A label; may be repeated (protect=true keeps sweeps and bulk verbs away)
    #[arg(long = "label", value_name = "K=V", value_parser = pair)]
    pub labels: Vec<Pair>,
    /// The same key and request again returns the same sandbox
    #[arg(long, value_name = "K")]
    pub idempotency_key: Option<String>,
    /// Keep a failed one for an hour, to look at
    #[arg(long)]
    pub keep_failed: bool,
    /// Return before it is ready (with --server only)
    #[arg(long)]
    pub no_wait: bool,
    /// Touch nothing; print what would be done
    #[arg(long)]
    pub dry_run: bool,
    /// Agree to a large transfer
    #[arg(long)]
    pub yes: bool,
}

/// Flags of `list`.
#[derive(Debug, Clone, Default, Args)]
pub struct ListArgs {
    /// Only in this state; may be repeated
    #[arg(long = "state", value_name = "S", value_parser = states(), hide_possible_values = true)]
    pub states: Vec<State>,
    /// Only on this host
    #[arg(long, value_name = "H")]
    pub host: Option<String>,
    /// Only of this profile
    #[arg(long, value_name = "P")]
    pub profile: Option<String>,
    /// Only with this label; may be repeated, then with all of them
    #[arg(long = "label", value_name = "K=V", value_parser = pair)]
    pub labels: Vec<Pair>,
    /// Destroyed ones too
    #[arg(long)]
    pub all: bool,
}

/// Flags of `get`.
#[derive(Debug, Clone, Args)]
pub struct GetArgs {
    /// Id, name, or beginning of an id
    #[arg(value_name = "ID")]
    pub id: String,
}

/// Flags of `destroy`.
#[derive(Debug, Clone, Default, Args)]
#[allow(clippy::struct_excessive_bools, reason = "each is an independent flag of the contract")]
pub struct DestroyArgs {
    /// Ids, names, or beginnings of ids
    #[arg(value_name = "ID", required = true)]
    pub ids: Vec<String>,
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
    /// Give it up without looking at the host; what is there is removed at the next contact
    #[arg(long)]
    pub forget: bool,
    /// Take no undo snapshot, where the profile asks for one: nothing brings it back then
    #[arg(long)]
    pub no_undo: bool,
    /// Although it is labelled protect=true
    #[arg(long)]
    pub force_protected: bool,
}

/// Flags of `recreate`.
#[derive(Debug, Clone, Args)]
pub struct RecreateArgs {
    /// Id, name, or beginning of an id
    #[arg(value_name = "ID")]
    pub id: String,
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
    /// Take no undo snapshot, where the profile asks for one: nothing brings it back then
    #[arg(long)]
    pub no_undo: bool,
    /// Although it is labelled protect=true
    #[arg(long)]
    pub force_protected: bool,
}

/// Flags of `wait`.
#[derive(Debug, Clone, Args)]
pub struct WaitArgs {
    /// Id, name, or beginning of an id
    #[arg(value_name = "ID")]
    pub id: String,
    /// What to wait for
    #[arg(long = "for", value_name = "WHAT", value_enum, default_value_t = WaitFor::Ready)]
    pub what: WaitFor,
    /// Give up after this long, such as 90s or 10m [default: never]
    #[arg(long, value_name = "D", value_parser = seconds)]
    pub timeout: Option<Seconds>,
}

/// Flags of `extend`.
#[derive(Debug, Clone, Args)]
#[command(group = clap::ArgGroup::new("how").required(true), after_help = "\
A deadline never passes what the profile's max_ttl allows, counted from when the sandbox was ready.")]
pub struct ExtendArgs {
    /// Id, name, or beginning of an id
    #[arg(value_name = "ID")]
    pub id: String,
    /// Later by this much, such as 30m or 2h
    #[arg(long, value_name = "D", value_parser = later_by, group = "how", allow_hyphen_values = true)]
    pub by: Option<Seconds>,
    /// At this time, such as 2026-01-31T14:00:00Z
    #[arg(long, value_name = "TIME", value_parser = time, group = "how")]
    pub to: Option<Time>,
    /// Although that is an earlier deadline
    #[arg(long)]
    pub allow_shorten: bool,
}

/// Flags of `label`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
The label protect=true keeps every sweep and bulk verb away.")]
pub struct LabelArgs {
    /// Id, name, or beginning of an id
    #[arg(value_name = "ID")]
    pub id: String,
    /// K=V sets a label, K- takes it away
    #[arg(value_name = "K=V|K-", required = true, value_parser = label_change)]
    pub changes: Vec<LabelChange>,
}

/// What `wait` waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum WaitFor {
    /// It is ready.
    #[value(help = None)]
    Ready,
    /// Nothing of it is left.
    #[value(help = None)]
    Destroyed,
    /// It owes no patch.
    #[value(help = None)]
    Patched,
}

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

/// The tree itself, for help texts and completions.
pub fn command() -> clap::Command {
    examples::add(without_files(Cli::command()))
}

/// Says of every value that is no path that it is none: shells offer files without being told.
fn without_files(command: clap::Command) -> clap::Command {
    let hinted = |arg: clap::Arg| match arg.get_value_hint() {
        ValueHint::Unknown if arg.get_action().takes_values() => arg.value_hint(ValueHint::Other),
        _ => arg,
    };
    command.mut_args(hinted).mut_subcommands(without_files)
}

/// The tree without examples, for manual pages, which have a section for them.
pub(super) fn without_examples() -> clap::Command {
    Cli::command()
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
