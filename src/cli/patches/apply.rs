//! `patches apply`: to one sandbox, or to all that are based on a snapshot.

use super::super::args::ApplyArgs;
use super::super::bulk::{BulkItem, complain, end};
use super::super::interrupt::{Running, attend};
use super::super::output::{Face, Outcome, Stop};
use super::super::{record, sandboxes};
use crate::client::{ApplyRequest, Problem, RolloutItem, RolloutRequest};
use crate::domain::Code;
use crate::domain::patch::PatchState;

pub(super) async fn apply(face: &mut Face<'_>, args: &ApplyArgs) -> Outcome {
    match (&args.sandbox, &args.all) {
        (Some(sandbox), _) => one(face, sandbox, args.retry).await,
        (None, Some(snapshot)) => all(face, snapshot, args.canary).await,
        // clap asks for one of them.
        (None, None) => Err(Problem::new(Code::Usage, "which sandbox? or --all S").into()),
    }
}

async fn one(face: &mut Face<'_>, sandbox: &str, retry: bool) -> Outcome {
    let client = face.client;
    let request = ApplyRequest { id: client.get(sandbox).await?.id.to_string(), revision: None, retry };
    let running = Running::new(client);
    let mut idle = false;
    let work = async {
        let started = client.apply_patches(request).await?;
        idle = started.operation.is_none();
        running.finish_change(started).await
    };
    let patched = Box::pin(attend(face, &running, work)).await??;
    let title = face.look.clean(patched.title(), 200);
    if matches!(patched.patch_state, PatchState::Failed | PatchState::Unknown) {
        // They were asked for: that one failed is the verb's failure.
        let message = patched.patch_error.clone().unwrap_or_else(|| format!("the patches of {title} are not all in"));
        let mut problem = Problem::new(Code::OperationFailed, message);
        problem.details = serde_json::json!({
            "sandbox_id": patched.id, "patch_state": patched.patch_state, "applied_patches": patched.applied_patches,
        });
        if !face.look.json {
            for line in record::patch_output(&patched, face.look) {
                face.line(&line)?;
            }
        }
        return Err(problem.into());
    }
    if idle {
        face.remark(&format!("{title} owes no patch: nothing to do"));
    }
    sandboxes::show(face, &patched)?;
    Ok(0)
}

async fn all(face: &mut Face<'_>, snapshot: &str, canary: Option<u32>) -> Outcome {
    let client = face.client;
    let snapshot = client.snapshot_view(snapshot).await?.record.id.to_string();
    let running = Running::new(client);
    let work = running.several(client.roll_out(RolloutRequest { snapshot, canary }));
    let items = Box::pin(attend(face, &running, work)).await??;
    let ends: Vec<_> = items
        .iter()
        .map(|item| BulkItem::new(item.id.as_str(), item.error.clone().map_or(Ok(()), |error| Err(error.into()))))
        .collect();
    let printed = if face.look.json { face.document(&items) } else { print(face, &items) };
    if !face.look.json {
        for item in &ends {
            complain(face, item, items.len() == 1);
        }
        if items.is_empty() {
            face.remark("no sandbox is based on the snapshot: nothing to do");
        }
    }
    end(face, &ends, printed)
}

fn print(face: &mut Face<'_>, items: &[RolloutItem]) -> Result<(), Stop> {
    for item in items.iter().filter(|item| item.ok) {
        let applied: Vec<_> = item.applied.iter().map(ToString::to_string).collect();
        let what =
            if applied.is_empty() { "has them all".to_owned() } else { format!("applied {}", applied.join(", ")) };
        let canary = if item.canary { " (canary)" } else { "" };
        face.line(&face.look.clean(&format!("{}{canary} {what}", item.id), 1000))?;
    }
    Ok(())
}
