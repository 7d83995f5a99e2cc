//! `snapshots`: what there is, and the verbs on one of them.

mod delete;
mod diff;
mod prune;
mod transfer;
pub(super) mod view;

use super::args::{CopyArgs, SnapshotRef, SnapshotsCommand};
use super::interrupt::awaited;
use super::output::{Context, Outcome};
use super::table;
use crate::client::{Error, Request, SnapshotCopyRequest, SnapshotQuery, SnapshotVerifyRequest};
use crate::domain::lineage::SnapshotView;
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
    let columns = [ID, NAME, STATE, OF, HOST, SIZE, AGE, PATCHES, BASED];
    let views: Vec<&SnapshotView> = views.iter().map(|view| &**view).collect();
    context.reply(&views, |context| {
        if views.is_empty() {
            context.remark("no snapshots; take one: sandboxer snapshot ID --name NAME");
            return Ok(());
        }
        let role = |view: &SnapshotView| snapshot_role(&view.record);
        table::print(context, &columns, views.iter().copied(), role)
    })
}

async fn get(context: &mut Context<'_>, args: &SnapshotRef) -> Outcome {
    let found = context.client.snapshot_view(&args.snapshot).await?;
    if context.options.json {
        context.document(&found)?;
        return Ok(0);
    }
    let all = context.client.snapshots(SnapshotQuery { all: true }).await?;
    view::print(context, &found, &all).map(|()| 0)
}

async fn verify(context: &mut Context<'_>, args: &SnapshotRef) -> Outcome {
    let client = context.client;
    let id = client.snapshot_view(&args.snapshot).await?.record.id.to_string();
    let verified = awaited(context, async |running| {
        running.run(Request::VerifySnapshot(SnapshotVerifyRequest { id })).await?.into_snapshot()
    });
    let verified = verified.await??;
    let hosts = verified.hosts().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let text = format!("{} is what was recorded, on {hosts}", titled(&verified));
    context.reply(&verified, |context| context.say(&text))
}

async fn copy(context: &mut Context<'_>, args: &CopyArgs) -> Outcome {
    let client = context.client;
    let id = client.snapshot_view(&args.snapshot).await?.record.id.to_string();
    let request = SnapshotCopyRequest { id, host: args.to.clone() };
    let work = awaited(context, async |running| {
        let started = running.start(Request::CopySnapshot(request)).await?;
        let idle = started.operation.is_none();
        Ok::<_, Error>((running.finish(started).await?.into_snapshot()?, idle))
    });
    let (copied, idle) = work.await??;
    if idle {
        let there = format!("{} is on {} already: nothing to do", titled(&copied), args.to);
        context.remark(&there);
    }
    view::show(context, &copied)
}
