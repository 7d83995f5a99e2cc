//! `snapshots`: what there is, and the verbs on one of them.

mod delete;
mod diff;
mod prune;
mod transfer;
pub(super) mod view;

use super::args::{CopyArgs, SnapshotRef, SnapshotsCommand};
use super::interrupt::{Running, with_progress};
use super::output::{Context, Outcome};
use super::table;
use crate::client::{Request, SnapshotCopyRequest, SnapshotQuery, SnapshotVerifyRequest};
use crate::present::snapshot::{AGE, BASED, HOST, ID, NAME, OF, PATCHES, SIZE, STATE, titled};
use crate::present::snapshot_role;

pub(super) async fn snapshots(context: &mut Context<'_>, command: &SnapshotsCommand) -> Outcome {
    match command {
        SnapshotsCommand::List { all } => list(context, *all).await,
        SnapshotsCommand::Get(args) => get(context, args).await,
        SnapshotsCommand::Verify(args) => verify(context, args).await,
        SnapshotsCommand::Delete(args) => delete::delete(context, args).await,
        SnapshotsCommand::Copy(args) => copy(context, args).await,
        SnapshotsCommand::Export(args) => transfer::export(context, args).await,
        SnapshotsCommand::Import(args) => transfer::import(context, args).await,
        SnapshotsCommand::Diff(args) => diff::diff(context, args).await,
        SnapshotsCommand::Prune(args) => prune::prune(context, args).await,
    }
}

async fn list(context: &mut Context<'_>, all: bool) -> Outcome {
    let views = context.client.snapshots(SnapshotQuery { all }).await?;
    if context.options.json {
        context.document(&views.iter().map(|view| &**view).collect::<Vec<_>>())?;
    } else if views.is_empty() {
        context.remark("no snapshots; take one: sandboxer snapshot ID --name NAME");
    } else {
        let columns = [ID, NAME, STATE, OF, HOST, SIZE, AGE, PATCHES, BASED];
        let views = views.iter().map(|view| &**view);
        table::print(context, &columns, views, |view| snapshot_role(&view.record))?;
    }
    Ok(0)
}

async fn get(context: &mut Context<'_>, args: &SnapshotRef) -> Outcome {
    let found = context.client.snapshot_view(&args.snapshot).await?;
    if context.options.json {
        context.document(&found)?;
        return Ok(0);
    }
    let all = context.client.snapshots(SnapshotQuery { all: true }).await?;
    view::print(context, &found, &all)?;
    Ok(0)
}

async fn verify(context: &mut Context<'_>, args: &SnapshotRef) -> Outcome {
    let client = context.client;
    let id = client.snapshot_view(&args.snapshot).await?.record.id.to_string();
    let running = Running::new(client);
    let work = async {
        running.run(Request::VerifySnapshot(SnapshotVerifyRequest { id })).await?.into_snapshot()
    };
    let verified = Box::pin(with_progress(context, &running, work)).await??;
    if context.options.json {
        context.document(&verified)?;
    } else {
        let hosts = verified.hosts().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let text = format!("{} is what was recorded, on {hosts}", titled(&verified));
        context.say(&text)?;
    }
    Ok(0)
}

async fn copy(context: &mut Context<'_>, args: &CopyArgs) -> Outcome {
    let client = context.client;
    let id = client.snapshot_view(&args.snapshot).await?.record.id.to_string();
    let running = Running::new(client);
    let request = SnapshotCopyRequest { id, host: args.to.clone() };
    let mut idle = false;
    let work = async {
        let started = running.start(Request::CopySnapshot(request)).await?;
        idle = started.operation.is_none();
        running.finish(started).await?.into_snapshot()
    };
    let copied = Box::pin(with_progress(context, &running, work)).await??;
    if idle {
        let there = format!("{} is on {} already: nothing to do", titled(&copied), args.to);
        context.remark(&there);
    }
    view::show(context, &copied)?;
    Ok(0)
}
