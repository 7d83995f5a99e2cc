//! Messages into the one queue, and effects out of it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crossterm::event::{KeyEvent, MouseEvent};
use tokio::sync::OwnedSemaphorePermit;

use crate::client::{
    CreateRequest, Credits, Decision, Error, ExtendRequest, Extended, ExtensionView, GrantRequest,
    HubBacklog, LabelRequest, LogsRequest, PatchRequest, PatchStatus, ProfileView, Record, Request,
    RolloutItem, RolloutRequest, ShellRequest, SnapshotDiff, SnapshotDiffRequest, StaleReport,
    Started, SweepReport, Update,
};
use crate::domain::Time;
use crate::domain::event::Event;
use crate::domain::host_view::HostView;
use crate::domain::lineage::SnapshotView;
use crate::domain::name::{HostName, OperationId, PatchId, SandboxId, SnapshotId};
use crate::domain::operation::Operation;
use crate::domain::patch::Patch;
use crate::domain::sandbox::SandboxRecord;
use crate::domain::telemetry::HostSample;
use crate::tui::model::{Entry, EventRows, JobId, Judged, LastLook, Ledger, LogText, SavedState};

/// Something the console hears.
#[derive(Debug)]
pub enum Msg {
    Key(KeyEvent),
    /// Pasted text.
    Paste(String),
    Mouse(MouseEvent),
    /// The terminal has another size.
    Resize(u16, u16),
    /// A frame is on the screen, with everything as it is.
    Drawn,
    /// A second passed.
    Tick(Time),
    /// Something is due.
    Due(Timer),
    /// The console is back in the foreground.
    Resumed,
    /// All sandboxes.
    Listed(Result<Vec<Arc<Entry>>, Error>),
    /// Sandboxes that were destroyed within the last day.
    ListedDestroyed(Result<Vec<Arc<Entry>>, Error>),
    /// The answer to `get` on a sandbox.
    Got(SandboxId, Result<Box<Entry>, Error>),
    /// All hosts as last seen.
    Hosts(Result<Vec<HostView>, Error>),
    /// A host was asked.
    HostChecked(HostName, Result<Box<HostView>, Error>),
    HostSampled(HostName, Result<Box<HostSample>, Error>),
    /// Events are listened to, or cannot be.
    Subscribed(Result<(), Error>),
    /// The event stream ended.
    Disconnected,
    /// Something happened.
    Heard(Box<Update>),
    /// Kept events: of one sandbox, or of the last day.
    Events(Option<SandboxId>, Result<Vec<Event>, Error>),
    /// Events since the operator looked last.
    SinceLastLook(LastLook, Result<Vec<Event>, Error>),
    Profiles(Result<Vec<ProfileView>, Error>),
    /// Plan of a create.
    Planned(u64, Result<Box<Decision>, Error>),
    /// A job's request was accepted, or refused.
    Started(JobId, Result<Box<Started>, Error>),
    /// A job was not begun any more.
    Skipped(JobId, String),
    /// A job's operation ended: with what it worked on as it is now, or badly; and how long it took, where that is known.
    Ended(JobId, Result<Record, Error>, Option<Duration>),
    /// A job's end was asked for, or could not be.
    CancelAsked(JobId, Result<(), Error>),
    /// All operations, those of other processes among them.
    Operations(Result<Vec<Operation>, Error>),
    /// Stale things, by what each host said last.
    Stale(Result<Box<StaleReport>, Error>),
    /// The reap plan that was asked for under that number, or what is stale.
    ReapPlanned(u64, Result<Judged, Error>),
    /// The sweep of that number came to its end.
    Swept(u64, Result<Box<SweepReport>, Error>),
    /// A host was asked for its services; what changed comes as records.
    ServicesRefreshed(HostName, Result<(), Error>),
    /// Labels were written, or could not be.
    Labelled(SandboxId, Result<Box<SandboxRecord>, Error>),
    /// The deadline that a form asked for was moved, or refused.
    Extended(u64, Result<Box<Extended>, Error>),
    LogOpened(u64),
    /// Lines of a log.
    Log(u64, Box<LogBatch>),
    LogEnded(u64, Result<(), Error>),
    /// A log was saved for the form of that number: where, and how many lines.
    LogSaved(u64, PathBuf, Result<usize, Error>),
    /// All snapshots, with what hangs on them.
    Snapshots(Result<Vec<Arc<SnapshotView>>, Error>),
    /// Past events, for their overlay.
    EventLog(Result<Box<EventRows>, Error>),
    /// The State Hub's backlog; none where no hub is configured.
    HubBacklog(Result<Option<HubBacklog>, Error>),
    /// Credits, and what became of them.
    Credits(Result<Box<Ledger>, Error>),
    /// Credits were granted from the form of that number, or could not be.
    Granted(u64, Result<Credits, Error>),
    Extensions(Result<Vec<ExtensionView>, Error>),
    /// Differences between a snapshot and what it was taken of, for the form of that number.
    Compared(u64, Result<Box<SnapshotDiff>, Error>),
    /// How the patches of a snapshot stand.
    PatchStatus(SnapshotId, Result<Vec<PatchStatus>, Error>),
    /// A patch was added from the form of that number, or could not be.
    PatchAdded(u64, Result<Box<Patch>, Error>),
    /// A patch was taken away from a snapshot, or could not be.
    PatchRemoved(Result<Box<Patch>, Error>),
    /// A rollout ended.
    RolledOut(JobId, Result<Vec<RolloutItem>, Error>),
    /// An editor gave the terminal back: for a patch on that snapshot, the script, or none where nothing was written.
    Written(SnapshotId, Result<Option<String>, Error>),
    /// A path, as it was typed, and its completion.
    Completed(String, Completion),
    /// A shell gave the terminal back: what it was called, and how it ended.
    ShellEnded(String, ShellEnd),
}

/// How a shell ended.
#[derive(Debug, Clone, PartialEq)]
pub enum ShellEnd {
    /// Status that it ended with; 128 + n after signal n.
    Left(i32),
    /// Reason why it could not be opened.
    Failed(Error),
    /// The operator did not wait for it.
    GivenUp,
}

/// Some lines of a log.
#[derive(Debug)]
pub struct LogBatch {
    /// Lines that were dropped before these: they came faster than they are taken.
    pub missed: u64,
    /// The lines, cleaned.
    pub lines: Vec<Arc<LogText>>,
    /// A place among the batches on the way; it is free again when the batch was taken.
    pub(super) _place: OwnedSemaphorePermit,
}

/// Completion of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Completion {
    /// This text, whole or as far as all choices agree.
    To(String),
    /// The names that it may be.
    Choices(Vec<String>),
    /// There is nothing to complete: it is whole, or nothing begins so.
    Nothing,
}

/// Something the console does. The first group is done by the loop itself, on the terminal.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Ends the console.
    Quit,
    /// Suspends the process.
    Suspend,
    /// Draws every cell again.
    Redraw,
    /// Puts a text into the terminal's clipboard.
    Copy(String),
    /// Tells an operator who looks elsewhere.
    Notify(String),
    /// Takes or releases the mouse.
    Mouse(bool),
    /// Gives the terminal to a shell; the text is what it is called.
    Shell(Box<ShellRequest>, String),
    /// Gives the terminal to an editor, for a patch on that snapshot.
    Write(SnapshotId),

    /// Says later what is due then.
    After(Duration, Box<Timer>),
    /// Reads all sandboxes.
    List,
    /// Reads the sandboxes that were destroyed since.
    ListDestroyed(Time),
    /// Reads one sandbox.
    Get(SandboxId),
    /// Reads the hosts as last seen.
    Hosts,
    /// Asks one host.
    CheckHost(HostName),
    /// Samples one host.
    SampleHost(HostName),
    /// Listens to events.
    Subscribe,
    /// Reads kept events: of one sandbox, or those since a time.
    Events(Option<SandboxId>, Option<Time>),
    /// Reads what happened since the operator looked last.
    SinceLastLook(LastLook, Time),
    /// Reads the profiles.
    Profiles,
    /// Finds out what a create would do.
    Plan(u64, Box<CreateRequest>),
    /// Starts an operation, and waits for its end. What the operator saw is in the request.
    Start(JobId, Request),
    /// Asks for an operation's end.
    Cancel(JobId, OperationId),
    /// Reads all operations.
    Operations,
    /// Asks what is stale, by what each host said last.
    Stale,
    /// Makes a reap plan, under that number.
    PlanReap(u64),
    /// Asks every host what is stale on it, under that number; nothing is kept.
    InspectStale(u64),
    /// Ends what is over; with the number of the sweep.
    Sweep(u64),
    /// Asks a host for the services of all its sandboxes.
    RefreshServices(HostName),
    /// Writes labels.
    Label(LabelRequest),
    /// Moves a deadline, for the form of that number.
    Extend(u64, ExtendRequest),
    /// Follows a log, in place of the one that was followed before.
    Follow(u64, LogsRequest),
    /// Ends the following of a log.
    Unfollow,
    /// Saves lines into a new file, for the form of that number.
    SaveLog(u64, PathBuf, Vec<Arc<LogText>>),
    /// Reads all snapshots.
    Snapshots,
    /// Reads what happened since then, for the overlay of events.
    EventLog(Time),
    /// Reads the State Hub's backlog.
    HubBacklog,
    /// Reads the credits and their history.
    Credits(Time),
    /// Grants credits, for the form of that number.
    Grant(u64, GrantRequest),
    /// Reads the extensions.
    Extensions,
    /// Compares a snapshot with what it was taken of, for the form of that number.
    Compare(u64, SnapshotDiffRequest),
    /// Finds out how the patches of a snapshot stand.
    PatchStatus(SnapshotId),
    /// Adds a patch, from a file where there is one, for the form of that number.
    AddPatch(u64, PatchRequest, Option<PathBuf>),
    /// Takes a patch away from a snapshot.
    RemovePatch(SnapshotId, PatchId),
    /// Applies a snapshot's patches to the sandboxes based on it.
    RollOut(JobId, RolloutRequest),
    /// Begins no further sandbox of a rollout.
    StopRollout(JobId),
    /// Finds out what a path can be completed to: as typed, what `~` means, and whether only folders will do.
    Complete(String, Option<PathBuf>, bool),
    /// Frees records that are no longer shown, off the UI's thread.
    Discard(Vec<Arc<Entry>>),
    /// Remembers for the next run.
    SaveState(SavedState),
}

/// Something that is due at a time.
#[derive(Debug, Clone, PartialEq)]
pub enum Timer {
    /// Reading again what events named.
    Fetch,
    /// Asking a host.
    Host(HostName),
    Sample(HostName),
    /// Planning, if nothing was typed since.
    Plan(u64),
    /// Listening again.
    Listen,
    /// Reading the snapshots.
    Snapshots,
    /// Reading the credits.
    Credits,
    /// Asking what is stale.
    Stale,
    Sweep,
}
