//! Plan of a create: asked for while its form is filled in, shown below the fields.

use std::time::Duration;

use super::{Effect, Timer};
use crate::client::{Decision, Error};
use crate::tui::model::{Load, Model, Plan};

/// How long after the last key it is asked for.
pub(super) const PAUSE: Duration = Duration::from_millis(400);
/// And where nothing is being typed.
pub(super) const AT_ONCE: Duration = Duration::from_millis(1);

/// Asks for one after a pause, if the fields make sense.
pub(super) fn ask(model: &mut Model, pause: Duration) -> Vec<Effect> {
    let number = model.last_plan + 1;
    let Some((create, fields)) = model.create_form() else { return Vec::new() };
    create.generation = number;
    let well = fields.check_all(false);
    if !well {
        create.plan = Plan::Unasked;
    } else if !matches!(create.plan, Plan::Known(_)) {
        create.plan = Plan::Asking;
    }
    model.last_plan = number;
    let timer = || Effect::After(pause, Box::new(Timer::Plan(number)));
    well.then(timer).into_iter().collect()
}

/// Time to plan, if nothing was typed since.
pub(super) fn due(model: &mut Model, generation: u64) -> Vec<Effect> {
    match model.create_form() {
        Some((create, fields)) if create.generation == generation => {
            vec![Effect::Plan(generation, Box::new(create.request(fields)))]
        }
        _ => Vec::new(),
    }
}

/// Plan of a create, as answered.
pub(super) fn planned(
    model: &mut Model,
    generation: u64,
    answer: Result<Box<Decision>, Error>,
) -> Vec<Effect> {
    let unreadable = match &model.credits.load {
        Load::Failed(error) => Some(error.clone()),
        Load::Loading | Load::Ready => None,
    };
    let Some((create, fields)) = model.create_form() else { return Vec::new() };
    if create.generation != generation {
        return Vec::new();
    }
    create.plan = match answer {
        Ok(decision) => {
            create.ledger_error = unreadable;
            create.judge_hosts(&decision.verdicts);
            create.tell_verdict(fields);
            Plan::Known(decision)
        }
        Err(problem) => {
            // A refusal that names a field belongs beside it; the focus stays where one types.
            let focus = fields.focus;
            fields.refuse(problem.clone());
            fields.focus = focus;
            Plan::Failed(problem)
        }
    };
    Vec::new()
}
