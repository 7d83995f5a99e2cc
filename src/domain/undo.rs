//! Undo: what is kept of a sandbox before it is removed, and the way back (semantics 5).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::domain::host::Limits;
use crate::domain::operation::OperationKind;
use crate::domain::patch::AppliedPatch;
use crate::domain::profile::{Bytes, Seconds};
use crate::domain::sandbox::SandboxRecord;

/// Output of an applied patch that is kept with an undo snapshot: its last bytes.
const KEPT_OUTPUT: usize = 4 * 1024;

/// Output of all of them, of which the newest go first: it lies in the archive's manifest.
const KEPT_OUTPUTS: usize = 64 * 1024;

/// Names that are tried for a sandbox that is brought back, beside its own.
const NAMES: u32 = 100;

/// Longest name of a sandbox; bytes.
const NAME_BYTES: usize = 63;

/// Undo snapshots.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct UndoSettings {
    /// Time for which one is kept.
    pub window: Seconds,
    /// Above this workspace size none is taken.
    pub max_bytes: Bytes,
    /// Most that all of a host may take; the oldest go first.
    pub max_total: Bytes,
}

impl Default for UndoSettings {
    fn default() -> Self {
        Self { window: Seconds::hours(24), max_bytes: Bytes::gib(1), max_total: Bytes::gib(5) }
    }
}

/// Room that a sandbox takes, and that its host has for more.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Footprint {
    /// Workspace and volumes, as far as they can be told; bytes.
    pub bytes: u64,
    /// Bytes that the account may still use where archives are.
    pub free_bytes: u64,
    /// Use of that file system, in percent.
    pub disk_used_pct: f64,
}

impl UndoSettings {
    /// Reason why no undo snapshot of something that large is taken on such a host; a sentence's end.
    pub(crate) fn refusal(&self, seen: &Footprint, limits: &Limits) -> Option<String> {
        if seen.bytes > self.max_bytes.get() {
            let size = Bytes(seen.bytes);
            return Some(format!("it has {size}, and undo.max_bytes is {}", self.max_bytes));
        }
        if seen.disk_used_pct > limits.disk_used_pct {
            let (used, limit) = (seen.disk_used_pct, limits.disk_used_pct);
            return Some(format!(
                "the host's disk is {used:.1} % used, and its limit is {limit} %"
            ));
        }
        let (free, wanted) = (Bytes(seen.free_bytes), Bytes(seen.bytes.saturating_mul(2)));
        (free < wanted)
            .then(|| format!("{free} are free on the host, and twice its size is {wanted}"))
    }
}

/// Facts of its sandbox that an undo snapshot has beside files, labels and inputs: as they were at that moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UndoFacts {
    /// The verb that it was taken for: `destroy` or `recreate`.
    pub before: OperationKind,
    /// The time to live that the sandbox was given, in seconds; null means none.
    pub ttl_s: Option<u64>,
    /// Patches; of what each wrote the last 4 KiB, of all of them 64 KiB.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub applied_patches: Vec<AppliedPatch>,
}

impl UndoFacts {
    /// Of a sandbox that is about to be removed for this verb.
    pub fn of(record: &SandboxRecord, before: OperationKind) -> Self {
        let mut applied_patches = record.applied_patches.clone();
        let mut left = KEPT_OUTPUTS;
        for output in applied_patches.iter_mut().rev().filter_map(|run| run.output.as_mut()) {
            let mut from = output.len().saturating_sub(KEPT_OUTPUT.min(left));
            while !output.is_char_boundary(from) {
                from += 1;
            }
            output.drain(..from);
            left -= output.len();
        }
        Self { before, ttl_s: record.ttl_s, applied_patches }
    }
}

/// Names for a sandbox that is brought back, the first that is free counts: its own, `<name>-undo`, then with a number. One
/// without a name has none.
pub(crate) fn names_for(name: Option<&str>) -> Vec<Option<String>> {
    let Some(name) = name else { return vec![None] };
    let with = |suffix: String| {
        let room = name.len().min(NAME_BYTES.saturating_sub(suffix.len()));
        Some(format!("{}{suffix}", &name[..room]))
    };
    let numbered = (2..NAMES).map(|number| with(format!("-undo-{number}")));
    [Some(name.to_owned()), with("-undo".to_owned())].into_iter().chain(numbered).collect()
}

/// Request to bring a removed sandbox back.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct UndoRequest {
    /// The sandbox that was removed, by its id or name, or its undo snapshot's id; none: the last removal that nobody has taken
    /// back yet.
    pub id: Option<String>,
}

#[cfg(test)]
mod tests;
