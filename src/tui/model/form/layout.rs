//! Layout of a form. A field takes a row and one for its help; where that does not fit, only the focused one has both. The
//! focused field is always on the screen with all of its help or error, and what stands below keeps some rows.

use super::definition::Notes;
use super::field::{Field, Fields};
use crate::domain::text::clean_line;
use crate::tui::model::{Area, Role, wrap};

/// Cells for the labels.
const LABEL: u16 = 18;
/// And where there is little room.
const SHORT_LABEL: u16 = 11;
/// Below this width there is.
const ROOMY: u16 = 56;
/// Rows of what stands below that are there where each field has two.
const BELOW: u16 = 8;
/// Most rows of a help or an error.
const MOST_HELP: usize = 4;

/// A field on the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldRow {
    /// The field's place in the form.
    pub at: usize,
    pub y: u16,
    /// Rows below it: its error, or its help.
    pub help: Vec<String>,
}

/// The parts of a form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormLayout {
    /// The fields that are on the screen.
    pub rows: Vec<FieldRow>,
    /// How many fields are above and below those.
    pub hidden: usize,
    /// Cells for labels.
    pub label: u16,
    /// Where a value is, in the form's first row.
    pub value: Area,
    /// The row between the fields and what stands below.
    pub rule: u16,
    /// The rows of what stands below.
    pub below: Area,
    /// Lines of what stands below that are on the screen.
    pub notes: Notes,
    /// How many lines are further below.
    pub more: usize,
    /// The last line that the rest can begin with.
    pub last_offset: usize,
}

impl FormLayout {
    /// Of these fields and notes in an area; the notes begin with the line at `offset`.
    pub(super) fn new(area: Area, fields: &Fields, notes: &Notes, offset: usize) -> Self {
        let label = if area.width < ROOMY { SHORT_LABEL } else { LABEL };
        let room = area.width.saturating_sub(label + 1);
        let value = Area { x: area.x + label + 1, width: room, height: 1, ..area };
        let notes = wrapped(notes, usize::from(area.width));
        let focused = fields.list.get(fields.focus);
        let focused = focused.map(|field| help(field, room, MOST_HELP)).unwrap_or_default();
        let tall = |at: usize| if at == fields.focus { focused.len() + 1 } else { 2 };
        let short = |at: usize| if at == fields.focus { focused.len() + 1 } else { 1 };
        let sum = |height: &dyn Fn(usize) -> usize| {
            u16::try_from((0..fields.list.len()).map(height).sum::<usize>()).unwrap_or(u16::MAX)
        };
        // The same whatever stands below: fields that move while one types are not found.
        let kept = (area.height / 3).max(1) + 1;
        let count = u16::try_from(fields.list.len()).unwrap_or(u16::MAX);
        let is_tall = count.saturating_mul(2).saturating_add(BELOW + 1) <= area.height;
        let height: &dyn Fn(usize) -> usize = if is_tall { &tall } else { &short };
        let fit = sum(height).min(area.height.saturating_sub(kept));
        let first = first(fields.focus, usize::from(fit), height);
        let mut rows = Vec::new();
        let mut y = area.y;
        for (at, field) in fields.list.iter().enumerate().skip(first) {
            let rows_of_it = u16::try_from(height(at)).unwrap_or(u16::MAX);
            let left = (area.y + fit).saturating_sub(y);
            // The focused one is shown as far as there is room.
            if rows_of_it > left && (at != fields.focus || left == 0) {
                break;
            }
            let help = match (at == fields.focus, is_tall) {
                (true, _) => focused.iter().take(usize::from(left) - 1).cloned().collect(),
                (false, true) => help(field, room, 1),
                (false, false) => Vec::new(),
            };
            rows.push(FieldRow { at, y, help });
            y += rows_of_it.min(left);
        }
        let rule = y;
        let used = (rule - area.y + 1).min(area.height);
        let below = Area { y: area.y + used, height: area.height - used, ..area };
        let height = usize::from(below.height);
        let last_offset = notes.len().saturating_sub(height.max(1));
        let offset = offset.min(last_offset);
        Self {
            hidden: fields.list.len() - rows.len(),
            more: notes.len().saturating_sub(offset + height),
            notes: notes.into_iter().skip(offset).take(height).collect(),
            rows,
            label,
            value,
            rule,
            below,
            last_offset,
        }
    }

    /// The field at a row of the screen.
    pub fn field_at(&self, y: u16) -> Option<usize> {
        let last = |row: &FieldRow| row.y + u16::try_from(row.help.len()).unwrap_or(0);
        self.rows.iter().find(|row| (row.y..=last(row)).contains(&y)).map(|row| row.at)
    }
}

/// The first field on the screen, so that the focused one is on it.
fn first(focus: usize, room: usize, height: &dyn Fn(usize) -> usize) -> usize {
    let mut first = focus;
    let mut used = height(focus);
    while first > 0 && used + height(first - 1) <= room {
        first -= 1;
        used += height(first);
    }
    first
}

/// Text on a field, in rows; one that is cut ends with `…` where it is painted.
fn help(field: &Field, room: u16, most: usize) -> Vec<String> {
    let text = match &field.error {
        Some(error) => format!("✗ {error}"),
        None => field.help.clone(),
    };
    let text = clean_line(&text, 4000);
    if most == 1 {
        return vec![text];
    }
    let mut rows = wrap(&text, usize::from(room));
    if rows.len() > most {
        let rest = rows.split_off(most - 1).join(" ");
        rows.push(rest);
    }
    rows
}

/// Lines in rows of that many cells, those that go on indented as they begin.
fn wrapped(notes: &Notes, width: usize) -> Vec<(Role, String)> {
    let rows = |(role, text): &(Role, String)| {
        let text = clean_line(text, 4000);
        let (role, words) = (*role, text.trim_start());
        let indent = " ".repeat(text.len() - words.len());
        let parts = wrap(words, width.saturating_sub(indent.len()));
        parts.into_iter().map(move |part| (role, format!("{indent}{part}")))
    };
    notes.iter().flat_map(rows).collect()
}

#[cfg(test)]
mod tests {
    use super::super::field::FieldKey;
    use super::*;

    #[test]
    fn the_focused_field_is_in_sight_with_its_help_at_every_size() {
        let list = (0..9).map(|number: usize| {
            Field::text(FieldKey::Label(number.to_string()), "", "help that is long enough to wrap")
        });
        let mut fields = Fields::new(list.collect());
        let notes: Notes = (0..30).map(|number| (Role::Plain, format!("line {number}"))).collect();
        for (width, height) in [(36, 6), (56, 11), (76, 20), (104, 30), (130, 60)] {
            let area = Area::new(2, 3, width, height);
            for focus in 0..9 {
                fields.focus = focus;
                for offset in [0, 10, 99] {
                    let layout = FormLayout::new(area, &fields, &notes, offset);
                    let row = layout.rows.iter().find(|row| row.at == focus).unwrap();
                    let wraps = if width < 56 { 2 } else { 1 };
                    assert_eq!(row.help.len(), wraps, "{width}x{height} {focus}: {layout:?}");
                    assert!(!layout.notes.is_empty(), "{width}x{height}");
                    assert_eq!(layout.field_at(row.y + 1), Some(focus));
                    let end = layout.below.y + layout.below.height;
                    assert!(layout.rule < layout.below.y && end == area.y + area.height);
                    let shown = layout.notes.len() + layout.more + offset.min(layout.last_offset);
                    assert_eq!(shown, notes.len());
                    assert!(offset < 99 || layout.notes.last() == notes.last());
                }
            }
        }
    }
}
