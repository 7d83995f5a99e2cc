//! Retention: snapshots are old that are beyond the newest of their sandbox, or were taken long ago.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::domain::figures::age;
use crate::domain::name::{HostName, SandboxId};
use crate::domain::profile::Seconds;
use crate::domain::snapshot::{SnapshotKind, SnapshotRecord, SnapshotState};
use crate::domain::text::plural;
use crate::domain::time::Time;
use crate::domain::undo::UndoSettings;

/// Reason for which one goes that a host did not let go before.
const HALF_DELETED: &str = "its deletion was not finished";

/// Retention rule. A ready snapshot is old when every criterion that is set holds; an undo snapshot when its window is
/// over, whatever is set.
///
/// Snapshots are given to it in the order in which they were written down first. Which one is newer goes by that alone:
/// a clock that was set back makes nothing older. Only `older_than_s` asks the clock.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RetentionRule {
    /// So many newer ones of its sandbox are there, or more.
    pub keep: Option<u32>,
    /// Least age; seconds.
    pub older_than_s: Option<u64>,
    /// Imported snapshots, which somebody brought here on purpose, neither go nor count.
    pub taken_here: bool,
}

impl RetentionRule {
    /// Why this snapshot goes; or, as the error, why it stays. A sentence's end each.
    pub fn judge(
        &self,
        record: &SnapshotRecord,
        all: &[&SnapshotRecord],
        now: Time,
    ) -> Result<String, String> {
        match &record.state {
            SnapshotState::Ready => {}
            _ if record.is_half_deleted() => return Ok(HALF_DELETED.to_owned()),
            SnapshotState::Deleting => return Err("somebody else is deleting it".to_owned()),
            other => return Err(format!("it is {other}")),
        }
        if !self.is_about(record) {
            let over = record.expires_at.filter(|end| *end <= now && !self.taken_here);
            return match over {
                Some(end) => Ok(format!("it was kept for undo until {end}")),
                None if record.kind == SnapshotKind::User => Err("it was imported".to_owned()),
                None => Err("it is there for undo".to_owned()),
            };
        }
        let sandbox = &record.sandbox_id;
        let newer = self.newer_than(record, all);
        if let Some(keep) = self.keep.filter(|keep| newer < *keep as usize) {
            return Err(match keep {
                1 => format!("it is the newest of sandbox {sandbox}"),
                _ => format!("it is one of the newest {keep} of sandbox {sandbox}"),
            });
        }
        let age_s = now.since(record.created_at).as_secs();
        if let Some(least) = self.older_than_s.filter(|least| age_s <= *least) {
            return Err(format!("it is not older than {}", Seconds(least)));
        }
        Ok(match self.keep {
            Some(_) => {
                let are = if newer == 1 { "is" } else { "are" };
                format!(
                    "{} of sandbox {sandbox} {are} there",
                    plural(newer as u64, "newer one", "newer ones")
                )
            }
            None => format!("{} old", age(age_s)),
        })
    }

    /// Snapshots that go, oldest first, and why.
    pub fn old<'a>(
        &self,
        all: &[&'a SnapshotRecord],
        now: Time,
    ) -> Vec<(&'a SnapshotRecord, String)> {
        oldest_first(all.iter().copied())
            .into_iter()
            .filter_map(|record| Some((record, self.judge(record, all, now).ok()?)))
            .collect()
    }

    fn is_about(&self, record: &SnapshotRecord) -> bool {
        record.kind == SnapshotKind::User && !(self.taken_here && record.imported_at.is_some())
    }

    /// Number of newer ones from which something can be restored: one that is lost stands in for nobody.
    fn newer_than(&self, record: &SnapshotRecord, all: &[&SnapshotRecord]) -> usize {
        let line = line_of(&record.sandbox_id, all);
        let newer = line.iter().rev().take_while(|other| other.id != record.id);
        newer
            .filter(|other| {
                other.state == SnapshotState::Ready && self.is_about(other) && !other.is_lost()
            })
            .count()
    }
}

/// The snapshots of one sandbox, oldest first.
fn line_of<'a>(sandbox: &SandboxId, all: &[&'a SnapshotRecord]) -> Vec<&'a SnapshotRecord> {
    oldest_first(all.iter().copied().filter(|record| record.sandbox_id == *sandbox))
}

/// Snapshots, given in the order in which they were written down first, oldest first. One that was imported or adopted is older
/// than all that came after it, and stands where its time puts it among those that were there.
pub(crate) fn oldest_first<'a>(
    arrived: impl IntoIterator<Item = &'a SnapshotRecord>,
) -> Vec<&'a SnapshotRecord> {
    let mut line: Vec<&SnapshotRecord> = Vec::new();
    for record in arrived {
        let came_later = record.imported_at.is_some() || record.adopted_at.is_some();
        let later = |other: &&SnapshotRecord| came_later && other.created_at > record.created_at;
        let at = line.iter().position(later).unwrap_or(line.len());
        line.insert(at, record);
    }
    line
}

/// Undo snapshots of a host that are not kept any longer, the oldest first, and why: their window is over, or all of them take
/// more than they may. Snapshots are given in the order in which they were written down first; a user's is never among them.
pub(crate) fn surplus_undo<'a>(
    all: &[&'a SnapshotRecord],
    host: &HostName,
    settings: &UndoSettings,
    now: Time,
) -> Vec<(&'a SnapshotRecord, String)> {
    let is_left = |record: &&&SnapshotRecord| {
        record.kind == SnapshotKind::Undo
            && (record.state == SnapshotState::Ready || record.is_half_deleted())
    };
    let kept = all.iter().filter(is_left);
    let mut there: Vec<(&SnapshotRecord, u64)> = oldest_first(kept.copied())
        .into_iter()
        .filter_map(|record| Some((record, bytes_on(record, host)?)))
        .collect();
    let mut surplus = Vec::new();
    there.retain(|(record, _)| {
        let why = match record.expires_at.filter(|end| *end <= now) {
            _ if record.is_half_deleted() => HALF_DELETED.to_owned(),
            Some(end) => format!("it was kept for undo until {end}"),
            None => return true,
        };
        surplus.push((*record, why));
        false
    });
    let mut total = there.iter().map(|(_, bytes)| *bytes).fold(0, u64::saturating_add);
    for (record, bytes) in there {
        if total <= settings.max_total.get() {
            break;
        }
        total = total.saturating_sub(bytes);
        let most = settings.max_total;
        surplus.push((record, format!("undo snapshots may take {most} on {host}")));
    }
    surplus
}

/// Bytes that a snapshot's archive takes on a host; none where there is none.
fn bytes_on(record: &SnapshotRecord, host: &HostName) -> Option<u64> {
    let replica = record.replica_on(host);
    replica.map(|replica| replica.bytes.or(record.archive.bytes).unwrap_or(0))
}

#[cfg(test)]
mod tests;
