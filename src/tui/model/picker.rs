//! Choice of the profile that a sandbox is created from.

use tui_input::Input;

use super::Load;
use super::form::Field;
use crate::client::ProfileView;

/// The overlay.
#[derive(Debug, Clone, Default)]
pub struct Picker {
    /// Whether the profiles are there.
    pub load: Load,
    pub profiles: Vec<ProfileView>,
    /// The profile under the cursor.
    pub index: usize,
    /// Text that the profiles are searched by.
    pub search: Input,
    /// Texts that were typed in the form of a profile that was chosen before.
    pub typed: Vec<Field>,
}

impl Picker {
    /// The profile under the cursor.
    pub fn profile(&self) -> Option<&ProfileView> {
        self.profiles.get(self.index)
    }

    pub fn take(&mut self, profiles: Vec<ProfileView>) {
        self.profiles = profiles;
        self.load = Load::Ready;
        self.point_at_first();
    }

    /// The profiles that match what was typed, by their place: those that can be used first, and by how well their names match.
    pub fn shown(&self) -> Vec<usize> {
        let typed = self.search.value().trim().to_lowercase();
        let mut found: Vec<(bool, u8, usize)> = self
            .profiles
            .iter()
            .enumerate()
            .filter_map(|(at, view)| Some((!is_usable(view), how_well(view, &typed)?, at)))
            .collect();
        found.sort_unstable();
        found.into_iter().map(|(_, _, at)| at).collect()
    }

    /// Moves the cursor among those that are shown, round the end.
    pub fn step(&mut self, by: isize) {
        let shown = self.shown();
        let count = shown.len().max(1);
        let at = shown.iter().position(|at| *at == self.index).unwrap_or_default();
        let next = (at + count).saturating_add_signed(by) % count;
        self.index = shown.get(next).copied().unwrap_or(self.index);
    }

    /// Puts the cursor on the first one that is shown.
    pub fn point_at_first(&mut self) {
        self.index = self.shown().first().copied().unwrap_or_default();
    }
}

/// Whether a sandbox can be made from it here.
pub(crate) fn is_usable(view: &ProfileView) -> bool {
    view.available && view.error.is_none()
}

/// How well a profile matches what was typed, the best first: its name holds it, or its letters, or its summary does.
fn how_well(view: &ProfileView, typed: &str) -> Option<u8> {
    let name = view.id.strip_prefix("profile.").unwrap_or(&view.id).to_lowercase();
    let mut letters = name.chars();
    if name.contains(typed) {
        Some(0)
    } else if typed.chars().all(|wanted| letters.any(|letter| letter == wanted)) {
        Some(1)
    } else {
        let summary = view.summary.as_deref().unwrap_or_default().to_lowercase();
        summary.contains(typed).then_some(2)
    }
}
