//! Reap: exactly what the plan says, where it is still so. Each host is looked at anew; what changed is skipped.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::join_all;

use crate::domain::error::{Code, Error};
use crate::domain::event::EventKind;
use crate::domain::facts::HostFacts;
use crate::domain::name::HostName;
use crate::domain::operation::{OperationKind, Subject};
use crate::domain::reporter::{Report, Reporter as _};
use crate::domain::stale::{
    PassState, ReapAction, ReapItem, ReapOutcome, ReapPlan, ReapReport, ReapRequest, ReapStarted,
    StaleClass, StaleItem, StaleQuery, StaleReport,
};
use crate::domain::update::Update;
use crate::manager::deps::Deps;
use crate::manager::operation::Op;
use crate::manager::operation::record::new_operation;
use crate::manager::stale::inspect::inspect_with_readings;
use crate::manager::stale::outcome::Done;
use crate::manager::stale::plan::{find_plan, tell};
use crate::manager::stale::reap_found::{adopt_as_planned, remove_archive, remove_found};
use crate::manager::stale::reap_record::{reap_record, recover_as_planned};
use crate::manager::upkeep::ownership::ensure_own;

/// Starts to apply a plan and returns at once.
///
/// Errors: `not_found` and `conflict` for a plan that may not be applied, `conflict` in a copied or restored data directory, `busy`
/// where another one that wants to be alone is at work.
pub(crate) async fn reap(deps: &Deps, request: ReapRequest) -> Result<ReapStarted, Error> {
    ensure_own(deps).await?;
    let plan = find_plan(deps, request.plan).await?;
    let alone = if request.alone {
        let lock = deps.plans.try_lock().await?;
        let busy = || Error::new(Code::Busy, "another reap is at work").hint("wait for its end");
        Some(lock.ok_or_else(busy)?)
    } else {
        None
    };
    let report = ReapReport { plan: plan.id.clone(), items: Vec::new() };
    if plan.to_do().next().is_none() {
        return Ok(ReapStarted { operation: None, report });
    }
    let operation = new_operation(deps, OperationKind::Reap, Subject::Host, Some(plan.id.as_str()));
    let op = Box::pin(Op::queue(deps, operation, plan, alone)).await?;
    reports(deps).insert(op.id().clone(), report.clone());
    let no_undo = request.no_undo;
    let work = async move |op: Arc<Op<ReapPlan>>| Box::pin(apply(&op, no_undo)).await;
    let operation = op.run_or(None, work, async |_| ());
    Ok(ReapStarted { operation: Some(operation), report })
}

fn reports(
    deps: &Deps,
) -> std::sync::MutexGuard<'_, BTreeMap<crate::domain::name::OperationId, ReapReport>> {
    deps.reaps.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn apply(op: &Op<ReapPlan>, no_undo: bool) -> Result<(), Error> {
    let deps = &op.deps;
    let plan = &op.subject;
    op.progress.announce(1, 0);
    let mut by_host: BTreeMap<String, Vec<&StaleItem>> = BTreeMap::new();
    for item in plan.to_do() {
        let on_host = by_host.entry(item.host.as_str().to_ascii_lowercase()).or_default();
        // A file may have one twice.
        if !on_host.iter().any(|known: &&StaleItem| known.is_same(item)) {
            on_host.push(item);
        }
    }
    let count = by_host.values().map(Vec::len).sum();
    let outcomes = ReapOutcomes { op, count, done: Mutex::new(Vec::new()) };
    let hosts =
        by_host.into_values().map(|items| Box::pin(apply_on_host(&outcomes, items, no_undo)));
    let cancel_requested = async {
        op.cancel_requested().await;
        op.cancel_token().cancel();
        std::future::pending::<Infallible>().await
    };
    tokio::select! {
        biased;
        _ = join_all(hosts) => {}
        never = cancel_requested => match never {},
    }
    let items = outcomes.in_order(plan);
    let counts =
        |outcome: &ReapOutcome| items.iter().filter(|item| item.outcome == *outcome).count();
    let data = serde_json::json!({
        "plan": plan.id, "items": count,
        "outcomes": ReapOutcome::ALL.iter().map(|outcome| (outcome.as_str(), counts(outcome)))
            .filter(|(_, count)| *count > 0).collect::<BTreeMap<_, _>>(),
    });
    tell(deps, op.id().as_str(), EventKind::ReapApplied, data).await;
    let failed = counts(&ReapOutcome::Failed);
    let outcome = if op.is_cancelled() {
        Err(Error::new(
            Code::Cancelled,
            "what was begun came to its end; the rest of the plan is left",
        ))
    } else if failed > 0 {
        Err(Error::new(Code::Partial, format!("{failed} of {count} could not be done")))
    } else {
        Ok(())
    };
    reports(deps).insert(op.id().clone(), ReapReport { plan: plan.id.clone(), items });
    outcome
}

struct ReapOutcomes<'a> {
    op: &'a Op<ReapPlan>,
    count: usize,
    done: Mutex<Vec<ReapItem>>,
}

impl ReapOutcomes<'_> {
    fn add(&self, planned: &StaleItem, done: Result<Done, Error>) {
        let (ok, outcome, message, error) = match done {
            Ok(Done::As(outcome, message)) => (true, outcome, message, None),
            Ok(Done::Skipped(why)) => (true, ReapOutcome::Skipped, why, None),
            Err(error) => (false, ReapOutcome::Failed, error.message.clone(), Some(error)),
        };
        let item = ReapItem {
            id: planned.id().to_owned(),
            ok,
            class: planned.class.clone(),
            host: planned.host.clone(),
            action: planned.action.clone(),
            outcome,
            message,
            error,
        };
        let words = format!("{} {}: {}", item.id, item.outcome, item.message);
        let at = {
            let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
            done.push(item.clone());
            done.len() as u64
        };
        let (deps, id) = (&self.op.deps, self.op.id().clone());
        deps.jobs.publish(Update::Reaped(id, Box::new(item)));
        self.op.progress.report(Report {
            stage: "reap",
            step: 1,
            steps: 1,
            done: Some(at),
            of: Some(self.count as u64),
            message: Some(words),
            ..Report::default()
        });
    }

    fn in_order(&self, plan: &ReapPlan) -> Vec<ReapItem> {
        let done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        let of = |planned: &StaleItem| {
            done.iter().find(|item| item.id == planned.id() && item.host == planned.host).cloned()
        };
        let mut counted = BTreeSet::new();
        let once = |item: &ReapItem| counted.insert((item.host.clone(), item.id.clone()));
        plan.to_do().filter_map(of).filter(once).collect()
    }
}

async fn apply_on_host(outcomes: &ReapOutcomes<'_>, items: Vec<&StaleItem>, no_undo: bool) {
    let deps = &outcomes.op.deps;
    let Some(host) = items.first().map(|item| item.host.clone()) else { return };
    let query = StaleQuery { hosts: vec![host.to_string()], as_last_seen: false };
    let read = inspect_with_readings(deps, &query).await;
    let read = read.and_then(|(fresh, readings)| {
        let facts = readings.into_iter().find_map(|reading| reading.facts);
        let unread = || Error::internal(format!("{host} was not read"));
        Ok((judged(fresh)?, facts.ok_or_else(unread)?))
    });
    let (fresh, facts) = match read {
        Ok(read) => read,
        Err(error) => {
            for item in items {
                outcomes.add(item, Err(error.clone()));
            }
            return;
        }
    };
    let down: Mutex<Option<Error>> = Mutex::new(None);
    let work = items.into_iter().map(|planned| {
        let item =
            ItemOnHost { outcomes, planned, fresh: &fresh, facts: &facts, down: &down, no_undo };
        Box::pin(async move { outcomes.add(planned, item.apply().await) })
    });
    join_all(work).await;
    let is_reached = down.lock().unwrap_or_else(PoisonError::into_inner).is_none();
    if is_reached {
        (deps.host_reached)(deps, &host).await;
    }
}

/// Report of a host, judged just now.
///
/// Errors: why nothing on it may be touched.
fn judged(fresh: StaleReport) -> Result<StaleReport, Error> {
    if let Some(held) = fresh.held_back {
        return Err(held.error());
    }
    match fresh.hosts.iter().find(|pass| pass.state != PassState::Read) {
        Some(pass) => Err(pass.error.clone().unwrap_or_else(|| {
            Error::new(Code::OperationFailed, format!("{} could not be read", pass.host))
        })),
        None => Ok(fresh),
    }
}

/// Item of a plan, on a host that was looked at just now.
struct ItemOnHost<'a> {
    outcomes: &'a ReapOutcomes<'a>,
    planned: &'a StaleItem,
    fresh: &'a StaleReport,
    facts: &'a HostFacts,
    down: &'a Mutex<Option<Error>>,
    no_undo: bool,
}

impl ItemOnHost<'_> {
    async fn apply(&self) -> Result<Done, Error> {
        let op = self.outcomes.op;
        let deps = &op.deps;
        let item = match unchanged(self.planned, self.fresh) {
            Ok(item) => item,
            Err(why) => return Ok(Done::Skipped(why)),
        };
        let room = deps.sweep.room(&self.planned.host);
        let Ok(_place) = room.acquire().await else {
            return Err(Error::internal("the room for removals is closed"));
        };
        if op.is_cancelled() {
            return Ok(Done::Skipped("the reap was cancelled before it was begun".to_owned()));
        }
        if let Some(error) = self.is_down() {
            return Err(error);
        }
        let done = Box::pin(self.act(deps, item)).await;
        if let Err(error) = &done
            && matches!(error.code, Code::HostUnreachable | Code::HostChanged)
        {
            self.set_down(&self.planned.host, error);
        }
        done
    }

    async fn act(&self, deps: &Deps, item: &StaleItem) -> Result<Done, Error> {
        let is_stuck = item.class == StaleClass::Stuck;
        match &self.planned.action {
            ReapAction::Recover | ReapAction::Destroy | ReapAction::Close if is_stuck => {
                recover_as_planned(deps, item).await
            }
            ReapAction::Destroy | ReapAction::Close => reap_record(deps, item, self.no_undo).await,
            ReapAction::Remove if item.snapshot_id.is_some() => {
                remove_archive(deps, item, self.facts).await
            }
            ReapAction::Remove => remove_found(deps, item, self.facts).await,
            ReapAction::Adopt => Box::pin(adopt_as_planned(deps, item, self.facts)).await,
            ReapAction::Recover | ReapAction::Keep | ReapAction::Other(_) => {
                Ok(Done::Skipped(format!("nothing is done for {}", self.planned.action)))
            }
        }
    }

    /// Error of an item that is not begun, because its host failed a moment ago.
    fn is_down(&self) -> Option<Error> {
        self.down.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_down(&self, host: &HostName, error: &Error) {
        let message = format!("not begun: {host} failed a moment ago: {}", error.message);
        let error =
            Error { message, ..error.clone() }.untouched().hint("reap again when it answers");
        self.down.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }
}

/// The item as it is judged now, if it is still what was planned, and the action is one that it may have.
fn unchanged<'a>(planned: &StaleItem, fresh: &'a StaleReport) -> Result<&'a StaleItem, String> {
    let Some(item) = fresh.items.iter().find(|item| item.is_same(planned)) else {
        return Err("it is not stale any more, or gone".to_owned());
    };
    if item.class != planned.class {
        return Err(format!("it is {} now: {}", item.class, item.why));
    }
    if item.identity != planned.identity {
        return Err("it changed since the plan was made".to_owned());
    }
    if !item.possible.contains(&planned.action) {
        return Err(format!("{} is not possible: {}", planned.action, item.why));
    }
    Ok(item)
}
