//! Plan of a reap: what is stale, each with its action, kept for an hour.

use std::collections::BTreeMap;

use crate::domain::error::{Code, Error};
use crate::domain::event::{EventKind, PendingEvent, derived_event_id};
use crate::domain::name::PlanId;
use crate::domain::stale::{
    PLAN_KEPT_S, PlanRequest, PlanSource, ReapAction, ReapPlan, StaleClass, StaleItem, StaleQuery,
};
use crate::domain::sweep::HeldBack;
use crate::manager::deps::Deps;
use crate::manager::journal::publish_pending;
use crate::manager::stale::inspect::inspect_stale;

/// Makes a plan and keeps it.
///
/// Errors: those of an inspection; a data directory that takes no plan.
pub(crate) async fn plan_reap(deps: &Deps, request: &PlanRequest) -> Result<ReapPlan, Error> {
    if let Some(never) = request.classes.iter().find(|class| class.is_never_reaped()) {
        return Err(Error::invalid_input("class", format!("{never} ones are never reaped")));
    }
    let jumped = clock_jumped(deps).await;
    let query = StaleQuery { hosts: request.hosts.clone(), as_last_seen: false };
    let report = inspect_stale(deps, &query).await?;
    let wanted = |class: &StaleClass| {
        let archives = request.snapshots && *class == StaleClass::OrphanSnapshot;
        request.classes.is_empty() || request.classes.contains(class) || archives
    };
    let mut items: Vec<StaleItem> =
        report.items.into_iter().filter(|item| wanted(&item.class)).collect();
    for item in &mut items {
        set_action(item, request);
    }
    items.sort_by_key(|item| item.action == ReapAction::Keep);
    let plan = ReapPlan {
        id: PlanId::from_random((deps.random_u32)()),
        at: report.at,
        valid_until: report.at.plus_seconds(PLAN_KEPT_S),
        actor: deps.actor(),
        hosts: report.hosts,
        held_back: report.held_back.or(jumped),
        items,
    };
    deps.plans.put(&plan).await?;
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for item in plan.to_do() {
        *counts.entry(item.class.as_str()).or_default() += 1;
    }
    let data =
        serde_json::json!({"plan": plan.id, "items": plan.to_do().count(), "classes": counts});
    tell(deps, plan.id.as_str(), EventKind::ReapPlanned, data).await;
    Ok(plan)
}

/// Action of an item by what was asked for: orphans of a class that is named go, archives where they are asked for.
fn set_action(item: &mut StaleItem, request: &PlanRequest) {
    let is_asked = match &item.class {
        StaleClass::OrphanSnapshot => request.snapshots,
        StaleClass::OrphanStack | StaleClass::OrphanDir => request.classes.contains(&item.class),
        _ => false,
    };
    if is_asked && item.possible.contains(&ReapAction::Remove) {
        item.action = ReapAction::Remove;
    }
}

/// Tells of a plan, or of a reap; `of`: its id, of which there is one event of this kind.
pub(crate) async fn tell(deps: &Deps, of: &str, kind: EventKind, data: serde_json::Value) {
    let event = PendingEvent {
        id: derived_event_id(of, 0, &kind),
        time: deps.now(),
        kind,
        sandbox_id: None,
        actor: deps.actor(),
        data,
    };
    publish_pending(deps, &[event]).await;
}

/// Why nothing is judged now: the wall clock jumped since the last plan or sweep of this boot. The next plan judges.
async fn clock_jumped(deps: &Deps) -> Option<HeldBack> {
    let reading = deps.read_clocks();
    let (swept, planned) = (deps.sweeps.last().await, deps.plans.last().await);
    for unread in [&swept, &planned].into_iter().filter_map(|last| last.as_ref().err()) {
        tracing::warn!(error = %unread, "the clocks at the last sweep or plan cannot be read");
    }
    let known = [swept.ok().flatten(), planned.ok().flatten()].into_iter().flatten();
    let of_this_boot = known.filter(|last| last.monotonic.boot == reading.monotonic.boot);
    let last = of_this_boot.max_by_key(|last| last.monotonic.elapsed_ms);
    if let Err(error) = deps.plans.note(&reading).await {
        tracing::warn!(%error, "the clocks could not be noted");
    }
    let hint = "nothing is reaped by this plan; another one judges by the clock as it is now";
    let jump = last.and_then(|last| reading.jump_since(&last))?;
    Some(HeldBack { hint: Some(hint.to_owned()), ..HeldBack::over_jump(jump) })
}

/// The plan that is meant, if it may still be applied.
///
/// Errors: `not_found` where it is not kept, `conflict` where it is over or held back.
pub(crate) async fn find_plan(deps: &Deps, source: PlanSource) -> Result<ReapPlan, Error> {
    const ANEW: &str = "`sandboxer reap-stale --dry-run` makes a new one";
    let plan = match source {
        PlanSource::Plan(plan) => *plan,
        PlanSource::Id(id) => {
            let kept =
                if PlanId::is_one(&id) { deps.plans.get(&PlanId::new(&*id)).await? } else { None };
            kept.ok_or_else(|| {
                let shown: String = id.chars().take(80).collect();
                Error::new(
                    Code::NotFound,
                    format!("there is no plan {shown:?}; plans are kept for an hour"),
                )
                .hint(ANEW)
            })?
        }
    };
    let now = deps.now();
    // The end that a file says may be anybody's.
    let is_over = now >= plan.at.plus_seconds(PLAN_KEPT_S);
    if is_over || plan.at > now.plus_seconds(60) {
        let words = if is_over { "is over" } else { "is of the future" };
        return Err(Error::new(
            Code::Conflict,
            format!("plan {} of {} {words}: one may be applied for an hour", plan.id, plan.at),
        )
        .hint(ANEW));
    }
    match plan.held_back {
        None => Ok(plan),
        Some(held) => Err(held.error()),
    }
}
