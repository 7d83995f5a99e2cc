//! Definition of a form: its fields, what stands below them, and what it asks for.

use super::field::{Field, Fields};
use crate::client::{
    ExtendRequest, GrantRequest, LabelRequest, PatchRequest, Request, RolloutRequest,
};
use crate::domain::OperationKind;
use crate::domain::Time;
use crate::domain::name::{SandboxId, SnapshotId};
use crate::tui::model::Role;

/// Lines below the fields: what would be done, and why not.
pub(crate) type Notes = Vec<(Role, String)>;

/// A verb that has a form.
pub(super) trait Definition {
    /// Title of the form.
    fn title(&self) -> String;

    /// The fields, as they are at first.
    fn fields(&self) -> Vec<Field>;

    /// Lines below the fields.
    fn notes(&self, fields: &Fields, now: Time) -> Notes;

    /// Request that is asked for; the sentence that says why nothing is.
    fn asked(&self, fields: &Fields) -> Result<Asked, String>;
}

/// Request of a form that is filled in.
#[derive(Debug, Clone, PartialEq)]
pub enum Asked {
    /// Operations, each a job.
    Jobs(Vec<NewJob>),
    /// A patch; the path that its script is read from, as typed, where it has a file.
    AddPatch(PatchRequest, Option<String>),
    /// A rollout of this snapshot's patches; and what it is called.
    RollOut(RolloutRequest, SnapshotId, String),
    /// A later deadline.
    Extend(ExtendRequest),
    /// More credits.
    Grant(GrantRequest),
    /// Labels, of each sandbox.
    Labels(Vec<LabelRequest>),
    /// The log of a service, or of all; so many lines of each.
    Log(Option<String>, u64),
    /// Path of a new file for what is kept of the log, as typed.
    SaveLog(String),
}

/// A job that is to be begun.
#[derive(Debug, Clone, PartialEq)]
pub struct NewJob {
    pub kind: OperationKind,
    /// The sandbox that it is on; none: it makes one.
    pub sandbox: Option<SandboxId>,
    /// Name of its target.
    pub title: String,
    pub request: Request,
}

/// An error in lines: the sentence, its causes, the hint.
pub(super) fn error_lines(sign: char, role: Role, error: &crate::client::Error) -> Notes {
    let mut notes = vec![(role, format!("{sign} {}", error.message))];
    notes.extend(error.causes.iter().map(|cause| (Role::Plain, format!("  {cause}"))));
    notes.extend(error.hint.iter().map(|hint| (Role::Key, format!("  {hint}"))));
    notes
}
