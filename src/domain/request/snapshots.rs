//! Requests and replies about snapshots, patches, sleep and wake.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::domain::archive::TreeEntry;
use crate::domain::error::{Error, Kind};
use crate::domain::name::{HostName, OperationId, PatchId, SandboxId, SnapshotId};
use crate::domain::patch::{AppliedPatch, Patch, PatchState};
use crate::domain::retention::RetentionRule;
use crate::domain::snapshot::SnapshotRecord;
use crate::domain::text::plural;

/// Request of a sleep or a wake.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SleepRequest {
    /// Exact id.
    pub id: String,
    /// The revision the asker saw; another one is `conflict`. None: whatever it is.
    pub revision: Option<u64>,
    /// The patches that the asker saw on its snapshot; others are `conflict`. None: whatever is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patches: Option<Vec<PatchId>>,
}

/// Request of a snapshot.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SnapshotRequest {
    /// The sandbox: exact id.
    pub id: String,
    /// The revision the asker saw; another one is `conflict`. None: whatever it is.
    pub revision: Option<u64>,
    /// A name.
    pub name: Option<String>,
    /// `live`, `pause` or `stop`; none: the profile's, and else `pause` where the runtime can.
    pub mode: Option<String>,
}

/// An operation on a snapshot that was started, and the record as it is now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SnapshotStarted {
    /// The operation; null when there was nothing to do.
    pub operation: Option<OperationId>,
    /// The record.
    pub snapshot: SnapshotRecord,
}

/// Query of snapshots.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SnapshotQuery {
    /// Undo snapshots and failed ones too.
    pub all: bool,
}

/// Request of a restore.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RestoreRequest {
    /// The snapshot: exact id.
    pub snapshot: String,
    /// The revision the asker saw; another one is `conflict`. None: whatever it is.
    pub revision: Option<u64>,
    /// The host; none: the snapshot's own.
    pub host: Option<String>,
    /// Time to live as written (`4h`, `none`); none: the pinned profile's.
    pub ttl: Option<String>,
    /// A name.
    pub name: Option<String>,
    /// Fail when a patch fails.
    pub require_patches: bool,
    /// Fail when the host cannot set everything that the archive has.
    pub strict: bool,
}

/// Request of a deletion.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SnapshotDeleteRequest {
    /// The snapshot: exact id.
    pub id: String,
    /// The revision the asker saw; another one is `conflict`. None: whatever it is.
    pub revision: Option<u64>,
    /// Although patches or sandboxes depend on it.
    pub force: bool,
    /// Dependants that the asker saw, as [`SnapshotView::dependants`] has them; with `force`, more than that is `conflict`.
    /// None: whatever there is.
    ///
    /// [`SnapshotView::dependants`]: crate::domain::lineage::SnapshotView::dependants
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dependants: Option<Vec<String>>,
    /// Although it is labelled `protect=true`.
    pub force_protected: bool,
    /// Only while this calls it old: that is judged in the write with which its deletion begins. One that stays after all, or
    /// is gone, is an error with `details.skipped`, the reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<RetentionRule>,
}

/// Request of a verification.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SnapshotVerifyRequest {
    /// The snapshot: exact id.
    pub id: String,
}

/// Request of a copy.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SnapshotCopyRequest {
    /// The snapshot: exact id.
    pub id: String,
    /// The host that gets a copy.
    pub host: String,
}

/// Request of an import. The file's content comes beside it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SnapshotImportRequest {
    /// The host that gets it.
    pub host: String,
    /// A name instead of the one it had.
    pub name: Option<String>,
}

/// Request of a comparison.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SnapshotDiffRequest {
    /// The snapshot: exact id.
    pub a: String,
    /// Other side: exact id of a snapshot or of a sandbox. None: the sandbox it was taken from, or its parent where that is
    /// over.
    pub b: Option<String>,
}

/// Difference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    /// `workspace/…` or `volumes/<name>/…`, escaped as in [`TreeEntry`].
    pub path: String,
    /// `added`, `removed` or `changed`, seen from `a` to `b`.
    pub change: String,
    /// Differences of a changed one: `kind`, `mode`, `owner`, `size`, `modified`, `target`.
    #[serde(default)]
    pub differs: Vec<String>,
    /// Entry in `a`.
    pub a: Option<TreeEntry>,
    /// Entry in `b`.
    pub b: Option<TreeEntry>,
}

/// Differences between two trees. Contents are not compared: a file of the same size and time counts as the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SnapshotDiff {
    /// Snapshot's id.
    pub a: String,
    /// With what: a snapshot's or a sandbox's id.
    pub b: String,
    /// Number of entries that came, went and changed.
    pub added: u64,
    /// See `added`.
    pub removed: u64,
    /// See `added`.
    pub changed: u64,
    /// Bytes of files that came, less those that went, in all.
    pub bytes: i64,
    /// Each of them, by path, at most 10,000.
    pub changes: Vec<Change>,
    /// Whether there are more.
    pub truncated: bool,
    /// Parts that could not be compared, in a sentence each.
    pub notes: Vec<String>,
}

/// Rule of the snapshots that go.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PruneRequest {
    /// Number of each sandbox's newest that are kept.
    pub keep: Option<u32>,
    /// Only those older than this; seconds.
    pub older_than_s: Option<u64>,
    /// Only say which.
    pub dry_run: bool,
}

/// Snapshot of a prune.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PruneItem {
    /// The snapshot.
    pub id: SnapshotId,
    /// Name.
    pub name: Option<String>,
    /// Whether it is gone (with `dry_run`: would go).
    pub ok: bool,
    /// Size; bytes.
    pub bytes: Option<u64>,
    /// Why it goes; or why it stays, or is passed over: what depends on it, or what changed since it was called old.
    pub reason: String,
    /// Why it could not be removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Error>,
}

impl PruneItem {
    /// The reason of one that somebody else was faster with.
    pub const GONE: &str = "somebody else deleted it meanwhile";

    /// Leaves it out, which is no failure.
    pub fn skip(&mut self, reason: impl Into<String>) {
        (self.ok, self.reason) = (false, reason.into());
    }

    /// End of its deletion: its last record, or why it stays.
    pub fn ended(&mut self, ended: Result<SnapshotRecord, Error>) {
        match ended {
            // Facts from when it went.
            Ok(last) => {
                self.reason = last.message.unwrap_or_else(|| std::mem::take(&mut self.reason));
            }
            Err(error) => {
                self.ok = false;
                match error.kind {
                    Kind::PassedOver(reason) => self.reason = reason,
                    _ => self.error = Some(error),
                }
            }
        }
    }
}

/// Request of a patch.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PatchRequest {
    /// The snapshot: exact id.
    pub snapshot: String,
    /// The script.
    pub script: String,
    /// Purpose, for people.
    pub description: Option<String>,
    /// `workspace` or a service; none: `workspace`.
    pub run_in: Option<String>,
}

/// Patch on one sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PatchStanding {
    /// The sandbox.
    pub id: SandboxId,
    /// Name.
    pub name: Option<String>,
    /// Host.
    pub host: HostName,
    /// `pending` (it will get it), `applying`, `applied`, `failed` or `unknown`.
    pub state: PatchState,
    /// Whether an earlier one that failed stands in the way.
    pub blocked: bool,
    /// The run, if there was one.
    pub run: Option<AppliedPatch>,
}

/// Patch and the sandboxes that have it, will get it, or failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PatchStatus {
    /// The patch.
    pub patch: Patch,
    /// Each sandbox that is based on its snapshot.
    pub sandboxes: Vec<PatchStanding>,
}

/// Sandbox that gets its pending patches.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ApplyRequest {
    /// Exact id.
    pub id: String,
    /// The revision the asker saw; another one is `conflict`. None: whatever it is.
    pub revision: Option<u64>,
    /// Run what failed, or of which nobody knows whether it ran, once more.
    pub retry: bool,
    /// The patches that the asker saw on its snapshot; others are `conflict`. None: whatever is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patches: Option<Vec<PatchId>>,
}

/// A snapshot's patches onto all sandboxes that are based on it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RolloutRequest {
    /// The snapshot: exact id.
    pub snapshot: String,
    /// The revision the asker saw, which another patch changes; another one is `conflict`. None: whatever it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<u64>,
    /// The sandboxes that the asker saw ready; others that are by now are passed over. None: whichever are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandboxes: Option<Vec<SandboxId>>,
    /// So many first; the rest only when all of them went well. None: all at once.
    pub canary: Option<u32>,
}

/// Sandbox of a rollout.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RolloutItem {
    /// The sandbox.
    pub id: SandboxId,
    /// Whether it has them all now, or sleeps and gets them on its wake.
    pub ok: bool,
    /// Whether it was among the first.
    pub canary: bool,
    /// Sequences that were applied now.
    pub applied: Vec<u64>,
    /// Why nothing was applied, where that is no failure: it sleeps and gets them on its wake (`ok`), or the rollout ended
    /// before its turn, or it came to be meanwhile (not `ok`, without an error).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Why it was passed over, or what went wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Error>,
}

/// Counts by kind, as `not_preserved` has them, in words: `3 owners, 1 xattr`.
pub(crate) fn counted(counts: &BTreeMap<String, u64>) -> String {
    let words = |(kind, count): (&String, &u64)| {
        plural(*count, kind.strip_suffix('s').unwrap_or(kind), kind)
    };
    counts.iter().map(words).collect::<Vec<_>>().join(", ")
}
