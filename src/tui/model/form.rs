//! Form. Fields, what stands below them, and what they ask for; each verb that has one is a definition.

mod create;
mod definition;
mod extend;
mod field;
mod grant;
mod label_changes;
mod labels;
mod layout;
mod logs;
mod patch;
mod restore;
mod snapshot;

use std::sync::Arc;

pub use create::{Create, Plan};
pub(crate) use definition::{Asked, NewJob, Notes};
pub(crate) use extend::Extend;
pub use field::Fields;
pub(crate) use field::{Field, FieldKind};
pub(crate) use grant::Grant;
pub(crate) use labels::EditLabels;
pub(crate) use layout::FormLayout;
pub(crate) use logs::{LogOptions, SaveLog};
pub(crate) use patch::{AddPatch, RollOut, Script};
pub(crate) use restore::{Comparison, Restore};
pub(crate) use snapshot::TakeSnapshot;

use definition::Definition;

use super::Role;
use super::area::Area;
use super::job::JobId;
use crate::client::Error;
use crate::domain::Time;
use crate::domain::lineage::SnapshotView;

/// Purpose of a form.
#[derive(Debug, Clone)]
pub enum FormKind {
    /// A new sandbox.
    Create(Box<Create>),
    Snapshot(TakeSnapshot),
    /// A new sandbox from a snapshot.
    Restore(Box<Restore>),
    /// A patch on a snapshot.
    AddPatch(AddPatch),
    /// The patches of a snapshot onto the sandboxes based on it.
    RollOut(RollOut),
    /// A later deadline.
    Extend(Extend),
    /// More credits.
    Grant(Grant),
    Labels(Box<EditLabels>),
    /// Which part of a log is asked for.
    LogOptions(LogOptions),
    /// A file for a log.
    SaveLog(SaveLog),
}

impl FormKind {
    fn definition(&self) -> &dyn Definition {
        match self {
            Self::Create(create) => create.as_ref(),
            Self::Snapshot(snapshot) => snapshot,
            Self::Restore(restore) => restore.as_ref(),
            Self::AddPatch(patch) => patch,
            Self::RollOut(rollout) => rollout,
            Self::Extend(extend) => extend,
            Self::Grant(grant) => grant,
            Self::Labels(labels) => labels.as_ref(),
            Self::LogOptions(options) => options,
            Self::SaveLog(save) => save,
        }
    }
}

/// How far a form has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FormState {
    /// The operator fills it in.
    Open,
    /// Asked for and not answered; the job that it was asked in, where it is one.
    Asked(Option<JobId>),
}

#[derive(Debug, Clone)]
pub struct Form {
    /// Its number, by which a late answer is recognised.
    pub number: u64,
    /// Its purpose.
    pub kind: FormKind,
    pub fields: Fields,
    /// How far it has come.
    pub state: FormState,
    /// An error that belongs to no field.
    pub error: Option<Error>,
    /// The first line on the screen of what stands below the fields.
    pub offset: usize,
    /// Whether it was on the screen.
    pub drawn: bool,
}

impl Form {
    pub(super) fn new(number: u64, kind: FormKind) -> Self {
        let fields = Fields::new(kind.definition().fields());
        let mut form = Self {
            number,
            kind,
            fields,
            state: FormState::Open,
            error: None,
            offset: 0,
            drawn: false,
        };
        form.changed();
        form
    }

    pub fn title(&self) -> String {
        self.kind.definition().title()
    }

    /// Words for its keys: enter, the one that leaves, and the one that looks again.
    pub fn verbs(&self) -> (&'static str, &'static str, Option<&'static str>) {
        match &self.kind {
            FormKind::Create(_) => ("create", "other profile", Some("preview")),
            FormKind::Snapshot(_) => ("take it", "leave", None),
            FormKind::Restore(_) => ("restore", "leave", Some("compare again")),
            FormKind::AddPatch(_) => ("add it", "leave", None),
            FormKind::RollOut(_) => ("apply", "leave", None),
            FormKind::Extend(_) => ("extend", "leave", None),
            FormKind::Grant(_) => ("grant", "leave", None),
            FormKind::Labels(labels) => {
                ("write", "leave", labels.refused().next().map(|_| "look again"))
            }
            FormKind::LogOptions(_) => ("read it", "leave", None),
            FormKind::SaveLog(_) => ("save", "leave", None),
        }
    }

    /// Request that it asks for; the sentence that says why it asks for nothing.
    pub fn asked(&self) -> Result<Asked, String> {
        self.kind.definition().asked(&self.fields)
    }

    /// Whether it was asked for and not answered.
    pub fn is_asked(&self) -> bool {
        self.state != FormState::Open
    }

    /// Whether it was asked for in this job.
    pub fn is_of(&self, job: JobId) -> bool {
        self.state == FormState::Asked(Some(job))
    }

    /// A value is another one: what was said of the one before is not said of it.
    pub fn changed(&mut self) {
        self.error = None;
        if let FormKind::Create(create) = &self.kind {
            create.tell_verdict(&mut self.fields);
        }
    }

    /// Takes what was typed in fields of the same name.
    pub fn take_over(&mut self, typed: &[Field]) {
        for field in &mut self.fields.list {
            if let Some(old) = typed.iter().find(|old| old.key == field.key) {
                field.input = old.input.clone();
            }
        }
        self.fields.check_all(false);
        self.changed();
    }

    /// Shows a refusal: beside the field that it names, which gets the focus, else below the fields.
    pub fn refuse(&mut self, problem: Error) {
        (self.state, self.offset) = (FormState::Open, 0);
        self.error = self.fields.refuse(problem);
    }

    /// The snapshot that it shows. What was asked for already is what was seen then.
    pub fn snapshot_mut(&mut self) -> Option<&mut Arc<SnapshotView>> {
        match &mut self.kind {
            FormKind::AddPatch(patch) => Some(&mut patch.view),
            FormKind::RollOut(rollout) => Some(&mut rollout.view),
            FormKind::Restore(restore) if self.state == FormState::Open => {
                Some(&mut restore.target.view)
            }
            _ => None,
        }
    }

    /// Lines below the fields.
    pub fn notes(&self, now: Time) -> Notes {
        let mut notes = Notes::new();
        if self.is_asked() {
            notes.push((Role::Busy, "◐ asking for it…".to_owned()));
        }
        if let Some(problem) = &self.error {
            notes.extend(definition::error_lines('✗', Role::Bad, problem));
        }
        let is_said = match &self.kind {
            // Why a create is refused is why it could not be planned.
            FormKind::Create(create) => self.error.is_some() && create.is_refused(),
            _ => false,
        };
        if !is_said {
            notes.extend(self.kind.definition().notes(&self.fields, now));
        }
        notes
    }

    /// Where its parts are.
    pub fn layout(&self, area: Area, now: Time) -> FormLayout {
        FormLayout::new(area, &self.fields, &self.notes(now), self.offset)
    }
}
