//! The create form: the profile picker, then fields, then what a create would do.

use ratatui::layout::Position;

use super::fields;
use super::footer::skip_columns;
use super::paint::Paint;
use crate::client::ProfileView;
use crate::tui::keymap::{Action, Mode};
use crate::tui::model::{
    Area, CreateForm, Load, Model, Plan, Role, Step, decision_lines, is_usable,
};

/// Draws the form; answers where the text cursor is.
pub(super) fn draw(model: &Model, paint: &mut Paint<'_>, form: &CreateForm) -> Option<Position> {
    match form.step {
        Step::Pick => pick(model, paint, form),
        Step::Fill => fill(model, paint, form),
    }
}

fn pick(model: &Model, paint: &mut Paint<'_>, form: &CreateForm) -> Option<Position> {
    let screen = model.screen();
    let (outer, area) = (screen.overlay(), screen.overlay_text());
    let key = |action| model.keymap.first(Mode::Picker, action).unwrap_or_default();
    let hints = [(key(Action::Choose), "choose"), (key(Action::Leave), "leave")];
    paint.overlay(outer, "New sandbox: which profile?", &hints);
    match &form.load {
        Load::Loading => {
            paint.put(area.x + 1, area.y + 1, area.width, "reading the profiles…", Role::Dim);
            return None;
        }
        Load::Failed(problem) => {
            paint.put(
                area.x + 1,
                area.y + 1,
                area.width.saturating_sub(2),
                &format!("✗ {}", problem.message),
                Role::Bad,
            );
            let hint = problem.hint.as_deref().unwrap_or_default();
            paint.put(area.x + 1, area.y + 2, area.width.saturating_sub(2), hint, Role::Key);
            return None;
        }
        Load::Ready if form.profiles.is_empty() => {
            paint.put(area.x + 1, area.y + 1, area.width, "there are no profiles", Role::Dim);
            return None;
        }
        Load::Ready => {}
    }
    let x = paint.spans(area.x, area.y, area.width, &[(Role::Accent, " /")]);
    let room = (area.x + area.width).saturating_sub(x);
    let scroll = form.search.visual_scroll(usize::from(room.saturating_sub(1)));
    let typed = skip_columns(form.search.value(), scroll);
    if typed.is_empty() {
        paint.put(x + 1, area.y, room.saturating_sub(1), "type to search", Role::Dim);
    } else {
        paint.put(x, area.y, room, &typed, Role::Title);
    }
    let at = u16::try_from(form.search.visual_cursor().saturating_sub(scroll)).unwrap_or(0);
    let cursor = Position::new(x + at.min(room.saturating_sub(1)), area.y);
    let shown = form.shown();
    if shown.is_empty() {
        paint.put(area.x + 2, area.y + 1, area.width, "no profile matches", Role::Dim);
        return Some(cursor);
    }
    let rows = usize::from(area.height.saturating_sub(1) / 2).max(1);
    let at = shown.iter().position(|at| *at == form.index).unwrap_or_default();
    let offset = at.saturating_sub(rows - 1);
    let views = shown.iter().filter_map(|at| form.profiles.get(*at));
    for (row, view) in views.enumerate().skip(offset).take(rows) {
        let y = area.y + 1 + u16::try_from((row - offset) * 2).unwrap_or(0);
        profile_row(paint, area, y, view, row == at);
    }
    Some(cursor)
}

fn profile_row(paint: &mut Paint<'_>, area: Area, y: u16, view: &ProfileView, selected: bool) {
    let usable = is_usable(view);
    let name = view.id.strip_prefix("profile.").unwrap_or(&view.id);
    let version = view.version.as_deref().unwrap_or("");
    let own = if view.source == "builtin" { "" } else { "  yours" };
    let role = if usable { Role::Title } else { Role::Dim };
    let extension = view.extension.as_deref().unwrap_or("");
    if selected {
        paint.put(area.x, y, 1, "▌", Role::Accent);
        paint.put(area.x, y + 1, 1, "▌", Role::Accent);
    }
    let about = format!("  {version}  {extension}{own}");
    paint.spans(area.x + 2, y, area.width.saturating_sub(2), &[(role, name), (Role::Dim, &about)]);
    let (second, role) = match (&view.error, usable) {
        (Some(error), _) => (format!("its file is broken: {error}"), Role::Warn),
        (None, true) => (view.summary.clone().unwrap_or_default(), Role::Plain),
        (None, false) => (view.unavailable.clone().unwrap_or_default(), Role::Dim),
    };
    paint.put(area.x + 4, y + 1, area.width.saturating_sub(4), &second, role);
    if selected {
        let style = paint.style(Role::Selected);
        paint
            .tint(Area { x: area.x + 1, y, width: area.width.saturating_sub(1), height: 1 }, style);
    }
}

fn fill(model: &Model, paint: &mut Paint<'_>, form: &CreateForm) -> Option<Position> {
    let screen = model.screen();
    let (outer, area) = (screen.overlay(), screen.overlay_text());
    let key = |action| model.keymap.first(Mode::Form, action).unwrap_or_default();
    let name = form.profile().map(|view| view.id.as_str()).unwrap_or_default();
    let title = format!("New sandbox: {}", name.strip_prefix("profile.").unwrap_or(name));
    let hints = [
        (key(Action::Submit), "create"),
        (key(Action::NextField), "next field"),
        (key(Action::Preview), "preview"),
        (key(Action::Leave), "other profile"),
    ];
    paint.overlay(outer, &title, &hints);
    let (cursor, below) = fields::draw(paint, area, &form.fields, 6);
    plan(paint, form, below);
    if form.submitting { None } else { cursor }
}

/// What a create would do, or why that is not known; an error of the create itself goes first.
fn plan(paint: &mut Paint<'_>, form: &CreateForm, area: Area) {
    let mut lines: Vec<(Role, String)> = Vec::new();
    if form.submitting {
        lines.push((Role::Busy, "◐ asking for it…".to_owned()));
    }
    if let Some(problem) = &form.error {
        lines.push((Role::Bad, format!("✗ {}", problem.message)));
        lines.extend(problem.causes.iter().map(|cause| (Role::Plain, format!("  {cause}"))));
        lines.extend(problem.hint.iter().map(|hint| (Role::Key, format!("  {hint}"))));
    }
    match &form.plan {
        Plan::Unasked => {
            lines
                .push((Role::Dim, "what it would do is shown when the fields are well".to_owned()));
        }
        Plan::Asking => lines.push((Role::Dim, "looking at what it would do…".to_owned())),
        Plan::Known(decision) => lines.extend(decision_lines(decision)),
        Plan::Failed(problem) if form.error.is_none() => {
            lines.push((Role::Warn, format!("⚠ {}", problem.message)));
            lines.extend(problem.causes.iter().map(|cause| (Role::Plain, format!("  {cause}"))));
            lines.extend(problem.hint.iter().map(|hint| (Role::Key, format!("  {hint}"))));
        }
        Plan::Failed(_) => {}
    }
    fields::lines(paint, area, &lines, 0);
}
