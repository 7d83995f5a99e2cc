//! Forms of the verbs on snapshots: opened on frozen targets, filled in, asked for.

use std::sync::Arc;

use crossterm::event::{KeyCode, KeyEvent};

use super::{Effect, confirm, credits, fields, keys, patches, snapshots};
use crate::client::{Credits, Error, Extended, Request, SnapshotDiff, SnapshotDiffRequest};
use crate::domain::OperationKind;
use crate::domain::extension::Capability;
use crate::domain::name::SandboxId;
use crate::domain::patch::Patch;
use crate::domain::text::expand_home;
use crate::tui::keymap::Action;
use crate::tui::model::{
    ActionForm, ActionFormKind, Comparison, FieldKey, JobId, Load, Model, Overlay, Pane, Role,
    Script, Target,
};

/// How far a page key scrolls what stands below the fields.
const PAGE: usize = 5;

fn push(model: &mut Model, action_form: ActionForm) {
    model.last_action_form = action_form.number;
    model.overlays.push(Overlay::ActionForm(Box::new(action_form)));
}

fn next(model: &Model) -> u64 {
    model.last_action_form + 1
}

fn top(model: &mut Model) -> Option<&mut ActionForm> {
    match model.overlays.last_mut() {
        Some(Overlay::ActionForm(action_form)) => Some(action_form),
        _ => None,
    }
}

/// The form of a number, wherever it lies.
fn numbered(model: &mut Model, number: u64) -> Option<&mut ActionForm> {
    model.overlays.iter_mut().find_map(|overlay| match overlay {
        Overlay::ActionForm(action_form) if action_form.number == number => {
            Some(action_form.as_mut())
        }
        _ => None,
    })
}

/// Opens the form of a snapshot, of the marked sandboxes or the one that is pointed at.
pub(super) fn open_snapshot(model: &mut Model) -> Vec<Effect> {
    let entries = match model.overlays.last() {
        None if model.focus == Pane::Sandboxes => model.sandboxes.targets(),
        _ => model.pointed_sandbox().cloned().into_iter().collect(),
    };
    if entries.is_empty() {
        model.say(Role::Dim, "there is no sandbox here: a snapshot is taken of one");
        return Vec::new();
    }
    let bulk = entries.len() > 1;
    let freeze = |entry: &Arc<crate::tui::model::Entry>| {
        let mut target = confirm::freeze(model, entry);
        target.left_out = model.cannot(&entry.record.extension, &Capability::Snapshots);
        target
    };
    let targets: Vec<Target> = entries.iter().map(freeze).collect();
    if let Some(reason) =
        targets.iter().find_map(|target| target.left_out.clone()).filter(|_| !bulk)
    {
        model.say(Role::Warn, format!("snapshot: {reason}"));
        return Vec::new();
    }
    let action_form = ActionForm::snapshot(next(model), targets);
    push(model, action_form);
    Vec::new()
}

/// Opens the form of a restore, from the snapshot that is pointed at.
pub(super) fn open_restore(model: &mut Model) -> Vec<Effect> {
    let Some(view) = model.pointed_snapshot().cloned() else {
        model.say(Role::Dim, "a restore is from a snapshot: put the cursor on one in their pane");
        return Vec::new();
    };
    let record = &view.record;
    if record.state != crate::domain::snapshot::SnapshotState::Ready {
        model.say(Role::Warn, format!("restore: {} is {}", record.title(), record.state));
        return Vec::new();
    }
    let hosts: Vec<String> =
        model.hosts.list.iter().map(|host| host.view.name.to_string()).collect();
    let action_form = ActionForm::restore(next(model), snapshots::freeze(model, &view), &hosts);
    let number = action_form.number;
    push(model, action_form);
    vec![compare(number, record.id.to_string())]
}

fn compare(number: u64, snapshot: String) -> Effect {
    Effect::Compare(number, SnapshotDiffRequest { a: snapshot, b: None })
}

/// Opens the form of a new patch over the patches of a snapshot.
pub(super) fn open_patch(model: &mut Model, script: Script) -> Vec<Effect> {
    let Some(view) = patches::snapshot(model) else { return Vec::new() };
    let action_form = ActionForm::add_patch(next(model), &view, script);
    push(model, action_form);
    Vec::new()
}

/// Opens the form of a rollout over the patches of a snapshot.
pub(super) fn open_rollout(model: &mut Model) -> Vec<Effect> {
    let Some(view) = patches::snapshot(model) else { return Vec::new() };
    let protected =
        |id: &&SandboxId| model.sandboxes.get(id).is_some_and(|entry| entry.record.is_protected());
    let protected =
        view.sandboxes.iter().map(|sandbox| &sandbox.id).filter(protected).cloned().collect();
    let action_form = ActionForm::roll_out(next(model), &view, protected);
    push(model, action_form);
    Vec::new()
}

/// Opens the form of a later deadline, of the sandbox that is pointed at.
pub(super) fn open_extend(model: &mut Model) -> Vec<Effect> {
    let Some(entry) = model.pointed_sandbox() else {
        model.say(Role::Dim, "there is no sandbox here: a deadline is one's");
        return Vec::new();
    };
    let record = Arc::clone(&entry.record);
    if record.expires_at.is_none() {
        model.say(Role::Warn, format!("extend: {} has no deadline", record.title()));
        return Vec::new();
    }
    let action_form = ActionForm::extend(next(model), record);
    push(model, action_form);
    Vec::new()
}

/// Opens the form of a grant.
pub(super) fn open_grant(model: &mut Model) -> Vec<Effect> {
    let known = model.credits.load == Load::Ready;
    let balance = known.then_some(model.credits.ledger.sums.balance_usd);
    let action_form = ActionForm::grant(next(model), balance);
    push(model, action_form);
    Vec::new()
}

/// A key of the table.
pub(super) fn act(model: &mut Model, action: Action, key: &KeyEvent) -> Vec<Effect> {
    let home = model.home.clone();
    let Some(action_form) = top(model) else { return Vec::new() };
    if let Some(effect) = fields::complete(&action_form.fields, home.as_deref(), key)
        .filter(|_| !action_form.submitting)
    {
        model.held = Some(Vec::new());
        return vec![effect];
    }
    match action {
        // While it is asked for, leaving would hide the answer.
        _ if action_form.submitting => {}
        Action::Leave => drop(model.overlays.pop()),
        Action::Preview => {
            if let ActionFormKind::Restore(target, comparison) = &mut action_form.about {
                *comparison = Comparison::Asking;
                return vec![compare(action_form.number, target.id().to_string())];
            }
        }
        Action::Submit if !action_form.drawn => keys::say_undrawn(model),
        Action::Submit => return submit(model),
        _ if fields::act(&mut action_form.fields, action, key) => action_form.error = None,
        _ => {}
    }
    Vec::new()
}

/// A key that edits the focused field, or scrolls what stands below.
pub(super) fn text(model: &mut Model, key: &KeyEvent) -> Vec<Effect> {
    let now = model.now;
    let Some(action_form) = top(model) else { return Vec::new() };
    match key.code {
        KeyCode::PageDown => {
            action_form.offset =
                (action_form.offset + PAGE).min(action_form.lines(now).len().saturating_sub(1));
        }
        KeyCode::PageUp => action_form.offset = action_form.offset.saturating_sub(PAGE),
        _ if !action_form.submitting && fields::text(&mut action_form.fields, key) => {
            action_form.error = None;
        }
        _ => {}
    }
    Vec::new()
}

/// Pasted text goes into the focused field.
pub(super) fn paste(model: &mut Model, text: &str) -> Vec<Effect> {
    if let Some(action_form) = top(model).filter(|action_form| !action_form.submitting)
        && fields::paste(&mut action_form.fields, text)
    {
        action_form.error = None;
    }
    Vec::new()
}

/// Asks for it, if every field is well.
fn submit(model: &mut Model) -> Vec<Effect> {
    let Some(action_form) = top(model) else { return Vec::new() };
    if !action_form.fields.are_ready() {
        return Vec::new();
    }
    action_form.error = None;
    let asked = action_form.clone();
    match &asked.about {
        ActionFormKind::Snapshot(targets) => submit_snapshots(model, &asked, targets),
        ActionFormKind::Restore(target, _) => {
            let request = asked.restore_request(target);
            let name = request.name.as_ref().map(|name| format!("{name} ")).unwrap_or_default();
            let title = format!("{name}from {}", target.view.record.title());
            let job = model.jobs.start(OperationKind::Restore, None, title, model.now);
            wait_for(model, Some(job));
            vec![Effect::Start(job, Request::Restore(request))]
        }
        ActionFormKind::AddPatch(view, script) => {
            wait_for(model, None);
            let home = model.home.as_deref();
            let file = asked.fields.value(&FieldKey::Script).map(|path| expand_home(&path, home));
            let file = file.filter(|_| *script == Script::File);
            vec![Effect::AddPatch(asked.number, asked.patch_request(view, script), file)]
        }
        ActionFormKind::Extend(record) => {
            wait_for(model, None);
            vec![Effect::Extend(asked.number, asked.extend_request(record))]
        }
        ActionFormKind::Grant(_) => {
            let Some(request) = asked.grant_request() else { return Vec::new() };
            wait_for(model, None);
            vec![Effect::Grant(asked.number, request)]
        }
        ActionFormKind::RollOut(view, _) => {
            let title = format!("patches of {}", view.record.title());
            let id = view.record.id.clone();
            let job = model.jobs.start_on(OperationKind::Patch, id, title, model.now);
            model.overlays.pop();
            vec![Effect::RollOut(job, asked.rollout_request(view))]
        }
    }
}

/// One alone keeps its form until the client answered, so that a name that is taken stands beside its field.
fn submit_snapshots(
    model: &mut Model,
    action_form: &ActionForm,
    targets: &[Target],
) -> Vec<Effect> {
    let taken: Vec<&Target> = targets.iter().filter(|target| target.left_out.is_none()).collect();
    let mut effects = Vec::new();
    for target in &taken {
        let job = model.jobs.start(
            OperationKind::Snapshot,
            Some(target.id.clone()),
            target.called(),
            model.now,
        );
        effects.push(Effect::Start(job, Request::Snapshot(action_form.snapshot_request(target))));
        if taken.len() == 1 {
            wait_for(model, Some(job));
        }
    }
    if taken.len() != 1 {
        model.overlays.pop();
        model.sandboxes.clear_marks();
    }
    effects
}

fn wait_for(model: &mut Model, job: Option<JobId>) {
    if let Some(action_form) = top(model) {
        (action_form.submitting, action_form.job) = (true, job);
    }
}

/// Closes the form that a job was asked for in: it was begun.
pub(super) fn begun(model: &mut Model, job: JobId) {
    model
        .overlays
        .retain(|overlay| !matches!(overlay, Overlay::ActionForm(action_form) if action_form.job == Some(job)));
}

/// Shows a refusal in the form that a job was asked for in; `false` if it is closed.
pub(super) fn refused(model: &mut Model, job: JobId, problem: &Error) -> bool {
    let of_job = |overlay: &mut Overlay| match overlay {
        Overlay::ActionForm(action_form) if action_form.job == Some(job) => {
            Some(action_form.number)
        }
        _ => None,
    };
    let Some(number) = model.overlays.iter_mut().find_map(of_job) else { return false };
    refuse(model, number, problem.clone());
    true
}

fn refuse(model: &mut Model, number: u64, problem: Error) {
    if let Some(action_form) = numbered(model, number) {
        (action_form.submitting, action_form.job, action_form.offset) = (false, None, 0);
        action_form.error = action_form.fields.refuse(problem);
    }
}

/// A snapshot was compared with what it was taken of.
pub(super) fn compared(
    model: &mut Model,
    number: u64,
    answer: Result<Box<SnapshotDiff>, Error>,
) -> Vec<Effect> {
    if let Some(ActionForm { about: ActionFormKind::Restore(_, comparison), .. }) =
        numbered(model, number)
    {
        *comparison = answer.map_or_else(Comparison::Failed, Comparison::Known);
    }
    Vec::new()
}

/// A deadline was moved, or that was refused. The row comes with the event.
pub(super) fn extended(
    model: &mut Model,
    number: u64,
    answer: Result<Box<Extended>, Error>,
) -> Vec<Effect> {
    match answer {
        Ok(extended) => {
            close(model, number);
            let record = &extended.sandbox;
            let until =
                record.expires_at.map_or_else(|| "for ever".to_owned(), |at| format!("until {at}"));
            match &extended.unwritten {
                None => model.say(Role::Good, format!("{} lives {until}", record.title())),
                Some(error) => model.say(Role::Warn, error.message.clone()),
            }
        }
        Err(error) if numbered(model, number).is_some() => refuse(model, number, error),
        Err(error) => model.say(Role::Bad, format!("not extended: {}", error.message)),
    }
    Vec::new()
}

/// Credits were granted, or that was refused. The entry comes with the event.
pub(super) fn granted(
    model: &mut Model,
    number: u64,
    answer: Result<Credits, Error>,
) -> Vec<Effect> {
    match answer {
        Ok(sums) => {
            close(model, number);
            model.say(Role::Good, format!("granted: the balance is {}", sums.balance_usd));
            return credits::read(model);
        }
        Err(error) if numbered(model, number).is_some() => refuse(model, number, error),
        Err(error) => model.say(Role::Bad, format!("not granted: {}", error.message)),
    }
    Vec::new()
}

fn close(model: &mut Model, number: u64) {
    model
        .overlays
        .retain(|overlay| !matches!(overlay, Overlay::ActionForm(form) if form.number == number));
}

/// A patch was added, or refused.
pub(super) fn patch_added(
    model: &mut Model,
    number: u64,
    answer: Result<Box<Patch>, Error>,
) -> Vec<Effect> {
    match answer {
        Ok(patch) => {
            close(model, number);
            let title =
                model.snapshots.get(&patch.snapshot_id).map(|view| view.record.title().to_owned());
            let title = title.unwrap_or_else(|| patch.snapshot_id.to_string());
            model.say(
                Role::Good,
                format!("patch {} is on {title}; it runs on the next wake", patch.sequence),
            );
            snapshots::read(model)
        }
        Err(problem) => {
            if numbered(model, number).is_some() {
                refuse(model, number, problem);
            } else {
                model.say(Role::Bad, format!("the patch was not added: {}", problem.message));
            }
            Vec::new()
        }
    }
}
