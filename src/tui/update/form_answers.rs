//! Answers to what forms asked for: a form closes when it was done or begun, and shows why it was not.

use std::path::Path;

use super::{Effect, credits, records, snapshots};
use crate::client::{Credits, Error, Extended, SnapshotDiff};
use crate::domain::name::SandboxId;
use crate::domain::patch::Patch;
use crate::domain::sandbox::SandboxRecord;
use crate::tui::model::{
    Comparison, EditLabels, Entry, Form, FormKind, FormState, JobId, Model, Role, many,
};

/// Closes the form that a job was asked for in: it was begun.
pub(super) fn begun(model: &mut Model, job: JobId) {
    model.close_form(|form| form.is_of(job));
}

/// Shows a refusal in the form that a job was asked for in; `false` if it is closed.
pub(super) fn refused(model: &mut Model, job: JobId, problem: &Error) -> bool {
    let form = model.form_where(|form| form.is_of(job));
    form.map(|form| form.refuse(problem.clone())).is_some()
}

/// Answer to a form's request; its form is closed then. None: it was refused, which the form shows, or a toast.
fn done<T>(model: &mut Model, number: u64, what: &str, answer: Result<T, Error>) -> Option<T> {
    let is_it = |form: &Form| form.number == number;
    match answer {
        Ok(done) => {
            model.close_form(is_it);
            Some(done)
        }
        Err(error) => {
            match model.form_where(is_it) {
                Some(form) => form.refuse(error),
                None => model.say(Role::Bad, format!("{what}: {}", error.message)),
            }
            None
        }
    }
}

/// A snapshot was compared with what it was taken of.
pub(super) fn compared(
    model: &mut Model,
    number: u64,
    answer: Result<Box<SnapshotDiff>, Error>,
) -> Vec<Effect> {
    if let Some(Form { kind: FormKind::Restore(restore), .. }) =
        model.form_where(|form| form.number == number)
    {
        restore.comparison = answer.map_or_else(Comparison::Failed, Comparison::Known);
    }
    Vec::new()
}

/// A deadline was moved, or that was refused. The row comes with the event.
pub(super) fn extended(
    model: &mut Model,
    number: u64,
    answer: Result<Box<Extended>, Error>,
) -> Vec<Effect> {
    if let Some(extended) = done(model, number, "not extended", answer) {
        let record = &extended.sandbox;
        let until =
            record.expires_at.map_or_else(|| "for ever".to_owned(), |at| format!("until {at}"));
        match &extended.unwritten {
            None => model.say(Role::Good, format!("{} lives {until}", record.title())),
            Some(error) => model.say(Role::Warn, error.message.clone()),
        }
    }
    Vec::new()
}

/// Credits were granted, or that was refused. The entry comes with the event.
pub(super) fn granted(
    model: &mut Model,
    number: u64,
    answer: Result<Credits, Error>,
) -> Vec<Effect> {
    let Some(sums) = done(model, number, "not granted", answer) else { return Vec::new() };
    model.say(Role::Good, format!("granted: the balance is {}", sums.balance_usd));
    credits::read(model)
}

/// A patch was added, or refused.
pub(super) fn patch_added(
    model: &mut Model,
    number: u64,
    answer: Result<Box<Patch>, Error>,
) -> Vec<Effect> {
    let Some(patch) = done(model, number, "the patch was not added", answer) else {
        return Vec::new();
    };
    let view = model.snapshots.get(&patch.snapshot_id);
    let title = view.map(|view| view.record.title().to_owned());
    let title = title.unwrap_or_else(|| patch.snapshot_id.to_string());
    let text = format!("patch {} is on {title}; it runs on the next wake", patch.sequence);
    model.say(Role::Good, text);
    snapshots::read(model)
}

/// A log was saved, or not.
pub(super) fn log_saved(
    model: &mut Model,
    number: u64,
    path: &Path,
    answer: Result<usize, Error>,
) -> Vec<Effect> {
    if let Some(count) = done(model, number, "the log was not saved", answer) {
        let lines = many(count, "line", "lines");
        model.say(Role::Good, format!("saved {lines} to {}", path.display()));
    }
    Vec::new()
}

/// Labels were written, or refused. The form closes when all are written.
pub(super) fn labelled(
    model: &mut Model,
    id: &SandboxId,
    answer: Result<Box<SandboxRecord>, Error>,
) -> Vec<Effect> {
    let outcome = answer.as_ref().map(|_| ()).map_err(Clone::clone);
    let mut effects = Vec::new();
    match answer {
        Ok(record) => records::take(model, Entry::new(*record)),
        Err(_) => effects.push(Effect::Get(id.clone())),
    }
    let Some(form) = model.form_where(is_of_labels) else {
        match outcome {
            Ok(()) => model.say(Role::Good, format!("the labels of {id} are written")),
            Err(problem) => model.say(Role::Bad, format!("{id}: {}", problem.message)),
        }
        return effects;
    };
    let FormKind::Labels(labels) = &mut form.kind else { return effects };
    labels.answered(id, &outcome);
    if !labels.is_writing() {
        form.state = FormState::Open;
    }
    if let Some(what) = all_written(labels, id) {
        model.close_form(is_of_labels);
        model.sandboxes.marks.clear();
        model.say(Role::Good, format!("the labels of {what} are written"));
    }
    effects
}

fn is_of_labels(form: &Form) -> bool {
    matches!(form.kind, FormKind::Labels(_))
}

/// Targets whose labels are all written; none while some are not.
fn all_written(labels: &EditLabels, id: &SandboxId) -> Option<String> {
    labels.is_written().then(|| match labels.targets.len() {
        1 => id.to_string(),
        count => format!("{count} sandboxes"),
    })
}
