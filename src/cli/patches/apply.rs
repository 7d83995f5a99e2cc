//! `patches apply`: to one sandbox, or to all that are based on a snapshot.

use super::super::args::ApplyArgs;
use super::super::bulk::{BulkItem, complain, end};
use super::super::interrupt::awaited;
use super::super::output::{CliError, Context, Outcome};
use super::super::{document, sandboxes};
use crate::client::{ApplyRequest, Client, Error, Request, RolloutItem, RolloutRequest};
use crate::domain::patch::{AppliedPatch, PatchState};
use crate::domain::pending_patches::{Blocked, pending_patches};
use crate::domain::{Code, SandboxRecord};
use crate::present::Document;
use crate::present::patch::output;

pub(super) async fn apply(context: &mut Context<'_>, args: &ApplyArgs) -> Outcome {
    match (&args.sandbox, &args.all) {
        (Some(sandbox), _) => one(context, sandbox, args.retry).await,
        (None, Some(snapshot)) => all(context, snapshot, args.canary).await,
        // clap asks for one of them.
        (None, None) => Err(Error::new(Code::Usage, "which sandbox? or --all S").into()),
    }
}

async fn one(context: &mut Context<'_>, sandbox: &str, retry: bool) -> Outcome {
    let client = context.client;
    let before = client.get(sandbox).await?;
    let request = ApplyRequest { id: before.id.to_string(), retry, ..ApplyRequest::default() };
    let work = awaited(context, async |running| {
        running.run(Request::ApplyPatches(request)).await?.into_sandbox()
    });
    let patched = match work.await? {
        Ok(patched) => patched,
        Err(problem) => {
            let left = client.get(before.id.as_str()).await;
            return Err(match left {
                Ok(left) => failed(context, problem, &before, &left).await,
                Err(_) => problem.into(),
            });
        }
    };
    if matches!(patched.patch_state, PatchState::Failed | PatchState::Unknown) {
        // They were asked for: that one is not in is the verb's failure.
        let message =
            patched.patch_error.clone().unwrap_or_else(|| "its patches are not all in".to_owned());
        return Err(
            failed(context, Error::new(Code::OperationFailed, message), &before, &patched).await
        );
    }
    if patched.applied_patches == before.applied_patches {
        context.remark(&format!(
            "{} owes no patch: nothing to do",
            context.options.clean(patched.title(), 200)
        ));
    }
    sandboxes::show(context, &patched)
}

/// Shows what the patch wrote that failed now, or that stands in the way since an earlier pass, and returns the problem to
/// end with. With `--json` that is in the problem's `details`.
async fn failed(
    context: &mut Context<'_>,
    mut problem: Error,
    before: &SandboxRecord,
    left: &SandboxRecord,
) -> CliError {
    // Nothing ran where it was refused; what the record has is of another time.
    if problem.code != Code::OperationFailed {
        return problem.into();
    }
    if context.options.json {
        let applied = serde_json::to_value(&left.applied_patches).unwrap_or_default();
        problem = problem
            .detail("sandbox_id", left.id.as_str())
            .detail("patch_state", left.patch_state.as_str())
            .detail("applied_patches", applied);
    } else {
        let mut shown = standing_in_the_way(context.client, left).await;
        let ran = |applied: &&AppliedPatch| {
            applied.stopped() && !before.applied_patches.contains(applied)
        };
        // One that was removed while it ran stands in nobody's way.
        for applied in left.applied_patches.iter().filter(ran) {
            if !shown.contains(applied) {
                shown.push(applied.clone());
            }
        }
        let mut document = Document::default();
        for applied in &shown {
            output(&mut document, applied);
        }
        document::evidence(context, &document);
    }
    problem.into()
}

/// The run that keeps a sandbox's later patches from it. One that was taken away from the snapshot stays on the record, and
/// stands in nobody's way.
async fn standing_in_the_way(client: &dyn Client, record: &SandboxRecord) -> Vec<AppliedPatch> {
    let Some(base) = &record.based_on_snapshot else { return Vec::new() };
    let Ok(view) = client.snapshot_view(base.as_str()).await else { return Vec::new() };
    match pending_patches(record, &view.patches, false).blocked {
        Some(Blocked::Failed(applied) | Blocked::Unknown(applied)) => vec![applied.clone()],
        None => Vec::new(),
    }
}

async fn all(context: &mut Context<'_>, snapshot: &str, canary: Option<u32>) -> Outcome {
    let client = context.client;
    let snapshot = client.snapshot_view(snapshot).await?.record.id.to_string();
    let request = RolloutRequest { snapshot, canary, ..RolloutRequest::default() };
    let work = awaited(context, async |running| running.several(client.roll_out(request)).await);
    let items = work.await??;
    // What was not begun has not failed; where somebody cancelled the rollout, it says nothing of its end either.
    let was_cancelled = items
        .iter()
        .filter_map(|item| item.error.as_ref())
        .all(|error| error.code == Code::Cancelled);
    let ends: Vec<_> = items
        .iter()
        .filter(|item| !(was_cancelled && !item.ok && item.error.is_none()))
        .map(|item| BulkItem::new(item.id.as_str(), item.error.clone()))
        .collect();
    let printed =
        if context.options.json { context.document(&items) } else { print(context, &items) };
    if !context.options.json {
        for item in &ends {
            complain(context, item, items.len() == 1);
        }
        if items.is_empty() {
            context.remark("no sandbox is based on the snapshot: nothing to do");
        }
    }
    end(context, &ends, printed)
}

fn print(context: &mut Context<'_>, items: &[RolloutItem]) -> Result<(), CliError> {
    for item in items.iter().filter(|item| item.error.is_none()) {
        let applied: Vec<_> = item.applied.iter().map(ToString::to_string).collect();
        let what = match &item.reason {
            Some(reason) => format!("skipped: {reason}"),
            None if applied.is_empty() => "has them all".to_owned(),
            None => format!("applied {}", applied.join(", ")),
        };
        let canary = if item.canary { " (canary)" } else { "" };
        context.say(&format!("{}{canary} {what}", item.id))?;
    }
    Ok(())
}
