//! The patches of a snapshot: below each the sandboxes that have it, will get it, or on which it failed.

use super::paint::Paint;
use super::pane::cursor;
use crate::present::patch::{last_said, script_words, standing_words};
use crate::present::{Role, many, patch_glyph, patch_role};
use crate::tui::keymap::{Action, Mode};
use crate::tui::model::{Area, Load, Model, PatchRow, Patches};

/// Draws the overlay.
pub(super) fn draw(model: &Model, paint: &mut Paint<'_>, patches: &Patches) {
    let screen = model.screen();
    let (outer, area) = (screen.overlay(), screen.overlay_text());
    let key = |action| model.keymap.first(Mode::Patches, action).unwrap_or_default();
    let mut hints = vec![(key(Action::Close), "close"), (key(Action::Open), "script, output")];
    if model.unavailable(Action::AddPatch).is_none() {
        hints.extend([
            (key(Action::AddPatch), "add a file"),
            (key(Action::WritePatch), "write one"),
            (key(Action::RemovePatch), "take away"),
            (key(Action::RollOut), "apply"),
        ]);
    }
    hints.push((key(Action::Retry), "read again"));
    paint.overlay(outer, &format!("Patches of {}", patches.title), &hints);
    if patches.is_empty() {
        return nothing(model, paint, area, patches);
    }
    for (row, place) in patches.window.rows(patches.len()).enumerate() {
        let y = area.y + u16::try_from(row).unwrap_or(u16::MAX);
        let Some(found) = patches.row(place) else { break };
        line(paint, area, y, found);
        if place == patches.window.index {
            cursor(paint, Area { y, height: 1, ..area }, 1);
        }
    }
    if let Load::Failed(problem) = &patches.load {
        let (y, words) = (area.y + area.height.saturating_sub(1), &problem.message);
        let words = format!("not read again: {words}");
        paint.put(area.x + 1, y, area.width.saturating_sub(2), &words, Role::Bad);
    }
}

fn nothing(model: &Model, paint: &mut Paint<'_>, area: Area, patches: &Patches) {
    let (x, y, room) = (area.x + 1, area.y + 1, area.width.saturating_sub(2));
    let (role, words) = match &patches.load {
        Load::Failed(problem) => {
            let height = area.height.saturating_sub(1);
            paint.error(Area { x, y, width: room, height }, problem, 1, None);
            return;
        }
        Load::Loading => (Role::Dim, "reading the patches…".to_owned()),
        Load::Ready => (Role::Plain, "no patches".to_owned()),
    };
    paint.put(x, y, room, &words, role);
    match model.unavailable(Action::AddPatch) {
        _ if patches.load == Load::Loading => {}
        Some(reason) => drop(paint.put(x, y + 1, room, &reason, Role::Dim)),
        None => {
            let add = model.keymap.first(Mode::Patches, Action::AddPatch).unwrap_or_default();
            paint.key(x, y + 1, room, &add, "adds one, and shows who will get it");
        }
    }
}

fn line(paint: &mut Paint<'_>, area: Area, y: u16, row: PatchRow<'_>) {
    let room = area.width.saturating_sub(2);
    let patch = &row.status.patch;
    let Some(standing) = row.standing else {
        let number = format!("{:>3}  ", patch.sequence);
        let about = patch.description.as_deref().unwrap_or("no description");
        let has = row.applied();
        let of = many(row.status.sandboxes.len(), "sandbox", "sandboxes");
        let facts = format!("  {}, on {has} of {of}", script_words(patch));
        paint.spans(
            area.x + 1,
            y,
            room,
            &[(Role::Title, &number), (Role::Plain, about), (Role::Dim, &facts)],
        );
        return;
    };
    let role = patch_role(&standing.state);
    let glyph = format!("      {} ", patch_glyph(&standing.state));
    let name = standing.name.as_deref().unwrap_or("—");
    let who = format!("{} {name} on {}  ", standing.id, standing.host);
    let said = last_said(standing).map(|line| format!(": {line}")).unwrap_or_default();
    let words = format!("{}{said}", standing_words(standing));
    paint.spans(area.x + 1, y, room, &[(role, &glyph), (Role::Plain, &who), (role, &words)]);
}
