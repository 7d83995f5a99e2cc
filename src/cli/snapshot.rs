//! `snapshot` and `restore`: a sandbox to a snapshot, and a snapshot to a new sandbox.

use super::args::{RestoreArgs, SnapshotArgs, UndoArgs};
use super::create::make;
use super::document;
use super::interrupt::awaited;
use super::output::{CliError, Context, Outcome};
use super::sandboxes;
use super::sleep::warn_of_patches;
use super::snapshots;
use crate::client::{Error, Record, Request, RestoreRequest, SnapshotRequest, UndoRequest};
use crate::domain::Code;
use crate::domain::name::SnapshotId;
use crate::domain::request::counted;
use crate::domain::snapshot::{Consistency, SnapshotRecord};
use crate::present::Document;
use crate::present::failure::section;
use crate::present::snapshot::caveats as caveats_of;

pub(super) async fn snapshot(context: &mut Context<'_>, args: &SnapshotArgs) -> Outcome {
    let client = context.client;
    let request = SnapshotRequest {
        id: client.get(&args.id).await?.id.to_string(),
        revision: None,
        name: args.name.clone(),
        mode: args.mode.as_ref().map(ToString::to_string),
    };
    let made = awaited(context, async |running| {
        let request = Request::Snapshot(request);
        let started = running.start(request).await.map_err(|problem| (problem, None))?;
        let id = match &started.record {
            Record::Snapshot(record) => Some(record.id.clone()),
            Record::Sandbox(_) | Record::Host(_) | Record::Reap(_) => None,
        };
        let ended = running.finish(started).await.and_then(Record::into_snapshot);
        ended.map_err(|problem| (problem, id))
    });
    match made.await? {
        Ok(mut ready) => {
            // What went for it, by the profile's `keep`.
            let told = ready.message.take_if(|_| !context.options.json);
            let shown = snapshots::view::show(context, &ready)?;
            if let Some(told) = told {
                context.remark(&told);
            }
            caveats(context, &ready);
            Ok(shown)
        }
        Err((problem, None)) => Err(problem.into()),
        Err((problem, Some(id))) => Err(failed(context, problem, &id).await),
    }
}

/// Warning of a snapshot that is less than was hoped for, which must not be overlooked.
fn caveats(context: &mut Context<'_>, record: &SnapshotRecord) {
    for words in caveats_of(record).iter().chain(&record.archive.remarks) {
        context.remark(&format!("warning: {words}"));
    }
    if record.archive.consistency == Some(Consistency::Fuzzy) {
        context.remark("hint: --mode stop keeps files still");
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
            .detail("unremoved", left.has_remains());
    } else if let Some(failure) = left.failure.as_ref().filter(|_| problem.code != Code::Cancelled)
    {
        let mut document = Document::default();
        section(&mut document, failure, &problem.sentences());
        document::evidence(context, &document);
    }
    if problem.hint.is_none() {
        problem.hint = Some(if left.has_remains() {
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
    made_from_snapshot(context, Request::Restore(request)).await
}

pub(super) async fn undo(context: &mut Context<'_>, args: &UndoArgs) -> Outcome {
    made_from_snapshot(context, Request::Undo(UndoRequest { id: args.id.clone() })).await
}

/// Makes a sandbox from a snapshot, and shows it.
async fn made_from_snapshot(context: &mut Context<'_>, request: Request) -> Outcome {
    let ready = make(context, request).await?;
    let shown = sandboxes::show(context, &ready)?;
    if !ready.not_preserved.is_empty() {
        let (host, counted) = (&ready.host, counted(&ready.not_preserved));
        context.remark(&format!("warning: {host} could not set {counted}; --strict fails on that"));
    }
    warn_of_patches(context, &ready);
    Ok(shown)
}
