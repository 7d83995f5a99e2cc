//! The list: only the rows on the screen are drawn.

use super::paint::Paint;
use crate::domain::State;
use crate::domain::patch::PatchState;
use crate::domain::telling::last_telling_line;
use crate::tui::keymap::{Action, Mode};
use crate::tui::model::{
    Area, Column, Entry, Job, JobState, Load, Model, Pane, Placed, Role, Screen, age, left, many,
    patch_glyph, patch_role, short_profile, state_glyph, state_role,
};

/// Draws the pane.
pub(super) fn draw(model: &Model, paint: &mut Paint<'_>, screen: &Screen) {
    title(model, paint, screen);
    let columns = screen.columns();
    if model.sandboxes.shown().is_empty() {
        nothing(model, paint, screen.list);
        return;
    }
    titles(model, paint, screen.titles, &columns);
    for (row, entry) in model.sandboxes.window().iter().enumerate() {
        let y = screen.list.y + u16::try_from(row).unwrap_or(u16::MAX);
        let selected = model.sandboxes.offset() + row == model.sandboxes.index();
        line(model, paint, screen.list, y, entry, &columns, selected);
    }
    scrollbar(model, paint, screen);
}

fn title(model: &Model, paint: &mut Paint<'_>, screen: &Screen) {
    let list = &model.sandboxes;
    let focused = model.focus == Pane::Sandboxes && model.overlays.is_empty();
    let role = if focused { Role::Accent } else { Role::Title };
    let (x, y, room) = (screen.frame.x + 2, screen.frame.y, screen.frame.width.saturating_sub(4));
    let count = if list.filter().is_empty() {
        format!("{} ", list.len())
    } else {
        format!("{} of {} ", list.shown().len(), list.len())
    };
    let filter = format!("/{} ", list.filter().text());
    let marks = match (list.marks().len(), list.hidden_marks()) {
        (0, _) => String::new(),
        (marked, 0) => format!("{marked} marked "),
        (marked, hidden) => format!("{marked} marked, {hidden} of them hidden by the filter "),
    };
    let mut spans = vec![(role, " Sandboxes ")];
    if list.load == Load::Ready || !list.is_empty() {
        spans.push((Role::Plain, count.as_str()));
    }
    if !list.filter().is_empty() {
        spans.extend([(Role::Border, "─ "), (Role::Accent, filter.as_str())]);
    }
    if !marks.is_empty() {
        spans.extend([(Role::Border, "─ "), (Role::Warn, marks.as_str())]);
    }
    let stale = match &list.load {
        Load::Failed(problem) if !list.is_empty() => {
            format!("not read again: {} ", problem.message)
        }
        Load::Loading | Load::Ready | Load::Failed(_) => String::new(),
    };
    if !stale.is_empty() {
        spans.extend([(Role::Border, "─ "), (Role::Bad, stale.as_str())]);
    }
    let end = paint.spans(x, y, room, &spans);
    if screen.activity.height == 0 && (screen.snapshots.height == 0 || !screen.is_folded()) {
        // One pane at a time: the others are tabs.
        let mut x = end;
        for other in super::activity::others(screen, Pane::Sandboxes) {
            let name = format!("{other} (tab) ");
            x = paint.spans(
                x,
                y,
                (screen.frame.x + 2 + room).saturating_sub(x),
                &[(Role::Border, "─ "), (Role::Dim, &name)],
            );
        }
    }
}

fn titles(model: &Model, paint: &mut Paint<'_>, area: Area, columns: &[Placed]) {
    let sort = model.sandboxes.sort();
    for placed in columns {
        let sorted = placed.column.sort_key() == Some(sort.key);
        let text = match (sorted, sort.descending) {
            (false, _) => placed.column.title().to_owned(),
            (true, false) => format!("{} ↑", placed.column.title()),
            (true, true) => format!("{} ↓", placed.column.title()),
        };
        let role = if sorted { Role::Title } else { Role::Dim };
        paint.put(area.x + placed.x, area.y, placed.width + 1, &text, role);
    }
}

/// Loading, empty, nothing matches, error: told apart, each with what helps.
fn nothing(model: &Model, paint: &mut Paint<'_>, area: Area) {
    let key = |action| model.keymap.first(Mode::Main, action).unwrap_or_default();
    let y = area.y + area.height / 3;
    let x = area.x + 3;
    let room = area.width.saturating_sub(6);
    match &model.sandboxes.load {
        Load::Loading => {
            paint.put(x, y, room, "reading the sandboxes…", Role::Dim);
        }
        Load::Failed(problem) => {
            paint.put(x, y, room, &format!("✗ {}", problem.message), Role::Bad);
            let mut row = y + 1;
            for cause in problem.causes.iter().take(3) {
                paint.put(x + 2, row, room, cause, Role::Plain);
                row += 1;
            }
            if let Some(hint) = &problem.hint {
                paint.put(x + 2, row, room, hint, Role::Key);
                row += 1;
            }
            let again = key(Action::Redraw);
            paint.spans(x + 2, row + 1, room, &[(Role::Key, &again), (Role::Dim, " tries again")]);
        }
        Load::Ready if !model.sandboxes.filter().is_empty() => {
            let text = format!(
                "none of {} matches '{}'",
                many(model.sandboxes.len(), "sandbox", "sandboxes"),
                model.sandboxes.filter().text()
            );
            paint.put(x, y, room, &text, Role::Plain);
            let clear = key(Action::Clear);
            paint.spans(x, y + 1, room, &[(Role::Key, &clear), (Role::Dim, " shows all of them")]);
        }
        Load::Ready => {
            paint.put(x, y, room, "no sandboxes", Role::Plain);
            let create = key(Action::Create);
            let what = if model.read_only {
                " would create one, but this console is read-only"
            } else {
                " creates one"
            };
            paint.spans(x, y + 1, room, &[(Role::Key, &create), (Role::Dim, what)]);
        }
    }
}

#[allow(clippy::too_many_arguments, reason = "a row is all of these")]
fn line(
    model: &Model,
    paint: &mut Paint<'_>,
    area: Area,
    y: u16,
    entry: &Entry,
    columns: &[Placed],
    selected: bool,
) {
    let record = &entry.record;
    let silent = model.hosts.is_silent(record.host.as_str(), model.now, model.started);
    let job = model.jobs.of_sandbox(&record.id);
    let plain = if silent { Role::Dim } else { Role::Plain };
    let state = if silent { Role::Dim } else { state_role(&record.state) };
    for placed in columns {
        let (x, width) = (area.x + placed.x, placed.width);
        match placed.column {
            Column::Marks => {
                let marked = model.sandboxes.marks().contains(&record.id);
                paint.put(x, y, 1, if selected { "▌" } else { " " }, Role::Accent);
                paint.put(x + 1, y, 1, if marked { "✓" } else { " " }, Role::Accent);
                let degraded = entry.degraded > 0;
                let busy = job.is_some() || record.operation.is_some();
                let (glyph, role) = match (busy, degraded) {
                    (true, _) => ('◐', if silent { Role::Dim } else { Role::Busy }),
                    (false, true) => ('⚠', if silent { Role::Dim } else { Role::Warn }),
                    (false, false) => (state_glyph(&record.state), state),
                };
                paint.put(x + 2, y, 1, &glyph.to_string(), role);
                if let Some(state) = patch_state(model, entry) {
                    paint.put(x + 3, y, 1, &patch_glyph(state).to_string(), patch_role(state));
                }
            }
            Column::Id => {
                paint.put(
                    x,
                    y,
                    width,
                    record.id.as_str(),
                    if selected { Role::Title } else { plain },
                );
            }
            Column::Name => {
                let (name, role) =
                    record.name.as_deref().map_or(("—", Role::Dim), |name| (name, plain));
                paint.put(x, y, width, name, role);
            }
            Column::Profile => {
                paint.put(x, y, width, short_profile(&record.profile.id), Role::Dim);
            }
            Column::Host => {
                paint.put(x, y, width, record.host.as_str(), plain);
            }
            Column::State => {
                let text = if entry.degraded > 0 {
                    "degraded".to_owned()
                } else {
                    record.state.to_string()
                };
                let role = if entry.degraded > 0 && !silent { Role::Warn } else { state };
                paint.put(x, y, width, &text, role);
            }
            Column::Age => {
                let text = age(model.now.since(record.created_at).as_secs());
                paint.put(x, y, width, &text, Role::Dim);
            }
            Column::Left => {
                let (role, text) = last_column(model, entry, job, silent);
                paint.put(x, y, width, &text, role);
            }
        }
    }
    if selected && model.overlays.is_empty() {
        let style =
            paint.style(if model.focus == Pane::Sandboxes { Role::Selected } else { Role::Plain });
        // Cursor, mark and glyph keep their colours.
        let marks = columns.first().map_or(0, |placed| placed.width);
        paint.tint(
            Area { x: area.x + marks, width: area.width.saturating_sub(marks), y, height: 1 },
            style,
        );
    }
}

/// How the patches of a sandbox stand, where that is worth a mark: some wait, one failed, or nobody knows.
fn patch_state<'a>(model: &'a Model, entry: &'a Entry) -> Option<&'a PatchState> {
    let based = model.snapshots.of_sandbox(&entry.record.id).map(|(_, based)| &based.patch_state);
    let state = based.unwrap_or(&entry.record.patch_state);
    matches!(
        state,
        PatchState::Pending | PatchState::Applying | PatchState::Failed | PatchState::Unknown
    )
    .then_some(state)
}

/// Whether a patch stands in the way of later ones. One that was taken away stands in nobody's, whatever the record tells.
fn is_stuck(model: &Model, entry: &Entry) -> bool {
    patch_state(model, entry)
        .is_some_and(|state| matches!(state, PatchState::Failed | PatchState::Unknown))
}

/// What the last column says: what is being done, else what is wrong, else what is left.
fn last_column(model: &Model, entry: &Entry, job: Option<&Job>, silent: bool) -> (Role, String) {
    let record = &entry.record;
    if let Some(job) = job.filter(|job| job.external.is_none()) {
        let stage = job.stage.as_ref().map_or("starting", |(stage, _, _)| stage.as_str());
        let part = job.fraction().map(|part| format!(" {:.0}%", part * 100.0)).unwrap_or_default();
        let word = if job.state == JobState::Cancelling { "cancelling: " } else { "" };
        return (Role::Busy, format!("{word}{stage}{part}"));
    }
    if silent {
        let since = record.observed_at.map(|at| age(model.now.since(at).as_secs()));
        return (
            Role::Warn,
            since.map_or_else(
                || "⚠ never observed".to_owned(),
                |since| format!("⚠ as of {since} ago"),
            ),
        );
    }
    if let Some((job, external)) = job.and_then(|job| Some((job, job.external.as_ref()?))) {
        let word = if job.state == JobState::Cancelling { "cancelling " } else { "" };
        return (
            Role::Busy,
            format!(
                "{word}{} {} by {}",
                job.kind,
                age(job.seconds(model.now)),
                external.actor.name
            ),
        );
    }
    if let Some(running) = &record.operation {
        let since = age(model.now.since(running.started_at).as_secs());
        let word = if running.cancel_requested { "cancelling " } else { "" };
        return (Role::Busy, format!("{word}{} {since} by {}", running.kind, running.actor.name));
    }
    if entry.degraded > 0 {
        let words: Vec<String> = record
            .degraded()
            .map(|service| match service.exit_code {
                Some(code) => format!("{} exit {code}", service.name),
                None => format!("{} {}", service.name, service.state),
            })
            .collect();
        // A patch that failed may be why; a column has no room for two sentences.
        let patch = if is_stuck(model, entry) { ", patch failed" } else { "" };
        return (Role::Warn, format!("{}{patch}", words.join(", ")));
    }
    if matches!(record.state, State::Failed | State::Lost | State::Destroying) {
        let ago = age(model.now.since(record.since).as_secs());
        // What its step wrote says more than that the step failed.
        let telling =
            record.failure.as_ref().and_then(|failure| last_telling_line(&failure.output));
        let message = telling
            .or(record.message.as_deref())
            .map(|text| format!(": {text}"))
            .unwrap_or_default();
        let role = if record.state == State::Failed { Role::Bad } else { Role::Warn };
        return (role, format!("{ago} ago{message}"));
    }
    if let Some(error) = record.patch_error.as_ref().filter(|_| is_stuck(model, entry)) {
        // The mark says that one failed; which one may be cut off, the deadline may not.
        let left = left(record.expires_at, model.now);
        return (Role::Bad, format!("{}  {error}", left.strip_suffix(" left").unwrap_or(&left)));
    }
    let soon = record.expires_at.is_some_and(|end| end <= model.now.plus_seconds(600));
    let protected = if record.is_protected() { "  protected" } else { "" };
    let role = if soon { Role::Warn } else { Role::Plain };
    (role, format!("{}{protected}", left(record.expires_at, model.now)))
}

/// Where the window is in a long list, on the frame's right edge.
fn scrollbar(model: &Model, paint: &mut Paint<'_>, screen: &Screen) {
    let (count, height) = (model.sandboxes.shown().len(), usize::from(screen.list.height));
    if count <= height || height == 0 {
        return;
    }
    let thumb = (height * height / count).max(1);
    let top = model.sandboxes.offset() * (height - thumb) / (count - height).max(1);
    let x = screen.list.x + screen.list.width - 1;
    for row in top..top + thumb {
        let y = screen.list.y + u16::try_from(row).unwrap_or(u16::MAX);
        paint.put(x, y, 1, "┃", Role::Dim);
    }
}
