//! The patches of a snapshot: below each the sandboxes that have it, will get it, or on which it failed.

use super::paint::Paint;
use super::pane::cursor;
use crate::domain::patch::PatchState;
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
    match &patches.load {
        Load::Failed(problem) if patches.is_empty() => {
            paint.put(
                area.x + 1,
                area.y + 1,
                area.width.saturating_sub(2),
                &format!("✗ {}", problem.message),
                Role::Bad,
            );
            return;
        }
        Load::Loading if patches.is_empty() => {
            paint.put(
                area.x + 1,
                area.y + 1,
                area.width.saturating_sub(2),
                "reading the patches…",
                Role::Dim,
            );
            return;
        }
        Load::Ready if patches.is_empty() => {
            return nothing(model, paint, area, &key(Action::AddPatch));
        }
        Load::Loading | Load::Ready | Load::Failed(_) => {}
    }
    for (row, place) in patches.places().enumerate() {
        let y = area.y + u16::try_from(row).unwrap_or(u16::MAX);
        let Some(found) = patches.row(place) else { break };
        line(paint, area, y, found);
        if place == patches.index() {
            cursor(paint, Area { y, height: 1, ..area }, 1);
        }
    }
    if let Load::Failed(problem) = &patches.load {
        let y = area.y + area.height.saturating_sub(1);
        paint.put(
            area.x + 1,
            y,
            area.width.saturating_sub(2),
            &format!("not read again: {}", problem.message),
            Role::Bad,
        );
    }
}

fn nothing(model: &Model, paint: &mut Paint<'_>, area: Area, add: &str) {
    let (x, room) = (area.x + 1, area.width.saturating_sub(2));
    paint.put(x, area.y + 1, room, "no patches", Role::Plain);
    match model.unavailable(Action::AddPatch) {
        Some(reason) => paint.spans(x, area.y + 2, room, &[(Role::Dim, &reason)]),
        None => paint.spans(
            x,
            area.y + 2,
            room,
            &[(Role::Key, add), (Role::Dim, " adds one, and shows who will get it")],
        ),
    };
}

fn line(paint: &mut Paint<'_>, area: Area, y: u16, row: PatchRow<'_>) {
    let room = area.width.saturating_sub(2);
    let patch = &row.status.patch;
    let Some(standing) = row.standing else {
        let number = format!("{:>3}  ", patch.sequence);
        let about = patch.description.as_deref().unwrap_or("no description");
        let has = row
            .status
            .sandboxes
            .iter()
            .filter(|standing| standing.state == PatchState::Applied)
            .count();
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
