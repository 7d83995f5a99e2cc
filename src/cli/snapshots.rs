//! `snapshots`: what there is, and the verbs on one of them.

mod carry;
mod delete;
mod diff;
mod prune;
mod view;

use super::args::{CopyArgs, SnapshotRef, SnapshotsCommand};
use super::interrupt::{Running, attend};
use super::output::{Face, Outcome, Stop};
use super::{record, table};
use crate::client::{Request, SnapshotCopyRequest, SnapshotQuery, SnapshotVerifyRequest};
use crate::domain::snapshot::SnapshotRecord;

pub(super) async fn snapshots(face: &mut Face<'_>, command: &SnapshotsCommand) -> Outcome {
    match command {
        SnapshotsCommand::List { all } => list(face, *all).await,
        SnapshotsCommand::Get(args) => get(face, args).await,
        SnapshotsCommand::Verify(args) => verify(face, args).await,
        SnapshotsCommand::Delete(args) => delete::delete(face, args).await,
        SnapshotsCommand::Copy(args) => copy(face, args).await,
        SnapshotsCommand::Export(args) => carry::export(face, args).await,
        SnapshotsCommand::Import(args) => carry::import(face, args).await,
        SnapshotsCommand::Diff(args) => diff::diff(face, args).await,
        SnapshotsCommand::Prune(args) => prune::prune(face, args).await,
    }
}

async fn list(face: &mut Face<'_>, all: bool) -> Outcome {
    let views = face.client.snapshots(SnapshotQuery { all }).await?;
    if face.look.json {
        face.document(&views.iter().map(|view| &**view).collect::<Vec<_>>())?;
    } else if views.is_empty() {
        face.remark("no snapshots; take one: sandboxer snapshot ID --name NAME");
    } else {
        let now = face.now();
        let rows: Vec<_> = views.iter().map(|one| view::row(one, now)).collect();
        table::print(
            face,
            &["ID", "NAME", "STATE!", "OF", "HOST", "SIZE!", "AGE!", "PATCHES!", "BASED ON IT!"],
            &rows,
        )?;
    }
    Ok(0)
}

async fn get(face: &mut Face<'_>, args: &SnapshotRef) -> Outcome {
    let found = face.client.snapshot_view(&args.snapshot).await?;
    if face.look.json {
        face.document(&found)?;
        return Ok(0);
    }
    let all = face.client.snapshots(SnapshotQuery { all: true }).await?;
    view::print(face, &found, &all)?;
    Ok(0)
}

/// Prints one record, whole as JSON or as a block.
pub(super) fn show(face: &mut Face<'_>, found: &SnapshotRecord) -> Result<(), Stop> {
    if face.look.json {
        return face.document(found);
    }
    let fields = view::fields(found, face.now());
    record::block(face, &fields)?;
    let look = face.look;
    for line in found.failure.iter().flat_map(|failure| record::failure(failure, look)) {
        face.line(&line)?;
    }
    Ok(())
}

async fn verify(face: &mut Face<'_>, args: &SnapshotRef) -> Outcome {
    let client = face.client;
    let id = client.snapshot_view(&args.snapshot).await?.record.id.to_string();
    let running = Running::new(client);
    let work = async {
        running.run(Request::VerifySnapshot(SnapshotVerifyRequest { id })).await?.into_snapshot()
    };
    let verified = Box::pin(attend(face, &running, work)).await??;
    if face.look.json {
        face.document(&verified)?;
    } else {
        let hosts = verified.hosts().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let text = format!("{} is what was recorded, on {hosts}", view::titled(&verified));
        face.line(&face.look.clean(&text, 1000))?;
    }
    Ok(0)
}

async fn copy(face: &mut Face<'_>, args: &CopyArgs) -> Outcome {
    let client = face.client;
    let id = client.snapshot_view(&args.snapshot).await?.record.id.to_string();
    let running = Running::new(client);
    let request = SnapshotCopyRequest { id, host: args.to.clone() };
    let mut idle = false;
    let work = async {
        let started = running.start(Request::CopySnapshot(request)).await?;
        idle = started.operation.is_none();
        running.finish(started).await?.into_snapshot()
    };
    let copied = Box::pin(attend(face, &running, work)).await??;
    if idle {
        let there = format!("{} is on {} already: nothing to do", view::titled(&copied), args.to);
        face.remark(&face.look.clean(&there, 1000));
    }
    show(face, &copied)?;
    Ok(0)
}
