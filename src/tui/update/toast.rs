//! Answers that are a toast and nothing else.

use super::Effect;
use crate::tui::model::{Model, Role};

/// Says something, and does nothing else.
pub(super) fn say(model: &mut Model, role: Role, text: impl Into<String>) -> Vec<Effect> {
    model.say(role, text);
    Vec::new()
}
