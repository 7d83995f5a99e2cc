//! `reap-stale`: a plan, a question, and then exactly that plan.

use std::path::Path;

use super::args::ReapArgs;
use super::bulk::{BulkItem, complain, end};
use super::confirm::{self, Question, allow};
use super::interrupt::{Running, until_interrupted, with_progress};
use super::output::{CliError, Context, Outcome, Tone};
use super::stale::{print_items, sum, unread};
use super::table::{self, Line};
use crate::client::{
    Error, PlanRequest, PlanSource, ReapItem, ReapPlan, ReapReport, ReapRequest, Request,
};
use crate::domain::Code;
use crate::domain::name::PlanId;
use crate::domain::stale::{ReapAction, ReapOutcome};

/// The largest file that is read as a plan.
const MAX_PLAN_BYTES: u64 = 64 << 20;

pub(super) async fn reap(context: &mut Context<'_>, args: &ReapArgs) -> Outcome {
    let terminal = context.io.terminals.stdin && !context.options.json;
    if !args.dry_run && !args.yes && !terminal {
        let error = Error::new(Code::Usage, "reap-stale needs --yes where nobody can be asked");
        return Err(error.hint("--dry-run shows the plan").into());
    }
    let (source, plan) = match &args.plan {
        Some(plan) => given(plan)?,
        None => {
            let plan = make(context, args).await?;
            if args.dry_run {
                return show_plan(context, &plan);
            }
            (PlanSource::Id(plan.id.to_string()), Some(plan))
        }
    };
    if let Some(plan) = &plan {
        agree(context, args, plan).await?;
    } else if !args.yes {
        // What a plan that is kept says, only its maker knows.
        let error = Error::new(Code::Usage, "a kept plan is applied with --yes only");
        return Err(error
            .hint("--dry-run shows a new one; without --plan it is shown and asked about")
            .into());
    }
    let request = ReapRequest { plan: source, no_undo: args.no_undo, alone: args.yes };
    let report = apply(context, request).await?;
    finish(context, plan.as_ref(), &report)
}

/// A plan that was given: an id, or a file.
fn given(plan: &str) -> Result<(PlanSource, Option<ReapPlan>), Error> {
    if PlanId::is_one(plan) {
        return Ok((PlanSource::Id(plan.to_owned()), None));
    }
    let path = Path::new(plan);
    let unusable = |why: String| {
        Error::invalid_input(
            "plan",
            format!("{plan:?} is neither a plan's id nor a file with a plan"),
        )
        .because(why)
        .hint("`sandboxer reap-stale --dry-run --json >FILE` writes one")
    };
    let size = std::fs::metadata(path).map_err(|error| unusable(error.to_string()))?.len();
    if size > MAX_PLAN_BYTES {
        return Err(unusable(format!("it has {size} bytes")));
    }
    let text = std::fs::read(path).map_err(|error| unusable(error.to_string()))?;
    let plan: ReapPlan =
        serde_json::from_slice(&text).map_err(|error| unusable(error.to_string()))?;
    Ok((PlanSource::Plan(Box::new(plan.clone())), Some(plan)))
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

fn show_plan(context: &mut Context<'_>, plan: &ReapPlan) -> Outcome {
    if context.options.json {
        context.document(plan)?;
    } else {
        print_items(context, &plan.items)?;
        context.remark(&sum(&plan.items));
        let id = &plan.id;
        match &plan.held_back {
            Some(held) => {
                let hint = held.hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default();
                let text = format!("remark: {}{hint}", held.message);
                context.remark(&context.options.clean(&text, 1000));
            }
            None if plan.to_do().next().is_some() => context.remark(&format!(
                "`sandboxer reap-stale --plan {id} --yes` does exactly this, until {}",
                plan.valid_until
            )),
            None => {}
        }
    }
    let failed = unread(&plan.hosts);
    let Some(error) = super::stale::unread_error(&failed, &plan.hosts) else { return Ok(0) };
    if context.options.json {
        return Err(error.into());
    }
    for item in &failed {
        complain(context, item, false);
    }
    Ok(crate::client::problem::exit_status(&error.code))
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
    let note = (to_do.len() > 1).then(|| sum(&plan.items));
    let about = confirm::stale(&to_do);
    let needs_yes = Some("reap-stale".to_owned());
    allow(context, &Question { verb: "reap", note, about, yes: args.yes, needs_yes }).await?;
    Ok(())
}

async fn apply(context: &mut Context<'_>, request: ReapRequest) -> Result<ReapReport, CliError> {
    let running = Running::new(context.client);
    let work = async { running.run(Request::Reap(Box::new(request))).await?.into_reap() };
    Ok(Box::pin(with_progress(context, &running, work)).await??)
}

/// Prints what was done; the status is that of all of it, hosts that could not be read among them.
fn finish(context: &mut Context<'_>, plan: Option<&ReapPlan>, report: &ReapReport) -> Outcome {
    let mut ends: Vec<BulkItem> = report.items.iter().map(end_of).collect();
    let kept = plan.map_or(0, |plan| plan.items.len() - plan.to_do().count());
    let printed = print(context, report, kept);
    if !context.options.json {
        for item in &ends {
            complain(context, item, false);
        }
    }
    let unread = plan.map(|plan| unread(&plan.hosts)).unwrap_or_default();
    if !context.options.json {
        for item in &unread {
            complain(context, item, false);
        }
    }
    ends.extend(unread);
    end(context, &ends, printed)
}

fn end_of(item: &ReapItem) -> BulkItem {
    BulkItem::new(item.id.as_str(), item.error.clone().map_or(Ok(()), Err))
}

/// Prints an item a row, and the sum. Where nothing was stale a timer's mail stays empty.
fn print(context: &mut Context<'_>, report: &ReapReport, kept: usize) -> Result<(), CliError> {
    if context.options.json {
        return context.document(&report.items);
    }
    let quiet = context.options.quiet;
    if report.items.is_empty() && quiet {
        return Ok(());
    }
    if !quiet && !report.items.is_empty() {
        let rows: Vec<Line> = report.items.iter().map(row).collect();
        table::print(context, &["ID", "CLASS!", "HOST", "DONE!", "WHY"], &rows)?;
    }
    context.line(&sum_line(report, kept))
}

fn row(item: &ReapItem) -> Line {
    let tone = match item.outcome {
        ReapOutcome::Failed => Tone::Bad,
        ReapOutcome::Skipped => Tone::Faint,
        ReapOutcome::Removed
        | ReapOutcome::Recovered
        | ReapOutcome::Closed
        | ReapOutcome::Adopted
        | ReapOutcome::Other(_) => Tone::Plain,
    };
    let cells = vec![
        item.id.clone(),
        item.class.to_string(),
        item.host.to_string(),
        item.outcome.to_string(),
        item.message.clone(),
    ];
    Line { tone, cells }
}

/// `5 found, 3 removed, 1 skipped, 1 failed; 2 kept`: the first four always.
fn sum_line(report: &ReapReport, kept: usize) -> String {
    let count = |outcome: &ReapOutcome| report.with(outcome).count();
    let mut parts = vec![
        format!("{} found", report.items.len()),
        format!("{} removed", count(&ReapOutcome::Removed)),
    ];
    for outcome in [ReapOutcome::Recovered, ReapOutcome::Closed, ReapOutcome::Adopted] {
        if count(&outcome) > 0 {
            parts.push(format!("{} {outcome}", count(&outcome)));
        }
    }
    parts.push(format!("{} skipped", count(&ReapOutcome::Skipped)));
    parts.push(format!("{} failed", count(&ReapOutcome::Failed)));
    let kept = if kept > 0 { format!("; {kept} kept") } else { String::new() };
    format!("{}{kept}", parts.join(", "))
}
