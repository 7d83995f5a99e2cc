//! Flags of the verbs about checkpoints: `sleep`, `wake`, `snapshot`, `restore`, `snapshots`.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand};

use super::super::values::{modes, seconds};
use crate::domain::profile::{Seconds, SnapshotMode};

/// Flags of `sleep` and `wake`.
#[derive(Debug, Clone, Args)]
pub struct SleepArgs {
    /// Id, name, or beginning of an id
    #[arg(value_name = "ID")]
    pub id: String,
}

/// Flags of `snapshot`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
In it are the workspace and the named volumes, not the images. The modes:
  live    nothing stops; a file that changes while it is read may be torn, and the record says so
  pause   processes stand still while it is read, and go on
  stop    containers are stopped, and started again
A mode that is named, here or in the profile, is refused where the host cannot do it, and nothing is
left behind.")]
pub struct SnapshotArgs {
    /// The sandbox: id, name, or beginning of an id
    #[arg(value_name = "ID")]
    pub id: String,
    /// Give it a name, unique among snapshots
    #[arg(long, value_name = "N")]
    pub name: Option<String>,
    /// live, pause or stop [default: the profile's; where it names none, pause if the host can, else live]
    #[arg(long, value_name = "M", value_parser = modes(), hide_possible_values = true)]
    pub mode: Option<SnapshotMode>,
}

/// Flags of `undo`.
#[derive(Debug, Clone, Default, Args)]
#[command(after_help = "\
Makes a new sandbox from the undo snapshot that was taken before the removal: files and volumes, labels, inputs, the \
snapshot that it was based on and its patches, its name if nobody has that (else NAME-undo), and its time to live anew. \
Undo snapshots are taken where the profile has `undo: true`, and kept for a while (`undo:` of the configuration).

Without REMOVED it is the last removal of which nothing came back yet. One that is named is brought back as often as you ask: \
each time as a further sandbox.")]
pub struct UndoArgs {
    /// The sandbox that was removed, by its id or name, or its undo snapshot's id [default: the last removal]
    #[arg(value_name = "REMOVED")]
    pub id: Option<String>,
}

/// Flags of `restore`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Makes a new sandbox: its own id, ports and time to live. The one the snapshot was taken of is left \
alone. The snapshot's patches are applied before it is ready.")]
pub struct RestoreArgs {
    /// The snapshot: id, name, or beginning of an id
    #[arg(value_name = "SNAPSHOT")]
    pub snapshot: String,
    /// The host [default: the snapshot's]
    #[arg(long, value_name = "H")]
    pub host: Option<String>,
    /// How long it lives once ready, such as 90m or 4h, or none [default: the profile's]
    #[arg(long, value_name = "D|none", allow_hyphen_values = true)]
    pub ttl: Option<String>,
    /// Give it a name
    #[arg(long, value_name = "N")]
    pub name: Option<String>,
    /// Fail, and roll back, when a patch fails; without it the sandbox is there to be looked at
    #[arg(long)]
    pub require_patches: bool,
    /// Fail when the host cannot set every owner, mode and attribute
    #[arg(long)]
    pub strict: bool,
}

/// Verbs of `snapshots`.
#[derive(Debug, Clone, Subcommand)]
pub enum SnapshotsCommand {
    /// List them, oldest first
    List {
        /// Undo snapshots and failed ones too
        #[arg(long)]
        all: bool,
    },
    /// Show one, its patches, and what hangs on it
    Get(SnapshotRef),
    /// Read its archive and compare it with what is recorded
    Verify(SnapshotRef),
    /// Delete snapshots: archives and copies, patches, names
    Delete(DeleteArgs),
    /// Copy one to another host; a restore there is faster then
    Copy(CopyArgs),
    /// Write one to a file that `import` takes
    Export(ExportArgs),
    /// Take one from a file that `export` wrote
    Import(ImportArgs),
    /// Show what differs from another snapshot, or from a sandbox
    Diff(DiffArgs),
    /// Delete old ones on which nothing depends
    Prune(PruneArgs),
}

/// A snapshot.
#[derive(Debug, Clone, Args)]
pub struct SnapshotRef {
    /// Id, name, or beginning of an id
    #[arg(value_name = "S")]
    pub snapshot: String,
}

/// Flags of `snapshots delete`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
One that has patches, or that sandboxes are based on, is in use and stays without --force. \
Sandboxes go on without their snapshot, but cannot be recreated. What a host does not let go, or that does not answer, is \
still listed, and `recover` goes on with it; --force gives it up: it stays there.")]
pub struct DeleteArgs {
    /// Ids, names, or beginnings of ids
    #[arg(value_name = "S", required = true)]
    pub snapshots: Vec<String>,
    /// Although something depends on it
    #[arg(long)]
    pub force: bool,
    /// Although it is labelled protect=true
    #[arg(long)]
    pub force_protected: bool,
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
}

/// Flags of `snapshots copy`.
#[derive(Debug, Clone, Args)]
pub struct CopyArgs {
    /// Id, name, or beginning of an id
    #[arg(value_name = "S")]
    pub snapshot: String,
    /// The host that gets a copy
    #[arg(long, value_name = "HOST")]
    pub to: String,
}

/// Flags of `snapshots export`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
The file has the archive and what is known of it, patches not. It appears under its name when it \
is whole; until then it is FILE.partial.")]
pub struct ExportArgs {
    /// Id, name, or beginning of an id
    #[arg(value_name = "S")]
    pub snapshot: String,
    /// The file, which must not exist, or - for standard output
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

/// Flags of `snapshots import`.
#[derive(Debug, Clone, Args)]
pub struct ImportArgs {
    /// The file, or - for standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// The host that gets it
    #[arg(long, value_name = "H")]
    pub host: String,
    /// A name instead of the one it had
    #[arg(long, value_name = "N")]
    pub name: Option<String>,
}

/// Flags of `snapshots diff`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
+ came, - went, ~ changed, seen from A. Contents are not compared: a file of the same size and time \
counts as the same. The status is 0 whether or not something differs.")]
pub struct DiffArgs {
    /// The snapshot: id, name, or beginning of an id
    #[arg(value_name = "A")]
    pub a: String,
    /// Another snapshot, or a sandbox as it is now [default: the sandbox A was taken of, or A's parent]
    #[arg(value_name = "B|SANDBOX")]
    pub b: Option<String>,
}

/// Flags of `snapshots prune`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
With both flags a snapshot goes that is beyond the newest N and older than D. One that has patches, \
or that sandboxes are based on, stays.",
    group = ArgGroup::new("old").args(["keep", "older_than"]).required(true).multiple(true))]
pub struct PruneArgs {
    /// Keep the newest N of each sandbox
    #[arg(long, value_name = "N")]
    pub keep: Option<u32>,
    /// Only those older than this, such as 12h or 30d
    #[arg(long, value_name = "D", value_parser = seconds)]
    pub older_than: Option<Seconds>,
    /// Only say which
    #[arg(long)]
    pub dry_run: bool,
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
}
