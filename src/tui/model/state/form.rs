//! Form on top of the overlays.

use super::{Model, Overlay};
use crate::tui::model::form::{Create, Fields, Form, FormKind};

impl Model {
    /// Opens a form; its number comes back.
    pub fn open_form(&mut self, kind: FormKind) -> u64 {
        self.last_form += 1;
        self.overlays.push(Overlay::Form(Box::new(Form::new(self.last_form, kind))));
        self.last_form
    }

    /// The form on top.
    pub fn form(&mut self) -> Option<&mut Form> {
        match self.overlays.last_mut() {
            Some(Overlay::Form(form)) => Some(form),
            _ => None,
        }
    }

    /// The open form that is the one meant, wherever it lies.
    pub fn form_where(&mut self, is_meant: impl Fn(&Form) -> bool) -> Option<&mut Form> {
        self.overlays.iter_mut().rev().find_map(|overlay| match overlay {
            Overlay::Form(form) if is_meant(form) => Some(form.as_mut()),
            _ => None,
        })
    }

    /// The open form of a create.
    pub fn create_form(&mut self) -> Option<(&mut Create, &mut Fields)> {
        self.overlays.iter_mut().rev().find_map(|overlay| match overlay {
            Overlay::Form(form) => match &mut form.kind {
                FormKind::Create(create) => Some((create.as_mut(), &mut form.fields)),
                _ => None,
            },
            _ => None,
        })
    }

    /// Closes the form that is the one meant; that of a create with the choice of its profile.
    pub fn close_form(&mut self, is_meant: impl Fn(&Form) -> bool) {
        let Some(form) = self.form_where(&is_meant) else { return };
        let is_create = matches!(form.kind, FormKind::Create(_));
        self.overlays.retain(|overlay| match overlay {
            Overlay::Form(form) => !is_meant(form),
            Overlay::Picker(_) => !is_create,
            _ => true,
        });
    }
}
