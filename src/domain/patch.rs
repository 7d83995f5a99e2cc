//! Patches: scripts attached to a snapshot, run once in each sandbox that is based on it (semantics 7).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::domain::actor::Actor;
use crate::domain::error::Error;
use crate::domain::event::PendingEvent;
use crate::domain::name::{PatchId, SnapshotId};
use crate::domain::time::Time;
use crate::domain::words::string_enum;

/// The largest script that is taken; bytes. It travels as one argument of a program, and Linux takes 128 KiB there.
pub(crate) const MAX_SCRIPT_BYTES: usize = 96 * 1024;

/// The highest number that a patch gets. A manifest from outside says what the next one on its snapshot is.
pub(crate) const MAX_SEQUENCE: u64 = 1_000_000;

/// Longest part of a script's output that is kept, its end; bytes.
pub(crate) const KEPT_OUTPUT: usize = 64 * 1024;

string_enum! {
    /// Progress of the patches that are pending on a sandbox.
    #[derive(Default)]
    pub enum PatchState {
        /// No patch is pending.
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
pub(crate) const RUN_IN_WORKSPACE: &str = "workspace";

/// A patch on a snapshot (contract, section 3).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Patch {
    /// `pat-` plus 8 hex digits.
    pub id: PatchId,
    /// The snapshot it is attached to.
    pub snapshot_id: SnapshotId,
    /// Place in the order, from 1; never used again on this snapshot.
    pub sequence: u64,
    /// The script, exactly.
    pub script: String,
    /// Purpose, for people.
    pub description: Option<String>,
    /// `workspace`, or a compose service's name.
    pub run_in: String,
    /// When it is applied.
    #[serde(default)]
    pub strategy: PatchStrategy,
    /// When it was added.
    pub created_at: Time,
    /// Actor that added it.
    pub actor: Actor,
    /// Grows by one with each write.
    pub revision: u64,
    /// Events that its last write caused and that nobody has appended yet.
    #[serde(default)]
    pub pending: Vec<PendingEvent>,
}

/// Patch on one sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AppliedPatch {
    /// The patch.
    pub id: PatchId,
    /// Place in the order.
    pub sequence: u64,
    /// State: `applying`, `applied`, `failed` or `unknown`.
    pub state: PatchState,
    /// When its script began.
    pub started_at: Option<Time>,
    /// Duration, in milliseconds.
    #[serde(default)]
    pub took_ms: Option<u64>,
    /// Script's exit status.
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

#[cfg(test)]
mod tests;
