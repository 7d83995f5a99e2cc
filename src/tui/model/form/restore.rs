//! Form of a restore: what the new sandbox gets, and what differs from the one that the snapshot was taken of.

use super::definition::{Asked, Definition, NewJob, Notes};
use super::field::{Field, FieldKey, Fields};
use crate::client::{Error, Request, RestoreRequest, SnapshotDiff};
use crate::domain::name::SandboxId;
use crate::domain::{OperationKind, Time};
use crate::present::diff::{change_counts, change_sign};
use crate::tui::model::{Role, SnapshotTarget, age, bytes, caveat, many};

/// How many differences are listed.
const CHANGES: usize = 200;

/// Differences between a snapshot and what it was taken of, as far as they are known.
#[derive(Debug, Clone, PartialEq)]
pub enum Comparison {
    Asking,
    /// The answer.
    Known(Box<SnapshotDiff>),
    /// The differences could not be found out.
    Failed(Error),
}

/// A new sandbox from a snapshot.
#[derive(Debug, Clone)]
pub struct Restore {
    pub target: SnapshotTarget,
    pub hosts: Vec<String>,
    /// The differences.
    pub comparison: Comparison,
}

impl Definition for Restore {
    fn title(&self) -> String {
        format!("Restore {}", self.target.title())
    }

    fn fields(&self) -> Vec<Field> {
        let own = self.target.view.record.host.to_string();
        let strict = "fail when the host cannot set everything that the archive has";
        vec![
            Field::name("unique among sandboxes that are not destroyed"),
            Field::host(&self.hosts, &own, "another one gets a copy first"),
            Field::ttl("the profile's"),
            Field::toggle(FieldKey::Strict, strict),
            Field::toggle(FieldKey::RequirePatches, "fail when a patch fails"),
        ]
    }

    fn notes(&self, _fields: &Fields, now: Time) -> Notes {
        let view = &self.target.view;
        let record = &view.record;
        let archive = &record.archive;
        let size = archive.bytes.map(|size| format!("{}, ", bytes(size))).unwrap_or_default();
        let mode = archive.mode.as_ref().map(|mode| format!(", taken with mode {mode}"));
        let mode = mode.unwrap_or_default();
        let old = age(now.since(record.created_at).as_secs());
        let source = match &record.sandbox_name {
            Some(name) => format!("{} {name}", record.sandbox_id),
            None => record.sandbox_id.to_string(),
        };
        let mut notes = vec![(Role::Plain, format!("{size}{old} old, of {source}{mode}"))];
        let warnings = self.target.silent.iter().cloned().chain(caveat(view));
        notes.extend(warnings.map(|words| (Role::Warn, format!("⚠ {words}"))));
        for volume in &archive.not_captured {
            notes.push((Role::Warn, format!("  not captured: {}: {}", volume.name, volume.reason)));
        }
        notes.push(match view.patches.len() {
            0 => (Role::Dim, "no patches: it starts as it was".to_owned()),
            count => {
                let patches = many(count, "patch", "patches");
                (Role::Plain, format!("gets {patches} before it is ready:"))
            }
        });
        for patch in &view.patches {
            let about = patch.description.as_deref().unwrap_or("no description");
            let (sequence, run_in) = (patch.sequence, &patch.run_in);
            notes.push((Role::Plain, format!("  {sequence} {about}  (in {run_in})")));
        }
        notes.extend(match &self.comparison {
            Comparison::Asking => {
                vec![(Role::Dim, "comparing it with what it was taken of…".to_owned())]
            }
            Comparison::Failed(problem) => {
                vec![(Role::Dim, format!("cannot be compared: {}", problem.message))]
            }
            Comparison::Known(diff) => differences(diff, &record.sandbox_id),
        });
        notes
    }

    fn asked(&self, fields: &Fields) -> Result<Asked, String> {
        let name = fields.value(&FieldKey::Name);
        let record = &self.target.view.record;
        let called = name.as_ref().map(|name| format!("{name} ")).unwrap_or_default();
        let request = Request::Restore(RestoreRequest {
            snapshot: self.target.id().to_string(),
            revision: Some(record.revision),
            host: fields.value(&FieldKey::Host),
            ttl: fields.value(&FieldKey::Ttl),
            name,
            require_patches: fields.is_yes(&FieldKey::RequirePatches),
            strict: fields.is_yes(&FieldKey::Strict),
        });
        let title = format!("{called}from {}", record.title());
        let kind = OperationKind::Restore;
        Ok(Asked::Jobs(vec![NewJob { kind, sandbox: None, title, request }]))
    }
}

fn differences(diff: &SnapshotDiff, source: &SandboxId) -> Notes {
    let mut notes = Notes::new();
    let what =
        if diff.b == source.as_str() { format!("{source} as it is now") } else { diff.b.clone() };
    if diff.added + diff.removed + diff.changed == 0 {
        notes.push((Role::Good, format!("✓ the same files as in {what}")));
    } else {
        let sign = if diff.bytes < 0 { '-' } else { '+' };
        let grown = bytes(diff.bytes.unsigned_abs());
        let counts = change_counts(diff);
        notes.push((Role::Plain, format!("since then, in {what}: {counts}, {sign}{grown}")));
    }
    for change in diff.changes.iter().take(CHANGES) {
        let (glyph, role) = change_sign(change);
        let differs = change.differs.join(", ");
        notes.push((role, format!("  {glyph} {}  {differs}", change.path)));
    }
    if diff.changes.len() > CHANGES || diff.truncated {
        let command = format!("sandboxer snapshots diff {}", diff.a);
        notes.push((Role::Dim, format!("  and more: `{command}` shows them")));
    }
    notes.extend(diff.notes.iter().map(|note| (Role::Warn, format!("  {note}"))));
    notes
}
