//! Choice of a profile: searched by typing, and opened as the form of a create.

use super::toast::say;
use super::{Effect, hosts, plan};
use crate::client::{Error, ProfileView};
use crate::tui::keymap::Action;
use crate::tui::model::{Create, FormKind, Host, Load, Model, Overlay, Picker, Role};

pub(super) fn open(model: &mut Model) -> Vec<Effect> {
    model.overlays.push(Overlay::Picker(Box::default()));
    vec![Effect::Profiles]
}

fn open_picker(model: &mut Model) -> Option<&mut Picker> {
    model.overlays.iter_mut().rev().find_map(|overlay| match overlay {
        Overlay::Picker(picker) => Some(picker.as_mut()),
        _ => None,
    })
}

/// The profiles were read.
pub(super) fn profiles(model: &mut Model, answer: Result<Vec<ProfileView>, Error>) -> Vec<Effect> {
    if let Ok(profiles) = &answer {
        let undo = profiles.iter().filter_map(|view| view.profile.as_ref());
        model.undo_profiles =
            undo.filter(|profile| profile.undo).map(|profile| profile.id.clone()).collect();
    }
    // They are read beside it too: what is chosen by now stays.
    if let Some(picker) = open_picker(model).filter(|picker| picker.load != Load::Ready) {
        match answer {
            Ok(profiles) => picker.take(profiles),
            Err(problem) => picker.load = Load::Failed(problem),
        }
    }
    Vec::new()
}

/// A key of the table.
pub(super) fn act(model: &mut Model, action: Action) -> Vec<Effect> {
    let Some(picker) = open_picker(model) else { return Vec::new() };
    match action {
        Action::Leave => {
            model.overlays.pop();
        }
        Action::NextMatch => picker.step(1),
        Action::PreviousMatch => picker.step(-1),
        Action::Redraw => return hosts::redraw(model),
        Action::Choose if picker.load == Load::Ready && !picker.shown().is_empty() => {
            return choose(model);
        }
        _ => {}
    }
    Vec::new()
}

/// Opens the form of the profile under the cursor; what was typed in fields of the same name stays.
fn choose(model: &mut Model) -> Vec<Effect> {
    // Those that answer are the first choices.
    let (mut hosts, others): (Vec<&Host>, Vec<&Host>) =
        model.hosts.list.iter().partition(|host| host.is_fine());
    hosts.extend(others);
    let hosts: Vec<String> = hosts.iter().map(|host| host.view.name.to_string()).collect();
    let Some(picker) = open_picker(model) else { return Vec::new() };
    let Some(view) = picker.profile().cloned() else { return Vec::new() };
    let typed = std::mem::take(&mut picker.typed);
    if let Some(reason) = unavailable(&view) {
        return say(model, Role::Warn, reason);
    }
    model.open_form(FormKind::Create(Box::new(Create::new(view, hosts))));
    if let Some(form) = model.form() {
        form.take_over(&typed);
    }
    plan::ask(model, plan::AT_ONCE)
}

/// Why a profile cannot be taken, if it cannot.
fn unavailable(view: &ProfileView) -> Option<String> {
    match &view.error {
        Some(error) => Some(error.clone()),
        None if view.available => None,
        None => Some(
            view.unavailable
                .clone()
                .unwrap_or_else(|| "this version cannot create with it".to_owned()),
        ),
    }
}

/// Text that is typed searches the profiles.
pub(super) fn typed(model: &mut Model) {
    if let Some(picker) = open_picker(model) {
        picker.point_at_first();
    }
}
