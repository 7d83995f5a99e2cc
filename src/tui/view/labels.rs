//! Labels: what there is, what becomes of it, and how far each target has come.

use ratatui::layout::Position;

use super::footer::skip_columns;
use super::paint::Paint;
use crate::tui::keymap::{Action, Mode};
use crate::tui::model::{
    Area, LabelChange, LabelRow, LabelTarget, Labelling, Labels, Model, Role, wrap,
};

/// How many targets are named at most.
const NAMED: usize = 6;

/// Draws the overlay; answers where the text cursor is.
pub(super) fn draw(model: &Model, paint: &mut Paint<'_>, labels: &Labels) -> Option<Position> {
    let screen = model.screen();
    let targets = targets(labels);
    let below = u16::try_from(targets.len()).unwrap_or(u16::MAX).min(8) + 3;
    let wanted =
        u16::try_from(labels.rows().len()).unwrap_or(u16::MAX).max(6).saturating_add(below + 2);
    let outer = screen.whole.centred(84, wanted.min(screen.whole.height.saturating_sub(2)));
    let mut hints = vec![
        (field_key(model, Action::Submit), "take it"),
        (field_key(model, Action::Leave), "leave the field"),
    ];
    if labels.field.is_none() {
        hints = keys(model, labels);
    }
    let title = match labels.targets.as_slice() {
        [only] => format!("Labels of {}", named(only)),
        many => format!("Labels of {} sandboxes", many.len()),
    };
    paint.overlay(outer, &title, &hints);
    let area = Area { x: outer.x + 2, width: outer.width.saturating_sub(4), ..outer.inner(1) };
    let rows = Area { height: area.height.saturating_sub(below), ..area };
    list(paint, rows, labels);
    let field = Area { y: area.y + rows.height, height: 1, ..area };
    let cursor = field_line(paint, field, labels);
    for (y, (role, text)) in (field.y + 3..area.y + area.height).zip(&targets) {
        paint.put(area.x, y, area.width, text, *role);
    }
    cursor
}

fn field_key(model: &Model, action: Action) -> String {
    model.keymap.first(Mode::LabelField, action).unwrap_or_default()
}

fn keys(model: &Model, labels: &Labels) -> Vec<(String, &'static str)> {
    let key = |action| model.keymap.first(Mode::Labels, action).unwrap_or_default();
    let protect = if labels.is_protected() { "not protected" } else { "protect" };
    let mut hints = vec![
        (key(Action::WriteLabels), "write"),
        (key(Action::Close), "leave"),
        (key(Action::AddLabel), "add"),
        (key(Action::EditLabel), "change"),
        (key(Action::RemoveLabel), "remove"),
        (key(Action::Protect), protect),
    ];
    if labels.refused().next().is_some() {
        hints.insert(1, (key(Action::Retry), "look again"));
    }
    hints
}

fn named(target: &LabelTarget) -> String {
    match &target.name {
        Some(name) => format!("{} {name}", target.id),
        None => target.id.to_string(),
    }
}

/// How far each target has come; before anything is written only who they are, where there are several.
fn targets(labels: &Labels) -> Vec<(Role, String)> {
    let count = labels.targets.len();
    let waiting = labels.targets.iter().all(|target| target.state == Labelling::Waiting);
    if waiting && count == 1 {
        return Vec::new();
    }
    // What was refused is seen first.
    let mut sorted: Vec<&LabelTarget> = labels.targets.iter().collect();
    sorted.sort_by_key(|target| !matches!(target.state, Labelling::Refused(_)));
    let mut lines: Vec<(Role, String)> = sorted
        .iter()
        .take(NAMED)
        .map(|target| match &target.state {
            Labelling::Waiting => (Role::Dim, format!("· {}", named(target))),
            Labelling::Writing => (Role::Busy, format!("◐ {}  writing", named(target))),
            Labelling::Written => (Role::Good, format!("✓ {}  written", named(target))),
            Labelling::Refused(problem) => {
                (Role::Bad, format!("✗ {}  {}", named(target), problem.message))
            }
        })
        .collect();
    if count > NAMED {
        lines.push((Role::Dim, format!("  and {} more", count - NAMED)));
    }
    lines
}

fn list(paint: &mut Paint<'_>, area: Area, labels: &Labels) {
    let rows = labels.rows();
    if rows.is_empty() {
        paint.put(area.x + 1, area.y, area.width, "no labels", Role::Dim);
        return;
    }
    let height = usize::from(area.height);
    let offset = labels.at.saturating_sub(height.saturating_sub(1));
    for (at, (row, y)) in rows.iter().skip(offset).zip(area.y..area.y + area.height).enumerate() {
        one(paint, area, y, row, labels.targets.len());
        if offset + at == labels.at {
            paint.put(area.x, y, 1, "▌", Role::Accent);
        }
    }
}

/// `~ team = web  (was core on 2 of 3)`
fn one(paint: &mut Paint<'_>, area: Area, y: u16, row: &LabelRow, count: usize) {
    let was: Vec<String> = row
        .was
        .iter()
        .map(
            |(value, on)| {
                if *on == count { value.clone() } else { format!("{value} on {on} of {count}") }
            },
        )
        .collect();
    let was = was.join(", ");
    let (mark, role, value, note) = match &row.change {
        LabelChange::Kept => (" ", Role::Plain, was, String::new()),
        LabelChange::Removed => ("-", Role::Bad, was, "  to be removed".to_owned()),
        LabelChange::Set(value) if was.is_empty() => {
            ("+", Role::Good, value.clone(), String::new())
        }
        LabelChange::Set(value) => ("~", Role::Warn, value.clone(), format!("  was {was}")),
    };
    paint.spans(
        area.x + 2,
        y,
        area.width.saturating_sub(2),
        &[
            (role, mark),
            (role, " "),
            (Role::Title, &row.key),
            (Role::Dim, " = "),
            (role, &value),
            (Role::Dim, &note),
        ],
    );
}

fn field_line(paint: &mut Paint<'_>, area: Area, labels: &Labels) -> Option<Position> {
    let Some((input, error)) = &labels.field else {
        if labels.is_changed() && !labels.is_writing() {
            paint.put(area.x + 1, area.y, area.width, "not written yet", Role::Warn);
        }
        return None;
    };
    let x = paint.spans(area.x + 1, area.y, area.width, &[(Role::Accent, "key=value: ")]);
    let room = (area.x + area.width).saturating_sub(x + 1);
    let scroll = input.visual_scroll(usize::from(room));
    paint.put(x, area.y, room, &skip_columns(input.value(), scroll), Role::Title);
    let error = error.as_ref().map(|error| format!("✗ {error}")).unwrap_or_default();
    for (y, part) in
        (area.y + 1..area.y + 3).zip(wrap(&error, usize::from(area.width.saturating_sub(2))))
    {
        paint.put(area.x + 1, y, area.width, &part, Role::Bad);
    }
    let at = u16::try_from(input.visual_cursor().saturating_sub(scroll)).unwrap_or(0);
    Some(Position::new(x + at, area.y))
}
