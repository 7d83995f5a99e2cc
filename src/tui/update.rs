//! The one place where the model changes: synchronous and pure. Time comes in with the tick.

mod action_form;
mod activity;
mod confirm;
mod copy;
mod credits;
mod data;
mod destroyed;
mod events;
mod external_operations;
mod fields;
mod filter;
mod form;
mod hosts;
mod hub;
mod keys;
mod labels;
mod logs;
mod mouse;
mod overlay;
mod panes;
mod patches;
mod reap;
mod search;
mod shell;
mod snapshots;
mod stale;
mod sweep;
mod trouble;
mod undo;
mod work;

pub(super) use work::{go_unseen, may_leave};

pub use crate::tui::message::{Effect, Msg, Timer};
use crate::tui::model::{Model, Overlay};

/// Takes a message; what is to be done because of it comes back.
pub fn update(model: &mut Model, msg: Msg) -> Vec<Effect> {
    let mut effects = match msg {
        Msg::Drawn => {
            // Nothing that anybody sees changes by it.
            model.drawn();
            return Vec::new();
        }
        Msg::Key(key) => keys::key(model, key),
        Msg::Paste(text) => keys::paste(model, &text),
        Msg::Mouse(event) => mouse::mouse(model, event),
        Msg::Resize(width, height) => {
            model.size = (width, height);
            Vec::new()
        }
        Msg::Tick(now) => {
            let mut effects = data::tick(model, now);
            effects.extend(hosts::tick(model));
            effects.extend(hub::tick(model));
            trouble::measure(model);
            model.measure_spending();
            effects
        }
        Msg::Resumed => vec![Effect::Redraw],
        Msg::Listed(answer) => data::listed(model, answer),
        Msg::ListedDestroyed(answer) => destroyed::listed(model, answer),
        Msg::Got(id, answer) => data::got(model, &id, answer),
        Msg::FetchDue => data::fetch(model),
        Msg::Hosts(answer) => hosts::listed(model, answer),
        Msg::HostDue(name) => hosts::due(model, name),
        Msg::HostChecked(name, answer) => hosts::checked(model, &name, answer),
        Msg::SampleDue(name) => hosts::sample_due(model, name),
        Msg::HostSampled(name, answer) => hosts::sampled(model, name, answer),
        Msg::Subscribed(answer) => data::subscribed(model, answer),
        Msg::Disconnected => data::disconnected(model),
        Msg::ListenDue => vec![Effect::Subscribe],
        Msg::Heard(heard) => data::heard(model, *heard),
        Msg::Events(of, answer) => data::kept_events(model, of.as_ref(), answer),
        Msg::SinceLastLook(look, answer) => {
            activity::since_last_look(model, answer, look);
            Vec::new()
        }
        Msg::Profiles(answer) => form::profiles(model, answer),
        Msg::PlanDue(generation) => form::plan_due(model, generation),
        Msg::Planned(generation, answer) => form::planned(model, generation, answer),
        Msg::Started(job, answer) => work::started(model, job, answer),
        Msg::Skipped(job, reason) => work::skipped(model, job, reason),
        Msg::Ended(job, outcome, took) => work::ended(model, job, outcome, took),
        Msg::CancelAsked(job, answer) => work::cancel_asked(model, job, answer),
        Msg::Operations(answer) => external_operations::operations(model, answer),
        Msg::StaleDue => stale::due(model),
        Msg::Stale(answer) => stale::taken(model, answer),
        Msg::ReapPlanned(number, answer) => reap::planned(model, number, answer),
        Msg::SweepDue => sweep::due(model),
        Msg::Swept(number, answer) => sweep::swept(model, number, answer),
        Msg::ServicesRefreshed(host, answer) => {
            external_operations::services_refreshed(model, &host, answer)
        }
        Msg::Labelled(id, answer) => labels::written(model, &id, answer),
        Msg::Extended(form, answer) => action_form::extended(model, form, answer),
        Msg::LogOpened(log) => logs::opened(model, log),
        Msg::Log(log, batch) => logs::lines(model, log, *batch),
        Msg::LogEnded(log, answer) => logs::ended(model, log, answer),
        Msg::LogSaved(log, path, answer) => logs::saved(model, log, &path, answer),
        Msg::Snapshots(answer) => snapshots::taken(model, answer),
        Msg::SnapshotsDue => snapshots::due(model),
        Msg::Credits(answer) => credits::taken(model, answer),
        Msg::EventLog(answer) => events::taken(model, answer),
        Msg::HubBacklog(answer) => hub::taken(model, answer),
        Msg::CreditsDue => credits::due(model),
        Msg::Granted(form, answer) => action_form::granted(model, form, answer),
        Msg::Extensions(answer) => snapshots::extensions(model, answer),
        Msg::Compared(number, answer) => action_form::compared(model, number, answer),
        Msg::PatchStatus(id, answer) => patches::status(model, &id, &answer),
        Msg::PatchAdded(number, answer) => action_form::patch_added(model, number, answer),
        Msg::PatchRemoved(_, answer) => patches::removed(model, answer),
        Msg::RolledOut(job, answer) => patches::rolled_out(model, job, answer),
        Msg::Written(id, answer) => patches::written(model, &id, answer),
        Msg::Completed(typed, completion) => fields::completed(model, &typed, completion),
        Msg::ShellEnded(title, end) => shell::ended(model, &title, end),
    };
    effects.extend(logs::end_when_closed(model));
    effects.extend(settle(model));
    if work::may_leave(model) {
        effects.push(Effect::Quit);
    }
    effects
}

/// What a console does when it starts.
pub fn start(model: &Model) -> Vec<Effect> {
    let look = model.looked_before;
    let mut effects = vec![
        // Listening comes first, so that nothing falls between the list and the stream.
        Effect::Subscribe,
        Effect::List,
        Effect::Snapshots,
        Effect::Hosts,
        Effect::Events(None, Some(model.now.minus_seconds(86_400))),
    ];
    effects.extend(look.map(|look| Effect::SinceLastLook(look, look.since(model.now))));
    effects.extend(sweep::first(model));
    effects
}

/// Keeps what depends on the screen's size within it.
fn settle(model: &mut Model) -> Vec<Effect> {
    if model.is_blind() {
        model.close_acting();
    }
    trouble::settle(model);
    let screen = model.screen();
    model.sandboxes.set_height(usize::from(screen.list.height));
    model.snapshots.set_height(usize::from(screen.snapshots.height));
    model.hosts.set_height(usize::from(screen.hosts.height));
    let entries = model.credits_layout().list.height;
    model.credits.set_height(usize::from(entries));
    overlay::settle(model);
    let mut effects = activity::settle(model, usize::from(screen.activity.height));
    effects.extend(destroyed::settle(model));
    effects
}

/// Whether an overlay of the create form is open, and which.
fn open_form(model: &mut Model) -> Option<&mut crate::tui::model::CreateForm> {
    model.overlays.iter_mut().rev().find_map(|overlay| match overlay {
        Overlay::Create(form) => Some(form.as_mut()),
        _ => None,
    })
}
