//! Labels: changed in the overlay, then written on exactly the targets that it was opened for.

use crossterm::event::KeyEvent;
use tui_input::Input;
use tui_input::backend::crossterm::to_input_request;

use super::{Effect, data, fields, keys};
use crate::domain::error::Error;
use crate::domain::name::SandboxId;
use crate::domain::sandbox::SandboxRecord;
use crate::tui::keymap::Action;
use crate::tui::model::{Entry, LabelChange, Labels, Model, Overlay, Role};

/// Opens the labels of the marked ones, of the one under the cursor, or of the one whose details are open.
pub(super) fn open(model: &mut Model) -> Vec<Effect> {
    let entries = match model.overlays.last() {
        None if model.focus == crate::tui::model::Pane::Sandboxes => model.sandboxes.targets(),
        _ => keys::subject(model).into_iter().collect(),
    };
    if entries.is_empty() {
        keys::say_no_subject(model);
        return Vec::new();
    }
    let labels = Labels::of(entries.iter().map(AsRef::as_ref));
    model.overlays.push(Overlay::Labels(Box::new(labels)));
    Vec::new()
}

fn top(model: &mut Model) -> Option<&mut Labels> {
    match model.overlays.last_mut() {
        Some(Overlay::Labels(labels)) => Some(labels),
        _ => None,
    }
}

/// A key of the table.
pub(super) fn act(model: &mut Model, action: Action) -> Vec<Effect> {
    let Some(labels) = top(model) else { return Vec::new() };
    let last = labels.rows().len().saturating_sub(1);
    match action {
        Action::Down => labels.at = (labels.at + 1).min(last),
        Action::Up => labels.at = labels.at.saturating_sub(1),
        Action::Top => labels.at = 0,
        Action::Bottom => labels.at = last,
        Action::Redraw => return vec![Effect::Redraw],
        // What is asked cannot be changed any more.
        _ if labels.is_writing() => {}
        Action::AddLabel => labels.field = Some((Input::default(), None)),
        Action::EditLabel => {
            labels.field = labels.row().map(|row| {
                let value = match row.change {
                    LabelChange::Set(value) => value,
                    LabelChange::Kept | LabelChange::Removed => {
                        row.was.first().map(|(value, _)| value.clone()).unwrap_or_default()
                    }
                };
                (Input::new(format!("{}={value}", row.key)), None)
            });
        }
        Action::RemoveLabel => labels.toggle_removal(),
        Action::Protect => labels.toggle_protection(),
        Action::WriteLabels if !labels.drawn => keys::say_undrawn(model),
        Action::WriteLabels if !labels.is_changed() => {
            model.say(Role::Dim, "nothing is changed: a adds, x removes");
        }
        Action::WriteLabels => return write(model),
        Action::Retry => return look_again(model),
        _ => {}
    }
    Vec::new()
}

fn write(model: &mut Model) -> Vec<Effect> {
    let Some(labels) = top(model) else { return Vec::new() };
    let requests = labels.requests();
    if requests.is_empty() {
        model
            .say(Role::Warn, "those that were refused are asked again after r looked at them anew");
    }
    requests.into_iter().map(Effect::Label).collect()
}

/// Takes those that were refused as they are now.
fn look_again(model: &mut Model) -> Vec<Effect> {
    let Some(labels) = top(model) else { return Vec::new() };
    let refused: Vec<SandboxId> = labels.refused().map(|target| target.id.clone()).collect();
    if refused.is_empty() {
        model.say(Role::Dim, "none was refused");
        return Vec::new();
    }
    let records: Vec<SandboxRecord> = refused
        .iter()
        .filter_map(|id| model.sandboxes.get(id))
        .map(|entry| SandboxRecord::clone(&entry.record))
        .collect();
    if let Some(labels) = top(model) {
        for record in &records {
            labels.look_again(record);
        }
    }
    refused.into_iter().map(Effect::Get).collect()
}

/// A key of the table in the text field.
pub(super) fn field_act(model: &mut Model, action: Action) -> Vec<Effect> {
    let Some(labels) = top(model) else { return Vec::new() };
    let Some((input, _)) = labels.field.take() else { return Vec::new() };
    match action {
        Action::Leave => {}
        Action::Submit => {
            if let Err(error) = labels.take(input.value()) {
                labels.field = Some((input, Some(error)));
            }
        }
        _ => labels.field = Some((input, None)),
    }
    Vec::new()
}

/// A key that is typed into the text field.
pub(super) fn field_text(model: &mut Model, key: &KeyEvent) -> Vec<Effect> {
    if let Some((input, error)) = top(model).and_then(|labels| labels.field.as_mut())
        && let Some(request) = to_input_request(&crossterm::event::Event::Key(*key))
    {
        input.handle(request);
        *error = None;
    }
    Vec::new()
}

/// Pasted text goes into the text field.
pub(super) fn field_paste(model: &mut Model, text: &str) -> Vec<Effect> {
    if let Some((input, error)) = top(model).and_then(|labels| labels.field.as_mut()) {
        fields::insert(input, text);
        *error = None;
    }
    Vec::new()
}

/// Labels were written, or refused.
pub(super) fn written(
    model: &mut Model,
    id: &SandboxId,
    answer: Result<Box<SandboxRecord>, Error>,
) -> Vec<Effect> {
    let outcome = answer.as_ref().map(|_| ()).map_err(Clone::clone);
    let mut effects = Vec::new();
    match answer {
        Ok(record) => data::take(model, Entry::new(*record)),
        Err(_) => effects.push(Effect::Get(id.clone())),
    }
    let at = model.overlays.iter().position(|overlay| matches!(overlay, Overlay::Labels(_)));
    match (at.and_then(|at| model.overlays.get_mut(at)), outcome) {
        (Some(Overlay::Labels(labels)), outcome) => {
            if labels.answered(id, &outcome) {
                let count = labels.targets.len();
                let what = if count == 1 { id.to_string() } else { format!("{count} sandboxes") };
                if let Some(at) = at {
                    model.overlays.remove(at);
                }
                model.sandboxes.clear_marks();
                model.say(Role::Good, format!("the labels of {what} are written"));
            }
        }
        (_, Err(problem)) => model.say(Role::Bad, format!("{id}: {}", problem.message)),
        (_, Ok(())) => model.say(Role::Good, format!("the labels of {id} are written")),
    }
    effects
}
