//! The create form: the profile picker, then fields, then what a create would do.

use ratatui::layout::Position;

use super::footer::skip_columns;
use super::paint::Paint;
use crate::client::{Decision, ProfileView};
use crate::tui::keymap::{Action, Mode};
use crate::tui::model::{Area, Choice, CreateForm, Field, Load, Model, Plan, Role, Step, bytes, wrap};

/// Cells for the labels.
const LABEL: u16 = 16;

/// Draws the form; answers where the text cursor is.
pub(super) fn draw(model: &Model, paint: &mut Paint<'_>, form: &CreateForm) -> Option<Position> {
    match form.step {
        Step::Pick => {
            pick(model, paint, form);
            None
        }
        Step::Fill => fill(model, paint, form),
    }
}

fn pick(model: &Model, paint: &mut Paint<'_>, form: &CreateForm) {
    let screen = model.screen();
    let (outer, area) = (screen.overlay(), screen.overlay_text());
    let key = |action| model.keymap.first(Mode::Picker, action).unwrap_or_default();
    let hints = [(key(Action::Choose), "choose"), (key(Action::Close), "leave")];
    paint.overlay(outer, "New sandbox: which profile?", &hints);
    match &form.load {
        Load::Loading => {
            paint.put(area.x + 1, area.y + 1, area.width, "reading the profiles…", Role::Dim);
            return;
        }
        Load::Failed(problem) => {
            paint.put(
                area.x + 1,
                area.y + 1,
                area.width.saturating_sub(2),
                &format!("✗ {}", problem.message),
                Role::Bad,
            );
            return;
        }
        Load::Ready if form.profiles.is_empty() => {
            paint.put(area.x + 1, area.y + 1, area.width, "there are no profiles", Role::Dim);
            return;
        }
        Load::Ready => {}
    }
    let rows = usize::from(area.height.saturating_sub(1) / 2).max(1);
    let offset = form.index.saturating_sub(rows - 1);
    for (row, view) in form.profiles.iter().skip(offset).take(rows).enumerate() {
        let y = area.y + 1 + u16::try_from(row * 2).unwrap_or(0);
        profile_row(paint, area, y, view, offset + row == form.index);
    }
}

fn profile_row(paint: &mut Paint<'_>, area: Area, y: u16, view: &ProfileView, selected: bool) {
    let usable = view.available && view.error.is_none();
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
        paint.tint(Area { x: area.x + 1, y, width: area.width.saturating_sub(1), height: 1 }, style);
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
    // A field takes a row and one for its help or error; where that does not fit, only the focused one has both.
    let count = u16::try_from(form.fields.len()).unwrap_or(u16::MAX);
    let tall = area.height >= count * 2 + 6;
    let needed = if tall { count * 2 } else { count + 1 };
    let room = needed.min(area.height.saturating_sub(3));
    let mut cursor = None;
    let mut y = area.y;
    let first = first_field(form, room, tall);
    for (at, field) in form.fields.iter().enumerate().skip(first) {
        let both = tall || at == form.focus;
        if y + u16::from(both) >= area.y + room {
            break;
        }
        let place = one(paint, area, y, field, at == form.focus, both);
        cursor = if at == form.focus { place } else { cursor };
        y += if both { 2 } else { 1 };
    }
    let below = Area { y: area.y + room, height: area.height - room, ..area };
    paint.put(below.x, below.y, below.width, &"─".repeat(usize::from(below.width)), Role::Border);
    let below = Area { y: below.y + 1, height: below.height.saturating_sub(1), ..below };
    plan(paint, form, below);
    if form.submitting { None } else { cursor }
}

/// The first field on the screen, so that the focused one is on it.
fn first_field(form: &CreateForm, room: u16, tall: bool) -> usize {
    let rows = usize::from(room);
    let fit = if tall { rows / 2 } else { rows.saturating_sub(1) };
    (form.focus + 1).saturating_sub(fit.max(1))
}

fn one(paint: &mut Paint<'_>, area: Area, y: u16, field: &Field, focused: bool, both: bool) -> Option<Position> {
    let label = format!("{}{}", field.label(), if field.required { " *" } else { "" });
    let role = match (&field.error, focused) {
        (Some(_), _) => Role::Bad,
        (None, true) => Role::Accent,
        (None, false) => Role::Plain,
    };
    paint.put(area.x, y, 1, if focused { "▌" } else { " " }, Role::Accent);
    paint.put(area.x + 2, y, LABEL - 2, &label, role);
    let (x, room) = (area.x + LABEL + 1, area.width.saturating_sub(LABEL + 1));
    let value = field.input.value();
    let scroll = field.input.visual_scroll(usize::from(room.saturating_sub(1)));
    let choices = matches!(field.choice, Choice::OneOf(_));
    if value.is_empty() {
        let shown = if field.default.is_empty() { "…" } else { field.default.as_str() };
        let shown = if choices && focused { format!("‹ {shown} ›") } else { shown.to_owned() };
        paint.put(x, y, room, &shown, Role::Dim);
    } else if choices {
        let shown = if focused { format!("‹ {value} ›") } else { value.to_owned() };
        paint.put(x, y, room, &shown, Role::Plain);
    } else {
        let shown = if focused { skip_columns(value, scroll) } else { value.to_owned() };
        paint.put(x, y, room, &shown, if focused { Role::Title } else { Role::Plain });
    }
    // Where only one row is there, an error beside a short value still shows.
    match (&field.error, both) {
        (Some(error), true) => paint.put(x, y + 1, room, &format!("✗ {error}"), Role::Bad),
        (None, true) => paint.put(x, y + 1, room, &field.help, Role::Dim),
        (Some(error), false) => {
            let used = u16::try_from(crate::domain::text::columns(value)).unwrap_or(room).min(room) + 2;
            paint.put(x + used, y, room.saturating_sub(used), &format!("✗ {error}"), Role::Bad)
        }
        (None, false) => 0,
    };
    let at = u16::try_from(field.input.visual_cursor().saturating_sub(scroll)).unwrap_or(0);
    (focused && !choices).then(|| Position::new(x + at.min(room.saturating_sub(1)), y))
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
        Plan::Unasked => lines.push((Role::Dim, "what it would do is shown when the fields are well".to_owned())),
        Plan::Asking => lines.push((Role::Dim, "looking at what it would do…".to_owned())),
        Plan::Known(decision) => decided(decision, &mut lines),
        Plan::Failed(problem) if form.error.is_none() => {
            lines.push((Role::Warn, format!("⚠ {}", problem.message)));
            lines.extend(problem.causes.iter().map(|cause| (Role::Plain, format!("  {cause}"))));
            lines.extend(problem.hint.iter().map(|hint| (Role::Key, format!("  {hint}"))));
        }
        Plan::Failed(_) => {}
    }
    let mut y = area.y;
    for (role, text) in lines {
        for part in wrap(&crate::domain::text::clean_line(&text, 4000), usize::from(area.width)) {
            if y >= area.y + area.height {
                return;
            }
            paint.put(area.x, y, area.width, &part, role);
            y += 1;
        }
    }
}

fn decided(decision: &Decision, lines: &mut Vec<(Role, String)>) {
    let price = decision.quote_usd.map(|price| format!("  {price}")).unwrap_or_default();
    let send = match (decision.preview.files, decision.preview.bytes) {
        (0, 0) => String::new(),
        (files, size) => format!("  sends {files} files, {}", bytes(size)),
    };
    match &decision.route {
        Some(route) if decision.ok => {
            lines.push((Role::Good, format!("✓ on {}: {}{send}{price}", route.host, route.reason)));
        }
        Some(route) => lines.push((Role::Bad, format!("✗ refused; it would go on {}{send}{price}", route.host))),
        None => lines.push((Role::Bad, "✗ no host can take it".to_owned())),
    }
    for refusal in &decision.preview.refusals {
        let allow =
            refusal.allow.as_ref().map(|word| format!(" (the profile may allow it: {word})")).unwrap_or_default();
        lines.push((Role::Bad, format!("  ✗ {}: {}{allow}", refusal.path, refusal.message)));
    }
    let chosen = decision.route.as_ref().map(|route| &route.host);
    for verdict in decision.verdicts.iter().filter(|verdict| chosen != Some(&verdict.host)) {
        let (glyph, role) = if verdict.ok { ('·', Role::Dim) } else { ('✗', Role::Warn) };
        lines.push((role, format!("  {glyph} {}: {}", verdict.host, verdict.reason)));
    }
    if !decision.preview.services.is_empty() {
        lines.push((Role::Dim, format!("  starts {}", decision.preview.services.join(", "))));
    }
    for rewrite in &decision.preview.rewrites {
        lines.push((Role::Dim, format!("  changes {}: {}", rewrite.path, rewrite.what)));
    }
}
