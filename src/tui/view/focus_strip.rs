//! The strip below the list. From 200 columns on its lines stand above the details beside the list.

use super::paint::Paint;
use crate::tui::model::{Area, Details, Model, Present, Screen};

/// Rows of the strip above the details.
const ABOVE_DETAILS: u16 = 4;

/// Draws the strip, or the details beside the list.
pub(super) fn draw(model: &Model, paint: &mut Paint<'_>, screen: &Screen) {
    let area = if screen.details.height > 0 { screen.details } else { screen.strip };
    let Some(strip) = model.strip().filter(|_| area.height > 0) else { return };
    paint.row(Area { y: area.y - 1, ..area }, &strip.title);
    let mut lines = strip.lines;
    // Where there is no third row the footer has the keys.
    lines.push(strip.keys);
    let inside = Area { x: area.x + 1, width: area.width.saturating_sub(2), ..area };
    for (y, line) in (area.y..area.y + area.height).zip(&lines) {
        paint.row(Area { y, ..inside }, line);
    }
    if screen.details.height > 0 {
        details(model, paint, inside);
    }
}

/// The record below the strip's lines.
fn details(model: &Model, paint: &mut Paint<'_>, area: Area) {
    let Some(entry) = model.strip_sandbox() else { return };
    let details = Details::beside_list(entry.record.as_ref().clone());
    let present = Present { now: model.now, zone: Some(&model.zone) };
    let host = model.hosts.get(entry.record.host.as_str());
    let block = details.block(usize::from(area.width), present, host, &model.snapshots);
    let rows = area.y + ABOVE_DETAILS..area.y + area.height;
    for (y, line) in rows.zip(&block.lines) {
        paint.row(Area { y, ..area }, line);
    }
}
