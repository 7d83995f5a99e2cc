//! Forms of a new patch on a snapshot, and of the rollout of its patches.

use std::sync::Arc;

use super::definition::{Asked, Definition, Notes};
use super::field::{Field, FieldKey, Fields};
use crate::client::{PatchRequest, RolloutRequest};
use crate::domain::Time;
use crate::domain::lineage::{BasedOn, SnapshotView};
use crate::domain::name::SandboxId;
use crate::domain::patch::{self, RUN_IN_WORKSPACE};
use crate::domain::sandbox::State;
use crate::tui::model::{Role, is_blocked, many};

/// Where a new patch's script comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Script {
    /// From the file that a field names.
    File,
    /// Script as it was written in the editor.
    Written(String),
}

/// A patch on a snapshot.
#[derive(Debug, Clone)]
pub struct AddPatch {
    pub view: Arc<SnapshotView>,
    /// Where its script comes from.
    pub script: Script,
}

impl Definition for AddPatch {
    fn title(&self) -> String {
        format!("A patch on {}", self.view.record.title())
    }

    fn fields(&self) -> Vec<Field> {
        let mut fields = Vec::new();
        if self.script == Script::File {
            fields.push(Field::path(FieldKey::Script, "a file on this machine, at most 96 KiB"));
        }
        let run_in = "workspace: on the host, in the workspace; or a service's name";
        fields.extend([
            Field::text(FieldKey::Description, "none", "what it is for, in a few words").checked(
                |value| {
                    let checked = patch::check("true", RUN_IN_WORKSPACE, Some(value));
                    checked.map_err(|error| error.message)
                },
            ),
            Field::text(FieldKey::RunIn, RUN_IN_WORKSPACE, run_in)
                .checked(|value| patch::check("true", value, None).map_err(|error| error.message)),
        ]);
        fields
    }

    fn notes(&self, _fields: &Fields, _now: Time) -> Notes {
        let view = &self.view;
        let mut notes = Notes::new();
        if let Script::Written(text) = &self.script {
            let count = many(text.lines().count(), "line", "lines");
            notes.push((Role::Dim, format!("the script has {count}:")));
            notes.extend(text.lines().take(5).map(|line| (Role::Code, format!("  {line}"))));
        }
        let sequence = view.record.next_patch_sequence;
        let restores = "whatever is restored from it gets it too";
        let who = if view.sandboxes.is_empty() {
            format!("No sandbox is based on the snapshot now; {restores}.")
        } else {
            let count = many(view.sandboxes.len(), "sandbox gets", "sandboxes get");
            format!("Nothing runs now: {count} it on the next wake, {restores}:")
        };
        notes.push((Role::Plain, format!("It becomes patch {sequence}. {who}")));
        for sandbox in &view.sandboxes {
            let name = sandbox.name.as_deref().unwrap_or("—");
            let (role, blocked) = if is_blocked(sandbox) {
                (Role::Warn, ", but only once the patch that failed there is out of the way")
            } else {
                (Role::Good, "")
            };
            notes.push((role, format!("  … {} {name}  {}{blocked}", sandbox.id, sandbox.state)));
        }
        let never = match view.children.len() {
            0 => "Snapshots taken of those never get it, nor what is based on them".to_owned(),
            count => {
                let taken = many(count, "snapshot", "snapshots");
                format!("Never: {taken} taken of those, and what is based on them")
            }
        };
        let source = &view.record.sandbox_id;
        notes.push((Role::Dim, format!("{never}; nor does {source}, from which it was taken.")));
        notes
    }

    /// The script is read from its file later, where there is one.
    fn asked(&self, fields: &Fields) -> Result<Asked, String> {
        let request = PatchRequest {
            snapshot: self.view.record.id.to_string(),
            script: match &self.script {
                Script::File => String::new(),
                Script::Written(text) => text.clone(),
            },
            description: fields.value(&FieldKey::Description),
            run_in: fields.value(&FieldKey::RunIn),
        };
        Ok(Asked::AddPatch(request, fields.value(&FieldKey::Script)))
    }
}

/// A rollout of a snapshot's patches onto the sandboxes based on it.
#[derive(Debug, Clone)]
pub struct RollOut {
    pub view: Arc<SnapshotView>,
    /// Protected ones of its sandboxes: they are passed over.
    pub protected: Vec<SandboxId>,
}

impl RollOut {
    /// Line on what becomes of a sandbox.
    fn line(&self, sandbox: &BasedOn) -> (Role, String) {
        let owes: Vec<String> = sandbox.owes.iter().map(ToString::to_string).collect();
        let owes = owes.join(", ");
        let blocked = is_blocked(sandbox);
        if owes.is_empty() && !blocked {
            (Role::Dim, "has them all".to_owned())
        } else if self.protected.contains(&sandbox.id) {
            (Role::Warn, "passed over: it is protected".to_owned())
        } else if sandbox.state == State::Sleeping && !blocked {
            (Role::Plain, format!("sleeps: gets {owes} when it wakes"))
        } else if sandbox.state != State::Ready {
            (Role::Warn, format!("passed over: it is {}", sandbox.state))
        } else if let Some(error) = sandbox.patch_error.as_ref().filter(|_| blocked) {
            (Role::Bad, format!("stops it: {error}"))
        } else {
            (Role::Plain, format!("gets {owes}"))
        }
    }
}

impl Definition for RollOut {
    fn title(&self) -> String {
        format!("Apply the patches of {}", self.view.record.title())
    }

    fn fields(&self) -> Vec<Field> {
        let help = "so many first; the rest when all went well";
        let count = |value: &str| match value.parse::<u32>() {
            Ok(1..) => Ok(()),
            _ => Err("a number from 1 on; empty: all at once".to_owned()),
        };
        vec![Field::text(FieldKey::Canary, "all at once", help).checked(count).with("1")]
    }

    fn notes(&self, _fields: &Fields, _now: Time) -> Notes {
        let mut notes = Notes::new();
        let pending =
            |sandbox: &&BasedOn| !sandbox.owes.is_empty() && sandbox.state == State::Ready;
        let mut pending = self.view.sandboxes.iter().filter(pending);
        if pending.all(|sandbox| self.protected.contains(&sandbox.id)) {
            let words = "No sandbox that is ready has to get any: there is nothing to apply.";
            notes.push((Role::Warn, words.to_owned()));
        }
        for sandbox in &self.view.sandboxes {
            let name = sandbox.name.as_deref().unwrap_or("—");
            let (role, what) = self.line(sandbox);
            notes.push((role, format!("  {} {name}  {}  {what}", sandbox.id, sandbox.state)));
        }
        let words = "They run now. It stops at the first failure: no other sandbox is begun then.";
        notes.push((Role::Dim, words.to_owned()));
        notes
    }

    /// To those that were shown to get something, of the patches that were shown.
    fn asked(&self, fields: &Fields) -> Result<Asked, String> {
        let record = &self.view.record;
        let ready = self.view.sandboxes.iter().filter(|sandbox| sandbox.state == State::Ready);
        let request = RolloutRequest {
            snapshot: record.id.to_string(),
            revision: Some(record.revision),
            sandboxes: Some(ready.map(|sandbox| sandbox.id.clone()).collect()),
            canary: fields.value(&FieldKey::Canary).and_then(|count| count.parse().ok()),
        };
        Ok(Asked::RollOut(request, record.id.clone(), format!("patches of {}", record.title())))
    }
}
