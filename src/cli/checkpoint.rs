//! `snapshot` and `restore`: a sandbox to a snapshot, and a snapshot to a new sandbox.

use std::io::Write as _;

use super::args::{RestoreArgs, SnapshotArgs, UndoArgs};
use super::create;
use super::interrupt::{Running, with_progress};
use super::output::{CliError, Context, Outcome};
use super::record;
use super::sandboxes;
use super::sleep::warn_of_patches;
use super::snapshots;
use crate::client::{Error, Record, Request, RestoreRequest, SnapshotRequest, UndoRequest};
use crate::domain::name::{SandboxId, SnapshotId};
use crate::domain::request::counted;
use crate::domain::snapshot::{Consistency, SnapshotRecord};
use crate::domain::{Code, SandboxRecord};

pub(super) async fn snapshot(context: &mut Context<'_>, args: &SnapshotArgs) -> Outcome {
    let client = context.client;
    let request = SnapshotRequest {
        id: client.get(&args.id).await?.id.to_string(),
        revision: None,
        name: args.name.clone(),
        mode: args.mode.as_ref().map(ToString::to_string),
    };
    let running = Running::new(client);
    let made = with_progress(context, &running, async {
        let request = Request::Snapshot(request);
        let started = running.start(request).await.map_err(|problem| (problem, None))?;
        let id = match &started.record {
            Record::Snapshot(record) => Some(record.id.clone()),
            Record::Sandbox(_) | Record::Host(_) | Record::Reap(_) => None,
        };
        let ended = running.finish(started).await.and_then(Record::into_snapshot);
        ended.map_err(|problem| (problem, id))
    });
    match Box::pin(made).await? {
        Ok(mut ready) => {
            // What went for it, by the profile's `keep`.
            let told = ready.message.take_if(|_| !context.options.json);
            snapshots::show(context, &ready)?;
            if let Some(told) = told {
                context.remark(&context.options.clean(&told, 1000));
            }
            caveats(context, &ready);
            Ok(0)
        }
        Err((problem, None)) => Err(problem.into()),
        Err((problem, Some(id))) => Err(failed(context, problem, &id).await),
    }
}

/// What is less than was hoped for, and must not be overlooked.
fn caveats(context: &mut Context<'_>, record: &SnapshotRecord) {
    let archive = &record.archive;
    if archive.consistency == Some(Consistency::Fuzzy) {
        context.remark("warning: files changed while they were read; --mode stop keeps them still");
    }
    for volume in &archive.not_captured {
        let text = format!("volume {} is not in it: {}", volume.name, volume.reason);
        context.remark(&format!("warning: {}", context.options.clean(&text, 1000)));
    }
    for remark in &archive.remarks {
        context.remark(&format!("warning: {}", context.options.clean(remark, 1000)));
    }
    if !archive.not_preserved.is_empty() {
        let counted = context.options.clean(&counted(&archive.not_preserved), 1000);
        context.remark(&format!("warning: the host could not keep {counted}"));
    }
}

/// Shows the evidence of a snapshot that failed, and returns the problem to end with, which says what remains.
async fn failed(context: &mut Context<'_>, mut problem: Error, id: &SnapshotId) -> CliError {
    let Ok(left) = context.client.snapshot_view(id.as_str()).await else { return problem.into() };
    let left = left.record;
    if context.options.json {
        problem = problem
            .detail("snapshot_id", left.id.as_str())
            .detail("state", left.state.as_str())
            .detail("failure", serde_json::to_value(&left.failure).unwrap_or_default())
            .detail("unremoved", left.unremoved);
    } else if let Some(failure) = left.failure.as_ref().filter(|_| problem.code != Code::Cancelled)
    {
        // Part of the error: shown with --quiet too.
        for line in record::failure(failure, context.options) {
            let _ = writeln!(context.io.stderr, "{line}");
        }
    }
    if problem.hint.is_none() {
        problem.hint = Some(if left.unremoved {
            format!("something of it may be left on {}: sandboxer recover removes it", left.host)
        } else {
            format!(
                "nothing of it is left on {}; sandboxer snapshots get {} shows what was recorded",
                left.host, left.id
            )
        });
    }
    problem.into()
}

pub(super) async fn restore(context: &mut Context<'_>, args: &RestoreArgs) -> Outcome {
    let client = context.client;
    let request = RestoreRequest {
        snapshot: client.snapshot_view(&args.snapshot).await?.record.id.to_string(),
        revision: None,
        host: args.host.clone(),
        ttl: args.ttl.clone(),
        name: args.name.clone(),
        require_patches: args.require_patches,
        strict: args.strict,
    };
    let made = make(context, Request::Restore(request)).await?;
    show_made(context, made).await
}

pub(super) async fn undo(context: &mut Context<'_>, args: &UndoArgs) -> Outcome {
    let made = make(context, Request::Undo(UndoRequest { id: args.id.clone() })).await?;
    show_made(context, made).await
}

/// Sandbox that was made; with the error of one that was begun comes its id.
type Made = Result<SandboxRecord, (Error, Option<SandboxId>)>;

async fn make(context: &mut Context<'_>, request: Request) -> Result<Made, CliError> {
    let running = Running::new(context.client);
    let made = with_progress(context, &running, async { running.make_sandbox(request).await });
    Box::pin(made).await
}

/// Shows a sandbox that was made from a snapshot, or why there is none.
async fn show_made(context: &mut Context<'_>, made: Made) -> Outcome {
    match made {
        Ok(ready) => {
            sandboxes::show(context, &ready)?;
            if !ready.not_preserved.is_empty() {
                let counted = context.options.clean(&counted(&ready.not_preserved), 1000);
                context.remark(&format!(
                    "warning: {} could not set {counted}; --strict fails on that",
                    ready.host
                ));
            }
            warn_of_patches(context, &ready);
            Ok(0)
        }
        Err((problem, None)) => Err(problem.into()),
        Err((problem, Some(id))) => Err(create::failed(context, problem, &id).await),
    }
}
