//! `reap-stale`: a plan, a question, and then exactly that plan.

use std::io::Read as _;

use super::args::ReapArgs;
use super::bulk::{BulkItem, complain, end_with, summary};
use super::confirm::{Question, allow};
use super::interrupt::{awaited, until_interrupted};
use super::output::{CliError, Context, Outcome};
use super::stale::{Unread, print_items, remark_held};
use super::sweep::refusal;
use super::table;
use crate::client::{
    Error, PlanRequest, PlanSource, ReapItem, ReapPlan, ReapReport, ReapRequest, Request,
};
use crate::domain::Code;
use crate::domain::name::PlanId;
use crate::domain::stale::ReapAction;
use crate::domain::sweep::HoldReason;
use crate::present::stale::{REAPED, outcome_sign, reap_sum, sum};
use crate::present::{many, question};

/// The largest file that is read as a plan.
const MAX_PLAN_BYTES: u64 = 64 << 20;

/// A plan that is to be applied.
struct Chosen {
    source: PlanSource,
    /// The plan itself; none of a kept one that was named by its id.
    plan: Option<ReapPlan>,
    /// Hosts that could not be read for it just now.
    unread: Unread,
}

pub(super) async fn reap(context: &mut Context<'_>, args: &ReapArgs) -> Outcome {
    let terminal = context.io.terminals.stdin && !context.options.json;
    if !args.dry_run && !args.yes && !terminal {
        let error = Error::new(Code::Usage, "reap-stale needs --yes where nobody can be asked");
        return Err(error.hint("--dry-run shows the plan").into());
    }
    let chosen = if let Some(plan) = &args.plan {
        given(plan)?
    } else {
        let plan = make(context, args).await?;
        let unread = Unread::of(&plan.hosts, &args.hosts);
        if args.dry_run {
            show_plan(context, &plan)?;
            return unread.conclude(context);
        }
        Chosen { source: PlanSource::Id(plan.id.to_string()), plan: Some(plan), unread }
    };
    if let Some(plan) = &chosen.plan {
        if let Some(error) = held_back(plan) {
            return Err(error.into());
        }
        if plan.to_do().next().is_none() {
            return nothing_to_do(context, plan, &chosen.unread, args.yes);
        }
        agree(context, args, plan).await?;
    } else if !args.yes {
        // What a plan that is kept says, only its maker knows.
        let error = Error::new(Code::Usage, "a kept plan is applied with --yes only");
        return Err(error
            .hint("--dry-run shows a new one; without --plan it is shown and asked about")
            .into());
    }
    let request = ReapRequest { plan: chosen.source, no_undo: args.no_undo, alone: args.yes };
    let (report, was_cancelled) = apply(context, request).await?;
    let kept = chosen.plan.map_or(0, |plan| plan.items.len() - plan.to_do().count());
    finish(context, &report, &chosen.unread, kept, was_cancelled)
}

/// A plan that was given: an id, or a file.
fn given(plan: &str) -> Result<Chosen, Error> {
    if PlanId::is_one(plan) {
        let source = PlanSource::Id(plan.to_owned());
        return Ok(Chosen { source, plan: None, unread: Unread::default() });
    }
    let unusable = |why: String| {
        Error::invalid_input(
            "plan",
            format!("{plan:?} is neither a plan's id nor a file with a plan"),
        )
        .because(why)
        .hint("`sandboxer reap-stale --dry-run --json >FILE` writes one")
    };
    let mut text = Vec::new();
    let read = std::fs::File::open(plan)
        .and_then(|file| file.take(MAX_PLAN_BYTES + 1).read_to_end(&mut text));
    read.map_err(|error| unusable(error.to_string()))?;
    if text.len() as u64 > MAX_PLAN_BYTES {
        return Err(unusable(format!("it has more than {MAX_PLAN_BYTES} bytes")));
    }
    let plan: ReapPlan =
        serde_json::from_slice(&text).map_err(|error| unusable(error.to_string()))?;
    let source = PlanSource::Plan(Box::new(plan.clone()));
    Ok(Chosen { source, plan: Some(plan), unread: Unread::default() })
}

async fn make(context: &mut Context<'_>, args: &ReapArgs) -> Result<ReapPlan, CliError> {
    let request = PlanRequest {
        hosts: args.hosts.clone(),
        classes: args.classes.iter().cloned().collect(),
        snapshots: args.snapshots,
    };
    let client = context.client;
    Ok(until_interrupted(context, client.plan_reap(request)).await??)
}

fn show_plan(context: &mut Context<'_>, plan: &ReapPlan) -> Result<(), CliError> {
    if context.options.json {
        return context.document(plan);
    }
    print_items(context, &plan.items)?;
    context.remark(&sum(&plan.items, &plan.hosts));
    remark_held(context, plan.held_back.as_ref());
    if plan.held_back.is_none() && plan.to_do().next().is_some() {
        context.remark(&format!(
            "`sandboxer reap-stale --plan {} --yes` does exactly this, until {}",
            plan.id, plan.valid_until
        ));
    }
    Ok(())
}

/// Why a plan may not be applied from here: nobody is asked about it. That a clock jumped matters only where there is something to do.
fn held_back(plan: &ReapPlan) -> Option<Error> {
    let held = plan.held_back.as_ref()?;
    if held.reason == HoldReason::ClockJumped && plan.to_do().next().is_none() {
        return None;
    }
    Some(refusal(held))
}

/// Ends where the plan has nothing to do: a timer's mail stays empty.
fn nothing_to_do(
    context: &mut Context<'_>,
    plan: &ReapPlan,
    unread: &Unread,
    yes: bool,
) -> Outcome {
    if context.options.json {
        context.document(&Vec::<ReapItem>::new())?;
    } else {
        if !yes {
            print_items(context, &plan.items)?;
        }
        let kept = if plan.items.is_empty() { "" } else { "nothing is to be reaped; " };
        context.remark(&format!("{kept}{}", sum(&plan.items, &plan.hosts)));
    }
    unread.conclude(context)
}

/// Shows the plan and asks.
async fn agree(
    context: &mut Context<'_>,
    args: &ReapArgs,
    plan: &ReapPlan,
) -> Result<(), CliError> {
    let kept: Vec<_> =
        plan.items.iter().filter(|item| item.action == ReapAction::Keep).cloned().collect();
    if !args.yes && !kept.is_empty() {
        print_items(context, &kept)?;
    }
    let to_do: Vec<_> = plan.to_do().collect();
    let note = (plan.items.len() > 1).then(|| sum(&plan.items, &plan.hosts));
    let about = question::stale(&to_do);
    let needs_yes = Some("reap-stale".to_owned());
    allow(context, &Question { verb: "reap", note, about, yes: args.yes, needs_yes }).await?;
    Ok(())
}

/// Does what the plan says; whether Ctrl-C cut it short.
async fn apply(
    context: &mut Context<'_>,
    request: ReapRequest,
) -> Result<(ReapReport, bool), CliError> {
    let work = awaited(context, async |running| {
        let started = running.start(Request::Reap(Box::new(request))).await?;
        let operation = started.operation.clone();
        let report = running.finish(started).await?.into_reap()?;
        let was_cancelled = running.was_cancelled(operation.as_ref()).await;
        Ok::<_, Error>((report, was_cancelled))
    });
    Ok(work.await??)
}

/// Prints what was done; the status is that of all of it, hosts that could not be read among them.
fn finish(
    context: &mut Context<'_>,
    report: &ReapReport,
    unread: &Unread,
    kept: usize,
    was_cancelled: bool,
) -> Outcome {
    let ends: Vec<BulkItem> = report.items.iter().map(end_of).collect();
    let printed = print(context, report, kept);
    if !context.options.json {
        for item in &ends {
            complain(context, item, false);
        }
        unread.complain(context);
    }
    if was_cancelled {
        printed?;
        let message = "the reap was cancelled: what was begun came to its end, the rest is left";
        let error = Error::new(Code::Cancelled, message);
        return Err(error.hint("sandboxer reap-stale goes on with a new plan").into());
    }
    end_with(context, problem(&ends, unread), printed)
}

/// The one problem that stands for what failed and for hosts that could not be read.
fn problem(ends: &[BulkItem], unread: &Unread) -> Option<Error> {
    let Some(hosts) = unread.error() else { return summary(ends) };
    let Some(mut failed) = summary(ends) else {
        let code = if ends.is_empty() { hosts.code.clone() } else { Code::Partial };
        return Some(Error { code, ..hosts });
    };
    if failed.code != hosts.code {
        failed.code = Code::Partial;
    }
    failed.causes.push(hosts.message);
    failed.causes.extend(hosts.causes);
    Some(failed)
}

fn end_of(item: &ReapItem) -> BulkItem {
    BulkItem::new(item.id.as_str(), item.error.clone())
}

/// Prints an item a row, and the sum, which a timer's mail has alone.
fn print(context: &mut Context<'_>, report: &ReapReport, kept: usize) -> Result<(), CliError> {
    if context.options.json {
        return context.document(&report.items);
    }
    let quiet = context.options.quiet;
    if report.items.is_empty() && quiet {
        return Ok(());
    }
    if !quiet && !report.items.is_empty() {
        table::print(context, REAPED, &report.items, |item| outcome_sign(item).1)?;
    }
    context.line(&reap_sum(report))?;
    if kept > 0 {
        let words = many(kept, "is kept", "are kept");
        context.remark(&format!("{words}; `sandboxer inspect stale` says why"));
    }
    Ok(())
}
