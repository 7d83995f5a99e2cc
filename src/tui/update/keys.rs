//! Keys: looked up in the table for the mode, then done.

use std::sync::Arc;

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use tui_input::Input;

use super::{
    Effect, action_form, activity, confirm, copy, credits, data, events, external_operations,
    fields, filter, form, hosts, labels, logs, overlay, panes, patches, reap, search, shell,
    snapshots, stale, trouble, undo, work,
};
use crate::domain::name::SandboxId;
use crate::domain::sandbox::SandboxRecord;
use crate::tui::keymap::{Action, Key, Mode};
use crate::tui::model::{Details, Entry, Leaving, Model, Overlay, Pane, Purpose, Role, Sort};

/// A key was pressed. One with Alt that is not bound is Esc and then the key: terminals and slow links join them.
pub(super) fn key(model: &mut Model, key: KeyEvent) -> Vec<Effect> {
    if key.kind == KeyEventKind::Release {
        return Vec::new();
    }
    let Some(second) = behind_esc(model, &key) else { return alone(model, key) };
    let mut effects = alone(model, KeyEvent::new(KeyCode::Esc, KeyModifiers::NONE));
    effects.extend(alone(model, second));
    effects
}

/// The key that came with an Esc before it, where that is no key of its own. Alt and backspace edit a text field.
fn behind_esc(model: &Model, key: &KeyEvent) -> Option<KeyEvent> {
    let mode = model.mode();
    let edits = key.code == KeyCode::Backspace && mode.types_text();
    let bound = model.keymap.action(mode, Key::from_event(key)).is_some();
    let joined = key.modifiers.contains(KeyModifiers::ALT) && !bound && !edits;
    joined.then(|| KeyEvent { modifiers: key.modifiers - KeyModifiers::ALT, ..*key })
}

/// Says that a key was typed before what it would have acted on was on the screen.
pub(super) fn say_undrawn(model: &mut Model) {
    model.say(Role::Dim, "that was typed before this was on the screen: press it again");
}

fn alone(model: &mut Model, key: KeyEvent) -> Vec<Effect> {
    if model.is_blind() {
        return blind(model, &key);
    }
    let mode = model.mode();
    let action = model.keymap.action(mode, Key::from_event(&key));
    if mode == Mode::Form && fields::holds(model, action, &key) {
        return Vec::new();
    }
    match (mode, action) {
        (_, Some(Action::Suspend)) => vec![Effect::Suspend],
        (Mode::Form, action) if matches!(model.overlays.last(), Some(Overlay::ActionForm(_))) => {
            match action {
                Some(action) => action_form::act(model, action, &key),
                None => action_form::text(model, &key),
            }
        }
        (Mode::Form, Some(action)) => form::act(model, action, &key),
        (Mode::Form, None) => form::text(model, &key),
        (Mode::Picker, Some(action)) => form::pick(model, action),
        (Mode::Picker, None) => form::pick_text(model, &key),
        (Mode::SearchField, Some(action)) => search::field_act(model, action),
        (Mode::SearchField, None) => search::field_text(model, &key),
        (Mode::Filter, Some(action)) => filter::act(model, action),
        (Mode::Filter, None) => filter::text(model, &key),
        (Mode::Confirm, Some(action)) => confirm::act(model, action),
        (Mode::Confirm, None) => confirm::text(model, &key),
        (Mode::LogField, Some(action)) => logs::field_act(model, action),
        (Mode::LogField, None) => logs::field_text(model, &key),
        (Mode::LabelField, Some(action)) => labels::field_act(model, action),
        (Mode::LabelField, None) => labels::field_text(model, &key),
        (Mode::EventField, Some(action)) => events::field_act(model, action),
        (Mode::EventField, None) => events::field_text(model, &key),
        (Mode::Palette, Some(action)) => overlay::palette_act(model, action),
        (Mode::Palette, None) => overlay::palette_text(model, &key),
        (_, Some(action)) => act(model, action),
        (_, None) => Vec::new(),
    }
}

/// A key on a terminal that is too small to show what it would do. It leaves when what runs has ended: nothing can be asked.
fn blind(model: &mut Model, key: &KeyEvent) -> Vec<Effect> {
    match model.keymap.action(Mode::Main, Key::from_event(key)) {
        Some(Action::Quit) if model.leaving.is_none() => work::leave_after(model, Leaving::Waiting),
        Some(Action::Suspend) => vec![Effect::Suspend],
        Some(Action::Redraw) => redraw(model),
        _ => Vec::new(),
    }
}

pub(super) fn redraw(model: &mut Model) -> Vec<Effect> {
    let mut effects = hosts::read_again(model);
    effects.push(Effect::Redraw);
    effects
}

/// Text was pasted: only text fields take it; anywhere else it would be a hundred keys.
pub(super) fn paste(model: &mut Model, text: &str) -> Vec<Effect> {
    match model.mode() {
        _ if model.is_blind() => Vec::new(),
        Mode::Form if matches!(model.overlays.last(), Some(Overlay::ActionForm(_))) => {
            action_form::paste(model, text)
        }
        Mode::Form => form::paste(model, text),
        Mode::Filter => filter::paste(model, text),
        Mode::Palette => overlay::palette_paste(model, text),
        Mode::LogField => logs::field_paste(model, text),
        Mode::LabelField => labels::field_paste(model, text),
        Mode::EventField => events::field_paste(model, text),
        Mode::SearchField => search::field_paste(model, text),
        Mode::Picker => form::pick_paste(model, text),
        // What has to be typed before something destructive is typed, not pasted.
        Mode::Main
        | Mode::TextBlock
        | Mode::Confirm
        | Mode::Jobs
        | Mode::Logs
        | Mode::Shell
        | Mode::Labels
        | Mode::Patches
        | Mode::Reap
        | Mode::Events => Vec::new(),
    }
}

/// Does an action in the panes or on an overlay that is read.
pub(super) fn act(model: &mut Model, action: Action) -> Vec<Effect> {
    if let Some(reason) = model.unavailable(action) {
        model.say(Role::Warn, format!("{}: {reason}", action.name().replace('_', " ")));
        return Vec::new();
    }
    match action {
        Action::Quit => work::leave(model),
        Action::Help => {
            let from = model.help_place(model.mode());
            model.overlays.push(Overlay::Help(from));
            Vec::new()
        }
        Action::Jobs => {
            if !model.overlays.iter().any(|overlay| matches!(overlay, Overlay::Jobs(_))) {
                model.overlays.push(Overlay::Jobs(0));
            }
            external_operations::read(model)
        }
        Action::Palette => {
            model.overlays.push(Overlay::Palette(Input::default(), 0));
            Vec::new()
        }
        Action::Create => form::open(model),
        Action::Destroy if snapshots::are_meant(model) => snapshots::ask_delete(model),
        Action::Destroy => confirm::ask(model, Purpose::Destroy),
        Action::Recreate => confirm::ask(model, Purpose::Recreate),
        Action::Sleep => confirm::ask(model, Purpose::Sleep),
        Action::Wake => confirm::ask_wake(model),
        Action::Snapshot => action_form::open_snapshot(model),
        Action::Restore => action_form::open_restore(model),
        Action::Extend => action_form::open_extend(model),
        Action::Grant => action_form::open_grant(model),
        Action::Patches => patches::open(model),
        Action::CancelJob => work::ask_cancel(model),
        Action::Reap => reap::open(model),
        Action::Events => events::open(model),
        Action::Undo => undo::ask(model),
        Action::Logs => logs::open(model),
        Action::Shell => shell::open(model),
        Action::Labels => labels::open(model),
        Action::Redraw => redraw(model),
        Action::Freeze => freeze(model),
        Action::Mouse => {
            model.mouse = !model.mouse;
            let text = if model.mouse {
                "the mouse selects rows"
            } else {
                "the mouse is the terminal's: select text, M takes it back"
            };
            model.say(Role::Dim, text);
            vec![Effect::Mouse(model.mouse)]
        }
        Action::CopyId | Action::CopySsh => copy::copy(model, action),
        Action::Close => close(model),
        Action::Open => open(model),
        Action::Host => overlay::open_its_host(model),
        Action::Raw => {
            overlay::open_raw(model);
            Vec::new()
        }
        Action::Search | Action::NextFound | Action::PreviousFound
            if model.mode() != Mode::Logs =>
        {
            search::act(model, action);
            Vec::new()
        }
        _ if model.overlays.is_empty() => pane(model, action),
        _ => match model.mode() {
            Mode::Logs => logs::act(model, action),
            Mode::Shell => shell::act(model, action),
            Mode::Labels => labels::act(model, action),
            Mode::Patches => patches::act(model, action),
            Mode::Reap => reap::act(model, action),
            Mode::Events => events::act(model, action),
            Mode::Main
            | Mode::Filter
            | Mode::TextBlock
            | Mode::Picker
            | Mode::Form
            | Mode::Confirm
            | Mode::Jobs
            | Mode::LogField
            | Mode::LabelField
            | Mode::EventField
            | Mode::SearchField
            | Mode::Palette => {
                overlay::scroll(model, action);
                Vec::new()
            }
        },
    }
}

/// Ends the search in the overlay on top, else closes that.
fn close(model: &mut Model) -> Vec<Effect> {
    if !search::end(model) && !logs::end_search(model) {
        model.overlays.pop();
    }
    Vec::new()
}

/// Actions on the focused pane.
fn pane(model: &mut Model, action: Action) -> Vec<Effect> {
    match action {
        Action::NextPane | Action::PreviousPane => {
            model.focus_on(model.focus.beside(action == Action::NextPane));
        }
        Action::PaneSandboxes => model.focus_on(Pane::Sandboxes),
        Action::PaneSnapshots => model.focus_on(Pane::Snapshots),
        Action::PaneHosts => model.focus_on(Pane::Hosts),
        Action::PaneCredits => model.focus_on(Pane::Credits),
        Action::PaneActivity => model.focus_on(Pane::Activity),
        Action::Zoom => model.zoomed = !model.zoomed,
        Action::Filter => filter::open(model),
        Action::NextTrouble => return trouble::next(model),
        Action::Sort | Action::SortDirection => {
            let sort = model.sandboxes.sort();
            let sort = match action {
                Action::Sort => Sort { key: sort.key.next(), descending: false },
                _ => Sort { descending: !sort.descending, ..sort },
            };
            return set_sort(model, sort);
        }
        _ => match model.focus {
            Pane::Sandboxes => panes::in_list(model, action),
            Pane::Snapshots => return snapshots::in_pane(model, action),
            Pane::Hosts => panes::in_hosts(model, action),
            Pane::Credits => panes::in_credits(model, action),
            Pane::Activity => activity::step(model, action),
        },
    }
    Vec::new()
}

/// Sorts the list, from a key or a click.
pub(super) fn set_sort(model: &mut Model, sort: Sort) -> Vec<Effect> {
    model.sandboxes.set_sort(sort);
    trouble::measure(model);
    vec![Effect::SaveState(model.saved_state())]
}

fn open(model: &mut Model) -> Vec<Effect> {
    match model.overlays.last() {
        Some(Overlay::Jobs(at)) => {
            let job = model.jobs.list().nth(*at).map(|job| job.id);
            model.overlays.extend(job.map(|id| Overlay::Output(id, None)));
            return Vec::new();
        }
        Some(Overlay::Patches(_)) => return patches::open_row(model),
        Some(Overlay::Reap) => return overlay::open_reap_row(model),
        Some(Overlay::Events(_)) => return events::open_row(model),
        Some(_) | None => {}
    }
    match model.focus {
        Pane::Sandboxes => match model.sandboxes.selected().map(|entry| entry.record.id.clone()) {
            Some(id) => activity::open_sandbox(model, id),
            None => Vec::new(),
        },
        Pane::Snapshots => snapshots::open_row(model),
        Pane::Hosts => match model.hosts.selected().map(|host| host.view.name.clone()) {
            Some(name) => overlay::open_host(model, name),
            None => Vec::new(),
        },
        Pane::Credits => credits::open_row(model),
        Pane::Activity => activity::open_row(model),
    }
}

/// Opens a sandbox's details, if it is listed.
pub(super) fn open_details(model: &mut Model, id: &SandboxId) -> Vec<Effect> {
    let Some(entry) = model.sandboxes.get(id) else { return Vec::new() };
    let entry = Arc::clone(entry);
    activity::look_at_sandbox(model, id);
    let record = SandboxRecord::clone(&entry.record);
    model.overlays.push(Overlay::Details(Details::new(record)));
    vec![Effect::Get(id.clone()), Effect::Events(Some(id.clone()), None)]
}

/// The sandbox that a key means which acts on one alone. Says so if there is none.
pub(super) fn subject(model: &mut Model) -> Option<Arc<Entry>> {
    let entry = model.pointed_sandbox().cloned();
    if entry.is_none() {
        say_no_subject(model);
    }
    entry
}

/// Says that there is no sandbox to act on, or that it is one that is over.
pub(super) fn say_no_subject(model: &mut Model) {
    let shown = model.sandboxes.selected().map(|entry| &entry.record);
    let over = if !model.overlays.is_empty() {
        None
    } else if model.focus == Pane::Activity {
        model.activity_sandbox()
    } else if model.focus == Pane::Credits {
        model.credit_sandbox_id()
    } else {
        let is_list = model.focus == Pane::Sandboxes && model.sandboxes.shows_destroyed();
        shown.filter(|_| is_list).map(|record| record.id.clone())
    };
    let title = |id: &SandboxId| {
        let shown = shown.filter(|record| record.id == *id).map(|record| record.title().to_owned());
        shown.or_else(|| model.name_of(id)).unwrap_or_else(|| id.to_string())
    };
    let text = match over {
        Some(id) => format!("{} is destroyed: enter shows its record", title(&id)),
        None => "there is no sandbox to act on".to_owned(),
    };
    model.say(Role::Dim, text);
}

fn freeze(model: &mut Model) -> Vec<Effect> {
    if model.frozen.take().is_none() {
        model.frozen = Some(0);
        return Vec::new();
    }
    // What was held back is read, not replayed.
    let mut effects = data::list(model);
    effects.extend(snapshots::read(model));
    effects.extend(stale::read(model));
    effects.push(Effect::Events(None, Some(model.now.minus_seconds(3600))));
    effects
}
