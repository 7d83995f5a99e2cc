//! The one place where the model changes: synchronous and pure. Time comes in with the tick.

mod activity;
mod confirm;
mod copy;
mod credits;
mod destroyed;
mod details;
mod events;
mod external_operations;
mod filter;
mod form;
mod form_answers;
mod forms;
mod heard;
mod hosts;
mod hub;
mod jobs;
mod keys;
mod logs;
mod mouse;
mod overlay;
mod palette;
mod panes;
mod patch_status;
mod patches;
mod picker;
mod plan;
mod reap;
mod records;
mod search;
mod shell;
mod snapshots;
mod stale;
mod sweep;
mod text_input;
mod toast;
mod trouble;
mod undo;
mod work;

pub(super) use jobs::{go_unseen, may_leave};

pub use crate::tui::message::Timer;
pub(crate) use crate::tui::message::{Effect, Msg};
use crate::tui::model::{Model, ROWS_EACH};

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
            let mut effects = records::tick(model, now);
            effects.extend(hosts::tick(model));
            effects.extend(hub::tick(model));
            trouble::measure(model);
            model.measure_spending();
            effects
        }
        Msg::Resumed => vec![Effect::Redraw],
        Msg::Listed(answer) => records::listed(model, answer),
        Msg::ListedDestroyed(answer) => destroyed::listed(model, answer),
        Msg::Got(id, answer) => records::got(model, &id, answer),
        Msg::Due(Timer::Fetch) => records::fetch(model),
        Msg::Hosts(answer) => hosts::listed(model, answer),
        Msg::Due(Timer::Host(name)) => hosts::due(model, name),
        Msg::HostChecked(name, answer) => hosts::checked(model, &name, answer),
        Msg::Due(Timer::Sample(name)) => hosts::sample_due(model, name),
        Msg::HostSampled(name, answer) => hosts::sampled(model, name, answer),
        Msg::Subscribed(answer) => heard::subscribed(model, answer),
        Msg::Disconnected => heard::disconnected(model),
        Msg::Due(Timer::Listen) => vec![Effect::Subscribe],
        Msg::Heard(heard) => heard::heard(model, *heard),
        Msg::Events(of, answer) => heard::kept_events(model, of.as_ref(), answer),
        Msg::SinceLastLook(look, answer) => {
            activity::since_last_look(model, answer, look);
            Vec::new()
        }
        Msg::Profiles(answer) => picker::profiles(model, answer),
        Msg::Due(Timer::Plan(generation)) => plan::due(model, generation),
        Msg::Planned(generation, answer) => plan::planned(model, generation, answer),
        Msg::Started(job, answer) => work::started(model, job, answer),
        Msg::Skipped(job, reason) => work::skipped(model, job, reason),
        Msg::Ended(job, outcome, took) => work::ended(model, job, outcome, took),
        Msg::CancelAsked(job, answer) => jobs::cancel_asked(model, job, answer),
        Msg::Operations(answer) => external_operations::operations(model, answer),
        Msg::Due(Timer::Stale) => stale::due(model),
        Msg::Stale(answer) => stale::taken(model, answer),
        Msg::ReapPlanned(number, answer) => reap::planned(model, number, answer),
        Msg::Due(Timer::Sweep) => sweep::due(model),
        Msg::Swept(number, answer) => sweep::swept(model, number, answer),
        Msg::ServicesRefreshed(host, answer) => {
            external_operations::services_refreshed(model, &host, answer)
        }
        Msg::Labelled(id, answer) => form_answers::labelled(model, &id, answer),
        Msg::Extended(form, answer) => form_answers::extended(model, form, answer),
        Msg::LogOpened(log) => logs::opened(model, log),
        Msg::Log(log, batch) => logs::lines(model, log, *batch),
        Msg::LogEnded(log, answer) => logs::ended(model, log, answer),
        Msg::LogSaved(form, path, answer) => form_answers::log_saved(model, form, &path, answer),
        Msg::Snapshots(answer) => snapshots::taken(model, answer),
        Msg::Due(Timer::Snapshots) => snapshots::due(model),
        Msg::Credits(answer) => credits::taken(model, answer),
        Msg::EventLog(answer) => events::taken(model, answer),
        Msg::HubBacklog(answer) => hub::taken(model, answer),
        Msg::Due(Timer::Credits) => credits::due(model),
        Msg::Granted(form, answer) => form_answers::granted(model, form, answer),
        Msg::Extensions(answer) => snapshots::extensions(model, answer),
        Msg::Compared(number, answer) => form_answers::compared(model, number, answer),
        Msg::PatchStatus(id, answer) => patch_status::taken(model, &id, &answer),
        Msg::PatchAdded(number, answer) => form_answers::patch_added(model, number, answer),
        Msg::PatchRemoved(answer) => patches::removed(model, answer),
        Msg::RolledOut(job, answer) => patches::rolled_out(model, job, answer),
        Msg::Written(id, answer) => patches::written(model, &id, answer),
        Msg::Completed(typed, completion) => keys::completed(model, &typed, completion),
        Msg::ShellEnded(title, end) => shell::ended(model, &title, end),
    };
    effects.extend(logs::end_when_closed(model));
    effects.extend(settle(model));
    if jobs::may_leave(model) {
        effects.push(Effect::Quit);
    }
    effects
}

/// Effects of a console's start.
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
    let rows = usize::from;
    model.sandboxes.window.resize(rows(screen.list.height), model.sandboxes.shown().len());
    model.snapshots.window.resize(rows(screen.snapshots.height), model.snapshots.rows().len());
    let hosts = (rows(screen.hosts.height) / ROWS_EACH).max(1);
    model.hosts.window.resize(hosts, model.hosts.list.len());
    let entries = rows(model.credits_layout().list.height);
    model.credits.window.resize(entries, model.credits.ledger.entries.len());
    overlay::settle(model);
    let mut effects = activity::settle(model, usize::from(screen.activity.height));
    effects.extend(destroyed::settle(model));
    effects
}
