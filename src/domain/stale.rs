//! Stale: what is in records or on hosts and should not be any more, and the plan that cleans exactly that (semantics 5).

mod judge;

pub(crate) use judge::{
    FoundSight, LeftByDead, RecordSight, Standpoint, judge_archive, judge_found, judge_record,
    judge_snapshot, keep,
};

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::domain::actor::Actor;
use crate::domain::error::Error;
use crate::domain::name::{HostName, OperationId, PlanId};
use crate::domain::profile::Seconds;
use crate::domain::sandbox::State;
use crate::domain::sweep::HeldBack;
use crate::domain::teardown::Resource;
use crate::domain::time::Time;
use crate::domain::words::string_enum;

/// Seconds for which a plan may be applied.
pub(crate) const PLAN_KEPT_S: u64 = 3600;

/// When something is stale.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct StaleSettings {
    /// Time for which a failed sandbox is kept.
    pub failed_after: Seconds,
    /// Age up to which something unknown is no orphan.
    pub grace: Seconds,
}

impl Default for StaleSettings {
    fn default() -> Self {
        Self { failed_after: Seconds::hours(24), grace: Seconds(60) }
    }
}

string_enum! {
    /// Class of something stale.
    pub enum StaleClass {
        /// Deadline passed.
        Expired = "expired",
        /// Failure longer ago than `stale.failed_after`.
        Failed = "failed",
        /// Operation's process is dead, or nobody finishes what was begun.
        Stuck = "stuck",
        /// Host, proved to be the recorded one, has nothing of it.
        Lost = "lost",
        /// Containers, networks or volumes of this installation that no record knows.
        OrphanStack = "orphan_stack",
        /// A directory of this installation that no record knows.
        OrphanDir = "orphan_dir",
        /// An archive of this installation that no record knows.
        OrphanSnapshot = "orphan_snapshot",
        /// Another owner's.
        Foreign = "foreign",
        /// Nobody can tell whose it is.
        Unreadable = "unreadable",
    }
}

impl StaleClass {
    /// Whether it is never reaped, whatever is asked for.
    pub(crate) fn is_never_reaped(&self) -> bool {
        match self {
            Self::Foreign | Self::Unreadable | Self::Other(_) => true,
            Self::Expired
            | Self::Failed
            | Self::Stuck
            | Self::Lost
            | Self::OrphanStack
            | Self::OrphanDir
            | Self::OrphanSnapshot => false,
        }
    }
}

string_enum! {
    /// Action that a plan has for an item.
    pub enum ReapAction {
        /// Destroy the recorded sandbox.
        Destroy = "destroy",
        /// Bring it back to what its host says.
        Recover = "recover",
        /// Close the record of what is gone.
        Close = "close",
        /// Remove from the host what no record knows.
        Remove = "remove",
        /// Make a record of what the host has.
        Adopt = "adopt",
        /// Leave it as it is.
        Keep = "keep",
    }
}

/// Something stale, with what a plan does about it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StaleItem {
    /// Why it is stale.
    pub class: StaleClass,
    /// Action that is planned.
    pub action: ReapAction,
    /// Actions that may be planned for it, `keep` aside.
    #[serde(default)]
    pub possible: Vec<ReapAction>,
    /// The host.
    pub host: HostName,
    /// The sandbox's id, as the record or the host has it; null for a snapshot.
    pub sandbox_id: Option<String>,
    /// The snapshot's id; null for a sandbox.
    pub snapshot_id: Option<String>,
    /// Name.
    pub name: Option<String>,
    /// Owner; null where nobody can tell.
    pub owner: Option<String>,
    /// Profile.
    pub profile: Option<String>,
    /// Recorded state; null where there is no record.
    pub state: Option<State>,
    /// When it was made, as far as that is known.
    pub created_at: Option<Time>,
    /// Deadline.
    pub expires_at: Option<Time>,
    /// Age when the plan was made; seconds.
    pub age_s: Option<u64>,
    /// Bytes that its directory or archive takes on the host; null until they were measured.
    pub bytes: Option<u64>,
    /// Whether it is labelled `protect=true`: then it is kept.
    #[serde(default)]
    pub protected: bool,
    /// Resources of it that are there, as far as they were looked for.
    #[serde(default)]
    pub resources: Vec<Resource>,
    /// Identity at the moment of the plan: the record's revision (`revision 7`), or a hash of all that the host said of it. What has
    /// another one by the time of the reap is skipped.
    pub identity: String,
    /// Why it is stale, and why the action is what it is, in a sentence.
    pub why: String,
}

impl StaleItem {
    /// Id, of whichever kind.
    pub fn id(&self) -> &str {
        self.sandbox_id.as_deref().or(self.snapshot_id.as_deref()).unwrap_or_default()
    }

    /// Revision that its record had then; none of what no record knows.
    pub fn revision(&self) -> Option<u64> {
        let record = self.state.as_ref().map(|_| self.identity.as_str());
        record?.strip_prefix("revision ")?.parse().ok()
    }

    /// Whether both speak of the same thing on the same host.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.host.same(other.host.as_str())
            && self.sandbox_id == other.sandbox_id
            && self.snapshot_id == other.snapshot_id
    }
}

string_enum! {
    /// End of a look at a host.
    pub enum PassState {
        /// All of its inventory was read.
        Read = "read",
        /// Not to be read: nothing on it is judged.
        Unread = "unread",
        /// Another host, or another root, than is recorded: nothing on it is judged.
        Changed = "changed",
        /// The configuration forbids it: it was not asked.
        Forbidden = "forbidden",
    }
}

/// Look at one host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostPass {
    /// The host.
    pub host: HostName,
    /// End of the look.
    pub state: PassState,
    /// The machine that it was.
    pub machine_id: Option<String>,
    /// Why it could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Error>,
}

/// Everything stale.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StaleReport {
    /// When it was judged.
    pub at: Time,
    /// Hosts that were asked.
    pub hosts: Vec<HostPass>,
    /// Why nothing may be reaped from here; null where it may.
    pub held_back: Option<HeldBack>,
    /// Items, by class and host.
    pub items: Vec<StaleItem>,
}

/// Request for what is stale.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct StaleQuery {
    /// Only these hosts; none: all.
    pub hosts: Vec<String>,
    /// Whether nobody is asked: it is judged by what each host said last to this process.
    pub as_last_seen: bool,
}

/// Request for a plan.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PlanRequest {
    /// Only these hosts; none: all.
    pub hosts: Vec<String>,
    /// Only these classes; of orphans that are named, all are removed. None: all, each with its default.
    pub classes: BTreeSet<StaleClass>,
    /// Whether orphaned archives are removed.
    pub snapshots: bool,
}

/// Plan of a reap: exactly this is done, and only where it is still so.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReapPlan {
    /// `plan-` plus 8 hex digits.
    pub id: PlanId,
    /// When it was decided.
    pub at: Time,
    /// Until when it may be applied.
    pub valid_until: Time,
    /// Actor that asked for it.
    pub actor: Actor,
    /// Hosts that were asked.
    pub hosts: Vec<HostPass>,
    /// Why nothing may be reaped from here; null where it may.
    pub held_back: Option<HeldBack>,
    /// Items, those with something to do first.
    pub items: Vec<StaleItem>,
}

impl ReapPlan {
    /// Items with something to do.
    pub fn to_do(&self) -> impl Iterator<Item = &StaleItem> {
        self.items.iter().filter(|item| item.action != ReapAction::Keep)
    }
}

/// Plan that is to be applied.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PlanSource {
    /// Plan that is kept, by its id.
    Id(String),
    /// The plan itself, maybe with items taken out or with another action that is possible.
    Plan(Box<ReapPlan>),
}

/// Request for a reap.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReapRequest {
    /// Plan to be applied.
    pub plan: PlanSource,
    /// Take no undo snapshots.
    #[serde(default)]
    pub no_undo: bool,
    /// Whether it does nothing while another reap that asks the same is at work.
    #[serde(default)]
    pub alone: bool,
}

string_enum! {
    /// Outcome of an item of a reap.
    pub enum ReapOutcome {
        /// Destroyed, or removed from its host.
        Removed = "removed",
        /// Back to what its host says.
        Recovered = "recovered",
        /// Record is closed; nothing was there.
        Closed = "closed",
        /// There is a record of it now.
        Adopted = "adopted",
        /// Nothing, for the reason said.
        Skipped = "skipped",
        /// Nothing, since it could not be done.
        Failed = "failed",
    }
}

/// Item of a plan after a reap.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReapItem {
    /// Id of the sandbox or snapshot.
    pub id: String,
    /// Whether it is as planned now. What was skipped is not in the way: it is not what was planned any more.
    pub ok: bool,
    /// Class.
    pub class: StaleClass,
    /// Host.
    pub host: HostName,
    /// Action that was planned.
    pub action: ReapAction,
    /// Outcome of it.
    pub outcome: ReapOutcome,
    /// Sentence on it.
    pub message: String,
    /// Why it could not be done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Error>,
}

/// Report of a reap: an item for each of the plan's with something to do, in the plan's order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReapReport {
    /// The plan.
    pub plan: PlanId,
    /// Items that are done; while it runs, those by now.
    pub items: Vec<ReapItem>,
}

impl ReapReport {
    pub fn with(&self, outcome: &ReapOutcome) -> impl Iterator<Item = &ReapItem> {
        self.items.iter().filter(move |item| item.outcome == *outcome)
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct ReapStarted {
    /// The operation; none where there was nothing to do.
    pub operation: Option<OperationId>,
    /// Report of what is done by then.
    pub report: ReapReport,
}
