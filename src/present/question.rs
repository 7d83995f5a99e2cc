//! Questions before a destructive verb: a line for each of its subjects, with all that speaks against it.

use crate::domain::figures::{age_of, bytes};
use crate::domain::lineage::SnapshotView;
use crate::domain::patch::Patch;
use crate::domain::stale::StaleItem;
use crate::domain::text::clean_line;
use crate::domain::{SandboxRecord, Time};

/// The longest name of something on a host that is shown in a question, in columns.
const NAME: usize = 64;

/// Subjects of a question: a line for each, with its full id.
pub(crate) struct Subjects {
    /// Noun of one of them: `sandbox`; of several: `sandboxes`.
    pub(crate) nouns: [&'static str; 2],
    pub(crate) lines: Vec<String>,
}

/// The subjects of a question about sandboxes.
pub(crate) fn sandboxes(records: &[&SandboxRecord], now: Time) -> Subjects {
    let line = |record: &&SandboxRecord| {
        let name = record.name.as_deref().map(|name| format!("{name}, ")).unwrap_or_default();
        let protected = if record.is_protected() { ", PROTECTED" } else { "" };
        format!(
            "{}  ({name}{} on {}, {}, {} old{protected})",
            record.id,
            record.profile.id,
            record.host,
            record.state,
            age_of(record.created_at, now)
        )
    };
    Subjects { nouns: ["sandbox", "sandboxes"], lines: records.iter().map(line).collect() }
}

/// The subjects of a question about snapshots: what depends on each is said too.
pub(crate) fn snapshots(views: &[&SnapshotView], now: Time) -> Subjects {
    let line = |view: &&SnapshotView| {
        let record = &view.record;
        let name = record.name.as_deref().map(|name| format!("{name}, ")).unwrap_or_default();
        let bytes =
            record.archive.bytes.map(|size| format!("{}, ", bytes(size))).unwrap_or_default();
        let hosts = record.hosts().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let depends = match view.dependants() {
            none if none.is_empty() => String::new(),
            some => format!(", IN USE by {}", some.join(", ")),
        };
        let about = format!(
            "{name}{bytes}of {} on {hosts}, {} old",
            record.sandbox_id,
            age_of(record.created_at, now)
        );
        format!("{}  ({about}{depends})", record.id)
    };
    Subjects { nouns: ["snapshot", "snapshots"], lines: views.iter().map(line).collect() }
}

/// The subject of a question about an owner's id.
pub(crate) fn owner(id: &str) -> Subjects {
    Subjects { nouns: ["owner", "owners"], lines: vec![id.to_owned()] }
}

/// The subject of a question about a patch of a snapshot: who waits for it is said too.
pub(crate) fn patch(patch: &Patch, view: &SnapshotView, now: Time) -> Subjects {
    let record = &view.record;
    let named = record.name.as_deref().map(|name| format!("{name}, ")).unwrap_or_default();
    let text = patch.description.as_deref().map(|text| format!(", {text}")).unwrap_or_default();
    let waiting = view.sandboxes.iter().filter(|sandbox| sandbox.owes.contains(&patch.sequence));
    let waiting: Vec<_> =
        waiting.map(|one| one.name.as_deref().unwrap_or(one.id.as_str())).collect();
    let pending = if waiting.is_empty() {
        String::new()
    } else {
        format!(", OWED by {}", waiting.join(", "))
    };
    let about = format!(
        "{} of {named}{}, {} old{text}{pending}",
        patch.sequence,
        record.id,
        age_of(patch.created_at, now)
    );
    Subjects { nouns: ["patch", "patches"], lines: vec![format!("{}  ({about})", patch.id)] }
}

/// The subjects of a question about stale things: what is done about each, and why.
pub(crate) fn stale(items: &[&StaleItem]) -> Subjects {
    let line = |item: &&StaleItem| {
        // A name on a host may be anybody's, and must not push the reason out of the line.
        let name = item.name.as_deref().map(|name| format!("{}, ", clean_line(name, NAME)));
        let name = name.unwrap_or_default();
        let size = item.bytes.map(|size| format!("{}, ", bytes(size))).unwrap_or_default();
        format!(
            "{}  {}  ({name}{} on {}, {size}{})",
            item.id(),
            item.action,
            item.class,
            item.host,
            item.why
        )
    };
    Subjects { nouns: ["item", "items"], lines: items.iter().map(line).collect() }
}
