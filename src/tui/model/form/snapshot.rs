//! Form of a snapshot, of one sandbox or of several.

use super::definition::{Asked, Definition, NewJob, Notes};
use super::field::{Field, FieldKey, Fields};
use crate::client::{Request, SnapshotRequest};
use crate::domain::{OperationKind, Time};
use crate::tui::model::{Role, Target};

/// Promise of each mode.
const MODES: [(&str, &str); 3] = [
    ("pause", "containers stand still while it is read"),
    ("live", "nothing stops; files may change while they are read, and that is noted"),
    ("stop", "containers are stopped, and started again after"),
];

/// A snapshot of each of these, but of those that are left out.
#[derive(Debug, Clone)]
pub struct TakeSnapshot {
    pub targets: Vec<Target>,
}

impl TakeSnapshot {
    fn taken(&self) -> impl Iterator<Item = &Target> {
        self.targets.iter().filter(|target| target.left_out.is_none())
    }
}

impl Definition for TakeSnapshot {
    fn title(&self) -> String {
        match self.targets.as_slice() {
            [only] => format!("Snapshot of {}", only.title()),
            all => format!("Snapshots of {} sandboxes", all.len()),
        }
    }

    fn fields(&self) -> Vec<Field> {
        let mut fields = Vec::new();
        // Only one alone gets a name.
        if self.taken().count() == 1 {
            fields.push(Field::name("unique among snapshots"));
        }
        let modes = MODES.iter().map(|(mode, _)| (*mode).to_owned()).collect();
        let default = "default: the profile's, else pause where the runtime can";
        fields.push(Field::choice(FieldKey::Mode, modes, default, "left and right choose"));
        fields
    }

    fn notes(&self, fields: &Fields, _now: Time) -> Notes {
        let chosen = fields.value(&FieldKey::Mode);
        let mut notes = Notes::new();
        for (mode, promise) in MODES {
            let role = if chosen.as_deref() == Some(mode) { Role::Accent } else { Role::Dim };
            notes.push((role, format!("{mode}: {promise}")));
        }
        for target in &self.targets {
            let title = target.title();
            notes.push(match &target.left_out {
                Some(reason) => (Role::Warn, format!("{title}  left out: {reason}")),
                None => (Role::Plain, format!("{title}  {} on {}", target.state, target.host)),
            });
            notes.extend(target.silent.iter().map(|silent| (Role::Warn, format!("  ⚠ {silent}"))));
        }
        let read =
            "The workspace and its volumes are read on the host, and stay there as one archive.";
        notes.push((Role::Dim, read.to_owned()));
        notes
    }

    fn asked(&self, fields: &Fields) -> Result<Asked, String> {
        let job = |target: &Target| NewJob {
            kind: OperationKind::Snapshot,
            sandbox: Some(target.id.clone()),
            title: target.called(),
            request: Request::Snapshot(SnapshotRequest {
                id: target.id.to_string(),
                revision: Some(target.revision),
                name: fields.value(&FieldKey::Name),
                mode: fields.value(&FieldKey::Mode),
            }),
        };
        Ok(Asked::Jobs(self.taken().map(job).collect()))
    }
}
