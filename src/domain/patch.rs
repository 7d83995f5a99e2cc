//! Patches: scripts attached to a snapshot, run once in each sandbox that is based on it (semantics 7).

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::domain::error::Error;
use crate::domain::event::{Actor, PendingEvent};
use crate::domain::name::{PatchId, SnapshotId};
use crate::domain::sandbox::SandboxRecord;
use crate::domain::time::Time;
use crate::domain::words::string_enum;

/// The largest script that is taken; bytes. It travels as one argument of a program, and Linux takes 128 KiB there.
pub const MAX_SCRIPT_BYTES: usize = 96 * 1024;

/// The highest number that a patch gets. A manifest from outside says what the next one on its snapshot is.
pub const MAX_SEQUENCE: u64 = 1_000_000;

/// What of a script's output is kept: its last bytes.
pub const KEPT_OUTPUT: usize = 64 * 1024;

string_enum! {
    /// How far the patches that a sandbox owes have come.
    #[derive(Default)]
    pub enum PatchState {
        /// It owes none.
        #[default]
        None = "none",
        /// Some wait for the next wake.
        Pending = "pending",
        /// A pass runs.
        Applying = "applying",
        /// All are in.
        Applied = "applied",
        /// A script failed.
        Failed = "failed",
        /// A crash left it open whether a script ran.
        Unknown = "unknown",
    }
}

string_enum! {
    /// When a patch is applied.
    #[derive(Default)]
    pub enum PatchStrategy {
        /// On the next way to `ready`.
        #[default]
        OnWake = "on_wake",
    }
}

/// Where a patch runs: `workspace` (on the host, in the workspace), or a compose service's name.
pub const RUN_IN_WORKSPACE: &str = "workspace";

/// A patch on a snapshot (contract, section 3).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Patch {
    /// `pat-` plus 8 hex digits.
    pub id: PatchId,
    /// The snapshot it is attached to.
    pub snapshot_id: SnapshotId,
    /// Its place in the order, from 1; never used again on this snapshot.
    pub sequence: u64,
    /// The script, exactly.
    pub script: String,
    /// What it is for.
    pub description: Option<String>,
    /// `workspace`, or a compose service's name.
    pub run_in: String,
    /// When it is applied.
    #[serde(default)]
    pub strategy: PatchStrategy,
    /// When it was added.
    pub created_at: Time,
    /// Who added it.
    pub actor: Actor,
    /// Grows by one with each write.
    pub revision: u64,
    /// Events that its last write caused and that nobody has appended yet.
    #[serde(default)]
    pub pending: Vec<PendingEvent>,
}

/// One patch on one sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AppliedPatch {
    /// The patch.
    pub id: PatchId,
    /// Its place in the order.
    pub sequence: u64,
    /// How far it came: `applying`, `applied`, `failed` or `unknown`.
    pub state: PatchState,
    /// When its script began.
    pub started_at: Option<Time>,
    /// How long it ran, in milliseconds.
    #[serde(default)]
    pub took_ms: Option<u64>,
    /// Its script's exit status.
    pub exit_status: Option<i32>,
    /// The last 64 KiB it wrote.
    pub output: Option<String>,
}

impl AppliedPatch {
    /// Whether it ended its pass: it failed, or nobody knows whether it ran.
    pub fn stopped(&self) -> bool {
        matches!(self.state, PatchState::Failed | PatchState::Unknown)
    }
}

/// What stands in the way of a sandbox's next patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blocked<'a> {
    /// A patch that is still attached failed on it.
    Failed(&'a AppliedPatch),
    /// A crash left it open whether this one ran.
    Unknown(&'a AppliedPatch),
}

/// What a sandbox owes of the patches of the snapshot it is based on.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Owed<'a> {
    /// Those that a pass would run, in ascending sequence.
    pub run: Vec<&'a Patch>,
    /// What stops the pass before it begins; `run` is what comes behind it then.
    pub blocked: Option<Blocked<'a>>,
}

/// Which of `patches` (any order; those of other snapshots are passed over) a sandbox owes. One level deep: only those of
/// the snapshot it is based on. One that failed, or of which nobody knows whether it ran, stops the pass unless `retry`
/// asks for it again; one that was removed from the snapshot counts no more.
pub fn owed<'a>(record: &'a SandboxRecord, patches: &'a [Patch], retry: bool) -> Owed<'a> {
    let Some(base) = &record.based_on_snapshot else { return Owed::default() };
    let mut mine: Vec<&Patch> = patches.iter().filter(|patch| patch.snapshot_id == *base).collect();
    mine.sort_by_key(|patch| patch.sequence);
    let on_it =
        |patch: &Patch| record.applied_patches.iter().find(|applied| applied.id == patch.id);
    let mut found = Owed::default();
    for patch in mine {
        match on_it(patch) {
            Some(applied) if applied.state == PatchState::Applied => {}
            Some(applied) if !retry => {
                let stops = match applied.state {
                    PatchState::Failed => Blocked::Failed(applied),
                    _ => Blocked::Unknown(applied),
                };
                found.blocked = found.blocked.or(Some(stops));
            }
            _ => found.run.push(patch),
        }
    }
    found
}

/// What a record's `patch_state` is to say while no pass runs.
pub fn settled_state(record: &SandboxRecord, patches: &[Patch]) -> PatchState {
    let owes = owed(record, patches, false);
    match owes.blocked {
        Some(Blocked::Failed(_)) => PatchState::Failed,
        Some(Blocked::Unknown(_)) => PatchState::Unknown,
        None if !owes.run.is_empty() => PatchState::Pending,
        None if record
            .applied_patches
            .iter()
            .any(|applied| applied.state == PatchState::Applied) =>
        {
            PatchState::Applied
        }
        None => PatchState::None,
    }
}

/// The patch that a reference means among a snapshot's: its id, or its sequence.
pub fn find<'a>(patches: &'a [Patch], reference: &str) -> Option<&'a Patch> {
    patches.iter().find(|patch| patch.id.as_str() == reference).or_else(|| {
        let sequence = reference.strip_prefix('#').unwrap_or(reference).parse::<u64>().ok()?;
        patches.iter().find(|patch| patch.sequence == sequence)
    })
}

/// Refuses the line ends of Windows: the interpreter would be `sh` and a CR, which no host has, and each command's last word
/// would end in one. It is not mended in silence: a patch is kept as it was written.
fn unix_lines(script: &str) -> Result<(), Error> {
    let Some(at) = script.find("\r\n") else { return Ok(()) };
    let line = script[..at].matches('\n').count() + 1;
    let message = format!(
        "line {line} of the script ends in CR and LF, as on Windows: on a host the CR belongs to the line's last word"
    );
    Err(Error::invalid_input("script", message)
        .hint("sed -i 's/\\r$//' FILE takes it out of each line; so does dos2unix"))
}

/// Checks what a patch is to be.
///
/// Errors: `invalid_input` with the field (`script`, `run_in`, `description`).
pub fn check(script: &str, run_in: &str, description: Option<&str>) -> Result<(), Error> {
    if script.trim().is_empty() {
        return Err(Error::invalid_input("script", "the script is empty"));
    }
    if script.len() > MAX_SCRIPT_BYTES {
        let message =
            format!("the script has {} bytes; {MAX_SCRIPT_BYTES} are the most", script.len());
        return Err(Error::invalid_input("script", message)
            .hint("let it fetch what is large, or take another snapshot"));
    }
    if script.contains('\0') {
        return Err(Error::invalid_input("script", "the script has a zero byte: it is no text"));
    }
    unix_lines(script)?;
    let named = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    if run_in.is_empty()
        || run_in.len() > 63
        || !run_in.chars().all(named)
        || run_in.starts_with('-')
    {
        return Err(Error::invalid_input(
            "run_in",
            "a patch runs in `workspace` or in a service, by its name",
        ));
    }
    if description.is_some_and(|text| text.len() > 255 || text.chars().any(char::is_control)) {
        let message = "a description is at most 255 bytes without control characters";
        return Err(Error::invalid_input("description", message));
    }
    Ok(())
}

/// The ids of patches that a sandbox has.
pub fn applied_ids(record: &SandboxRecord) -> BTreeSet<&PatchId> {
    let has = record.applied_patches.iter().filter(|applied| applied.state == PatchState::Applied);
    has.map(|applied| &applied.id).collect()
}

/// What somebody does about a patch that stands in the way; the snapshot by its name or id.
pub fn next_step_words(record: &SandboxRecord, snapshot: &str, sequence: u64) -> String {
    format!(
        "`sandboxer patches remove {snapshot} {sequence}` takes it away, `sandboxer patches apply {} --retry` runs it again",
        record.id
    )
}

/// A sentence for a patch of which nobody knows whether it came to its end, with what somebody does about it.
pub fn unknown_words(record: &SandboxRecord, snapshot: &str, run: &AppliedPatch) -> String {
    let how = next_step_words(record, snapshot, run.sequence);
    format!("nobody knows whether patch {} ({}) came to its end; {how}", run.sequence, run.id)
}

/// A script was running when its process died: nobody knows whether it came to its end.
pub fn settle_applying(record: &mut SandboxRecord) {
    let cut =
        record.applied_patches.iter().position(|applied| applied.state == PatchState::Applying);
    let Some(cut) = cut else { return };
    record.applied_patches[cut].state = PatchState::Unknown;
    record.patch_state = PatchState::Unknown;
    let base = record.based_on_snapshot.as_ref().map(ToString::to_string).unwrap_or_default();
    let run = &record.applied_patches[cut];
    let error = (run.id.clone(), unknown_words(record, &base, run));
    record.set_patch_error(Some(error));
}

#[cfg(test)]
mod tests;
