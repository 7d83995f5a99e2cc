//! Keys: looked up in the table for the mode, then done.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use tui_input::Input;

use super::toast::say;
use super::{
    Effect, activity, confirm, copy, credits, details, events, external_operations, filter, form,
    forms, hosts, jobs, logs, overlay, palette, panes, patches, picker, reap, records, search,
    shell, snapshots, stale, text_input, trouble, undo,
};
use crate::tui::keymap::{Action, Key, Mode};
use crate::tui::message::Completion;
use crate::tui::model::{Filter, Leaving, Model, NodeId, Offer, Overlay, Pane, Role, Sort, Verb};

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

fn alone(model: &mut Model, key: KeyEvent) -> Vec<Effect> {
    if model.is_blind() {
        return blind(model, &key);
    }
    let mode = model.mode();
    let action = model.keymap.action(mode, Key::from_event(&key));
    if mode == Mode::Form && form::holds(model, action, &key) {
        return Vec::new();
    }
    match (mode, action) {
        (_, Some(Action::Suspend)) => vec![Effect::Suspend],
        (Mode::Form, Some(action)) => form::act(model, action, &key),
        (Mode::Form, None) => form::text(model, &key),
        (Mode::Confirm, Some(action)) => confirm::act(model, action),
        (Mode::Confirm, None) => confirm::text(model, &key),
        (Mode::Picker, Some(action)) => picker::act(model, action),
        (Mode::SearchField, Some(action)) => search::field_act(model, action),
        (Mode::Filter, Some(action)) => filter::act(model, action),
        (Mode::LogField, Some(action)) => logs::field_act(model, action),
        (Mode::EventField, Some(action)) => events::field_act(model, action),
        (Mode::Palette, Some(action)) => match palette::act(model, action) {
            Some(offer) => take(model, offer),
            None => Vec::new(),
        },
        (Mode::Filter, None) if matches!(key.code, KeyCode::Down | KeyCode::Up) => {
            let down = key.code == KeyCode::Down;
            filter::walk(model, if down { Action::Down } else { Action::Up });
            Vec::new()
        }
        (mode, None) => {
            let field = model.line_field();
            let changed = field.is_some_and(|field| text_input::typed(field, &key));
            if changed { typed(model, mode) } else { Vec::new() }
        }
        (_, Some(action)) => act(model, action),
    }
}

/// A key on a terminal that is too small to show what it would do. It leaves when what runs has ended: nothing can be asked.
fn blind(model: &mut Model, key: &KeyEvent) -> Vec<Effect> {
    match model.keymap.action(Mode::Main, Key::from_event(key)) {
        Some(Action::Quit) if model.leaving.is_none() => jobs::leave_after(model, Leaving::Waiting),
        Some(Action::Suspend) => vec![Effect::Suspend],
        Some(Action::Redraw) => hosts::redraw(model),
        _ => Vec::new(),
    }
}

/// Text was pasted: only text fields take it; anywhere else it would be a hundred keys. What has to be typed before something
/// destructive is typed, not pasted.
pub(super) fn paste(model: &mut Model, text: &str) -> Vec<Effect> {
    match model.mode() {
        _ if model.is_blind() => Vec::new(),
        Mode::Form => form::paste(model, text),
        mode => {
            if let Some(field) = model.line_field() {
                text_input::insert(field, text);
            }
            typed(model, mode)
        }
    }
}

/// Text in the text field of one line may be another now.
fn typed(model: &mut Model, mode: Mode) -> Vec<Effect> {
    match mode {
        Mode::Filter => filter::typed(model),
        Mode::LogField => logs::typed(model),
        Mode::SearchField => search::typed(model),
        Mode::Picker => picker::typed(model),
        Mode::EventField => return events::typed(model),
        Mode::Palette
        | Mode::Form
        | Mode::Main
        | Mode::TextBlock
        | Mode::Confirm
        | Mode::Jobs
        | Mode::Logs
        | Mode::Shell
        | Mode::Patches
        | Mode::Reap
        | Mode::Events => {}
    }
    Vec::new()
}

/// Does an action in the panes or on an overlay that is read.
pub(super) fn act(model: &mut Model, action: Action) -> Vec<Effect> {
    if let Some(reason) = model.unavailable(action) {
        return say(model, Role::Warn, format!("{}: {reason}", action.name().replace('_', " ")));
    }
    match action {
        Action::Quit => jobs::leave(model),
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
        Action::Create => picker::open(model),
        Action::Destroy if snapshots::are_meant(model) => snapshots::ask_delete(model),
        Action::Destroy => confirm::ask(model, Verb::Destroy),
        Action::Recreate => confirm::ask(model, Verb::Recreate),
        Action::Sleep => confirm::ask(model, Verb::Sleep),
        Action::Wake => confirm::ask_wake(model),
        Action::Snapshot => forms::snapshot(model),
        Action::Restore => forms::restore(model),
        Action::Extend => forms::extend(model),
        Action::Grant => forms::grant(model),
        Action::Patches => patches::open(model),
        Action::CancelJob => jobs::ask_cancel(model),
        Action::Reap => reap::open(model),
        Action::Events => events::open(model),
        Action::Undo => undo::ask(model),
        Action::Logs => logs::open(model),
        Action::Shell => shell::open(model),
        Action::Labels => forms::labels(model),
        Action::Redraw => hosts::redraw(model),
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
            Mode::Patches => patches::act(model, action),
            Mode::Reap => reap::act(model, action),
            Mode::Events => events::act(model, action),
            _ => {
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
            return trouble::set_sort(model, sort);
        }
        _ => match model.focus {
            Pane::Sandboxes => panes::in_list(model, action),
            Pane::Snapshots => return snapshots::in_pane(model, action),
            Pane::Hosts => {
                if let Some(to) = model.hosts.window.moved(action) {
                    model.hosts.go(to);
                }
            }
            Pane::Credits => {
                if let Some(to) = model.credits.window.moved(action) {
                    model.credits.go(to);
                }
            }
            Pane::Activity => activity::step(model, action),
        },
    }
    Vec::new()
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
            Some(id) => details::open_sandbox(model, id),
            None => Vec::new(),
        },
        Pane::Snapshots => snapshots::open_row(model),
        Pane::Hosts => match model.hosts.selected().map(|host| host.view.name.clone()) {
            Some(name) => hosts::open(model, name),
            None => Vec::new(),
        },
        Pane::Credits => credits::open_row(model),
        Pane::Activity => activity::open_row(model),
    }
}

/// Does what was chosen in the palette.
fn take(model: &mut Model, offer: Offer) -> Vec<Effect> {
    match offer {
        Offer::Action(Action::Suspend) => return vec![Effect::Suspend],
        Offer::Action(action) => return act(model, action),
        Offer::Sort(key) => return trouble::set_sort(model, Sort { key, descending: false }),
        Offer::Host(name) => return hosts::open(model, name),
        Offer::Filter(filter) => {
            model.focus_on(Pane::Sandboxes);
            model.sandboxes.set_filter(Filter::parse(&filter));
        }
        Offer::Jump(id, _) => {
            model.focus_on(Pane::Sandboxes);
            if !model.sandboxes.shown().iter().any(|entry| entry.record.id == id) {
                model.sandboxes.set_filter(Filter::default());
            }
            model.sandboxes.point_at(id);
        }
        Offer::Restore(id, _) => {
            model.focus_on(Pane::Snapshots);
            model.snapshots.set_filter(Filter::default());
            model.snapshots.point_at(NodeId::Snapshot(id));
            return act(model, Action::Restore);
        }
    }
    Vec::new()
}

/// A path was completed. Then come the keys that were typed meanwhile.
pub(super) fn completed(model: &mut Model, typed: &str, completion: Completion) -> Vec<Effect> {
    let held = model.held.take();
    let mut effects = form::completed(model, typed, completion);
    for event in held.into_iter().flatten() {
        effects.extend(key(model, event));
    }
    effects
}

fn freeze(model: &mut Model) -> Vec<Effect> {
    if model.frozen.take().is_none() {
        model.frozen = Some(0);
        return Vec::new();
    }
    // What was held back is read, not replayed.
    let mut effects = records::list(model);
    effects.extend(snapshots::read(model));
    effects.extend(stale::read(model));
    effects.push(Effect::Events(None, Some(model.now.minus_seconds(3600))));
    effects
}
