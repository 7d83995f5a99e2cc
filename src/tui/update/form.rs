//! The create form's keys and answers.

use std::time::Duration;

use crossterm::event::{Event, KeyEvent};
use tui_input::backend::crossterm::to_input_request;

use super::{Effect, Timer, fields, keys, open_form};
use crate::client::{Decision, Error, ProfileView, Request};
use crate::domain::OperationKind;
use crate::tui::keymap::Action;
use crate::tui::model::{CreateForm, Host, Load, Model, Overlay, Plan, Role, Step};

/// How long after the last key a plan is asked for.
const PAUSE: Duration = Duration::from_millis(400);

/// Opens the form.
pub(super) fn open(model: &mut Model) -> Vec<Effect> {
    model.overlays.push(Overlay::Create(Box::default()));
    vec![Effect::Profiles]
}

/// The profiles were read.
pub(super) fn profiles(model: &mut Model, answer: Result<Vec<ProfileView>, Error>) -> Vec<Effect> {
    if let Ok(profiles) = &answer {
        let undo = profiles.iter().filter_map(|view| view.profile.as_ref());
        model.undo_profiles =
            undo.filter(|profile| profile.undo).map(|profile| profile.id.clone()).collect();
    }
    // They are read beside it too: what is chosen by now stays.
    if let Some(form) = open_form(model).filter(|form| form.load != Load::Ready) {
        match answer {
            Ok(profiles) => form.take(profiles),
            Err(problem) => form.load = Load::Failed(problem),
        }
    }
    Vec::new()
}

/// A key while a profile is chosen.
pub(super) fn pick(model: &mut Model, action: Action) -> Vec<Effect> {
    // Those that answer are the first choices.
    let (mut hosts, others): (Vec<&Host>, Vec<&Host>) =
        model.hosts.list.iter().partition(|host| host.is_fine());
    hosts.extend(others);
    let hosts: Vec<String> = hosts.iter().map(|host| host.view.name.to_string()).collect();
    let Some(form) = open_form(model) else { return Vec::new() };
    match action {
        Action::Leave => {
            model.overlays.pop();
        }
        Action::NextMatch => form.step(1),
        Action::PreviousMatch => form.step(-1),
        Action::Redraw => return keys::redraw(model),
        Action::Choose if form.shown().is_empty() => {}
        Action::Choose => {
            let refused = form.profile().and_then(unavailable);
            match refused {
                Some(reason) => model.say(Role::Warn, reason),
                None if form.load == Load::Ready && !form.profiles.is_empty() => {
                    form.open_fields(&hosts);
                    return ask(form, Duration::from_millis(1));
                }
                None => {}
            }
        }
        _ => {}
    }
    Vec::new()
}

/// A key that is typed while a profile is chosen: it searches.
pub(super) fn pick_text(model: &mut Model, key: &KeyEvent) -> Vec<Effect> {
    if let Some(form) = open_form(model)
        && let Some(request) = to_input_request(&Event::Key(*key))
        && form.search.handle(request).is_some_and(|change| change.value)
    {
        form.point_at_first();
    }
    Vec::new()
}

/// Pasted text searches the profiles.
pub(super) fn pick_paste(model: &mut Model, text: &str) -> Vec<Effect> {
    if let Some(form) = open_form(model) {
        fields::insert(&mut form.search, text);
        form.point_at_first();
    }
    Vec::new()
}

/// Why a profile cannot be taken, if it cannot.
pub(super) fn unavailable(view: &ProfileView) -> Option<String> {
    match &view.error {
        Some(error) => Some(error.clone()),
        None if view.available => None,
        None => Some(
            view.unavailable
                .clone()
                .unwrap_or_else(|| "this version cannot create with it".to_owned()),
        ),
    }
}

/// A key of the table while fields are filled in.
pub(super) fn act(model: &mut Model, action: Action, key: &KeyEvent) -> Vec<Effect> {
    let home = model.home.clone();
    let Some(form) = open_form(model) else { return Vec::new() };
    if let Some(effect) =
        fields::complete(&form.fields, home.as_deref(), key).filter(|_| !form.submitting)
    {
        model.held = Some(Vec::new());
        return vec![effect];
    }
    match action {
        // While the create is asked, leaving would hide its answer.
        _ if form.submitting => {}
        Action::Leave => form.step = Step::Pick,
        Action::Preview => return ask(form, Duration::from_millis(1)),
        Action::Submit if !form.drawn => keys::say_undrawn(model),
        Action::Submit => return submit(model),
        _ if fields::act(&mut form.fields, action, key) => return changed(form),
        _ => {}
    }
    Vec::new()
}

/// A key that edits the focused field.
pub(super) fn text(model: &mut Model, key: &KeyEvent) -> Vec<Effect> {
    let Some(form) = open_form(model).filter(|form| !form.submitting) else { return Vec::new() };
    if fields::text(&mut form.fields, key) { changed(form) } else { Vec::new() }
}

/// Pasted text goes into the focused field.
pub(super) fn paste(model: &mut Model, text: &str) -> Vec<Effect> {
    let form = open_form(model).filter(|form| form.step == Step::Fill && !form.submitting);
    let Some(form) = form else { return Vec::new() };
    if fields::paste(&mut form.fields, text) { changed(form) } else { Vec::new() }
}

pub(super) fn changed(form: &mut CreateForm) -> Vec<Effect> {
    form.error = None;
    form.tell_verdict();
    ask(form, PAUSE)
}

/// Asks for a plan after a pause, if the fields make sense.
fn ask(form: &mut CreateForm, pause: Duration) -> Vec<Effect> {
    form.generation += 1;
    if !form.fields.check_all(false) {
        form.plan = Plan::Unasked;
        return Vec::new();
    }
    if !matches!(form.plan, Plan::Known(_)) {
        form.plan = Plan::Asking;
    }
    vec![Effect::After(pause, Box::new(Timer::Plan(form.generation)))]
}

/// It is time to plan, if nothing was typed since.
pub(super) fn plan_due(model: &mut Model, generation: u64) -> Vec<Effect> {
    match open_form(model) {
        Some(form) if form.generation == generation && form.step == Step::Fill => {
            vec![Effect::Plan(generation, Box::new(form.request()))]
        }
        _ => Vec::new(),
    }
}

/// What a create would do is known.
pub(super) fn planned(
    model: &mut Model,
    generation: u64,
    answer: Result<Box<Decision>, Error>,
) -> Vec<Effect> {
    let Some(form) = open_form(model).filter(|form| form.generation == generation) else {
        return Vec::new();
    };
    form.plan = match answer {
        Ok(decision) => {
            form.judge_hosts(&decision.verdicts);
            Plan::Known(decision)
        }
        Err(problem) => {
            // A refusal that names a field belongs beside it; the focus stays where one types.
            let focus = form.fields.focus;
            if problem.field().is_some() {
                form.refuse(problem.clone());
                form.fields.focus = focus;
                form.error = None;
            }
            Plan::Failed(problem)
        }
    };
    Vec::new()
}

/// Creates, if every field is well.
fn submit(model: &mut Model) -> Vec<Effect> {
    let now = model.now;
    let Some(form) = open_form(model) else { return Vec::new() };
    if !form.fields.are_ready() {
        return Vec::new();
    }
    form.submitting = true;
    form.error = None;
    let request = form.request();
    let profile = request.profile.as_deref().unwrap_or_default();
    let profile = profile.strip_prefix("profile.").unwrap_or(profile);
    let title = request.name.clone().unwrap_or_else(|| profile.to_owned());
    let job = model.jobs.start(OperationKind::Create, None, title, now);
    vec![Effect::Start(job, Request::Create(Box::new(request)))]
}
