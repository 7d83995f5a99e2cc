//! Differences between a snapshot and what it is compared with.

use super::role::Role;
use crate::client::SnapshotDiff;
use crate::domain::archive::TreeEntry;
use crate::domain::figures::bytes;
use crate::domain::request::Change;

/// Sign of a change, and how it is meant.
pub(crate) fn change_sign(change: &Change) -> (char, Role) {
    match change.change.as_str() {
        "added" => ('+', Role::Good),
        "removed" => ('-', Role::Bad),
        _ => ('~', Role::Warn),
    }
}

/// `3 added, 1 removed, 2 changed`.
pub(crate) fn change_counts(found: &SnapshotDiff) -> String {
    let (added, removed, changed) = (found.added, found.removed, found.changed);
    format!("{added} added, {removed} removed, {changed} changed")
}

/// `from snap-… to a1b2c3d4: 3 added, 1 removed, 2 changed, 1.2M more`.
pub(crate) fn totals(found: &SnapshotDiff) -> String {
    let bytes = match found.bytes {
        0 => "no bytes more or less".to_owned(),
        more if more > 0 => format!("{} more", bytes(more.unsigned_abs())),
        less => format!("{} less", bytes(less.unsigned_abs())),
    };
    format!("from {} to {}: {}, {bytes}", found.a, found.b, change_counts(found))
}

/// The size of what came or went; what differs of what changed.
pub(crate) fn particulars(change: &Change) -> String {
    match (&change.a, &change.b) {
        (Some(a), Some(b)) => {
            let told: Vec<_> = change.differs.iter().map(|what| differs(what, a, b)).collect();
            if told.is_empty() { String::new() } else { format!("  {}", told.join(", ")) }
        }
        (Some(one), None) | (None, Some(one)) => match (one.size, &one.target) {
            (_, Some(target)) => format!(" -> {target}"),
            (0, None) => String::new(),
            (size, None) => format!("  {}", bytes(size)),
        },
        (None, None) => String::new(),
    }
}

fn differs(what: &str, a: &TreeEntry, b: &TreeEntry) -> String {
    let target = |entry: &TreeEntry| entry.target.clone().unwrap_or_else(|| "nothing".to_owned());
    let (before, after) = match what {
        "kind" => (a.kind.to_string(), b.kind.to_string()),
        "mode" => (a.mode.clone(), b.mode.clone()),
        "owner" => (a.owner.clone(), b.owner.clone()),
        "size" => (bytes(a.size), bytes(b.size)),
        "modified" => (a.modified.clone(), b.modified.clone()),
        "target" => (target(a), target(b)),
        other => return other.to_owned(),
    };
    // Two sizes that are written alike differ by little: then their bytes are told.
    if before == after {
        return format!("{what} {} to {}B", a.size, b.size);
    }
    format!("{what} {before} to {after}")
}
