//! Flags of the verbs on sandboxes.

use clap::{Args, ValueEnum};

use crate::cli::values::{LabelChange, Pair, label_change, later_by, pair, seconds, states, time};
use crate::domain::profile::Seconds;
use crate::domain::{State, Time};

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
    #[arg(long, value_name = "D|none", allow_hyphen_values = true)]
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

/// Condition for which `wait` waits.
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
